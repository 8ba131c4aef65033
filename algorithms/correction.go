package algorithms

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// Energy configures the energy correction.
type Energy struct {
	Mu    float64 // spurious share μ of the residual power; NaN = from feedthrough and rates
	Nu    float64 // weight ν of the energy that earlier corrections did not remove, 0…1
	Limit float64 // largest magnitude of the correction relative to that of the action; 0 = 1
	// LimitAbsolute also bounds the correction in the unit of the action (rodriguez 5: "or 100 N").
	// Variable is the effort of a bond. Nil = no bound.
	LimitAbsolute []Tolerance
}

const defaultCorrectionLimit = 1

// energyCorrection removes the energy that the coupling added in one macro step by an additional
// action in the next (rodriguez 3.2):
//
//	ς_{k+1} = μ δE_{k+1}                               (13)
//	f_corr  = −(ς_{k+1} + ν 𝒰_k) / (v_{k+1} H)         (14), (17)
//	U_{k+1} = ς_{k+1} + f_corr v_{k+2} H,  𝒰 = Σ U     (15), (16)
//
// δE is computed for held inputs and actions without correction (rodriguez 3.1). The action is
// the effort of the bond; f_corr is added to it and held over the step. For a vector, f_corr is
// parallel to v. Bonds with the same flow, as in a star, act on one point: the sums of their
// actions and of their corrections are one force each (rodriguez 5.1). The magnitude of the
// correction is limited relative to that of the action and absolutely. It is 0 if v is 0.
type energyCorrection struct {
	config Energy
	energy *energyMonitor
	inTurn bool // Gauss–Seidel
	in     *input.Approximation
	of     []correctedBond
	points []actedPoint
}

// actedPoint is a point at which actions correct together.
type actedPoint struct {
	bonds           []int     // with the same flow, which meet at the same communication points
	size            []float64 // by component: its weight in magnitudes
	action, correct []float64 // by component: scratch, in units of the first bond
}

// correctedBond is the correction at a bond.
type correctedBond struct {
	mu       float64   // μ
	why      string    // the reason for this μ
	surplus  float64   // J, ς + ν 𝒰, to be removed in the next step
	intended float64   // J, ς of the last step
	applied  []float64 // by pair: f_corr of the current step, in the unit of the input
	most     []float64 // by pair: its absolute limit
	H        float64   // s, length of the current step, or time until the sides of the bond meet
	left     float64   // J, 𝒰
	judge    correctionJudge
}

// check refuses a correction without bonds and limits of variables that are not actions.
func (c *energyCorrection) check(sys *master.System) error {
	if len(c.energy.declared) == 0 {
		return errors.New("the energy correction acts at power bonds, but none is declared: " + declareBonds)
	}
	var actions []string
	for _, b := range c.energy.bonds {
		for _, p := range b.pairs {
			actions = append(actions, sys.OutName(p.effort))
		}
	}
	for _, l := range c.config.LimitAbsolute {
		if l.Variable != "" && !slices.Contains(actions, l.Variable) {
			return fmt.Errorf("energy.limit-absolute names %s, which is not the action of a bond; name one of %s",
				l.Variable, strings.Join(actions, ", "))
		}
	}
	return nil
}

func (c *energyCorrection) init(x *master.Exec, _ float64) error {
	c.of = make([]correctedBond, len(c.energy.bonds))
	for i := range c.of {
		b := &c.energy.bonds[i]
		c.of[i].applied, c.of[i].most = make([]float64, len(b.pairs)), make([]float64, len(b.pairs))
		for j, p := range b.pairs {
			c.of[i].most[j] = math.Abs(p.gain) * valueOf(c.config.LimitAbsolute, x.Sys.OutName(p.effort), math.Inf(1))
		}
		c.of[i].mu, c.of[i].why = c.config.Mu, "given"
		if math.IsNaN(c.config.Mu) {
			c.of[i].mu, c.of[i].why = c.share(x.Sys, b)
		}
		c.of[i].judge = c.newJudge(x, b)
	}
	c.findPoints()
	return nil
}

// findPoints groups the bonds with the same flow.
func (c *energyCorrection) findPoints() {
	c.points = nil
	at := map[string]int{}
	for i := range c.energy.bonds {
		b := &c.energy.bonds[i]
		key := fmt.Sprint(b.over)
		for _, p := range b.pairs {
			key += fmt.Sprint(" ", p.flow)
		}
		k, known := at[key]
		if !known {
			k = len(c.points)
			at[key] = k
			n := len(b.pairs)
			point := actedPoint{size: make([]float64, n), action: make([]float64, n), correct: make([]float64, n)}
			for j, p := range b.pairs {
				point.size[j] = math.Sqrt(p.watt / b.pairs[0].watt)
			}
			c.points = append(c.points, point)
		}
		c.points[k].bonds = append(c.points[k].bonds, i)
	}
}

// share returns μ (rodriguez 3.3) and the reason for it. μ_SR is 1/2 if one of the two subsystems
// has direct feedthrough within the bond, else 0. R = h_df/h_ndf is the ratio of its step to the
// step of the other subsystem. For held inputs or polynomials in the faster subsystem,
//
//	R ≥ 1: μ = μ_SR (1.5 − 0.5/R) or μ_SR      (20)
//	R < 1: μ = μ_SR or μ_SR R                  (21)
//
// In the paper the subsystems meet after the larger of the two steps. Here both steps may be
// shorter than the time h between two meetings. A held action then has the value of the last
// meeting, and R = h/h_ndf in (20); with polynomials it has the value at the start of its last
// own step, and R = h_df/h in (21).
//
// This holds for the Jacobi scheme. In a Gauss–Seidel scheme, an action that depends on
// displacements is computed with the displacements at which the other side starts its step or
// arrives: it adds no spurious energy, and μ = 0.
func (c *energyCorrection) share(sys *master.System, b *bond) (mu float64, why string) {
	for _, p := range b.pairs {
		for _, side := range [][2]int{{p.effort, p.flow}, {p.flow, p.effort}} {
			out, other := side[0], side[1]
			in, assumed := feedsThrough(sys, num.Owner(sys.OutAt, other), out)
			if in < 0 {
				continue
			}
			why = "direct feedthrough of " + sys.InName(in) + " to " + sys.OutName(out)
			if assumed {
				why += ", assumed since the dependencies are not declared"
			}
			if c.inTurn && b.displaced(sys, num.Owner(sys.OutAt, other), num.Owner(sys.OutAt, out)) {
				return 0, "in a Gauss–Seidel scheme an action that depends on displacements adds no energy"
			}
			df, ndf := c.step(num.Owner(sys.OutAt, out)), c.step(num.Owner(sys.OutAt, other))
			meet := max(1, df, ndf)
			if c.in.Order() == 0 {
				return singleRateShare * (1.5 - 0.5*ndf/meet), why
			}
			return singleRateShare * df / meet, why
		}
	}
	return 0, "no direct feedthrough within the bond: the coupling adds no spurious energy"
}

// singleRateShare is μ_SR with direct feedthrough.
const singleRateShare = 0.5

// step returns the step size of subsystem i in macro steps.
func (c *energyCorrection) step(i int) float64 {
	return float64(c.in.Over(i)) / float64(c.in.Rate(i).Steps)
}

// displaced reports whether an output of subsystem i in the bond depends directly on inputs from
// subsystem from that are not part of the bond.
func (b *bond) displaced(sys *master.System, from, i int) bool {
	feedthrough := &sys.Infos[i].Step
	for _, p := range b.pairs {
		for _, y := range [2]int{p.effort, p.flow} {
			out := y - sys.OutAt[i]
			if num.Owner(sys.OutAt, y) != i || out >= len(feedthrough.On) {
				continue
			}
			for _, in := range feedthrough.On[out] {
				if k := sys.InAt[i] + in; k < sys.InAt[i+1] && sys.SourceSubsystem(k) == from && !b.takes(k) {
					return true
				}
			}
		}
	}
	return false
}

// takes reports whether input k is part of the bond.
func (b *bond) takes(k int) bool {
	return slices.ContainsFunc(b.pairs, func(p bondPair) bool { return k == p.effortIn || k == p.flowIn })
}

// feedsThrough returns an input from subsystem from on which output y depends directly, in a bond
// or not; −1 = there is none. assumed reports that the dependencies are not declared.
func feedsThrough(sys *master.System, from, y int) (input int, assumed bool) {
	i := num.Owner(sys.OutAt, y)
	f := &sys.Infos[i].Step
	out := y - sys.OutAt[i]
	if out >= len(f.On) {
		return -1, false
	}
	for _, in := range f.On[out] {
		if k := sys.InAt[i] + in; k < sys.InAt[i+1] && sys.SourceSubsystem(k) == from {
			return k, f.Assumed != nil && f.Assumed[out]
		}
	}
	return -1, false
}

// apply sets the additional actions for the next step of size H.
func (c *energyCorrection) apply(x *master.Exec, H float64) {
	limit := c.config.Limit
	if limit == 0 {
		limit = defaultCorrectionLimit
	}
	for g := range c.points {
		point := &c.points[g]
		first := &c.energy.bonds[point.bonds[0]]
		if c.in.Since(first.over) != 0 {
			continue // constant until the sides of the bond meet
		}
		clear(point.action)
		clear(point.correct)
		absolute := math.Inf(1)
		for _, i := range point.bonds {
			b, k := &c.energy.bonds[i], &c.of[i]
			k.H = float64(b.over) * H
			square := 0.0
			for _, p := range b.pairs {
				square += p.watt * float64(x.Y[p.flow]*x.Y[p.flow])
			}
			for j, p := range b.pairs {
				k.applied[j] = 0
				if square > 0 {
					k.applied[j] = -p.sign * k.surplus * x.Y[p.flow] / (square * k.H)
				}
				in := p.sign * (p.watt / first.pairs[j].watt)
				point.action[j] += float64(in * x.W[p.effortIn])
				point.correct[j] += float64(in * k.applied[j])
				absolute = min(absolute, k.most[j])
			}
		}
		size, most := point.magnitude(point.correct), min(limit*point.magnitude(point.action), absolute)
		for _, i := range point.bonds {
			for j, p := range c.energy.bonds[i].pairs {
				f := &c.of[i].applied[j]
				switch {
				case !(size <= math.MaxFloat64):
					*f = 0 // v is almost 0
				case size > most:
					*f = *f / size * most
				}
				c.in.SetBias(p.effortIn, *f)
			}
		}
	}
}

// magnitude returns the length of a vector, by component in units of the first bond.
func (p *actedPoint) magnitude(v []float64) (size float64) {
	for j := range v {
		size = math.Hypot(size, p.size[j]*v[j])
	}
	return size
}

// accept updates the energies after a step and computes the energy to remove in the next one.
func (c *energyCorrection) accept(x *master.Exec, _ float64) {
	for i := range c.of {
		b, k := &c.energy.bonds[i], &c.of[i]
		if !b.meets {
			continue
		}
		removed := 0.0
		for j, p := range b.pairs {
			removed += p.sign * p.watt * k.applied[j] * x.Y[p.flow] * k.H
		}
		k.left += k.intended + removed // U of the previous step: v is known now
		k.intended = k.mu * b.stepHeld
		k.judge.accept(c, x, b, k.H, -removed)
		k.surplus = k.intended + c.config.Nu*k.left
	}
}

func (c *energyCorrection) reject(float64, float64) {}

func (c *energyCorrection) archive(a *master.Archive) {
	for i := range c.of {
		k := &c.of[i]
		a.All(&k.surplus, &k.intended, &k.left, &k.H, k.applied)
		k.judge.archive(a)
	}
}

// report adds the results of the correction to those of the bonds.
func (c *energyCorrection) report(to map[string]master.BondEnergy) {
	for i := range c.of {
		k := &c.of[i]
		e := to[c.energy.bonds[i].name]
		removed, mu := k.judge.removed, k.mu
		e.Correction, e.CorrectedEnergy, e.Mu = k.judge.verdict(k.judge.load(c.in.System(), &c.energy.bonds[i])), &removed, &mu
		if mu == 0 {
			e.Correction = "unknown: energy.mu is 0, so nothing was corrected"
		}
		if k.judge.judges() {
			added := k.judge.added
			e.AddedEnergy = &added
		}
		to[c.energy.bonds[i].name] = e
	}
}

// review returns warnings for bonds whose correction does not work or cannot be judged.
func (c *energyCorrection) review() []string {
	var out []string
	for i := range c.of {
		b, k := &c.energy.bonds[i], &c.of[i]
		if k.mu == 0 {
			out = append(out, fmt.Sprintf("bond %s: energy.mu is 0 (%s), so nothing was corrected", b.name, k.why))
			continue
		}
		load := k.judge.load(c.in.System(), b)
		switch verdict := k.judge.verdict(load); verdict {
		case helps:
		case harms:
			if load != "" {
				load = "; " + load
			}
			out = append(out, fmt.Sprintf("bond %s: the energy correction does not work as intended: by the "+
				"directional derivatives the coupling "+
				"added %.3g J, and %.3g J were removed; its estimate is wrong if the motions of the two sides are "+
				"correlated: "+
				"run with correction=none, or with smaller steps%s", b.name, k.judge.added, k.judge.removed, load))
		default:
			out = append(out, fmt.Sprintf("bond %s: whether the energy correction helps or harms is %s; compare "+
				"the results with those of correction=none and of smaller steps", b.name, verdict))
		}
	}
	return out
}
