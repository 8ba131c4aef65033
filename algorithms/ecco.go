package algorithms

import (
	"errors"
	"fmt"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// ECCO follows the residual energy at power bonds, without repetition (sadjina III C).
const ECCO Estimator = "ecco"

func newECCO(k *Control, a *Coupling) (indicator, controller) {
	return &ecco{energy: a.energy, scale: k.EnergyScale, tolerance: k.EnergyTolerance}, newPI(k, 2)
}

// ecco is the indicator of energy-conservation-based co-simulation, (14) of
// sadjina:
//
//	ε = √(1/N Σ (δE / (r (E0 + |E|)))²)
//
// over the power bonds, with δE the residual energy of the macro step and E =
// P H the energy exchanged in it. Where a bond has no energy scale E0, it is
// learnt from the run: the largest energy that the bond has carried so far one
// way or back, |∫ P dt| from its lowest to its highest value. It holds P and
// never the residual, which would saturate the indicator; at the start, when it
// is small, steps are small.
type ecco struct {
	energy           *energyMonitor
	scale, tolerance float64 // general ones; scale 0 = learnt

	learnt []learntScale // by bond
}

const declareBonds = "give --bond NAME=component.effort:component.flow, or bonds in the annotation of macrostep (macrostep bonds SYSTEM lists candidates)"

type learntScale struct {
	carried, lowest, highest float64 // J
	share                    float64 // of the bond in ε, when its sides last met
}

func (e *ecco) check(*master.System) error {
	if len(e.energy.declared) == 0 {
		return errors.New("ECCO controls the step by the energy at power bonds, and none is declared: " + declareBonds)
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
			sum += float64(e.learnt[i].share * e.learnt[i].share) // its sides are still on their way
			continue
		}
		if e.learnt[i].share = 0; b.step == 0 {
			continue // also where no energy has flowed yet, and there is no scale
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

func (e *ecco) archive(a *master.Archive) {
	for i := range e.learnt {
		l := &e.learnt[i]
		num.Carry(a, &l.carried, &l.lowest, &l.highest, &l.share)
	}
}

// addedUp is the number of tolerances up to which the residual energies of the steps may add
// up without a warning.
const addedUp = 100

// review names the bond at which small residual energies have added up most.
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
	return []string{fmt.Sprintf("bond %s: ECCO keeps the residual energy of each step small, but over the run it adds up to %.3g J, %.2g %% of the energy that the bond carries: "+
		"the result may be off by as much; take a smaller ecco.tolerance, a higher order, or an implicit algorithm", b.name, b.energy, 100*math.Abs(b.energy)/e.scaleOf(at))}
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
