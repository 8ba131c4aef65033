package exact

import (
	"fmt"
	"math"
)

// Reticulation is a way to split the quarter car.
type Reticulation int

const (
	// A couples the chassis as a free mass, input F_c and output v_c, with the
	// wheel and the suspension (sadjina (20)).
	A Reticulation = iota
	// B couples chassis and suspension, input v_w and output F_c, with the wheel
	// (sadjina (21)).
	B
)

// Metrics are the columns of sadjina's Tables III and V to XII, in SI units.
type Metrics struct {
	Step     float64 // mean macro step, T/N, s
	Power    float64 // mean power transmitted from S1 (chassis) to S2 (wheel), W
	Error    float64 // mean absolute error of that power, W
	Residual float64 // ∫δP dt, the energy that the coupling adds, J
}

// Judge computes the metrics of a co-simulated trajectory with held inputs. The
// slices hold the outputs at the communication points t_0 … t_N, t_0 = 0,
// before any input of the next step is set: force is F_c, velocity is v_c in A
// and v_w in B. Since inputs are held and connected one to one, these are also
// the inputs of the step that starts there. They are the columns
// time, wheel.F_c and chassis.v_c (A) or chassis.F_c and wheel.v_w (B) of `macrostep run`. With Δt_i = t_{i+1} - t_i and T = t_N:
//
//	P12(t) = F v                                         (6)
//	Power    = 1/T Σ_{i=0}^{N-1} P12(t_{i+1}) Δt_i
//	Error    = 1/T Σ_{i=0}^{N-1} |P12(t_{i+1}) - P0(t_{i+1})| Δt_i
//	δP(t_{i+1}) = power into S1 + power into S2, each with its held input and its new output   (10a)
//	         = v(t_i) F(t_{i+1}) - F(t_i) v(t_{i+1})     in A
//	         = F(t_i) v(t_{i+1}) - v(t_i) F(t_{i+1})     in B
//	Residual = Σ_{i=0}^{N-1} δP(t_{i+1}) Δt_i            (10b)
//
// P0 = F v is that of the monolithic solution at the same points. P12 is the
// product of both outputs at the end of a step; the point t_0 enters through the
// held inputs of the first step alone. δP has the sign of the energy that is
// created: (7), (8b) with the input and output lists as printed count power
// into one side and out of the other.
//
// Source: sadjina (6), (10), section III.B and Tables III, V–VIII.
func (q QuarterCar) Judge(r Reticulation, times, force, velocity []float64) (Metrics, error) {
	n := len(times) - 1
	if n < 1 || len(force) != n+1 || len(velocity) != n+1 {
		return Metrics{}, fmt.Errorf("there are %d times, %d forces and %d velocities; give equal numbers of each, at least two",
			len(times), len(force), len(velocity))
	}
	if times[0] != 0 {
		return Metrics{}, fmt.Errorf("the trajectory starts at %g s, but the road jumps at 0", times[0])
	}
	exact, err := q.Solve(times)
	if err != nil {
		return Metrics{}, err
	}
	var m Metrics
	for i := range n {
		dt := times[i+1] - times[i]
		x := exact[i+1]
		v0 := x[1]
		created := velocity[i]*force[i+1] - force[i]*velocity[i+1]
		if r == B {
			v0 = x[3]
			created = -created
		}
		p := force[i+1] * velocity[i+1]
		m.Power += p * dt
		m.Error += math.Abs(p-q.Force(x)*v0) * dt
		m.Residual += created * dt
	}
	T := times[n]
	m.Step = T / float64(n)
	m.Power /= T
	m.Error /= T
	return m, nil
}
