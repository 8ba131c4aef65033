package results

import "math"

// Thinner reduces the number of points of a line, in one pass and with little memory. It divides
// time into equal spans and keeps the first, least, greatest and last point of each. On a screen
// with no more pixels than spans, the line through these points is identical to the line through
// all points; no peak is lost. When there are too many spans, pairs of spans are merged.
//
// Values that are not finite break the line, which is represented by a point with the value NaN.
// A break within a span is lost.
//
// Source: U. Jugel, Z. Jerzak, G. Hackenbroich, V. Markl, M4: a visualization-oriented
// time series data aggregation, Proc. VLDB Endowment 7 (2014). The doubling is ours.
type Thinner struct {
	most   int // maximum number of spans
	start  float64
	width  float64 // of a span; 0 = all times so far are equal
	spans  []span
	gap    bool // the last point was not finite
	given  int
	bad    int
	merges int
}

type span struct {
	at                           int64 // number of the span from the start
	gap                          bool  // the line breaks before it
	first, least, greatest, last point
}

type point struct {
	n    int // number of the point
	t, v float64
}

// NewThinner returns a thinner with at most so many spans, of at most four points each.
func NewThinner(spans int) *Thinner { return &Thinner{most: max(spans, 1)} }

// finest is the initial length of spans relative to the first step.
const finest = 1.0 / 1024

// Add adds the next point. Times must not decrease.
func (h *Thinner) Add(t, v float64) {
	h.given++
	if v-v != 0 {
		h.bad++
		h.gap = true
		return
	}
	if len(h.spans) == 0 {
		h.start = t
	}
	if h.width == 0 && t > h.start {
		h.width = max((t-h.start)*finest, 0x1p-1000)
	}
	p := point{h.given, t, v}
	at := h.number(t)
	if n := len(h.spans); n > 0 && h.spans[n-1].at >= at {
		h.spans[n-1].add(p)
		h.gap = false
		return
	}
	h.spans = append(h.spans, span{at: at, gap: h.gap && len(h.spans) > 0, first: p, least: p, greatest: p, last: p})
	h.gap = false
	for len(h.spans) > h.most {
		h.double()
	}
}

func (h *Thinner) number(t float64) int64 {
	if h.width == 0 {
		return 0
	}
	return int64(min((t-h.start)/h.width, 1<<62))
}

func (s *span) add(p point) {
	if p.v < s.least.v {
		s.least = p
	}
	if p.v > s.greatest.v {
		s.greatest = p
	}
	s.last = p
}

// double doubles the length of the spans.
func (h *Thinner) double() {
	h.width *= 2
	h.merges++
	kept := h.spans[:0]
	for _, s := range h.spans {
		s.at /= 2
		if n := len(kept); n > 0 && kept[n-1].at == s.at {
			k := &kept[n-1]
			if s.least.v < k.least.v {
				k.least = s.least
			}
			if s.greatest.v > k.greatest.v {
				k.greatest = s.greatest
			}
			k.last = s.last
			continue
		}
		kept = append(kept, s)
	}
	h.spans = kept
}

// Points appends the points so far to t and v.
func (h *Thinner) Points(t, v []float64) ([]float64, []float64) {
	return h.since(0, t, v)
}

// since appends the points of the spans from number from on.
func (h *Thinner) since(from int, t, v []float64) ([]float64, []float64) {
	for _, s := range h.spans[from:] {
		if s.gap {
			t, v = append(t, s.first.t), append(v, math.NaN())
		}
		a, b := s.least, s.greatest
		if a.n > b.n {
			a, b = b, a
		}
		before := 0
		for _, p := range [...]point{s.first, a, b, s.last} {
			if p.n > before {
				t, v = append(t, p.t), append(v, p.v)
				before = p.n
			}
		}
	}
	return t, v
}

// Known is the state of a follower of a Thinner. In the zero value, it knows no points.
type Known struct{ merges, spans, points, given int }

// News returns the changes for a follower since state k, and updates k: the follower keeps its
// first keep points and appends those that News appends to t and v. any reports whether there are
// changes.
func (h *Thinner) News(k *Known, t, v []float64) (keep int, nt, nv []float64, any bool) {
	if k.given == h.given {
		return k.points, t, v, false
	}
	if k.merges != h.merges {
		*k = Known{merges: h.merges}
	}
	keep = k.points
	done := max(len(h.spans)-1, k.spans) // the last one may still change
	one := Thinner{spans: h.spans[:done]}
	before := len(t)
	t, v = one.since(k.spans, t, v)
	k.spans, k.points, k.given = done, keep+len(t)-before, h.given
	t, v = h.since(done, t, v)
	return keep, t, v, true
}

// Given returns the number of added points, and of those that were not finite.
func (h *Thinner) Given() (points, bad int) { return h.given, h.bad }
