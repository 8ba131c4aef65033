package assemble_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
)

// start runs a system with results in memory.
func start(a *assemble.Assembly, stop, step float64) (*record.Columns, error) {
	c, err := algorithms.New("explicit", nil)
	if err != nil {
		return nil, err
	}
	points := &record.Columns{}
	r, err := master.NewRun(a.System, c.Algorithm, master.Options{Stop: stop, Step: step, Recorders: []master.Recorder{points}})
	if err != nil {
		return nil, err
	}
	_, err = r.Run(context.Background())
	return points, err
}

func columns(tb testing.TB, a *assemble.Assembly, stop, step float64) *record.Columns {
	tb.Helper()
	points, err := start(a, stop, step)
	must(tb, err)
	return points
}

// Systems of a model, side by side, compute the same bits as systems that are opened for
// the same values: of parameters, of a free input, of a connector of the system.
func TestModel(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	unpacked := func() []string {
		names, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
		must(t, err)
		return names
	}
	path := system{
		fmus:        map[string]string{"f.fmu": probeFMU(t, "", "")},
		elements:    component("one", "f.fmu", "") + component("two", "f.fmu", ""),
		connectors:  `<ssd:Connector name="gain" kind="parameter"><ssc:Real/></ssd:Connector>`,
		connections: connection("one.y", "two.u", "") + `<ssd:Connection startConnector="gain" endElement="two" endConnector="p"/>`,
	}.write(t)
	base := assemble.Options{Set: []assemble.Assignment{{Name: "one.p", Value: "7"}, {Name: "two.u", Value: "1"}}}
	m, err := assemble.OpenModel(path, base)
	must(t, err)
	if found := fmt.Sprint(m.Findings()); strings.Count(found, "the input is connected") != 1 {
		t.Errorf("findings %s", found)
	}
	must(t, m.Load(t.Context()))
	cases := [][]assemble.Assignment{
		nil, {assemble.Real("one.p", 0.1)}, {assemble.Real("one.u", 3)}, {assemble.Real("gain", 5)},
		{assemble.Real("one.p", 1), assemble.Real("gain", 1./3)},
	}
	var systems sync.WaitGroup
	for k := range 4 * len(cases) {
		systems.Go(func() {
			values := cases[k%len(cases)]
			a, err := m.Instantiate(values...)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { must(t, a.Close()) }()
			if len(a.Findings.Findings) > 0 {
				t.Errorf("%v: told again: %v", values, a.Findings.Findings)
			}
			got, err := start(a, 0.01, 1e-3)
			o := base
			o.Set = slices.Concat(o.Set, values)
			alone, errAlone := assemble.Open(path, o)
			if err := errors.Join(err, errAlone); err != nil {
				t.Error(err)
				return
			}
			want, err := start(alone, 0.01, 1e-3)
			if err := errors.Join(err, alone.Close()); err != nil {
				t.Error(err)
			}
			if !slices.Equal(got.Names(), want.Names()) || len(got.Names()) < 4 {
				t.Errorf("%v: columns %v, alone %v", values, got.Names(), want.Names())
			}
			for _, name := range want.Names() {
				g, err := got.Real(name)
				if w, _ := want.Real(name); err == nil && !slices.Equal(g, w) {
					t.Errorf("%v: %s is %v, alone %v", values, name, g, w)
				}
			}
		})
	}
	systems.Wait()
	// What is wrong with a value is said of it alone, and harms no other system.
	if _, err := m.Instantiate(assemble.Real("one.none", 1)); err == nil || !strings.Contains(err.Error(), `has no variable "none"`) {
		t.Error(err)
	}
	last, err := m.Instantiate(assemble.Real("two.p", 10))
	must(t, err)
	if f := last.Findings.Findings; len(f) != 1 || !strings.Contains(f[0].Message, "the value 10 lies outside the bounds 0 to 9") {
		t.Errorf("findings %v", f)
	}
	must(t, m.Close())
	if len(unpacked()) == 0 {
		t.Error("the files of a system in use are removed")
	}
	columns(t, last, 0.01, 1e-3)
	for range 2 {
		must(t, last.Close())
	}
	if left := unpacked(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := m.Instantiate(); err == nil {
		t.Error("a closed model makes systems")
	}
}

// onces counts the FMUs of TestModelOnce: each takes its place in this process for good.
var onces int

// An FMU that lives once per process has its instance in one system of a model. The others
// run in processes of their own, or do not start where none can be had.
func TestModelOnce(t *testing.T) {
	for _, isolate := range []bool{false, true} {
		t.Run(fmt.Sprint("isolate ", isolate), func(t *testing.T) {
			onces++
			path, err := fmus.BuildMisbehaving(work, fmt.Sprint("once", onces), "misbehave_once", map[string]string{"x0": strconv.Itoa(onces + 1)})
			must(t, err)
			o := assemble.Options{}
			if isolate {
				o.Launcher = &worker.Launcher{}
			}
			m, err := assemble.OpenModel(path, o)
			must(t, err)
			defer func() { must(t, m.Close()) }()
			const n = 4
			var errs [n]error
			var isolated [n]bool
			var systems sync.WaitGroup
			for k := range n {
				systems.Go(func() {
					a, err := m.Instantiate(assemble.Real("x0", float64(k)))
					if err == nil {
						isolated[k] = a.Components[0].Isolated != ""
						_, err = start(a, 0.01, 1e-3)
						err = errors.Join(err, a.Close())
					}
					errs[k] = err
				})
			}
			systems.Wait()
			failed, apart := 0, 0
			for k, err := range errs {
				if err != nil {
					failed++
					if !strings.Contains(err.Error(), "canBeInstantiatedOnlyOncePerProcess") || !strings.Contains(err.Error(), "process of its own") {
						t.Error(err)
					}
				}
				if isolated[k] {
					apart++
				}
			}
			if isolate && (failed != 0 || apart != n-1) || !isolate && (failed != n-1 || apart != 0) {
				t.Errorf("%d of %d failed, %d were isolated", failed, n, apart)
			}
		})
	}
}
