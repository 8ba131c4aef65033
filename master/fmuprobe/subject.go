package fmuprobe

import (
	"io"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// Subject is an FMU under test, after its initialisation. fmuslave.Slave implements it.
type Subject interface {
	master.Subsystem
	master.DiscreteIO
	master.StateSaver
	master.Watcher
	master.Terminator
	io.Closer
	State() fmi.State
	// InputMax returns the upper bound of a Real input, +Inf if it has none.
	InputMax(k int) float64
}

// Fresh makes a new subject at the start of the steps. The purpose becomes part of its name; reverts is
// master.Experiment.Reverts.
type Fresh func(purpose string, reverts bool) (Subject, error)

// Inputs are staged inputs.
type Inputs struct {
	Real     []float64
	Discrete master.Values
}

// Stage stages them in a subject.
func (u *Inputs) Stage(s interface {
	SetInputs(u []float64) error
	master.DiscreteIO
}) error {
	if err := s.SetInputs(u.Real); err != nil {
		return err
	}
	return s.SetDiscrete(&u.Discrete)
}
