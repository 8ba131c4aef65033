package algorithms

import (
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// energyMonitor follows the energy that the coupling lets appear or vanish at
// the power bonds (sadjina II, rodriguez 3.1): after each macro step the
// residual power
//
//	δP = ũ_b y_b − (g_e/g_f) ũ_a y_a
//
// with the inputs ũ that the subsystems had at its end, and δE = δP H. With
// several pairs of a bond the powers add up.
type energyMonitor struct {
	declared []Bond
	in       *approximation
	bonds    []bond
	late     []bool // by subsystem
	t0, t    float64
	// threshold of the warning about jumps; 0 = none
	threshold float64
}

// check finds the bonds.
func (m *energyMonitor) check(s *master.System) (err error) {
	m.bonds, err = resolveBonds(s, m.declared)
	return err
}

func (m *energyMonitor) init(x *master.Exec, t0 float64) {
	m.late = make([]bool, len(x.Sys.Subsystems))
	for _, i := range x.Sys.Late {
		m.late[i] = true
	}
	m.t0, m.t = t0, t0
	for i := range m.bonds {
		b := &m.bonds[i]
		b.totals = bondTotals{}
		b.power, b.residual, b.energy = 0, 0, 0
		for _, p := range b.pairs {
			b.power += p.power(x.Y)
		}
		b.powers = spikeDetector{threshold: m.threshold}
	}
}

// begin forgets what was measured since the last accepted point.
func (m *energyMonitor) begin() {
	for i := range m.bonds {
		m.bonds[i].step, m.bonds[i].stepHeld, m.bonds[i].exchanged = 0, 0, 0
	}
}

// measure computes the residuals of the step of size H that was just taken.
func (m *energyMonitor) measure(x *master.Exec, H float64) {
	for i := range m.bonds {
		b := &m.bonds[i]
		b.nextPower, b.nextResidual = 0, 0
		held := 0.0
		for _, p := range b.pairs {
			effort, flow := m.atEnd(x, p.effortIn), m.atEnd(x, p.flowIn)
			b.nextPower += p.power(x.Y)
			b.nextResidual += p.residual(x.Y, effort, flow)
			held += p.residual(x.Y, x.W[p.effortIn], x.W[p.flowIn])
		}
		b.stepHeld += float64(held * H)
		b.step += float64(b.nextResidual * H)
		b.exchanged += float64(b.nextPower * H)
	}
}

// atEnd gives the value that input k had at the end of the step, without what a
// correction added.
func (m *energyMonitor) atEnd(x *master.Exec, k int) float64 {
	i := ownerOf(x.Sys.InAt, k)
	if m.late[i] {
		return x.U[k]
	}
	return m.in.atEnd(k, i)
}

// accept takes what was measured into the totals.
func (m *energyMonitor) accept(t float64) {
	H := t - m.t
	m.t = t
	for i := range m.bonds {
		b := &m.bonds[i]
		b.power, b.residual = b.nextPower, b.nextResidual
		b.energy += b.step
		size := math.Abs(b.residual)
		b.totals.power += b.power * H
		b.totals.residual += size * H
		if size > b.totals.peak {
			b.totals.peak, b.totals.peakAt = size, t
		}
		b.powers.add(t, size)
	}
}

// archive carries the totals. What belongs to one step is measured in each.
func (m *energyMonitor) archive(a *master.Archive) {
	a.Section("energy at the bonds")
	a.Float(&m.t)
	for i := range m.bonds {
		b := &m.bonds[i]
		a.Same(b.name, "a bond")
		a.Float(&b.energy)
		a.Float(&b.totals.power)
		a.Float(&b.totals.residual)
		a.Float(&b.totals.peak)
		a.Float(&b.totals.peakAt)
		b.powers.archive(a)
	}
}

// bondTotals are integrals over the run.
type bondTotals struct{ power, residual, peak, peakAt float64 }

// quantities of each bond, in this order.
var bondQuantities = []master.Port{{Name: "power", Unit: "W"}, {Name: "residual_power", Unit: "W"}, {Name: "residual_energy", Unit: "J"}}

// quantities names what is recorded.
func (m *energyMonitor) quantities() []master.Port {
	var out []master.Port
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

// report gives the totals by name.
func (m *energyMonitor) report() map[string]master.BondEnergy {
	out := map[string]master.BondEnergy{}
	T := m.t - m.t0
	for i := range m.bonds {
		b := &m.bonds[i]
		e := master.BondEnergy{ResidualEnergy: b.energy, PeakResidualPower: b.totals.peak}
		if T > 0 {
			e.MeanPower, e.MeanAbsResidualPower = b.totals.power/T, b.totals.residual/T
		}
		out[b.name] = e
	}
	return out
}

// review warns of residual power that jumps out of what it was before.
func (m *energyMonitor) review() []string {
	var out []string
	for i := range m.bonds {
		b := &m.bonds[i]
		if b.powers.spikes > 0 {
			out = append(out, fmt.Sprintf("bond %s: the residual power jumps at %d communication points, first at t = %.6g s to %.3g W, where its median was %.3g W: "+
				"what happens there may come from the coupling and not from the system; try a smaller step",
				b.name, b.powers.spikes, b.powers.firstAt, b.powers.first, b.powers.median))
		}
	}
	return out
}

// spikeDetector finds values far above those of a window before them. Its scale
// is robust: the median, and the median of the distances from it.
//
// The threshold counts in such distances (1.4826 of which are a standard
// deviation of normal noise); a window that holds nothing but zeros knows no
// scale.
type spikeDetector struct {
	threshold float64 // 0 = none are looked for
	ring      [spikeWindow]float64
	n         int // values seen
	sorted    [spikeWindow]float64
	spikes    int
	firstAt   float64
	first     float64
	median    float64
}

// spikeWindow is the number of values that make the scale, and the number of
// values before the first that can be a spike.
const spikeWindow = 101

func (d *spikeDetector) add(t, v float64) {
	if d.threshold == 0 || v-v != 0 {
		return
	}
	if d.n >= spikeWindow {
		median, spread := d.scale()
		if v > median+d.threshold*max(spread, 0.1*median) && median > 0 {
			if d.spikes == 0 {
				d.firstAt, d.first, d.median = t, v, median
			}
			d.spikes++
		}
		old := d.ring[d.n%spikeWindow]
		at, _ := slices.BinarySearch(d.sorted[:], old)
		copy(d.sorted[at:], d.sorted[at+1:])
		d.insert(v, spikeWindow-1)
	} else {
		d.insert(v, d.n)
	}
	d.ring[d.n%spikeWindow] = v
	d.n++
}

func (d *spikeDetector) archive(a *master.Archive) {
	a.Index(&d.n, 0, math.MaxInt)
	a.Floats(d.ring[:])
	a.Floats(d.sorted[:])
	a.Int(&d.spikes)
	a.Float(&d.firstAt)
	a.Float(&d.first)
	a.Float(&d.median)
}

// insert puts v among the first n sorted values.
func (d *spikeDetector) insert(v float64, n int) {
	at, _ := slices.BinarySearch(d.sorted[:n], v)
	copy(d.sorted[at+1:n+1], d.sorted[at:n])
	d.sorted[at] = v
}

// scale gives the median of the window and of the distances from it, found by
// walking outwards from the middle.
func (d *spikeDetector) scale() (median, spread float64) {
	const middle = spikeWindow / 2
	median = d.sorted[middle]
	lo, hi := middle, middle
	for range spikeWindow / 2 {
		below, above := math.Inf(1), math.Inf(1)
		if lo > 0 {
			below = median - d.sorted[lo-1]
		}
		if hi < spikeWindow-1 {
			above = d.sorted[hi+1] - median
		}
		if below <= above {
			spread = below
			lo--
		} else {
			spread = above
			hi++
		}
	}
	return median, spread
}
