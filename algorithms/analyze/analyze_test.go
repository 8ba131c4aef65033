package analyze

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// haidSystem is haid's oscillator of exact subsystems in Go.
func haidSystem(t testing.TB, o exact.Haid, caps func(*master.Caps)) *master.System {
	t.Helper()
	one := mastertest.NewLinear("one", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-o.C1 / o.M1, -o.D1 / o.M1}}, B: [][]float64{{0}, {1 / o.M1}}, C: [][]float64{{1, 0}, {0, 1}},
	}, []float64{1e-3, 1})
	two := mastertest.NewLinear("two", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2}}, B: [][]float64{{0, 0}, {o.CK / o.M2, o.DK / o.M2}},
		C: [][]float64{{o.CK, o.DK}}, D: [][]float64{{-o.CK, -o.DK}},
	}, []float64{-2e-3, 0.3})
	if caps != nil {
		caps(&one.Info().Caps)
		caps(&two.Info().Caps)
	}
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{one, two}, []master.Connection{
		{From: at("two", "y1"), To: at("one", "u1")}, {From: at("one", "y1"), To: at("two", "u1")}, {From: at("one", "y2"), To: at("two", "u2")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return sys
}

// The spectral radius is that of the independent propagation matrix, with and without
// correction, from measured responses and from directional derivatives.
func TestRadius(t *testing.T) {
	for name, caps := range map[string]func(*master.Caps){"measured": nil, "directional": func(c *master.Caps) { c.SaveState = false }} {
		o := exact.DefaultHaid()
		_, err := at(t.Context(), haidSystem(t, o, caps), Options{Step: 1e-4, Order: 4}, func(p *point) error {
			for k := range 5 {
				for _, H := range []float64{2e-5, 1e-4, 3e-4, 1e-3} {
					for _, correct := range []bool{false, true} {
						s := &scheme{preset: "explicit", order: k}
						if correct {
							s = &scheme{preset: "model-based-corrector", order: k, hidden: true}
						}
						want := exact.Corrected{Haid: o, H: H, P: k, Correct: correct, Alpha: 1}.Radius()
						mode, err := p.spectrum(s, H, -1, 1, false)
						if err != nil {
							return fmt.Errorf("%s, k = %d, H = %g: %w", s.preset, k, H, err)
						}
						if got := mode.radius(); !(math.Abs(got-want) <= 1e-6*want) {
							t.Errorf("%s, %s, k = %d, H = %g: radius %.9f, want %.9f", name, s.preset, k, H, got, want)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(name, err)
		}
	}
}

// masses is a chain of n masses coupled by displacements and velocities, each a subsystem with its
// springs and dampers, and its radius under explicit coupling with held inputs.
func masses(t testing.TB, n int) (*master.System, func(H float64) float64) {
	t.Helper()
	const c, d = 1e3, 2.0
	var subs []master.Subsystem
	var links []master.Connection
	at := func(i int, port string) master.Endpoint {
		return master.Endpoint{Subsystem: fmt.Sprintf("m%d", i), Port: port}
	}
	a := [][]float64{{0, 1}, {-2 * c, -2 * d}}
	b := [][]float64{{0, 0, 0, 0}, {c, d, c, d}}
	for i := range n {
		subs = append(subs, mastertest.NewLinear(fmt.Sprintf("m%d", i), mastertest.Matrices{A: a, B: b, C: [][]float64{{1, 0}, {0, 1}}}, []float64{math.Sin(float64(i)), 0}))
		for k, from := range []int{i - 1, i + 1} {
			if from < 0 || from >= n {
				continue
			}
			links = append(links, master.Connection{From: at(from, "y1"), To: at(i, fmt.Sprintf("u%d", 2*k+1))},
				master.Connection{From: at(from, "y2"), To: at(i, fmt.Sprintf("u%d", 2*k+2))})
		}
	}
	sys, err := master.NewSystem(subs, links)
	if err != nil {
		t.Fatal(err)
	}
	return sys, func(H float64) float64 {
		// [A B; 0 0]: both of e^{AH} and ∫e^{As}B ds.
		block := mat.NewDense(6, 6, nil)
		for i := range 2 {
			for j := range 2 {
				block.Set(i, j, a[i][j]*H)
			}
			for j := range 4 {
				block.Set(i, 2+j, b[i][j]*H)
			}
		}
		var e mat.Dense
		e.Exp(block)
		phi := mat.NewDense(2*n, 2*n, nil)
		for m := range n {
			for i := range 2 {
				for j := range 2 {
					phi.Set(2*m+i, 2*m+j, e.At(i, j))
					if m > 0 {
						phi.Set(2*m+i, 2*m-2+j, e.At(i, 2+j))
					}
					if m < n-1 {
						phi.Set(2*m+i, 2*m+2+j, e.At(i, 4+j))
					}
				}
			}
		}
		var eigen mat.Eigen
		eigen.Factorize(phi, mat.EigenNone)
		worst := 0.0
		for _, v := range eigen.Values(nil) {
			worst = max(worst, cmplx.Abs(v))
		}
		return worst
	}
}

// With many subsystems the limits are those of the eigenvalues.
func testManySubsystems(t *testing.T) {
	t.Run("25", func(t *testing.T) { ofMasses(t, 25) })
	t.Run("100", func(t *testing.T) { ofMasses(t, 100) })
}

func ofMasses(t *testing.T, n int) {
	sys, radius := masses(t, n)
	r, err := Run(t.Context(), sys, Options{Step: 2e-3, Stop: 2, From: 5e-4, To: 0.05, Error: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Strategies {
		if s.Preset != "explicit" || s.Order != 0 {
			continue
		}
		if want := radius(2e-3); math.Abs(s.Now-want) > 1e-6 {
			t.Errorf("radius %.6f, want %.6f", s.Now, want)
		}
		if len(s.Stable) == 0 {
			t.Fatal("nothing is stable")
		}
		limit := s.Stable[0].To
		if below, above := radius(0.995*limit), radius(1.005*limit); !(below <= 1 && above > 1) {
			t.Errorf("stable to %g s, radii %.6f and %.6f around it", limit, below, above)
		}
	}
	if r.Promised == nil {
		t.Errorf("recommended: %v, %s", r.Promised, r.Why)
	}
}

// The radius of many subsystems is that of the eigenvalues, also where LAPACK factors the propagation wrongly.
func TestManyEigenvalues(t *testing.T) {
	sys, radius := masses(t, 100)
	_, err := at(t.Context(), sys, Options{Step: 2e-3, Order: 1}, func(p *point) error {
		for _, h := range []float64{2e-3, 2.004e-3} {
			mode, err := p.spectrum(&scheme{preset: "explicit"}, h, -1, 1, false)
			if err != nil {
				return err
			}
			if want := radius(h); math.Abs(mode.radius()-want) > 1e-6 {
				t.Errorf("at %g s the radius is %.9f, want %.9f", h, mode.radius(), want)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
