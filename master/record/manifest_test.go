package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

func testManifest(t *testing.T) *Manifest {
	m := &Manifest{
		Versions: Versions{Macrostep: "v1.2.3", Go: "go1.26", Platform: "linux/amd64"},
		Command:  []string{"run", "a & b.ssp"}, System: "a & b.ssp", Results: "results.csv",
		FMUs:      []FMU{{Component: "all", Path: "resources/all.fmu", Hash: "sha256:00", Tool: "Tool 1"}},
		Algorithm: "explicit", Parameters: map[string]string{"order": "1", "delivery": "auto"},
		Sources:   map[string]string{"param order": "--param"},
		StartTime: Setting{0, "DefaultExperiment"}, StopTime: Setting{1, "--stop-time"}, StepSize: Setting{0.25, "a thousandth of the time span"},
		Warnings: []string{"found before the run"},
	}
	m.Finish(testSystem(t), master.Result{
		Status: master.Failed, Reason: "all: step from t = 0.5 s", Time: 0.5, Accepted: 2, Rejected: 1,
		SubsystemSteps: []int{2, 20, 2}, SubsystemSeconds: []float64{0.25, 0.5, 0}, Workers: 2, WallSeconds: 0.875, MasterSeconds: 0.125,
		Warnings: []string{"found in the run"},
		Loops:    []master.Loop{{Variables: []string{"all.y", "sys.inner.u"}, Assumed: true, Treatment: "extrapolated"}},
	}, []master.Delivery{{Input: "sys.inner.u", How: "substeps=10", Order: 1}})
	return m
}

func TestManifestGolden(t *testing.T) {
	golden := filepath.Join("testdata", "manifest.json")
	path := filepath.Join(t.TempDir(), "m.json")
	if err := testManifest(t).Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the manifest is\n%s", got)
	}
}

// What grows beyond all bounds does not keep the rest from being told.
func TestManifestNotFinite(t *testing.T) {
	m := testManifest(t)
	good := master.BondEnergy{ResidualEnergy: 1}
	infinite := math.Inf(1)
	m.Bonds = map[string]master.BondEnergy{"good": good, "bad": {MeanPower: infinite}}
	m.Models = map[string]master.ModelUse{"bad": {PredictionError: &infinite}}
	m.Replay = map[string]master.Replay{"bad": {FirstTry: math.NaN()}}
	m.ReplayNoise = map[string]float64{"bad": math.NaN(), "good": 2}
	m.Slopes = map[string]master.SlopeTest{"bad": {Difference: math.Inf(-1)}}
	path := filepath.Join(t.TempDir(), "m.json")
	if err := m.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got Manifest
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Bonds) != 1 || got.Bonds["good"] != good || len(got.ReplayNoise) != 1 || got.ReplayNoise["good"] != 2 ||
		len(got.Models)+len(got.Replay)+len(got.Slopes) != 0 {
		t.Errorf("the manifest is\n%s", data)
	}
	told := strings.Join(got.Warnings, "\n")
	if strings.Count(told, "left out of the manifest") != 5 || !strings.Contains(told, "bond bad is left out") {
		t.Errorf("warnings\n%s", told)
	}
}

func TestManifestEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.json")
	if err := (&Manifest{}).Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	if fields["status"] != "incomplete" {
		t.Errorf("status %v", fields["status"])
	}
	for key, v := range fields {
		if v == nil && !slices.Contains([]string{"tolerance", "resumed_from", "checkpoints"}, key) {
			t.Errorf("%s is null", key)
		}
	}
}

func TestManifestReplaces(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "m.json"), filepath.Join(dir, "link.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		link = path // no links on this system
	}
	if err := testManifest(t).Write(link); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); err != nil || !json.Valid(data) {
		t.Errorf("%s: %v", data, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			t.Errorf("%s is left", e.Name())
		}
	}
	missing := filepath.Join(dir, "none", "m.json")
	if err := testManifest(t).Write(missing); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "create the folder first") {
		t.Errorf("a missing folder: %v", err)
	}
}
