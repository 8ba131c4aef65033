package judged

import (
	"fmt"
	"math"
)

// flow is a system of ordinary differential equations with modes, solved from time 0.
type flow struct {
	start  []float64
	mode   int
	rates  func(mode int, t float64, x, dx []float64)
	output func(mode int, t float64, x []float64) []float64
	// inside is positive while the mode lasts; next returns the mode after it, and may change x. nil = one mode.
	inside func(mode int, t float64, x []float64) float64
	next   func(mode int, t float64, x []float64) int
	most   float64 // longest step, s; 0 = no limit
}

// Coefficients of Dormand and Prince, A family of embedded Runge-Kutta formulae, J. Comput. Appl. Math. 6 (1980), Table 2:
// the last row is the solution of order 5, dpError its difference from that of order 4.
var (
	dpNode = [7]float64{0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1}
	dpA    = [7][]float64{nil,
		{1. / 5},
		{3. / 40, 9. / 40},
		{44. / 45, -56. / 15, 32. / 9},
		{19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
		{9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
		{35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
	}
	dpError = [7]float64{71. / 57600, 0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525, -1. / 40}
)

// step returns the state after a step, and the largest error of it relative to 1 + |x|.
func (f *flow) step(mode int, t, h float64, x []float64) (next []float64, largest float64) {
	var k [7][]float64
	for s := range k {
		next = append([]float64(nil), x...)
		for r, a := range dpA[s] {
			for i := range next {
				next[i] += h * a * k[r][i]
			}
		}
		k[s] = make([]float64, len(x))
		f.rates(mode, t+dpNode[s]*h, next, k[s])
	}
	for i := range x {
		var e float64
		for s, w := range dpError {
			e += h * w * k[s][i]
		}
		largest = math.Max(largest, math.Abs(e)/(1+math.Abs(next[i])))
	}
	return next, largest
}

// solve returns the outputs at the times.
func (f *flow) solve(times []float64) ([][]float64, error) {
	const tolerance, smallest = 1e-12, 1e-13 // of a step: relative error, s
	x, mode, t, h := append([]float64(nil), f.start...), f.mode, 0.0, 1e-4
	most := f.most
	if most == 0 {
		most = math.Inf(1)
	}
	var out [][]float64
	for _, until := range times {
		if !(until >= t) || math.IsInf(until, 0) {
			return nil, fmt.Errorf("time %g after %g: times must not decrease", until, t)
		}
		for t < until {
			taken := min(h, most, until-t)
			next, e := f.step(mode, t, taken, x)
			if factor := 0.9 * math.Pow(tolerance/math.Max(e, 1e-20), 0.2); !(e <= tolerance) {
				if h = taken * math.Max(factor, 0.1); !(h > smallest) {
					return nil, fmt.Errorf("at %g s the steps become too small", t)
				}
				continue
			} else if factor < 1 || taken == h {
				h = min(taken*min(factor, 4), most)
			}
			ended := f.inside != nil && f.inside(mode, t+taken, next) < 0
			if ended {
				taken, next = f.locate(mode, t, taken, x)
			}
			if x = next; taken == until-t {
				t = until
			} else {
				t += taken
			}
			if ended {
				mode = f.next(mode, t, x)
			}
		}
		out = append(out, f.output(mode, t, x))
	}
	return out, nil
}

// locate returns the shortest step that leaves the mode, and the state after it.
func (f *flow) locate(mode int, t, h float64, x []float64) (taken float64, next []float64) {
	from, to := 0.0, h
	for range 50 {
		middle := (from + to) / 2
		if next, _ = f.step(mode, t, middle, x); f.inside(mode, t+middle, next) < 0 {
			to = middle
		} else {
			from = middle
		}
	}
	next, _ = f.step(mode, t, to, x)
	return to, next
}
