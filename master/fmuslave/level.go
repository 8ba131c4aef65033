package fmuslave

import (
	"math"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// levels counts the integrations between the inputs and the Reals of a description (see master.Level).
// Variables with the same value reference are one.
type levels struct {
	rates map[description.ValueReference][]description.ValueReference // of a variable: its derivatives
	of    map[description.ValueReference]description.ValueReference   // of a derivative: its variable
	feels map[description.ValueReference]bool                         // unknowns: whether they may depend directly on an input
	count map[description.ValueReference]int                          // integrations; never during the count
}

// never is the count of derivatives in a circle, an error of the description.
const never = math.MinInt32

func newLevels(d *description.ModelDescription) *levels {
	l := &levels{
		rates: map[description.ValueReference][]description.ValueReference{}, of: map[description.ValueReference]description.ValueReference{},
		feels: map[description.ValueReference]bool{}, count: map[description.ValueReference]int{},
	}
	for i := range d.Variables {
		if v := &d.Variables[i]; v.Type == description.Real && v.Derivative > 0 {
			x := d.Variables[v.Derivative-1].ValueReference
			l.rates[x] = append(l.rates[x], v.ValueReference)
			l.of[v.ValueReference] = x
		}
	}
	for _, entries := range [][]description.Unknown{d.Outputs, d.Derivatives} {
		for i := range entries {
			v := &d.Variables[entries[i].Index-1]
			if v.Type != description.Real {
				continue
			}
			on := !entries[i].Declared
			for _, k := range entries[i].Dependencies {
				on = on || d.Variables[k-1].Causality == description.Input
			}
			// One entry that declares no input suffices.
			if before, known := l.feels[v.ValueReference]; !known || before {
				l.feels[v.ValueReference] = on
			}
		}
	}
	return l
}

// level returns the level of a Real.
func (l *levels) level(r description.ValueReference) master.Level {
	x, isRate := l.of[r]
	n := 0
	switch {
	case isRate:
		n = l.integrations(x) - 1 // that of all derivatives of x
	case len(l.rates[r]) > 0:
		n = l.integrations(r)
	}
	switch {
	case n > 1:
		return master.Position
	case n == 1:
		return master.Velocity
	}
	return master.NoLevel
}

// integrations returns the count of a variable that has or is a derivative.
func (l *levels) integrations(r description.ValueReference) int {
	if n, ok := l.count[r]; ok {
		return n
	}
	l.count[r] = never
	n := 0
	if rates := l.rates[r]; len(rates) > 0 {
		n = never
		for _, d := range rates {
			n = max(n, 1+l.integrations(d))
		}
	} else if feels, known := l.feels[r]; known && !feels {
		n = 1
	}
	l.count[r] = n
	return n
}
