package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
)

// Scenario is the content of a scenario file. It is immutable and may be played in any number
// of runs.
type Scenario struct {
	Path          string
	Hash          string // "sha256:…" of the file
	Name          string // "" = none
	Description   string
	StopOnFailure bool // the run ends at the first expectation that fails

	// Variables lists the variables of the scenario in the order of the file. A run must read
	// them.
	Variables []string

	uses         map[string]bool // Variables
	events       []event
	expectations []expectation
}

// Uses reports whether a variable is one of Variables.
func (s *Scenario) Uses(variable string) bool { return s.uses[variable] }

// event is one entry of events.
type event struct {
	line    int
	at      float64     // s; NaN = when the conditions hold
	when    []condition // all must hold
	from    float64     // s: earliest time of the conditions
	actions []action
	hold    float64 // s, duration of the actions; NaN = until the next action on the variable
	stop    string  // why the run ends; "" = it continues
}

// verb is the kind of an action.
type verb uint8

const (
	release verb = iota
	set
	adjust
	freeze
	replay
)

// action acts on one variable.
type action struct {
	line     int
	verb     verb
	variable string
	value    literal // set
	gain     float64 // adjust
	offset   float64
	table    *record.Signals // replay
	column   string
	relative bool // to the time of the event
}

// condition compares a variable with a value.
type condition struct {
	line     int
	variable string
	operator string
	value    literal
}

// literal is the text of a value in the file; its type is that of the variable.
type literal struct {
	text   string
	quoted bool // it is a string
}

// mode states when an expectation is judged.
type mode uint8

const (
	atTime mode = iota
	always
	eventually
)

// expectation is one entry of expect.
type expectation struct {
	line        int
	variable    string
	mode        mode
	at          float64 // s
	from, until float64 // s; infinite = not given
	min, max    float64 // infinite = not given
	value       *literal
	tolerance   float64 // absolute
	relative    float64 // of the value
	bounded     bool    // min or max
	close       bool    // tolerance or relative
}

// longest is the maximum size of a file in bytes.
const longest = 16 << 20

// Read reads a scenario and the tables that it replays. Errors name file, line and remedy.
// When ctx ends, its cause is the error.
func Read(ctx context.Context, path string) (*Scenario, error) {
	var s *Scenario
	var err error
	done := make(chan struct{})
	go func() { // the YAML library cannot be interrupted
		defer close(done)
		s, err = read(ctx, path)
	}()
	select {
	case <-done:
		return s, err
	case <-ctx.Done():
		return nil, fmt.Errorf("reading %s: %w", path, context.Cause(ctx))
	}
}

func read(ctx context.Context, path string) (*Scenario, error) {
	f, err := diag.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w; name a scenario that can be read", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%w; name a scenario that can be read", err)
	}
	return parse(ctx, path, data)
}

func parse(ctx context.Context, path string, data []byte) (*Scenario, error) {
	if len(data) > longest {
		return nil, fmt.Errorf("%s: the file is larger than %d MiB, too large for a scenario", path, longest>>20)
	}
	if what := diag.Pointer(data); what != "" {
		return nil, fmt.Errorf("%s: %s; %s", path, what, diag.FetchPointer)
	}
	r := &reader{
		Scenario: Scenario{Path: path, Hash: fmt.Sprintf("sha256:%x", sha256.Sum256(data)), uses: map[string]bool{}},
		ctx:      ctx, tables: map[string]*record.Signals{},
	}
	var document, more yaml.Node
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	if err := d.Decode(&document); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: the file is empty; it needs events or expect", path)
	} else if err != nil {
		return nil, r.syntax(err, data)
	}
	if err := d.Decode(&more); err == nil {
		r.fail(&more, "a second document begins; a scenario must be a single one")
	} else if !errors.Is(err, io.EOF) {
		return nil, r.syntax(err, data)
	}
	r.root(document.Content[0])
	return &r.Scenario, errors.Join(append(r.errs, context.Cause(ctx))...)
}

// visitor handles an entry of a mapping.
type visitor = func(key, value *yaml.Node)

// reader reads a scenario and collects its errors.
type reader struct {
	Scenario
	ctx    context.Context
	errs   []error
	tables map[string]*record.Signals // by path; nil = unreadable, as was reported
}

// mostErrors is the maximum number of errors reported for one file.
const mostErrors = 20

func (r *reader) failLine(line int, format string, args ...any) {
	if len(r.errs) < mostErrors {
		r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.Path, line, fmt.Sprintf(format, args...)))
	}
}

// full reports whether no more errors are collected, so that reading may stop.
func (r *reader) full() bool { return len(r.errs) == mostErrors || r.ctx.Err() != nil }

func (r *reader) fail(n *yaml.Node, format string, args ...any) { r.failLine(n.Line, format, args...) }

var lineOfError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax adds file, line and remedy to an error of the YAML library.
func (r *reader) syntax(err error, data []byte) error {
	text := err.Error()
	line := "1" // the library omits the number of the first line
	if m := lineOfError.FindStringSubmatch(text); m != nil {
		if text = text[len(m[0]):]; m[1] != "" {
			line = m[1]
		}
	}
	for at := 0; at < len(data); { // the library reports invalid bytes without the line
		c, n := utf8.DecodeRune(data[at:])
		if c == utf8.RuneError && n == 1 || c < ' ' && !strings.ContainsRune("\t\n\r", c) {
			return fmt.Errorf("%s:%d: there is the byte %#02x, and a scenario is text in UTF-8; name a scenario, or save it as UTF-8",
				r.Path, 1+bytes.Count(data[:at], []byte("\n")), data[at])
		}
		at += n
	}
	remedy := "correct the YAML"
	if strings.Contains(text, "cannot start any token") {
		remedy = "indent YAML with blanks, not with tabs, and quote texts that begin with a special character"
	}
	return fmt.Errorf("%s:%s: %s; %s", r.Path, line, text, remedy)
}

// fields calls the visitor of each key of a mapping. An unknown key is an error.
func (r *reader) fields(n *yaml.Node, what string, known map[string]visitor) bool {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s is %s; it must be a mapping of %s", what, kindName(n), strings.Join(keys(known), ", "))
		return false
	}
	r.each(n, what, func(key, value *yaml.Node) {
		f, ok := known[key.Value]
		if !ok {
			r.fail(key, "%s has no key %q%s", what, key.Value, diag.DidYouMeanOr(key.Value, keys(known), "; its keys are "))
			return
		}
		f(key, value)
	})
	return true
}

// each visits the entries of a mapping. Keys must be scalars and distinct.
func (r *reader) each(n *yaml.Node, what string, visit visitor) {
	seen := map[string]int{}
	for k := 0; k+1 < len(n.Content) && !r.full(); k += 2 {
		key, value := n.Content[k], n.Content[k+1]
		switch first, twice := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			r.fail(key, "a key of %s is %s; it must be a name", what, kindName(key))
			continue
		case key.Tag == "!!merge":
			r.fail(key, "merge keys (<<) are not supported; write the entries out")
			continue
		case twice:
			r.fail(key, "%s has %q twice, here and in line %d; remove one", what, key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		if value.Kind == yaml.AliasNode || value.Anchor != "" {
			r.fail(value, "anchors and aliases are not supported; write the value out")
			continue
		}
		visit(key, value)
	}
}

func keys[T any](m map[string]T) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias, which is not taken"
	}
	if n.Tag == "!!null" {
		return "empty"
	}
	return strconv.Quote(n.Value)
}

// list visits the entries of a sequence.
func (r *reader) list(n *yaml.Node, what string, visit func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s is %s; it must be a list, whose entries begin with -", what, kindName(n))
		return
	}
	for _, e := range n.Content {
		if r.full() {
			return
		}
		if e.Kind == yaml.AliasNode || e.Anchor != "" {
			r.fail(e, "anchors and aliases are not supported; write the value out")
			continue
		}
		visit(e)
	}
}

// number reads a finite number.
func (r *reader) number(n *yaml.Node, what string) (float64, bool) {
	var v float64
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float") && n.Decode(&v) == nil && v-v == 0 {
		return v, true
	}
	r.fail(n, "%s is %s; it must be a finite number", what, kindName(n))
	return 0, false
}

// positive reads a number above 0, with zero also 0.
func (r *reader) positive(n *yaml.Node, what string, zero bool) (float64, bool) {
	v, ok := r.number(n, what)
	if ok && (v < 0 || v == 0 && !zero) {
		least := "greater than 0"
		if zero {
			least = "at least 0"
		}
		r.fail(n, "%s is %g; it must be %s", what, v, least)
		return 0, false
	}
	return v, ok
}

func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.fail(n, "%s is %s; it must be a text", what, kindName(n))
		return ""
	}
	return n.Value
}

func (r *reader) boolean(n *yaml.Node, what string) bool {
	var v bool
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" || n.Decode(&v) != nil {
		r.fail(n, "%s is %s; it must be true or false", what, kindName(n))
	}
	return v
}

func (r *reader) literal(n *yaml.Node, what string) literal {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fail(n, "%s is %s; it must be a number, true, false or a text", what, kindName(n))
	}
	return literal{text: n.Value, quoted: n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0}
}

// uses adds a variable to Variables.
func (r *reader) uses(name string) string {
	if name != "" && !r.Scenario.uses[name] {
		r.Scenario.uses[name] = true
		r.Variables = append(r.Variables, name)
	}
	return name
}

func (r *reader) root(n *yaml.Node) {
	r.fields(n, "the scenario", map[string]visitor{
		"name":            func(_, v *yaml.Node) { r.Name = r.text(v, "name") },
		"description":     func(_, v *yaml.Node) { r.Description = r.text(v, "description") },
		"stop-on-failure": func(_, v *yaml.Node) { r.StopOnFailure = r.boolean(v, "stop-on-failure") },
		"events":          func(_, v *yaml.Node) { r.list(v, "events", r.event) },
		"expect":          func(_, v *yaml.Node) { r.list(v, "expect", r.expectation) },
	})
	if len(r.errs) == 0 && len(r.events)+len(r.expectations) == 0 {
		r.fail(n, "the scenario has neither events nor expectations; give events or expect")
	}
}

// numberTo returns a visitor that stores a finite number.
func (r *reader) numberTo(to *float64, what string) visitor {
	return func(_, v *yaml.Node) {
		if x, ok := r.number(v, what); ok {
			*to = x
		}
	}
}

// positiveTo returns a visitor that stores a number above 0, with zero also 0.
func (r *reader) positiveTo(to *float64, what string, zero bool) visitor {
	return func(_, v *yaml.Node) {
		if x, ok := r.positive(v, what, zero); ok {
			*to = x
		}
	}
}

// keyNodes returns the keys of a mapping.
func keyNodes(n *yaml.Node) map[string]*yaml.Node {
	nodes := map[string]*yaml.Node{}
	for k := 0; k < len(n.Content); k += 2 {
		nodes[n.Content[k].Value] = n.Content[k]
	}
	return nodes
}

// eventReader reads one event.
type eventReader struct {
	*reader
	e     event
	taken map[string]int // index in e.actions, by variable
}

func (r *reader) event(n *yaml.Node) {
	x := &eventReader{reader: r, taken: map[string]int{},
		e: event{line: n.Line, at: math.NaN(), hold: math.NaN(), from: math.Inf(-1)}}
	if !r.fields(n, "an event", map[string]visitor{
		"at": r.numberTo(&x.e.at, "at"),
		"when": func(_, v *yaml.Node) {
			if v.Kind == yaml.ScalarNode {
				r.condition(v, &x.e)
				return
			}
			r.list(v, "when", func(c *yaml.Node) { r.condition(c, &x.e) })
		},
		"from":    r.numberTo(&x.e.from, "from"),
		"for":     r.positiveTo(&x.e.hold, "for", false),
		"set":     x.mapping("set", func(key, v *yaml.Node) { x.take(key, action{verb: set, value: r.literal(v, key.Value)}) }),
		"scale":   x.mapping("scale", x.adjust("scale")),
		"offset":  x.mapping("offset", x.adjust("offset")),
		"freeze":  x.names(freeze, "freeze"),
		"release": x.names(release, "release"),
		"replay": x.mapping("replay", func(key, v *yaml.Node) {
			a := action{verb: replay, column: key.Value}
			if r.replay(v, &a) {
				x.take(key, a)
			}
		}),
		"stop": func(_, v *yaml.Node) { x.e.stop = r.text(v, "stop, which says why,") },
	}) {
		return
	}
	given := keyNodes(n)
	has := func(key string) bool { return given[key] != nil }
	switch {
	case has("at") == has("when"):
		r.fail(n, "an event occurs either at a time or when a condition holds; give one of at and when")
	case has("from") && has("at"):
		r.fail(given["from"], "from is the earliest time of a condition; with at it has no meaning; remove it")
	case !slices.ContainsFunc([]string{"set", "scale", "offset", "freeze", "release", "replay", "stop"}, has):
		r.fail(n, "the event does nothing; give set, scale, offset, freeze, release, replay or stop")
	case has("for") && !slices.ContainsFunc(x.e.actions, func(a action) bool { return a.verb != release }):
		r.fail(given["for"], "for is the duration of an action, and the event has no lasting action; remove it")
	}
	// A variable is released before anything else is done with it.
	slices.SortStableFunc(x.e.actions, func(a, b action) int { return int(a.verb) - int(b.verb) })
	r.events = append(r.events, x.e)
}

// take adds an action on the variable named by key.
func (x *eventReader) take(key *yaml.Node, a action) {
	if k, twice := x.taken[key.Value]; twice {
		x.fail(key, "the event acts on %s twice, here and in line %d; "+
			"an event does one thing with a variable (scale and offset go together)", key.Value, x.e.actions[k].line)
		return
	}
	x.taken[key.Value] = len(x.e.actions)
	a.line, a.variable = key.Line, x.uses(key.Value)
	x.e.actions = append(x.e.actions, a)
}

// adjust returns a visitor for the scale or the offset of a variable. Both make one action.
func (x *eventReader) adjust(what string) visitor {
	return func(key, value *yaml.Node) {
		v, ok := x.number(value, what+" of "+key.Value)
		if !ok {
			return
		}
		k, known := x.taken[key.Value]
		if known = known && x.e.actions[k].verb == adjust; !known {
			k = len(x.e.actions)
			if x.take(key, action{verb: adjust, gain: 1}); k == len(x.e.actions) {
				return // the variable has another action
			}
		}
		if what == "scale" {
			x.e.actions[k].gain = v
		} else {
			x.e.actions[k].offset = v
		}
	}
}

// mapping returns a visitor for a mapping of variables.
func (x *eventReader) mapping(what string, visit visitor) visitor {
	return func(_, v *yaml.Node) {
		if v.Kind != yaml.MappingNode {
			x.fail(v, "%s is %s; it must be a mapping of variables, as {component.variable: …}", what, kindName(v))
			return
		}
		x.each(v, what, visit)
	}
}

// names returns a visitor for a variable or a list of variables.
func (x *eventReader) names(v verb, what string) visitor {
	one := func(n *yaml.Node) {
		if x.text(n, what) != "" {
			x.take(n, action{verb: v})
		}
	}
	return func(_, value *yaml.Node) {
		if value.Kind == yaml.ScalarNode {
			one(value)
			return
		}
		x.list(value, what, one)
	}
}

// replay reads the source of a replay: a file, or a mapping of file, column and relative.
func (r *reader) replay(n *yaml.Node, a *action) bool {
	file := n
	if n.Kind != yaml.ScalarNode {
		file = nil
		if !r.fields(n, "a replay", map[string]visitor{
			"file":     func(_, v *yaml.Node) { file = v },
			"column":   func(_, v *yaml.Node) { a.column = r.text(v, "column") },
			"relative": func(_, v *yaml.Node) { a.relative = r.boolean(v, "relative") },
		}) {
			return false
		}
		if file == nil {
			r.fail(n, "the replay names no file; give file")
			return false
		}
	}
	path := r.text(file, "the file of a replay")
	if path == "" {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(r.Path), path)
	}
	table, known := r.tables[path]
	if !known {
		var err error
		if table, err = record.ReadSignals(r.ctx, path); err != nil {
			r.fail(file, "%v", err)
		}
		r.tables[path] = table
	}
	if table == nil {
		return false
	}
	a.table = table
	if _, ok := a.table.Column(a.column); !ok {
		r.fail(n, "%s has no column %q%s", path, a.column, diag.DidYouMean(a.column, a.table.Names))
		return false
	}
	return true
}

// Files returns the paths of the replayed tables.
func (s *Scenario) Files() []string {
	var out []string
	seen := map[string]bool{}
	for _, e := range s.events {
		for _, a := range e.actions {
			if a.table != nil && !seen[a.table.Path] {
				seen[a.table.Path] = true
				out = append(out, a.table.Path)
			}
		}
	}
	return out
}

// Events returns the number of events.
func (s *Scenario) Events() int { return len(s.events) }

// Expectations returns the number of expectations.
func (s *Scenario) Expectations() int { return len(s.expectations) }

var conditionForm = regexp.MustCompile(`^\s*(.*?\S)\s*(<=|>=|==|!=|<|>)\s*(\S.*?)\s*$`)

func (r *reader) condition(n *yaml.Node, e *event) {
	text := r.text(n, "when")
	if text == "" {
		return
	}
	m := conditionForm.FindStringSubmatch(text)
	if m == nil {
		r.fail(n, `the condition %q is not "component.variable OPERATOR value" with one of < <= > >= == !=; `+
			"for several that must all hold give a list", text)
		return
	}
	if strings.HasSuffix(m[1], "=") {
		r.fail(n, "the operator of the condition %q is written %s=, not =%s", text, m[2], m[2])
		return
	}
	value := literal{text: m[3]}
	if unquoted, err := strconv.Unquote(m[3]); err == nil && len(m[3]) > 1 && m[3][0] == '"' {
		value = literal{text: unquoted, quoted: true}
	}
	e.when = append(e.when, condition{line: n.Line, variable: r.uses(m[1]), operator: m[2], value: value})
}

func (r *reader) expectation(n *yaml.Node) {
	x := expectation{line: n.Line, from: math.Inf(-1), until: math.Inf(1), min: math.Inf(-1), max: math.Inf(1)}
	before := len(r.errs)
	if !r.fields(n, "an expectation", map[string]visitor{
		"variable":   func(_, v *yaml.Node) { x.variable = r.uses(r.text(v, "variable")) },
		"at":         r.numberTo(&x.at, "at"),
		"always":     r.window(&x, "always"),
		"eventually": r.window(&x, "eventually"),
		"min":        r.numberTo(&x.min, "min"),
		"max":        r.numberTo(&x.max, "max"),
		"value": func(_, v *yaml.Node) {
			l := r.literal(v, "value")
			x.value = &l
		},
		"tolerance": r.positiveTo(&x.tolerance, "tolerance", true),
		"relative":  r.positiveTo(&x.relative, "relative", true),
	}) || len(r.errs) > before {
		return
	}
	given := keyNodes(n)
	modes := 0
	for m, key := range []string{atTime: "at", always: "always", eventually: "eventually"} {
		if given[key] != nil {
			modes, x.mode = modes+1, mode(m)
		}
	}
	x.bounded = given["min"] != nil || given["max"] != nil
	x.close = given["tolerance"] != nil || given["relative"] != nil
	switch {
	case x.variable == "":
		r.fail(n, "the expectation names no variable; give variable")
	case modes != 1:
		r.fail(n, "the expectation is judged at a time, always or eventually; give one of at, always and eventually")
	case x.bounded == (x.value != nil):
		r.fail(n, "the expectation has either bounds or a value; give min, max or both, or value and its tolerance")
	case x.bounded && x.close:
		r.fail(n, "tolerance and relative apply to a value, not to bounds")
	case x.min > x.max:
		r.fail(n, "min %g is greater than max %g", x.min, x.max)
	}
	r.expectations = append(r.expectations, x)
}

// window returns a visitor for the time window of an expectation: true or nothing for the
// whole run, or from and until.
func (r *reader) window(x *expectation, what string) visitor {
	return func(_, v *yaml.Node) {
		if v.Kind == yaml.ScalarNode {
			var whole bool
			if v.Tag != "!!null" && !(v.Tag == "!!bool" && v.Decode(&whole) == nil && whole) {
				r.fail(v, "%s is %s; it must be true, which means over the whole run, or a mapping of from, until", what, kindName(v))
			}
			return
		}
		r.fields(v, what, map[string]visitor{"from": r.numberTo(&x.from, "from"), "until": r.numberTo(&x.until, "until")})
		if x.until < x.from {
			r.fail(v, "%s is from %g s until %g s, which is earlier", what, x.from, x.until)
		}
	}
}
