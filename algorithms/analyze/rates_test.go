package analyze

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/scan"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/test/long"
)

// ratedPart is one side of haid's oscillator, written out for the propagation of the tests: x' = A x + B u,
// y = C x + D u, u being the outputs of the other side.
type ratedPart struct {
	a, b, c, d  [][]float64
	steps, over int
}

// stepped returns the matrix of a step of size h on x, u and u'.
func (p *ratedPart) stepped(h float64) *mat.Dense {
	n, m := len(p.a), len(p.b[0])
	block := mat.NewDense(n+2*m, n+2*m, nil)
	for i := range n {
		for j := range n {
			block.Set(i, j, h*p.a[i][j])
		}
		for j := range m {
			block.Set(i, n+j, h*p.b[i][j])
		}
	}
	for j := range m {
		block.Set(n+j, n+m+j, h)
	}
	var e mat.Dense
	e.Exp(block)
	return &e
}

// ratedRadius returns the growth per macro step of explicit coupling of two components with rates, by the matrix over a
// period, of the states and the outputs at the points of the polynomials. first is the component that a Gauss–Seidel
// scheme steps first, -1 = Jacobi.
func ratedRadius(parts [2]ratedPart, order, first int, H float64) float64 {
	period := num.LCM(parts[0].over, parts[1].over)
	lags := order*period + 1
	var e [2]*mat.Dense
	var ny [2]int
	for i := range parts {
		e[i] = parts[i].stepped(H * float64(parts[i].over) / float64(parts[i].steps))
		ny[i] = len(parts[i].c)
	}
	n := 4 + lags*(ny[0]+ny[1])
	m := mat.NewDense(n, n, nil)
	for column := range n {
		z := make([]float64, n)
		z[column] = 1
		x := [2][]float64{append([]float64(nil), z[:2]...), append([]float64(nil), z[2:4]...)}
		y := [2]map[int][]float64{{}, {}} // by macro step
		at := 4
		for lag := range lags {
			for i := range parts {
				y[i][-lag] = z[at : at+ny[i]]
				at += ny[i]
			}
		}
		for k := range period {
			turns := []int{0, 1}
			if first == 1 || parts[0].over > 1 {
				turns = []int{1, 0} // a slow one is last
			}
			for _, i := range turns {
				p := parts[i]
				if (k+1)%p.over != 0 {
					y[i][k+1] = y[i][k]
					continue
				}
				// The polynomial of the inputs in macro steps since newest.
				newest, value, slope := k/period*period, []float64(nil), make([]float64, ny[1-i])
				value = y[1-i][newest]
				if order > 0 {
					for j, v := range y[1-i][newest-period] {
						slope[j] = (value[j] - v) / float64(period)
					}
				}
				if first == 1-i && p.over == 1 && parts[1-i].over == 1 {
					value = y[1-i][k+1] // order 0 alone
				}
				end := make([]float64, ny[1-i])
				for s := range p.steps {
					begin := float64(k+1-p.over-newest) + float64(s)/float64(p.steps)
					length := float64(p.over) / float64(p.steps)
					next := make([]float64, 2)
					for r := range next {
						next[r] = e[i].At(r, 0)*x[i][0] + e[i].At(r, 1)*x[i][1]
						for j := range value {
							next[r] += e[i].At(r, 2+j)*(value[j]+begin*slope[j]) + e[i].At(r, 2+len(value)+j)*slope[j]/H
							end[j] = value[j] + (begin+length)*slope[j]
						}
					}
					x[i] = next
				}
				out := make([]float64, ny[i])
				for o := range out {
					out[o] = p.c[o][0]*x[i][0] + p.c[o][1]*x[i][1]
					for j := range end {
						if p.d != nil {
							out[o] += p.d[o][j] * end[j]
						}
					}
				}
				y[i][k+1] = out
			}
		}
		z = append(append([]float64(nil), x[0]...), x[1]...)
		for lag := range lags {
			z = append(append(z, y[0][period-lag]...), y[1][period-lag]...)
		}
		m.SetCol(column, z)
	}
	return math.Pow(analyzetest.Radius(m), 1/float64(period))
}

// rated is a strategy with rates on haid's oscillator.
type rated struct {
	rates  []algorithms.Rate
	preset string
	order  int
	H      float64 // middle of the scan
}

func (c rated) String() string {
	return fmt.Sprintf("%s of order %d, %s", c.preset, c.order, strings.Join((&twin.Scheme{Rates: c.rates}).RateTexts(), " "))
}

func (c rated) parts() (parts [2]ratedPart) {
	o := exact.DefaultHaid()
	parts[0] = ratedPart{a: [][]float64{{0, 1}, {-o.C1 / o.M1, -o.D1 / o.M1}}, b: [][]float64{{0}, {1 / o.M1}}, c: [][]float64{{1, 0}, {0, 1}}}
	parts[1] = ratedPart{a: [][]float64{{0, 1}, {-(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2}},
		b: [][]float64{{0, 0}, {o.CK / o.M2, o.DK / o.M2}},
		c: [][]float64{{o.CK, o.DK}}, d: [][]float64{{-o.CK, -o.DK}}}
	for i, name := range []string{"one", "two"} {
		parts[i].steps, parts[i].over = (&twin.Scheme{Rates: c.rates}).Rate(name)
	}
	return parts
}

var ratedCases = []rated{
	{[]algorithms.Rate{{Component: "one", Steps: 2, Over: 1}}, "explicit", 0, 2e-3},
	{[]algorithms.Rate{{Component: "two", Steps: 10, Over: 1}}, "explicit", 0, 2e-3},
	{[]algorithms.Rate{{Component: "one", Steps: 10, Over: 1}}, "explicit", 1, 2e-3},
	{[]algorithms.Rate{{Component: "two", Steps: 1, Over: 3}}, "explicit", 0, 5e-4},
	{[]algorithms.Rate{{Component: "one", Steps: 1, Over: 3}}, "explicit", 1, 5e-4},
	{[]algorithms.Rate{{Component: "one", Steps: 2, Over: 1}, {Component: "two", Steps: 1, Over: 3}}, "explicit", 1, 5e-4},
	{[]algorithms.Rate{{Component: "one", Steps: 1, Over: 2}, {Component: "two", Steps: 1, Over: 3}}, "explicit", 0, 2e-4},
	{[]algorithms.Rate{{Component: "one", Steps: 1, Over: 2}, {Component: "two", Steps: 1, Over: 3}}, "explicit", 1, 2e-4},
	{[]algorithms.Rate{{Component: "two", Steps: 2, Over: 1}}, "gauss-seidel", 0, 4e-3},
	{[]algorithms.Rate{{Component: "one", Steps: 1, Over: 3}}, "gauss-seidel", 0, 5e-4},
}

// The limits with rates are those of an independent propagation matrix over the period.
func TestRates(t *testing.T) {
	cases := ratedCases
	if !long.On {
		cases = []rated{cases[5], cases[9]} // both rates; Gauss–Seidel
	}
	for _, c := range cases {
		r := analyse(t, analyzetest.Haid(t, exact.DefaultHaid(), nil),
			Options{Step: c.H, Order: c.order, From: c.H / 2, To: 4 * c.H, Rates: c.rates})
		s := r.strategyOf(c.preset, c.order)
		first := -1
		if c.preset == "gauss-seidel" {
			first = analyzetest.Haid(t, exact.DefaultHaid(), nil).SequenceFromGraph()[0]
		}
		radius := func(h float64) float64 { return ratedRadius(c.parts(), c.order, first, h) }
		for _, point := range s.Points {
			if want := radius(point.Step); !(math.Abs(point.Radius-want) <= 1e-6*want) {
				t.Errorf("%v: radius %.9f at %g s, want %.9f", c, point.Radius, point.Step, want)
			}
		}
		checkLimit(t, c.String(), s, radius)
	}
}

// Inputs of components with neither input derivatives nor variable steps are held at every order, as in a run.
func TestHeldInputs(t *testing.T) {
	fixed := func(c *master.Caps) { c.VariableStep, c.InputDerivatives = false, false }
	all := [][]algorithms.Rate{nil, {{Component: "one", Steps: 1, Over: 3}}, {{Component: "two", Steps: 4, Over: 1}}}
	if !long.On {
		all = all[1:2]
	}
	for _, rates := range all {
		c := rated{rates: rates, preset: "explicit", order: 1}
		r := analyse(t, analyzetest.Haid(t, exact.DefaultHaid(), analyzetest.With(fixed)),
			Options{Step: 5e-4, Order: c.order, From: 4e-4, To: 1e-3, Stop: 0.1, Error: 0.01, Rates: rates})
		s := r.strategyOf(c.preset, c.order)
		if len(s.Points) != scan.Points || len(s.Forecasts) == 0 {
			t.Fatalf("%v: %d points, %d forecasts, %s, %s", c, len(s.Points), len(s.Forecasts), s.Why, r.WhyNoError)
		}
		for _, point := range s.Points {
			if want := ratedRadius(c.parts(), 0, -1, point.Step); !(math.Abs(point.Radius-want) <= 1e-6*want) {
				t.Errorf("%v: radius %.9f at %g s, want %.9f", c, point.Radius, point.Step, want)
			}
		}
		if plain := r.strategyOf(c.preset, 0); rates == nil && math.Abs(plain.Forecasts[0].Error-s.Forecasts[0].Error) > 1e-9 {
			t.Errorf("the error is %g with order 0, and %g with order 1", plain.Forecasts[0].Error, s.Forecasts[0].Error)
		}
	}
}

// Rates that a run refuses are errors, rates beyond the limits of the analysis are unknown with the reason, and a step
// over several macro steps has no local error.
func testRatesUnknown(t *testing.T) {
	o := Options{Step: 1e-4, From: 1e-4, To: 2e-4, Stop: 0.1, Order: 1, Error: 0.01,
		Rates: []algorithms.Rate{{Component: "three", Steps: 2, Over: 1}}}
	if _, err := Run(t.Context(), analyzetest.Haid(t, exact.DefaultHaid(), nil), o); err == nil ||
		!strings.Contains(err.Error(), `names "three", which is not a component`) {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		rates      []algorithms.Rate
		why, local string
	}{
		{[]algorithms.Rate{{Component: "one", Steps: 5000, Over: 1}}, "more than 1000 are not analysed", ""},
		{[]algorithms.Rate{{Component: "one", Steps: 1, Over: 997}, {Component: "two", Steps: 1, Over: 991}},
			"together after more than 1000 macro steps", ""},
		{[]algorithms.Rate{{Component: "one", Steps: 1, Over: 2}}, "", "one step over 2 macro steps"},
		{[]algorithms.Rate{{Component: "one", Steps: 3, Over: 1}}, "", "do not divide"},
		{[]algorithms.Rate{{Component: "one", Steps: 4, Over: 1}, {Component: "two", Steps: 1, Over: 1}}, "", ""},
	} {
		if c.why == "" && c.local != "do not divide" && !long.On {
			continue
		}
		o.Rates = c.rates
		r := analyse(t, analyzetest.Haid(t, exact.DefaultHaid(), nil), o)
		s := r.strategyOf("explicit", 1)
		if (s.Points == nil) != (c.why != "") || !strings.Contains(s.Why, c.why) ||
			(s.Local == nil) != (c.why+c.local != "") || !strings.Contains(s.WhyNoLocal, c.local) {
			t.Errorf("%v: %d points, %q, %+v, %q", c.rates, len(s.Points), s.Why, s.Local, s.WhyNoLocal)
		}
		for _, v := range r.Varying {
			if implicit := strings.HasPrefix(v.Preset, "im-"); (v.Settled == nil) != (v.Why != "") ||
				v.Settled == nil && (implicit || c.why == "" && !strings.Contains(v.Why, "cannot repeat it")) {
				t.Errorf("%v: %+v", c.rates, v)
			}
		}
		if len(s.Rates) == 0 || len(r.strategyOf("implicit", 1).Rates) > 0 || r.strategyOf("implicit", 1).Points == nil {
			t.Errorf("%v: rates of explicit %v, of implicit %v", c.rates, s.Rates, r.strategyOf("implicit", 1).Rates)
		}
	}
}
