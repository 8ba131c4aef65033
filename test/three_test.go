package test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/native"
	"github.com/macrostep/macrostep/master/record"
)

// three returns a demo system whose FMUs are of FMI 3.0: those named, or all.
func three(t testing.TB, name string, only ...string) string {
	t.Helper()
	return once(t, strings.Join(append([]string{name, "3"}, only...), "-")+".ssp", func(path string) error {
		z, err := zip.OpenReader(system(t, name))
		if err != nil {
			return err
		}
		defer z.Close()
		var b bytes.Buffer
		to := zip.NewWriter(&b)
		for _, f := range z.File {
			model, isFMU := strings.CutSuffix(filepath.Base(f.Name), ".fmu")
			r, err := f.Open()
			if err != nil {
				return err
			}
			content, err := io.ReadAll(r)
			if isFMU && err == nil && (only == nil || slices.Contains(only, model)) {
				var built string
				if built, err = fmus.Build3(t.TempDir(), model); err == nil {
					content = read(t, built)
				}
			}
			if err != nil {
				return err
			}
			w, err := to.Create(f.Name)
			if err == nil {
				_, err = w.Write(content)
			}
			if err != nil {
				return err
			}
		}
		if err := to.Close(); err != nil {
			return err
		}
		write(t, path, b.Bytes())
		return nil
	})
}

// With every preset, a system of FMI 3.0 gives the bytes of the same system of FMI 2.0 without what only that has:
// derivatives of inputs.
func TestThreePresets(t *testing.T) {
	for name, members := range map[string]string{"quarter-car-a": "chassis wheel", "two-mass-fd": "mass1 mass2 coupling", "contact-oscillator": "left right coupling"} {
		stop := map[string]string{"quarter-car-a": "0.3", "two-mass-fd": "0.2", "contact-oscillator": "0.05"}[name]
		var without []string
		for _, m := range strings.Fields(members) {
			without = append(without, "--quirk", m+"=noInputDerivatives")
		}
		for _, p := range algorithms.Presets() {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				t.Parallel()
				args := []string{"--algorithm", p.Name, "--stop-time", stop}
				old := run(t, slices.Concat(args, without, []string{system(t, name)})...)
				o := run(t, append(args, three(t, name))...)
				if o.code != old.code || o.code == 0 && (o.table(t) != old.table(t) || o.rows < 10) {
					t.Errorf("exit codes %d and %d, %d rows, or other bytes\n%s\n%s", o.code, old.code, o.rows, o.output, old.output)
				}
			})
		}
	}
}

// A system of FMI 2.0 and 3.0 gives the same bytes however it runs.
func TestThreeMixed(t *testing.T) {
	old := complete(t, system(t, "quarter-car-a"), "--stop-time", "0.3", "--quirk", "chassis=noInputDerivatives", "--quirk", "wheel=noInputDerivatives").table(t)
	mixed := three(t, "quarter-car-a", "quarter_wheel_a")
	address := strings.TrimPrefix(hostFlag(t), "--on=*=")
	for name, args := range map[string][]string{
		"here": nil, "isolated": {"--isolate", "wheel"}, "all isolated": {"--isolate", "wheel", "--isolate", "chassis"},
		"host": {"--on", "wheel=" + address}, "one thread": {"--workers", "1"}, "two threads": {"--workers", "2"},
	} {
		if got := complete(t, append([]string{mixed, "--stop-time", "0.3", "--quirk", "chassis=noInputDerivatives"}, args...)...).table(t); got != old {
			t.Errorf("%s: other bytes", name)
		}
	}
	args := []string{"--quirk", "chassis=noInputDerivatives", "--output=results.csv"}
	c := completed(t, "0.07", append(args, mixed, "--stop-time=0.1")...)
	whole, rest := strings.Split(old, "\n"), strings.Split(complete(t, "--resume", c.path("run.checkpoint"), "--stop-time=0.3").table(t), "\n")
	if last := whole[len(whole)-2]; len(rest) < 100 || !slices.Contains(rest, last) {
		t.Errorf("resumed: %d rows, without %s", len(rest), last)
	}
}

// A study of systems of both versions has the rows of one of FMI 2.0 alone, with one engine or two.
func TestThreeStudy(t *testing.T) {
	t.Parallel()
	const plan = `
system: %s
run: {stop-time: 0.1, quirk: [chassis=noInputDerivatives, wheel=noInputDerivatives]}
vary: {wheel.k_w: "linear(1e5, 3e5, 200)"}
collect: {last: final(chassis.v_c), top: maximum(wheel.F_c)}
`
	var want studyTable
	for _, path := range []string{system(t, "quarter-car-a"), three(t, "quarter-car-a", "quarter_wheel_a"), three(t, "quarter-car-a")} {
		folder, o := makeStudy(t, fmt.Sprintf(strings.Replace(plan, ", wheel=noInputDerivatives", map[bool]string{true: ", wheel=noInputDerivatives"}[want == nil], 1), path))
		o.is(t, 0, "200 runs: 200 ok")
		rows := rowsOfStudy(t, folder)
		if want == nil {
			want = rows
		}
		if !slices.Equal(rows["last"], want["last"]) || !slices.Equal(rows["top"], want["top"]) || len(rows["last"]) != 200 || rows["last"][0] == rows["last"][1] {
			t.Errorf("%s: other rows", path)
		}
	}
}

// A subsystem in Go between an FMU of FMI 2.0 and one of 3.0 gives the values of one between two of FMI 2.0.
func TestThreeGo(t *testing.T) {
	t.Parallel()
	third, err := fmus.Build3(t.TempDir(), "linear")
	if err != nil {
		t.Fatal(err)
	}
	var want []float64
	for _, path := range []string{fmu(t, "linear"), third} {
		gain := native.Func("gain", []string{"a", "b"}, []string{"c", "d"}, func(_ float64, u, y []float64) {
			y[0], y[1] = u[1]/2, math.Sin(u[0])
		})
		part := func(name, path string) master.Subsystem {
			number := func(v string, x float64) fmuslave.Value { return fmuslave.Value{Variable: v, Real: x} }
			s, err := fmuslave.Open(name, path, number("A[1,1]", -1), number("B[1,1]", 1), number("C[1,1]", 1), number("x0[1]", 2))
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		system, err := master.NewSystem([]master.Subsystem{gain, part("one", fmu(t, "linear")), part("two", path)}, []master.Connection{master.Connect("one.y[1]", "gain.a"), master.Connect("two.y[1]", "gain.b"),
			master.Connect("gain.c", "one.u[1]"), master.Connect("gain.d", "two.u[1]")})
		if err != nil {
			t.Fatal(err)
		}
		choice, err := algorithms.New("implicit", map[string]string{"order": "0"})
		if err != nil {
			t.Fatal(err)
		}
		columns := record.Columns{}
		r, err := master.NewRun(system, choice.Algorithm, master.Options{Stop: 1, Step: 0.01, Recorders: []master.Recorder{&columns}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := columns.Real("two.y[1]")
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) || len(got) != 101 || got[100] == got[0] {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A fault in a call of each kind is named with the function of FMI 3.0, and rows are kept.
func TestThreeFaults(t *testing.T) {
	for _, during := range []string{"Instantiate", "EnterInitializationMode", "GetReal", "SetReal", "DoStep",
		"GetFMUstate", "SetFMUstate", "Terminate", "FreeInstance"} {
		for _, item := range []string{"Segfault", "Exit7", "EndlessLoop"} {
			if item == "EndlessLoop" && during != "DoStep" && during != "GetReal" && during != "GetFMUstate" {
				continue
			}
			t.Run(during+"/"+item, func(t *testing.T) {
				t.Parallel()
				as := "three_" + during + "_" + item
				path := once(t, as, func(dir string) error {
					return writePair(t, dir, as, "", func(resources string) error {
						start := map[string]string{"fault": item, "during": during}
						if during == "DoStep" {
							start["at"] = "0.4"
						}
						_, err := fmus.BuildMisbehaving3(resources, as, "misbehave", start)
						return err
					})
				})
				o := run(t, path, "--isolate", "bad", "--step-timeout", "5", "--algorithm", "implicit") // which saves and restores states
				function := map[string]string{"Instantiate": "InstantiateCoSimulation", "GetReal": "GetFloat64", "SetReal": "SetFloat64"}[during]
				if function == "" {
					function = strings.Replace(during, "FMUstate", "FMUState", 1)
				}
				said := o.output + strings.Join(o.manifest.Warnings, "\n")
				if !strings.Contains(said, as+".fmu") || !strings.Contains(said, "fmi3"+function) || o.code == 2 {
					t.Errorf("exit code %d\n%s", o.code, said)
				}
				if during == "DoStep" && (o.code != 1 || o.rows < 4) {
					t.Errorf("exit code %d, %d rows", o.code, o.rows)
				}
			})
		}
	}
}

// FMUs that end the simulation by a result of fmi3DoStep, one or two at the same time, end the run in the same way wherever
// they run.
func TestThreeEnds(t *testing.T) {
	for _, third := range []string{"", "worse"} {
		as := "three_ends" + third
		path := once(t, as, func(dir string) error {
			return writePair(t, dir, as, third, func(resources string) error {
				_, err := fmus.BuildMisbehaving3(resources, as, "misbehave", map[string]string{"fault": "DiscardAndEnd", "during": "DoStep", "at": "0.3451"})
				return err
			})
		})
		want := run(t, path)
		if want.code != 0 || want.manifest.Status != "terminated" && !strings.Contains(want.manifest.Reason, "asked to end the simulation") {
			t.Fatalf("exit code %d, %s, %s\n%s", want.code, want.manifest.Status, want.manifest.Reason, want.output)
		}
		for name, args := range map[string][]string{"isolated": {"--isolate", "always"}, "two threads": {"--workers", "2"}, "call by call": {"--debug", "calls=calls.txt"}} {
			o := run(t, append([]string{path}, args...)...)
			if o.code != want.code || o.table(t) != want.table(t) || o.manifest.Reason != want.manifest.Reason {
				t.Errorf("%s: exit code %d, %q, %d rows; want %q, %d", name, o.code, o.manifest.Reason, o.rows, want.manifest.Reason, want.rows)
			}
		}
	}
}
