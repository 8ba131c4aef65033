package test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/test/long"
)

// demo is an example system with the solution of named outputs at increasing times.
type demo struct {
	outputs []string
	solve   func(times []float64) ([][]float64, error)
	// exact: the solvers inside the components make no error of their own. Else they are those of Euler, with steps
	// that follow from the macro step.
	exact   bool
	impacts []float64 // around which velocities are not compared: they jump
	stop    float64   // s; 0 = as the system says
}

func fours(x [][4]float64, err error) ([][]float64, error) {
	var out [][]float64
	for i := range x {
		out = append(out, x[i][:])
	}
	return out, err
}

func demos() map[string]demo {
	at := func(f func(t float64) []float64) func([]float64) ([][]float64, error) {
		return func(times []float64) (out [][]float64, err error) {
			for _, t := range times {
				out = append(out, f(t))
			}
			return out, nil
		}
	}
	star := func(s exact.Star) demo {
		names := []string{"left.x", "left.v"}
		if n := len(s.Coupled); n > 1 {
			names = nil
			for i := range n {
				names = append(names, fmt.Sprintf("left%d.x", i+1), fmt.Sprintf("left%d.v", i+1))
			}
		}
		return demo{outputs: append(names, "right.x", "right.v"), solve: s.Solve, stop: map[bool]float64{true: 0.6, false: 0.3}[long.On]}
	}
	twoMass := demo{outputs: []string{"mass1.x", "mass1.v", "mass2.x", "mass2.v"}, exact: true,
		solve: at(func(t float64) []float64 { x := exact.DefaultTwoMass().At(t); return x[:] })}
	car := demo{outputs: []string{"chassis.z_c", "chassis.v_c", "wheel.z_w", "wheel.v_w"},
		solve: func(times []float64) ([][]float64, error) { return fours(exact.LinearQuarterCar().Solve(times)) }}
	corrector := demo{outputs: []string{"one.s", "one.v", "two.F"}, exact: true, solve: at(exact.DefaultHaid().Outputs)}
	return map[string]demo{
		"quarter-car-a": car, "quarter-car-b": car, "two-mass-ff": twoMass, "two-mass-fd": twoMass, "two-mass-dd": twoMass,
		"contact-oscillator": {outputs: []string{"left.x", "left.v", "right.x", "right.v"}, exact: true,
			impacts: []float64{0.01679, 0.08736, 0.15792},
			solve: func(times []float64) ([][]float64, error) {
				return fours(exact.DefaultContactOscillator().Solve(times))
			}},
		"energy-oscillator": star(exact.EnergyOscillator()), "energy-star-3": star(exact.EnergyStar3()), "energy-star-5": star(exact.EnergyStar5()),
		"sqrt-oscillator": star(exact.SqrtOscillator()), "quadratic-oscillator": star(exact.QuadraticOscillator()),
		"pendula": {outputs: []string{"left.x", "left.y", "right.x", "right.y"}, solve: func(times []float64) (out [][]float64, err error) {
			p := exact.DefaultPendula()
			x, err := p.Solve(times)
			for i := range x {
				x1, y1, x2, y2 := p.Tips(x[i])
				out = append(out, []float64{x1, y1, x2, y2})
			}
			return out, err
		}},
		"crane": {outputs: []string{"mechanics.s_c", "mechanics.v_c", "mechanics.theta1", "mechanics.theta2",
			"mechanics.omega1", "mechanics.omega2"}, stop: 4,
			solve: func(times []float64) (out [][]float64, err error) {
				c := exact.DefaultCrane()
				x, err := c.Solve(times)
				for i := range x {
					s, v, _ := c.Cylinder(x[i])
					out = append(out, []float64{s, v, x[i][0], x[i][1], x[i][2], x[i][3]})
				}
				return out, err
			}},
		"corrector-oscillator": corrector, "corrector-oscillator-blackbox": corrector,
	}
}

// trajectory keeps outputs at the communication points.
type trajectory struct {
	names []string
	at    []int
	t     []float64
	y     [][]float64
}

func (c *trajectory) Begin(sys *master.System, _ []master.Port) error {
	for _, name := range c.names {
		k, ok := sys.FindOut(name)
		if !ok {
			return fmt.Errorf("no output is called %s", name)
		}
		c.at = append(c.at, k)
	}
	return nil
}

// mostPoints ends runs whose steps creep; their warnings up to then count.
var mostPoints = map[bool]int{true: 60_000, false: 20_000}[long.On]

func (c *trajectory) Record(p *master.Point) error {
	if len(c.t) >= mostPoints {
		return fmt.Errorf("ended by the test after %d steps", mostPoints)
	}
	row := make([]float64, len(c.at))
	for i, k := range c.at {
		row[i] = p.Y[k]
	}
	c.t, c.y = append(c.t, p.T), append(c.y, row)
	return nil
}

func (c *trajectory) Flush() error            { return nil }
func (c *trajectory) End(master.Result) error { return nil }

// error returns the largest RMS error over time of an output, as part of its range.
func (c *trajectory) error(t *testing.T, d demo) (worst float64) {
	const most = 1500 // points that are compared
	var times, span []float64
	var y [][]float64
	each, last := max(1, len(c.t)/most), c.t[0]
	for i := each; i < len(c.t); i += each {
		near := func(at float64) bool { return math.Abs(c.t[i]-at) < 1e-4 }
		if !slices.ContainsFunc(d.impacts, near) {
			times, y, span = append(times, c.t[i]), append(y, c.y[i]), append(span, c.t[i]-last)
		}
		last = c.t[i]
	}
	want, err := d.solve(times)
	if err != nil {
		t.Fatal(err)
	}
	for k := range c.names {
		lowest, highest, square, total := math.Inf(1), math.Inf(-1), 0.0, 0.0
		for i := range want {
			lowest, highest = min(lowest, want[i][k]), max(highest, want[i][k])
			off := y[i][k] - want[i][k]
			square += span[i] * off * off
			total += span[i]
		}
		if e := math.Sqrt(square/total) / (highest - lowest); !(e <= worst) {
			worst = e
		}
	}
	return worst
}

// presetRun runs a demo with a preset at a tolerance, or at a part of its macro step, and returns the error and all
// messages: warnings, and the reason of a refusal or failure.
func presetRun(t *testing.T, name string, d demo, p *algorithms.Preset, level float64) (e float64, said []string) {
	t.Helper()
	a, err := assemble.Open(system(t, name), simulate.Reading(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	own, err := simulate.AskedBy(a.Asked)
	if err != nil {
		t.Fatal(err)
	}
	params, step, stop := map[string]string{}, a.Step.Value, a.Stop.Value
	for key, value := range own.Params {
		// Those of the paper that the system is of, which had one kind of control.
		if slices.ContainsFunc(p.Params, func(q algorithms.Param) bool { return q.Name == key }) && slices.Contains(estimating, p.Name) {
			params[key] = value
		}
	}
	switch {
	case p.Name == "ecco" || p.Name == "predictor-corrector":
		params[map[string]string{"ecco": "ecco.tolerance", "predictor-corrector": "pc.tolerance"}[p.Name]] = fmt.Sprint(level)
	case slices.Contains(estimating, p.Name):
		params["control.rtol"] = fmt.Sprint(level)
	default:
		step *= level
	}
	if d.stop > 0 {
		stop = d.stop
	}
	with := algorithms.With{}
	if algorithms.UsesEnergy(p.Name) {
		with.Bonds = own.Bonds
	}
	choice, err := algorithms.New(p.Name, params, with)
	if err != nil {
		t.Fatal(err)
	}
	c := &trajectory{names: d.outputs}
	run, err := master.NewRun(a.System, choice.Algorithm, master.Options{Start: a.Start.Value, Stop: stop, Step: step, Workers: 1,
		Recorders: []master.Recorder{c}, Discard: choice.Discard})
	if err != nil {
		return math.NaN(), []string{err.Error()}
	}
	result, err := run.Run(t.Context())
	said = result.Warnings
	if err != nil {
		return math.NaN(), append(said, err.Error())
	}
	return c.error(t, d), said
}

var estimating = []string{"ex-local", "ex-milne", "ex-slocal", "im-milne", "im-slocal", "richardson"}

// Every preset on every demo, at three tolerances or three steps: the error is at most 100 times the tolerance and
// falls at least threefold per decade, or has the expected order in H; else a warning or an error gives the reason.
// Runs of exact components that meet the bound do not warn.
func TestPresets(t *testing.T) {
	all := demos()
	names := []string{"energy-oscillator", "two-mass-fd"}
	if long.On {
		names = nil
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	for _, name := range names {
		for _, p := range algorithms.Presets() {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				t.Parallel()
				d := all[name]
				levels := []float64{1e-3, 1e-4, 1e-5}
				byStep := !slices.Contains(estimating, p.Name) && p.Name != "ecco" && p.Name != "predictor-corrector"
				if byStep {
					levels = []float64{1, 0.5, 0.25}
				}
				var errors [3]float64
				var said []string
				for i, level := range levels {
					var now []string
					errors[i], now = presetRun(t, name, d, &p, level)
					said = append(said, now...)
				}
				// By step: the order of the last halving, or of both, is 1, or 2 of implicit coupling of exact
				// components.
				order := 1.0
				if p.Name == "implicit" && d.exact {
					order = 2
				}
				fall := math.Pow(2, order-0.35)
				met := byStep && errors[2] <= max(errors[1]/fall, errors[0]/(fall*fall))
				if !byStep { // threefold per decade, over both, down to a tenth of the tolerance
					met = errors[2] <= max(errors[0]/9, levels[2]/10)
					for i, e := range errors {
						met = met && e <= 100*levels[i]
					}
				}
				if p.Name == "energy-correction" && !met { // or it improves on explicit coupling
					met = true
					for i, e := range errors {
						plain, _ := presetRun(t, name, d, &algorithms.Presets()[0], levels[i])
						met = met && e <= plain
					}
				}
				t.Logf("%-30s %-22s errors %8.2g %8.2g %8.2g at %g: the bound is met: %t", name, p.Name, errors[0],
					errors[1], errors[2], levels, met)
				for _, text := range said {
					t.Log("  ", text)
				}
				switch {
				case !met && len(said) == 0:
					t.Errorf("errors %.2g at %g, and not a word", errors, levels)
				case met && d.exact && len(said) > 0 && !strings.Contains(name, "blackbox"):
					t.Errorf("the bound is met, and yet: %q", said)
				}
			})
		}
	}
}
