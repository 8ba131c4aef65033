package study

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

// Checked is the coupling error of a run, measured as by macrostep run --check.
type Checked struct {
	Run int    `json:"run"`
	Why string `json:"why"` // it was chosen: "best", "worst", without a goal "smallest", "largest"; Random
	// Error has of its Variables the worst and those that are collected.
	Error *record.Error `json:"error"`
}

// Random is why a run was chosen by chance.
const Random = "random"

// chosen returns the runs whose errors are measured, and the variants that measure them. The best and the worst are by the goal of an
// optimisation, else by the first quantity.
func (p *Plan) chosen(rows []Row) (list []Checked, variants []Variant) {
	value, names := func(r *Row) float64 { return r.Collected[0] }, []string{"smallest", "largest"}
	if p.Optimise != nil {
		value, names = p.goal, []string{"best", "worst"}
	}
	var ok []*Row
	low, high := -1, -1
	for i := range rows {
		r := &rows[i]
		if r.Status != OK {
			continue
		}
		if v := value(r); v-v == 0 {
			if low < 0 || v < value(ok[low]) {
				low = len(ok)
			}
			if high < 0 || v > value(ok[high]) {
				high = len(ok)
			}
		}
		ok = append(ok, r)
	}
	taken := map[int]bool{-1: true}
	for n, i := range append([]int{low, high}, rand.New(rand.NewPCG(p.Design.Seed, seedStream)).Perm(len(ok))...) {
		if taken[i] || len(list) == p.Checks {
			continue
		}
		taken[i] = true
		why := Random
		if n < len(names) {
			why = names[n]
		}
		list, variants = append(list, Checked{Run: ok[i].ID, Why: why}), append(variants, ok[i].check())
	}
	return list, variants
}

// check measures the errors of some runs. What fails in one of them is the reason why its error is unknown.
func (s *Study) check(ctx context.Context, exec Executor) error {
	list, variants := s.Plan.chosen(s.found.Rows)
	if s.found.Checks = list; list == nil {
		return nil
	}
	done := 0
	tell := func() {
		if s.Events != nil {
			s.Events(Event{Extra: "measuring coupling errors", Done: done, Of: len(list)})
		}
	}
	tell()
	err := exec.Run(ctx, variants, func(r Row) error {
		k := slices.IndexFunc(variants, func(v Variant) bool { return v.ID == r.ID })
		if list[k].Error = r.Error; r.Error == nil {
			list[k].Error = unmeasured(strings.TrimPrefix(r.Reason, warningPrefix))
		}
		done++
		tell()
		return nil
	})
	for k := range list {
		if list[k].Error == nil {
			list[k].Error = unmeasured("it was not measured: " + err.Error())
		}
	}
	return err
}

// unmeasured returns an error that is unknown.
func unmeasured(why string) *record.Error {
	return &record.Error{Limit: simulate.DefaultLimit, Unknown: why}
}

// errorOf returns what of an error a row has: the worst variable and those that are collected, and texts of one line.
func (m *Model) errorOf(e *record.Error) *record.Error {
	of := *e
	of.Where, of.Unknown, of.Reference, of.Variables = oneLine(e.Where), oneLine(e.Unknown), oneLine(e.Reference), map[string]record.VariableError{}
	for name, v := range e.Variables {
		if name == e.Where || m.selected.Match(name) {
			v.Unit = oneLine(v.Unit)
			of.Variables[oneLine(name)] = v
		}
	}
	return &of
}

// check makes the run of a variant again, and measures its error.
func (m *Model) check(ctx context.Context, v Variant) (Row, error) {
	r, err := m.request(v)
	if err != nil {
		return m.plan.NoRow(v, Failed, err.Error()), nil
	}
	r.Output, r.Manifest, r.Record = "", "", none
	r.Given = append(slices.Clip(r.Given), simulate.Given{Name: "record", Source: "the study"})
	r.Set = append(slices.Clip(r.Set), m.plan.assignments(v)...)
	r.Dialects, r.Read = m.options.Dialects, m.selected.Match
	r.Check = &simulate.Check{Limit: simulate.DefaultLimit, Budget: (checkTime - 1) * m.plan.TimeLimit}
	runner := simulate.Runner{Presets: m.options.Presets, Own: m.options.Own, Running: m.running,
		Open: func(ctx context.Context, path string, o simulate.OpenOptions) (*simulate.System, error) {
			o.Expendable = m.options.Expendable
			sys, err := simulate.Open(ctx, path, o) // like the instances of the check, which must have the same variables
			if err == nil && len(m.plan.MaxInstances) > 0 {
				sys.Few = true // one instance at a time
			}
			return sys, err
		}}
	out, err := runner.Run(ctx, r)
	if ctx.Err() != nil {
		return Row{}, context.Cause(ctx)
	}
	if unwritten := m.unwritten(err); unwritten != nil {
		return Row{}, unwritten
	}
	row := m.judge(v, &out, err)
	if out.Manifest != nil && out.Manifest.Error != nil {
		row.Error = m.errorOf(out.Manifest.Error)
	}
	return row, nil
}
