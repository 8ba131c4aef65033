package test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/test/long"
)

// referenceEnergies gives the mean energy in each of 10 s of the system solved as a
// whole.
func referenceEnergies(t testing.TB, model exact.Star) []float64 {
	t.Helper()
	const perSecond = 250
	times := make([]float64, 10*perSecond)
	for i := range times {
		times[i] = float64(i) / perSecond
	}
	x, err := model.Solve(times)
	if err != nil {
		t.Fatal(err)
	}
	e := make([]float64, 10)
	for i := range x {
		e[i/perSecond] += model.Energy(x[i]) / perSecond
	}
	return e
}

// follows holds the mean energies of each second against those of the reference.
func follows(t testing.TB, what string, got, want []float64, within float64) {
	t.Helper()
	worst := 0.0
	var b strings.Builder
	for i := range want {
		r := got[i] / want[i]
		fmt.Fprintf(&b, " %.4f", r)
		worst = max(worst, math.Abs(r-1))
	}
	t.Logf("%s: energy over that of the reference, by second:%s", what, b.String())
	if !(worst <= within) {
		t.Errorf("%s: the energy is off by a part of %.4f, not %g", what, worst, within)
	}
}

// helps holds that the run finds its correction of use at every bond, and warns of
// nothing.
func helps(t testing.TB, o *outcome) {
	t.Helper()
	for name, b := range o.manifest.Bonds {
		if b.Correction != "helps" || b.AddedEnergy == nil || b.CorrectedEnergy == nil {
			t.Errorf("bond %s: correction %q, %v J added, %v J corrected", name, b.Correction, b.AddedEnergy, b.CorrectedEnergy)
		}
	}
	if len(o.manifest.Warnings) > 0 {
		t.Errorf("warnings %q", o.manifest.Warnings)
	}
}

// The correction keeps the energy near that of the system solved as a whole, in each
// of 10 s, where explicit coupling doubles it or nearly so (rodriguez 5, Figs. 20, 23,
// 25–30): within 2 % without damping, within 1 % with it. The stars take the
// paper's limit of a quarter of the force, the root springs its ν.
func TestRodriguezCorrected(t *testing.T) {
	take := long.Sample(3)
	all := oscillators()
	damped := all[0]
	damped.model = exact.EnergyOscillator()
	damped.model.Coupled[0].C, damped.model.Hub.C = 0.2, 0.2
	for _, c := range []struct {
		name   string
		of     oscillator
		set    []string
		args   []string
		within float64
		worse  float64 // factor of the uncorrected energy in the last second, at least
	}{
		{"single rate", all[0], nil, nil, 0.01, 1.9},
		{"R = 10, hold", all[0], nil, []string{"--rate", "right=10"}, 0.01, 1.9},
		{"damped", damped, []string{"--set", "left.c=0.2", "--set", "right.c=0.2"}, nil, 0.01, 1.9},
		{"quadratic dampers", all[4], nil, nil, 0.01, 1.5},
		{"star of 3", all[1], nil, []string{"--param", "energy.limit=0.25"}, 0.02, 1.9},
		{"star of 5", all[2], nil, []string{"--param", "energy.limit=0.25"}, 0.02, 1.9},
		{"square-root springs", all[3], nil, []string{"--param", "energy.nu=0.25"}, 0.01, 1.2},
	} {
		if !take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := system(t, c.of.system)
			want := referenceEnergies(t, c.of.model)
			plain := c.of.energies(t, complete(t, append([]string{path}, c.set...)...))
			if plain[9] < c.worse*want[9] {
				t.Errorf("without correction the energy is %g J, %g as a whole", plain[9], want[9])
			}
			o := complete(t, slices.Concat([]string{path, "--algorithm", "energy-correction"}, c.set, c.args)...)
			follows(t, c.name, c.of.energies(t, o), want, c.within)
			helps(t, o)
		})
	}
}

// In a Gauss–Seidel scheme the coupling of the oscillator adds nothing, and nothing
// is corrected; the run says so.
func testRodriguezInTurn(t *testing.T) {
	t.Parallel()
	s := oscillators()[0]
	o := complete(t, system(t, s.system), "--algorithm", "energy-correction", "--param", "scheme=gauss-seidel")
	follows(t, "gauss-seidel", s.energies(t, o), referenceEnergies(t, s.model), 0.02)
	if len(o.manifest.Warnings) != 1 || !strings.Contains(o.manifest.Warnings[0], "energy.mu is 0 (in a Gauss–Seidel scheme") {
		t.Errorf("warnings %q", o.manifest.Warnings)
	}
	if b := o.manifest.Bonds["spring"]; b.CorrectedEnergy == nil || *b.CorrectedEnergy != 0 {
		t.Errorf("bond %+v", b)
	}
}

// With steps chosen by ECCO the correction leaves less than a third of the drift.
// Steps that are short where the residual is large weigh the motion, so that the mean
// on which μ rests is not that of the motion.
func testRodriguezCorrectedECCO(t *testing.T) {
	s := oscillators()[0]
	args := []string{system(t, s.system), "--algorithm", "ecco", "--param", "ecco.tolerance=1e-3", "--param", "control.h-max=1e-3"}
	plain := s.energies(t, complete(t, args...))
	e := s.energies(t, complete(t, append(args, "--param", "correction=energy")...))
	t.Logf("energy in the last second %.5g J without and %.5g J with correction", plain[9], e[9])
	if !(math.Abs(e[9]-1e4) < math.Abs(plain[9]-1e4)/3) {
		t.Errorf("energy in the last second %g J without and %g J with correction", plain[9], e[9])
	}
}

// With linear extrapolation the residual power of the crane rises a thousandfold in
// a window of steps, which the run warns of; beside it nothing does (rodriguez Figs.
// 35–37: 11.5 and 10 ms). What the correction does there is in TestRodriguezCraneCorrection.
func testRodriguezCraneWarned(t *testing.T) {
	t.Parallel()
	linear := func(H float64, steps int, args ...string) *outcome {
		return complete(t, append([]string{system(t, "crane"), "--step-size", fmt.Sprint(H), "--param", "order=1",
			"--set", "hydraulics.micro_steps=1", "--rate", fmt.Sprint("hydraulics=", steps)}, args...)...)
	}
	for _, c := range []struct {
		H     float64
		steps int
		sways bool
	}{{1e-2, 40, false}, {1.1e-2, 110, false}, {1.14e-2, 114, true}, {1.15e-2, 115, true}} {
		o := linear(c.H, c.steps, "--monitor-energy")
		t.Logf("H = %g s: mean and largest residual power %.3g and %.3g W, warnings %q", c.H,
			o.manifest.Bonds["cylinder"].MeanAbsResidualPower, o.manifest.Bonds["cylinder"].PeakResidualPower, o.manifest.Warnings)
		if !c.sways {
			if len(o.manifest.Warnings) > 0 {
				t.Errorf("H = %g s: warnings %q", c.H, o.manifest.Warnings)
			}
			continue
		}
		var points int
		var at float64
		if len(o.manifest.Warnings) != 1 {
			t.Errorf("H = %g s: warnings %q", c.H, o.manifest.Warnings)
		} else if _, err := fmt.Sscanf(o.manifest.Warnings[0], "bond cylinder: the residual power jumps at %d communication points, first at t = %g s", &points, &at); err != nil || at < 2 || at > 5 {
			t.Errorf("H = %g s: warning %q: %v", c.H, o.manifest.Warnings[0], err)
		}
	}
}

// The pendula keep their energy within 2 % with the paper's ν = 1 (Fig. 33), where
// explicit coupling adds a fifth.
func testRodriguezPendulaCorrected(t *testing.T) {
	p := exact.DefaultPendula()
	want := slices.Repeat([]float64{p.Energy([]float64{p.Theta1, 0, p.Theta2, 0})}, 10)
	o := complete(t, system(t, "pendula"), "--algorithm", "energy-correction", "--param", "energy.nu=1")
	follows(t, "pendula", pendulaEnergies(t, o, p), want, 0.02)
	helps(t, o)
}

// pendulaEnergies gives the mean energy in each second.
func pendulaEnergies(t testing.TB, o *outcome, p exact.Pendula) []float64 {
	t.Helper()
	var columns [][]float64
	for _, n := range []string{"left.x", "left.y", "right.x", "right.y", "left.v_x", "left.v_y", "right.v_x", "right.v_y"} {
		columns = append(columns, o.column(t, n))
	}
	return meansOf(t, o, 10, func(row int) float64 {
		c := func(i int) float64 { return columns[i][row] }
		stretch := math.Hypot(c(2)-c(0), c(3)-c(1)) - p.Lc
		return p.M1*((c(4)*c(4)+c(5)*c(5))/2+p.G*(c(1)+p.L1)) + p.M2*((c(6)*c(6)+c(7)*c(7))/2+p.G*(c(3)+p.L2)) + p.Kc*stretch*stretch/2
	})
}

// The correction is not universal: it takes the motions of the two sides for
// uncorrelated. Where they are not it adds energy, takes out too much or too little,
// and the run says so, in a warning and in the manifest.
func testRodriguezHarm(t *testing.T) {
	take := long.Sample(3)
	oscillator := oscillators()[0]
	pendula := func(theta1, theta2, kc float64) (exact.Pendula, []string) {
		p := exact.DefaultPendula()
		p.M1, p.Theta1, p.Theta2, p.Kc = 1, theta1, theta2, kc
		x1, y1, x2, y2 := p.Tips([]float64{theta1, 0, theta2, 0})
		p.Lc = math.Hypot(x2-x1, y2-y1)
		return p, []string{"--set", "left.m=1", "--set", fmt.Sprint("left.theta0=", theta1), "--set", fmt.Sprint("right.theta0=", theta2),
			"--set", fmt.Sprint("left.k_c=", kc), "--set", fmt.Sprint("left.l_c=", p.Lc)}
	}
	type energies func(t testing.TB, o *outcome) []float64
	together, togetherArgs := pendula(math.Pi/4, math.Pi/4, 100)
	against, againstArgs := pendula(0.2, -0.2, 10)
	for _, c := range []struct {
		name, system string
		args         []string
		energies     energies
	}{
		{"initial velocities 100 and 0", oscillator.system, []string{"--set", "right.v0=0"}, oscillator.energies},
		{"k_c = 1000", oscillator.system, []string{"--set", "left.k_c=1000"}, func(t testing.TB, o *outcome) []float64 {
			stiff := oscillator
			stiff.model = exact.EnergyOscillator()
			stiff.model.Coupled[0].Kc = 1000
			return stiff.energies(t, o)
		}},
		{"equal sides", oscillator.system, []string{"--set", "left.k=1000"}, func(t testing.TB, o *outcome) []float64 {
			equal := oscillator
			equal.model = exact.EnergyOscillator()
			equal.model.Coupled[0].K = 1000
			return equal.energies(t, o)
		}},
		{"equal pendula together", "pendula", togetherArgs, func(t testing.TB, o *outcome) []float64 { return pendulaEnergies(t, o, together) }},
		{"equal pendula against each other", "pendula", againstArgs, func(t testing.TB, o *outcome) []float64 { return pendulaEnergies(t, o, against) }},
	} {
		if !take() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := system(t, c.system)
			plain := c.energies(t, complete(t, append([]string{path}, c.args...)...))
			o := complete(t, slices.Concat([]string{path, "--algorithm", "energy-correction"}, c.args)...)
			e := c.energies(t, o)
			b := o.manifest.Bonds["spring"]
			if b.AddedEnergy == nil || b.CorrectedEnergy == nil {
				t.Fatalf("bond %+v", b)
			}
			t.Logf("energy in the first and the last second %.4g and %.4g J, uncorrected %.4g and %.4g J; %.3g J added, %.3g J corrected, so it says",
				e[0], e[9], plain[0], plain[9], *b.AddedEnergy, *b.CorrectedEnergy)
			if b.Correction != "harms" {
				t.Errorf("the manifest says that the correction %s", b.Correction)
			}
			if len(o.manifest.Warnings) != 1 || !strings.Contains(o.manifest.Warnings[0], "bond spring: the energy correction does not do what it should") {
				t.Errorf("warnings %q", o.manifest.Warnings)
			}
			// What is said to be left over or taken in excess is what the energy shows:
			// it is constant as a whole.
			if left, drift := *b.AddedEnergy-*b.CorrectedEnergy, e[9]-e[0]; left*drift <= 0 || math.Abs(drift/left) < 0.5 || math.Abs(drift/left) > 1.5 {
				t.Errorf("the energy drifts by %g J, and %g J are said to be left", drift, left)
			}
		})
	}
}

// The formulas hold where both sides step more often than they meet: the energy stays
// within one percent, and the run says which μ it took.
func testSharesOfTwoRates(t *testing.T) {
	t.Parallel()
	s := oscillators()[0]
	for _, c := range []struct {
		left, right int
		hold, shape float64
	}{{10, 10, 0.725, 0.05}, {3, 5, 0.7, 0.5 / 3}, {2, 2, 0.625, 0.25}} {
		for order, want := range []float64{c.hold, c.shape} {
			o := complete(t, system(t, s.system), "--algorithm", "energy-correction", "--param", fmt.Sprint("order=", order),
				"--rate", fmt.Sprint("left=", c.left), "--rate", fmt.Sprint("right=", c.right))
			b := o.manifest.Bonds["spring"]
			if e := s.energies(t, o)[9] / 1e4; math.Abs(e-1) > 0.01 || b.Mu == nil || math.Abs(*b.Mu-want) > 1e-12 || b.Correction != "helps" {
				t.Errorf("left=%d, right=%d, order %d: energy %.4f of that at the start, %+v", c.left, c.right, order, e, b)
			}
		}
	}
}

// One step over several macro steps is the same as several a macro step: the energy at
// the bond, the correction and what becomes of the motion are equal.
func testEnergyOfSlowSides(t *testing.T) {
	t.Parallel()
	path := system(t, "energy-oscillator")
	for _, c := range []struct{ fast, slow []string }{
		{[]string{"--step-size", "1e-3", "--rate", "right=10"}, []string{"--step-size", "1e-4", "--rate", "left=1/10"}},
		{[]string{"--step-size", "1e-3"}, []string{"--step-size", "5e-4", "--rate", "left=1/2", "--rate", "right=1/2"}},
	} {
		for _, how := range [][]string{{"--monitor-energy"}, {"--algorithm", "energy-correction"}, {"--algorithm", "energy-correction", "--param", "order=1", "--param", "energy.nu=0.5"}} {
			args := append([]string{path, "--stop-time", "3", "--output-interval", "1e-3"}, how...)
			fast, slow := complete(t, append(slices.Clip(args), c.fast...)...), complete(t, append(slices.Clip(args), c.slow...)...)
			a, b := fast.manifest.Bonds["spring"], slow.manifest.Bonds["spring"]
			for _, v := range [][2]float64{{a.ResidualEnergy, b.ResidualEnergy}, {a.HeldResidualEnergy, b.HeldResidualEnergy}, {a.MeanAbsResidualPower, b.MeanAbsResidualPower}, {a.PeakResidualPower, b.PeakResidualPower}} {
				if math.Abs(v[0]-v[1]) > 1e-5*math.Abs(v[0]) {
					t.Errorf("%v, %v: %+v and %+v", c.slow, how, a, b)
					break
				}
			}
			if a.CorrectedEnergy != nil && math.Abs(*a.CorrectedEnergy-*b.CorrectedEnergy) > 1e-5*math.Abs(*a.CorrectedEnergy) {
				t.Errorf("%v, %v: %g J and %g J were corrected", c.slow, how, *a.CorrectedEnergy, *b.CorrectedEnergy)
			}
			if d := worst(t, fast, slow, "left.x"); d > 1e-5 {
				t.Errorf("%v, %v: displacements differ by %g", c.slow, how, d)
			}
		}
	}
	o := run(t, path, "--monitor-energy", "--rate", "left=1/2", "--rate", "right=1/3")
	if o.code != 2 || !strings.Contains(o.output, "left takes one step over 2 macro steps and right over 3") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
}

// Energies beyond all numbers leave a manifest, which says so.
func TestEnergyBeyondNumbers(t *testing.T) {
	o := complete(t, system(t, "quarter-car-b"), "--step-size", "0.02", "--stop-time", "40", "--monitor-energy")
	if w := o.warnings(); o.manifest.Status != "complete" || !strings.Contains(w, "bond axle is left out of the manifest: a number in it is not finite") {
		t.Errorf("%s, %q", o.manifest.Status, w)
	}
}

// Bounds of the step that are given move the others, and a tolerance that they stand in
// the way of is told of.
func TestStepBounds(t *testing.T) {
	o := complete(t, system(t, "energy-oscillator"), "--algorithm", "ecco", "--param", "control.h-min=0.02", "--stop-time", "1")
	if o.manifest.Steps.Accepted != 50 || !strings.Contains(o.warnings(), "in 50 of 50 macro steps the tolerance is not met") {
		t.Errorf("%d steps, %q", o.manifest.Steps.Accepted, o.manifest.Warnings)
	}
}
