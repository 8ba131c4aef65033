package solver

import (
	"errors"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
)

// newtonRefresh is the contraction above which the Jacobian is refreshed. Each
// correction costs a macro step of every subsystem; at 0.1 it gains one digit,
// so that a correction of 1 in the weights takes six more to 1e-6, and two or
// three with a fresh Jacobian, which differences give for about one macro step
// per input of a subsystem. E. Hairer, G. Wanner, Solving Ordinary Differential
// Equations II (2nd ed. 1996), section IV.8, keep it up to 0.001 where Jacobians
// are cheap, and up to 0.1 where they are costly.
const newtonRefresh = 0.1

var errNoJacobian = errors.New("algorithms: a correction without the Jacobian that was asked for")

// Newton is the simplified Newton method: dz = −J⁻¹ r with the Jacobian of an
// earlier iterate or macro step for as long as corrections contract by
// newtonRefresh or better, and H and the degree stay. Where the Jacobian comes
// from is the caller's choice. The zero value is ready for Init.
//
// Source: meyer eq. (11); the Jacobian kept: Hairer and Wanner II, section IV.8.
type Newton struct {
	keptJacobian
}

var _ Solver = (*Newton)(nil)

func (s *Newton) Begin(H float64, degree int) { s.renew(H, degree) }

func (s *Newton) Correct(z, r, dz []float64) error {
	if err := s.apply(r, dz); err != nil {
		return err
	}
	for i, v := range dz {
		dz[i] = -v
	}
	return num.CheckFinite(dz)
}

func (s *Newton) Contraction(theta float64) (diverging bool) {
	return s.judge(theta, newtonRefresh)
}

// keptJacobian is a factored Jacobian and the decision when to refresh it.
type keptJacobian struct {
	regime
	lu *num.LU
	// stale: no correction may be made with the factors as they are. fresh: they
	// are of the present iterate. wasFresh: they were so in the last correction.
	stale, fresh, wasFresh bool
	strikes                int // corrections in a row that grew although the Jacobian was fresh
}

func (k *keptJacobian) Init(pattern *num.Matrix) {
	*k = keptJacobian{lu: num.NewLU(pattern), stale: true}
}

// renew begins a new attempt, and reports whether its equation is another one.
func (k *keptJacobian) renew(H float64, degree int) (changed bool) {
	changed = k.becomes(H, degree)
	k.stale = k.stale || changed
	k.fresh, k.wasFresh, k.strikes = false, false, 0
	return changed
}

func (k *keptJacobian) NeedsJacobian() bool { return k.stale }

func (k *keptJacobian) TakeJacobian(a *num.Matrix) error {
	k.stale = true
	if err := k.lu.Factor(a); err != nil {
		return err
	}
	k.stale, k.fresh = false, true
	return nil
}

// apply puts J⁻¹ r into v.
func (k *keptJacobian) apply(r, v []float64) error {
	if err := num.CheckFinite(r); err != nil {
		return err
	}
	if k.stale {
		return errNoJacobian
	}
	copy(v, r)
	k.lu.Solve(v)
	k.wasFresh, k.fresh = k.fresh, false
	return nil
}

// judge asks for a refresh unless the contraction is at most limit. Growth with
// a Jacobian of an earlier iterate is no divergence yet, nor is it the first
// time with a fresh one, as the correction before may have been a bad one; the
// second time in a row it is.
func (k *keptJacobian) judge(theta, limit float64) (diverging bool) {
	if theta <= limit {
		k.strikes = 0
		return false
	}
	k.stale = true
	switch {
	case theta < 1:
		k.strikes = 0
	case k.wasFresh:
		k.strikes++
	}
	return k.strikes >= 2 || math.IsNaN(theta)
}

// archive carries the factors. Whether they are of the present iterate matters
// within an attempt only.
func (k *keptJacobian) Archive(a num.Archive) {
	k.regime.Archive(a)
	a.Bool(&k.stale)
	if !k.stale {
		k.lu.Archive(a)
	}
}

func (k *keptJacobian) Accept() {}

// reject gives up the Jacobian: it may be why the attempt failed, and the next
// one has another H anyway.
func (k *keptJacobian) Reject() { k.stale = true }

// Operations returns the multiplications, divisions and additions of the last factorisation and
// of the last solution.
func (k *keptJacobian) Operations() (factor, solve int) { return k.lu.Operations() }
