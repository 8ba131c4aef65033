package fmuslave

import (
	"math"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// levels counts, for the Reals of a description, the integrations between them
// and the inputs (see master.Level). Variables with the same value reference are
// one.
type levels struct {
	rates map[description.ValueReference][]description.ValueReference // of what is differentiated: its derivatives
	of    map[description.ValueReference]description.ValueReference   // of a derivative: what it differentiates
	feels map[description.ValueReference]bool                         // unknowns: whether they may depend directly on an input
	count map[description.ValueReference]int                          // integrations; never while they are counted
}

// never counts what lies on a circle of derivatives, an error of the description.
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
			// One entry that declares no input will do: the others say less.
			if before, known := l.feels[v.ValueReference]; !known || before {
				l.feels[v.ValueReference] = on
			}
		}
	}
	return l
}

// level returns that of one Real.
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

// integrations counts for what is differentiated or a derivative.
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
