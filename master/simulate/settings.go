package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/record"
)

// Entry is a setting of a run: a flag of macrostep run, an attribute or element of the annotation of macrostep, a key of run in
// a study, and a part of a checkpoint.
type Entry struct {
	Name     string // of the flag
	Category string // in the help
	Doc      string // one line; the value is between backquotes, without them the setting is switched on by its name
	Default  string // as shown in the help
	Bare     string // the value of the flag without one; "" = it needs one
	Repeats  bool   // it may be given several times
	Path     bool   // the value is a file
	Scope    Scope
	// Annotation is the attribute of ms:Settings, or the element in it with its attributes, and Component the attribute of
	// ms:Component; "" = there is none.
	Annotation, Component string
	Choices               func() []string
	// Hint says what took the place of a setting that goes with the next release. Old translates it, if it has an exact
	// equivalent.
	Hint string
	Old  func(text string) (name, newText string)

	// set sets the value. The key names what it is for where each of several things has its own.
	set func(r *Request, text string) (key string, err error)
}

// Scope says to what a setting applies.
type Scope uint8

// The scopes.
const (
	OfSystem Scope = iota // all runs of a study
	Varies                // a run of a study: it may vary from run to run
	OfCall                // a single run: a study has no such setting
)

// Value returns the name of the value in the help; "" = there is none.
func (e *Entry) Value() string {
	_, rest, _ := strings.Cut(e.Doc, "`")
	value, _, _ := strings.Cut(rest, "`")
	return value
}

// Categories of settings.
const (
	times     = "Time"
	coupling  = "Coupling"
	system    = "System"
	processes = "Processes"
	results   = "Results"
	papers    = "For papers and reports"
)

// DefaultOutput is the default table of results.
const DefaultOutput = "results.csv"

// crashPolicies are the values of on-crash. After restart a number may follow, as in restart:3.
var crashPolicies = []string{"stop", "restart"}

// defaultRestarts is the number of restarts of a component if none is given.
const defaultRestarts = 10

// Settings are the settings of a run.
var Settings = []*Entry{
	{Name: "start-time", Category: times, Scope: Varies, Doc: "start at `T` seconds", set: number(ParseTime, func(r *Request) **Setting { return &r.Start })},
	{Name: "stop-time", Category: times, Scope: Varies, Doc: "stop at `T` seconds", set: number(ParseTime, func(r *Request) **Setting { return &r.Stop })},
	{Name: "step-size", Category: times, Scope: Varies, Annotation: "stepSize", Doc: "macro step of `H` seconds",
		set: number(Positive(ParseTime), func(r *Request) **Setting { return &r.Step })},
	{Name: "tolerance", Category: times, Scope: Varies, Annotation: "tolerance", Doc: "relative tolerance `R` for the solvers in the FMUs",
		set: number(Positive(ParseNumber), func(r *Request) **Setting { return &r.Tolerance })},
	{Name: "realtime", Category: times, Scope: OfCall, Bare: "1", Doc: "run in real time, or `FACTOR` times as fast",
		set: func(r *Request, text string) (_ string, err error) {
			r.realtime().Factor, err = Positive(ParseNumber)(text)
			return "", err
		}},
	{Name: "overrun", Category: times, Scope: OfCall, Choices: master.OverrunPolicies, Default: master.CatchUp.String(),
		Doc: "what to do after a missed deadline, `POLICY`: " + strings.Join(master.OverrunPolicies(), ", "),
		set: func(r *Request, text string) (string, error) {
			k, err := oneOf(text, master.OverrunPolicies())
			r.realtime().Overrun = master.OverrunPolicy(k)
			return "", err
		}},
	{Name: "realtime-priority", Category: times, Scope: OfCall, Doc: "real-time priority `N`, 1 to 99 (Linux, SCHED_FIFO; needs the privilege)",
		set: func(r *Request, text string) (_ string, err error) {
			r.realtime().Priority, err = whole(text, 1, 99)
			return "", err
		}},

	{Name: "algorithm", Category: coupling, Scope: Varies, Annotation: "algorithm",
		Doc: "coupling algorithm `PRESET`, listed by macrostep algorithms; default: that of the system, else " + algorithms.DefaultPreset,
		set: func(r *Request, text string) (string, error) {
			r.Algorithm = text
			return "", nil
		}},
	{Name: "param", Category: coupling, Scope: Varies, Repeats: true, Annotation: "Param key value", Doc: "set a parameter of the algorithm: `KEY=VALUE`",
		set: func(r *Request, text string) (string, error) {
			a, err := assignment(text, "KEY=VALUE")
			if r.Params == nil {
				r.Params = map[string]string{}
			}
			r.Params[a.Name] = a.Value
			return a.Name, err
		}},
	{Name: "bond", Category: coupling, Scope: Varies, Repeats: true, Annotation: "Bond",
		Doc: "monitor the energy of a power bond: `NAME=COMPONENT.EFFORT:COMPONENT.FLOW`",
		set: func(r *Request, text string) (string, error) {
			b, err := algorithms.ParseBond(text)
			r.Bonds = append(slices.Clip(r.Bonds), b)
			return b.Name, err
		}},
	{Name: "rate", Category: coupling, Scope: Varies, Repeats: true, Annotation: "Rate component ratio",
		Doc: "let a component take N steps per macro step: `COMPONENT=N`; COMPONENT=1/N: one step per N macro steps",
		set: func(r *Request, text string) (string, error) {
			rate, err := algorithms.ParseRate(text)
			r.Rates = append(slices.Clip(r.Rates), rate)
			return rate.Component, err
		}},
	{Name: "check", Category: coupling, Scope: OfCall, Bare: "5%",
		Doc: "measure the coupling error by about three more runs; warn above `LIMIT` (default: 5%)",
		set: func(r *Request, text string) (string, error) {
			var err error
			r.check().Limit, err = ParseLimit(text)
			return "", err
		}},
	{Name: "accuracy", Category: coupling, Scope: OfCall,
		Doc: "find and run the cheapest setting with a coupling error of at most `LIMIT[:VARIABLE,…]`; flags that you give stay",
		set: func(r *Request, text string) (_ string, err error) {
			r.Accuracy, err = ParseAccuracy(text)
			return "", err
		}},
	{Name: "budget", Category: coupling, Scope: OfCall, Doc: "end --check, or the search of --accuracy, after `T` seconds (default of the search: 60, or ten runs) and keep what is known",
		set: func(r *Request, text string) (_ string, err error) {
			r.check().Budget, err = duration(text)
			return "", err
		}},

	{Name: "set", Category: system, Repeats: true, Doc: "set a parameter or start value: `NAME=VALUE`; NAME is COMPONENT.VARIABLE, a connector, or for a single FMU VARIABLE",
		set: func(r *Request, text string) (string, error) {
			a, err := assignment(text, "NAME=VALUE")
			r.Set = append(r.Set, a)
			return a.Name, err
		}},
	{Name: "input", Category: system, Path: true, Annotation: "input", Doc: "take inputs over time from `FILE` (.csv, .parquet or .mat)",
		set: path(func(r *Request) *string { return &r.Input })},
	{Name: "scenario", Category: system, Path: true, Doc: "play the events of `FILE.yaml` and check its expectations (macrostep help scenario)",
		set: path(func(r *Request) *string { return &r.Scenario })},
	{Name: "quirk", Category: system, Repeats: true, Component: "quirks", Choices: quirkNames,
		Doc: "treat an FMU in a special way: `COMPONENT=QUIRK` (macrostep help quirks)", set: setQuirk},
	{Name: "compile", Category: system, Doc: "compile the C sources of FMUs without a library for this platform ($CC, cc, gcc, clang)",
		set: func(r *Request, text string) (_ string, err error) { r.Compile, err = boolean(text); return "", err }},
	{Name: "strict", Category: system, Doc: "fail where a warning might be missed: names without match, deviations from the standard, growth",
		set: func(r *Request, text string) (_ string, err error) { r.Strict, err = boolean(text); return "", err }},

	{Name: "isolate", Category: processes, Repeats: true, Annotation: "isolation", Component: "isolate", Default: assemble.IsolateAuto.String(),
		Choices: func() []string { return assemble.IsolationNames },
		Doc:     "which FMUs run in processes of their own, `POLICY`: auto, always, never, or a component", set: setIsolation},
	{Name: "step-timeout", Category: processes, Annotation: "stepTimeout", Doc: "end an FMU whose call takes longer than `T` seconds; isolates all FMUs, unless --isolate chooses otherwise",
		set: func(r *Request, text string) (_ string, err error) {
			r.StepTimeout, err = duration(text)
			return "", err
		}},
	{Name: "memory-limit", Category: processes, Annotation: "memoryLimit", Doc: "let each FMU allocate at most `N` MiB (Linux); isolates all FMUs, unless --isolate chooses otherwise",
		set: setMemory},
	{Name: "on-crash", Category: processes, Annotation: "onCrash", Default: crashPolicies[0], Choices: func() []string { return crashPolicies },
		Doc: "what to do after a crash of an isolated FMU, `POLICY`: stop, restart, restart:N (at most N times)",
		set: setRestarts},
	{Name: "on", Category: processes, Repeats: true, Component: "host", Doc: "run matching components on another machine: `GLOB=HOST`; HOST alone: all components",
		set: func(r *Request, text string) (string, error) {
			on, err := parseOn(text)
			if err == nil {
				r.On = append(slices.Clip(r.On), on)
			}
			return on.Pattern, err
		}},
	{Name: "host-timeout", Category: processes, Default: fmt.Sprint(host.DefaultTimeout.Seconds()), Doc: "try for `T` seconds to reach a host, and let it be silent as long",
		set: func(r *Request, text string) (_ string, err error) {
			r.HostTimeout, err = duration(text)
			return "", err
		}},

	{Name: "output", Category: results, Scope: OfCall, Path: true, Default: DefaultOutput,
		Doc: "write results to `FILE`: .parquet, .mat (Dymola, OMEdit), else CSV; - is standard output", set: path(func(r *Request) *string { return &r.Output })},
	{Name: "record", Category: results, Repeats: true, Annotation: "Record match",
		Doc: "record variables that match `GLOB` (* and ?), or none (default: outputs, and inputs that are connected or given)",
		set: func(r *Request, text string) (_ string, err error) {
			r.recorded = append(slices.Clip(r.recorded), text)
			r.Record, err = record.ParseSelection(r.recorded)
			r.MonitorEnergy = r.MonitorEnergy || strings.HasPrefix(text, "bond.")
			return "", err
		}},
	{Name: "output-interval", Category: results, Annotation: "outputInterval", Doc: "at most one row in each `T` seconds, counted from the start",
		set: func(r *Request, text string) (_ string, err error) {
			r.Interval, err = Positive(ParseTime)(text)
			return "", err
		}},
	{Name: "trace", Category: results, Scope: OfCall, Path: true, Doc: "write every attempted macro step to `FILE.csv`",
		set: path(func(r *Request) *string { return &r.Trace })},
	{Name: "report", Category: results, Scope: OfCall, Path: true, Doc: "write a web page of the run, with plots, to `FILE.html`",
		set: path(func(r *Request) *string { return &r.Report })},
	{Name: "checkpoint", Category: results, Scope: OfCall, Doc: "save the state: `EVERY FILE`: every EVERY seconds of simulated time (0: never), and on Ctrl-C",
		set: func(r *Request, text string) (string, error) {
			every, file, ok := strings.Cut(text, " ")
			v, err := NotNegative(ParseTime)(every)
			if err != nil || !ok || file == "" {
				return "", fmt.Errorf("%q is not EVERY FILE with a number of seconds; give, for example, --checkpoint 10 run.checkpoint", text)
			}
			r.Checkpoints.Every, r.Checkpoints.File = v, file
			return "", nil
		}},
	{Name: "resume", Category: results, Scope: OfCall, Path: true, Doc: "continue the run of the checkpoint `FILE`",
		set: path(func(r *Request) *string { return &r.Checkpoints.Resume })},

	{Name: "history", Category: papers, Path: true, Annotation: "history", Doc: "connected outputs before the start, from `FILE`: full order from the first step",
		set: path(func(r *Request) *string { return &r.History })},
	{Name: "workers", Category: processes, Scope: Varies, Annotation: "workers", Default: "0",
		Doc: "step FMUs in `N` threads, with the same results; 0: as many as pay off",
		set: func(r *Request, text string) (_ string, err error) {
			r.Workers, err = whole(text, 0, math.MaxInt32)
			return "", err
		}},

	// They go with the next release.
	{Name: "stateless", Repeats: true, Annotation: "Stateless component", Component: "stateless", Hint: "--quirk COMPONENT=stateless", Doc: "`COMPONENT`",
		Old: func(text string) (string, string) { return "quirk", text + "=" + stateless }},
	{Name: "isolate-component", Repeats: true, Hint: "--isolate COMPONENT", Doc: "`COMPONENT`", Old: func(text string) (string, string) { return "isolate", text }},
	{Name: "restart-limit", Annotation: "restarts", Hint: "--on-crash restart:N", Doc: "`N`", Old: func(text string) (string, string) { return "on-crash", "restart:" + text }},
	{Name: "monitor-energy", Annotation: "monitorEnergy", Hint: "--record 'bond.*' or --bond",
		set: func(r *Request, text string) (_ string, err error) {
			r.MonitorEnergy, err = boolean(text)
			return "", err
		}},
	{Name: "energy-spike", Annotation: "energySpike", Hint: "nothing: it is 50", Doc: "`N`",
		set: func(r *Request, text string) (_ string, err error) {
			r.Spike, err = NotNegative(ParseNumber)(text)
			return "", err
		}},
	{Name: "manifest", Scope: OfCall, Path: true, Hint: "nothing: it is beside --output", Doc: "`FILE`", set: path(func(r *Request) *string { return &r.Manifest })},
	{Name: "analyze", Scope: OfCall, Hint: "--check", Old: func(string) (string, string) { return "check", "5%" }},
}

// stateless is the quirk of a component whose outputs depend only on its inputs at the same time.
const stateless = "stateless"

// defaultSpike is the threshold of warnings about jumps of residual power.
const defaultSpike = 50

func (r *Request) spike() float64 {
	if r.Spike == 0 && !r.given("energy-spike", "") {
		return defaultSpike
	}
	return r.Spike
}

// Find returns the entry of a setting; nil = there is none.
func Find(name string) *Entry {
	if i := slices.IndexFunc(Settings, func(e *Entry) bool { return e.Name == name }); i >= 0 {
		return Settings[i]
	}
	return nil
}

// Given is a setting that the user or a document has given.
type Given = record.Given

// given reports whether a setting is given.
func (r *Request) given(name, key string) bool {
	return slices.ContainsFunc(r.Given, func(g Given) bool { return g.Name == name && g.Key == key })
}

func settingNames() (names []string) {
	for i := range Settings {
		names = append(names, Settings[i].Name)
	}
	return names
}

// Apply sets a setting to the value with a text, in the form of a flag. source names its origin in messages and in the manifest.
func (r *Request) Apply(name, text, source string) error {
	_, err := r.apply(Given{Name: name, Text: text, Source: source})
	return err
}

// apply is Apply. It returns the setting, with its key and its present name.
func (r *Request) apply(g Given) (Given, error) {
	e := Find(g.Name)
	if e == nil {
		return g, fmt.Errorf("%s: there is no setting %q%s", g.Source, g.Name, diag.DidYouMean(g.Name, settingNames()))
	}
	if e.Old != nil {
		g.Name, g.Text = e.Old(g.Text)
		e = Find(g.Name)
	}
	if g.Text == "" && e.Value() != "" {
		return g, fmt.Errorf("%s: the value is empty", g.Source)
	}
	same := func(o Given) bool { return o.Name == g.Name && o.Text == g.Text && o.Source == g.Source }
	if i := slices.IndexFunc(r.Given, same); i >= 0 {
		return r.Given[i], nil
	}
	var err error
	if g.Key, err = e.set(r, g.Text); err != nil {
		return g, fmt.Errorf("%s: %w", g.Source, err)
	}
	for _, v := range []*Setting{r.Start, r.Stop, r.Step, r.Tolerance} {
		if v != nil && v.Source == "" {
			v.Source = g.Source
		}
	}
	i := slices.IndexFunc(r.Given, func(o Given) bool { return o.Name == g.Name && o.Key == g.Key && o.Source == g.Source })
	switch {
	case i < 0 || e.Repeats && g.Key == "": // a pattern
	case g.Key != "":
		return g, fmt.Errorf("%s: %s is given twice", g.Source, g.Key)
	default:
		return g, fmt.Errorf("%s is given twice; give it once", g.Source)
	}
	r.Given = append(r.Given, g)
	return g, nil
}

// realtime returns the settings of real time. Their factor is 0 until it is given.
func (r *Request) realtime() *master.Realtime {
	if r.Realtime == nil {
		r.Realtime = &master.Realtime{}
	}
	return r.Realtime
}

// check returns the settings of a check. Their limit is 0 until it is given.
func (r *Request) check() *Check {
	if r.Check == nil {
		r.Check = &Check{}
	}
	return r.Check
}

// Complete returns what is wrong with the settings together, and isolates all FMUs if there are limits for them.
func (r *Request) Complete() error {
	var errs []error
	if r.Start != nil && r.Stop != nil && r.Stop.Value <= r.Start.Value {
		errs = append(errs, fmt.Errorf("--stop-time %g is not after --start-time %g", r.Stop.Value, r.Start.Value))
	}
	if r.Realtime != nil && r.Realtime.Factor == 0 {
		for _, name := range []string{"overrun", "realtime-priority"} {
			if r.given(name, "") {
				errs = append(errs, fmt.Errorf("--%s needs --realtime", name))
			}
		}
	}
	switch {
	case r.Accuracy != nil && r.given("check", "") && r.Checkpoints.Resume == "":
		errs = append(errs, errors.New("--accuracy checks the result, too; leave out --check"))
	case r.Check != nil && r.Check.Limit == 0 && r.Accuracy == nil:
		errs = append(errs, errors.New("--budget needs --check or --accuracy"))
	}
	if r.Restarts > 0 && r.Isolate == assemble.IsolateNever && len(r.IsolateComponents) == 0 {
		errs = append(errs, fmt.Errorf("--on-crash restart needs FMUs in separate processes; leave out --isolate %s", r.Isolate))
	}
	r.isolateLimited()
	var err error
	if r.Format, err = record.FormatOf(r.Output); err != nil && !r.Record.IsNone() {
		errs = append(errs, fmt.Errorf("--output %w", err))
	}
	return errors.Join(errs...)
}

// isolateLimited isolates all FMUs if there are limits for them, unless some are named.
func (r *Request) isolateLimited() {
	if r.Isolate == assemble.IsolateAuto && len(r.IsolateComponents) == 0 && (r.StepTimeout > 0 || r.MemoryLimit > 0 || r.Restarts > 0) {
		r.Isolate = assemble.IsolateAlways
	}
}

func setQuirk(r *Request, text string) (key string, err error) {
	at := strings.LastIndexByte(text, '=')
	if k := strings.Index(text, "preload:"); k == 0 || k > 0 && text[k-1] == '=' { // its file may have a =
		at = k - 1
	}
	name, quirk := text[:max(at, 0)], text[at+1:]
	if at == 0 {
		return "", fmt.Errorf("%q is not COMPONENT=NAME", text)
	}
	if quirk == stateless {
		r.Stateless = append(slices.Clip(r.Stateless), name)
	} else if _, err = fmuslave.ParseQuirk(quirk); err == nil {
		r.Quirks = append(slices.Clip(r.Quirks), assemble.Quirk{Component: name, Name: quirk})
	}
	return strings.TrimSpace(name + " " + quirk), err
}

// quirkNames are the names of the quirks.
func quirkNames() []string {
	names := []string{stateless}
	for _, q := range fmuslave.Quirks() {
		names = append(names, q.Name)
	}
	return names
}

func setIsolation(r *Request, text string) (key string, err error) {
	if mode, err := assemble.ParseIsolation(text); err == nil {
		if r.given("isolate", "") && r.Isolate != mode {
			return "", fmt.Errorf("both %s and %s are given", r.Isolate, mode)
		}
		r.Isolate = mode
		return "", nil
	}
	r.IsolateComponents = append(slices.Clip(r.IsolateComponents), text)
	return text, nil
}

// LargestMemory is the largest limit of memory in MiB.
const LargestMemory = 1 << 40

func setMemory(r *Request, text string) (_ string, err error) {
	mib, err := Positive(ParseNumber)(text)
	if mib > LargestMemory {
		return "", fmt.Errorf("%g MiB is too large; leave it out for no limit", mib)
	}
	r.MemoryLimit = uint64(mib * (1 << 20))
	return "", err
}

func setRestarts(r *Request, text string) (_ string, err error) {
	policy, most, limited := strings.Cut(text, ":")
	k, err := oneOf(policy, crashPolicies)
	switch {
	case err != nil || k == 0 && !limited:
	case k == 0:
		err = fmt.Errorf("%q is not one of stop, restart, restart:N", text)
	case limited:
		r.Restarts, err = whole(most, 0, math.MaxInt32)
	case r.Restarts == 0:
		r.Restarts = defaultRestarts
	}
	return "", err
}

// ParseNumber reads a finite number.
func ParseNumber(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a finite number%s", text, cmp.Or(diag.DecimalComma(text), "; give one like 0.001 or 1e-3"))
	}
	return v, nil
}

// ParseTime reads a time in s, as a plain number or with a unit, as in 30s or 5m.
func ParseTime(text string) (float64, error) {
	if d, err := time.ParseDuration(strings.TrimSpace(text)); err == nil {
		return d.Seconds(), nil
	}
	v, err := ParseNumber(text)
	if err != nil && diag.DecimalComma(text) == "" {
		err = fmt.Errorf("%q is not a finite number; give one in s, or with a unit: 0.5, 1e-3, 10ms, 30s, 5m, 1h", text)
	}
	return v, err
}

// Positive returns a reader of numbers that refuses those that are not above 0.
func Positive(read func(text string) (float64, error)) func(text string) (float64, error) {
	return func(text string) (float64, error) {
		v, err := read(text)
		if err == nil && v <= 0 {
			err = fmt.Errorf("%s is not greater than 0", text)
		}
		return v, err
	}
}

// NotNegative returns a reader of numbers that refuses those below 0.
func NotNegative(read func(text string) (float64, error)) func(text string) (float64, error) {
	return func(text string) (float64, error) {
		v, err := read(text)
		if err == nil && v < 0 {
			err = fmt.Errorf("%s is less than 0", text)
		}
		return v, err
	}
}

func duration(text string) (time.Duration, error) {
	v, err := Positive(ParseTime)(text)
	if err != nil {
		return 0, err
	}
	return assemble.Timeout(v), nil
}

func whole(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number", text)
	case n < least && most == math.MaxInt32:
		return 0, fmt.Errorf("%d is less than %d", n, least)
	case n < least || n > most:
		return 0, fmt.Errorf("%d is not between %d and %d", n, least, most)
	}
	return n, nil
}

func boolean(text string) (bool, error) {
	v, err := strconv.ParseBool(text)
	if err != nil {
		err = fmt.Errorf("%q is neither true nor false", text)
	}
	return v, err
}

func oneOf(text string, values []string) (int, error) {
	i := slices.Index(values, text)
	if i < 0 {
		return 0, fmt.Errorf("%q is not one of %s%s", text, strings.Join(values, ", "), diag.DidYouMean(text, values))
	}
	return i, nil
}

// ParseLimit reads the limit of a check, such as 0.01 or 1%.
func ParseLimit(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := Positive(ParseNumber)(number)
	switch {
	case err != nil:
	case percent:
		v /= 100
	case v >= 1:
		err = fmt.Errorf("%s is %g times the motion of a variable; for %s %%, write %s%%", text, v, text, text)
	}
	return v, err
}

// assignment reads NAME=VALUE.
func assignment(text, form string) (Assignment, error) {
	name, value, ok := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return Assignment{}, fmt.Errorf("%q is not %s", text, form)
	}
	return Assignment{Name: name, Value: value}, nil
}

// number sets a number that keeps its source.
func number(read func(string) (float64, error), at func(*Request) **Setting) func(*Request, string) (string, error) {
	return func(r *Request, text string) (string, error) {
		v, err := read(text)
		if err == nil {
			*at(r) = &Setting{Value: v}
		}
		return "", err
	}
}

func path(at func(*Request) *string) func(*Request, string) (string, error) {
	return func(r *Request, text string) (string, error) {
		*at(r) = text
		return "", nil
	}
}
