package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/macrostep/macrostep/master"
)

// Search looks for settings that are better than that of a run: it tries them over the whole time, and compares them with one reference.
type Search struct {
	Plan
	Others []Setting // strategies to try beside the setting of the run, at its step
	// Error is the largest error of the setting that is looked for; 0 = that of the run, or Usual if it is larger.
	Error    float64
	From, To float64                // s, bounds of the steps tried; 0 = a thirtieth and thirty times the step of the run
	Fixed    bool                   // the steps are not changed
	Of       func(name string) bool // selects the variables whose errors count; nil = all that feed inputs
	// Runs is how many runs there is time for at least, even beyond the deadline.
	Runs float64
	// Limits asks for the longest usable step of the run's strategy, All for that of each.
	Limits, All bool
	Kicks       bool              // the system is kicked for its slowest mode and the gain of its loops
	Found       func(*Comparison) // is called after each trial; may be nil
}

// Usual is the largest error of a result that most accept.
const Usual = 0.05

// Usable is the largest error of a run that goes about as the reference does, relative to the motion.
const Usable = 0.5

// Trusted is the largest doubt about a reference by which runs are known to be usable.
const Trusted = Usable / 2

// tooFar is the error of a run that is unstable even if nothing is seen to grow.
const tooFar = 100

// Trial is a run with a setting over the whole time.
type Trial struct {
	Setting
	Cost  int            // steps of all subsystems, repeated ones included
	Error float64        // largest relative distance from the reference; NaN = unknown
	At    int            // the variable that it is of; -1 = none moves
	Bound float64        // the error is at most that, since the reference has an error too; NaN = unknown
	Doubt float64        // what the reference may be off by in that variable, relative to the motion; NaN = unknown
	Grows *master.Growth // what grows in it; nil = nothing
	Until float64        // s
	Err   error          // that ended it before
	// Stable: it ended regularly, nothing grows in it alone, and its error is at most tooFar. Usable: its error is at most Usable, too.
	Stable, Usable bool

	rung int
	off  []Distance // from the reference
	sum  uint64     // of its samples
}

// Line is a strategy with its trials, from long steps to short ones.
type Line struct {
	Setting // at the step of the run
	Trials  []*Trial
	Why     string // why it cannot be used
	closed  bool
}

// Comparison is what trials show.
type Comparison struct {
	Bar     *Bar     // of the run, or, if it ended early, of one with shorter steps
	Lines   []*Line  // the first is that of the run
	Present *Trial   // the run
	Samples *Samples // of the run; they name the variables
	Error   float64  // largest error of the setting that is looked for
	// Best is the recommendation: the cheapest trial with that error that costs a tenth less than a run that has it, else the most accurate
	// that costs no more, else the most accurate; nil = no trial is better than the run.
	Best      *Trial
	Reference Setting
	// Change is what the reference changes by from one step to the next, relative to the motion; -1 = unknown.
	Change float64
	Motion *Motion // nil = the system has no loops, or there was no time for kicks
	Runs   int
	Cost   int   // steps of subsystems in all runs
	Err    error // why the search ended early, such as ErrBudget; nil = it did not
}

// steps of the ladder, and the places on it: 0 is the step of the run, 1 is 1.5 times shorter.
var ladder = []float64{1, 1.5, 2, 3, 5, 7}

// partAt returns the part of the step of the run at a place on the ladder.
func partAt(rung int) float64 {
	if rung < 0 {
		return 1 / partAt(-rung)
	}
	return ladder[rung%len(ladder)] * math.Pow10(rung/len(ladder))
}

// better is the part of error or cost that counts as better.
const better = 0.9

// BarOf returns the error of a run with the setting of a trial, measured as the trial was; nil if it is unknown, or if the run has other values than the trial.
func (c *Comparison) BarOf(t *Trial, run *Samples) *Bar {
	if t.off == nil || c.Bar.Undetermined || !slices.Equal(run.variables, c.Samples.variables) || run.sum() != t.sum {
		return nil
	}
	b := &Bar{Distances: t.off, Worst: t.Error, At: t.At, Reference: c.Reference, Grows: c.Bar.Grows, Until: t.Until, Partial: c.Bar.Partial, Runs: c.Runs}
	if t.Bound > c.Error && t.Error <= c.Error {
		b.Worst, b.AtMost = t.Bound, true
	}
	return b
}

type search struct {
	meter
	o       *Search
	out     *Comparison
	ref     *reference
	seconds float64 // of a run with the step of the run
	began   time.Time
	line    *Line // of the trial that is made; nil = none
	trial   *Trial
	deep    bool      // steps shorter than usual are tried
	doubt   []float64 // by variable: error that the reference may have, relative to the motion
}

// Run searches until no further trial is expected to be better, the budget is used up, or the context ends. In the last two cases the
// comparison has the trials made so far, and the reason in Err.
func (o *Search) Run(ctx context.Context) (*Comparison, error) {
	plan := o.Plan // its setting and samples may become those of a run with shorter steps
	s := &search{meter: meter{Plan: &plan, keep: true}, o: o, began: time.Now(), out: &Comparison{Samples: o.Samples, Change: -1}}
	err := s.watched(ctx)
	stuck := errors.Is(err, ErrStuck)
	if !stuck {
		s.calls.Lock()
	}
	for _, c := range s.courses {
		if !stuck {
			s.end(c)
		}
		s.out.Cost += c.cost
	}
	s.out.Runs = len(s.courses)
	if s.out.Present == nil {
		return nil, err
	}
	s.out.Err = err
	s.recommend()
	return s.out, nil
}

// ErrStuck means that a subsystem does not return from a call. It must not be freed.
var ErrStuck = errors.New("a subsystem does not return")

// watched runs the search, and leaves it where a call of a subsystem does not return after the deadline or the end of the context.
func (s *search) watched(ctx context.Context) error {
	const patience, often = 3 * time.Second, 100 * time.Millisecond
	done := make(chan error, 1)
	go func() {
		s.calls.Lock()
		defer s.calls.Unlock()
		done <- s.run(ctx)
	}()
	tick := time.NewTicker(often)
	defer tick.Stop()
	var end time.Time
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
		if !s.calls.TryLock() {
			continue // it computes
		}
		select {
		case err := <-done:
			s.calls.Unlock()
			return err
		default:
		}
		if over := ctx.Err() != nil || !s.Deadline.IsZero() && time.Now().After(s.Deadline); over && end.IsZero() {
			end = time.Now()
		}
		if end.IsZero() || time.Since(end) < patience {
			s.calls.Unlock()
			continue
		}
		// The search waits for the lock from now on.
		err := fmt.Errorf("%w from a call in the run with %s", ErrStuck, s.courses[len(s.courses)-1].Setting)
		if s.line != nil {
			s.trial.Err = err
			s.line.add(s.trial)
		}
		if cause := context.Cause(ctx); cause != nil {
			return fmt.Errorf("%w (%w)", cause, err)
		}
		return err
	}
}

// starts are the parts of the step of the run with which a run is made from which others are measured.
var starts = []float64{1, 5, 20, 100}

func (s *search) run(ctx context.Context) error {
	out := s.out
	setting, deadline := s.Setting, s.Deadline
	if s.o.Runs > 0 {
		s.Deadline = time.Time{} // the first run takes its time
	}
	present := &course{Setting: setting, samples: s.Samples}
	base := present
	for _, part := range starts { // the first with a run to its end
		if part > 1 {
			s.Setting = s.scaled(setting, part)
			s.Samples = s.own()
			base = &course{Setting: s.Setting, samples: s.Samples}
		}
		began := time.Now()
		if err := s.advance(ctx, base); err != nil {
			return err
		}
		s.Seconds = time.Since(began).Seconds()
		if base.err == nil && len(s.Samples.T) >= fewest {
			break
		}
		if present.err != nil && present.steps == 0 {
			return present.err
		}
	}
	s.seconds = s.Seconds * base.Step / setting.Step
	if s.Deadline = deadline; !deadline.IsZero() {
		if least := s.began.Add(time.Duration(s.o.Runs * s.seconds * float64(time.Second))); least.After(deadline) {
			s.Deadline = least
		}
	}
	out.Lines = append(out.Lines, &Line{Setting: setting})
	for _, other := range s.o.Others {
		out.Lines = append(out.Lines, &Line{Setting: other})
	}
	out.Present = &Trial{Setting: setting, Cost: present.cost, Error: math.NaN(), Bound: math.NaN(), Grows: present.grows, Err: present.err}
	if n := len(present.samples.T); n > 0 {
		out.Present.Until = present.samples.T[n-1]
	}
	out.Lines[0].Trials = []*Trial{out.Present}
	bar, err := s.measure(ctx)
	if err != nil {
		return err
	}
	if out.Bar = bar; bar.Err != nil {
		return bar.Err
	}
	s.ref = best(s.references)
	s.learn()
	s.judge(out.Present, present.samples)
	out.Error = s.o.Error
	if p := out.Present; out.Error == 0 {
		if out.Error = Usual; p.Usable && p.Error < Usual {
			out.Error = p.Error
		}
	}
	s.report()
	if bar.Undetermined || bar.At < 0 {
		return nil
	}
	if err := s.sharpen(ctx, present); err != nil {
		return err
	}
	if err := s.shorten(ctx, present); err != nil {
		return err
	}
	if err := s.oppose(ctx, present); err != nil {
		return err
	}
	return s.tryAll(ctx)
}

// report passes on what is known so far.
func (s *search) report() {
	if s.o.Found != nil {
		s.recommend()
		s.o.Found(s.out)
	}
}

// doubtful is the largest change of a reference from one step to the next, relative to the error that is looked for.
const doubtful = 0.25

// sharpen refines the reference until it is certain beside the error that is looked for, in at most half of the time.
func (s *search) sharpen(ctx context.Context, present *course) error {
	n := len(s.Samples.T)
	for {
		b := best(s.references)
		s.ref = b
		if settled(s.references) && b.change <= doubtful*s.out.Error || len(b.courses) == len(rungs) || !s.affords(rungs[len(b.courses)]*s.Seconds, 0.5) {
			break
		}
		before := b.change
		if err := s.advance(ctx, s.refine(b)...); err != nil {
			return err
		}
		if b.compare(s.Samples, n); b.moved == nil { // it fails
			b.courses = b.courses[:len(b.courses)-1]
			b.compare(s.Samples, n)
			break
		}
		b.courses[len(b.courses)-3].points = nil
		if b.idle || b.change > before {
			break
		}
	}
	s.learn()
	s.judge(s.out.Present, present.samples)
	return nil
}

// shorten measures from a run with shorter steps if the reference is uncertain beside the error that is looked for.
func (s *search) shorten(ctx context.Context, present *course) error {
	const shorter, least = 20, 1 + 1 + 2 + 5 // in runs with the shorter step
	if s.ref.idle || s.ref.change <= doubtful*s.out.Error || !s.affords(shorter*least*s.Seconds, 0.5) {
		return nil
	}
	setting, samples, references, seconds := s.Setting, s.Samples, s.references, s.Seconds
	s.Setting, s.Samples, s.Seconds = s.scaled(setting, shorter), s.own(), shorter*seconds
	var bar *Bar
	err := s.advance(ctx, &course{Setting: s.Setting, samples: s.Samples})
	if err == nil && len(s.Samples.T) >= fewest {
		bar, err = s.measure(ctx)
	}
	if bar == nil || bar.Err != nil || bar.Undetermined || bar.At < 0 {
		s.Setting, s.Samples, s.references, s.Seconds = setting, samples, references, seconds
		return err
	}
	s.out.Bar = bar
	return s.sharpen(ctx, present)
}

// learn takes the reference's changes as what it may be off by.
func (s *search) learn() {
	s.doubt = make([]float64, len(s.Samples.V))
	for k := range s.doubt {
		if s.ref.moved != nil {
			s.doubt[k] = s.ref.moved[k].Relative
		}
	}
	if s.out.Change = s.ref.change; s.ref.change-s.ref.change != 0 {
		s.out.Change = -1
	}
	if s.ref.fine != nil {
		s.out.Reference, s.out.Bar.Grows = s.ref.fine.Setting, s.ref.fine.grows
	}
}

// affords reports whether there is time for a run of some seconds, in a share of what is left.
func (s *search) affords(seconds, share float64) bool {
	return s.Deadline.IsZero() || seconds < share*time.Until(s.Deadline).Seconds()
}

// each returns the seconds of a step of a subsystem.
func (s *search) each() float64 {
	cost := 0
	for _, c := range s.courses {
		cost += c.cost
	}
	return time.Since(s.began).Seconds() / float64(max(cost, 1))
}

// oppose compares the reference with that of another scheme: what they differ by and the other's own changes do not explain, either
// may be off.
func (s *search) oppose(ctx context.Context, present *course) error {
	var r *reference
	for _, other := range s.references {
		if other != s.ref && (r == nil || len(other.courses) > len(r.courses)) {
			r = other
		}
	}
	if r == nil {
		return nil
	}
	n := len(s.Samples.T)
	for (r.moved == nil || r.change > doubtful*s.out.Error) && len(r.courses) < len(s.ref.courses) && s.affords(rungs[max(1, len(r.courses))]*s.Seconds, 0.5) {
		if err := s.advance(ctx, s.refine(r)...); err != nil {
			return err
		}
		r.compare(s.Samples, n)
		for _, c := range r.courses {
			c.points = nil
		}
	}
	if r.moved == nil || r.fine.grows != nil && s.ref.fine.grows == nil { // it is unstable
		return nil
	}
	const leftOver = 2 // times the change from one step to the next
	n = min(r.n, s.ref.n)
	for k, d := range Apart(r.fine.samples, s.ref.fine.samples, n) {
		s.doubt[k] = max(s.doubt[k], d.Relative-leftOver*r.moved[k].Relative)
	}
	s.judge(s.out.Present, present.samples)
	return nil
}

// judge compares a trial with the reference.
func (s *search) judge(t *Trial, samples *Samples) {
	r := s.ref
	n := len(samples.T)
	t.Error, t.Bound, t.At, t.off = math.NaN(), math.NaN(), -1, nil
	if n < 2 || r.fine == nil || r.fine.points == nil {
		return
	}
	reference := r.fine.points.resampled(samples.T)
	if n = min(n, len(reference.T)); n < 2 {
		return
	}
	off := Apart(samples, reference, n)
	for _, jumps := range []bool{false, true} { // those of other types than Real count only where no Real moves
		for k, d := range off {
			v := &samples.variables[k]
			if d.Still || v.jumps != jumps || !s.counts(v) || jumps && t.At >= 0 && !samples.variables[t.At].jumps {
				continue
			}
			e := max(d.Relative, d.ByPoint, s.doubt[k]) // not known better
			if t.At < 0 {
				t.Error, t.Bound, t.At = e, 0, k
			}
			if t.Bound = max(t.Bound, d.Relative+s.doubt[k]); !(e <= t.Error) {
				t.Error, t.At = e, k
			}
		}
	}
	if t.At < 0 {
		return
	}
	t.Doubt = s.doubt[t.At]
	t.Bound, t.off, t.sum = max(t.Bound, t.Error), off, samples.sum()
	t.Stable = t.Err == nil && t.Error <= tooFar && (t.Grows == nil || r.fine.grows != nil)
	t.Usable = t.Stable && t.Error <= Usable
}

// counts reports whether the error of a variable counts.
func (s *search) counts(v *variable) bool {
	if s.o.Of != nil {
		return s.o.Of(v.name)
	}
	return v.fed
}

// at returns the trial of a line at a place on the ladder; nil = none.
func (l *Line) at(rung int) *Trial {
	for _, t := range l.Trials {
		if t.rung == rung {
			return t
		}
	}
	return nil
}

// add adds a trial.
func (l *Line) add(t *Trial) {
	l.Trials = append(l.Trials, t)
	slices.SortFunc(l.Trials, func(a, b *Trial) int { return a.rung - b.rung })
}

// try makes a trial.
func (s *search) try(ctx context.Context, l *Line, rung int) (*Trial, error) {
	c := &course{Setting: l.Setting, samples: s.own()}
	if rung != 0 {
		c.Setting = s.scaled(l.Setting, partAt(rung))
	}
	t := &Trial{Setting: c.Setting, Error: math.NaN(), Bound: math.NaN(), At: -1, rung: rung}
	s.line, s.trial = l, t
	if err := s.advance(ctx, c); err != nil {
		return nil, err
	}
	s.line = nil
	t.Cost, t.Grows, t.Err = c.cost, c.grows, c.err
	if n := len(c.samples.T); n > 0 {
		t.Until = c.samples.T[n-1]
	}
	s.judge(t, c.samples)
	c.samples = nil
	l.add(t)
	if c.err != nil && c.steps == 0 {
		l.Why, l.closed, l.Trials = c.err.Error(), true, nil
	}
	s.report()
	return t, nil
}

// tryAll tries the lines at the step of the run, then the limit of the run's line, then the steps that may be better.
func (s *search) tryAll(ctx context.Context) error {
	for _, l := range s.out.Lines[1:] {
		if !s.affords(s.seconds, 1) {
			return ErrBudget
		}
		if _, err := s.try(ctx, l, 0); err != nil {
			return err
		}
	}
	if s.o.Fixed {
		return nil
	}
	for k, l := range s.out.Lines {
		if s.o.All || s.o.Limits && k == 0 {
			if err := s.limit(ctx, l); err != nil {
				return err
			}
		}
	}
	if s.o.Kicks {
		if err := s.kick(ctx); err != nil {
			return err
		}
	}
	s.deep = !slices.ContainsFunc(s.out.Lines, func(l *Line) bool { return slices.ContainsFunc(l.Trials, s.keeps) })
	for {
		l, rung, short := s.next()
		switch {
		case l == nil && short:
			return ErrBudget
		case l == nil:
			return nil
		}
		if _, err := s.try(ctx, l, rung); err != nil {
			return err
		}
	}
}

// span is the ratio of the longest and the shortest step to that of the run, if nothing else is asked for. Steps are shorter by its square
// where nothing keeps the error at the step of the run.
const span = 30

// within reports whether steps at a place on the ladder are tried.
func (s *search) within(rung int) bool {
	const off = 1 + 1e-9
	h := s.out.Present.Step / partAt(rung)
	from, to := cmp.Or(s.o.From, s.out.Present.Step/span), cmp.Or(s.o.To, s.out.Present.Step*span)
	if s.o.From == 0 && s.deep {
		from /= span
	}
	to = min(to, (s.Samples.Stop-s.Samples.Start)/fewest)
	return h*off >= from && h <= to*off
}

// nearest returns the place nearest to another, towards 0, at which steps are tried.
func (s *search) nearest(rung int) int {
	for rung != 0 && !s.within(rung) {
		rung -= max(-1, min(rung, 1))
	}
	return rung
}

// limit finds the longest stable step of a line and the next that is not: up the ladder from a stable step, or down to a usable one.
func (s *search) limit(ctx context.Context, l *Line) error {
	t := l.at(0)
	if t == nil {
		return nil
	}
	up, rung := t.Stable, 0
	for up == t.Stable && (up || !t.Usable) {
		if rung++; up {
			rung -= 2
		}
		if l.at(rung) != nil || !s.within(rung) || !s.affords(partAt(rung)*s.seconds, 1) {
			return nil
		}
		var err error
		if t, err = s.try(ctx, l, rung); err != nil {
			return err
		}
	}
	return nil
}

// next returns the cheapest trial that may be better than what is known; nil = none. short: there is no time for one.
func (s *search) next() (line *Line, rung int, short bool) {
	most, least := math.Inf(1), math.Inf(1)
	for _, l := range s.out.Lines {
		for _, t := range l.Trials {
			if s.keeps(t) {
				most = min(most, s.price(&t.Setting, float64(t.Cost)))
			}
		}
	}
	for _, l := range s.out.Lines {
		if l.closed || len(l.Trials) == 0 {
			continue
		}
		k, cost, more := s.step(l)
		switch {
		case !more || l.at(k) != nil:
			l.closed = true
		case s.price(&l.Setting, cost) >= better*most && cost >= float64(s.out.Present.Cost): // nor more accurate at no more cost
		case !s.affords(cost*s.each(), 1):
			short = true
		case cost < least:
			line, rung, least = l, k, cost
		}
	}
	return line, rung, short
}

// price returns the cost of a trial for the choice: steps that the algorithm chooses count twice, since fixed ones are simpler to rely on.
func (s *search) price(setting *Setting, cost float64) float64 {
	if setting.Chooses() && s.out.Present.Preset != setting.Preset {
		return 2 * cost
	}
	return cost
}

// before reports whether a trial is cheaper than another, or as cheap and more accurate.
func (s *search) before(t, other *Trial) bool {
	price, its := s.price(&t.Setting, float64(t.Cost)), s.price(&other.Setting, float64(other.Cost))
	return price < its || price == its && t.Bound < other.Bound
}

// keeps reports whether a trial keeps the error that is looked for.
func (s *search) keeps(t *Trial) bool { return t.Usable && t.Bound <= s.out.Error*(1+1e-9) }

// The order by which an error falls is at least leastOrder; a step to the next trial goes at most farthest places.
const leastOrder, mostOrder, farthest = 0.3, 6, 8

// step returns the next place on the ladder to try in a line, with its cost: towards the longest step that keeps the error.
func (s *search) step(l *Line) (rung int, cost float64, more bool) {
	limit := s.out.Error
	away := func(t *Trial, error float64) int { // how many places away the error is expected
		places := math.Ceil(math.Log(t.Error/error) / (s.order(l) * math.Log(ladder[1])))
		if math.IsNaN(places) { // all errors of the line are 0, so that it has no order
			return 0
		}
		return int(min(max(places, -farthest), farthest))
	}
	i := slices.IndexFunc(l.Trials, s.keeps)
	switch {
	case i >= 0: // the longest that keeps it; a longer one may
		t := l.Trials[i]
		rung = min(t.rung-1, t.rung+away(t, limit))
		if i > 0 {
			rung = max(rung, l.Trials[i-1].rung+1)
		}
		if rung = s.nearest(rung); rung >= t.rung {
			return 0, 0, false
		}
		return rung, float64(t.Cost) * partAt(rung) / partAt(t.rung), true
	default:
		t := l.Trials[len(l.Trials)-1]
		switch n := len(l.Trials); {
		case n > 1 && t.Err != nil && l.Trials[n-2].Err != nil:
			return 0, 0, false
		case !t.Usable || math.IsNaN(t.Error):
			rung = t.rung + 2
		case n > 2 && t.Error > better*l.Trials[n-2].Error && t.Error > better*l.Trials[n-3].Error: // shorter steps do not help
			return 0, 0, false
		default:
			rung = t.rung + max(1, away(t, max(better*limit-(t.Bound-t.Error), limit/10)))
		}
		if rung = s.nearest(rung); rung <= t.rung {
			return 0, 0, false
		}
		return rung, float64(t.Cost) * partAt(rung) / partAt(t.rung), true
	}
}

// order returns the order by which the error of a line falls with the step.
func (s *search) order(l *Line) float64 {
	var last []*Trial
	for _, t := range l.Trials {
		if t.Usable && t.Error > 0 {
			last = append(last, t)
		}
	}
	n := len(last)
	if n < 2 {
		return 1
	}
	p := math.Log(last[n-2].Error/last[n-1].Error) / math.Log(partAt(last[n-1].rung)/partAt(last[n-2].rung))
	return min(max(p, leastOrder), mostOrder)
}

// recommend chooses the best trial.
func (s *search) recommend() {
	present := s.out.Present
	keeps := s.ref != nil && s.keeps(present)
	if s.o.Error == 0 && present.Usable && present.Error <= s.out.Error {
		keeps = true // the error that is looked for is its own
	}
	var cheapest, accurate, exact *Trial
	for _, l := range s.out.Lines {
		for _, t := range l.Trials {
			if t == present || !t.Usable {
				continue
			}
			if s.keeps(t) && (cheapest == nil || s.before(t, cheapest)) {
				cheapest = t
			}
			if !(t.Error <= better*present.Error) && present.Usable {
				continue
			}
			if t.Cost <= present.Cost && (accurate == nil || t.Bound < accurate.Bound) {
				accurate = t
			}
			if exact == nil || t.Bound < exact.Bound {
				exact = t
			}
		}
	}
	switch s.out.Best = nil; {
	case cheapest != nil && (!keeps || float64(cheapest.Cost) <= better*float64(present.Cost)):
		s.out.Best = cheapest
	case accurate != nil:
		s.out.Best = accurate
	case !keeps:
		s.out.Best = exact
	}
}
