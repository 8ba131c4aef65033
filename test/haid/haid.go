// Package haid runs the oscillator of haid (exact.Haid) for tests, with subsystems in Go or with FMUs on
// the command line, and computes the errors of the paper.
package haid

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus/exact"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// Outputs are the columns of y in the results of the FMUs.
var Outputs = [3]string{"one.s", "one.v", "two.F"}

// Args returns the arguments for the oscillator of FMUs with steps of H in s and a hold of order p. In the linear case
// it writes the outputs at p points before the start to the file history.
func Args(system string, o exact.Haid, p int, H float64, history string) ([]string, error) {
	args := []string{system, "--step-size", fmt.Sprint(H), "--param", fmt.Sprintf("order=%d", p)}
	for _, s := range []struct {
		name string
		v    float64
	}{
		{"one.s0", o.Start[0]}, {"one.v0", o.Start[1]}, {"two.s0", o.Start[2]}, {"two.v0", o.Start[3]},
		{"two.c_k", o.CK}, {"two.d_k", o.DK}, {"two.n_d", o.ND},
	} {
		args = append(args, "--set", fmt.Sprintf("%s=%v", s.name, s.v))
	}
	if p == 0 || o.ND != 1 {
		return args, nil
	}
	var b strings.Builder
	b.WriteString("time," + strings.Join(Outputs[:], ",") + "\n")
	for j := p; j > 0; j-- {
		at := -float64(j) * H
		y := o.Outputs(at)
		fmt.Fprintf(&b, "%v,%v,%v,%v\n", at, y[0], y[1], y[2])
	}
	if err := os.WriteFile(history, []byte(b.String()), 0o644); err != nil {
		return nil, err
	}
	return append(args, "--history", history), nil
}

// LocalArgs returns the arguments that record the variables for LocalError.
func LocalArgs(corrected bool) []string {
	args := []string{"--record", "one.*", "--record", "two.*"}
	if corrected {
		args = append(args, "--record", "raw.*", "--param", "model.raw=true")
	}
	return args
}

// LocalError returns the local error (31) of a run of the linear oscillator with steps of H in s, from a row of its
// results on: it compares the outputs after each step with those of the coupled system, begun at the same states.
func LocalError(results map[string][]float64, o exact.Haid, H float64, from int) float64 {
	s, v := "one.s", "one.v"
	if _, corrected := results["raw.one.s"]; corrected {
		s, v = "raw.one.s", "raw.one.v" // the states; the outputs are corrected
	}
	y := Rows(results)
	coupled := o.Coupled(H)
	want := [][3]float64{y[0]}
	for n := range len(y) - 1 {
		var next [3]float64
		for i, x := range [4]float64{results[s][n], results[v][n], results["two.s"][n], results["two.v"][n]} {
			for k := range next {
				next[k] += coupled.At(4+k, i) * x
			}
		}
		want = append(want, next)
	}
	return exact.NRMSE(y[from:], want[from:])
}

// Rows returns y at all points of the results.
func Rows(results map[string][]float64) [][3]float64 {
	y := make([][3]float64, len(results[Outputs[0]]))
	for k, name := range Outputs {
		for n, v := range results[name] {
			y[n][k] = v
		}
	}
	return y
}

// Nonlinear returns the oscillator of haid 5. The paper does not give its start; with lower velocities no case becomes
// unstable.
func Nonlinear(nd float64) exact.Haid {
	o := exact.DefaultHaid()
	o.Start, o.ND = [4]float64{0, 10, 0, 10}, nd
	return o
}

// Reference returns y of the coupled system at steps 0 … n of H in s.
func Reference(o exact.Haid, H float64, n int) ([][3]float64, error) {
	times := make([]float64, n+1)
	for i := range times {
		times[i] = float64(i) * H
	}
	states, err := o.Reference(times)
	if err != nil {
		return nil, err
	}
	y := make([][3]float64, n+1)
	for i, x := range states {
		y[i] = [3]float64{x[0], x[1], o.Force(x)}
	}
	return y, nil
}

// Even returns a step size near H with 24 binary digits. Its multiples are exact, so that all steps are equal and
// subsystems of mastertest need only one matrix exponential.
func Even(H float64) float64 { return float64(float32(H)) }

// run runs the linear oscillator of subsystems in Go over n steps. It calls look at each point with the states s1 v1
// s2 v2, until look returns an error.
func run(ctx context.Context, e exact.Corrected, n int, past []master.PastOutputs, look func(p *master.Point, x [4]float64) error) error {
	o := e.Haid
	one := mastertest.NewLinear("one", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-o.C1 / o.M1, -o.D1 / o.M1}}, B: [][]float64{{0}, {1 / o.M1}}, C: [][]float64{{1, 0}, {0, 1}},
	}, o.Start[:2])
	two := mastertest.NewLinear("two", mastertest.Matrices{
		A: [][]float64{{0, 1}, {-(o.CK + o.C2) / o.M2, -(o.DK + o.D2) / o.M2}}, B: [][]float64{{0, 0}, {o.CK / o.M2, o.DK / o.M2}},
		C: [][]float64{{o.CK, o.DK}}, D: [][]float64{{-o.CK, -o.DK}},
	}, o.Start[2:])
	at := func(s, p string) master.Endpoint { return master.Endpoint{Subsystem: s, Port: p} }
	sys, err := master.NewSystem([]master.Subsystem{one, two}, []master.Connection{
		{From: at("two", "y1"), To: at("one", "u1")}, {From: at("one", "y1"), To: at("two", "u1")}, {From: at("one", "y2"), To: at("two", "u2")},
	})
	if err != nil {
		return err
	}
	config := algorithms.Config{Order: e.P}
	if e.Correct {
		config.Correct, config.Model = algorithms.ModelCorrection, algorithms.Model{Alpha: e.Alpha, Refresh: 0.01}
	}
	alg, err := algorithms.NewCoupling(config)
	if err != nil {
		return err
	}
	w := watch(func(p *master.Point) error {
		var x, xdot [4]float64
		if err := errors.Join(one.ReadStates(x[:2], xdot[:2]), two.ReadStates(x[2:], xdot[2:])); err != nil {
			return err
		}
		return look(p, x)
	})
	r, err := master.NewRun(sys, alg, master.Options{Stop: float64(n) * e.H, Step: e.H, Past: past, Recorders: []master.Recorder{w}})
	if err != nil {
		return err
	}
	_, err = r.Run(ctx)
	return err
}

// watch is a recorder that calls a function at each point.
type watch func(*master.Point) error

func (watch) Begin(*master.System, []master.Port) error { return nil }
func (w watch) Record(p *master.Point) error            { return w(p) }
func (watch) Flush() error                              { return nil }
func (watch) End(master.Result) error                   { return nil }

// errSeen ends a run whose result is known.
var errSeen = errors.New("seen")

// Grows runs the strategy over n steps of subsystems in Go. It reports whether the energy of the oscillator grows from
// the third quarter of the run to the last, or by a factor of 1e60. Unlike amplitudes, the energy distinguishes slow
// growth from the beat of the two masses within one beat.
func Grows(ctx context.Context, e exact.Corrected, n int) (bool, error) {
	var quarter [4]float64
	largest := 0.0
	err := run(ctx, e, n, nil, func(p *master.Point, x [4]float64) error {
		energy := (e.M1*x[1]*x[1] + e.C1*x[0]*x[0] + e.M2*x[3]*x[3] + e.C2*x[2]*x[2] + e.CK*(x[2]-x[0])*(x[2]-x[0])) / 2
		if p.Step == 0 {
			largest = 1e60 * energy
		}
		if !(energy <= largest) {
			return errSeen
		}
		if p.Step < n {
			quarter[4*p.Step/n] += energy
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		return true, nil
	}
	return quarter[3] > quarter[2], err
}

// GlobalError runs the strategy over n steps of subsystems in Go from an exact history and returns the global error
// (32). The error is infinite if it must exceed the limit, which ends the run, or if the history overflows: with strong
// damping the motion grows backwards in time.
func GlobalError(ctx context.Context, e exact.Corrected, n int, limit float64) (float64, error) {
	coupled := e.Coupled(e.H)
	// The variances of the reference are needed from the start.
	want := make([][3]float64, 0, n)
	x := e.Start
	var mean, variance [3]float64
	for range n {
		var next [7]float64
		for i := range next {
			for j, v := range x {
				next[i] += coupled.At(i, j) * v
			}
		}
		x = [4]float64(next[:4])
		want = append(want, [3]float64(next[4:]))
		for k, v := range next[4:] {
			mean[k] += v / float64(n)
		}
	}
	for _, y := range want {
		for k, v := range y {
			variance[k] += (v - mean[k]) * (v - mean[k])
		}
	}
	var past []master.PastOutputs
	for j := e.P; j > 0; j-- {
		t := -float64(j) * e.H
		y := e.Outputs(t)
		if math.IsNaN(y[0] + y[1] + y[2]) {
			return math.Inf(1), nil
		}
		past = append(past, master.PastOutputs{T: t, Y: y})
	}
	total := 0.0
	err := run(ctx, e, n, past, func(p *master.Point, _ [4]float64) error {
		if p.Step == 0 {
			return nil
		}
		for k, y := range p.Y {
			d := y - want[p.Step-1][k]
			total += d * d / variance[k] / 3
		}
		if !(total <= limit*limit) {
			return errSeen
		}
		return nil
	})
	if errors.Is(err, errSeen) {
		return math.Inf(1), nil
	}
	return math.Sqrt(total), err
}

// Corrected returns y at steps 0 … n of H in s of the corrected co-simulation with a hold of order p from a short start,
// alpha = 1 and models of each step at its start: (9) to (25), by the classical Runge–Kutta method. The models are those with
// the inputs at the start of the step (atNew), or at the end of the step before.
func Corrected(o exact.Haid, p int, H float64, n int, atNew bool) [][3]float64 {
	const pieces = 400
	force := func(x, u [2]float64) float64 { return o.Force([]float64{u[0], u[1], x[0], x[1]}) }
	// rates of x = (s, v) of a side under the force f.
	rates := func(side int, x [2]float64, f float64) [2]float64 {
		if side == 0 {
			return [2]float64{x[1], (-o.C1*x[0] - o.D1*x[1] + f) / o.M1}
		}
		return [2]float64{x[1], (-o.C2*x[0] - o.D2*x[1] - f) / o.M2}
	}
	integrate := func(x [2]float64, f func(s float64, x [2]float64) [2]float64) [2]float64 {
		h := H / pieces
		add := func(x, k [2]float64, by float64) [2]float64 { return [2]float64{x[0] + by*k[0], x[1] + by*k[1]} }
		for i := range pieces {
			s := float64(i) * h
			k1 := f(s, x)
			k2 := f(s+h/2, add(x, k1, h/2))
			k3 := f(s+h/2, add(x, k2, h/2))
			k4 := f(s+h, add(x, k3, h))
			for q := range x {
				x[q] += h / 6 * (k1[q] + 2*k2[q] + 2*k3[q] + k4[q])
			}
		}
		return x
	}
	// course is ℓ of degree d: 1 at the end, 0 at d points from the start on.
	course := func(d int, s float64) float64 {
		v := 1.0
		for j := range d {
			v *= (s + float64(j)*H) / (H + float64(j)*H)
		}
		return v
	}
	// slopes are ∂F/∂s and ∂F/∂v of the second side.
	slopes := func(x, u [2]float64) (ds, dv float64) {
		w := math.Abs(x[1] - u[1])
		d := o.DK * math.Pow(w, o.ND-1)
		if dv = min(max(d, o.DMin), o.DMax); dv == d {
			dv = o.ND * d
		}
		return o.CK, dv
	}
	x := [2][2]float64{{o.Start[0], o.Start[1]}, {o.Start[2], o.Start[3]}}
	y := [][3]float64{{x[0][0], x[0][1], force(x[1], x[0])}}
	inputs := func(y [3]float64) [3]float64 { return [3]float64{y[2], y[0], y[1]} } // F; s1, v1
	var offset, total [3]float64                                                    // δu and E
	end := inputs(y[0])                                                             // of the step before
	for k := range n {
		d := min(p, k)
		held := func(s float64) (u [3]float64) { // without δu
			for j := range d + 1 {
				weight := 1.0
				for i := range d + 1 {
					if i != j {
						weight *= (s/H + float64(i)) / float64(i-j)
					}
				}
				for q, v := range inputs(y[k-j]) {
					u[q] += weight * v
				}
			}
			return u
		}
		at := end
		if now := held(0); atNew {
			for q := range at {
				at[q] = now[q] + offset[q]
			}
		}
		ds, dv := slopes(x[1], [2]float64{at[1], at[2]})
		u := func(s float64) (v [3]float64) {
			v = held(s)
			for q := range v {
				v[q] += offset[q]
			}
			return v
		}
		// response of the outputs at the end to input q along a course of degree m.
		response := func(q, m int) (g [3]float64) {
			if q == 0 {
				r := integrate([2]float64{}, func(s float64, x [2]float64) [2]float64 { return rates(0, x, course(m, s)) })
				return [3]float64{r[0], r[1], 0}
			}
			by := [3]float64{0, ds, dv}[q]
			r := integrate([2]float64{}, func(s float64, x [2]float64) [2]float64 {
				return rates(1, x, ds*x[0]+dv*x[1]-by*course(m, s))
			})
			return [3]float64{0, 0, ds*r[0] + dv*r[1] - by}
		}
		x[0] = integrate(x[0], func(s float64, x [2]float64) [2]float64 { return rates(0, x, u(s)[0]) })
		x[1] = integrate(x[1], func(s float64, x [2]float64) [2]float64 {
			v := u(s)
			return rates(1, x, force(x, [2]float64{v[1], v[2]}))
		})
		end = u(H)
		next := [3]float64{x[0][0], x[0][1], force(x[1], [2]float64{end[1], end[2]})}
		var g [3][3]float64 // by input
		for q := range g {
			g[q] = response(q, d)
			for r, v := range response(q, 0) {
				next[r] -= v * offset[q]
			}
		}
		// (I − L G) e = L (y − G_0 δu) − ũ(H)
		m, e := mat.NewDense(3, 3, nil), mat.NewVecDense(3, nil)
		for q, v := range inputs(next) {
			e.SetVec(q, v-held(H)[q])
			for c := range g {
				m.Set(q, c, -inputs(g[c])[q])
			}
			m.Set(q, q, 1+m.At(q, q))
		}
		if err := e.SolveVec(m, e); err != nil {
			return nil
		}
		area := 0.0 // ∫ ℓ of one degree more
		for i := range pieces {
			area += course(d+1, (float64(i)+0.5)*H/pieces) * H / pieces
		}
		for q := range g {
			for r, v := range g[q] {
				next[r] += v * e.AtVec(q)
			}
			total[q] += area*e.AtVec(q) - H*offset[q]
			offset[q] = total[q] / H
		}
		y = append(y, next)
	}
	return y
}
