package fmuslave_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/internal/slavetest"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/test/probe"
)

// directional returns the arguments of the calls for derivatives in a trace, and
// empties it.
func directional(trace *bytes.Buffer) []string {
	var out []string
	for line := range strings.Lines(trace.String()) {
		if _, call, ok := strings.Cut(line, "fmi2GetDirectionalDerivative unknown="); ok {
			unknown, known, _ := strings.Cut(call, " known=")
			out = append(out, unknown+" by "+known[:strings.Index(known, "]")+1])
		}
	}
	trace.Reset()
	return out
}

// The derivatives are A, B, C and D, in the order of the ports, in one call, and
// allocate nothing.
func TestLinearize(t *testing.T) {
	const nx = 8
	var starts []fmuslave.Value
	value := func(matrix string, i, j int) float64 {
		return float64(matrix[0])/100 + float64(i)*1.5 - float64(j)*0.25
	}
	for _, m := range []struct {
		name       string
		rows, cols int
	}{{"A", nx, nx}, {"B", nx, 4}, {"C", 4, nx}, {"D", 4, 4}} {
		for i := 1; i <= m.rows; i++ {
			for j := 1; j <= m.cols; j++ {
				starts = append(starts, fmuslave.Value{Variable: fmt.Sprintf("%s[%d,%d]", m.name, i, j), Real: value(m.name, i, j)})
			}
		}
	}
	var trace bytes.Buffer
	s := started(t, fmuslave.Config{
		Name: "c", FMU: example(t, "linear"), Inputs: []string{"u[4]", "u[2]"}, Outputs: []string{"y[3]", "y[1]"}, Starts: starts,
		Monitor: []fmuslave.Monitored{{Variable: "der(x[7])"}, {Variable: "x[5]"}},
		Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)},
	})
	if len(s.States()) != nx || s.States()[4] != (master.StateInfo{Name: "x[5]", Derivative: "der(x[5])"}) {
		t.Errorf("states %v", s.States())
	}
	dx, du := []float64{1, -2, 3, -4, 5, -6, 7, -8}, []float64{10, -20}
	inputs := []int{4, 2}
	row := func(x, u string, i int, dx, du []float64) (sum float64) {
		for j := range dx {
			sum += value(x, i, j+1) * dx[j]
		}
		for j := range du {
			sum += value(u, i, inputs[j]) * du[j]
		}
		return sum
	}
	near := func(what string, got, want []float64) {
		t.Helper()
		for i := range want {
			if math.Abs(got[i]-want[i]) > 1e-12*max(1, math.Abs(want[i])) {
				t.Errorf("%s: %v, want %v", what, got, want)
				return
			}
		}
	}
	trace.Reset()
	for _, c := range []struct {
		what   string
		dx, du []float64
	}{{"both", dx, du}, {"states", dx, nil}, {"inputs", nil, du}, {"none", nil, nil}} {
		var dots []float64
		for i := range nx {
			dots = append(dots, row("A", "B", i+1, c.dx, c.du))
		}
		x5 := 0.0
		if c.dx != nil {
			x5 = c.dx[4]
		}
		ys := []float64{row("C", "D", 3, c.dx, c.du), row("C", "D", 1, c.dx, c.du), dots[6], x5}
		dxdot, dy := make([]float64, nx), []float64{7, 7, 7, 7}
		must(t, s.Linearize(c.dx, c.du, dxdot, dy))
		near(c.what+", derivatives", dxdot, dots)
		near(c.what+", outputs", dy, ys)
		clear(dxdot)
		must(t, s.Linearize(c.dx, c.du, dxdot, nil))
		near(c.what+", derivatives alone", dxdot, dots)
		clear(dy)
		must(t, s.Linearize(c.dx, c.du, nil, dy))
		near(c.what+", outputs alone", dy, ys)
		must(t, s.Linearize(c.dx, c.du, nil, nil))
	}
	dy := make([]float64, 4)
	must(t, s.DirectionalDerivative(du, dy))
	near("DirectionalDerivative", dy, []float64{row("C", "D", 3, nil, du), row("C", "D", 1, nil, du), row("A", "B", 7, nil, du), 0})

	// u: 0…, x: 4…, der(x): 12…, y: 20…; der(x[7]) is derivative and output.
	const dots, shared, outs = "12 13 14 15 16 17 19", "18", "22 20"
	var want []string
	want = slices.Repeat([]string{fmt.Sprintf("[%s %s %s] by [3 1 4 5 6 7 8 9 10 11]", dots, shared, outs)}, 2) // tried first
	for _, known := range []string{"3 1 4 5 6 7 8 9 10 11", "4 5 6 7 8 9 10 11", "3 1"} {
		for _, unknown := range []string{dots + " " + shared + " " + outs, dots + " " + shared, shared + " " + outs} {
			want = append(want, fmt.Sprintf("[%s] by [%s]", unknown, known))
		}
	}
	want = append(want, "[18 22 20] by [3 1]")
	// The first that needs no state is tried, too.
	want = append(want, "[18 22 20] by [3 1]", "[18 22 20] by [3 1]")
	if got := directional(&trace); !slices.Equal(got, want) {
		t.Errorf("calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLinearizeDoesNotAllocate(t *testing.T) {
	s := started(t, fmuslave.Config{Name: "c", FMU: example(t, "quarter_wheel_a"), Inputs: []string{"v_c"}, Outputs: []string{"z_w", "F_c"}})
	dx, du, dxdot, dy := []float64{1, 2, 3}, []float64{4}, make([]float64, 3), make([]float64, 2)
	ask := func() { must(t, s.Linearize(dx, du, dxdot, dy)) }
	ask()
	if n := testing.AllocsPerRun(100, ask); n != 0 {
		t.Errorf("%g allocations", n)
	}
	// Nor does what takes an FMU back that is displaced by it.
	s = started(t, fmuslave.Config{Name: "c", FMU: displacing(t, "displacing", probe.Everything), Inputs: []string{"u"}, Outputs: []string{"x", "y"}})
	now := 0.0
	dx, dxdot = dx[:1], dxdot[:1]
	askAndStep := func() {
		ask()
		_, err := s.Step(t.Context(), now, 1)
		must(t, err)
		now++
	}
	askAndStep()
	if n := testing.AllocsPerRun(100, askAndStep); n != 0 {
		t.Errorf("%g allocations with a restore", n)
	}
}

// Nothing is asked for that is known: outputs that are states.
func TestLinearizeStates(t *testing.T) {
	var trace bytes.Buffer
	s := started(t, fmuslave.Config{
		Name: "c", FMU: example(t, "quarter_chassis_a"), Inputs: []string{"F_c"}, Outputs: []string{"v_c", "z_c"},
		Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)},
	})
	if want := []master.StateInfo{{Name: "z_c", Derivative: "v_c"}, {Name: "v_c", Derivative: "der(v_c)"}}; !slices.Equal(s.States(), want) {
		t.Errorf("states %v, want %v", s.States(), want)
	}
	trace.Reset()
	dxdot, dy := make([]float64, 2), make([]float64, 2)
	must(t, s.Linearize([]float64{3, 5}, []float64{800}, nil, dy))
	if !slices.Equal(dy, []float64{5, 3}) || trace.Len() > 0 {
		t.Errorf("dy = %v with the calls %s", dy, &trace)
	}
	must(t, s.Linearize([]float64{3, 5}, []float64{800}, dxdot, dy))
	if !slices.Equal(dxdot, []float64{5, -2}) {
		t.Errorf("dxdot = %v, want v_c and -F_c/m_c", dxdot)
	}
	if got := directional(&trace); !slices.Equal(got, slices.Repeat([]string{"[3] by [0 1 2]"}, 3)) { // two of them try it
		t.Errorf("calls %v", got)
	}
}

// An FMU that does not take its states is found out on an instance of its own:
// the one of the run goes on, and is asked for the rest.
func TestStatesRefused(t *testing.T) {
	// What der(v_c) is said to differentiate is a parameter.
	f := slavetest.Redescribed(t, "quarter_chassis_a", "refuses_states", `<Real unit="m/s2" derivative="3"/>`, `<Real unit="m/s2" derivative="5"/>`)
	var trace bytes.Buffer
	var log []string
	s := started(t, fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"F_c"}, Outputs: []string{"z_c", "v_c"},
		Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace), Log: func(m fmi.LogMessage) {
			if m.Status > fmi.StatusOK {
				log = append(log, m.Text)
			}
		}}})
	dxdot, dy := make([]float64, 2), make([]float64, 2)
	for range 2 {
		err := s.Linearize([]float64{1, 1}, nil, dxdot, dy)
		var refused *fmi.StatusError
		if !errors.Is(err, master.ErrCapability) || !errors.As(err, &refused) || refused.Status != fmi.StatusErr ||
			!strings.Contains(err.Error(), "declares providesDirectionalDerivative but does not provide those of its outputs and the derivatives of its states with respect to its inputs and states") ||
			!strings.Contains(err.Error(), "noDirectionalDerivatives") {
			t.Errorf("%v", err)
		}
	}
	if n := strings.Count(trace.String(), "fmi2Instantiate"); n != 2 {
		t.Errorf("%d instances, want two", n)
	}
	must(t, s.Linearize(nil, []float64{800}, nil, dy))
	if !slices.Equal(dy, []float64{0, 0}) {
		t.Errorf("dy = %v", dy)
	}
	if _, err := s.Step(t.Context(), 0, 0.1); err != nil {
		t.Error(err)
	}
	if len(log) > 0 {
		t.Errorf("the user is told of the try: %q", log)
	}
}

// What goes wrong later than the trial. After an Error only a restore helps; there is one if the
// state was saved because the trial could not tell whether that is needed.
func TestDerivativeFaults(t *testing.T) {
	for k, c := range []struct {
		fmu, status string
		at          float64 // s; the trial ends at 0.6 s
		goesOn      bool
	}{
		{"misbehave", "Discard", 5.5, true}, {"misbehave", "Error", 5.5, false}, {"misbehave", "Error", 0.25, true},
		{"misbehave", "Fatal", 5.5, false}, {"misbehave_once", "Error", 5.5, true},
	} {
		// Each has an FMU of its own: one lives once, and after a Fatal nothing is called any more.
		f := slavetest.Redescribed(t, c.fmu, fmt.Sprint(c.fmu, "_slope_", k), "</ModelStructure>", fmt.Sprintf("</ModelStructure><!-- %d -->", k))
		item := func(variable, name string) fmuslave.Value {
			v, _ := f.Description.Variable(variable)
			for _, i := range f.Description.Enumeration(v.DeclaredType) {
				if i.Name == name {
					return fmuslave.Value{Variable: variable, Integer: int64(i.Value)}
				}
			}
			t.Fatalf("%s has no item %s", variable, name)
			panic("")
		}
		var trace bytes.Buffer
		s := started(t, fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u"}, Outputs: []string{"x", "w"},
			Starts:  []fmuslave.Value{item("fault", c.status), item("during", "GetDirectionalDerivative"), {Variable: "at", Real: c.at}},
			Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)}})
		dxdot, seed := make([]float64, 2), []float64{3, 5}
		step := func(t0, H float64) error {
			_, err := s.Step(t.Context(), t0, H)
			return err
		}
		must(t, step(0, 5))
		if c.at > 5 {
			must(t, s.Linearize(seed, nil, dxdot, nil))
			if !slices.Equal(dxdot, []float64{-3, 3}) {
				t.Errorf("%+v: dxdot = %v, want -x and x", c, dxdot)
			}
		}
		must(t, step(5, 1))
		err := s.Linearize(seed, nil, dxdot, nil)
		var refused *fmi.StatusError
		if !errors.As(err, &refused) || !strings.HasPrefix(c.status, refused.Status.String()) || errors.Is(err, master.ErrCapability) != c.goesOn {
			t.Errorf("%+v: %v", c, err)
		}
		if err := step(6, 1); (err == nil) != c.goesOn {
			t.Errorf("%+v: the next step: %v", c, err)
		}
		if once := c.fmu == "misbehave_once"; once != (strings.Count(trace.String(), "fmi2Instantiate") == 1) {
			t.Errorf("%+v: instances in\n%s", c, &trace)
		}
		must(t, s.Close())
	}
}

// displacing is a probe with the state x whose derivatives leave x and the inputs
// displaced.
func displacing(t *testing.T, name, capabilities string) *fmi.FMU {
	t.Helper()
	return slavetest.Packed(t, name, slavetest.Changed(t, probe.Description(name, capabilities, ""),
		`name="y" valueReference="3" causality="output"><Real/>`, `name="y" valueReference="3" causality="output"><Real derivative="3"/>`,
		`<InitialUnknowns>`, `<Derivatives><Unknown index="4" dependencies="1"/></Derivatives><InitialUnknowns>`), "DISPLACE 1e-5")
}

// An FMU that asking displaces goes on as if it had not been asked, whatever is
// done next, at the cost of one save and one restore for all that was asked.
func TestDisplaced(t *testing.T) {
	f := displacing(t, "displacing", probe.Everything)
	const steps, H = 8, 0.25
	u := []float64{3}
	run := func(ask bool) (ys [][]float64, trace bytes.Buffer) {
		s := started(t, fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u"}, Outputs: []string{"x", "y"}, Watch: []string{"w"},
			Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)}})
		exchange := master.Exchange{In: u, Out: make([]float64, 2)}
		batch, err := s.NewBatch([]master.Subsystem{s}, []master.Exchange{exchange})
		must(t, err)
		trial := trace.Len()
		asking := func() {
			if !ask {
				return
			}
			dxdot, dy := make([]float64, 1), make([]float64, 2)
			for range 3 {
				must(t, s.Linearize([]float64{1}, []float64{1}, dxdot, dy))
				must(t, s.DirectionalDerivative([]float64{1}, dy))
			}
			if !slices.Equal(dy, []float64{0, 2}) {
				t.Errorf("dy = %v", dy)
			}
		}
		asking()
		trace.Truncate(trial) // without the tries
		var state master.State
		for i := range steps {
			at := float64(i) * H
			must(t, s.SetInputs(u))
			asking()
			switch i {
			case 1:
				_, _, err := batch.Step(t.Context(), at, H/2, false)
				must(t, err)
				asking()
				_, err = s.Step(t.Context(), at+H/2, H/2)
				must(t, err)
			case 2, 3:
				_, _, err := batch.Step(t.Context(), at, H, true)
				must(t, err)
			case 4, 5: // back, and its outputs are read before or after
				var err error
				state, err = s.SaveState(state)
				must(t, err)
				_, err = s.Step(t.Context(), at, H)
				must(t, err)
				asking()
				must(t, s.RestoreState(state))
				if i == 4 {
					asking()
				}
				ys = append(ys, outputs(t, s))
				asking()
				_, err = s.Step(t.Context(), at, H)
				must(t, err)
			default:
				_, err := s.Step(t.Context(), at, H)
				must(t, err)
			}
			asking()
			w := master.NewValues(s.Info().Watch)
			must(t, s.Watched(&w))
			ys = append(ys, append(outputs(t, s), w.Real...))
		}
		return ys, trace
	}
	plain, _ := run(false)
	asked, trace := run(true)
	if !reflect.DeepEqual(plain, asked) {
		t.Errorf("asked: %v\nwant %v", asked, plain)
	}
	// By inputs alone it does no harm but to what is read before they are set again.
	s := started(t, fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u"}, Outputs: []string{"x", "y"}})
	dy := make([]float64, 2)
	state, err := s.SaveState(nil)
	must(t, err)
	for range 3 {
		must(t, s.RestoreState(state))
		must(t, s.DirectionalDerivative([]float64{1}, dy))
		if y := outputs(t, s); y[1] != 1 {
			t.Errorf("y = %g, want 1", y[1])
		}
	}
	// A save for each point: one at the start, 1 + 1 in each step, one more in the
	// steps with a substep and with attempts that are asked for again.
	saves, asks := strings.Count(trace.String(), "fmi2GetFMUstate"), strings.Count(trace.String(), "fmi2GetDirectionalDerivative")
	if saves >= asks/5 || asks < 6*2*steps {
		t.Errorf("%d saves for %d calls", saves, asks)
	}
}

// Without rollback such an FMU is not asked.
func TestDisplacedWithoutRollback(t *testing.T) {
	f := displacing(t, "displacing_plain", `canHandleVariableCommunicationStepSize="true" providesDirectionalDerivative="true"`)
	s := started(t, fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u"}, Outputs: []string{"x", "y"}})
	for range 2 {
		err := s.Linearize([]float64{1}, nil, []float64{0}, nil)
		if !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "changes the state of the FMU, and a rollback does not restore it; with the quirk noDirectionalDerivatives") {
			t.Errorf("%v", err)
		}
	}
	_, err := s.Step(t.Context(), 0, 1)
	must(t, err)
	if y := outputs(t, s); y[0] != 0.5 {
		t.Errorf("x = %g, want 0.5", y[0])
	}
	// Its inputs are set again with each step: to ask by them alone does no harm.
	dy := make([]float64, 2)
	must(t, s.DirectionalDerivative([]float64{1}, dy))
	if dy[1] != 2 {
		t.Errorf("dy = %v", dy)
	}
}

// Where there are no derivatives by states, and when.
func TestNoLinearization(t *testing.T) {
	// No FMU with the flag.
	for _, c := range []fmuslave.Config{
		{Name: "c", FMU: example(t, "blackbox"), Inputs: []string{"u[1]"}, Outputs: []string{"y[1]"}},
		{Name: "c", FMU: example(t, "linear"), Inputs: []string{"u[1]"}, Outputs: []string{"y[1]"}, Quirks: fmuslave.NoDirectionalDerivatives},
	} {
		s := started(t, c)
		if err := s.Linearize(nil, []float64{1}, nil, []float64{0}); len(s.States()) > 0 || !errors.Is(err, master.ErrCapability) {
			t.Errorf("states %v, error %v", s.States(), err)
		}
	}
	// Of an FMU that lists no derivatives the outputs still follow the inputs, and
	// what may not be asked for has no slope.
	s := newSlave(t, fmuslave.Config{Name: "c", FMU: probeFMU(t, probe.Everything), Inputs: []string{"u"}, Outputs: []string{"x", "y"},
		Monitor: []fmuslave.Monitored{{Variable: "w"}}})
	must(t, s.EnterInit(t.Context(), master.Experiment{}))
	must(t, s.EvalInit())
	du, dy := []float64{3}, make([]float64, 3)
	if err := s.Linearize(nil, du, nil, dy); !errors.Is(err, master.ErrCapability) || !strings.Contains(err.Error(), "initialisation") {
		t.Errorf("in initialisation mode: %v", err)
	}
	for _, mode := range []string{"initialisation", "stepping"} {
		clear(dy)
		if mode == "initialisation" {
			must(t, s.InitialSlopes(du, dy))
		} else {
			must(t, s.DirectionalDerivative(du, dy))
		}
		if dy[0] != 0 || dy[1] != 6 || !math.IsNaN(dy[2]) {
			t.Errorf("%s: dy = %v, want 0, 6 and NaN", mode, dy)
		}
		if mode == "initialisation" {
			must(t, s.ExitInit())
		}
	}
	clear(dy)
	must(t, s.Linearize(nil, du, nil, dy))
	if len(s.States()) != 0 || dy[1] != 6 {
		t.Errorf("states %v, dy = %v", s.States(), dy)
	}
}

// What is monitored is read with the outputs, in the same call and never before
// the initialisation is over; it is not connected, and recorded only where that
// is asked for.
func TestMonitor(t *testing.T) {
	var trace bytes.Buffer
	pair := func(monitor ...fmuslave.Monitored) []master.Subsystem {
		f := probeFMU(t, probe.Everything)
		return []master.Subsystem{
			newSlave(t, fmuslave.Config{Name: "c0", FMU: f, Inputs: []string{"u"}, Outputs: []string{"y"}, Watch: []string{"w", "count"}, Monitor: monitor,
				Options: fmi.InstanceOptions{Trace: fmi.NewTrace(&trace)}}),
			newSlave(t, fmuslave.Config{Name: "c1", FMU: f, Inputs: []string{"u"}, Monitor: monitor}),
		}
	}
	monitored := []fmuslave.Monitored{{Variable: "w"}, {Variable: "x", Level: master.Position}, {Variable: "y"}}
	var tables []string
	for _, list := range [][]fmuslave.Monitored{nil, monitored} {
		sys, err := master.NewSystem(pair(list...), []master.Connection{{From: at("c0", "y"), To: at("c1", "u")}})
		must(t, err)
		file := filepath.Join(t.TempDir(), "r.csv")
		memory := &mastertest.Memory{}
		r, err := master.NewRun(sys, algorithm(t, "explicit"), master.Options{Stop: 1, Step: 0.25, Recorders: []master.Recorder{record.NewTable(file, record.Options{}), memory}})
		must(t, err)
		trace.Reset()
		_, err = r.Run(t.Context())
		must(t, err)
		table, err := os.ReadFile(file)
		must(t, err)
		tables = append(tables, string(table))
		if list == nil {
			continue
		}
		if got, want := sys.Infos[0].Out, []master.Port{{Name: "y"}, {Name: "w", Internal: true}, {Name: "x", Unit: "km", Nominal: 100, Level: master.Position, Internal: true}}; !reflect.DeepEqual(got, want) {
			t.Errorf("ports %+v, want %+v", got, want)
		}
		// u = 0.5 throughout: x in km, y = 2 u, w = 10 x. c1 gets u = 1.
		if got, want := memory.Y, [][]float64{
			{1, 0, 0, 0, 0, 1}, {1, 1.25, 0.125, 2.5, 0.25, 2}, {1, 2.5, 0.25, 5, 0.5, 2}, {1, 3.75, 0.375, 7.5, 0.75, 2}, {1, 5, 0.5, 10, 1, 2},
		}; !reflect.DeepEqual(got[1:], want[1:]) || !slices.Equal(got[0][:5], want[0][:5]) {
			t.Errorf("outputs %v, want %v", got, want)
		}
		// y, w and x, then w again as a watched variable.
		if n := strings.Count(trace.String(), "fmi2GetReal vr=[3 4 2 4]"); n != 5 {
			t.Errorf("the Reals are read %d times, want at 5 points:\n%s", n, &trace)
		}
	}
	if tables[0] != tables[1] || !strings.HasPrefix(tables[0], "time,c0.y,c0.w,c0.count,c1.u\n") {
		t.Errorf("recorded without:\n%s\nand with:\n%s", tables[0], tables[1])
	}
	if _, err := master.NewSystem(pair(monitored...), []master.Connection{{From: at("c0", "x"), To: at("c1", "u")}}); err == nil || !strings.Contains(err.Error(), "c0.x is not an output") {
		t.Errorf("%v", err)
	}
	for variable, want := range map[string]string{
		"none": `c: the FMU has no variable "none"`, "u": `c: variable "u" cannot be monitored: its causality is input`, "mode": "its type is Enumeration",
		"p": "its causality is parameter", "echo_ud": "its variability is discrete", "time": "its causality is independent",
	} {
		if _, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: probeFMU(t, ""), Monitor: []fmuslave.Monitored{{Variable: variable}}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", variable, err, want)
		}
	}
}
