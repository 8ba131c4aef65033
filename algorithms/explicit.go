package algorithms

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// Scheme is the order in which an explicit algorithm steps the subsystems.
type Scheme uint8

// The schemes.
const (
	Jacobi      Scheme = iota // all from the old values
	GaussSeidel               // one after the other, each with the values already new
)

// ExplicitConfig configures an explicit algorithm. The zero value is Jacobi of
// order 0.
type ExplicitConfig struct {
	Scheme   Scheme
	Order    int      // extrapolation order k = 0…MaxOrder
	Substeps int      // n of the delivery by substeps; 0 = 10
	Delivery Delivery // preferred
	Sequence []string // Gauss–Seidel: names of all subsystems; nil = from the graph
}

// Explicit is explicit coupling: the inputs are extrapolated over the macro
// step, every subsystem is stepped once, the outputs are exchanged.
//
// Stateless subsystems that lie on no loop of their own kind are stepped after
// their sources, with the new values held (System.Late).
//
// Source: schweizer 2.1.2, 2.2.2, 2.3.2 (predictor step only); meyer 3.1.
type Explicit struct {
	config ExplicitConfig
	in     approximation

	sequence []int           // Gauss–Seidel
	late     []bool          // by subsystem: stepped after its sources
	sources  [][]int         // by subsystem
	from     []int           // by input: the subsystem that feeds it, or -1
	done     []bool          // Gauss–Seidel: stepped in this macro step
	whole    *master.StepSet // Jacobi: those that take the step in one piece
	pieces   []int           // Jacobi: those that take it in substeps
}

var (
	_ master.Algorithm           = (*Explicit)(nil)
	_ master.DeliveryReporter    = (*Explicit)(nil)
	_ master.InputDerivativeUser = (*Explicit)(nil)
)

const defaultSubsteps = 10

// NewExplicit gives an explicit algorithm.
func NewExplicit(c ExplicitConfig) (*Explicit, error) {
	if c.Order < 0 || c.Order > MaxOrder {
		return nil, fmt.Errorf("the extrapolation order is %d; it lies between 0 and %d", c.Order, MaxOrder)
	}
	if c.Substeps < 0 {
		return nil, fmt.Errorf("the number of substeps is %d; it is at least 1", c.Substeps)
	}
	if c.Substeps == 0 {
		c.Substeps = defaultSubsteps
	}
	return &Explicit{config: c, in: approximation{
		order: c.Order, substeps: c.Substeps, want: c.Delivery, looksAhead: c.Scheme == GaussSeidel,
	}}, nil
}

// Check finds the sequence of a Gauss–Seidel scheme.
func (e *Explicit) Check(s *master.System) error {
	if e.config.Scheme != GaussSeidel {
		return nil
	}
	e.sequence = s.SequenceFromGraph()
	if e.config.Sequence == nil {
		return nil
	}
	var given []int
	for _, name := range e.config.Sequence {
		i := slices.IndexFunc(s.Infos, func(info *master.Info) bool { return info.Name == name })
		if i < 0 {
			return fmt.Errorf("the sequence names %q, which is no subsystem of the system", name)
		}
		if slices.Contains(given, i) {
			return fmt.Errorf("the sequence names %q twice", name)
		}
		given = append(given, i)
	}
	if len(given) != len(s.Subsystems) {
		return errors.New("the sequence must name every subsystem once")
	}
	e.sequence = given
	return nil
}

// Init prepares the approximation and groups the subsystems.
func (e *Explicit) Init(x *master.Exec, t0 float64) error {
	if err := e.in.init(x, t0); err != nil {
		return err
	}
	n := len(x.Sys.Subsystems)
	e.late, e.done = make([]bool, n), make([]bool, n)
	for _, i := range x.Sys.Late {
		e.late[i] = true
	}
	e.sources, e.from = make([][]int, n), make([]int, len(x.W))
	for i := range e.sources {
		e.sources[i] = x.Sys.Sources(i)
	}
	for k := range e.from {
		e.from[k] = x.Sys.SourceSubsystem(k)
	}
	var whole []int
	e.pieces = nil
	for _, i := range x.Sys.Stepped {
		if e.in.whole(i) {
			whole = append(whole, i)
		} else {
			e.pieces = append(e.pieces, i)
		}
	}
	var err error
	e.whole, err = x.NewStepSet(whole)
	return err
}

// Attempt takes one macro step. It never asks for a repetition.
func (e *Explicit) Attempt(ctx context.Context, x *master.Exec, t, H float64) (master.Trial, error) {
	e.in.begin(x, t, H)
	trial := master.Trial{Est: math.NaN(), Indicator: math.NaN(), Order: e.in.old.degree}
	if e.config.Scheme == GaussSeidel {
		return trial, e.gaussSeidel(ctx, x, t, H)
	}
	return trial, e.jacobi(ctx, x, t, H)
}

func (e *Explicit) jacobi(ctx context.Context, x *master.Exec, t, H float64) error {
	for _, i := range x.Sys.Stepped {
		if err := x.StageDiscrete(i, t); err != nil {
			return err
		}
		if e.in.whole(i) {
			if err := e.in.stage(x, i); err != nil {
				return err
			}
		}
	}
	for _, i := range e.pieces {
		if err := e.in.step(ctx, x, i, t, H); err != nil {
			return err
		}
	}
	if err := x.StepAll(ctx, e.whole, t, H); err != nil {
		return err
	}
	for _, i := range x.Sys.Late {
		if err := stepLate(ctx, x, i, t, H); err != nil {
			return err
		}
	}
	return nil
}

// stepLate steps a stateless subsystem with the new values of its sources.
func stepLate(ctx context.Context, x *master.Exec, i int, t, H float64) error {
	x.Couple(i, t+H, x.U)
	if err := x.StageDiscrete(i, t+H); err != nil {
		return err
	}
	if err := x.Stage(i); err != nil {
		return err
	}
	return x.Step(ctx, i, t, H)
}

func (e *Explicit) gaussSeidel(ctx context.Context, x *master.Exec, t, H float64) error {
	clear(e.done)
	for _, i := range e.sequence {
		if e.late[i] {
			continue // as soon as its sources are new
		}
		if err := e.stepInTurn(ctx, x, i, t, H); err != nil {
			return err
		}
		e.done[i] = true
		for _, l := range x.Sys.Late {
			if e.done[l] || !e.sourcesDone(l) {
				continue
			}
			if err := stepLate(ctx, x, l, t, H); err != nil {
				return err
			}
			e.done[l] = true
		}
	}
	// Those without any source but the world outside.
	for _, l := range x.Sys.Late {
		if !e.done[l] {
			if err := stepLate(ctx, x, l, t, H); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Explicit) sourcesDone(i int) bool {
	for _, from := range e.sources[i] {
		if !e.done[from] {
			return false
		}
	}
	return true
}

// stepInTurn steps subsystem i with the value at t+H of every source that has
// been stepped as the newest point of its input.
func (e *Explicit) stepInTurn(ctx context.Context, x *master.Exec, i int, t, H float64) error {
	x.Couple(i, t+H, x.U)
	for k := x.Sys.InAt[i]; k < x.Sys.InAt[i+1]; k++ {
		if from := e.from[k]; from >= 0 && e.done[from] {
			e.in.arrived(k, x.U[k])
		}
	}
	if err := x.StageDiscrete(i, t); err != nil {
		return err
	}
	if !e.in.whole(i) {
		return e.in.step(ctx, x, i, t, H)
	}
	if err := e.in.stage(x, i); err != nil {
		return err
	}
	return x.Step(ctx, i, t, H)
}

// Accept takes the coupling inputs at t into the history.
func (e *Explicit) Accept(x *master.Exec, t float64) { e.in.push(t, x.W) }

// Reject has nothing to undo: the history holds accepted points only.
func (e *Explicit) Reject(t, H float64) {}

// InputDerivativeOrder is the order, if it is to be delivered by derivatives.
func (e *Explicit) InputDerivativeOrder() int {
	if e.in.want == Auto || e.in.want == Derivatives {
		return e.in.order
	}
	return 0
}

// Deliveries tells how each input gets its polynomial.
func (e *Explicit) Deliveries() []master.Delivery { return e.in.report() }
