package num

import "math"

// WRMS returns the weighted root mean square norm, meyer (25), of e with weights w; 0 if e is empty.
// An entry 0 counts as 0 even if its weight is 0.
func WRMS(e, w []float64) float64 {
	if len(e) == 0 {
		return 0
	}
	sum := 0.0
	for i, v := range e {
		if v == 0 {
			continue
		}
		q := v / w[i]
		sum += float64(q * q)
	}
	return math.Sqrt(sum / float64(len(e)))
}

// NewShape returns the coefficients p of
//
//	L^j(t) = Π_{i<j} (t − T_{N−i}) / (T_{N+1} − T_{N−i}) = Σ p_m s^m, s = (t − start)/H
//
// on T_{N+1} = start + H, T_N = times[0], T_{N−1} = times[1], …. L^j is 0 at j points and 1 at the
// end of the macro step.
func NewShape(j int, start, H float64, times []float64) (p Shape) {
	p[0] = 1
	for i := range j {
		a := (start - times[i]) / H
		for m := i + 1; m >= 0; m-- {
			v := float64(a * p[m])
			if m > 0 {
				v += p[m-1]
			}
			p[m] = v / (1 + a)
		}
	}
	return p
}

// Shape holds the coefficients of a polynomial in s; those above its degree are 0.
type Shape [MaxNodes + 2]float64

// ErrorConstants returns C_pos^j and C_vel^j, meyer (17) and (20), for L^j ([NewShape]) on steps
// that start at times[0].
func ErrorConstants(j int, H float64, times []float64) (pos, vel float64) {
	p := NewShape(j, times[0], H, times)
	for m := range j + 1 {
		vel += p[m] / float64(m+1)
		pos += p[m] / float64((m+1)*(m+2))
	}
	return pos, vel
}

// History holds values [points][entries] at past points, newest first.
type History struct {
	Times  []float64
	Values [][]float64
}

// Holds reports whether there are enough points for a polynomial of degree j.
func (h History) Holds(j int) bool { return len(h.Times) > j }

// ScaledDerivative returns SDN(j), meyer 5.2.2: the norm of H^j P^(j) over some entries with
// weights w. P is the polynomial of degree j through the newest points.
func (h History) ScaledDerivative(j int, H float64, entries []int, w, scratch []float64) float64 {
	scale := 1.0
	for i := range j {
		scale *= H * float64(i+1)
	}
	return h.differences(j, scale, entries, w, scratch)
}

// APriori returns the norm of the a-priori estimate, meyer (31), for the next step of size H with
// polynomials of degree k.
func (h History) APriori(k int, H float64, entries []int, w, scratch []float64) float64 {
	scale := 1.0
	for i := range k + 1 {
		scale *= h.Times[0] + H - h.Times[i]
	}
	return h.differences(k+1, scale, entries, w, scratch)
}

// differences returns the norm of scale times the divided differences of order j, which are the j-th
// derivatives divided by j!.
func (h History) differences(j int, scale float64, entries []int, w, scratch []float64) float64 {
	var c [MaxNodes + 2]float64
	for i := range j + 1 {
		c[i] = scale
		for m := range j + 1 {
			if m != i {
				c[i] /= h.Times[i] - h.Times[m]
			}
		}
	}
	for n, u := range entries {
		scratch[n] = 0
		for i := range j + 1 {
			scratch[n] += float64(c[i] * h.Values[i][u])
		}
	}
	return WRMS(scratch[:len(entries)], w)
}
