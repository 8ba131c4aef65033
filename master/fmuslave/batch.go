package fmuslave

import (
	"context"
	"errors"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// batchKey is the key of slaves that can be called together: all in this process, or all in processes of their own.
type batchKey struct{ apart bool }

// BatchKey returns batchKey, but slaves of this process with Strings, which need calls of their own, are alone.
func (s *Slave) BatchKey() any {
	if s.config.Options.Launcher == nil && len(s.stringInVR)+len(s.stringOutVR) > 0 {
		return s
	}
	return batchKey{s.config.Options.Launcher != nil}
}

// batch calls several FMUs together. Before a step it passes each its inputs, and after it reads the outputs.
type batch struct {
	members []*Slave
	calls   *fmi.Batch
	in, out []transfer // inputs and outputs of the members
	begun   bool       // a step has begun
	took    int        // the number of members that took their inputs
	refused error      // of the next one
	states  []*fmi.FMUState
}

// transfer copies a value between the run and the buffer of an FMU.
type transfer struct{ to, from *float64 }

func transfers(to, from []float64) (list []transfer) {
	for k := range from {
		list = append(list, transfer{&to[k], &from[k]})
	}
	return list
}

func carry(all []transfer) {
	for _, t := range all {
		*t.to = *t.from
	}
}

// NewBatch makes a batch of slaves. An Exchange without slices leaves staging and reading to SetInputs and Outputs.
func (s *Slave) NewBatch(members []master.Subsystem, exchange []master.Exchange) (master.Batch, error) {
	b := &batch{states: make([]*fmi.FMUState, len(members))}
	var steppers []*fmi.Stepper
	for k, member := range members {
		m, _ := master.As[*Slave](member)
		b.members, steppers = append(b.members, m), append(steppers, m.stepper)
		x, n := &exchange[k], len(m.in)
		b.in = append(b.in, transfers(m.stepper.RealIn, x.In)...)
		for order, du := range x.Slopes {
			b.in = append(b.in, transfers(m.stepper.Derivatives[order*n:], du)...)
		}
		b.out = append(b.out, transfers(x.Out, m.stepper.RealOut[:len(x.Out)])...)
	}
	var err error
	if b.calls, err = fmi.NewBatch(steppers); err != nil {
		return nil, err
	}
	return b, nil
}

// Begin starts a step in processes of their own.
func (b *batch) Begin(t, h float64) bool { return b.begin(t, h, true) }

// begin stages the inputs of a step, and starts it in processes of their own, up to the first member that refuses them.
func (b *batch) begin(t, h float64, read bool) bool {
	b.took, b.refused = len(b.members), nil
	for k, m := range b.members {
		if m.linear.displaced || m.stringsDirty {
			if b.refused = m.settle(); b.refused == nil {
				b.refused = m.writeStrings()
			}
			if b.refused != nil {
				b.took = k
				break
			}
		}
		m.stale = m.stale && !read
	}
	carry(b.in)
	b.begun = b.calls.Begin(b.took, t, h, read)
	return b.begun
}

// Step goes on with the members after one whose step is pending, or that ends the simulation at the end of the step.
func (b *batch) Step(ctx context.Context, t, h float64, read bool) (ran int, reached float64, err error) {
	if !b.begun && !b.begin(t, h, read) && b.refused != nil {
		return b.took + 1, t, b.refused
	}
	b.begun = false
	n := len(b.members)
	ended, end := n, error(nil) // the first member that ends the simulation at t+h
	for from := 0; from < n; {
		ran, status, err := b.calls.Step(from, t, h, read)
		if err != nil {
			reached, err := b.members[ran-1].after(ctx, t, h, status, err)
			switch {
			case err == nil:
			case reached != t+h || !errors.Is(err, master.ErrTerminated):
				return ran, reached, err
			case end == nil:
				ended, end = ran, err
			}
		}
		from = ran
	}
	if b.refused != nil {
		return b.took + 1, t, b.refused
	}
	if !read {
		return ended, t + h, end
	}
	for k, m := range b.members {
		if m.stale || len(m.stringOut) > 0 || m.ticking.runs {
			if err := m.complete(t, h); err != nil {
				return k + 1, t, err
			}
		}
	}
	carry(b.out)
	return ended, t + h, end
}

// complete reads what is left to be read after a step.
func (s *Slave) complete(t, h float64) error {
	if err := s.checkClock(t, h); err != nil {
		return err
	}
	if s.stale {
		return s.read()
	}
	return s.readStrings()
}

// Save saves the states of all members.
func (b *batch) Save(states []master.State) (failed int, err error) {
	for k, m := range b.members {
		if err := m.settle(); err != nil {
			return k, err
		}
		b.states[k], _ = states[k].(*fmi.FMUState)
	}
	failed, err = b.calls.Save(b.states)
	for k, s := range b.states {
		if s != nil { // not saved because of an error
			states[k] = s
		}
	}
	return failed, err
}

// Restore returns all members to their saved states. It keeps staged inputs.
func (b *batch) Restore(states []master.State) (failed int, err error) {
	for k := range b.members {
		b.states[k], _ = states[k].(*fmi.FMUState)
	}
	if failed, err = b.calls.Restore(b.states); err != nil {
		return failed, err
	}
	for _, m := range b.members {
		m.restored()
	}
	return 0, nil
}
