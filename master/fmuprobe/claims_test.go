package fmuprobe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuprobe"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/internal/slavetest"
)

// silent returns linear with a description by which y[1] and y[2] depend on u[2] only.
func silent(t testing.TB) *fmi.FMU {
	twelve := strings.TrimSpace(strings.Repeat("fixed ", 12))
	var changes []string
	for _, index := range []string{"21", "22"} {
		changes = append(changes, fmt.Sprintf(`<Unknown index="%s" dependencies="1 2 3 4 5 6 7 8 9 10 11 12" dependenciesKind="%s"/>`, index, twelve),
			fmt.Sprintf(`<Unknown index="%s" dependencies="2"/>`, index))
	}
	return slavetest.Redescribed(t, "linear", "silent", changes...)
}

// A dependency that is denied is told from a state that lags, however fast; what
// is true is known from then on, what is not is found again (fmi2 27).
func TestVerifyFeedthrough(t *testing.T) {
	for _, c := range []struct {
		name   string
		starts string
		want   []master.Leak // Out and In of y[1] y[2] and u[1] u[2]
	}{
		{"nothing", "", nil},
		{"declared", "D[1,2]=3 D[2,2]=1", nil},
		{"direct", "D[1,1]=3", []master.Leak{{Out: 0, In: 0, Slope: 3}}},
		{"weak", "D[2,1]=-1e-5", []master.Leak{{Out: 1, In: 0, Slope: -1e-5}}},
		{"both", "D[1,1]=3 D[2,1]=2 D[1,2]=1", []master.Leak{{Out: 0, In: 0, Slope: 3}, {Out: 1, In: 0, Slope: 2}}},
		{"a state", "A[1,1]=-1 B[1,1]=1 C[1,1]=1", nil},
		{"a fast state", "A[1,1]=-1e4 B[1,1]=1e4 C[1,1]=1", nil},
		{"a very fast state", "A[1,1]=-1e6 B[1,1]=1e6 C[1,1]=1", nil},
		{"an integrator with a large gain", "B[1,1]=1e6 C[1,1]=1", nil},
		{"two states", "A[1,2]=1 B[2,1]=5 C[1,1]=1", nil},
		{"direct, with a state", "A[1,1]=-1 B[1,1]=1 C[1,1]=1 D[1,1]=0.5", []master.Leak{{Out: 0, In: 0, Slope: 0.5}}},
		{"direct, with a fast state", "A[1,1]=-1e4 B[1,1]=1e4 C[1,1]=1 D[1,1]=0.5", []master.Leak{{Out: 0, In: 0, Slope: 0.5}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var trace bytes.Buffer
			s := started(t, fmuslave.Config{
				Name: "c", FMU: silent(t), Inputs: []string{"u[1]", "u[2]"}, Outputs: []string{"y[1]", "y[2]"},
				Starts: reals(t, c.starts), Cache: &fmuprobe.Cache{Dir: t.TempDir()}, Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)},
			}, unitTime)
			before := outputs(t, s)
			for k := range 2 {
				trace.Reset()
				got, err := s.VerifyFeedthrough(t.Context(), unitTime, 0.01, []int{0, 1})
				must(t, err)
				if !slices.EqualFunc(got, c.want, func(a, b master.Leak) bool {
					return a.Out == b.Out && a.In == b.In && math.Abs(a.Slope-b.Slope) < 1e-2*math.Abs(b.Slope)
				}) {
					t.Errorf("found %v, want %v", got, c.want)
				}
				if asked := trace.Len() > 0; asked != (k == 0 || c.want != nil) {
					t.Errorf("time %d: %d calls", k, len(slavetest.Calls(&trace, "")))
				}
				if mine := slavetest.Calls(&trace, "c"); len(mine) > 0 {
					t.Errorf("calls of the instance of the run: %v", mine)
				}
			}
			if after := outputs(t, s); !slices.Equal(before, after) {
				t.Errorf("outputs %v, then %v", before, after)
			}
		})
	}
	// What cannot be tested counts as true, and an interrupted test finds nothing.
	c := fmuslave.Config{Name: "c", FMU: silent(t), Inputs: []string{"u[1]"}, Outputs: []string{"y[1]"}, Starts: reals(t, "D[1,1]=3")}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(master.ErrInterrupted)
	if _, err := started(t, c, unitTime).VerifyFeedthrough(ctx, unitTime, 0.01, []int{0}); !errors.Is(err, master.ErrInterrupted) {
		t.Errorf("interrupted: %v", err)
	}
	for _, q := range []fmuslave.Quirk{fmuslave.NoRollback, fmuslave.ConstantH} {
		c.Quirks = q
		if got, err := started(t, c, unitTime).VerifyFeedthrough(t.Context(), unitTime, 0.01, []int{0}); err != nil || got != nil {
			t.Errorf("%v: %v, %v", q.Names(), got, err)
		}
	}
}

// Directional derivatives are held against what the outputs do, in the
// initialisation and within steps (fmi2 60).
func TestVerifyDerivatives(t *testing.T) {
	linear, bad := example(t, "linear"), example(t, "misbehave")
	wrong := func(d float64) []fmuslave.Value {
		return append(fault(t, "WrongDerivatives"), fmuslave.Value{Variable: "d", Real: d})
	}
	for _, c := range []struct {
		name    string
		fmu     *fmi.FMU
		in, out string
		starts  []fmuslave.Value
		H       float64
		steps   bool   // something is found within steps
		says    string // part of the error
	}{
		{name: "direct", fmu: linear, in: "u[1] u[2]", out: "y[1] y[2]", starts: reals(t, "D[1,1]=3 D[2,2]=-1e-3"), H: 0.01, steps: true},
		{name: "direct, initialisation only", fmu: linear, in: "u[1]", out: "y[1]", starts: reals(t, "D[1,1]=3")},
		{name: "states", fmu: linear, in: "u[1]", out: "y[1] y[2]", H: 0.01, steps: true,
			starts: reals(t, "A[1,1]=-3 A[1,2]=2 A[2,1]=-500 B[1,1]=1 B[2,1]=4 C[1,1]=1 C[2,2]=2 D[2,1]=0.1")},
		{name: "stiff", fmu: linear, in: "u[1]", out: "y[1]", H: 0.01, steps: true, starts: reals(t, "A[1,1]=-1e5 B[1,1]=1e5 C[1,1]=1")},
		{name: "small", fmu: linear, in: "u[1]", out: "y[1]", H: 0.01, steps: true, starts: reals(t, "A[1,1]=-1 B[1,1]=1e-4 C[1,1]=1")},
		{name: "Euler", fmu: example(t, "quarter_wheel_a"), in: "v_c", out: "F_c z_w v_w", H: 1e-3, steps: true},
		{name: "Euler, one step", fmu: example(t, "quarter_wheel_a"), in: "v_c", out: "F_c z_w v_w", H: 1e-3, steps: true, starts: slavetest.Ints("micro_steps", 1)},
		{name: "stateless", fmu: example(t, "polynomial"), in: "u", out: "y", H: 0.01, steps: true, starts: reals(t, "b=2 c=3")},
		{name: "curved", fmu: example(t, "polynomial"), in: "u", out: "y", H: 0.01, steps: true, starts: reals(t, "b=1 c=100")},
		{name: "honest", fmu: bad, in: "u", out: "x w", H: 0.1, steps: true, starts: reals(t, "d=2")},
		{name: "wrong by a state", fmu: bad, in: "u", out: "x z", H: 0.1, starts: wrong(0), says: "x changes by"},
		{name: "wrong in the initialisation", fmu: bad, in: "u", out: "w", starts: wrong(2), says: "the derivative of w with respect to u is 4, but differences give 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := started(t, fmuslave.Config{Name: "c", FMU: c.fmu, Inputs: strings.Fields(c.in), Outputs: strings.Fields(c.out),
				Starts: c.starts, Cache: &fmuprobe.Cache{Dir: t.TempDir()}}, unitTime)
			for k := range 2 {
				got, err := s.VerifyDerivatives(t.Context(), unitTime, c.H)
				if c.says != "" {
					if !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "noDirectionalDerivatives") {
						t.Errorf("%v; want %q", err, c.says)
					}
					continue
				}
				if err != nil || got.Untested != "" || got.Difference > 0.1 || (got.Step > 0) != c.steps || got.Known != (k == 1) {
					t.Errorf("time %d: %+v, %v", k, got, err)
				}
			}
		})
	}
}

// further is a subject with the outputs 3 u, of which the derivative is known, and infinity, of which it is not.
type further struct {
	fmuprobe.LinearSubject
	u float64
}

func (f *further) Info() *master.Info {
	return &master.Info{In: []master.Port{{Name: "u"}}, Out: []master.Port{{Name: "y"}, {Name: "ttc"}}}
}
func (f *further) SaveState(master.State) (master.State, error)          { return nil, nil }
func (f *further) RestoreState(master.State) error                       { return nil }
func (f *further) InputMax(int) float64                                  { return math.Inf(1) }
func (f *further) State() fmi.State                                      { return fmi.StateStepComplete }
func (f *further) SetInputs(u []float64) error                           { f.u = u[0]; return nil }
func (f *further) SetDiscrete(*master.Values) error                      { return nil }
func (f *further) Step(_ context.Context, t, h float64) (float64, error) { return t + h, nil }
func (f *further) Outputs(y []float64) error                             { y[0], y[1] = 3*f.u, math.Inf(1); return nil }
func (f *further) Linearize(_, du, _, dy []float64) error {
	dy[0], dy[1] = 3*du[0], math.NaN()
	return nil
}

// The derivative of an output that is infinite need not be a number.
func TestDerivativeOfInfinity(t *testing.T) {
	var test fmuprobe.Slopes
	if err := test.Within(t.Context(), &further{}, 0, 0.01, fmuprobe.Inputs{Real: []float64{1}}, false); err != nil || test.Compared != 1 {
		t.Errorf("%v, %d derivatives compared", err, test.Compared)
	}
}

// fault makes the FMU misbehave have the fault of this name.
func fault(t testing.TB, name string) []fmuslave.Value {
	t.Helper()
	for _, item := range example(t, "misbehave").Description.Enumeration("Fault") {
		if item.Name == name {
			return slavetest.Ints("fault", int(item.Value))
		}
	}
	t.Fatalf("misbehave has no fault %s", name)
	return nil
}

// Derivatives that cannot be compared are reported as untested, and refusals as errors.
func TestVerifyDerivativesLimits(t *testing.T) {
	once := slavetest.Redescribed(t, "misbehave", "claims_once", `canHandleVariableCommunicationStepSize="true"`,
		`canHandleVariableCommunicationStepSize="true" canBeInstantiatedOnlyOncePerProcess="true"`)
	refuses := append(fault(t, "Error"), slavetest.Ints("during", 4)...)
	for _, c := range []struct {
		fmu      *fmi.FMU // nil = misbehave
		starts   []fmuslave.Value
		quirks   fmuslave.Quirk
		H        float64
		launcher fmi.Launcher
		untested string // "" = tested
		refused  string
	}{
		{fmu: once, H: 0.1, untested: "once"},
		{fmu: once, H: 0.1, launcher: &worker.Launcher{}}, // each process has one
		{untested: "no output responds"},
		{quirks: fmuslave.NoDirectionalDerivatives, H: 0.1, refused: "no directional derivatives"},
		{starts: refuses, H: 0.1, refused: "fmi2GetDirectionalDerivative returned Error"},
	} {
		if c.fmu == nil {
			c.fmu = example(t, "misbehave")
		}
		s := started(t, fmuslave.Config{Name: "c", FMU: c.fmu, Inputs: []string{"u"}, Outputs: []string{"x", "w"}, Starts: c.starts, Quirks: c.quirks,
			Options: fmi.InstanceOptions{Launcher: c.launcher}}, unitTime)
		got, err := s.VerifyDerivatives(t.Context(), unitTime, c.H)
		if c.refused == "" && (err != nil || (got.Untested == "") != (c.untested == "") || !strings.Contains(got.Untested, c.untested)) ||
			c.refused != "" && (!errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
}
