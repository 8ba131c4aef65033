package twin

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// Options are those of an operating point.
type Options struct {
	Start, At float64 // s; the operating point is the start, or the first communication point at or after At
	Stop      float64 // s: of the experiment
	Step      float64 // macro step in s, up to the operating point and in the middle of the scan
	Tolerance float64 // of the subsystems; 0 = none
	Order     int     // highest extrapolation order
	From, To  float64 // s: bounds of the scanned step sizes; 0 = Step/30 and Step·30
}

// Bounds returns the range of step sizes that is scanned.
func (o *Options) Bounds() (from, to float64) {
	const part = 30
	return cmp.Or(o.From, o.Step/part), cmp.Or(o.To, o.Step*part)
}

// windowSteps is the least length of a response in steps of the analysis.
const windowSteps = 10

// At brings a system to its operating point, by explicit coupling, and calls do there. It returns the result of this run.
// Errors are those of the run and of do.
func At(ctx context.Context, sys *master.System, o Options, do func(p *Point) error) (master.Result, error) {
	way, err := algorithms.NewCoupling(algorithms.Config{})
	if err != nil {
		return master.Result{}, err
	}
	probe := &prober{Coupling: way, at: max(o.At, o.Start), order: o.Order}
	var failed error
	probe.do = func(ctx context.Context, x *master.Exec, t float64) error {
		p, err := newPoint(ctx, x, o, t, probe)
		if err == nil {
			p.Window = windowSteps * o.Step
			err = Guarded(func() error { return do(p) })
		}
		failed = err
		return err
	}
	run, err := master.NewRun(sys, probe, master.Options{Start: o.Start, Stop: max(o.Stop, probe.at+2*o.Step), Step: o.Step, Tolerance: o.Tolerance})
	if err != nil {
		return master.Result{}, err
	}
	err = run.Start(ctx)
	for more := true; err == nil && more && !probe.done; {
		more, err = MacroStep(ctx, run)
	}
	result, closed := run.Close()
	if failed != nil {
		return result, failed
	}
	if err == nil && !probe.done {
		err = errors.New("the run ends before the operating point")
	}
	if err == nil {
		err = closed
	}
	return result, err
}

// prober is explicit coupling that calls do at the operating point.
type prober struct {
	*algorithms.Coupling
	at    float64
	order int
	do    func(ctx context.Context, x *master.Exec, t float64) error
	done  bool
	// broken is, by subsystem, why it cannot go back although it claims to.
	broken map[int]string
	taken  []int       // by subsystem: order of input derivatives that it supports, up to order
	takes  []int       // likewise, up to MostDerivatives
	sizes  []float64   // largest magnitude of each input so far
	way    [][]float64 // inputs at the communication points, so far
}

// Plan asks for the rollback of all subsystems that support it, for measuring their responses.
func (p *prober) Plan(s *master.System, H float64) master.Plan {
	plan := p.Coupling.Plan(s, H)
	plan.Rollback = nil
	for i, info := range s.Infos {
		if _, ok := master.As[master.StateSaver](s.Subsystems[i]); ok && info.Caps.SaveState {
			plan.Rollback = append(plan.Rollback, i)
		}
	}
	return plan
}

// DoesWithout notes that a subsystem fails at rollback, and accepts it.
func (p *prober) DoesWithout(i int, why error) bool {
	if p.broken == nil {
		p.broken = map[int]string{}
	}
	p.broken[i] = Reason(why)
	return true
}

// Reason returns the text of an error without that of master.ErrCapability.
func Reason(err error) string {
	return strings.Replace(err.Error(), master.ErrCapability.Error()+": ", "", 1)
}

// InputDerivativeOrder returns the highest order that is measured.
func (p *prober) InputDerivativeOrder() int { return p.order }

func (p *prober) Init(x *master.Exec, t0 float64) error {
	p.taken, p.takes, p.sizes = make([]int, len(x.Sys.Subsystems)), make([]int, len(x.Sys.Subsystems)), make([]float64, len(x.W))
	for i := range p.taken {
		if !x.Interpolates(i) {
			continue
		}
		prepare := func(most int) (order int, err error) {
			for order = most; order >= 0; order-- {
				if err = x.PrepareDerivatives(i, order); err == nil || !errors.Is(err, master.ErrCapability) {
					break
				}
			}
			return order, err
		}
		var err error
		if p.takes[i], err = prepare(MostDerivatives); err == nil {
			p.taken[i], err = prepare(min(p.order, p.takes[i]))
		}
		if err != nil {
			return err
		}
	}
	return p.Coupling.Init(x, t0)
}

func (p *prober) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	if !p.done && len(p.way) <= longestWay+1 {
		p.way = append(p.way, slices.Clone(x.W))
	}
	for k, v := range x.W {
		p.sizes[k] = max(p.sizes[k], math.Abs(v))
	}
	if !p.done && t >= p.at-1e-9*H {
		p.done = true
		if err := p.do(ctx, x, t); err != nil {
			return err
		}
	}
	return p.Coupling.Attempt(ctx, x, t, H, trial)
}

// MostDerivatives is the highest order of input derivatives that algorithms use: the second solution of ex-local is one
// above the highest extrapolation order.
const MostDerivatives = algorithms.MaxOrder + 1
