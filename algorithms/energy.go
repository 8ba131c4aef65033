package algorithms

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// energyMonitor measures the energy that the coupling adds or removes at the power bonds (sadjina
// II, rodriguez 3.1). After each macro step it computes the residual power
//
//	δP = ũ_b y_b − (g_e/g_f) ũ_a y_a
//
// with the inputs ũ of the subsystems at its end, and δE = δP H. The powers of several pairs of a
// bond add up.
//
// If one step of a side spans several macro steps, H is the time between two points at which both
// sides meet, and δP is that of the later point (rodriguez (19)).
type energyMonitor struct {
	declared []Bond
	// It judges only, in each watchEvery-th step, and records and reports nothing.
	watches bool
	taken   int // steps
	in      *input.Approximation
	bonds   []bond
	t0, t   float64 // s, start of the run and last communication point
	// threshold is that of the warning about jumps; 0 = no warning.
	threshold float64
	// offset [nu] is the constant that the model-based corrector adds to each input over the step
	// because of earlier errors; nil = there is no corrector.
	offset []float64
}

// errRates means that a bond is not watched because its sides have rates.
var errRates = errors.New("a side has a rate")

// check resolves the bonds.
func (m *energyMonitor) check(s *master.System) (err error) {
	defer func() {
		if err != nil && m.watches {
			m.bonds, err = nil, nil
		}
	}()
	if m.bonds, err = resolveBonds(s, m.declared); err != nil {
		return err
	}
	for _, b := range m.bonds {
		for _, p := range b.pairs {
			one, other := num.Owner(s.OutAt, p.effort), num.Owner(s.OutAt, p.flow)
			if n, o := m.in.Over(one), m.in.Over(other); m.watches && max(n, o) > 1 {
				return errRates
			} else if max(n, o)%min(n, o) != 0 {
				return fmt.Errorf("bond %s: %s takes one step over %d macro steps and %s over %d; one of these "+
					"numbers must be a multiple of the other",
					b.name, s.Infos[one].Name, n, s.Infos[other].Name, o)
			}
		}
	}
	return nil
}

func (m *energyMonitor) init(x *master.Exec, t0 float64) error {
	m.t0, m.t = t0, t0
	for i := range m.bonds {
		b := &m.bonds[i]
		b.totals = bondTotals{}
		b.power, b.residual, b.energy = 0, 0, 0
		b.over, b.metAt = 1, t0
		for _, p := range b.pairs {
			b.power += p.power(x.Y)
			for _, y := range [2]int{p.effort, p.flow} {
				b.over = max(b.over, m.in.Over(num.Owner(x.Sys.OutAt, y)))
			}
		}
		b.powers = spikeDetector{threshold: m.threshold}
	}
	return nil
}

// watchEvery is prime, so that no motion of a few steps is always met at the same place.
const watchEvery = 7

// skips reports whether the present step is not judged.
func (m *energyMonitor) skips() bool { return m.watches && m.taken%watchEvery != 0 }

// begin resets the energies of the current macro step.
func (m *energyMonitor) begin() {
	if m.skips() {
		return
	}
	for i := range m.bonds {
		b := &m.bonds[i]
		b.step, b.stepHeld, b.exchanged, b.meets = 0, 0, 0, false
	}
}

// measure computes the residuals of the step from t to t+H that was just taken.
func (m *energyMonitor) measure(x *master.Exec, t, H float64) {
	if m.skips() {
		return
	}
	for i := range m.bonds {
		b := &m.bonds[i]
		b.nextPower, b.nextResidual = 0, b.residual
		for _, p := range b.pairs {
			b.nextPower += p.power(x.Y)
		}
		if b.meets = m.in.Ends(b.over); !b.meets {
			continue
		}
		span := H
		if b.over > 1 {
			span = t + H - b.metAt
		}
		b.nextResidual = 0
		held := 0.0
		for _, p := range b.pairs {
			effort, effortHeld := m.inputs(x, p.effortIn)
			flow, flowHeld := m.inputs(x, p.flowIn)
			r := p.residual(x.Y, effort, flow)
			b.nextResidual += r
			if effort != effortHeld || flow != flowHeld {
				r = p.residual(x.Y, effortHeld, flowHeld)
			}
			held += r
		}
		b.stepHeld += float64(held * span)
		b.step += float64(b.nextResidual * span)
		b.exchanged += float64(b.nextPower * span)
	}
}

// inputs returns the value of input k at the end of the step, without the energy correction, and
// the value that would have been held over the step.
func (m *energyMonitor) inputs(x *master.Exec, k int) (end, held float64) {
	i := m.in.Owner(k)
	if _, ahead := m.in.Ahead(k); ahead || m.in.Over(i) > 1 {
		held = m.in.Last(k)
	} else {
		held = x.W[k]
	}
	if m.in.Late(i) {
		return x.U[k], held
	}
	end = m.in.AtEnd(k)
	if m.offset != nil {
		end += m.offset[k]
	}
	return end, held
}

// accept adds the measured energies to the totals.
func (m *energyMonitor) accept(_ *master.Exec, t float64) {
	skips := m.skips()
	m.taken++
	if skips {
		m.t = t
		return
	}
	H := t - m.t
	m.t = t
	for i := range m.bonds {
		b := &m.bonds[i]
		b.power, b.residual = b.nextPower, b.nextResidual
		b.totals.power += b.power * H
		b.totals.carried += math.Abs(b.power) * H
		if !b.meets {
			continue
		}
		span := H
		if b.over > 1 {
			span = t - b.metAt
		}
		b.metAt = t
		b.energy += b.step
		b.totals.held += b.stepHeld
		size := math.Abs(b.residual)
		b.totals.residual += size * span
		if size > b.totals.peak {
			b.totals.peak, b.totals.peakAt = size, t
		}
		b.powers.add(t, span, size)
	}
}

// reject does nothing: each attempt measures anew.
func (m *energyMonitor) reject(float64, float64) {}

// archive saves or restores the totals.
func (m *energyMonitor) archive(a *master.Archive) {
	a.Section("energy at the bonds")
	a.All(&m.t, &m.taken)
	for i := range m.bonds {
		b := &m.bonds[i]
		a.Same(b.name, "a bond")
		a.All(&b.power, &b.residual, &b.metAt, &b.energy, &b.totals, &b.powers)
	}
}

// bondTotals holds integrals over the run in J, and the peak of the residual power in W with its
// time.
type bondTotals struct{ power, carried, residual, held, peak, peakAt float64 }

// bondQuantities are the recorded quantities of each bond.
var bondQuantities = []master.Port{{Name: "power", Unit: "W"}, {Name: "residual_power", Unit: "W"}, {Name: "residual_energy", Unit: "J"}}

// quantities returns the recorded quantities of all bonds.
func (m *energyMonitor) quantities() []master.Port {
	var out []master.Port
	if m.watches {
		return nil
	}
	for _, b := range m.declared {
		for _, q := range bondQuantities {
			q.Name = "bond." + b.Name + "." + q.Name
			out = append(out, q)
		}
	}
	return out
}

func (m *energyMonitor) measured(dst []float64) {
	for i := range m.bonds {
		b := &m.bonds[i]
		dst[3*i], dst[3*i+1], dst[3*i+2] = b.power, b.residual, b.energy
	}
}

// report returns the totals by name of the bond.
func (m *energyMonitor) report() map[string]master.BondEnergy {
	if m.watches {
		return nil
	}
	out := map[string]master.BondEnergy{}
	T := m.t - m.t0
	for i := range m.bonds {
		b := &m.bonds[i]
		e := master.BondEnergy{ResidualEnergy: b.energy, HeldResidualEnergy: b.totals.held, PeakResidualPower: b.totals.peak}
		if T > 0 {
			e.MeanPower, e.MeanAbsPower, e.MeanAbsResidualPower = b.totals.power/T, b.totals.carried/T, b.totals.residual/T
		}
		out[b.name] = e
	}
	return out
}

// Residual energies, relative to that which a bond carries, from which on they are noted and warned of: the error of the coupling
// is then about a third, and as large as the motion.
const (
	notedShare  = 0.2
	warnedShare = 0.5
)

// notes returns notes on residual energies.
func (m *energyMonitor) notes() (out []string) {
	for i := range m.bonds {
		if s := m.bonds[i].share(); s > notedShare && s <= warnedShare {
			out = append(out, m.bonds[i].large())
		}
	}
	return out
}

// share returns the residual energy, relative to the energy that the bond has carried in both directions.
func (b *bond) share() float64 {
	if b.totals.carried == 0 {
		return 0
	}
	return math.Abs(b.energy) / b.totals.carried
}

// large describes a large residual energy.
func (b *bond) large() string {
	return fmt.Sprintf("bond %s: the coupling has added or removed %.2g times the energy that the bond has carried: the error is large "+
		"(--check measures it); take smaller steps, implicit, or an algorithm that chooses its steps, such as ex-milne",
		b.name, b.share())
}

// review returns warnings about residual energies, and about jumps of the residual power.
func (m *energyMonitor) review() []string {
	var out []string
	for i := range m.bonds {
		b := &m.bonds[i]
		if b.share() > warnedShare {
			out = append(out, b.large())
		}
		if b.powers.spikes > 0 {
			out = append(out, fmt.Sprintf("bond %s: the residual power jumps at %d communication points, first at "+
				"t = %.6g s to %.3g W, where the median of its peaks was %.3g W: "+
				"these events may come from the coupling instead of the system; try a smaller step",
				b.name, b.powers.spikes, b.powers.firstAt, b.powers.first, b.powers.median))
		}
	}
	return out
}

// spikeDetector finds values that are much larger than the earlier ones. A residual oscillates
// with the motion, may be small for a while, and grows over many steps if a coupling becomes
// unstable (rodriguez Fig. 37). The scale is therefore computed from the peaks of blocks of all
// earlier values. It is robust: the median of the peaks (center) and the median of their
// distances from it (spread). The blocks have equal lengths in time, since with step sizes that
// grow from rest most values belong to the start of the motion.
//
// The threshold is relative to the larger of center and spread. The ratio is at most 40 for
// motions that are calm for a while, and above 1000 in Fig. 37. With center 0 there are no spikes.
type spikeDetector struct {
	threshold      float64 // 0 = the detector is off
	peaks          [spikeBlocks]float64
	blocks         int     // full blocks
	length         float64 // s, of a block; 0 = no value yet
	peak           float64 // of the current block
	span           float64 // s, length of the current block so far
	center, spread float64

	spikes  int
	firstAt float64 // s, time of the first spike
	first   float64 // its value
	median  float64 // center at that time
}

const (
	spikeBlocks = 64 // number of blocks at which pairs of them are joined
	spikeLength = 16 // length of the first blocks in steps of the first size
	spikeFirst  = 8  // blocks before the first possible spike
)

// add adds the value at the end t of a step of size H.
func (d *spikeDetector) add(t, H, v float64) {
	if d.threshold == 0 || v-v != 0 {
		return
	}
	if d.blocks >= spikeFirst && d.center > 0 && v > d.center+d.threshold*max(d.spread, d.center) {
		if d.spikes == 0 {
			d.firstAt, d.first, d.median = t, v, d.center
		}
		d.spikes++
	}
	if d.length == 0 {
		d.length = spikeLength * H
	}
	d.peak = max(d.peak, v)
	const full = 1 - 1e-6 // for rounding
	if d.span += H; d.span < full*d.length {
		return
	}
	for d.span >= full*d.length {
		d.span -= d.length
		d.push()
	}
	d.peak, d.span = 0, max(d.span, 0)
}

// push ends a block and updates center and spread.
func (d *spikeDetector) push() {
	d.peaks[d.blocks] = d.peak
	d.blocks++
	if d.blocks == spikeBlocks {
		d.blocks /= 2
		d.length *= 2
		for i := range d.blocks {
			d.peaks[i] = max(d.peaks[2*i], d.peaks[2*i+1])
		}
	}
	var sorted [spikeBlocks]float64
	of := sorted[:copy(sorted[:], d.peaks[:d.blocks])]
	slices.Sort(of)
	d.center = of[len(of)/2]
	for i := range of {
		of[i] = math.Abs(of[i] - d.center)
	}
	slices.Sort(of)
	d.spread = of[len(of)/2]
}
