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
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	must(t, testManifest(t).Write(path))
	got := mustRead(t, path)
	if *update {
		must(t, os.WriteFile(golden, got, 0o666))
	}
	want := mustRead(t, golden)
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
	must(t, m.Write(path))
	data := mustRead(t, path)
	var got Manifest
	must(t, json.Unmarshal(data, &got))
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
	must(t, (&Manifest{}).Write(path))
	data := mustRead(t, path)
	var fields map[string]any
	must(t, json.Unmarshal(data, &fields))
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
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	if err := os.Symlink(path, link); err != nil {
		link = path // no links on this system
	}
	must(t, testManifest(t).Write(link))
	if data, err := os.ReadFile(path); err != nil || !json.Valid(data) {
		t.Errorf("%s: %v", data, err)
	}
	entries, err := os.ReadDir(dir)
	must(t, err)
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

// Two runs do not write one manifest. A run writes its own as often as it likes.
func TestManifestBusy(t *testing.T) {
	defer func(old time.Duration) { lockPatience = old }(lockPatience)
	lockPatience = 0
	m := testManifest(t)
	path := filepath.Join(t.TempDir(), "m.json")
	for _, old := range []bool{false, true} { // a manifest is there
		first, second := ManifestFile{Path: path}, ManifestFile{Path: path}
		for range 3 {
			if err := first.Write(m); err != nil {
				t.Fatal(old, err)
			}
			for _, err := range []error{second.Write(m), m.Write(path)} {
				if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "choose another --output") {
					t.Fatal(old, err)
				}
			}
		}
		must(t, first.Close())
		if err := second.Write(m); err != nil {
			t.Fatal(old, err)
		}
		must(t, errors.Join(second.Close(), second.Close(), m.Write(path)))
	}
	// Of several that begin at once, one gets it.
	for range 50 {
		path := filepath.Join(t.TempDir(), "m.json")
		var files [8]ManifestFile
		var begun sync.WaitGroup
		var got atomic.Int32
		for i := range files {
			begun.Go(func() {
				files[i].Path = path
				if err := files[i].Write(m); err == nil {
					got.Add(1)
				} else if !errors.Is(err, ErrBusy) {
					t.Error(err)
				}
			})
		}
		begun.Wait()
		for i := range files {
			must(t, files[i].Close())
		}
		if got.Load() != 1 {
			t.Fatalf("%d runs write the manifest", got.Load())
		}
		if left, _ := filepath.Glob(path + ".*"); left != nil {
			t.Errorf("%q is left", left)
		}
	}
}

// What others have put where the temporary file will be is neither followed nor removed,
// and what a killed run has left is swept, also while others write.
func TestTemporaryFiles(t *testing.T) {
	dir := t.TempDir()
	path, precious := filepath.Join(dir, "m.json"), filepath.Join(dir, "precious")
	must(t, os.WriteFile(precious, []byte("precious"), 0o600))
	if err := os.Symlink(precious, path+temporaryBegin+"00000001"+temporaryEnd); err != nil {
		t.Skip("this system has no symbolic links, so that none can be followed")
	}
	must(t, os.WriteFile(path+temporaryBegin+"00000002"+temporaryEnd, nil, 0o600))
	for _, name := range []string{"other.checkpoint.ms-0123abcd.tmp", "mine.ms-123.tmp", ".ms-0123abcd.tmp", "mine.ms-0123abcd.tmp.gz"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600)) // the first is of a killed run, the others of no run
	}
	m := testManifest(t)
	done := make(chan bool)
	go func() {
		for range 300 {
			Sweep(path)
		}
		close(done)
	}()
	for ended := false; !ended; {
		if err := m.Write(path); err != nil && !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
		select {
		case <-done:
			ended = true
		default:
		}
	}
	var names []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".ms-0123abcd.tmp", "m.json", "m.json.ms-00000001.tmp", "mine.ms-0123abcd.tmp.gz", "mine.ms-123.tmp", "precious"}; !slices.Equal(names, want) {
		t.Errorf("there are %q", names)
	}
	if data, _ := os.ReadFile(precious); string(data) != "precious" {
		t.Errorf("the link was followed: %.20q", data)
	}
}
