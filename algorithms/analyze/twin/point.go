package twin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

const (
	// Many is the number of subsystems above which an analysis is coarser: fewer points, and few connections.
	Many = 20
	// FewerSteps is the length of a forecast of many subsystems, in steps.
	FewerSteps = 250
)

// Sources of the models of subsystems.
const (
	Measured    = "measured"    // by steps repeated from a saved state, including the internal solver
	Renewed     = "renewed"     // likewise, each time by another instance led from the start to the operating point
	Directional = "directional" // by directional derivatives, integrated exactly
	None        = "none"
)

// Point is a coupled system at an operating point. The run is held there while the models are made.
type Point struct {
	Ctx    context.Context
	X      *master.Exec
	T      float64
	Step   float64   // of the analysis
	Y      []float64 // outputs
	sizes  []float64 // largest magnitude of each input up to here
	Order  int       // highest power of s that inputs may have
	Models []*Model
	// Window is the least length of a response in s: a few short steps would not show slow modes.
	Window float64
	// way holds the inputs at the communication points from the start to here.
	way   [][]float64
	Start float64
	// measurements are requested by goroutines of Each; nil = none are running.
	measurements chan func()
	// Broken is, by subsystem, why it cannot go back although it claims to.
	Broken map[int]string
}

// Model is the source of the responses of one subsystem.
type Model struct {
	Info        *master.Info
	Source, Why string
	Order       int                // of input derivatives that it supports, up to that of the analysis
	Takes       int                // of input derivatives that it supports, up to MostDerivatives
	Space       *linear.StateSpace // from directional derivatives; nil = it gives none
	another     master.Duplicator  // makes further instances; nil = not needed, or not possible
	// Departs is how the component differs from its directional derivatives, "" = no difference is known.
	Departs string
	lock    sync.Mutex
	known   map[float64]found // by step
}

// found is a response, or why there is none.
type found struct {
	response *linear.Response
	err      error
}

// end terminates and closes a further instance. What goes wrong then changes no measurement.
func end(s master.Subsystem) {
	if t, ok := master.As[master.Terminator](s); ok {
		_ = t.Terminate()
	}
	if c, ok := master.As[io.Closer](s); ok {
		_ = c.Close()
	}
}

// newPoint chooses the source of the model of each subsystem.
func newPoint(ctx context.Context, x *master.Exec, o Options, t float64, of *prober) (*Point, error) {
	p := &Point{Ctx: ctx, X: x, T: t, Step: o.Step, Start: o.Start, Order: o.Order,
		Y: slices.Clone(x.Y), sizes: of.sizes, way: of.way, Broken: of.broken}
	for i, info := range x.Sys.Infos {
		m := &Model{Info: info, Source: Measured, Order: of.taken[i], Takes: of.takes[i], known: map[float64]found{}}
		p.Models = append(p.Models, m)
		without := "it cannot go back (canGetAndSetFMUstate) [no-rollback]"
		if x.Reverts(i) {
			differs, atStart := x.Replay(i).Unpromised, x.Replay(i).AtStart
			switch {
			case differs != "":
				without = "it computes different values in steps that may be undone (noSetFMUStatePriorToCurrentPoint = false) [no-rollback]: " + differs
			case atStart != "" && len(p.way) == 1:
				without = "it goes another way once it has gone back to its start [no-rollback]: " + atStart
			default:
				m.Space, _ = p.derivatives(i)
				continue
			}
		}
		m.Space, m.Why = p.derivatives(i)
		exact, why := m.Space, m.Why
		m.Source = None
		if exact == nil {
			m.Why = without + ", and " + why
			if broken, ok := p.Broken[i]; ok {
				m.Why = broken + "; " + why
			}
		}
		none := p.renewable(i)
		if none == "" {
			m.Source = Renewed
		}
		switch {
		case exact != nil:
			p.compare(i, none, o)
		case none != "":
			m.Why += "; " + none
		}
	}
	return p, nil
}

// Outputs returns the number of outputs that are not internal.
func (m *Model) Outputs() int {
	n := 0
	for _, o := range m.Info.Out {
		if !o.Internal {
			n++
		}
	}
	return n
}

// derivatives returns the state space of subsystem i from its directional derivatives, or why there is none.
func (p *Point) derivatives(i int) (*linear.StateSpace, string) {
	sys := p.X.Sys
	info, sub := sys.Infos[i], sys.Subsystems[i]
	source, ok := master.As[master.Linearizer](sub)
	if !info.Caps.DirectionalDerivative || !ok {
		return nil, "it provides no directional derivatives (providesDirectionalDerivative)"
	}
	n, nu, ny := len(source.States()), len(info.In), len(info.Out)
	if n == 0 && !info.Stateless {
		return nil, "it exposes no continuous states with their derivatives (ModelStructure/Derivatives)"
	}
	s := &linear.StateSpace{D: mat.NewDense(max(ny, 1), max(nu, 1), nil)}
	if n > 0 {
		s.A, s.B, s.C = mat.NewDense(n, n, nil), mat.NewDense(n, max(nu, 1), nil), mat.NewDense(max(ny, 1), n, nil)
	}
	rate, slope := make([]float64, n), make([]float64, ny)
	for c := range n + nu {
		dx, du := make([]float64, n), make([]float64, nu)
		if c < n {
			dx[c] = 1
		} else {
			du[c-n] = 1
		}
		if err := source.Linearize(dx, du, rate, slope); err != nil {
			return nil, err.Error()
		}
		for r, v := range rate {
			if c < n {
				s.A.Set(r, c, v)
			} else {
				s.B.Set(r, c-n, v)
			}
		}
		for r, v := range slope {
			if v-v != 0 && !sys.Feeds(sys.OutAt[i]+r) {
				v = 0
			}
			if c < n {
				s.C.Set(r, c, v)
			} else {
				s.D.Set(r, c-n, v)
			}
		}
	}
	return s, ""
}

// Over returns the response of subsystem i over steps of size h.
func (p *Point) Over(i int, h float64) (*linear.Response, error) {
	m := p.Models[i]
	m.lock.Lock()
	got, ok := m.known[h]
	m.lock.Unlock()
	if ok {
		return got.response, got.err
	}
	if p.measurements == nil {
		return p.find(i, h)
	}
	done := make(chan struct{})
	var r *linear.Response
	var err error
	p.measurements <- func() {
		defer close(done)
		r, err = p.find(i, h)
	}
	<-done
	return r, err
}

// find is Over on the goroutine that calls the subsystems.
func (p *Point) find(i int, h float64) (*linear.Response, error) {
	m := p.Models[i]
	m.lock.Lock()
	got, ok := m.known[h]
	m.lock.Unlock()
	if ok { // in the meantime
		return got.response, got.err
	}
	switch m.Source {
	case Measured, Renewed:
		got.err = Guarded(func() (err error) { got.response, err = p.measure(i, h); return err })
		if m.Source == Measured { // the run continues from here
			got.err = errors.Join(got.err, p.X.Restore(i))
		}
	case Directional:
		got.response, got.err = m.Space.Over(h, p.Order)
	default:
		got.err = errors.New(m.Why)
	}
	if got.err != nil {
		var step *master.StepError // names its subsystem
		if text := got.err.Error(); errors.As(got.err, &step) && strings.HasPrefix(text, m.Info.Name) {
			got = found{err: got.err}
		} else {
			got = found{err: fmt.Errorf("%s over steps of %.4g s: %w", m.Info, h, got.err)}
		}
	}
	m.lock.Lock()
	m.known[h] = got
	m.lock.Unlock()
	return got.response, got.err
}

// Each calls work(0) … work(n-1) in parallel, while the calling goroutine, which alone calls subsystems, makes the
// measurements that they need. A panic of work(k) is passed to failed(k). The error is that of the context.
func (p *Point) Each(n int, observe func(done, all int), work func(k int), failed func(k int, err error)) error {
	next, finished := make(chan int, n), make(chan struct{}, n)
	p.measurements = make(chan func())
	for k := range n {
		next <- k
	}
	close(next)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for k := range next {
				if p.Ctx.Err() == nil {
					if err := Guarded(func() error { work(k); return nil }); err != nil {
						failed(k, err)
					}
				}
				finished <- struct{}{}
			}
		}()
	}
	for done := 0; done < n; {
		if observe != nil {
			observe(done, n)
		}
		select {
		case f := <-p.measurements:
			f()
		case <-finished:
			done++
		}
	}
	p.measurements = nil
	return context.Cause(p.Ctx)
}

// MacroStep takes a macro step of a run. It returns an error if a subsystem ends the simulation: measurements after that
// would be meaningless.
func MacroStep(ctx context.Context, run *master.Run) (more bool, err error) {
	more, err = run.Step(ctx)
	if err == nil && run.Terminated() {
		err = fmt.Errorf("%w at t = %.12g s", master.ErrTerminated, run.Time())
	}
	return more, err
}

// Guarded calls do and returns a panic in it as an error, so that a run after the analysis is not affected.
func Guarded(do func() error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("it could not be analysed because of a bug in macrostep; please report it: %v", fault)
		}
	}()
	return do()
}
