package fmuslave_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/internal/slavetest"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/probe"
)

// named lists the variables of one causality.
func named(f *fmi.FMU, c description.Causality) []string {
	var out []string
	for _, v := range f.Description.Variables {
		if v.Causality == c {
			out = append(out, v.Name)
		}
	}
	return out
}

// Every FMU of ours keeps the contract of master, with local variables monitored, too.
func TestConformance(t *testing.T) {
	const linear = "A[1,2]=1 A[2,1]=-40 A[2,2]=-1 B[2,1]=3 C[1,1]=1 C[2,2]=1 D[3,2]=2 x0[1]=1"
	for _, name := range fmus.Names() {
		t.Run(name, func(t *testing.T) {
			f := example(t, name)
			starts := slavetest.Reals(t, map[string]string{
				"linear": linear, "blackbox": linear, "chain": "c=1e3 d=1 C=0 D=0 rtol=1e-10", // slow, linear and undisturbed
			}[name])
			if name == "chain" {
				starts = append(starts, ints("impulses", 0, "contacts", 0)...)
			}
			// One step of symplectic Euler is far from what derivatives say.
			if _, ok := f.Description.Variable("micro_steps"); ok && !strings.HasPrefix(name, "quarter_") {
				starts = append(starts, ints("micro_steps", 1000)...)
			}
			H := 1e-3
			if name == "crane_hydraulics" { // its oil is stiff
				H = 1e-6
			}
			in := named(f, description.Input)
			u := make([]float64, len(in))
			for i := range u {
				u[i] = 0.3 + 0.1*float64(i)
			}
			c := fmuslave.Config{Name: name, FMU: f, Inputs: in, Outputs: named(f, description.Output), Starts: starts}
			if slices.Contains([]string{"mass_force", "quarter_wheel_a", "linear"}, name) {
				for _, v := range named(f, description.Local) {
					c.Monitor = append(c.Monitor, fmuslave.Monitored{Variable: v})
				}
			}
			fresh := func() (master.Subsystem, error) { return fmuslave.New(c) }
			if err := mastertest.TestSubsystem(fresh, u, 0.5, H); err != nil {
				t.Error(err)
			}
		})
	}
}

// The description follows modelDescription.xml.
func TestInfo(t *testing.T) {
	s, err := fmuslave.New(fmuslave.Config{
		Name: "c", FMU: probeFMU(t, probe.Everything),
		Inputs:  []string{"ud", "u", "s", "mode", "b"},
		Outputs: []string{"y", "x", "q", "echo_ud", "echo_mode", "not_b", "quoted"},
		Watch:   []string{"w", "odd"},
		Starts:  []fmuslave.Value{{Variable: "u", Real: 7}, {Variable: "mode", Integer: 3}},
	})
	must(t, err)
	i := s.Info()
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"inputs", i.In, []master.Port{{Name: "ud", Discrete: true}, {Name: "u", Unit: "m"}}},
		{"outputs", i.Out, []master.Port{{Name: "y"}, {Name: "x", Unit: "km", Nominal: 100}, {Name: "q"}, {Name: "echo_ud", Discrete: true}}},
		{"discrete inputs", i.DiscreteIn, []master.Port{{Name: "s", Kind: master.String}, {Name: "mode", Kind: master.Integer, Low: math.MinInt32, High: math.MaxInt32}, {Name: "b", Kind: master.Boolean}}},
		{"discrete outputs", i.DiscreteOut, []master.Port{{Name: "echo_mode", Kind: master.Integer, Low: math.MinInt32, High: math.MaxInt32}, {Name: "not_b", Kind: master.Boolean}, {Name: "quoted", Kind: master.String}}},
		{"watched", i.Watch, []master.Port{{Name: "w"}, {Name: "odd", Kind: master.Boolean}}},
		{"start", i.StartIn, []float64{0.25, 7}},
		{"discrete start", *i.StartDiscreteIn, master.Values{Real: []float64{}, Integer: []int64{3}, Boolean: []bool{true}, String: []string{"abc"}}},
		// Inputs: ud u s mode b. not_b has no attribute dependencies.
		{"step", i.Step.On, [][]int{{1}, nil, nil, {0}, {3}, {0, 1, 2, 3, 4}, {2}}},
		{"assumed", i.Step.Assumed, []bool{false, false, false, false, false, true, false}},
		{"init", i.Init.On, i.Step.On},
		{"capabilities", i.Caps, master.Caps{VariableStep: true, InputDerivatives: true, SaveState: true, DirectionalDerivative: true}},
	} {
		if !reflect.DeepEqual(c.got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

// Without inputs nothing is assumed; stateless comes from the configuration or
// the vendor annotation.
func TestStateless(t *testing.T) {
	for _, c := range []struct {
		fmu  *fmi.FMU
		ask  bool
		want bool
	}{
		{example(t, "coupling"), false, true},
		{example(t, "mass_force"), false, false},
		{example(t, "mass_force"), true, true},
	} {
		s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: c.fmu, Outputs: named(c.fmu, description.Output), Stateless: c.ask})
		must(t, err)
		if s.Info().Stateless != c.want {
			t.Errorf("%s, asked %v: stateless is %v", c.fmu.Path, c.ask, s.Info().Stateless)
		}
		if slices.Contains(s.Info().Step.Assumed, true) {
			t.Errorf("%s: dependencies on no input are assumed", c.fmu.Path)
		}
	}
}

// What cannot be is refused before the FMU is touched.
func TestRefused(t *testing.T) {
	f := probeFMU(t, "")
	for _, c := range []struct {
		config fmuslave.Config
		want   string
	}{
		{fmuslave.Config{Inputs: []string{"nothing"}}, `no variable "nothing"`},
		{fmuslave.Config{Inputs: []string{"x"}}, `"x" is not usable as input: its causality is output`},
		{fmuslave.Config{Outputs: []string{"w"}}, `"w" is not usable as output: its causality is local`},
		{fmuslave.Config{Watch: []string{"nothing"}}, `no variable "nothing"`},
		{fmuslave.Config{Starts: []fmuslave.Value{{Variable: "nothing"}}}, `no variable "nothing" to set`},
		{fmuslave.Config{Starts: []fmuslave.Value{{Variable: "w"}}}, `"w" cannot be set: its causality is local`},
		{fmuslave.Config{Starts: []fmuslave.Value{{Variable: "x"}}}, `"x" cannot be set`},
		{fmuslave.Config{Starts: []fmuslave.Value{{Variable: "time"}}}, `"time" cannot be set`},
	} {
		c.config.Name, c.config.FMU = "c", f
		if _, err := fmuslave.New(c.config); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "c: ") {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}

// Two names of one input are not both driven (fmi2 67).
func TestDrivenTwice(t *testing.T) {
	f := slavetest.Packed(t, "twins", slavetest.Changed(t, probe.Description("twins", "", ""),
		`name="ud" valueReference="1"`, `name="ud" valueReference="0"`))
	for _, in := range [][]string{{"u"}, {"ud"}, {"mode", "u"}} { // mode has the same reference, of another type
		_, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: f, Inputs: in})
		must(t, err)
	}
	if _, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u", "ud"}}); err == nil || !strings.Contains(err.Error(), `c: the inputs "u" and "ud" are one variable`) {
		t.Errorf("%v", err)
	}
}

// What is given is set, parameters and approximate starts before initialisation
// mode, inputs inside it, and the inputs that are driven: nothing else, unless the
// quirk setStarts asks for it (fmi2 42). Of aliases any name will do, of several
// values the last.
func TestStartValues(t *testing.T) {
	for _, c := range []struct {
		quirks       fmuslave.Quirk
		before, then []string
	}{
		{0, []string{"fmi2SetReal vr=[6] v=[2]"}, []string{"fmi2SetReal vr=[0] v=[4]", "fmi2SetInteger vr=[0] v=[2]", "fmi2SetBoolean vr=[0] v=[0]"}},
		{fmuslave.SetStarts,
			[]string{"fmi2SetReal vr=[6 7 10] v=[2 3 -1]", "fmi2SetInteger vr=[3 4 5 6 7 8 9] v=[0 0 1 0 0 0 0]"},
			[]string{"fmi2SetReal vr=[0 1] v=[4 0.25]", "fmi2SetInteger vr=[0] v=[2]", "fmi2SetBoolean vr=[0] v=[0]", `fmi2SetString vr=[0] v=["abc"]`}},
	} {
		var trace bytes.Buffer
		s := started(t, fmuslave.Config{
			Name: "c", FMU: probeFMU(t, ""), Inputs: []string{"u", "mode"}, Outputs: []string{"y", "q", "echo_mode"},
			Watch:  []string{"p.alias"},
			Starts: []fmuslave.Value{{Variable: "p", Real: 5}, {Variable: "p.alias", Real: 2}, {Variable: "u", Real: 4}, {Variable: "b", Boolean: false}},
			Options: fmi.InstanceOptions{
				Trace: fmi.NewTrace(&trace),
			},
			Quirks: c.quirks,
		})
		if got, want := outputs(t, s), []float64{8, 5}; !slices.Equal(got, want) {
			t.Errorf("outputs %v, want %v", got, want)
		}
		w := master.NewValues(s.Info().Watch)
		must(t, s.Watched(&w))
		if w.Real[0] != 2 || len(s.Notes()) > 0 {
			t.Errorf("p.alias is %g, notes %q", w.Real[0], s.Notes())
		}
		want := slices.Concat([]string{"fmi2SetupExperiment toleranceDefined=0 tolerance=0 start=0 stopDefined=0 stop=0"}, c.before,
			[]string{"fmi2EnterInitializationMode"}, c.then,
			[]string{"fmi2SetReal vr=[0] v=[4]", "fmi2SetInteger vr=[0] v=[2]"}) // EvalInit
		if sets := sets(&trace); !slices.Equal(sets, want) {
			t.Errorf("%v: set\n%s\nwant\n%s", c.quirks.Names(), strings.Join(sets, "\n"), strings.Join(want, "\n"))
		}
	}
}

// sets lists the calls of a trace that set something.
func sets(trace *bytes.Buffer) (calls []string) {
	for line := range strings.Lines(trace.String()) {
		f := strings.Fields(line)
		if strings.HasPrefix(f[2], "fmi2Set") || strings.HasPrefix(f[2], "fmi2Enter") {
			calls = append(calls, strings.Join(f[2:slices.Index(f, "->")], " "))
		}
	}
	return calls
}

// An input is an input by whichever of its names it gets a value, and starts with
// what any of them documents.
func TestStartOfAliases(t *testing.T) {
	const local = `<ScalarVariable name="first" valueReference="0" causality="local" variability="continuous" initial="exact"><Real%s/></ScalarVariable>`
	for _, c := range []struct {
		name    string
		replace []string
		starts  []fmuslave.Value
		u       float64
		want    string
	}{
		{"given by the other name", []string{`<ScalarVariable name="u"`, fmt.Sprintf(local, ` start="7"`) + `<ScalarVariable name="u"`}, []fmuslave.Value{{Variable: "first", Real: 4}}, 4, "fmi2SetReal vr=[0] v=[4]"},
		{"own start", []string{`<ScalarVariable name="u"`, fmt.Sprintf(local, ` start="7"`) + `<ScalarVariable name="u"`}, nil, 0.5, "fmi2SetReal vr=[0] v=[0.5]"},
		{"start of the other", []string{`<ScalarVariable name="u"`, fmt.Sprintf(local, ` start="7"`) + `<ScalarVariable name="u"`, `<Real start="0.5" unit="m"/>`, `<Real unit="m"/>`}, nil, 7, "fmi2SetReal vr=[0] v=[7]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := probe.Description("aliases", "", "")
			text = text[:strings.Index(text, "<ModelStructure>")] + "<ModelStructure><Outputs/></ModelStructure></fmiModelDescription>"
			text = strings.NewReplacer(c.replace...).Replace(text)
			f := slavetest.Packed(t, "aliases "+c.name, text)
			var trace bytes.Buffer
			s := started(t, fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u"}, Starts: c.starts, Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)}})
			if got := s.Info().StartIn[0]; got != c.u {
				t.Errorf("u starts at %g, want %g", got, c.u)
			}
			if got := sets(&trace); !slices.Equal(got[1:], []string{"fmi2EnterInitializationMode", c.want, c.want}) {
				t.Errorf("set %q", got)
			}
		})
	}
}

// A slave is told start and tolerance where they are known, and the stop time
// only if its quirk asks for it and no step ends behind it (fmi2 40).
func TestExperiment(t *testing.T) {
	for _, c := range []struct {
		quirks fmuslave.Quirk
		known  bool
		want   string
	}{
		{0, true, "start=2 stopDefined=0 stop=0"},
		{fmuslave.StopTime, false, "start=2 stopDefined=0 stop=0"},
		{fmuslave.StopTime, true, "start=2 stopDefined=1 stop=5"},
	} {
		var trace bytes.Buffer
		s := newSlave(t, fmuslave.Config{Name: "c", FMU: probeFMU(t, ""), Quirks: c.quirks, Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)}})
		must(t, s.EnterInit(t.Context(), master.Experiment{Start: 2, Stop: 5, StopKnown: c.known, Tolerance: 1e-6, HasTol: true}))
		if want := "toleranceDefined=1 tolerance=1e-06 " + c.want; !strings.Contains(trace.String(), want) {
			t.Errorf("no %q in\n%s", want, &trace)
		}
	}
}

// Every end of a slave's life is legal: Terminate where the state allows it,
// Free once unless the FMU is gone for good (fmi2 39, 62).
func TestEnds(t *testing.T) {
	for _, c := range []struct {
		name string
		live func(s *fmuslave.Slave) // ignores errors: they are what brings it there
		tail string                  // last calls
	}{
		{"never entered", func(*fmuslave.Slave) {}, ""},
		{"initialisation", func(s *fmuslave.Slave) { s.EnterInit(t.Context(), master.Experiment{}) }, "FreeInstance"},
		{"started", func(s *fmuslave.Slave) { slavetest.Start(t, s, master.Experiment{}) }, "Terminate FreeInstance"},
		{"stepped", func(s *fmuslave.Slave) { slavetest.Start(t, s, master.Experiment{}); s.Step(t.Context(), 0, 1) }, "Terminate FreeInstance"},
		{"discarded", func(s *fmuslave.Slave) {
			slavetest.Start(t, s, master.Experiment{})
			s.Step(t.Context(), 1, 1)
			s.Step(t.Context(), 2, 1)
		}, "Terminate FreeInstance"},
		{"error", func(s *fmuslave.Slave) {
			slavetest.Start(t, s, master.Experiment{})
			s.Step(t.Context(), 1, 1)
			s.Step(t.Context(), 2, 1)
		}, "FreeInstance"},
		{"fatal", func(s *fmuslave.Slave) {
			slavetest.Start(t, s, master.Experiment{})
			s.Step(t.Context(), 1, 1)
			s.Step(t.Context(), 2, 1)
		}, "DoStep"},
		{"terminate fails", func(s *fmuslave.Slave) { slavetest.Start(t, s, master.Experiment{}) }, "Terminate FreeInstance"},
		{"enter fails", func(s *fmuslave.Slave) { s.EnterInit(t.Context(), master.Experiment{}) }, "FreeInstance"},
		{"exit fails", func(s *fmuslave.Slave) {
			s.EnterInit(t.Context(), master.Experiment{})
			s.EvalInit()
			s.ExitInit()
		}, "FreeInstance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			starts := map[string][]fmuslave.Value{
				"discarded": fault(probe.DoStep, 2, 2), "error": fault(probe.DoStep, 3, 2), "fatal": fault(probe.DoStep, 4, 2),
				"terminate fails": fault(probe.Terminate, 3, 1), "enter fails": fault(probe.Enter, 3, 1), "exit fails": fault(probe.Exit, 3, 1),
			}[c.name]
			var trace bytes.Buffer
			f := probeFMU(t, probe.Everything)
			if c.name == "fatal" { // it can never be used again
				f = probeFMU(t, probe.Everything+` needsExecutionTool="false"`)
			}
			s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: f, Starts: starts, Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)}})
			must(t, err)
			c.live(s)
			err = s.Terminate()
			if (err != nil) != (c.name == "terminate fails") {
				t.Errorf("Terminate: %v", err)
			}
			if err := errors.Join(s.Terminate(), s.Close(), s.Close()); err != nil {
				t.Error(err)
			}
			all := strings.Join(calls(&trace, ""), " ")
			if !strings.HasSuffix(all, c.tail) || strings.Count(all, "Terminate") > 1 || strings.Count(all, "FreeInstance") > 1 ||
				strings.Contains(c.tail, "Terminate") != strings.Contains(all, "Terminate") {
				t.Errorf("calls %s, want them to end with %s", all, c.tail)
			}
		})
	}
}

// A system can be run again: the slave makes a new instance.
func TestSecondLife(t *testing.T) {
	s := newSlave(t, fmuslave.Config{Name: "c", FMU: probeFMU(t, probe.Everything), Inputs: []string{"u", "s"}, Outputs: []string{"x", "quoted"}})
	var first []float64
	for life := range 2 {
		slavetest.Start(t, s, master.Experiment{InputDerivatives: 2})
		if s.Seconds() != 0 {
			t.Errorf("life %d begins with %g s", life, s.Seconds())
		}
		if life == 0 {
			must(t, s.PrepareInputDerivatives(2))
			must(t, s.SetDiscrete(&master.Values{String: []string{"other"}}))
		}
		_, err := s.Step(t.Context(), 0, 0.5)
		must(t, err)
		if s.Seconds() <= 0 {
			t.Errorf("life %d took no time", life)
		}
		y := outputs(t, s)
		if first == nil {
			first = y
		} else if !slices.Equal(first, y) {
			t.Errorf("the second life gives %v, the first %v", y, first)
		}
		v := master.NewValues(s.Info().DiscreteOut)
		must(t, s.Discrete(&v))
		if want := []string{"<other>", "<abc>"}[life]; v.String[0] != want {
			t.Errorf("life %d: the string is %s, want %s", life, v.String[0], want)
		}
		must(t, errors.Join(s.Terminate(), s.Close()))
	}
}

// Each outcome of the calls of a step gives its error, its time, and leaves the
// FMU in a state from which it can be ended.
func TestStatuses(t *testing.T) {
	const H = 0.5
	all := func(lists ...[]fmuslave.Value) []fmuslave.Value { return slices.Concat(lists...) }
	got := func(share float64) []fmuslave.Value { return []fmuslave.Value{{Variable: "share", Real: share}} }
	for _, c := range []struct {
		name    string
		starts  []fmuslave.Value
		is      error // nil = any error, if want is not ""
		want    string
		reached float64 // of the step from H by H
	}{
		{"ok", nil, nil, "", 2 * H},
		{"warning", fault(probe.DoStep, 1, 2), nil, "", 2 * H},
		{"discard", all(fault(probe.DoStep, 2, 2), got(0.25)), master.ErrDiscard, "as it was told", H + 0.125},
		{"discard, no time", fault(probe.DoStep, 2, 2), master.ErrDiscard, "at t = 0.5 s", H},
		{"discard, time beyond", all(fault(probe.DoStep, 2, 2), got(7)), master.ErrDiscard, "", 2 * H},
		{"terminated", all(fault(probe.DoStep, 2, 2), got(0.5), ints("ends", 1)), master.ErrTerminated, "at t = 0.75 s", H + 0.25},
		{"terminated at the start", all(fault(probe.DoStep, 2, 2), got(0), ints("ends", 1)), master.ErrTerminated, "at t = 0.5 s", H},
		{"terminated at the end", all(fault(probe.DoStep, 2, 2), got(1), ints("ends", 1)), master.ErrTerminated, "at t = 1 s", 2 * H},
		{"terminated at the end but for rounding", all(fault(probe.DoStep, 2, 2), got(1-1e-12), ints("ends", 1)), master.ErrTerminated, "at t = 1 s", 2 * H},
		{"terminated beyond", all(fault(probe.DoStep, 2, 2), got(1.1), ints("ends", 1)), master.ErrTerminated, "is 1.05 s, outside of the step", math.NaN()},
		{"terminated, not a number", all(fault(probe.DoStep, 2, 2), got(math.NaN()), ints("ends", 1)), master.ErrTerminated, "the time it reached could not be read", math.NaN()},
		{"terminated, no time", all(fault(probe.DoStep, 2, 2), ints("ends", 1)), master.ErrTerminated, "the time it reached could not be read", math.NaN()},
		{"error", fault(probe.DoStep, 3, 2), nil, "fmi2DoStep returned Error", H},
		{"setter discards", fault(probe.SetReal, 2, 2), nil, "; the FMU refuses u = 2", H},
		{"setter error", fault(probe.SetReal, 3, 2), nil, "; the FMU refuses u = 2", H},
		// Parameters, outputs and the time were read before the steps, and in each step the latter two.
		{"getter discards", fault(probe.GetReal, 2, 6), nil, "fmi2GetReal returned Discard", H},
		{"getter pending", fault(probe.GetReal, 5, 6), nil, "fmi2GetReal returned Pending", H},
		{"getter error", fault(probe.GetReal, 3, 6), nil, "fmi2GetReal returned Error", H},
		{"undefined", fault(probe.DoStep, 9, 2), nil, "not define", H},
		{"pending", all(fault(probe.DoStep, 5, 2), ints("polls", 4)), nil, "", 2 * H},
		{"pending, warning", all(fault(probe.DoStep, 5, 2), ints("polls", 2, "outcome", 1)), nil, "", 2 * H},
		{"pending, discard", all(fault(probe.DoStep, 5, 2), ints("polls", 2, "outcome", 2), got(0.5)), master.ErrDiscard, "", H + 0.25},
		{"pending, terminated", all(fault(probe.DoStep, 5, 2), ints("outcome", 2, "ends", 1)), master.ErrTerminated, "", math.NaN()},
		{"pending, error", all(fault(probe.DoStep, 5, 2), ints("outcome", 3)), nil, "fmi2DoStep returned Error", H},
		{"pending, no status", all(fault(probe.DoStep, 5, 2), ints("polls", -1)), nil, "fmi2GetStatus returned Discard", H},
	} {
		for _, how := range []string{"step", "substep", "traced"} {
			if how == "substep" && strings.HasPrefix(c.name, "getter") {
				continue // it does not get
			}
			t.Run(c.name+"/"+how, func(t *testing.T) {
				o := fmi.InstanceOptions{}
				if how == "traced" {
					o.Trace = fmi.NewTrace(&bytes.Buffer{})
				}
				s := started(t, fmuslave.Config{
					Name: "c", FMU: probeFMU(t, probe.Everything), Inputs: []string{"u"}, Outputs: []string{"x"}, Starts: c.starts, Options: o,
				})
				batch, err := s.NewBatch([]master.Subsystem{s}, make([]master.Exchange, 1))
				must(t, err)
				step := s.Step
				if how == "substep" {
					step = func(ctx context.Context, t, h float64) (float64, error) {
						_, reached, err := batch.Step(ctx, t, h, false)
						return reached, err
					}
				}
				must(t, s.SetInputs([]float64{1}))
				_, err = s.Step(t.Context(), 0, H)
				must(t, err)
				must(t, s.SetInputs([]float64{2}))
				reached, err := step(t.Context(), H, H)
				switch {
				case c.is == nil && c.want == "":
					if err != nil {
						t.Error(err)
					} else if how == "step" {
						if y := outputs(t, s); y[0] != 1.5 {
							t.Errorf("x = %g, want 1.5", y[0])
						}
					}
				case c.is != nil && !errors.Is(err, c.is), err == nil, !strings.Contains(err.Error(), c.want):
					t.Errorf("%v, want %q and %v", err, c.want, c.is)
				case c.is == nil && (errors.Is(err, master.ErrDiscard) || errors.Is(err, master.ErrTerminated)):
					t.Errorf("%v counts as a discarded step", err)
				}
				if reached != c.reached && !(math.IsNaN(reached) && math.IsNaN(c.reached)) {
					t.Errorf("reached %g, want %g", reached, c.reached)
				}
				if err := errors.Join(s.Terminate(), s.Close()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// A pending step is cancelled with the context, or waited for if it cannot be.
func TestCancelled(t *testing.T) {
	for _, c := range []struct {
		name   string
		starts []fmuslave.Value
		want   error
	}{
		{"cancelled", ints("polls", 1_000_000_000), context.Canceled},
		{"cancel fails", ints("polls", 1_000_000_000, "cancel", 3), context.Canceled},
		{"cannot be cancelled", ints("polls", 5, "cancel", 2), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := started(t, fmuslave.Config{
				Name: "c", FMU: probeFMU(t, probe.Everything), Outputs: []string{"x"}, Starts: append(fault(probe.DoStep, 5, 1), c.starts...),
			})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := s.Step(ctx, 0, 0.5); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if err := errors.Join(s.Terminate(), s.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An FMU that claims to interpolate and does not is named with the way out.
func TestDerivativesRefused(t *testing.T) {
	for _, status := range []int{2, 3} {
		s := started(t, fmuslave.Config{
			Name: "c", FMU: probeFMU(t, probe.Everything), Inputs: []string{"u"}, Outputs: []string{"x"},
			Starts: fault(probe.SetDerivatives, status, 1),
		})
		must(t, s.PrepareInputDerivatives(1))
		_, err := s.Step(t.Context(), 0, 0.5)
		if err == nil || !strings.Contains(err.Error(), "delivery=substeps") || errors.Is(err, master.ErrDiscard) {
			t.Errorf("%v, want the remedy delivery=substeps", err)
		}
	}
}

// Input derivatives arrive, for one step each, and survive nothing.
func TestDerivatives(t *testing.T) {
	c := fmuslave.Config{Name: "c", FMU: probeFMU(t, probe.Everything), Inputs: []string{"ud", "u"}, Outputs: []string{"x"}}
	s := startedAt(t, c, master.Experiment{InputDerivatives: 2})
	must(t, s.SetInputs([]float64{0, 1}))
	if err := s.PrepareInputDerivatives(3); !errors.Is(err, master.ErrCapability) {
		t.Errorf("order 3: %v", err)
	}
	must(t, s.PrepareInputDerivatives(2)) // keeps what is staged
	must(t, s.SetInputDerivatives(1, []float64{0, 2}))
	must(t, s.SetInputDerivatives(2, []float64{0, 6}))
	_, err := s.Step(t.Context(), 0, 1)
	must(t, err)
	if y := outputs(t, s); y[0] != 1+1+1 {
		t.Errorf("x = %g, want 3", y[0])
	}
}

// Orders above the first are tried on an instance of its own (fmi2 56).
func TestHighestDerivative(t *testing.T) {
	for _, c := range []struct {
		capabilities string
		starts       []fmuslave.Value
		wanted, want int
	}{
		{probe.Everything, nil, 3, 3},
		{probe.Everything, nil, 1, 1},
		{probe.Everything, fault(probe.SetDerivatives, 3, 2), 3, 2},
		{probe.Everything, fault(probe.SetDerivatives, 2, 1), 3, 1},
		{probe.Everything, fault(probe.SetDerivatives, 1, 1), 3, 1}, // a warning is a refusal
		{probe.Everything + ` canBeInstantiatedOnlyOncePerProcess="true"`, nil, 3, 1},
		{"", nil, 3, 0},
	} {
		s := newSlave(t, fmuslave.Config{Name: "c", FMU: probeFMU(t, c.capabilities), Inputs: []string{"u"}, Starts: c.starts})
		must(t, s.EnterInit(t.Context(), master.Experiment{InputDerivatives: c.wanted}))
		must(t, errors.Join(s.EvalInit(), s.ExitInit()))
		got := 0
		for s.PrepareInputDerivatives(got+1) == nil {
			got++
		}
		if got != c.want {
			t.Errorf("%q %v: order %d, want %d", c.capabilities, c.starts, got, c.want)
		}
		must(t, s.Close())
	}
}

// After going back, outputs, discrete outputs and watched variables are those of
// the state, and strings are set anew.
func TestRollback(t *testing.T) {
	s := started(t, fmuslave.Config{
		Name: "c", FMU: probeFMU(t, probe.Everything), Inputs: []string{"u", "s"}, Outputs: []string{"x", "quoted"}, Watch: []string{"w", "count", "odd", "done"},
	})
	see := func() string {
		d, w := master.NewValues(s.Info().DiscreteOut), master.NewValues(s.Info().Watch)
		must(t, errors.Join(s.Discrete(&d), s.Watched(&w)))
		return fmt.Sprint(outputs(t, s), d, w)
	}
	step := func(text string) string {
		must(t, errors.Join(s.SetInputs([]float64{2}), s.SetDiscrete(&master.Values{String: []string{text}})))
		_, err := s.Step(t.Context(), 0, 0.5)
		must(t, err)
		return see()
	}
	before := see()
	state, err := s.SaveState(nil)
	must(t, err)
	first := step("new")
	if !strings.Contains(first, "<new>") || !strings.Contains(first, "step 1") || first == before {
		t.Fatalf("a step leads from %s to %s", before, first)
	}
	for range 2 {
		must(t, s.RestoreState(state))
		if back := see(); back != before {
			t.Errorf("back at %s, want %s", back, before)
		}
		must(t, s.RestoreState(state))
		if again := step("new"); again != first {
			t.Errorf("the step again gives %s, want %s", again, first)
		}
	}
	if state, err = s.SaveState(state); err != nil {
		t.Fatal(err)
	}
	must(t, s.FreeState(state))
}

// A state cannot be given back to an FMU that may not be called, and that is no
// further error.
func TestFreeStateAfterFatal(t *testing.T) {
	f := probeFMU(t, probe.Everything+` needsExecutionTool="0"`)
	s := started(t, fmuslave.Config{Name: "c", FMU: f, Starts: fault(probe.DoStep, 4, 1)})
	state, err := s.SaveState(nil)
	must(t, err)
	if _, err := s.Step(t.Context(), 0, 1); err == nil {
		t.Fatal("a fatal step is none")
	}
	if err := errors.Join(s.FreeState(state), s.Terminate(), s.Close()); err != nil {
		t.Error(err)
	}
	// Of an FMU without rollback there is no state.
	s = started(t, fmuslave.Config{Name: "d", FMU: probeFMU(t, "")})
	if state, err := s.SaveState(nil); err == nil || state != nil {
		t.Errorf("state %v, error %v", state, err)
	}
}

// calculated is a probe whose x has an exact start and whose q is a calculated
// parameter.
func calculated(t *testing.T) *fmi.FMU {
	t.Helper()
	return slavetest.Packed(t, "calculated", slavetest.Changed(t, probe.Description("calculated", probe.Everything, ""),
		`causality="output"><Real unit="km" nominal="100"/>`, `causality="output" initial="exact"><Real unit="km" nominal="100" start="0"/>`,
		`name="q" valueReference="8" causality="output"`, `name="q" valueReference="8" causality="calculatedParameter" variability="fixed"`,
		`      <Unknown index="9" dependencies=""/>`+"\n", ``,
		`<InitialUnknowns>`+"\n"+`      <Unknown index="3" dependencies=""/>`, `<InitialUnknowns>`))
}

// Derivatives are asked for unknowns of the mode only: in the initialisation not
// for outputs with an exact start, after it not for calculated parameters (fmi2 60).
func TestDirectionalUnknowns(t *testing.T) {
	var trace bytes.Buffer
	s := newSlave(t, fmuslave.Config{
		Name: "c", FMU: calculated(t), Inputs: []string{"ud", "u"}, Outputs: []string{"x", "y", "q", "echo_ud"},
		Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)},
	})
	must(t, s.EnterInit(t.Context(), master.Experiment{}))
	must(t, s.EvalInit())
	for _, unknown := range []string{"[3 8 5]", "[2 3 5]"} {
		trace.Reset()
		dy := []float64{7, 7, 7, 7}
		if unknown == "[3 8 5]" {
			must(t, s.InitialSlopes([]float64{3, 5}, dy))
		} else {
			must(t, s.DirectionalDerivative([]float64{3, 5}, dy))
		}
		if want := []float64{0, 10, 0, 3}; !slices.Equal(dy, want) {
			t.Errorf("dy = %v, want %v", dy, want)
		}
		if want := "unknown=" + unknown + " known=[1 0]"; !strings.Contains(trace.String(), want) {
			t.Errorf("no %q in %s", want, &trace)
		}
		if unknown == "[3 8 5]" {
			must(t, s.ExitInit())
		}
	}
}

// A calculated parameter can feed an input; it is no unknown of the steps, and
// is not extrapolated (fmi2 46).
func TestCalculatedParameter(t *testing.T) {
	s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: calculated(t), Inputs: []string{"u"}, Outputs: []string{"x", "q"}})
	must(t, err)
	i := s.Info()
	if !i.Out[1].Discrete || len(i.Step.On[1]) != 0 || i.Step.Assumed[1] || len(i.Init.On[1]) != 0 {
		t.Errorf("%+v, %+v, %+v", i.Out, i.Step, i.Init)
	}
}
