package analyze

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/master"
)

// Runs allow to look at real runs of the system where its models tell nothing.
type Runs struct {
	// Again makes the system anew, as it is before its start, together with what ends it once its run is closed,
	// which may be nil. nil = no runs.
	Again func(ctx context.Context) (*master.System, func() error, error)
	// Time is how long they may take in all, a fourth of it where models tell of all strategies, but for gaps, and
	// a fourth of that with many subsystems. What is told of a step does not depend on it; how many steps are looked at does.
	Time time.Duration
	// Only tells of which strategies; nil = of all.
	Only func(preset string, order int) bool
	// Observe is told what is being looked at; nil = nobody is.
	Observe func(what string)
}

// Seen tells that what is told of a strategy, or of the steps that the models leave open, comes from runs of
// the system itself: its inputs are moved a little over some macro steps from the operating point on,
// and what becomes of the difference to the run in which they are not is followed.
type Seen struct {
	Looks int `json:"looks"` // step sizes that were looked at
	Runs  int `json:"runs"`
	// Points are those of the strategy that runs have shown: radii are known to a few percent of what they are
	// off 1.
	Points []Radius `json:"points"`
	// Steps is how many macro steps a difference is followed at most; Least the growth in a step below which it
	// is not told from none, as there.
	Steps int     `json:"steps"`
	Least float64 `json:"least_growth"`
	// Precision of the ends of stable ranges: how far, relative to it, the next step lies that was seen to grow.
	Precision float64 `json:"precision"`
	// Now tells that the step of the analysis is among them, and Radius of it is known by that.
	Now bool `json:"at_step"`
	// Missed are steps that were not looked at for lack of time.
	Missed int `json:"missed,omitempty"`
}

const (
	seenPoints    = 9    // of a scan by runs
	seenInGap     = 3    // of one step size that the models leave open
	seenPrecision = 0.02 // of the ends of stable ranges
	alikeRate     = 0.3  // by which growths in time may be apart that are the same
	seenLook      = 64   // steps between looks at the clock
	gapPart       = 4    // of the time for runs, that for gaps in what models tell, by its inverse
	clearlyCalm   = 1e-3 // how far below 1 a radius has to be, beside those of models, that counts as one
)

// followedRuns are the macro steps over which a difference is followed: where the first leave open what
// becomes of it, the second, and the third where time is left once all have been looked at.
var followedRuns = [3]int{400, 2000, 8000}

// lengths are those that a look may take, from the first to before the second of two.
type lengths [2]int

var (
	scanned = lengths{0, 2} // from short to long
	precise = lengths{1, 2}
	last    = lengths{2, 3}
)

// runKicks are how far inputs are moved, relative to their size: two that agree are asked for, and none that
// contradicts. The first two are enough as a rule; larger ones are for components with noise.
var runKicks = []float64{1e-3, 1e-5, 1e-1, 1e-7}

var (
	// errNoTime ends what the time does not suffice for.
	errNoTime = errors.New("not looked at: the time for runs was over (--runs)")
	// errRandom is of systems that are not the same twice.
	errRandom = errors.New("runs of the system differ")
)

// sight is what runs show at one step size.
type sight struct {
	Radius
	kind   fate
	why    string // of an unknown one
	steps  int    // that differences were followed over
	open   bool   // longer runs may tell
	ends   bool   // a stable range ends before it
	ofRuns bool   // else of the models
	edge   bool   // end of a range of the models
	looked bool
}

// looker looks at runs.
type looker struct {
	ctx   context.Context
	o     Options
	until time.Time
	// floor is the part of the outputs by which two runs that are alike differ; NaN = not looked at yet.
	floor float64
	runs  int
}

// hunt is the looks at one strategy.
type hunt struct {
	of     *Strategy
	scheme *scheme
	sights []sight // by step
	runs   int
	// mixed tells that models tell of other steps, and to a millionth in a step: what is only not seen to grow
	// is unknown beside that.
	mixed bool
	// refused is why there are no runs with it, once that is known.
	refused error
}

// wanted gives the strategies of which something is left open, of those asked for, with the steps to look at: all of the scan, or some
// in the gaps.
func (r *Report) wanted(sys *master.System, only func(preset string, order int) bool) (out []*hunt) {
	for k, s := range r.schemes {
		of := &r.Strategies[k]
		if only != nil && !only(s.preset, s.order) {
			continue
		}
		if alg, err := s.algorithm(); err != nil || alg.Check(sys) != nil || s.nonlinear() != "" {
			continue
		}
		h := &hunt{of: of, scheme: s}
		add := func(step float64) {
			near := func(at sight) bool { return math.Abs(at.Step-step) < 0.01*step }
			if step >= r.From*(1-1e-9) && step <= r.To*(1+1e-9) && !slices.ContainsFunc(h.sights, near) {
				h.sights = append(h.sights, sight{Radius: Radius{Step: step}, ofRuns: true})
			}
		}
		switch {
		case len(of.Points) == 0:
			add(r.Step)
			for i := range seenPoints {
				add(r.From * math.Pow(r.To/r.From, float64(i)/(seenPoints-1)))
			}
		case of.Multiples > 0 || len(of.Gaps) == 0:
			continue
		default:
			h.mixed = true
			for _, g := range of.Gaps {
				for i := range seenInGap {
					add(g.From * math.Pow(g.To/g.From, float64(i)/(seenInGap-1)))
				}
			}
			for _, p := range of.Points {
				h.sights = append(h.sights, sight{Radius: p, kind: fateOf(p.Radius), looked: true})
			}
			for _, g := range of.Stable {
				for _, end := range []float64{g.From, g.To} {
					h.sights = append(h.sights, sight{Radius: Radius{end, 1}, kind: calm, looked: true, edge: true})
				}
			}
		}
		h.sort()
		if slices.ContainsFunc(h.sights, func(at sight) bool { return !at.looked }) {
			out = append(out, h)
		}
	}
	return out
}

func fateOf(radius float64) fate {
	if stable(radius) {
		return calm
	}
	return grows
}

func (h *hunt) sort() {
	slices.SortStableFunc(h.sights, func(a, b sight) int { return cmp.Compare(a.Step, b.Step) })
}

// lookAtRuns fills in from runs of the system what its models leave open.
func (r *Report) lookAtRuns(ctx context.Context, sys *master.System, o Options) error {
	if o.Runs.Again == nil || !(o.Runs.Time > 0) || len(r.Structure.Connections) == 0 {
		return nil
	}
	hunts := r.wanted(sys, o.Runs.Only)
	if len(hunts) == 0 {
		return nil
	}
	budget := o.Runs.Time
	if !slices.ContainsFunc(hunts, func(h *hunt) bool { return !h.mixed }) {
		budget /= gapPart
	}
	if len(sys.Infos) > manySubsystems {
		budget /= gapPart
	}
	l := &looker{ctx: ctx, o: o, until: time.Now().Add(budget), floor: math.NaN()}
	// The step of the analysis first, then those around it from near to far, of all strategies.
	type task struct {
		h    *hunt
		step float64
	}
	var tasks []task
	for _, h := range hunts {
		for _, at := range h.sights {
			if !at.looked {
				tasks = append(tasks, task{h, at.Step})
			}
		}
	}
	away := func(t task) float64 { return math.Round(1e3 * math.Abs(math.Log(t.step/r.Step))) }
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(away(a), away(b)) })
	for _, t := range tasks {
		k := slices.IndexFunc(t.h.sights, func(at sight) bool { return at.Step == t.step && !at.looked })
		how := scanned
		if t.step == r.Step {
			how = precise
		}
		if err := l.look(t.h, &t.h.sights[k], how); err != nil {
			return err
		}
	}
	if err := l.refine(hunts); err != nil {
		return err
	}
	for more := true; more; { // what is left open
		more = false
		for _, h := range hunts {
			for k := range h.sights {
				if !h.sights[k].open {
					continue
				}
				if err := l.look(h, &h.sights[k], last); err != nil {
					return err
				}
				h.sights[k].open = false
				more = true
			}
		}
		if err := l.refine(hunts); err != nil {
			return err
		}
	}
	for _, h := range hunts {
		h.doubtAlone()
		h.report(r.Step)
	}
	if r.Recommended < 0 {
		if r.recommend(o.Error); r.Recommended >= 0 && r.Strategies[r.Recommended].Seen != nil {
			r.Why += "; that it is stable is seen in runs"
		}
	}
	return nil
}

// refine looks for the ends of stable ranges, of each strategy in turn, so that none is left coarse for
// another.
func (l *looker) refine(hunts []*hunt) error {
	for _, h := range hunts {
		h.settle()
	}
	for more := true; more; {
		more = false
		for _, h := range hunts {
			again, err := l.halve(h)
			if err != nil {
				return err
			}
			more = more || again
		}
	}
	return nil
}

// look looks at one step size. Its error ends all; what ends a look stands in the sight.
func (l *looker) look(h *hunt, at *sight, how lengths) error {
	at.looked = true
	was := *at
	if l.o.Runs.Observe != nil {
		l.o.Runs.Observe(fmt.Sprintf("runs of %s, order %d, with steps of %.4g s", h.scheme.preset, h.scheme.order, at.Step))
	}
	if h.refused != nil {
		at.kind, at.why = unknown, h.refused.Error()
		return nil
	}
	before := l.runs
	found, err := l.sight(h.scheme, at.Step, how)
	h.runs += l.runs - before
	if err := context.Cause(l.ctx); err != nil {
		return err
	}
	at.kind, at.Radius.Radius, at.why, at.open, at.ends, at.steps = found.kind, found.radius, found.why, found.open && how[1] < len(followedRuns), found.ends, followedRuns[how[1]-1]
	if h.mixed && at.kind == calm && at.Radius.Radius > 1-clearlyCalm {
		at.kind, at.why = unknown, fmt.Sprintf("no growth is seen over %d steps, and %.6g in a step is not told from 1", at.steps, at.Radius.Radius)
	}
	if errors.Is(err, errNoTime) && was.why != "" { // it was looked at before
		*at = was
	} else if err != nil {
		at.kind, at.why = unknown, err.Error()
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			h.refused = err
		}
	}
	return nil
}

// refusedError is of a run that does not begin, whatever its steps.
type refusedError struct{ error }

func (e *refusedError) Unwrap() error { return e.error }

// settle decides of motions that part up to some size, and no more: where shorter steps are calm, it is the
// coupling that does it, else it may be the motion itself.
func (h *hunt) settle() {
	calmed := false
	for i := range h.sights {
		switch at := &h.sights[i]; {
		case at.kind == calm:
			calmed = true
		case at.kind == bounded && calmed:
			at.kind = grows
		case at.kind == bounded:
			at.kind, at.why = unknown, fmt.Sprintf("differences grow by %.4g in a step until they are as large as the motion, and no more: the motion itself may be one that does not forget, as of chaos", at.Radius.Radius)
		}
	}
}

// parts reports whether a stable range ends between neighbours of which runs have shown one.
func parts(a, b sight) bool {
	ends := func(at sight) bool { return at.kind == grows || at.ends }
	return (a.ofRuns || b.ofRuns) && (a.kind == calm && ends(b) || ends(a) && b.kind == calm)
}

// halve looks in the middle of each pair of neighbours of which one grows; more tells that something is
// left.
func (l *looker) halve(h *hunt) (more bool, err error) {
	var fresh []sight
	for i := range len(h.sights) - 1 {
		a, b := h.sights[i], h.sights[i+1]
		if !parts(a, b) || b.Step <= a.Step*(1+seenPrecision) {
			continue
		}
		at := sight{Radius: Radius{Step: math.Sqrt(a.Step * b.Step)}, ofRuns: true}
		if err := l.look(h, &at, precise); err != nil {
			return false, err
		}
		if at.kind == bounded { // between one that is calm and one that grows
			at.kind = grows
		}
		if at.why == errNoTime.Error() {
			return false, nil
		}
		fresh, more = append(fresh, at), true
	}
	h.sights = append(h.sights, fresh...)
	h.sort()
	return more, nil
}

// doubtAlone makes unknown what is calm with nothing but unknown steps beside: among them, it may be so by chance.
func (h *hunt) doubtAlone() {
	blank := func(k int) bool {
		return k < 0 || k >= len(h.sights) || h.sights[k].kind == unknown && h.sights[k].why != errNoTime.Error()
	}
	if len(h.sights) == 1 {
		return
	}
	for k := range h.sights {
		if at := &h.sights[k]; at.ofRuns && at.kind == calm && blank(k-1) && blank(k+1) {
			at.kind, at.why = unknown, "differences do not grow, but at the steps beside nothing is known"
		}
	}
}

// report puts what was seen into the strategy.
func (h *hunt) report(step float64) {
	s := h.of
	out := &Seen{Runs: h.runs, Steps: followedRuns[1], Least: math.Log(calmFactor) / (float64(followedRuns[1]) / 3)}
	known := false
	for _, at := range h.sights {
		if at.ofRuns {
			out.Looks++
			known = known || at.kind != unknown
			out.Steps = max(out.Steps, at.steps)
			if at.why == errNoTime.Error() {
				out.Looks, out.Missed = out.Looks-1, out.Missed+1
			}
		}
	}
	why := ""
	for _, at := range h.sights {
		if why == "" && at.kind == unknown && at.why != errNoTime.Error() {
			why = fmt.Sprintf("in runs with steps of %.4g s: %s", at.Step, at.why)
		}
	}
	if !known {
		if why == "" {
			why = errNoTime.Error()
		}
		if s.Why = cmp.Or(s.Why, "nothing is known of it"); why != "" {
			s.Why += "; " + why
		}
		return
	}
	s.Seen = out
	s.Points, s.Stable, s.Gaps = nil, nil, nil
	before := unknown
	for i, at := range h.sights {
		if at.kind == unknown {
			if i > 0 && h.sights[i-1].kind == unknown {
				s.Gaps[len(s.Gaps)-1].To = at.Step
			} else {
				s.Gaps = append(s.Gaps, Gap{at.Step, at.Step, at.why})
			}
		} else if !at.edge {
			s.Points = append(s.Points, at.Radius)
			if at.ofRuns {
				out.Points = append(out.Points, at.Radius)
			}
		}
		if at.kind == calm {
			if before != calm {
				s.Stable = append(s.Stable, Range{at.Step, at.Step})
			}
			s.Stable[len(s.Stable)-1].To = at.Step
		}
		if i > 0 && parts(h.sights[i-1], at) {
			out.Precision = max(out.Precision, at.Step/h.sights[i-1].Step-1)
		}
		if at.ofRuns && at.Step == step && s.Mode == nil && at.kind != unknown {
			s.Now, out.Now = at.Radius.Radius, true
		}
		before = at.kind
	}
	s.Why = why
	if rate, ok := ownRate(out.Points); ok {
		s.Why = strings.TrimPrefix(fmt.Sprintf("%s; at the shortest steps differences grow by a factor of e every %.3g s, whatever the step: the motion itself does that, or steps have to be far shorter", s.Why, 1/rate), "; ")
	}
}

// ownRate gives that by which differences grow at the shortest steps of which runs show something, in 1/s, if it is the
// same at two of them.
func ownRate(points []Radius) (float64, bool) {
	if len(points) < 2 || stable(points[0].Radius) || stable(points[1].Radius) {
		return 0, false
	}
	a, b := math.Log(points[0].Radius)/points[0].Step, math.Log(points[1].Radius)/points[1].Step
	return a, math.Abs(a-b) <= alikeRate*max(a, b)
}

// finding is what becomes of a difference.
type finding struct {
	kind   fate
	radius float64
	why    string
	open   bool // a longer run may tell
	ends   bool // a stable range ends before it
}

// sight follows differences at one step size, over more steps where some leave it open.
func (l *looker) sight(s *scheme, h float64, how lengths) (out finding, err error) {
	for k := how[0]; k < how[1]; k++ {
		out, err = l.over(s, h, followedRuns[k], k > 0)
		if err != nil || out.kind != undecided {
			return out, err
		}
	}
	return finding{why: out.why, open: true}, nil
}

// over is sight over n steps; undecided are those of which longer runs may tell more. Long ones tell of
// slow growth, too.
func (l *looker) over(s *scheme, h float64, n int, long bool) (finding, error) {
	base, err := l.follow(s, h, 0, n)
	if err != nil {
		return finding{}, err
	}
	if math.IsNaN(l.floor) {
		again, err := l.follow(s, h, 0, n)
		if err != nil {
			return finding{}, err
		}
		l.floor = 0
		for _, e := range base.apart(again) {
			l.floor = max(l.floor, e)
		}
	}
	if !(l.floor < fickle) {
		return finding{}, fmt.Errorf("%w by %.2g of the outputs although nothing is moved: they have noise", errRandom, l.floor)
	}
	var seen []pursuit
	for _, kick := range runKicks {
		moved, err := l.follow(s, h, kick, n)
		if err != nil {
			return finding{}, err
		}
		c := newPursuit(base, moved, kick, l.floor, long)
		if c.kind == lost && !long {
			c.kind = undecided
		}
		if c.kind == undecided {
			return c.finding, nil
		}
		seen = append(seen, c)
		if f, done := together(seen); done {
			return f, nil
		}
	}
	return finding{kind: undecided, why: "the differences that moved inputs make, of whatever size, are within noise"}, nil
}

// trace holds the outputs of a run at the communication points from that at which inputs were moved.
type trace struct {
	y    [][]float64
	size []float64 // of the outputs, about the operating point
	held int       // macro steps over which inputs were moved
	err  error     // ended it before its end
}

// held gives over how many of n macro steps the inputs are moved: more than one, as components that take steps of
// their own, or sample, see them now and then only. The steps of the scan are 1/30 of that
// of the analysis as a rule.
func held(n int) int { return min(n/16, max(40, n/50)) }

// settling are the steps from the operating point on by which the size of a signal is told.
const settling = 10

// follow runs the system over n steps from the operating point on, with inputs moved there, over the first of them, by
// kick of their size. The error tells why there is no such run; what ends one stands in the trace.
func (l *looker) follow(s *scheme, h, kick float64, n int) (out *trace, err error) {
	if !time.Now().Before(l.until) {
		return nil, errNoTime
	}
	l.runs++
	sys, end, err := l.o.Runs.Again(l.ctx)
	if err != nil {
		return nil, &refusedError{err}
	}
	if end != nil {
		defer func() { err = errors.Join(err, end()) }()
	}
	alg, err := s.algorithm()
	if err != nil {
		return nil, &refusedError{err}
	}
	at := max(l.o.At, l.o.Start)
	way := math.Ceil((at-l.o.Start)/h - 1e-6)
	run, err := master.NewRun(sys, alg, master.Options{Start: l.o.Start, Stop: l.o.Start + (way+float64(n)+1.5)*h, Step: h, Tolerance: l.o.Tolerance, Workers: 1, Steer: true})
	if err != nil {
		return nil, err
	}
	// What a subsystem says at its end is nothing of the coupling.
	defer func() { _, _ = run.Close() }()
	if err := run.Start(l.ctx); err != nil {
		return nil, &refusedError{err}
	}
	out = &trace{held: held(n)}
	note := func() { out.y = append(out.y, slices.Clone(run.Point().Y)) }
	for k := 0; k < int(way)+n+1; k++ {
		if k%seenLook == 0 && !time.Now().Before(l.until) {
			return nil, errNoTime
		}
		if k == int(way) {
			note()
			if err := move(run, sys, kick); err != nil {
				return nil, err
			}
		}
		if k == int(way)+held(n) {
			if err := release(run, sys); err != nil {
				return nil, err
			}
		}
		if _, err := macroStep(l.ctx, run); err != nil {
			if k < int(way) {
				return nil, fmt.Errorf("on the way to the operating point: %w", err)
			}
			out.err = err
			break
		}
		if k >= int(way) {
			note()
		}
	}
	for o := range out.y[0] {
		size := 0.0
		for _, y := range out.y[:min(settling, len(out.y))] {
			size = max(size, math.Abs(y[o]))
		}
		if size == 0 {
			size = port(sys, o).Magnitude()
		}
		out.size = append(out.size, size)
	}
	return out, nil
}

// port gives that of an entry of y.
func port(sys *master.System, y int) master.Port {
	i := 0
	for y >= sys.OutAt[i+1] {
		i++
	}
	return sys.Infos[i].Out[y-sys.OutAt[i]]
}

// coupledInputs calls do for each Real input that another subsystem feeds.
func coupledInputs(run *master.Run, sys *master.System, do func(k int, v *master.Variable) error) error {
	for k := range sys.InAt[len(sys.InAt)-1] {
		if sys.SourceSubsystem(k) < 0 {
			continue
		}
		v, err := run.Variable(sys.InName(k))
		if err == nil {
			err = do(k, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// move moves all inputs at random, always alike, so that no mode is missed; by nothing, too, so that
// algorithms that are told of it do the same in both runs.
func move(run *master.Run, sys *master.System, kick float64) error {
	rng := rand.New(rand.NewPCG(11, 12))
	u := slices.Clone(run.Point().U)
	return coupledInputs(run, sys, func(k int, v *master.Variable) error {
		size := math.Abs(u[k])
		if size == 0 {
			size = v.Port.Magnitude()
		}
		by := 0.5 + 0.5*rng.Float64()
		if rng.IntN(2) == 0 {
			by = -by
		}
		return v.Override(master.Linear{Gain: 1, Offset: kick * by * size})
	})
}

func release(run *master.Run, sys *master.System) error {
	return coupledInputs(run, sys, func(_ int, v *master.Variable) error { return v.Release() })
}
