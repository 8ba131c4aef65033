package fmuprobe

import (
	"io"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// Subject is an FMU as a test sees it, after its initialisation. Its subsystem is fmuslave.Slave.
type Subject interface {
	master.Subsystem
	master.DiscreteIO
	master.StateSaver
	master.RestoreAware
	master.Watcher
	master.Terminator
	io.Closer
	State() fmi.State
	// InputMax returns the upper bound of a Real input, +Inf if it has none.
	InputMax(k int) float64
}

// Fresh makes a subject that nothing else uses, at the start of the steps. The purpose goes into its name.
type Fresh func(purpose string) (Subject, error)

// Inputs are staged inputs.
type Inputs struct {
	Real     []float64
	Discrete master.Values
}

// Stage returns them to a subject.
func (u *Inputs) Stage(s interface {
	SetInputs(u []float64) error
	master.DiscreteIO
}) error {
	if err := s.SetInputs(u.Real); err != nil {
		return err
	}
	return s.SetDiscrete(&u.Discrete)
}
