package algorithms

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// oscillator is haid's two-mass oscillator (27).
type oscillator struct {
	m1, m2, c1, c2, d1, d2, ck, dk float64
	s1, v1, s2, v2                 float64
}

func haids(ck, dk float64) oscillator {
	return oscillator{m1: 10, m2: 10, c1: 1e6, c2: 1e7, d1: 1, d2: 2, ck: ck, dk: dk, v1: 1, v2: 1}
}

func (o oscillator) subsystems() (one, two *mastertest.Linear) {
	one = mastertest.NewLinear("one", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-o.c1 / o.m1, -o.d1 / o.m1}}, B: [][]float64{{0}, {1 / o.m1}},
		C: [][]float64{{1, 0}, {0, 1}},
	}, []float64{o.s1, o.v1})
	two = mastertest.NewLinear("two", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(o.ck + o.c2) / o.m2, -(o.dk + o.d2) / o.m2}}, B: [][]float64{{0, 0}, {o.ck / o.m2, o.dk / o.m2}},
		C: [][]float64{{o.ck, o.dk}}, D: [][]float64{{-o.ck, -o.dk}},
	}, []float64{o.s2, o.v2})
	return one, two
}

func haidSystem(t testing.TB, subs ...master.Subsystem) *master.System {
	t.Helper()
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem(subs, []master.Connection{
		{From: at("two", "y1"), To: at("one", "u1")}, {From: at("one", "y1"), To: at("two", "u1")}, {From: at("one", "y2"), To: at("two", "u2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// monolithic gives y at the time t, of the coupled system (haid (34), (35)).
func (o oscillator) monolithic(t float64) []float64 {
	a := mat.NewDense(4, 4, []float64{
		0, 1, 0, 0,
		-(o.c1 + o.ck) / o.m1, -(o.d1 + o.dk) / o.m1, o.ck / o.m1, o.dk / o.m1,
		0, 0, 0, 1,
		o.ck / o.m2, o.dk / o.m2, -(o.ck + o.c2) / o.m2, -(o.dk + o.d2) / o.m2,
	})
	a.Scale(t, a)
	var e mat.Dense
	e.Exp(a)
	var x mat.VecDense
	x.MulVec(&e, mat.NewVecDense(4, []float64{o.s1, o.v1, o.s2, o.v2}))
	return []float64{x.AtVec(0), x.AtVec(1), o.ck*(x.AtVec(2)-x.AtVec(0)) + o.dk*(x.AtVec(3)-x.AtVec(1))}
}

func TestModelQuick(t *testing.T) {
	for p := range 5 {
		var last [7]float64
		for _, H := range []float64{2e-5, 1e-5} {
			line := ""
			for k, cfg := range []Config{{Order: p}, {Order: p, Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01}},
				{Order: p, Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01, Jacobian: RollbackJacobian}},
				{Order: p, Scheme: GaussSeidel},
				{Order: p, Scheme: GaussSeidel, Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01}},
				{Order: p, Scheme: GaussSeidel, Correct: ModelCorrection, Model: Model{Alpha: 1, Refresh: 0.01, Jacobian: RollbackJacobian}},
				{Order: p, Correct: FeedthroughCorrection}} {
				o := haids(2e5, 5e2)
				one, two := o.subsystems()
				sys := haidSystem(t, one, two)
				alg, err := NewCoupling(cfg)
				if err != nil {
					t.Fatal(err)
				}
				var past []master.PastOutputs
				for j := 5; j > 0; j-- {
					past = append(past, master.PastOutputs{T: -float64(j) * H, Y: o.monolithic(-float64(j) * H)})
				}
				r, err := master.NewRun(sys, alg, master.Options{Stop: 2e-3, Step: H, Past: past})
				if err != nil {
					t.Fatal(err)
				}
				res, err := r.Run(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				e := 0.0
				want := o.monolithic(2e-3)
				for i, n := range []string{"one.y1", "one.y2", "two.y1"} {
					v, _ := r.Real(n)
					e = max(e, math.Abs(v-want[i])/math.Abs(want[i]))
				}
				order := math.Log2(last[k] / e)
				last[k] = e
				line += fmt.Sprintf(" %.3g (%.2f) %d/%d", e, order, res.Jacobians, res.SubsystemSteps[1])
			}
			t.Logf("p=%d H=%g:%s", p, H, line)
		}
	}
}
