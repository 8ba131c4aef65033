// Package measure compares runs of a system: how far a run with one algorithm and step is from others.
//
// Its constants are of three kinds. What users see is convention: Usual, Usable, tooFar, better. What is rounding follows from floating-point
// numbers: same, rounding, still, nothing, unmoved, digits. All others, of references, searches and modes, were chosen on 48 settings of 16 systems with known
// errors, and hold on others.
package measure

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// The number of points of a run that are compared is at most leastCells, or values divided by the number of variables. Errors that last for a
// moment, as of a jump that comes late, need many.
const (
	leastCells = 2000
	values     = 4_000_000
)

// Samples keeps a run in memory: its outputs, and the variables watched, at its first communication point in each of
// 2000 or more equal parts of the time. It is a master.Recorder. Values of other types than Real are kept as numbers: true is 1, a String
// is a number that other Strings are most unlikely to have.
type Samples struct {
	Start, Stop float64   // s, of the run
	T           []float64 // s, the times
	V           [][]float64
	// At are the times of the samples of another run, at which this run is sampled by interpolation; nil = its own points.
	At func() []float64

	sys       *master.System
	variables []variable
	steps     steps
	most      float64 // parts
	now       []float64
	last      window
}

// steps are those of a run but the last, in s.
type steps struct {
	shortest, longest, last, at float64
	n                           int
}

func (s *steps) add(t float64) {
	if s.n > 1 {
		s.shortest, s.longest = min(s.shortest, s.last), max(s.longest, s.last)
	} else {
		s.shortest, s.longest = math.Inf(1), 0
	}
	s.last, s.at = t-s.at, t
	s.n++
}

// vary reports whether steps differ.
func (s *steps) vary() bool { return s.longest > (1+same)*s.shortest }

// same is the largest relative difference of equal steps.
const same = 0.01

// variable describes a column.
type variable struct {
	name  string
	unit  string
	fed   bool // it feeds an input
	jumps bool // it is no Real
}

// window holds the last points of a run, from which values between the two in the middle are interpolated.
type window struct {
	t     [4]float64
	v     [4][]float64
	n     int
	jumps []bool // by variable: it keeps its value between points
}

// Begin names the variables.
func (s *Samples) Begin(sys *master.System, _ []master.Port) error {
	s.sys = sys
	s.variables, s.T, s.last, s.steps = nil, nil, window{}, steps{}
	for i, info := range sys.Infos {
		for k, port := range info.Out {
			y := sys.OutAt[i] + k
			s.variables = append(s.variables, variable{sys.OutName(y), port.Unit, sys.Feeds(y), false})
		}
	}
	for i, info := range sys.Infos {
		for watched, ports := range [][]master.Port{info.DiscreteOut, info.Watch} {
			for _, kind := range kinds {
				for k, port := range ports {
					if port.Kind == kind {
						fed := watched == 0 && sys.FeedsDiscrete(i, k)
						s.variables = append(s.variables, variable{info.Name + "." + port.Name, port.Unit, fed, kind != master.Real})
					}
				}
			}
		}
	}
	for _, v := range s.variables {
		s.last.jumps = append(s.last.jumps, v.jumps)
	}
	s.most = max(leastCells, values/float64(len(s.variables)))
	s.V, s.now = make([][]float64, len(s.variables)), make([]float64, len(s.variables))
	return nil
}

// kinds is the order of the values of a subsystem.
var kinds = []master.Kind{master.Real, master.Integer, master.Boolean, master.String}

// Name returns variable k, "component.variable".
func (s *Samples) Name(k int) string { return s.variables[k].name }

// Unit returns the unit of variable k; "" = none is known.
func (s *Samples) Unit(k int) string { return s.variables[k].unit }

// coupled reports whether a variable feeds an input.
func (s *Samples) coupled() bool {
	return slices.ContainsFunc(s.variables, func(v variable) bool { return v.fed })
}

// Record takes a point.
func (s *Samples) Record(p *master.Point) error {
	s.steps.add(p.T)
	s.now = append(s.now[:0], p.Y...)
	for i := range s.sys.Infos {
		for _, values := range [][]master.Values{p.DiscreteOut, p.Watch} {
			v := &values[i]
			s.now = append(s.now, v.Real...)
			for _, x := range v.Integer {
				s.now = append(s.now, float64(x))
			}
			for _, x := range v.Boolean {
				s.now = append(s.now, map[bool]float64{true: 1}[x])
			}
			for _, x := range v.String {
				h := fnv.New32a()
				_, _ = h.Write([]byte(x))
				s.now = append(s.now, float64(h.Sum32()))
			}
		}
	}
	if s.At == nil {
		if next := s.Start + float64(len(s.T))*(s.Stop-s.Start)/s.most; p.T >= next || len(s.T) == 0 {
			s.keep(p.T, s.now)
		}
		return nil
	}
	s.push(p.T, s.now)
	s.take(false)
	return nil
}

func (s *Samples) keep(t float64, v []float64) {
	s.T = append(s.T, t)
	for k, x := range v {
		s.V[k] = append(s.V[k], x)
	}
}

// push adds a point to the window; one at the time of the last replaces it.
func (s *Samples) push(t float64, v []float64) {
	w := &s.last
	if w.n > 0 && t == w.t[w.n-1] {
		copy(w.v[w.n-1], v)
		return
	}
	if w.n == len(w.t) {
		first := w.v[0]
		copy(w.t[:], w.t[1:])
		copy(w.v[:], w.v[1:])
		w.v[w.n-1] = first
		w.n--
	}
	w.t[w.n], w.v[w.n] = t, append(w.v[w.n][:0], v...)
	w.n++
}

// take samples up to the last point but one, which needs the point after it; ended: up to the last.
func (s *Samples) take(ended bool) {
	w, at := &s.last, s.At()
	for len(s.T) < len(at) {
		t := at[len(s.T)]
		i := slices.IndexFunc(w.t[:w.n], func(x float64) bool { return x >= t-rounding*(s.Stop-s.Start) })
		if i < 0 || i == w.n-1 && !ended && w.t[i] > t {
			return
		}
		s.keep(t, w.value(i, t))
	}
}

// resampled returns the samples at other times, by interpolation between them.
func (s *Samples) resampled(at []float64) *Samples {
	out := &Samples{Start: s.Start, Stop: s.Stop, At: func() []float64 { return at }, variables: s.variables, V: make([][]float64, len(s.V))}
	out.last.jumps = s.last.jumps
	row := make([]float64, len(s.V))
	for i, t := range s.T {
		for k := range row {
			row[k] = s.V[k][i]
		}
		out.push(t, row)
		out.take(false)
	}
	out.take(true)
	return out
}

// rounding is the largest difference of equal times, relative to the length of the run.
const rounding = 1e-12

// value interpolates between the points i-1 and i: by the cubic through them with the slopes of the parabolas through their
// neighbours, or linearly where the slopes of the neighbours do not change evenly, as at a jump.
func (w *window) value(i int, t float64) []float64 {
	out := slices.Clone(w.v[i])
	if i == 0 || t >= w.t[i]-rounding*math.Abs(w.t[i]) {
		return out
	}
	h := w.t[i] - w.t[i-1]
	a := (t - w.t[i-1]) / h
	b := 1 - a
	for k := range out {
		if w.jumps[k] {
			out[k] = w.v[i-1][k]
			continue
		}
		secant := w.secant(i, k)
		out[k] = w.v[i-1][k] + a*(w.v[i][k]-w.v[i-1][k])
		if i < 2 || i+1 == w.n {
			continue
		}
		before, after := w.secant(i-1, k), w.secant(i+1, k)
		if math.Abs(before-2*secant+after) > uneven*math.Abs(after-before) {
			continue
		}
		h0, h1 := w.t[i-1]-w.t[i-2], w.t[i+1]-w.t[i]
		left, right := (h*before+h0*secant)/(h0+h), (h1*secant+h*after)/(h+h1)
		out[k] += h * a * b * (b*(left-secant) - a*(right-secant))
	}
	return out
}

// uneven is the least second difference of three slopes, relative to that of the outer ones, at a jump, where it is 1.
const uneven = 0.5

// secant returns the mean slope between the points i-1 and i.
func (w *window) secant(i, k int) float64 { return (w.v[i][k] - w.v[i-1][k]) / (w.t[i] - w.t[i-1]) }

func (s *Samples) Flush() error { return nil }

// End takes the samples up to the last point.
func (s *Samples) End(master.Result) error {
	if s.At != nil {
		s.take(true)
	}
	return nil
}

// Distance is the difference of a variable between two runs.
type Distance struct {
	// Relative is the rms of the difference / standard deviation of the reference, at least 1e-6 of its rms; where it is 0, of that of the run. Of a variable that
	// is no Real it is the share of the time in which the values differ.
	Relative float64
	ByPoint  float64 // Relative as a mean over the points instead of over the time: steps may be short where something happens
	RMS      float64 // of the difference, in the unit of the variable
	Largest  float64 // magnitude of the difference
	Shift    float64 // s, of the first change of a variable that is no Real
	Still    bool    // the variable is constant in both runs
	// What remains where noise or chaos separate trajectories: the differences of mean, rms and extremes, in the unit of the variable.
	Mean, RootMeanSquare, Lowest, Highest float64
}

// Apart compares the variables of two runs over their first n samples.
func Apart(a, reference *Samples, n int) []Distance {
	out, weights, alike := make([]Distance, len(a.V)), weightsOf(a.T[:n]), make([]float64, n)
	for i := range alike {
		alike[i] = 1 / float64(n)
	}
	for k, v := range a.variables {
		if x, y := a.V[k][:n], reference.V[k][:n]; v.jumps {
			out[k] = differing(a.T, x, y, weights)
		} else {
			out[k] = apart(x, y, weights)
			out[k].ByPoint = apart(x, y, alike).Relative
		}
	}
	return out
}

// still is the range of a variable that does not move, relative to its magnitude, and nothing that of one which is zero. unmoved is the
// least motion of a reference, relative to magnitudes.
const (
	still   = 1e-9
	nothing = 1e-15
	unmoved = 1e-6
)

// moments are those of a variable over the time of a run.
type moments struct{ mean, rms, deviation, low, high float64 }

// momentsOf returns the moments of values with weights of sum 1.
func momentsOf(v, weights []float64) moments {
	m := moments{low: slices.Min(v), high: slices.Max(v)}
	for i, x := range v {
		m.mean += x * weights[i]
		m.rms = math.Hypot(m.rms, x*math.Sqrt(weights[i]))
	}
	for i, x := range v {
		m.deviation = math.Hypot(m.deviation, (x-m.mean)*math.Sqrt(weights[i]))
	}
	return m
}

// weightsOf returns the shares of the time that belong to points of time, so that many points about an event do not count more.
func weightsOf(t []float64) []float64 {
	w, last := make([]float64, len(t)), len(t)-1
	for i := range t {
		w[i] = (t[min(i+1, last)] - t[max(i-1, 0)]) / (2 * (t[last] - t[0]))
	}
	return w
}

func apart(a, b, weights []float64) (d Distance) {
	off := make([]float64, len(a))
	for i := range a {
		off[i] = math.Abs(a[i] - b[i])
	}
	ma, mb, difference := momentsOf(a, weights), momentsOf(b, weights), momentsOf(off, weights)
	d.RMS, d.Largest = difference.rms, difference.high
	d.Mean, d.RootMeanSquare, d.Lowest, d.Highest = math.Abs(ma.mean-mb.mean), math.Abs(ma.rms-mb.rms), math.Abs(ma.low-mb.low), math.Abs(ma.high-mb.high)
	low, high := min(ma.low, mb.low), max(ma.high, mb.high)
	if d.Still = high-low <= max(nothing, still*max(-low, high)); d.Still || d.RMS == 0 {
		return d
	}
	d.Relative = d.RMS / cmp.Or(max(mb.deviation, unmoved*mb.rms), unmoved*ma.rms)
	return d
}

// differing compares values at times t that are no Reals.
func differing(t, a, b, weights []float64) (d Distance) {
	first := [2]float64{math.NaN(), math.NaN()}
	for i := range a {
		if a[i] != b[i] {
			d.Relative += weights[i]
		}
		for k, v := range [][]float64{a, b} {
			if v[i] != v[0] && math.IsNaN(first[k]) {
				first[k] = t[i]
			}
		}
	}
	if d.Shift = math.Abs(first[0] - first[1]); math.IsNaN(d.Shift) {
		d.Shift = 0 // one of them never changes
	}
	d.Still = math.IsNaN(first[0]) && math.IsNaN(first[1]) && d.Relative == 0
	return d
}

// Worst returns the largest relative distance of the Real outputs that feed inputs, and its place; if none of them moves, that of
// other outputs that feed inputs; -1 if none of these moves either.
func (s *Samples) Worst(d []Distance) (worst float64, at int) {
	at = -1
	for k, x := range d {
		v := s.variables[k]
		if !v.fed || x.Still || at >= 0 && v.jumps && !s.variables[at].jumps {
			continue
		}
		if at < 0 || !(x.Relative <= worst) {
			worst, at = x.Relative, k
		}
	}
	return worst, at
}

// sum returns a checksum of all values.
func (s *Samples) sum() uint64 {
	h := fnv.New64a()
	for _, values := range slices.Concat([][]float64{s.T}, s.V) {
		_ = binary.Write(h, binary.LittleEndian, values)
	}
	return h.Sum64()
}

// Same reports whether two runs are equal to the bit over the first n samples; else the first variable and time where they differ.
func Same(a, b *Samples, n int) (differs string) {
	for i := range n {
		for k := range a.V {
			if math.Float64bits(a.V[k][i]) != math.Float64bits(b.V[k][i]) {
				return fmt.Sprintf("%s at %.6g s", a.Name(k), a.T[i])
			}
		}
	}
	return ""
}
