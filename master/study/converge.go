package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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
}

func (p *Plan) checkConvergence() error {
	c := p.Convergence
	var errs []error
	setting, _, _ := strings.Cut(c.Setting, ".")
	if known := []string{"step-size", "tolerance", "param"}; !slices.Contains(known, setting) {
		errs = append(errs, fmt.Errorf("convergence: the setting %q is none that becomes smaller%s; give step-size, tolerance or param.NAME, as in param.control.rtol", c.Setting, diag.DidYouMean(setting, known)))
	}
	if len(p.Factors) > 0 || p.Design.Table != nil {
		errs = append(errs, errors.New("convergence: vary and table do not go with it; the setting is what varies"))
	}
	if c.Divide == 0 {
		c.Divide = 2
		if c.Setting != "step-size" {
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
	case c.From < 0 || c.From == 0 && c.Setting != "step-size":
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
		out[i].Quantity = name
	}
	if c.From == 0 {
		return nil, errors.New("convergence: from: the first step size is not known; give it")
	}
	value := c.From
	for n := range c.Most {
		var row Row
		if err := s.make(ctx, exec, []Variant{{n, []string{formatNumber(value)}}}, func(r Row) { row = r }); err != nil {
			return out, err
		}
		all := row.Status == OK
		for i := range out {
			q := &out[i]
			index, _ := s.Plan.quantity(q.Quantity)
			q.add(value, row.Collected[index], c)
			all = all && q.Settled
		}
		if all {
			break
		}
		value /= c.Divide
	}
	return out, nil
}

func (q *Settled) add(setting, value float64, c *Convergence) {
	change, order, n := math.NaN(), math.NaN(), len(q.Values)
	if n > 0 {
		change = value - float64(q.Values[n-1])
	}
	if n > 1 {
		order = math.Log(math.Abs(float64(q.Changes[n-1])/change)) / math.Log(c.Divide)
	}
	q.Settings, q.Values = append(q.Settings, setting), append(q.Values, Number(value))
	q.Changes, q.Orders = append(q.Changes, Number(change)), append(q.Orders, Number(order))
	q.Settled = math.Abs(change) <= c.Tolerance*math.Abs(value)
}
