package study

import (
	"context"
	"fmt"
	"slices"
)

// Study carries out a plan and keeps its rows in a folder.
type Study struct {
	Plan   *Plan
	Folder *Folder // nil = rows are only returned
	// Events takes what happens, one event at a time; nil discards it.
	Events func(Event)

	rows  map[string]Row // that are made, by key
	found *Findings
}

// Event is what a study reports while it goes on.
type Event struct {
	Row   Row
	Total int // runs of the design; 0 = not known beforehand
	// Extra is what runs are made for that are not part of the table; Done of them are made, Of Of. There is no row then.
	Extra    string
	Done, Of int
}

// Findings is what a study found out.
type Findings struct {
	Rows    []Row // by ID
	Optimum *Optimum
	Fit     *Certainty // of the optimum
	Settled []Settled
	Checks  []Checked
}

// Run makes the runs that the folder does not have yet. With an error, the findings hold what is
// known; the rows are in the folder.
func (s *Study) Run(ctx context.Context, exec Executor) (_ *Findings, err error) {
	s.rows, s.found = map[string]Row{}, &Findings{}
	if s.Folder != nil {
		for _, r := range s.Folder.Rows() {
			s.rows[s.key(r.Variant)] = r
		}
	}
	switch {
	case s.Plan.Optimise != nil:
		s.found.Optimum, err = s.optimise(ctx, exec)
		if err == nil && s.Plan.Optimise.Fit != nil {
			s.found.Fit, err = s.certainty(ctx, exec, s.found.Optimum)
		}
	case s.Plan.Convergence != nil:
		s.found.Settled, err = s.converge(ctx, exec)
	default:
		var design *Variants
		if design, err = s.Plan.Variants(); err == nil {
			err = s.make(ctx, exec, design.List, func(Row) {})
		}
	}
	slices.SortFunc(s.found.Rows, func(a, b Row) int { return a.ID - b.ID })
	if err == nil && s.Plan.Checks > 0 {
		err = s.check(ctx, exec)
	}
	return s.found, err
}

// take adds a row to the findings.
func (s *Study) take(r Row, total int) {
	s.found.Rows = append(s.found.Rows, r)
	if s.Events != nil {
		s.Events(Event{Row: r, Total: total})
	}
}

// key distinguishes the variants of a study. What an optimisation evaluates again has its row already.
func (s *Study) key(v Variant) string {
	if s.Plan.Optimise != nil {
		return fmt.Sprint(v.Values)
	}
	return fmt.Sprint(v.ID, v.Values)
}

// make hands the rows of variants to done: those of the folder at once, then the others as they are made.
func (s *Study) make(ctx context.Context, exec Executor, variants []Variant, done func(Row)) error {
	total := 0
	if s.Plan.Optimise == nil && s.Plan.Convergence == nil {
		total = len(variants)
	}
	var missing []Variant
	for _, v := range variants {
		row, ok := s.rows[s.key(v)]
		if !ok {
			missing = append(missing, v)
			continue
		}
		row.ID = v.ID
		done(row)
		s.take(row, total)
	}
	if missing == nil {
		return nil
	}
	return exec.Run(ctx, missing, func(r Row) error {
		if s.Folder != nil {
			if err := s.Folder.Add(r); err != nil {
				return err
			}
		}
		s.rows[s.key(r.Variant)] = r
		done(r)
		s.take(r, total)
		return nil
	})
}
