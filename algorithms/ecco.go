package algorithms

import (
	"errors"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/master"
)

// ECCO controls the residual energy at power bonds and repeats no step (sadjina III C).
const ECCO Estimator = "ecco"

func newECCO(k *Control, a *Coupling) (indicator, controller) {
	return &ecco{energy: a.energy, scale: k.EnergyScale, tolerance: k.EnergyTolerance}, newPI(k, 2)
}

// ecco is the indicator of energy-conservation-based co-simulation, sadjina (14):
//
//	ε = √(1/N Σ (δE / (r (E0 + |E|)))²)
//
// over the N power bonds, with the residual energy δE of the macro step and the energy E = P H
// exchanged in it. The default energy scale E0 of a bond is the difference between the highest
// and the lowest value of ∫ P dt so far. It does not include the residual, which would saturate
// the indicator. It is small at the start, and so are the first steps.
type ecco struct {
	energy           *energyMonitor
	scale, tolerance float64 // E0 in J (0 = found during the run) and r of bonds without their own

	learnt []learntScale // by bond
}

const declareBonds = "give --bond NAME=component.effort:component.flow, or bonds in the annotation of macrostep " +
	"(macrostep info SYSTEM --bonds lists candidates)"

// learntScale determines the energy scale E0 of a bond from its powers so far.
type learntScale struct {
	carried, lowest, highest float64 // J, ∫ P dt and its extremes
	share                    float64 // contribution of the bond to ε when its sides last met
}

func (e *ecco) check(*master.System) error {
	if len(e.energy.declared) == 0 {
		return errors.New("ECCO controls the step by the energy at power bonds, but none is declared: " + declareBonds)
	}
	return nil
}

func (e *ecco) init(*master.Exec, float64) error {
	e.learnt = make([]learntScale, len(e.energy.bonds))
	return nil
}

func (e *ecco) measure(_ *master.Exec, _, _ float64, _ int) float64 {
	sum := 0.0
	for i := range e.energy.bonds {
		b := &e.energy.bonds[i]
		if !b.meets {
			sum += float64(e.learnt[i].share * e.learnt[i].share) // one side is within a step of its own
			continue
		}
		if e.learnt[i].share = 0; b.step == 0 {
			continue // E0 may be 0, too
		}
		q := b.step / (e.toleranceOf(i) * (e.scaleOf(i) + math.Abs(b.exchanged)))
		sum += float64(q * q)
		e.learnt[i].share = q
	}
	return math.Sqrt(sum / float64(len(e.energy.bonds)))
}

// scaleOf returns E0 of a bond.
func (e *ecco) scaleOf(i int) float64 {
	if s := e.energy.bonds[i].scale; s > 0 {
		return s
	}
	if e.scale > 0 {
		return e.scale
	}
	l := &e.learnt[i]
	return l.highest - l.lowest
}

func (e *ecco) accept(*master.Exec, float64) {
	for i := range e.learnt {
		l := &e.learnt[i]
		l.carried += e.energy.bonds[i].exchanged
		l.lowest, l.highest = min(l.lowest, l.carried), max(l.highest, l.carried)
	}
}

func (e *ecco) archive(a *master.Archive) { a.All(e.learnt) }

// addedUp is the largest residual energy over the run without a warning, in units of the tolerance
// r E0 of one step.
const addedUp = 100

// review returns a warning for the bond at which residual energies have added up most.
func (e *ecco) review() []string {
	worst, at := float64(addedUp), -1
	for i := range e.energy.bonds {
		if sum := math.Abs(e.energy.bonds[i].energy) / (e.toleranceOf(i) * e.scaleOf(i)); sum > worst {
			worst, at = sum, i
		}
	}
	if at < 0 {
		return nil
	}
	b := &e.energy.bonds[at]
	return []string{fmt.Sprintf("bond %s: ECCO keeps the residual energy of each step small, but over the run it "+
		"adds up to %.3g J, %.2g %% of the "+
		"energy that the bond carries: the error of the result may be as large; use a smaller ecco.tolerance, a "+
		"higher order, "+
		"or an implicit algorithm", b.name, b.energy, 100*math.Abs(b.energy)/e.scaleOf(at))}
}

// toleranceOf returns r of a bond.
func (e *ecco) toleranceOf(i int) float64 {
	if r := e.energy.bonds[i].tolerance; r > 0 {
		return r
	}
	return e.tolerance
}

func (e *ecco) monitored() []string {
	var out []string
	for _, b := range e.energy.declared {
		out = append(out, "bond "+b.Name+" (residual energy)")
	}
	return out
}
