package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Settled is what a convergence study found of a quantity.
type Settled struct {
	Quantity string    `json:"quantity"`
	Settings []float64 `json:"settings"` // step size, or tolerance, of each run
	Values   []Number  `json:"values"`
	Changes  []Number  `json:"changes"` // from the run before; NaN = there is none
	// Orders are those observed, log(change before / change) / log(divisor); NaN before the third run.
	Orders  []Number `json:"orders"`
	Settled bool     `json:"settled"`
	// Undecided says why a quantity that hardly changes any more has not settled; "" = it has, or still changes.
	Undecided string `json:"undecided"`
	// Other is the value by another algorithm, OtherBy, at the last setting; NaN = none was run.
	Other   Number `json:"other"`
	OtherBy string `json:"other_by"`
}

// State describes the state of the quantity.
func (q *Settled) State() string {
	switch {
	case q.Settled:
		return "settled"
	case q.Undecided != "":
		return "undecided: " + q.Undecided
	}
	return "not settled"
}

func (p *Plan) checkConvergence() error {
	c := p.Convergence
	var errs []error
	setting, _, _ := strings.Cut(c.Setting, ".")
	if known := []string{"step-size", "tolerance", "param"}; !slices.Contains(known, setting) {
		errs = append(errs, fmt.Errorf("convergence: the setting %q is none that becomes smaller%s", c.Setting,
			cmp.Or(diag.DidYouMean(setting, known), "; give step-size, tolerance or param.NAME, as in param.control.rtol")))
	}
	if len(p.Factors) > 0 || p.Design.Table != nil {
		errs = append(errs, errors.New("convergence: vary and table do not go with it; the setting is what varies"))
	}
	if c.Divide == 0 {
		c.Divide = 2
		if c.Setting != settingStep {
			c.Divide = 10
		}
	}
	if c.Most == 0 {
		c.Most = 8
	}
	if c.Tolerance == 0 {
		c.Tolerance = 1e-4
	}
	switch {
	case c.From < 0 || c.From == 0 && c.Setting != settingStep:
		errs = append(errs, errors.New("convergence: from: give the first value, above 0"))
	case c.Divide <= 1:
		errs = append(errs, fmt.Errorf("convergence: divide: %g is not above 1", c.Divide))
	case c.Tolerance < 0:
		errs = append(errs, fmt.Errorf("convergence: tolerance: %g is below 0", c.Tolerance))
	case c.Most < 2:
		errs = append(errs, errors.New("convergence: most: a comparison takes 2 runs"))
	}
	if c.Quantities == nil {
		for i := range p.Quantities {
			c.Quantities = append(c.Quantities, p.Quantities[i].Name)
		}
	}
	for _, name := range c.Quantities {
		_, err := p.quantity(name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// converge makes runs with a smaller setting each until all quantities have settled.
func (s *Study) converge(ctx context.Context, exec Executor) ([]Settled, error) {
	c := s.Plan.Convergence
	out := make([]Settled, len(c.Quantities))
	for i, name := range c.Quantities {
		out[i].Quantity, out[i].Other = name, Number(math.NaN())
	}
	if c.From == 0 {
		return nil, errors.New("convergence: from: the first step size is not known; give it")
	}
	value, n := c.From, 0
	for ; ; n++ {
		var row Row
		if err := s.make(ctx, exec, []Variant{c.variant(n, value, "")}, func(r Row) { row = r }); err != nil {
			return out, err
		}
		all := row.Status == OK
		for i := range out {
			q := &out[i]
			index, _ := s.Plan.quantity(q.Quantity)
			q.add(value, row.Collected[index], c, s.Plan.extrapolation())
			all = all && q.Settled
		}
		if all || n+1 == c.Most {
			break
		}
		value /= c.Divide
	}
	return out, s.compare(ctx, exec, out, n+1, value)
}

// variant returns the run with a value of the setting, and with another algorithm unless it is "".
func (c *Convergence) variant(id int, value float64, algorithm string) Variant {
	v := Variant{ID: id, Values: []string{formatNumber(value)}}
	if c.Setting == settingStep {
		v.Values = append(v.Values, algorithm)
	}
	return v
}

const settingStep = "step-size"

// agreeing is the largest difference by another algorithm from a quantity that has settled, relative to the tolerance.
const agreeing = 5

// compare runs another algorithm with the last step, and leaves quantities undecided for which it has another value: one scheme may
// settle on a wrong one.
func (s *Study) compare(ctx context.Context, exec Executor, settled []Settled, id int, step float64) error {
	c := s.Plan.Convergence
	if c.Setting != settingStep || !slices.ContainsFunc(settled, func(q Settled) bool { return q.Settled }) {
		return nil
	}
	others := []string{"implicit", "gauss-seidel", "explicit"}
	for _, o := range s.Plan.Run {
		if o.Name == "algorithm" {
			others = slices.DeleteFunc(others, func(name string) bool { return name == o.Value })
		}
	}
	reason := ""
	for i, algorithm := range others[:2] {
		var row Row
		if err := s.make(ctx, exec, []Variant{c.variant(id+i, step, algorithm)}, func(r Row) { row = r }); err != nil {
			return err
		}
		if row.Status != OK {
			reason = cmp.Or(reason, row.Reason)
			continue
		}
		for k := range settled {
			q := &settled[k]
			index, _ := s.Plan.quantity(q.Quantity)
			q.Other, q.OtherBy = Number(row.Collected[index]), algorithm
			value := float64(q.Values[len(q.Values)-1])
			if q.Settled && !(math.Abs(float64(q.Other)-value) <= agreeing*c.Tolerance*math.Abs(value)) {
				q.Settled, q.Undecided = false, fmt.Sprintf("with %s and the same step it is %.6g (run --check)", algorithm, q.Other)
			}
		}
		return nil
	}
	for k := range settled {
		if q := &settled[k]; q.Settled {
			q.Settled, q.Undecided = false, "no other algorithm runs, to compare with: "+reason
		}
	}
	return nil
}

// A small change means that a quantity has settled only if changes shrink with a power of the setting that fits an algorithm, from
// leastOrder to mostOrder, or to aboveOrder more than the extrapolation order. Where FMUs have steps of their own, changes
// may be small or vanish while the result is wrong.
const (
	leastOrder = 0.5
	mostOrder  = 2.5
	aboveOrder = 1.5
)

// add adds the value of a run with a setting.
func (q *Settled) add(setting, value float64, c *Convergence, extrapolation int) {
	change, order, n := math.NaN(), math.NaN(), len(q.Values)
	if n > 0 {
		change = value - float64(q.Values[n-1])
	}
	if n > 1 {
		order = math.Log(math.Abs(float64(q.Changes[n-1])/change)) / math.Log(c.Divide)
	}
	q.Settings, q.Values = append(q.Settings, setting), append(q.Values, Number(value))
	q.Changes, q.Orders = append(q.Changes, Number(change)), append(q.Orders, Number(order))
	q.Settled, q.Undecided = false, ""
	switch most := max(mostOrder, float64(extrapolation)+aboveOrder); {
	case !(math.Abs(change) <= c.Tolerance*math.Abs(value)):
	case n < 2:
		q.Undecided = "a small change may be chance; a third run shows whether changes shrink"
	case change == 0:
		q.Undecided = "the last run changes nothing, as where FMUs have steps of their own (compare with another algorithm, or run --check)"
	case order >= leastOrder && order <= most:
		q.Settled = true
	default:
		q.Undecided = fmt.Sprintf("the observed order, %.2g, is not between %g and %g (compare with another algorithm, or run --check)", order, leastOrder, most)
	}
}

// extrapolation returns the extrapolation order that the plan sets, 0 if it sets none.
func (p *Plan) extrapolation() (order int) {
	for _, s := range p.Run {
		if text, ok := strings.CutPrefix(s.Value, "order="); ok && s.Name == "param" {
			order, _ = strconv.Atoi(text) // else it varies
		}
	}
	return order
}
