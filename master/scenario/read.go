package scenario

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
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

// Scenario is what a file describes. It does not change, and may be played in any
// number of runs.
type Scenario struct {
	Path          string
	Hash          string // "sha256:…" of the file
	Name          string // "" = none
	Description   string
	StopOnFailure bool // the run ends at the first expectation that fails

	// Variables names those that the scenario works with, in their order in the file;
	// they have to be read in a run.
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
	at      float64     // s; NaN: by conditions
	when    []condition // all of which must hold
	from    float64     // s: earliest time of the conditions
	actions []action
	hold    float64 // s, how long what is done stays; NaN = until something else is done
	stop    string  // why the run ends; "" = it goes on
}

// verb is what an action does.
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

// literal is a value as it stands in the file; its type is that of the variable.
type literal struct {
	text   string
	quoted bool // it is a string, whatever it looks like
}

// mode is when an expectation is judged.
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
	from, until float64 // s; infinite where nothing is given
	min, max    float64 // infinite where nothing is given
	value       *literal
	tolerance   float64 // absolute
	relative    float64 // of the value
	bounded     bool    // min or max
	close       bool    // tolerance or relative
}

// longest file that is read, in bytes.
const longest = 16 << 20

// Read reads a scenario, and the tables that it replays. The error names the lines at
// fault, each with its remedy. When ctx ends, its cause is the error.
func Read(ctx context.Context, path string) (*Scenario, error) {
	var s *Scenario
	var err error
	done := make(chan struct{})
	go func() { // the YAML library takes its time
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
	f, err := os.Open(path)
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
		return nil, fmt.Errorf("%s: the file is larger than %d MiB, which is no scenario", path, longest>>20)
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
		r.fail(&more, "a second document begins; a scenario is one")
	} else if !errors.Is(err, io.EOF) {
		return nil, r.syntax(err, data)
	}
	r.root(document.Content[0])
	return &r.Scenario, errors.Join(append(r.errs, context.Cause(ctx))...)
}

// reader reads a scenario and collects what is wrong.
type reader struct {
	Scenario
	ctx    context.Context
	errs   []error
	tables map[string]*record.Signals // by path; nil = it cannot be read, which was reported
}

// mostErrors is how many errors of one file are reported.
const mostErrors = 20

func (r *reader) failLine(line int, format string, args ...any) {
	if len(r.errs) < mostErrors {
		r.errs = append(r.errs, fmt.Errorf("%s:%d: %s", r.Path, line, fmt.Sprintf(format, args...)))
	}
}

// full reports whether no more errors are taken, so that what follows need not be read.
func (r *reader) full() bool { return len(r.errs) == mostErrors || r.ctx.Err() != nil }

func (r *reader) fail(n *yaml.Node, format string, args ...any) { r.failLine(n.Line, format, args...) }

var lineOfError = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax words an error of the YAML library.
func (r *reader) syntax(err error, data []byte) error {
	text := err.Error()
	line := "1" // the library names all but the first
	if m := lineOfError.FindStringSubmatch(text); m != nil {
		if text = text[len(m[0]):]; m[1] != "" {
			line = m[1]
		}
	}
	for at := 0; at < len(data); { // what is no text, it reads ahead of all lines
		c, n := utf8.DecodeRune(data[at:])
		if c == utf8.RuneError && n == 1 || c < ' ' && !strings.ContainsRune("\t\n\r", c) {
			return fmt.Errorf("%s:%d: there is the byte %#02x, and a scenario is text in UTF-8; name a scenario, or save it as UTF-8", r.Path, 1+bytes.Count(data[:at], []byte("\n")), data[at])
		}
		at += n
	}
	remedy := "correct the YAML"
	if strings.Contains(text, "cannot start any token") {
		remedy = "YAML is indented with blanks, not with tabs, and texts that begin with a special character stand in quotes"
	}
	return fmt.Errorf("%s:%s: %s; %s", r.Path, line, text, remedy)
}

// fields hands the values of a mapping to the functions of their keys. An unknown
// key is an error.
func (r *reader) fields(n *yaml.Node, what string, known map[string]func(key, value *yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s is %s; it must be a mapping of %s", what, kindName(n), strings.Join(keys(known), ", "))
		return false
	}
	r.each(n, what, func(key, value *yaml.Node) {
		f, ok := known[key.Value]
		if !ok {
			r.fail(key, "%s has no key %q%s; its keys are %s", what, key.Value, diag.DidYouMean(key.Value, keys(known)), strings.Join(keys(known), ", "))
			return
		}
		f(key, value)
	})
	return true
}

// each visits the entries of a mapping, whose keys must be scalars and differ.
func (r *reader) each(n *yaml.Node, what string, visit func(key, value *yaml.Node)) {
	seen := map[string]int{}
	for k := 0; k+1 < len(n.Content) && !r.full(); k += 2 {
		key, value := n.Content[k], n.Content[k+1]
		switch first, twice := seen[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			r.fail(key, "a key of %s is %s; it must be a name", what, kindName(key))
			continue
		case key.Tag == "!!merge":
			r.fail(key, "merge keys (<<) are not taken; write the entries out")
			continue
		case twice:
			r.fail(key, "%s has %q twice, here and in line %d; remove one", what, key.Value, first)
			continue
		}
		seen[key.Value] = key.Line
		if value.Kind == yaml.AliasNode || value.Anchor != "" {
			r.fail(value, "anchors and aliases are not taken; write the value out")
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
			r.fail(e, "anchors and aliases are not taken; write the value out")
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

// positive reads a number of at least 0, or above it.
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

// uses notes a variable.
func (r *reader) uses(name string) string {
	if name != "" && !r.Scenario.uses[name] {
		r.Scenario.uses[name] = true
		r.Variables = append(r.Variables, name)
	}
	return name
}

func (r *reader) root(n *yaml.Node) {
	r.fields(n, "the scenario", map[string]func(_, value *yaml.Node){
		"name":            func(_, v *yaml.Node) { r.Name = r.text(v, "name") },
		"description":     func(_, v *yaml.Node) { r.Description = r.text(v, "description") },
		"stop-on-failure": func(_, v *yaml.Node) { r.StopOnFailure = r.boolean(v, "stop-on-failure") },
		"events":          func(_, v *yaml.Node) { r.list(v, "events", r.event) },
		"expect":          func(_, v *yaml.Node) { r.list(v, "expect", r.expectation) },
	})
	if len(r.errs) == 0 && len(r.events)+len(r.expectations) == 0 {
		r.fail(n, "the scenario neither does nor expects anything; give events or expect")
	}
}

func (r *reader) event(n *yaml.Node) {
	e := event{line: n.Line, at: math.NaN(), hold: math.NaN(), from: math.Inf(-1)}
	var from, hold *yaml.Node
	taken := map[string]int{} // the actions of variables
	take := func(key *yaml.Node, a action) {
		if k, twice := taken[key.Value]; twice {
			r.fail(key, "the event acts on %s twice, here and in line %d; an event does one thing with a variable (scale and offset go together)", key.Value, e.actions[k].line)
			return
		}
		taken[key.Value] = len(e.actions)
		a.line, a.variable = key.Line, r.uses(key.Value)
		e.actions = append(e.actions, a)
	}
	mapping := func(what string, visit func(key, value *yaml.Node)) func(_, value *yaml.Node) {
		return func(_, v *yaml.Node) {
			if v.Kind != yaml.MappingNode {
				r.fail(v, "%s is %s; it must be a mapping of variables, as {component.variable: …}", what, kindName(v))
				return
			}
			r.each(v, what, visit)
		}
	}
	names := func(v verb, what string) func(_, value *yaml.Node) {
		return func(_, value *yaml.Node) {
			one := func(n *yaml.Node) {
				if r.text(n, what) != "" {
					take(n, action{verb: v})
				}
			}
			if value.Kind == yaml.ScalarNode {
				one(value)
				return
			}
			r.list(value, what, one)
		}
	}
	scaled := func(gain bool) func(key, value *yaml.Node) {
		what := "offset"
		if gain {
			what = "scale"
		}
		return func(key, value *yaml.Node) {
			v, ok := r.number(value, what+" of "+key.Value)
			if !ok {
				return
			}
			if k, twice := taken[key.Value]; twice {
				// The other half, if it is not the same again.
				if a := &e.actions[k]; a.verb == adjust && (gain && a.gain == 1 || !gain && a.offset == 0) {
					if gain {
						a.gain = v
					} else {
						a.offset = v
					}
					return
				}
			}
			a := action{verb: adjust, gain: 1, offset: v}
			if gain {
				a.gain, a.offset = v, 0
			}
			take(key, a)
		}
	}
	ok := r.fields(n, "an event", map[string]func(key, value *yaml.Node){
		"at": func(_, v *yaml.Node) {
			if t, ok := r.number(v, "at"); ok {
				e.at = t
			}
		},
		"when": func(_, v *yaml.Node) {
			if v.Kind == yaml.ScalarNode {
				r.condition(v, &e)
				return
			}
			r.list(v, "when", func(c *yaml.Node) { r.condition(c, &e) })
		},
		"from": func(key, v *yaml.Node) {
			if t, ok := r.number(v, "from"); ok {
				e.from, from = t, key
			}
		},
		"for": func(key, v *yaml.Node) {
			if t, ok := r.positive(v, "for", false); ok {
				e.hold, hold = t, key
			}
		},
		"set":     mapping("set", func(key, v *yaml.Node) { take(key, action{verb: set, value: r.literal(v, key.Value)}) }),
		"scale":   mapping("scale", scaled(true)),
		"offset":  mapping("offset", scaled(false)),
		"freeze":  names(freeze, "freeze"),
		"release": names(release, "release"),
		"replay": mapping("replay", func(key, v *yaml.Node) {
			a := action{verb: replay, column: key.Value}
			if r.replay(v, &a) {
				take(key, a)
			}
		}),
		"stop": func(_, v *yaml.Node) { e.stop = r.text(v, "stop, which says why,") },
	})
	if !ok {
		return
	}
	given := map[string]bool{}
	for k := 0; k < len(n.Content); k += 2 {
		given[n.Content[k].Value] = true
	}
	switch {
	case given["at"] == given["when"]:
		r.fail(n, "an event comes either at a time or when a condition holds; give one of at and when")
	case from != nil && given["at"]:
		r.fail(from, "from is the earliest time of a condition; with at it means nothing, remove it")
	case !given["stop"] && !slices.ContainsFunc([]string{"set", "scale", "offset", "freeze", "release", "replay"}, func(k string) bool { return given[k] }):
		r.fail(n, "the event does nothing; give set, scale, offset, freeze, release, replay or stop")
	case hold != nil && !slices.ContainsFunc(e.actions, func(a action) bool { return a.verb != release }):
		r.fail(hold, "for tells how long something stays, and the event does nothing that stays; remove it")
	}
	// A variable is released before it is anything else.
	slices.SortStableFunc(e.actions, func(a, b action) int { return int(a.verb) - int(b.verb) })
	r.events = append(r.events, e)
}

// replay reads what a variable replays: a file, or file, column and relative.
func (r *reader) replay(n *yaml.Node, a *action) bool {
	file := n
	if n.Kind != yaml.ScalarNode {
		file = nil
		if !r.fields(n, "a replay", map[string]func(_, value *yaml.Node){
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

// Files returns the tables that are replayed.
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
		r.fail(n, `the condition %q is not "component.variable OPERATOR value" with one of < <= > >= == !=; for several that must all hold give a list`, text)
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
	modes := 0
	window := func(m mode, what string) func(_, v *yaml.Node) {
		return func(_, v *yaml.Node) {
			modes++
			x.mode = m
			if v.Kind == yaml.ScalarNode && v.Tag == "!!null" {
				return
			}
			var whole bool
			if v.Kind == yaml.ScalarNode && v.Tag == "!!bool" && v.Decode(&whole) == nil && whole {
				return
			}
			if v.Kind == yaml.ScalarNode {
				r.fail(v, "%s is %s; it must be true, which means over the whole run, or a mapping of from, until", what, kindName(v))
				return
			}
			r.fields(v, what, map[string]func(_, value *yaml.Node){
				"from": func(_, v *yaml.Node) {
					if t, ok := r.number(v, "from"); ok {
						x.from = t
					}
				},
				"until": func(_, v *yaml.Node) {
					if t, ok := r.number(v, "until"); ok {
						x.until = t
					}
				},
			})
			if x.until < x.from {
				r.fail(v, "%s is from %g s until %g s, which is before it", what, x.from, x.until)
			}
		}
	}
	bound := func(to *float64, what string) func(_, v *yaml.Node) {
		return func(_, v *yaml.Node) {
			if f, ok := r.number(v, what); ok {
				*to, x.bounded = f, true
			}
		}
	}
	near := func(to *float64, what string) func(_, v *yaml.Node) {
		return func(_, v *yaml.Node) {
			if f, ok := r.positive(v, what, true); ok {
				*to, x.close = f, true
			}
		}
	}
	before := len(r.errs)
	if !r.fields(n, "an expectation", map[string]func(_, value *yaml.Node){
		"variable": func(_, v *yaml.Node) { x.variable = r.uses(r.text(v, "variable")) },
		"at": func(_, v *yaml.Node) {
			modes++
			if t, ok := r.number(v, "at"); ok {
				x.mode, x.at = atTime, t
			}
		},
		"always":     window(always, "always"),
		"eventually": window(eventually, "eventually"),
		"min":        bound(&x.min, "min"),
		"max":        bound(&x.max, "max"),
		"value": func(_, v *yaml.Node) {
			l := r.literal(v, "value")
			x.value = &l
		},
		"tolerance": near(&x.tolerance, "tolerance"),
		"relative":  near(&x.relative, "relative"),
	}) || len(r.errs) > before {
		return
	}
	switch {
	case x.variable == "":
		r.fail(n, "the expectation names no variable; give variable")
	case modes != 1:
		r.fail(n, "the expectation is judged at a time, always or eventually; give one of at, always and eventually")
	case x.bounded == (x.value != nil):
		r.fail(n, "the expectation has either bounds or a value; give min, max or both, or value and its tolerance")
	case x.bounded && x.close:
		r.fail(n, "tolerance and relative belong to a value; bounds have none")
	case x.min > x.max:
		r.fail(n, "min %g is greater than max %g", x.min, x.max)
	}
	r.expectations = append(r.expectations, x)
}
