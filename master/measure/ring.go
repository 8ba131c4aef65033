package measure

import (
	"errors"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// ring is how signals die out after kicks.
type ring struct {
	t []float64     // s, since the end of the kicks, even
	d [][][]float64 // by kick and signal
}

const (
	markers   = 40    // samples from which poles follow
	mostPoles = 8     // a pair counts twice
	mostFit   = 500   // points at which a fit is checked
	misfit    = 0.02  // largest rms of what poles do not explain, relative to the signals
	goesOn    = 0.1   // the same beyond the window that they follow from
	faint     = 1e-3  // least rms of the signals in the part that is explained, relative to all
	digits    = 1e-12 // least singular value, relative to the largest
	neutral   = 0.05  // largest change of a motion that stays, in a window
)

// poles returns the poles, in 1/s, of the slowest motion that explains the signals in a window from the kicks on, one of each pair, and the length of the
// window in s. Windows become shorter until there are poles, and others than that of a motion that stays.
func (r *ring) poles() (poles []complex128, window float64, err error) {
	for _, kick := range r.d {
		for _, d := range kick {
			if sum := floats.Sum(d); sum-sum != 0 {
				return nil, 0, errors.New("a kicked run overflows")
			}
		}
	}
	span := r.t[len(r.t)-1]
	for w := span; w*float64(len(r.t)-1) >= (markers-1)*span; w /= 2 {
		found := r.realize(w)
		if found == nil || poles != nil && stay(found, w) {
			continue
		}
		if !r.lasts(found, w) {
			continue
		}
		if poles, window = found, w; !stay(found, w) {
			break
		}
	}
	if poles == nil {
		return nil, 0, errors.New("what kicks change is not the sum of a few modes: the system is not linear about its course, or noise hides its motion")
	}
	return poles, window, nil
}

// lasts reports whether poles explain the signals beyond a window, until their motion is over.
func (r *ring) lasts(poles []complex128, window float64) bool {
	span := r.t[len(r.t)-1]
	for to := window; to < span && !diesOut(poles, to); to *= 2 {
		if _, rest := r.fit(poles, window/10, min(2*to, span)); rest > goesOn {
			return false
		}
	}
	return true
}

// diesOut reports whether the motion of poles is over at the end of a window, or stays.
func diesOut(poles []complex128, window float64) bool {
	for _, p := range poles {
		if cmplx.Abs(p)*window > neutral && real(p)*window > -1 {
			return false
		}
	}
	return true
}

// slowest returns the pole that is slowest of those that neither stay nor are faint, and the kick that it follows most; -1 = none.
func (r *ring) slowest(poles []complex128, window float64) (at, kick int) {
	amplitudes, _ := r.fit(poles, window/10, window)
	sizes, kicks := make([]float64, len(poles)), make([]int, len(poles))
	for j, p := range poles {
		for k, signals := range amplitudes {
			for _, a := range signals {
				if size := cmplx.Abs(a[j]) * math.Exp(real(p)*window/10); size > sizes[j] {
					sizes[j], kicks[j] = size, k
				}
			}
		}
	}
	at = -1
	for j, p := range poles {
		if !stay(poles[j:j+1], window) && sizes[j] >= seen*slices.Max(sizes) && (at < 0 || real(p) > real(poles[at])) {
			at, kick = j, kicks[j]
		}
	}
	return at, kick
}

// stay reports whether poles are those of a motion that stays.
func stay(poles []complex128, window float64) bool {
	for _, p := range poles {
		if cmplx.Abs(p)*window > neutral {
			return false
		}
	}
	return true
}

// realize returns the poles that explain the signals in a window, one of each pair; nil = there are none. Each further pole at least halves what is
// not explained.
//
// Source: J. Juang, R. Pappa, An eigensystem realization algorithm for modal parameter identification and model reduction, J. Guidance 8 (1985).
func (r *ring) realize(window float64) []complex128 {
	const rows = markers / 2
	kicks, signals := len(r.d), len(r.d[0])
	spacing, step := r.t[1]-r.t[0], window/(markers-1)
	now, next := mat.NewDense(rows*signals, rows*kicks, nil), mat.NewDense(rows*signals, rows*kicks, nil)
	stride := int(step / spacing)
	step = float64(stride) * spacing
	for k := range kicks {
		for s, d := range r.d[k] {
			for i := range rows {
				for j := range rows {
					now.Set(i*signals+s, j*kicks+k, d[(i+j)*stride])
					next.Set(i*signals+s, j*kicks+k, d[(i+j+1)*stride])
				}
			}
		}
	}
	var svd mat.SVD
	if !svd.Factorize(now, mat.SVDThin) {
		return nil
	}
	var u, v, left, a mat.Dense
	svd.UTo(&u)
	svd.VTo(&v)
	sigma := svd.Values(nil)
	left.Mul(u.T(), next)
	a.Mul(&left, &v)
	var best []complex128
	least := 2 * misfit
	for n := 1; n <= min(mostPoles, len(sigma)) && sigma[n-1] > digits*sigma[0]; n++ {
		m := mat.NewDense(n, n, nil)
		for i := range n {
			for j := range n {
				m.Set(i, j, a.At(i, j)/math.Sqrt(sigma[i]*sigma[j]))
			}
		}
		var eigen mat.Eigen
		if !eigen.Factorize(m, mat.EigenNone) {
			continue
		}
		var poles []complex128
		for _, z := range eigen.Values(nil) {
			if imag(z) >= 0 && z != 0 {
				poles = append(poles, cmplx.Log(z)/complex(step, 0))
			}
		}
		if len(poles) == 0 {
			continue
		}
		if _, rest := r.fit(poles, window/10, window); rest <= least/2 {
			best, least = poles, rest
		}
	}
	return best
}

// fit returns the amplitudes of poles in the signals at the end of the kicks, by kick, signal and pole, and the rms of what they do not
// explain in a window, relative to that of the signals; +Inf if nothing is left there. A signal is the real part of the sum of its amplitudes times exp(p t).
func (r *ring) fit(poles []complex128, from, to float64) (amplitudes [][][]complex128, rest float64) {
	spacing := r.t[1] - r.t[0]
	first, last := int(from/spacing), min(int(to/spacing+0.5), len(r.t)-1)
	var at []int
	for i := range min(last-first+1, mostFit) {
		at = append(at, first+i)
		if last-first >= mostFit { // not evenly, so that no swing hides between points
			at[i] = first + int(math.Mod(float64(i)*math.Phi, 1)*float64(last-first+1))
		}
	}
	kicks, signals := len(r.d), len(r.d[0])
	basis, values := mat.NewDense(len(at), 2*len(poles), nil), mat.NewDense(len(at), kicks*signals, nil)
	all, late := 0.0, 0.0
	for i, n := range at {
		for j, p := range poles {
			e := cmplx.Exp(p * complex(r.t[n], 0))
			basis.Set(i, 2*j, real(e))
			basis.Set(i, 2*j+1, -imag(e))
		}
		for k := range kicks {
			for s := range signals {
				values.Set(i, k*signals+s, r.d[k][s][n])
				late = math.Hypot(late, r.d[k][s][n])
			}
		}
	}
	for k := range kicks {
		for s := range signals {
			for _, x := range r.d[k][s][:last+1] {
				all = math.Hypot(all, x)
			}
		}
	}
	if !(late/math.Sqrt(float64(len(at))) > faint*all/math.Sqrt(float64(last+1))) {
		return nil, math.Inf(1)
	}
	var svd mat.SVD // the sine of a real pole is zero
	if !svd.Factorize(basis, mat.SVDThin) {
		return nil, math.Inf(1)
	}
	var x, unexplained mat.Dense
	svd.SolveTo(&x, values, max(1, svd.Rank(digits)))
	unexplained.Mul(basis, &x)
	unexplained.Sub(&unexplained, values)
	for k := range kicks {
		amplitudes = append(amplitudes, make([][]complex128, signals))
		for s := range signals {
			for j := range poles {
				amplitudes[k][s] = append(amplitudes[k][s], complex(x.At(2*j, k*signals+s), x.At(2*j+1, k*signals+s)))
			}
		}
	}
	return amplitudes, mat.Norm(&unexplained, 2) / late
}
