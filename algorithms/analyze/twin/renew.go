package twin

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/master"
)

// longestWay is the largest number of steps from the start to the operating point over which instances are led.
const longestWay = 20_000

// renewable leads another instance of subsystem i to the operating point and compares it. It returns why this is not
// possible, or "".
func (p *Point) renewable(i int) string {
	another, ok := master.As[master.Duplicator](p.X.Sys.Subsystems[i])
	if !ok {
		return "there are no further instances of it"
	}
	if why := p.leads(i); why != "" {
		return why
	}
	p.Models[i].another = another
	one, err := p.renew(i)
	if err == nil {
		why := p.elsewhere(i, one)
		if end(one); why != "" {
			return why
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// leads returns why another instance of subsystem i cannot be led from the start to here, or "".
func (p *Point) leads(i int) string {
	info := p.X.Sys.Infos[i]
	if len(p.way) > longestWay {
		return fmt.Sprintf("the operating point is %d steps from the start, too far for leading further instances there: "+
			"take an earlier point or longer steps [no-rollback]", len(p.way)-1)
	}
	for k := range info.DiscreteIn {
		if len(p.way) > 1 && p.X.Sys.DiscreteConnected(i, k) {
			return fmt.Sprintf("its input %s is not Real and has changed since the start, so that further instances cannot be "+
				"led here [no-rollback]", info.DiscreteIn[k].Name)
		}
	}
	return ""
}

// renew makes another instance of subsystem i and leads it from the start to the operating point
// with the same inputs. The caller must end it.
func (p *Point) renew(i int) (sub master.Subsystem, err error) {
	x, m := p.X, p.Models[i]
	from, to := x.Sys.InAt[i], x.Sys.InAt[i+1]
	copy(x.U[from:to], p.way[0][from:to])
	if err := x.Stage(i); err != nil {
		return nil, err
	}
	if sub, err = m.another.Duplicate(p.Ctx, m.Order); err != nil {
		return nil, err
	}
	late := 0 // subsystems stepped after their sources get their new values
	if slices.Contains(x.Sys.Late, i) {
		late = 1
	}
	y := make([]float64, len(m.Info.Out))
	for n := range len(p.way) - 1 {
		if err = sub.SetInputs(p.way[n+late][from:to]); err == nil {
			if _, err = sub.Step(p.Ctx, p.Start+float64(float64(n)*p.Step), p.Step); err == nil {
				err = sub.Outputs(y) // as in the run
			}
		}
		if err != nil {
			end(sub)
			return nil, err
		}
	}
	return sub, nil
}

// elsewhere returns how the outputs of another instance, led the same way, differ from those here, or "".
func (p *Point) elsewhere(i int, sub master.Subsystem) string {
	const same = 1e-6
	m := p.Models[i]
	y := make([]float64, len(m.Info.Out))
	if len(p.way) == 1 {
		return ""
	}
	if err := p.X.Outputs(i, sub, y); err != nil {
		return err.Error()
	}
	for o, v := range y[:m.Outputs()] {
		if want := p.Y[p.X.Sys.OutAt[i]+o]; math.Abs(v-want) > same*max(math.Abs(want), m.Info.Out[o].Magnitude()) {
			return fmt.Sprintf("a further instance with the same inputs has other outputs: %s is %g and not %g [no-rollback]", m.Info.Out[o].Name, v, want)
		}
	}
	return ""
}

// begin returns subsystem i at the operating point: itself, restored, or another instance. The caller must call done
// afterwards.
func (p *Point) begin(i int) (sub master.Subsystem, done func() error, err error) {
	if p.Models[i].another == nil {
		sub = p.X.Sys.Subsystems[i]
		return sub, func() error { promise(sub, true); return nil }, p.X.Restore(i)
	}
	if sub, err = p.renew(i); err != nil {
		return nil, nil, err
	}
	return sub, func() error { end(sub); return nil }, nil
}

// take makes step n of subsystem i after begin. The subsystem itself will be restored to the
// operating point again, but not to earlier points.
func (p *Point) take(i int, sub master.Subsystem, n int, h float64) error {
	if p.Models[i].another == nil {
		promise(sub, n == 0)
	}
	_, err := sub.Step(p.Ctx, p.T+float64(float64(n)*h), h)
	return err
}

func promise(sub master.Subsystem, noRestoreBefore bool) {
	if aware, ok := master.As[master.RestoreAware](sub); ok {
		aware.NoRestoreBefore(noRestoreBefore)
	}
}

// Lead returns the outputs of subsystem i after each step of size h from the operating point, with u[n] added to its
// inputs over step n.
func (p *Point) Lead(i int, h float64, u [][]float64) (out [][]float64, err error) {
	x, m := p.X, p.Models[i]
	sub, done, err := p.begin(i)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	hold := x.W[x.Sys.InAt[i]:x.Sys.InAt[i+1]]
	now, y := make([]float64, len(hold)), make([]float64, len(m.Info.Out))
	derivatives, _ := master.As[master.InputDerivativeSetter](sub)
	for n := range u {
		for k := range now {
			now[k] = hold[k] + u[n][k]
		}
		if err := sub.SetInputs(now); err != nil {
			return nil, err
		}
		for order := 1; n == 0 && order <= m.Order; order++ { // held inputs, also in later steps
			if err := derivatives.SetInputDerivatives(order, make([]float64, len(now))); err != nil {
				return nil, err
			}
		}
		if err := p.take(i, sub, n, h); err != nil {
			return nil, err
		}
		if err := p.X.Outputs(i, sub, y); err != nil {
			return nil, err
		}
		out = append(out, append([]float64(nil), y[:m.Outputs()]...))
	}
	return out, nil
}
