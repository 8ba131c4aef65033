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
	Mu    float64 // share of the residual power that is spurious; NaN = from feedthrough and rates
	Nu    float64 // weight of the energy left over from earlier corrections, 0…1
	Limit float64 // largest correction as part of the action; 0 = 1
	// LimitAbsolute bounds the correction in the unit of the action too (rodriguez 5: "or 100 N");
	// Variable names the effort of a bond. Nil = no bound.
	LimitAbsolute []Tolerance
}

const defaultCorrectionLimit = 1

// energyCorrection removes the energy that the coupling let appear in one macro
// step by an additional action in the next (rodriguez 3.2):
//
//	ς_{k+1} = μ δE_{k+1}                               (13)
//	f_corr  = −(ς_{k+1} + ν 𝒰_k) / (v_{k+1} H)         (14), (17)
//	U_{k+1} = ς_{k+1} + f_corr v_{k+2} H,  𝒰 = Σ U     (15), (16)
//
// δE takes the inputs as if they were held and the actions without correction
// (rodriguez 3.1). The action is the
// effort of the bond, and its taker feels f_corr on top of it, held over the
// step; for a vector, f_corr lies along v. It is limited to a part of the action and
// absolutely, by whichever is less, and 0 where v is.
type energyCorrection struct {
	config Energy
	energy *energyMonitor
	// inTurn: Gauss–Seidel.
	inTurn bool
	in     *input.Approximation
	of     []correctedBond
}

type correctedBond struct {
	mu       float64
	why      string
	surplus  float64   // ς + ν 𝒰 to be removed in the next step, J
	intended float64   // ς of the last step, J
	applied  []float64 // by pair: f_corr of the present step, in the unit of the input
	most     []float64 // by pair: the absolute limit of it
	H        float64   // s, of the present step, or until the sides of the bond meet
	left     float64   // 𝒰, J
	judge    correctionJudge
}

// check holds that limits name actions that are corrected.
func (c *energyCorrection) check(sys *master.System) error {
	if len(c.energy.declared) == 0 {
		return errors.New("the energy correction acts at power bonds, and none is declared: " + declareBonds)
	}
	var actions []string
	for _, b := range c.energy.bonds {
		for _, p := range b.pairs {
			actions = append(actions, sys.OutName(p.effort))
		}
	}
	for _, l := range c.config.LimitAbsolute {
		if l.Variable != "" && !slices.Contains(actions, l.Variable) {
			return fmt.Errorf("energy.limit-absolute names %s, which is the action of no bond, so it would limit nothing; name one of %s", l.Variable, strings.Join(actions, ", "))
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
			c.of[i].most[j] = math.Abs(p.gain) * valueOf(c.config.LimitAbsolute, x.Sys.OutName(p.effort), math.Inf(1)) // in the unit of the action
		}
		c.of[i].mu, c.of[i].why = c.config.Mu, "given"
		if math.IsNaN(c.config.Mu) {
			c.of[i].mu, c.of[i].why = c.share(x.Sys, b)
		}
		c.of[i].judge = c.newJudge(x, b)
	}
	return nil
}

// share returns μ (rodriguez 3.3): μ_SR = 1/2 if one of the two subsystems has direct
// feedthrough within the bond, else 0; with R = h_df/h_ndf the ratio of its step
// to that of the other, and hold or polynomials in the one that steps more often,
//
//	R ≥ 1: μ = μ_SR (1.5 − 0.5/R) or μ_SR      (20)
//	R < 1: μ = μ_SR or μ_SR R                  (21)
//
// There the larger of the two steps is that at which they meet. Here both may be
// shorter than the time h between two meetings: with hold, the action is that of the last
// meeting whatever its own step, and R = h/h_ndf in (20); with polynomials, it
// is that of the start of its last own step, and R = h_df/h in (21).
//
// That is for Jacobi schemes. In a Gauss–Seidel scheme an action that follows
// displacements is computed with those at which its taker starts, or meets its
// taker there: nothing spurious comes of it, and μ = 0.
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
				return 0, "in a Gauss–Seidel scheme an action that follows displacements belongs to the motion that it meets"
			}
			df, ndf := c.step(num.Owner(sys.OutAt, out)), c.step(num.Owner(sys.OutAt, other))
			meet := max(1, df, ndf)
			if c.in.Order() == 0 {
				return singleRateShare * (1.5 - 0.5*ndf/meet), why
			}
			return singleRateShare * df / meet, why
		}
	}
	return 0, "no direct feedthrough within the bond: the coupling adds no energy that is to be removed"
}

// singleRateShare is μ_SR with direct feedthrough.
const singleRateShare = 0.5

// step returns the step of subsystem i in macro steps.
func (c *energyCorrection) step(i int) float64 {
	return float64(c.in.Over(i)) / float64(c.in.Rate(i).Steps)
}

// displaced reports whether an output of subsystem i in the bond follows inputs from
// the other subsystem that have no part in it.
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

// takes reports whether input k takes part in the bond.
func (b *bond) takes(k int) bool {
	for _, p := range b.pairs {
		if k == p.effortIn || k == p.flowIn {
			return true
		}
	}
	return false
}

// feedsThrough returns an input on which output y depends directly and that
// subsystem from feeds, be it a displacement beside the velocity of a bond; −1 =
// there is none. assumed: the dependencies are not declared.
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

// apply sets the additional actions of the step of size H that begins now.
func (c *energyCorrection) apply(x *master.Exec, H float64) {
	limit := c.config.Limit
	if limit == 0 {
		limit = defaultCorrectionLimit
	}
	for i := range c.of {
		b, k := &c.energy.bonds[i], &c.of[i]
		if c.in.Since(b.over) != 0 {
			continue // held until the sides of the bond meet
		}
		k.H = float64(b.over) * H
		square := 0.0
		for _, p := range b.pairs {
			square += p.watt * float64(x.Y[p.flow]*x.Y[p.flow])
		}
		for j, p := range b.pairs {
			f := 0.0
			if square > 0 {
				f = -p.sign * k.surplus * x.Y[p.flow] / (square * k.H)
				most := min(limit*math.Abs(x.W[p.effortIn]), k.most[j])
				f = min(max(f, -most), most)
			}
			k.applied[j] = f
			c.in.SetBias(p.effortIn, f)
		}
	}
}

// accept takes stock of the step that was just taken, and finds what the next is
// to remove.
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
		k.left += k.intended + removed // U of the step before, now that v is known
		k.intended = k.mu * b.stepHeld
		k.judge.accept(c, x, b, k.H, -removed)
		k.surplus = k.intended + c.config.Nu*k.left
	}
}

func (c *energyCorrection) reject(float64, float64) {}

func (c *energyCorrection) archive(a *master.Archive) {
	for i := range c.of {
		k := &c.of[i]
		num.Carry(a, &k.surplus, &k.intended, &k.left, &k.H, k.applied)
		k.judge.archive(a)
	}
}

// report adds what became of the correction.
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

// review warns of bonds where the correction does not do what it is meant to.
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
			out = append(out, fmt.Sprintf("bond %s: the energy correction does not do what it should: by the directional derivatives the coupling added %.3g J, and %.3g J were removed; "+
				"what it takes for spurious is wrong where the motions of the two sides go together: run with correction=none, or with smaller steps%s", b.name, k.judge.added, k.judge.removed, load))
		default:
			out = append(out, fmt.Sprintf("bond %s: whether the energy correction helps or harms is %s; compare the results with those of correction=none and of smaller steps", b.name, verdict))
		}
	}
	return out
}
