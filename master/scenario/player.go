package scenario

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// Player plays a scenario in one run: it is a hook of it (master.Options.Hooks).
type Player struct {
	// Items returns the items of an enumeration, by name: its values are then names or
	// numbers of items. If Items or its result is nil, an Integer may have any value. Set it
	// before the run is created.
	Items func(variable string) map[string]int64
	// Resolve returns the name of a variable of the file in the run; nil = the same.
	Resolve func(name string) (string, error)

	s      *Scenario
	run    *master.Run
	tiny   float64 // s: tolerance for equal times
	events []liveEvent
	judges []judge
	order  []int // events as they happen at one point: those with a time by time, then the others
	played
}

// played is the state of a player, apart from those of its events and expectations.
type played struct {
	playing  []playing
	happened []record.ScenarioEvent
	stopping string
}

var (
	_ master.Hook        = (*Player)(nil)
	_ master.EventSource = (*Player)(nil)
	_ master.Archiver    = (*Player)(nil)
	_ master.Expecter    = (*Player)(nil)
)

type liveEvent struct {
	*event
	conditions []liveCondition
	actions    []liveAction
	eventState
}

type eventState struct {
	fired   bool
	release float64 // s: when its actions end; NaN = not scheduled
	inForce []bool  // by action: no later one has replaced it
}

type liveCondition struct {
	*condition
	v     *master.Variable
	value master.Scalar
}

type liveAction struct {
	*action
	v     *master.Variable
	value master.Scalar                 // set
	table func(t float64) master.Scalar // replay
}

// playing is a variable that follows the table of an action.
type playing struct {
	event, action int     // indices
	zero          float64 // s: time of the run at time 0 of the table
	on            bool    // it has begun
}

// Play returns the hook for one run.
func (s *Scenario) Play() *Player {
	return &Player{s: s}
}

// Bind finds the variables in the run and checks the actions on them. The error names all
// faulty lines.
func (p *Player) Bind(r *master.Run) error {
	*p = Player{Items: p.Items, Resolve: p.Resolve, s: p.s, run: r}
	_, stop, step := r.Span()
	p.tiny = 1e-9 * step
	b := &binder{Player: p, tables: map[replayed]func(t float64) master.Scalar{}}
	for k := range p.s.events {
		if b.full() {
			break
		}
		p.events, p.order = append(p.events, b.event(&p.s.events[k])), append(p.order, k)
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return cmp.Compare(p.events[a].time(), p.events[b].time()) })
	for k := range p.s.expectations {
		if b.full() {
			break
		}
		b.expectation(&p.s.expectations[k], stop)
	}
	return errors.Join(b.errs...)
}

// binder finds the variables of a scenario in a run.
type binder struct {
	*Player
	errs   []error // at most mostErrors
	tables map[replayed]func(t float64) master.Scalar
}

// replayed is the source of a replay.
type replayed struct {
	table  *record.Signals
	column string
	v      *master.Variable
}

func (b *binder) full() bool { return len(b.errs) >= mostErrors }

func (b *binder) fail(line int, format string, args ...any) {
	if !b.full() {
		b.errs = append(b.errs, fmt.Errorf("%s:%d: %s", b.s.Path, line, fmt.Sprintf(format, args...)))
	}
}

// find returns a variable by name; nil = there is none.
func (b *binder) find(line int, name string) *master.Variable {
	if b.full() {
		return nil
	}
	if b.Resolve != nil {
		full, err := b.Resolve(name)
		if err != nil {
			b.fail(line, "%v", err)
			return nil
		}
		name = full
	}
	v, err := b.run.Variable(name)
	if err != nil {
		b.fail(line, "%v%s", err, diag.DidYouMean(name, b.run.Variables()))
	}
	return v
}

// scalar converts a literal to a value of a variable.
func (b *binder) scalar(line int, l literal, v *master.Variable) master.Scalar {
	s, err := l.as(v.Port, b.items(v))
	if err != nil {
		b.fail(line, "%s: %v", v.Name, err)
	}
	return s
}

// read reports an error unless the run reads a variable.
func (b *binder) read(line int, v *master.Variable) {
	if !v.Readable() {
		b.fail(line, "%s is not read in this run; add it to what is recorded", v.Name)
	}
}

func (b *binder) event(of *event) liveEvent {
	e := liveEvent{event: of, eventState: eventState{release: math.NaN()}}
	for c := range of.when {
		live := liveCondition{condition: &of.when[c]}
		if live.v = b.find(live.line, live.variable); live.v == nil {
			continue
		}
		b.read(live.line, live.v)
		live.value = b.scalar(live.line, live.condition.value, live.v)
		ordered := live.operator != "==" && live.operator != "!="
		if kind := live.v.Port.Kind; ordered && (kind == master.Boolean || kind == master.String) {
			b.fail(live.line, "%s is not a number: it can be compared only with == or !=", live.v.Name)
		}
		e.conditions = append(e.conditions, live)
	}
	for a := range of.actions {
		live := liveAction{action: &of.actions[a]}
		if live.v = b.find(live.line, live.variable); live.v == nil {
			continue
		}
		if err := live.v.Settable(); err != nil {
			b.fail(live.line, "%v", err)
			continue
		}
		b.action(&live)
		e.actions, e.inForce = append(e.actions, live), append(e.inForce, false)
	}
	return e
}

// action prepares the value or the table of an action.
func (b *binder) action(live *liveAction) {
	switch live.verb {
	case set:
		live.value = b.scalar(live.line, live.action.value, live.v)
	case adjust:
		if live.v.Port.Kind != master.Real {
			b.fail(live.line, "%s is not a Real: it can be set, frozen and replayed, not scaled or offset", live.v.Name)
		}
		b.read(live.line, live.v)
	case freeze:
		b.read(live.line, live.v)
	case replay:
		source := replayed{live.action.table, live.column, live.v}
		table, known := b.tables[source]
		if !known {
			var err error
			if items := b.items(live.v); items != nil {
				table, err = source.table.ReplayItems(live.column, items)
			} else {
				table, err = source.table.Replay(live.column, live.v.Port)
			}
			if err != nil {
				b.fail(live.line, "%v", err)
			}
			b.tables[source] = table
		}
		live.table = table
	}
}

func (b *binder) expectation(of *expectation, stop float64) {
	j := judge{expectation: of}
	if j.v = b.find(j.line, j.variable); j.v == nil {
		return
	}
	b.read(j.line, j.v)
	if err := j.prepare(b.items(j.v)); err != nil {
		b.fail(j.line, "%s: %v", j.v.Name, err)
	}
	if late := j.earliest(); late > stop+b.tiny {
		b.fail(j.line, "the expectation is not judged before %g s, and the run ends at %g s", late, stop)
	}
	b.judges = append(b.judges, j)
}

// time returns the time (s) of an event; +Inf = it has conditions.
func (e *liveEvent) time() float64 {
	if math.IsNaN(e.at) {
		return math.Inf(1)
	}
	return e.at
}

// items returns the items of an enumeration; nil if the variable is not one.
func (p *Player) items(v *master.Variable) map[string]int64 {
	if p.Items == nil || v.Port.Kind != master.Integer {
		return nil
	}
	return p.Items(v.Name)
}

// as converts the literal to a value of a port, or of an enumeration with these items.
func (l literal) as(p master.Port, items map[string]int64) (s master.Scalar, err error) {
	s.Kind = p.Kind
	switch {
	case items != nil:
		s.Integer, err = record.Item(l.text, items)
		return s, err
	case p.Binary:
		var b []byte
		b, err = hex.DecodeString(l.text)
		s.Text = string(b)
	case p.Kind == master.String:
		s.Text = l.text
	case l.quoted:
		err = strconv.ErrSyntax
	case p.Kind == master.Real:
		s.Real, err = strconv.ParseFloat(l.text, 64)
	case p.Kind == master.Integer:
		s.Integer, err = strconv.ParseInt(l.text, 10, 64)
	case l.text == "true":
		s.Boolean = true
	case l.text != "false":
		err = strconv.ErrSyntax
	}
	if err != nil || !p.Fits(s) {
		return s, fmt.Errorf("%q is not %s", l.text, p.Values())
	}
	return s, nil
}

// NextEvent returns the time (s) of the next event or judgement after t.
func (p *Player) NextEvent(t float64) float64 {
	next := math.Inf(1)
	at := func(times ...float64) {
		for _, v := range times {
			if v > t && v < next {
				next = v
			}
		}
	}
	for k := range p.events {
		if e := &p.events[k]; !e.fired || !math.IsNaN(e.release) {
			at(e.at, e.release)
		}
	}
	for k := range p.judges {
		if j := &p.judges[k]; j.mode == atTime {
			at(j.at)
		} else {
			at(j.from, j.until)
		}
	}
	return next
}

// At carries out the events that are due at the current communication point and judges the
// expectations.
func (p *Player) At(r *master.Run) error {
	t := r.Time()
	var due []int // before any of them acts
	for _, k := range p.order {
		if e := &p.events[k]; !e.fired && (e.at <= t+p.tiny || p.holds(e, t)) {
			due = append(due, k)
		}
	}
	for k := range p.events {
		if p.events[k].release <= t+p.tiny {
			if err := p.end(k, t); err != nil {
				return err
			}
		}
	}
	for _, k := range due {
		if err := p.fire(k, t); err != nil {
			return err
		}
	}
	for k := range p.playing {
		q := &p.playing[k]
		a := &p.events[q.event].actions[q.action]
		set := a.v.Track
		if !q.on {
			q.on, set = true, a.v.Set
		}
		if err := set(a.table(t - q.zero)); err != nil {
			return err
		}
	}
	p.judge(t)
	if p.stopping != "" {
		return fmt.Errorf("%w by %s at t = %.12g s: %s", master.ErrStop, p.s.Path, t, p.stopping)
	}
	return nil
}

// judge judges the expectations at the current communication point, in the order of the file.
func (p *Player) judge(t float64) {
	for k := range p.judges {
		if j := &p.judges[k]; j.look(t, p.tiny) && p.s.StopOnFailure && p.stopping == "" {
			p.stopping = fmt.Sprintf("the expectation in line %d fails", j.line)
		}
	}
}

// quit ends the actions on a variable.
func (p *Player) quit(v *master.Variable) {
	p.playing = slices.DeleteFunc(p.playing, func(q playing) bool { return p.events[q.event].actions[q.action].v == v })
	for k := range p.events {
		for i, a := range p.events[k].actions {
			p.events[k].inForce[i] = p.events[k].inForce[i] && a.v != v
		}
	}
}

// holds reports whether the conditions of an event hold.
func (p *Player) holds(e *liveEvent, t float64) bool {
	if len(e.conditions) == 0 || t < e.from-p.tiny {
		return false
	}
	for k := range e.conditions {
		if !e.conditions[k].holds() {
			return false
		}
	}
	return true
}

func (c *liveCondition) holds() bool {
	is, err := c.v.Value()
	if err != nil {
		return false
	}
	a, b := is.Real, c.value.Real
	switch is.Kind {
	case master.Integer:
		a, b = float64(cmp.Compare(is.Integer, c.value.Integer)), 0
	case master.Boolean, master.String:
		return (is == c.value) == (c.operator == "==")
	}
	switch c.operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "==":
		return a == b
	}
	return a != b
}

// fire carries out an event.
func (p *Player) fire(k int, t float64) error {
	e := &p.events[k]
	e.fired = true
	did := record.ScenarioEvent{Line: e.line, Time: t}
	for i := range e.actions {
		a := &e.actions[i]
		text, err := p.act(k, i, t)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", p.s.Path, a.line, err)
		}
		did.Did = append(did.Did, text)
		e.inForce[i] = a.verb != release
	}
	if !math.IsNaN(e.hold) {
		e.release = t + e.hold
		if !math.IsNaN(e.at) {
			e.release = e.at + e.hold
		}
	}
	if e.stop != "" {
		did.Did = append(did.Did, "stop: "+e.stop)
		if p.stopping == "" {
			p.stopping = e.stop
		}
	}
	p.happened = append(p.happened, did)
	return nil
}

// act carries out action i of event k and returns a description of it.
func (p *Player) act(k, i int, t float64) (did string, err error) {
	a := &p.events[k].actions[i]
	name := a.v.Name
	p.quit(a.v)
	switch a.verb {
	case release:
		return "released " + name, a.v.Release()
	case set:
		return fmt.Sprintf("set %s to %s", name, a.value), a.v.Set(a.value)
	case adjust:
		switch {
		case a.gain == 1:
			did = fmt.Sprintf("offset %s by %s", name, digits(a.offset))
		case a.offset == 0:
			did = fmt.Sprintf("scaled %s by %s", name, digits(a.gain))
		default:
			did = fmt.Sprintf("scaled %s by %s and offset it by %s", name, digits(a.gain), digits(a.offset))
		}
		if a.v.Coupled() {
			return did, a.v.Override(master.Linear{Gain: a.gain, Offset: a.offset})
		}
		is, err := a.v.Value()
		is.Real = float64(a.gain*is.Real) + a.offset
		return did, errors.Join(err, a.v.Set(is))
	case freeze:
		is, err := a.v.Value()
		return fmt.Sprintf("froze %s at %s", name, rounded(is)), errors.Join(err, a.v.Set(is))
	}
	q := playing{event: k, action: i}
	if a.relative {
		q.zero = t
	}
	p.playing = append(p.playing, q) // At sets the value
	return fmt.Sprintf("replays %s from %s", name, a.action.table.Path), nil
}

// Archive writes or reads the events so far and the state of the expectations. The run itself
// archives the values of the variables.
func (p *Player) Archive(a *master.Archive) {
	a.Same(p.s.Hash, "the scenario")
	a.All(&p.played)
	for k := range p.events {
		a.All(&p.events[k].eventState)
	}
	for k := range p.judges {
		a.All(&p.judges[k].judged)
	}
}

// end releases the variables whose actions of an event are still in force.
func (p *Player) end(k int, t float64) error {
	e := &p.events[k]
	e.release = math.NaN()
	did := record.ScenarioEvent{Line: e.line, Time: t}
	for i := range e.actions {
		a := &e.actions[i]
		if !e.inForce[i] {
			continue
		}
		p.quit(a.v)
		if err := a.v.Release(); err != nil {
			return fmt.Errorf("%s:%d: %w", p.s.Path, a.line, err)
		}
		did.Did = append(did.Did, "released "+a.v.Name)
	}
	if did.Did != nil {
		p.happened = append(p.happened, did)
	}
	return nil
}

// Report returns, after the run, the events that happened and the verdicts on the
// expectations.
func (p *Player) Report() *record.Scenario {
	r := &record.Scenario{Path: p.s.Path, Hash: p.s.Hash, Name: p.s.Name,
		Given: len(p.s.events), Happened: len(p.s.events) - len(p.Idle()),
		Events: append([]record.ScenarioEvent{}, p.happened...), Expectations: []record.Expectation{}}
	for k := range p.judges {
		r.Expectations = append(r.Expectations, p.verdict(k))
	}
	return r
}

// Expectations counts the expectations by result.
func (p *Player) Expectations() master.Expectations { return p.Report().Count() }

// Idle lists the lines of events that did not happen.
func (p *Player) Idle() []int {
	var out []int
	for k := range p.events {
		if !p.events[k].fired {
			out = append(out, p.events[k].line)
		}
	}
	return out
}

// Err returns one error for each expectation that failed, with file, line, time, value and
// limit; nil if all hold.
func (p *Player) Err() error {
	var errs []error
	for k := range p.judges {
		if v := p.verdict(k); !v.Passed {
			errs = append(errs, &FailedError{Path: p.s.Path, Expectation: v})
		}
	}
	return errors.Join(errs...)
}

// FailedError is an expectation that does not hold.
type FailedError struct {
	Path string
	record.Expectation
}

// Error names file, line and failure.
func (e *FailedError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Message) }

func digits(v float64) string { return strconv.FormatFloat(v, 'g', 12, 64) }

// judge judges one expectation.
type judge struct {
	*expectation
	v      *master.Variable
	wanted master.Scalar // the expected value, if there is one
	low    float64
	high   float64
	judged
}

// judged is the state of an expectation, which is archived in checkpoints.
type judged struct {
	looked   bool
	done     bool
	failed   bool
	when     float64 // s: time of the deciding value, or of the value nearest to the limit
	is       master.Scalar
	distance float64 // of this value beyond the limit; negative within the limits
	first    float64 // s: time of the first failure
	firstIs  master.Scalar
}

// prepare checks the limit against the type of the variable.
func (j *judge) prepare(items map[string]int64) (err error) {
	kind := j.v.Port.Kind
	j.low, j.high = j.min, j.max
	switch {
	case j.bounded && kind != master.Real && kind != master.Integer:
		return errors.New("it is not a number and cannot have bounds; give a value")
	case j.bounded:
		return j.exact()
	}
	if j.wanted, err = j.value.as(j.v.Port, items); err != nil {
		return err
	}
	switch {
	case kind == master.Real && !j.close:
		return errors.New("a Real is expected within a tolerance; give tolerance, relative or both (0 = every bit)")
	case kind == master.Integer:
		j.wanted.Real = float64(j.wanted.Integer)
	case kind != master.Real && j.close:
		return errors.New("it is not a number and cannot have a tolerance")
	case kind != master.Real:
		return nil
	}
	within := j.tolerance + j.relative*math.Abs(j.wanted.Real)
	j.low, j.high = j.wanted.Real-within, j.wanted.Real+within
	return j.exact()
}

// equals reports whether one Integer is expected.
func (j *judge) equals() bool { return j.v.Port.Kind == master.Integer && j.value != nil && !j.close }

// exact returns an error if the limits of an Integer are so large that they are not exact.
func (j *judge) exact() error {
	large := func(limit float64) bool { return !math.IsInf(limit, 0) && math.Abs(limit) >= 1<<53 }
	if j.v.Port.Kind == master.Integer && !j.equals() && (large(j.low) || large(j.high)) {
		return errors.New("limits of an Integer are exact only below 2^53; give a value without tolerance")
	}
	return nil
}

// earliest returns the time (s) of the first judgement.
func (j *judge) earliest() float64 {
	if j.mode == atTime {
		return j.at
	}
	return j.from
}

// off returns the distance of a value beyond the limits, negative within them.
func (j *judge) off(s master.Scalar) float64 {
	v := s.Real
	switch s.Kind {
	case master.Integer:
		v = float64(s.Integer)
		if j.equals() && s.Integer != j.wanted.Integer {
			return max(1, math.Abs(v-j.wanted.Real))
		}
	case master.Boolean, master.String:
		if s == j.wanted {
			return -1
		}
		return 1
	}
	if math.IsNaN(v) {
		return math.Inf(1)
	}
	if d := max(j.low-v, v-j.high); v < j.low || v > j.high || d < 0 {
		return d
	}
	return 0 // on the limit
}

// look judges the current value if it is due, and reports whether the expectation fails for
// the first time.
func (j *judge) look(t, tiny float64) (failed bool) {
	if j.done || t < j.earliest()-tiny || j.mode != atTime && t > j.until+tiny {
		return false
	}
	is, err := j.v.Value()
	if err != nil {
		return false // impossible: Bind checks that it can be read
	}
	off := j.off(is)
	switch holds := !(off > 0); j.mode {
	case atTime:
		j.done, failed = true, !holds
		j.when, j.is, j.distance = t, is, off
	case always:
		if failed = !holds && !j.failed; failed {
			j.first, j.firstIs = t, is
		}
		if !j.looked || off > j.distance {
			j.when, j.is, j.distance = t, is, off
		}
	case eventually:
		j.done = holds
		if !j.looked || off < j.distance {
			j.when, j.is, j.distance = t, is, off
		}
	}
	j.looked, j.failed = true, j.failed || failed
	return failed
}

// what describes the expectation in words.
func (j *judge) what() string {
	var b strings.Builder
	b.WriteString(j.variable)
	switch {
	case j.value != nil && j.v.Port.Kind == master.Real:
		fmt.Fprintf(&b, " = %s ± %s", j.wanted, digits(j.tolerance+j.relative*math.Abs(j.wanted.Real)))
	case j.value != nil && j.close:
		fmt.Fprintf(&b, " = %s to %s", digits(j.low), digits(j.high))
	case j.value != nil:
		fmt.Fprintf(&b, " = %s", j.wanted)
	case math.IsInf(j.low, -1):
		fmt.Fprintf(&b, " ≤ %s", digits(j.high))
	case math.IsInf(j.high, 1):
		fmt.Fprintf(&b, " ≥ %s", digits(j.low))
	default:
		fmt.Fprintf(&b, " from %s to %s", digits(j.low), digits(j.high))
	}
	switch j.mode {
	case atTime:
		fmt.Fprintf(&b, " at t = %s s", digits(j.at))
	case always:
		b.WriteString(" always" + j.window())
	case eventually:
		b.WriteString(" eventually" + j.window())
	}
	return b.String()
}

func (j *judge) window() string {
	text := ""
	if !math.IsInf(j.from, -1) {
		text += " from t = " + digits(j.from) + " s"
	}
	if !math.IsInf(j.until, 1) {
		text += " until t = " + digits(j.until) + " s"
	}
	return text
}

// verdict returns the result of an expectation. An expectation over a window is decided when
// it fails (always) or is met (eventually), when the window is over, or when the scenario ends
// the run; with an open window also when a subsystem terminates the simulation.
func (p *Player) verdict(k int) record.Expectation {
	_, stop, _ := p.run.Span()
	end := p.run.Time()
	open := math.IsInf(p.judges[k].until, 1)
	whole := p.stopping != "" || open && p.run.Terminated() || end >= min(stop, p.judges[k].until)-p.tiny
	return p.judges[k].verdict(end, whole)
}

// rounded formats a value for people.
func rounded(is master.Scalar) string {
	if is.Kind == master.Real {
		return fmt.Sprintf("%.6g", is.Real)
	}
	return is.String()
}

// bound returns a limit; nil = it is infinite.
func bound(v float64) *float64 {
	if math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// verdict returns the result in a run that ended at a time; whole: the window was over then.
func (j *judge) verdict(end float64, whole bool) record.Expectation {
	e := record.Expectation{Line: j.line, Variable: j.v.Name, What: j.what(), Once: j.mode == eventually}
	if kind := j.v.Port.Kind; kind == master.Real || kind == master.Integer {
		e.Min, e.Max = bound(j.low), bound(j.high)
	}
	if e.From, e.Until = bound(j.from), bound(j.until); j.mode == atTime {
		e.From, e.Until = &j.at, &j.at
	}
	open := j.mode == always && !j.failed || j.mode == eventually && !j.done
	if !j.looked || open && !whole {
		e.Unjudged = true
		how := map[bool]string{true: "never judged", false: "is not judged"}[whole]
		e.Message = fmt.Sprintf("%s was expected, and %s: the run ended at t = %.12g s", e.What, how, end)
		return e
	}
	t := j.when
	e.Time, e.Value = &t, j.is.String()
	e.Passed = !j.failed && (j.mode != eventually || j.done)
	if e.Passed {
		return e
	}
	beyond := func(is master.Scalar, off float64) string {
		if is.Kind == master.Boolean || is.Kind == master.String || j.equals() {
			return ""
		}
		return fmt.Sprintf(", %.4g beyond the limit of %.12g", off, j.limit(is))
	}
	message := func(verb string, is master.Scalar, at, distance float64) string {
		return fmt.Sprintf("%s %s %s at t = %.12g s%s; expected is %s", j.variable, verb, rounded(is), at, beyond(is, distance), e.What)
	}
	switch j.mode {
	case atTime:
		e.Message = message("is", j.is, j.when, j.distance)
	case always:
		first := j.first
		e.Time, e.Value = &first, j.firstIs.String()
		e.Message = message("is", j.firstIs, j.first, j.off(j.firstIs))
		if j.when != j.first {
			e.Message += fmt.Sprintf("; at worst %s at t = %.12g s", rounded(j.is), j.when)
		}
	case eventually:
		e.Message = message("came no nearer than", j.is, j.when, j.distance)
	}
	return e
}

// limit returns the limit that a number exceeds.
func (j *judge) limit(s master.Scalar) float64 {
	v := s.Real
	if s.Kind == master.Integer {
		v = float64(s.Integer)
	}
	if v < j.low {
		return j.low
	}
	return j.high
}
