package master

import (
	"fmt"
	"slices"
)

// ownSteps finds subsystems that compute at steps of their own: their Real outputs change only every few macro steps, evenly, while
// their inputs change in between.
type ownSteps struct {
	sources [][]int // by subsystem: those that feed it
	changed []bool  // by subsystem, in the present macro step
	before  []bool  // likewise, in the one before
	of      []ownStep
	earlier []float64 // [ny], before the last change of the subsystem
	open    bool      // some subsystem may do
}

// ownStep is what was seen of a subsystem.
type ownStep struct {
	calls   int  // of Step
	since   int  // macro steps since its outputs changed
	changes int  // of its outputs
	between int  // macro steps from the first of these to the last
	least   int  // macro steps between two of them
	most    int  // likewise, of the first firstChanges: later it may have come to rest
	moved   bool // inputs changed between
	toggles bool // outputs return to the values before the last change, as of a relay
}

// firstChanges is the number of changes of outputs from which on the steps of a subsystem are known.
const firstChanges = 10

func newOwnSteps(s *System) *ownSteps {
	o := &ownSteps{changed: make([]bool, len(s.Infos)), before: make([]bool, len(s.Infos)), of: make([]ownStep, len(s.Infos)), earlier: make([]float64, s.OutAt[len(s.Infos)]), open: true}
	for i := range s.Infos {
		o.sources = append(o.sources, s.Sources(i))
	}
	return o
}

// see compares the outputs of an accepted macro step with those before it, where subsystems were stepped, while the
// steps of some are open.
func (o *ownSteps) see(x *Exec) {
	o.open = false
	o.before, o.changed = o.changed, o.before
	for i := range o.changed {
		from, to := x.Sys.OutAt[i], x.Sys.OutAt[i+1]
		o.changed[i] = !slices.Equal(x.keptY[from:to], x.Y[from:to])
	}
	for i := range o.of {
		s := &o.of[i]
		if s.least == 1 {
			continue // it does not
		}
		if o.open = true; s.calls == x.steps[i] {
			continue
		}
		s.calls = x.steps[i]
		if s.since++; o.changed[i] {
			from, to := x.Sys.OutAt[i], x.Sys.OutAt[i+1]
			s.toggles = s.toggles || s.changes > 0 && slices.Equal(o.earlier[from:to], x.Y[from:to])
			copy(o.earlier[from:to], x.keptY[from:to])
			s.change()
			continue
		}
		for _, k := range o.sources[i] { // an algebraic subsystem changes in the same step or in the next
			s.moved = s.moved || o.before[k] && !o.before[i]
		}
	}
}

// change counts a change of outputs.
func (s *ownStep) change() {
	if s.changes++; s.changes == 2 {
		s.least = s.since
	}
	if s.changes > 1 {
		s.between, s.least = s.between+s.since, min(s.least, s.since)
	}
	if s.changes > 1 && s.changes <= firstChanges {
		s.most = max(s.most, s.since)
	}
	s.since = 0
}

// even reports whether outputs change only every few macro steps, evenly but for rounding.
func (s *ownStep) even() bool {
	return s.changes >= firstChanges && !s.toggles && s.least >= 2 && s.most <= s.least+1+s.least/4
}

// tell returns the steps of the subsystems that compute at steps of their own, in s, and a warning for each. H is the mean macro step
// in s. Where all subsystems of a loop do, their inputs do not change in between.
func (o *ownSteps) tell(s *System, H float64) (steps map[string]float64, warnings []string) {
	succ := func(i int) []int { return o.sources[i] }
	for _, loop := range components(len(o.of), succ) {
		all := cyclic(loop, succ) && !slices.ContainsFunc(loop, func(i int) bool { return !o.of[i].even() || o.of[i].moved })
		for _, i := range loop {
			if w := &o.of[i]; w.even() && (w.moved || all) {
				if steps == nil {
					steps = map[string]float64{}
				}
				steps[s.Infos[i].Name] = float64(w.between) / float64(w.changes-1) * H
				warnings = append(warnings, fmt.Sprintf("%s: its outputs change only every %.3g s: it computes at steps of its own, and shorter macro "+
					"steps make the coupling no more accurate; take whole multiples of its step, and see how large the error is (--check)",
					s.Infos[i], steps[s.Infos[i].Name]))
			}
		}
	}
	return steps, warnings
}
