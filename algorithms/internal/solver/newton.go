package solver

import (
	"errors"
	"math"

	"github.com/macrostep/macrostep/algorithms/internal/num"
)

// newtonRefresh is the contraction above which the Jacobian is refreshed. Each correction costs a
// macro step of every subsystem. With a contraction of 0.1, a correction of weighted norm 1 needs
// six more corrections to 1e-6; with a fresh Jacobian two or three, and by differences the Jacobian
// costs about one macro step per input of a subsystem. E. Hairer, G. Wanner, Solving Ordinary
// Differential Equations II (2nd ed. 1996), section IV.8, use limits from 0.001 for cheap to 0.1
// for expensive Jacobians.
const newtonRefresh = 0.1

var errNoJacobian = errors.New("algorithms: a correction without the required Jacobian")

// Newton is the simplified Newton method dz = −J⁻¹ r. It keeps the Jacobian over iterates and macro
// steps as long as H and degree are constant and corrections contract by newtonRefresh or better.
// The zero value is ready for Init.
//
// Source: meyer (11); when to keep the Jacobian: Hairer and Wanner II, section IV.8.
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

// keptJacobian is a factored Jacobian that is refreshed when necessary.
type keptJacobian struct {
	lu *num.LU
	jacobianState
}

type jacobianState struct {
	regime
	stale    bool // the factors must be replaced before the next correction
	fresh    bool // the factors belong to the current iterate
	wasFresh bool // they did so in the last correction
	strikes  int  // corrections in a row that grew with a fresh Jacobian
}

func (k *keptJacobian) Init(pattern *num.Matrix) {
	*k = keptJacobian{lu: num.NewLU(pattern), jacobianState: jacobianState{stale: true}}
}

// renew starts an attempt and reports whether H or degree has changed.
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

// apply computes v = J⁻¹ r.
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

// judge requests a refresh if the contraction exceeds limit. The iteration diverges if corrections
// grow twice in a row with a fresh Jacobian. A single growth may be due to a bad correction before.
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

// Archive saves or restores the factors.
func (k *keptJacobian) Archive(a num.Archive) {
	a.All(&k.jacobianState)
	k.lu.Archive(a)
}

func (k *keptJacobian) Accept() {}

// Reject drops the Jacobian: it may be the reason for the failure, and the next attempt has another
// H.
func (k *keptJacobian) Reject() { k.stale = true }
