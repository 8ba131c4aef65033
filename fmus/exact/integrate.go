package exact

import (
	"fmt"
	"math"
)

// Coefficients of Dormand and Prince, A family of embedded Runge-Kutta formulae,
// J. Comput. Appl. Math. 6 (1980), Table 2. The last row is the solution of order
// 5; dpError is what it differs from that of order 4; dpNode are the times.
var (
	dpA = [6][6]float64{
		{1. / 5},
		{3. / 40, 9. / 40},
		{44. / 45, -56. / 15, 32. / 9},
		{19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
		{9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
		{35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
	}
	dpError = [7]float64{71. / 57600, 0, -71. / 16695, 71. / 1920, -17253. / 339200, 22. / 525, -1. / 40}
	dpNode  = [6]float64{1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1}
)

// increasing checks times of a solution that starts at 0.
func increasing(times []float64) error {
	last := 0.0
	for i, t := range times {
		if !(t >= last) || math.IsInf(t, 0) || (i > 0 && t == last) {
			return fmt.Errorf("time %d is %g after %g: times must be finite, not negative and increasing", i, t, last)
		}
		last = t
	}
	return nil
}

// integrate gives the solution [len(times)][n] of x' = right(t, x) with x(0) =
// start [n] at increasing times, by Dormand and Prince's method of order 5(4) with
// a tolerance of 1e-11 per step, relative and absolute.
func integrate(right func(t float64, x, dx []float64), start, times []float64) ([][]float64, error) {
	const tolerance, smallest = 1e-11, 1e-13
	n := len(start)
	x, next := append([]float64(nil), start...), make([]float64, n)
	var k [7][]float64
	for i := range k {
		k[i] = make([]float64, n)
	}
	out := make([][]float64, len(times))
	t, h := 0.0, 1e-6
	for i, end := range times {
		for t < end {
			step := min(h, end-t)
			right(t, x, k[0])
			for s := range dpA {
				for j := range next {
					next[j] = x[j]
					for r := 0; r <= s; r++ {
						next[j] += step * dpA[s][r] * k[r][j]
					}
				}
				right(t+dpNode[s]*step, next, k[s+1])
			}
			worst := 0.0
			for j := range next {
				e := 0.0
				for r := range k {
					e += step * dpError[r] * k[r][j]
				}
				// max keeps NaN.
				worst = max(worst, math.Abs(e)/(tolerance*(1+max(math.Abs(x[j]), math.Abs(next[j])))))
			}
			if math.IsNaN(worst) {
				return nil, fmt.Errorf("the solution is not finite after t = %g", t)
			}
			// The usual controller, order of the error estimate 5, with margins
			// 0.9, 0.2 and 5 (Hairer, Nørsett, Wanner I, II.4).
			factor := 5.0
			if worst > 0 {
				factor = min(5, max(0.2, 0.9*math.Pow(worst, -0.2)))
			}
			// Where the right side has an infinite slope, as a damper with n_d > 0.5 at
			// rest, the estimate has no order; a tiny step takes it across.
			if worst > 1 && step > smallest {
				h = step * factor
				continue
			}
			x, next = next, x
			switch {
			case step < h: // shortened to meet a time: says nothing against h
				t, h = end, max(h, step*factor)
			default:
				t, h = min(t+step, end), max(smallest, step*factor)
			}
		}
		out[i] = append([]float64(nil), x...)
	}
	return out, nil
}
