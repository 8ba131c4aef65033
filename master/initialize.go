package master

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Limits of the initialisation. Residuals are relative to the larger of value and nominal value. Newton's
// method aims at initTolerance, which is near rounding; a loop with a residual above initAcceptable is
// not solved.
const (
	initTolerance  = 1e-12
	initAcceptable = 1e-6
	initNewton     = 200 // iterations; enough for a cubic from 1e30
	initNudges     = 3   // away from points where the Jacobian is singular
	initFar        = 1e8 // largest growth of an input in the sweeps, relative to its magnitude at the start
	initSweeps     = 3
	initRounds     = 20 // of discrete signals on a loop
)

// initializer solves the initialisation equations of the coupled system: it evaluates the graph of ports
// in topological order and solves each loop (fmi2 29, 43).
type initializer struct {
	x      *Exec
	t      float64
	g      *portGraph
	modes  []Initializer // by subsystem; nil = none
	dirty  []bool        // by subsystem: inputs changed since it was evaluated
	report []Loop
	before []float64 // scratch
	given  []Values  // by transfer: what the parameter was set to
	// declared marks the ports on loops of declared dependencies.
	declared []bool
	seen     []*evaluation // the last one of each subsystem
	leaks    leaks
	freed    map[int]bool // outputs without hidden dependencies, or that are no functions of the inputs
}

// enter puts every subsystem into initialisation mode.
func (n *initializer) enter(ctx context.Context, e Experiment) error {
	for i := range n.x.able {
		n.x.touch(i)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		mode := n.x.able[i].initializer
		if mode == nil {
			continue
		}
		n.modes[i] = mode
		e.Reverts = n.x.Reverts(i)
		if err := n.x.crew.on(i, func() error { return mode.EnterInit(ctx, e) }); err != nil {
			return n.failed(i, err)
		}
	}
	return nil
}

// exit ends the initialisation mode of every subsystem and reads the outputs again, which may be valid
// only then (fmi2 71).
func (n *initializer) exit() error {
	for i, mode := range n.modes {
		n.x.touch(i)
		if mode == nil {
			continue
		}
		if err := n.x.crew.on(i, mode.ExitInit); err != nil {
			return n.failed(i, err)
		}
	}
	for i := range n.modes {
		if err := n.x.readOn(i); err != nil {
			return n.failed(i, err)
		}
	}
	return nil
}

func (n *initializer) failed(i int, err error) error {
	return &StepError{Subsystem: n.x.Sys.Infos[i].Name, Source: n.x.Sys.Infos[i].Source, T: n.t, Reached: n.t, Err: err, Initialize: true}
}

// solve makes inputs and outputs consistent. It starts again when it finds undeclared dependencies.
func (n *initializer) solve(ctx context.Context) error {
	n.seen, n.freed = make([]*evaluation, len(n.x.Sys.Subsystems)), map[int]bool{}
	for {
		known := len(n.leaks)
		n.report = nil
		err := n.pass(ctx)
		var dead *StepError
		if len(n.leaks) == known || errors.As(err, &dead) || ctx.Err() != nil {
			return err
		}
		for _, l := range n.leaks[known:] {
			n.g.add(l.sub, l.in, l.out)
		}
	}
}

// pass makes inputs and outputs consistent in the order of the known dependencies.
func (n *initializer) pass(ctx context.Context) error {
	x := n.x
	n.dirty = make([]bool, len(x.Sys.Subsystems))
	n.given = make([]Values, len(x.Sys.transfers))
	// Start values are the first guess for connected inputs, too.
	x.CoupleAll(n.t, x.U)
	for i, info := range x.Sys.Infos {
		for k := range info.StartIn {
			if at := x.Sys.InAt[i] + k; x.Sys.source[at] >= 0 {
				x.U[at] = info.StartIn[k]
			}
		}
		if err := n.applyStaged(i); err != nil {
			return err
		}
		n.dirty[i] = true
	}
	for _, scc := range components(len(n.g.succ), n.g.next) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if cyclic(scc, n.g.next) {
			if err := n.solveLoop(scc); err != nil {
				return err
			}
			continue
		}
		sub, input := n.g.place(scc[0])
		if scc[0] >= n.g.transferAt {
			if err := n.transfer(scc[0] - n.g.transferAt); err != nil {
				return err
			}
		}
		if input {
			n.dirty[sub] = true
		} else if n.dirty[sub] {
			if err := n.evaluate(sub); err != nil {
				return err
			}
		}
	}
	for i := range x.Sys.Subsystems {
		if n.dirty[i] {
			if err := n.evaluate(i); err != nil {
				return err
			}
		}
	}
	return n.checkTransfers()
}

// transfer sets a parameter to the value of its source.
func (n *initializer) transfer(k int) error {
	x := n.x
	t := &x.Sys.transfers[k]
	v := x.transferred(t)
	if t.kind == Real && v.Real[0]-v.Real[0] != 0 {
		return n.failed(t.from, fmt.Errorf("%s gives %g to the parameter %s", x.Sys.outPortName(t), v.Real[0], x.Sys.paramName(t)))
	}
	setter := x.able[t.to].parameters
	if err := x.crew.on(t.to, func() error { return setter.SetParameter(t.parameter, v) }); err != nil {
		return n.failed(t.to, err)
	}
	n.given[k] = v
	n.seen[t.to] = nil // outputs may now change without a change of inputs
	return nil
}

// checkTransfers fails if a source has changed since it gave a parameter its value.
func (n *initializer) checkTransfers() error {
	for k := range n.x.Sys.transfers {
		t := &n.x.Sys.transfers[k]
		gave, now := n.given[k], n.x.transferred(t)
		same := slices.Equal(gave.Integer, now.Integer) && slices.Equal(gave.Boolean, now.Boolean) && slices.Equal(gave.String, now.String)
		if t.kind == Real {
			same = math.Abs(gave.Real[0]-now.Real[0]) <= initAcceptable*max(math.Abs(gave.Real[0]), math.Abs(now.Real[0]))
		}
		if !same {
			return n.failed(t.from, fmt.Errorf("%s has changed since it gave its value to the parameter %s: "+
				"it depends on inputs that the InitialUnknowns of its FMU do not declare", n.x.Sys.outPortName(t), n.x.Sys.paramName(t)))
		}
	}
	return nil
}

// evaluate couples the inputs of a subsystem and reads its outputs. It keeps the old value of an input
// whose new one is not finite: that may be due to the first guess, and if it persists, the error must
// name the source and not the subsystem that refuses the value.
func (n *initializer) evaluate(i int) error {
	u := n.x.In(i)
	n.before = append(n.before[:0], u...)
	n.x.Couple(i, n.t, n.x.U)
	for k, v := range u {
		if v-v != 0 {
			u[k] = n.before[k]
		}
	}
	return n.apply(i)
}

// apply reads the outputs of a subsystem at the inputs in U.
func (n *initializer) apply(i int) error {
	n.x.coupleDiscrete(i, n.t)
	return n.applyStaged(i)
}

// applyStaged is apply with the last discrete inputs: at first their start values, because an FMU may
// refuse the values of a source that was never evaluated.
func (n *initializer) applyStaged(i int) error {
	n.dirty[i] = false
	if err := n.call(i); err != nil {
		return err
	}
	return n.observe(i)
}

// call sets the inputs of a subsystem and reads its outputs.
func (n *initializer) call(i int) error {
	err := n.x.crew.on(i, func() error {
		if err := n.x.Stage(i); err != nil {
			return err
		}
		if err := n.x.sendDiscrete(i); err != nil {
			return err
		}
		if n.modes[i] != nil {
			if err := n.modes[i].EvalInit(); err != nil {
				return err
			}
		}
		return n.x.Read(i)
	})
	if err != nil {
		return n.failed(i, err)
	}
	return nil
}
