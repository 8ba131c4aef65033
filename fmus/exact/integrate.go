package exact

import (
	"fmt"
	"math"
)

// Coefficients of Dormand and Prince, A family of embedded Runge-Kutta formulae,
// J. Comput. Appl. Math. 6 (1980), Table 2. The last row is the solution of order
// 5; dpError is its difference from that of order 4; dpNode are the times.
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

// increasing checks that times start at 0 or later and increase.
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

// tolerance, relative and absolute, of the error of a step.
const tolerance = 1e-11

func evenTolerance(n int) []float64 {
	atol := make([]float64, n)
	for i := range atol {
		atol[i] = tolerance
	}
	return atol
}

// integrate solves x' = f(t, x) from x at t = 0 by the method of dpA and returns x at
// the times. The error of a step in x[i] is kept below atol[i] + rtol |x[i]|.
func integrate(f func(t float64, x, dx []float64), x, times []float64, rtol float64, atol []float64) ([][]float64, error) {
	const smallest = 1e-13 // s
	if err := increasing(times); err != nil {
		return nil, err
	}
	s := stepper{f: f, x: append([]float64(nil), x...), next: make([]float64, len(x)), rtol: rtol, atol: atol}
	for i := range s.k {
		s.k[i] = make([]float64, len(x))
	}
	out := make([][]float64, len(times))
	t, h := 0.0, 1e-9
	f(0, s.x, s.k[0])
	for i, end := range times {
		for t < end {
			step := min(h, end-t)
			if !(t+step > t) {
				return nil, fmt.Errorf("no step is small enough at t = %g", t)
			}
			worst := s.try(t, step)
			// The usual controller, order of the error estimate 5, with margins
			// 0.9, 0.2 and 5 (Hairer, Nørsett, Wanner I, II.4).
			diverges := math.IsNaN(worst) || math.IsInf(worst, 0)
			factor := 5.0
			switch {
			case diverges:
				factor = 0.1
			case worst > 0:
				factor = min(5, max(0.2, 0.9*math.Pow(worst, -0.2)))
			}
			// If the right side has an infinite slope, such as that of a damper with n_d > 0.5 at
			// rest, the estimate has no order; the smallest step is then accepted.
			if !(worst <= 1) && (step > smallest || diverges) {
				h = step * factor
				continue
			}
			s.x, s.next = s.next, s.x
			s.k[0], s.k[6] = s.k[6], s.k[0] // first same as last
			if step < h {
				t, h = end, max(h, step*factor)
			} else {
				t, h = min(t+step, end), max(smallest, step*factor)
			}
		}
		out[i] = append([]float64(nil), s.x...)
	}
	return out, nil
}

// stepper makes single steps of the method.
type stepper struct {
	f       func(t float64, x, dx []float64)
	x, next []float64    // states before and after the step
	k       [7][]float64 // derivatives; k[0] is that before the step
	rtol    float64
	atol    []float64
}

// try computes next after a step and returns the largest error relative to the tolerances; NaN if the step diverges.
func (s *stepper) try(t, step float64) (worst float64) {
	for i, row := range dpA {
		for j := range s.next {
			sum := 0.0
			for r := 0; r <= i; r++ {
				sum += row[r] * s.k[r][j]
			}
			s.next[j] = s.x[j] + step*sum
		}
		s.f(t+dpNode[i]*step, s.next, s.k[i+1])
	}
	for j := range s.next {
		e := 0.0
		for r, c := range dpError {
			e += c * s.k[r][j]
		}
		e = math.Abs(step*e) / (s.atol[j] + s.rtol*max(math.Abs(s.x[j]), math.Abs(s.next[j])))
		if math.IsNaN(e) {
			return e
		}
		worst = max(worst, e)
	}
	return worst
}
