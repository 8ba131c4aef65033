package fmuprobe

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// MagnitudeFloor is the smallest magnitude, as a part of the nominal value.
const MagnitudeFloor = 1e-6

// Reading holds the variables of a subject at a communication point: outputs, then watched variables.
type Reading struct {
	Real     []float64
	Discrete [2]master.Values // outputs, watched variables
}

// Comparison reads a subject, and compares readings relative to the magnitudes.
type Comparison struct {
	Of    Subject
	Scale []float64 // magnitude of each Real, which readings enlarge
}

// Read returns the present reading.
func (r *Comparison) Read() (Reading, error) {
	info := r.Of.Info()
	g := Reading{Real: make([]float64, len(info.Out))}
	g.Discrete = [2]master.Values{master.NewValues(info.DiscreteOut), master.NewValues(info.Watch)}
	err := errors.Join(r.Of.Outputs(g.Real), r.Of.Discrete(&g.Discrete[0]), r.Of.Watched(&g.Discrete[1]))
	g.Real = append(g.Real, g.Discrete[1].Real...)
	for k, v := range g.Real {
		if v-v == 0 {
			r.Scale[k] = max(r.Scale[k], math.Abs(v))
		}
	}
	return g, err
}

// measure initialises the magnitudes with the floor of each variable and its present value.
func (r *Comparison) measure() error {
	for _, p := range r.Reals() {
		r.Scale = append(r.Scale, MagnitudeFloor*p.Magnitude())
	}
	_, err := r.Read()
	return err
}

// Reals lists the Reals of a reading.
func (r *Comparison) Reals() []master.Port {
	return slices.Concat(r.Of.Info().Out, ofKind(r.Of.Info().Watch, master.Real))
}

func ofKind(ports []master.Port, k master.Kind) []master.Port {
	var out []master.Port
	for _, p := range ports {
		if p.Kind == k {
			out = append(out, p)
		}
	}
	return out
}

// Difference is a difference between two attempts.
type Difference struct {
	Relative    float64
	what        string // of the attempts
	Name        string // of the variable
	Step        int    // from 1
	First, Then string // values
}

func (d Difference) lie() error {
	return fmt.Errorf("%w: the FMU declares canGetAndSetFMUstate, but %s and its replay after a rollback differ: "+
		"%s is %s after step %d and then %s (relative difference %.2g); "+
		withoutRollback,
		master.ErrCapability, d.what, d.Name, d.First, d.Step, d.Then, d.Relative)
}

// Compare returns the largest difference. Variables other than Reals must be equal.
func (r *Comparison) Compare(a, b []Reading, what string) Difference {
	worst := Difference{}
	r.differences(a, b, func(d Difference) {
		if d.Relative > worst.Relative {
			worst = d
		}
	})
	worst.what = what
	return worst
}

// differences calls found for each difference.
func (r *Comparison) differences(a, b []Reading, found func(Difference)) {
	reals := r.Reals()
	for step := range a {
		note := func(relative float64, name string, first, then any) {
			found(Difference{Relative: relative, Name: name, Step: step + 1, First: shown(first), Then: shown(then)})
		}
		p, q := a[step], b[step]
		for k := range p.Real {
			switch d := math.Abs(p.Real[k] - q.Real[k]); {
			case d > 0: // false for NaN
				note(d/r.Scale[k], reals[k].Name, p.Real[k], q.Real[k])
			case math.IsNaN(p.Real[k]) != math.IsNaN(q.Real[k]):
				note(math.Inf(1), reals[k].Name, p.Real[k], q.Real[k])
			}
		}
		for i, ports := range [][]master.Port{r.Of.Info().DiscreteOut, r.Of.Info().Watch} {
			v, w := &p.Discrete[i], &q.Discrete[i]
			exact(v.Integer, w.Integer, ofKind(ports, master.Integer), note)
			exact(v.Boolean, w.Boolean, ofKind(ports, master.Boolean), note)
			exact(v.String, w.String, ofKind(ports, master.String), note)
		}
	}
}

// shown returns a value for messages.
func shown(v any) string {
	if x, ok := v.(float64); ok {
		return fmt.Sprintf("%.9g", x)
	}
	return fmt.Sprint(v)
}

func exact[T comparable](p, q []T, ports []master.Port, note func(float64, string, any, any)) {
	for k := range p {
		if p[k] != q[k] {
			note(math.Inf(1), ports[k].Name, p[k], q[k])
		}
	}
}
