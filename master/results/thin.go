package results

import "math"

// Thinner makes few points of many, in one pass and with little memory: of the points
// in each of a number of equal spans of time it keeps the first, the least, the
// greatest and the last. A line through these is, drawn as wide as there are spans,
// the line through all points, pixel for pixel; no peak is lost.
//
// Points that are not finite are no points: the line breaks there, which an entry
// with the value NaN says.
//
// Source: U. Jugel, Z. Jerzak, G. Hackenbroich, V. Markl, M4: a visualization-oriented
// time series data aggregation, Proc. VLDB Endowment 7 (2014).
type Thinner struct {
	from, to float64
	spans    int

	T, V []float64 // of the spans that are done

	span int  // that of the present one
	any  bool // it has points
	gap  bool // the last one was not finite
	// Of the present span, in order of time: at most these four.
	first, least, greatest, last point
	given                        int // points in all
	bad                          int // of them not finite
}

type point struct {
	n    int // number of the point
	t, v float64
}

// NewThinner makes a thinner of that many spans of the time between from and to.
func NewThinner(from, to float64, spans int) *Thinner {
	return &Thinner{from: from, to: to, spans: max(spans, 1)}
}

// Add takes the next point. Times do not decrease.
func (h *Thinner) Add(t, v float64) {
	h.given++
	if v-v != 0 {
		h.bad++
		if !h.gap && h.given > 1 {
			h.close()
			h.T, h.V = append(h.T, t), append(h.V, math.NaN())
		}
		h.gap = true
		return
	}
	h.gap = false
	span := 0
	if h.to > h.from {
		span = int(min(max((t-h.from)/(h.to-h.from), 0), 1) * float64(h.spans))
	}
	if h.any && span != h.span {
		h.close()
	}
	p := point{h.given, t, v}
	if !h.any {
		h.any, h.span = true, span
		h.first, h.least, h.greatest, h.last = p, p, p, p
		return
	}
	if v < h.least.v {
		h.least = p
	}
	if v > h.greatest.v {
		h.greatest = p
	}
	h.last = p
}

// close ends the present span.
func (h *Thinner) close() {
	h.T, h.V = h.open(h.T, h.V)
	h.any = false
}

// Open appends the points of the span that is not done yet.
func (h *Thinner) Open(t, v []float64) ([]float64, []float64) { return h.open(t, v) }

func (h *Thinner) open(t, v []float64) ([]float64, []float64) {
	if !h.any {
		return t, v
	}
	a, b := h.least, h.greatest
	if a.n > b.n {
		a, b = b, a
	}
	before := 0
	for _, p := range [...]point{h.first, a, b, h.last} {
		if p.n > before {
			t, v = append(t, p.t), append(v, p.v)
			before = p.n
		}
	}
	return t, v
}

// Points gives all points so far, in fresh slices.
func (h *Thinner) Points() (t, v []float64) {
	return h.open(append([]float64(nil), h.T...), append([]float64(nil), h.V...))
}

// Given gives the number of points taken, and of those that were not finite.
func (h *Thinner) Given() (points, bad int) { return h.given, h.bad }

// Thin makes few points of a column. Up to 4·spans points stay as they are.
func Thin(times, values []float64, spans int) (t, v []float64) {
	if len(times) == 0 {
		return nil, nil
	}
	if len(times) <= 4*spans {
		spans = math.MaxInt32 // a point each
	}
	h := NewThinner(times[0], times[len(times)-1], spans)
	for i := range times {
		h.Add(times[i], values[i])
	}
	return h.Points()
}
