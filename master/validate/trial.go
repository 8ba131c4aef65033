package validate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuprobe"
	"github.com/macrostep/macrostep/master/fmuslave"
)

// Rules on the behaviour of an FMU in a trial.
var (
	ruleInstantiate = &diag.Rule{
		ID: "FA9", Level: diag.Error, Ref: "fmi2 30",
		Doc: "fmi2Instantiate returns an instance.",
		Remedy: "compare the guid of modelDescription.xml with that of the library, and see that licence and files of " +
			"the FMU are there",
	}
	ruleLogger = &diag.Rule{
		ID: "FA10", Level: diag.Warning, Ref: "fmi2 31, 33",
		Doc: "The FMU calls the logger with the componentEnvironment that it was given. Otherwise its messages are " +
			"found by the name of the instance.",
		Remedy: "usually harmless; tell the exporter",
	}
	ruleTrial = &diag.Rule{
		ID: "DY1", Level: diag.Error, Ref: "fmi2 39-41, 48-55, 62",
		Doc: "With its own start values an FMU can be initialised, stepped, terminated and freed, without an error " +
			"and without ending its process.",
		Remedy: "see whether the FMU needs values for its inputs or parameters, or other steps (--step-size); else tell " +
			"the exporter",
	}
	ruleSays = &diag.Rule{
		ID: "DY1L", Level: diag.Info, Ref: "fmi2 34, 51",
		Doc:    "Warnings and errors that the FMU logs in the trial, and its changes to the process.",
		Remedy: "read the messages of the FMU",
	}
	ruleStarts = &diag.Rule{
		ID: "DY2", Level: diag.Warning, Ref: "fmi2 42",
		Doc: "Without values set from outside, an FMU has the start values of its modelDescription.xml. " +
			"A run sets only values that are given: where the two differ, the value of the FMU counts.",
		Remedy: "set the values that are meant, or have all documented ones set with the quirk setStarts; tell the " +
			"exporter",
	}
	ruleFinite = &diag.Rule{
		ID: "DY3", Level: diag.Error, Ref: "fmi2 12",
		Doc:    "Outputs are numbers, not NaN.",
		Remedy: "see whether the FMU needs values for its inputs or parameters; else tell the exporter",
	}
	ruleInfinite = &diag.Rule{
		ID: "DY3I", Level: diag.Info, Ref: "fmi2 12, 72",
		Doc: "Outputs are finite. An infinite one may be meant, like the time to a collision that does not happen: a run " +
			"records it, but fails if it feeds an input.",
		Remedy: "connect it to nothing; else limit it in the model",
	}
	ruleGoesBack = &diag.Rule{
		ID: "DY4", Level: diag.Error, Ref: "fmi2 59",
		Doc:    "An FMU with canGetAndSetFMUstate repeats its steps exactly after its state is restored.",
		Remedy: "run without what relies on rollback (quirk noRollback), and tell the exporter",
	}
	rulePromise = &diag.Rule{
		ID: "DY4P", Level: diag.Warning, Ref: "fmi2 50",
		Doc:    "An FMU computes the same for both values of noSetFMUStatePriorToCurrentPoint.",
		Remedy: "a run refuses algorithms that restore its state; tell the exporter",
	}
	ruleReplayNoise = &diag.Rule{
		ID: "DY4N", Level: diag.Info, Ref: "fmi2 59",
		Doc: "How exactly an FMU repeats a step after rollback. Quantities computed from differences of outputs " +
			"must be larger than this noise.",
		Remedy: "no action needed: a run measures it and takes it into account",
	}
	ruleRepeats = &diag.Rule{
		ID: "DY5", Level: diag.Warning, Ref: "fmi2 38, 61",
		Doc:    "A second instance beside the first gives the same results from the start.",
		Remedy: "results of this FMU are not reproducible; tell the exporter",
	}
	ruleResets = &diag.Rule{
		ID: "DY5R", Level: diag.Warning, Ref: "fmi2 61",
		Doc: "After fmi2Reset an instance gives the same results from the start. A run creates a new instance instead of " +
			"resetting one.",
		Remedy: "harmless here; other tools may get wrong results from it, so tell the exporter",
	}
	ruleUndeclared = &diag.Rule{
		ID: "DY6", Level: diag.Warning, Ref: "fmi2 27, 29",
		Doc:    "Outputs depend directly only on those inputs that ModelStructure declares.",
		Remedy: "a run with rollback finds this too and takes the dependency into account; tell the exporter",
	}
	ruleInBounds = &diag.Rule{
		ID: "DY7", Level: diag.Warning, Ref: "fmi2 17, 45",
		Doc:    "Values lie between min and max, and those of enumerations are items.",
		Remedy: "check model and bounds; other tools may refuse the value",
	}
	ruleDuration = &diag.Rule{
		ID: "DY8", Level: diag.Info, Ref: "fmi2 75",
		Doc:    "How long a step takes.",
		Remedy: "no action needed",
	}
)

// trialRules are the rules that a trial checks, in addition to those of fmi on the library.
var trialRules = []*diag.Rule{
	ruleInstantiate, ruleLogger, ruleTrial, ruleSays, ruleStarts, ruleFinite, ruleInfinite, ruleGoesBack, rulePromise, ruleReplayNoise,
	ruleRepeats, ruleResets, ruleUndeclared, ruleInBounds, ruleDuration,
}

const (
	trialSteps = 20
	trialStep  = 1e-3 // s, if the FMU suggests neither a step nor a span
	// mostWatched is the maximum number of checked variables, without outputs.
	mostWatched = 5000
	// sameRun is the largest relative difference between two equal runs.
	sameRun = 1e-9
	// mostPerturbed is the maximum number of inputs perturbed in the initialisation.
	mostPerturbed = 100
	listed        = 5 // names in one finding
)

// try runs an FMU with its own start values for some steps and checks its behaviour. The FMU is
// loaded and run in processes of o.Launcher, so that a crash does not affect the program. Measured
// properties of its rollback and dependencies are cached for later runs (see fmuslave.Config.Cache).
func try(ctx context.Context, f *fmi.FMU, o Options) *diag.List {
	t := &tryout{ctx: ctx, f: f, o: o, l: &diag.List{}, file: f.Path, said: map[string]int{}}
	t.run()
	t.tellSaid()
	return t.l
}

// tryout is a trial.
type tryout struct {
	ctx  context.Context
	f    *fmi.FMU
	o    Options
	l    *diag.List
	file string
	H    float64
	e    master.Experiment
	// See master.Replay.Unpromised.
	unpromised string

	mu    sync.Mutex // for all below: messages may come from threads of the FMU
	said  map[string]int
	order []string
	wrong bool // componentEnvironment
	quiet bool
}

func (t *tryout) add(r *diag.Rule, path, format string, args ...any) {
	t.l.Add(r, t.file, path, 0, format, args...)
}

// log collects the messages of the FMU.
func (t *tryout) log(m fmi.LogMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case m.Category == fmi.OwnCategory && strings.HasSuffix(m.Text, fmi.WrongEnvironment):
		t.wrong = true
	case t.quiet, m.Status == fmi.StatusOK, m.Status == fmi.StatusPending:
	default:
		text := strings.TrimSpace(m.Text)
		if t.said[text]++; t.said[text] == 1 && len(t.order) < listed {
			t.order = append(t.order, text)
		}
	}
}

func (t *tryout) tellSaid() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wrong {
		t.add(ruleLogger, "", "the FMU calls the logger with a wrong componentEnvironment")
	}
	if bare := t.o.copy.Bare(); bare != "" {
		t.add(ruleSays, "", "it ran in an empty folder, because no copy of the working folder can be made: %s", bare)
	}
	for _, text := range t.order {
		times := ""
		if n := t.said[text]; n > 1 {
			times = fmt.Sprintf(" (%d times)", n)
		}
		t.add(ruleSays, "", "%s%s", text, times)
	}
}

func (t *tryout) run() {
	if !t.load() {
		return
	}
	t.f.CheckSymbols(t.l)
	t.plan()
	first, readings, ok := t.life("trial")
	if first == nil {
		return
	}
	defer func() {
		if err := first.Close(); err != nil {
			t.failed("freeing the instance", err)
		}
	}()
	if !ok {
		return
	}
	t.bounds(first, readings)
	t.duration(first, readings)
	t.silence(true) // the following tests provoke errors
	t.starts()
	t.again(first, readings)
	t.goBack()
	t.dependencies()
}

func (t *tryout) silence(quiet bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet = quiet
}

// load loads the library and reports its findings.
func (t *tryout) load() bool {
	load := func() (*diag.List, error) { return t.f.Load(t.ctx, "") }
	if t.o.Launcher != nil {
		load = func() (*diag.List, error) { return t.f.LoadIn(t.ctx, t.o.Launcher) }
	}
	list, err := load()
	t.l.Append(list)
	var told *diag.ListError
	if err != nil && !errors.As(err, &told) {
		t.add(ruleTrial, "", "loading the library: %v", err)
	}
	return err == nil
}

// plan sets the times of the trial.
func (t *tryout) plan() {
	t.H = t.o.Step
	start, span := 0., 0.
	if x := t.f.Description.DefaultExperiment; x != nil {
		if x.StartTime != nil {
			start = *x.StartTime
		}
		if x.StopTime != nil {
			span = *x.StopTime - start
		}
		if t.H <= 0 && x.StepSize != nil {
			t.H = *x.StepSize
		}
	}
	if t.H <= 0 {
		t.H = trialStep
		if span > 0 {
			t.H = span / 1000
		}
	}
	t.e = master.Experiment{Start: start, Stop: start + max(span, float64(4*trialSteps)*t.H)}
}

// config returns the configuration of a slave with all inputs and outputs and, if all is set, with
// local variables.
func (t *tryout) config(name string, all bool) fmuslave.Config {
	c := fmuslave.Config{Name: strings.TrimSuffix(filepath.Base(t.file), ".fmu") + " (" + name + ")", FMU: t.f, Cache: &fmuprobe.Cache{Dir: t.o.Cache},
		Options: fmi.InstanceOptions{Launcher: t.o.Launcher, StepTimeout: t.o.StepTimeout, Log: t.log}, Aside: true}
	if t.o.Launcher != nil {
		c.Sandbox, c.Sandboxed = &fmuslave.Sandbox{Launcher: t.o.Launcher, Dir: t.o.copy.Dir}, true
	}
	d := t.f.Description
	var driven []*description.ScalarVariable
	for i := range d.Variables {
		v := &d.Variables[i]
		switch {
		case v.Causality == description.Input &&
			!slices.ContainsFunc(driven, func(w *description.ScalarVariable) bool { return fmuslave.Same(v, w) }):
			driven = append(driven, v)
			c.Inputs = append(c.Inputs, v.Name)
		case v.Causality == description.Output:
			c.Outputs = append(c.Outputs, v.Name)
		case v.Causality == description.Local && v.Clock == nil && all && len(c.Watch) < mostWatched:
			c.Watch = append(c.Watch, v.Name)
		}
	}
	return c
}

// once reports whether only one instance is possible.
func (t *tryout) once() bool {
	return t.o.Launcher == nil && t.f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess
}

// life instantiates, initialises and steps an instance. first is nil if there is no instance; ok
// reports success.
func (t *tryout) life(name string) (first *fmuslave.Slave, readings []fmuprobe.Reading, ok bool) {
	s, err := fmuslave.New(t.config(name, true))
	if err != nil {
		t.add(ruleTrial, "", "%v", err)
		return nil, nil, false
	}
	if err := s.EnterInit(t.ctx, t.e); err != nil {
		if s.Instance() == nil {
			t.notInstantiated(err)
			return nil, nil, false
		}
		t.failed("before the initialisation", err)
		return s, nil, false
	}
	readings, ok = t.steps(s, t.failed)
	if ok {
		if err := s.Terminate(); err != nil {
			t.failed("terminating", err)
			ok = false
		}
	}
	return s, readings, ok
}

// notInstantiated reports why there is no instance.
func (t *tryout) notInstantiated(err error) {
	var process *fmi.ProcessError
	if errors.As(err, &process) {
		t.failed("instantiating", err)
		return
	}
	t.add(ruleInstantiate, "", "%v", err)
}

func (t *tryout) failed(when string, err error) {
	if t.ctx.Err() != nil {
		return
	}
	t.add(ruleTrial, "", "%s: %v", when, err)
}

// steps ends the initialisation and makes the steps; it calls fail with errors.
func (t *tryout) steps(s *fmuslave.Slave, fail func(string, error)) (readings []fmuprobe.Reading, ok bool) {
	if err := s.EvalInit(); err != nil {
		fail("in the initialisation", err)
		return nil, false
	}
	if err := s.ExitInit(); err != nil {
		fail("leaving the initialisation", err)
		return nil, false
	}
	r := fmuprobe.Comparison{Of: s}
	r.Scale = make([]float64, len(r.Reals()))
	for k := range trialSteps + 1 {
		if k > 0 {
			at := t.e.Start + float64(float64(k-1)*t.H)
			_, err := s.Step(t.ctx, at, t.H)
			if errors.Is(err, master.ErrTerminated) {
				break
			}
			if err != nil {
				fail(fmt.Sprintf("in the step from t = %.12g s by %.12g s", at, t.H), err)
				return readings, false
			}
		}
		g, err := r.Read()
		if err != nil {
			fail("reading outputs", err)
			return readings, false
		}
		readings = append(readings, g)
	}
	return readings, true
}

// mention adds a finding that lists the first items.
func (t *tryout) mention(r *diag.Rule, what string, items []string) {
	if len(items) == 0 {
		return
	}
	more := ""
	if n := len(items); n > listed {
		items, more = items[:listed], fmt.Sprintf("; and %d more", n-listed)
	}
	t.add(r, "", "%s: %s%s", what, strings.Join(items, "; "), more)
}

// bounds checks that the values are finite and within bounds.
func (t *tryout) bounds(s *fmuslave.Slave, readings []fmuprobe.Reading) {
	var undefined, infinite, outside []string
	type item struct {
		list *[]string
		name string
	}
	told := map[item]bool{}
	note := func(list *[]string, name, format string, args ...any) {
		if !told[item{list, name}] {
			told[item{list, name}] = true
			*list = append(*list, name+" "+fmt.Sprintf(format, args...))
		}
	}
	info := s.Info()
	variables := func(kind master.Kind, lists ...[]master.Port) (out []*description.ScalarVariable) {
		for _, p := range slices.Concat(lists...) {
			if v, ok := t.f.Description.Variable(p.Name); ok && p.Kind == kind {
				out = append(out, v)
			}
		}
		return out
	}
	reals := variables(master.Real, info.Out, info.Watch)
	integers := variables(master.Integer, info.DiscreteOut, info.Watch)
	for k, g := range readings {
		at := t.e.Start + float64(k)*t.H
		for i, x := range g.Real {
			v := reals[i]
			switch {
			case math.IsNaN(x) || math.IsInf(x, 0):
				list := &infinite
				if math.IsNaN(x) {
					list = &undefined
				}
				if v.Causality == description.Output {
					note(list, v.Name, "is %g at t = %.6g s", x, at)
				}
			case below(&x, v.Real.Min), below(v.Real.Max, &x):
				slack := 1e-9 * math.Abs(x)
				if lo, hi := x+slack, x-slack; below(&lo, v.Real.Min) || below(v.Real.Max, &hi) {
					note(&outside, v.Name, "is %g at t = %.6g s, outside its bounds", x, at)
				}
			}
		}
		values := slices.Concat(g.Discrete[0].Integer, g.Discrete[1].Integer)
		for i, value := range values {
			v, n := integers[i], int64(value)
			items := t.f.Description.Enumeration(v.DeclaredType)
			switch {
			case v.Type == description.Enumeration && len(items) > 0 &&
				!slices.ContainsFunc(items, func(e description.EnumerationItem) bool { return e.Value == n }):
				note(&outside, v.Name, "is %d at t = %.6g s, which is not an item", n, at)
			case below(&n, v.Integer.Min), below(v.Integer.Max, &n):
				note(&outside, v.Name, "is %d at t = %.6g s, outside its bounds", n, at)
			}
		}
	}
	t.mention(ruleFinite, "no number", undefined)
	t.mention(ruleInfinite, "infinite", infinite)
	t.mention(ruleInBounds, "out of bounds", outside)
}

// below reports whether both are given and the first is less.
func below[T int64 | float64](a, b *T) bool { return a != nil && b != nil && *a < *b }

// duration reports the wall time of a step.
func (t *tryout) duration(s *fmuslave.Slave, readings []fmuprobe.Reading) {
	if n := len(readings) - 1; n > 0 {
		t.add(ruleDuration, "", "a step of %g s takes %.2g s, with the variables read (mean of %d)",
			t.H, s.Seconds()/float64(n), n)
	}
}

// starts compares the start values of the document with those of a new instance.
func (t *tryout) starts() {
	if t.once() {
		return
	}
	c := t.config("start values", false)
	if c.Place() != nil {
		return // reported by ruleRepeats, as the following
	}
	in, err := t.f.Instantiate(c.Name, c.Options)
	if err != nil {
		return
	}
	defer in.Free()
	if in.SetupExperiment(fmi.Experiment{Start: t.e.Start}) != nil ||
		in.EnterInitializationMode() != nil || in.ExitInitializationMode() != nil {
		return // it needs values to be set
	}
	t.mention(ruleStarts, "start values", fmuslave.OtherStarts(c, in))
}

// again compares the first run with that of a second instance and with that of the first instance
// after fmi2Reset.
func (t *tryout) again(first *fmuslave.Slave, readings []fmuprobe.Reading) {
	const second, reset = "a second instance", "the instance after a reset"
	rules := map[string]*diag.Rule{second: ruleRepeats, reset: ruleResets}
	compare := func(got []fmuprobe.Reading, what string) {
		r := fmuprobe.Comparison{Of: first, Scale: make([]float64, len(readings[0].Real))}
		for _, g := range slices.Concat(readings, got) {
			for k, v := range g.Real {
				r.Scale[k] = max(r.Scale[k], math.Abs(v))
			}
		}
		for k, p := range r.Reals() {
			r.Scale[k] = max(r.Scale[k], fmuprobe.MagnitudeFloor*p.Magnitude())
		}
		n := min(len(got), len(readings))
		if d := r.Compare(readings[:n], got[:n], what); d.Relative > sameRun {
			t.add(rules[what], "", "%s: %s is %s at point %d, and was %s", what, d.Name, d.Then, d.Step, d.First)
		} else if len(got) != len(readings) {
			t.add(rules[what], "", "%s: it takes %d steps, and took %d", what, len(got)-1, len(readings)-1)
		}
	}
	tell := func(what string) func(string, error) {
		return func(when string, err error) {
			if t.ctx.Err() == nil {
				t.add(rules[what], "", "%s: %s: %v", what, when, err)
			}
		}
	}
	if !t.once() {
		if s, err := fmuslave.New(t.config("second", true)); err == nil {
			if err := s.EnterInit(t.ctx, t.e); err != nil {
				tell(second)("beginning", err)
			} else if got, ok := t.steps(s, tell(second)); ok {
				compare(got, second)
			}
			_ = s.Terminate() // errors of the first instance were reported
			_ = s.Close()
		}
	}
	if !t.f.Exports("fmi2Reset") && !t.f.Exports("fmi3Reset") || first.State() != fmi.StateTerminated {
		return
	}
	if err := first.Instance().Reset(); err != nil {
		tell(reset)("resetting", err)
		return
	}
	if err := first.EnterAgain(t.e); err != nil {
		tell(reset)("beginning", err)
		return
	}
	if got, ok := t.steps(first, tell(reset)); ok {
		compare(got, reset)
	}
	_ = first.Terminate() // succeeded before
}

// started returns an initialised instance, nil if that fails.
func (t *tryout) started(name string) *fmuslave.Slave {
	s, err := fmuslave.New(t.config(name, false))
	if err != nil || s.EnterInit(t.ctx, t.e) != nil || s.EvalInit() != nil || s.ExitInit() != nil {
		if s != nil {
			_ = s.Close() // errors were reported by life
		}
		return nil
	}
	return s
}

// goBack tests rollback.
func (t *tryout) goBack() {
	if !t.f.Description.CoSimulation.CanGetAndSetFMUState {
		return
	}
	s := t.started("rollback")
	if s == nil {
		return
	}
	defer s.Close()
	defer s.Terminate()
	replay, err := s.VerifyRollback(t.ctx, t.e, t.H)
	t.unpromised = replay.Unpromised
	switch {
	case t.unpromised != "":
		t.add(rulePromise, "", "%s", t.unpromised)
	case err == nil && replay.Untested != "":
		t.add(ruleReplayNoise, "", "not tested: %s", replay.Untested)
	case err == nil:
		worst := max(replay.FirstTry, replay.Replays)
		text := "bit for bit"
		if worst > 0 {
			text = fmt.Sprintf("to %.1g", worst)
		}
		if replay.AtStart != "" {
			text += "; not from the start: " + replay.AtStart
		}
		t.add(ruleReplayNoise, "", "steps are repeated %s", text)
	case t.ctx.Err() == nil:
		t.add(ruleGoesBack, "", "%v", err)
	}
}

// dependencies finds undeclared feedthrough in the initialisation and in steps.
func (t *tryout) dependencies() {
	t.initialDependencies()
	if t.unpromised != "" {
		return // steps that are repeated show something else
	}
	s := t.started("dependencies")
	if s == nil {
		return
	}
	defer s.Close()
	defer s.Terminate()
	info := s.Info()
	ins := make([]int, len(info.In))
	for k := range ins {
		ins[k] = k
	}
	found, err := s.VerifyFeedthrough(t.ctx, t.e, t.H, ins)
	if err != nil {
		return
	}
	var texts []string
	for _, l := range found {
		texts = append(texts, fmt.Sprintf("%s on %s, by %.4g", info.Out[l.Out].Name, info.In[l.In].Name, l.Slope))
	}
	t.mention(ruleUndeclared, "undeclared dependencies within a step", texts)
}

// initialDependencies perturbs each input in initialisation mode and finds the outputs that change
// with it and change back.
func (t *tryout) initialDependencies() {
	s, err := fmuslave.New(t.config("initialisation", false))
	if err != nil || s.EnterInit(t.ctx, t.e) != nil {
		if s != nil {
			_ = s.Close()
		}
		return
	}
	defer s.Close()
	defer s.Terminate()
	info := s.Info()
	u, y := s.Staged().Real, make([]float64, len(info.Out))
	at := func(u []float64) []float64 {
		if s.SetInputs(u) != nil || s.EvalInit() != nil || s.Outputs(y) != nil {
			return nil
		}
		return slices.Clone(y)
	}
	// The first evaluation may change internal start values.
	if at(u) == nil {
		return
	}
	base := at(u)
	kick := fmuprobe.Kicks(s, u)
	var texts []string
	for k := range min(len(u), mostPerturbed) {
		if base == nil || t.ctx.Err() != nil {
			return
		}
		moved := slices.Clone(u)
		moved[k] += kick[k]
		there := at(moved)
		back := at(u)
		if there == nil || back == nil {
			return
		}
		for o := range base {
			f := &info.Init
			declared := o >= len(f.On) || f.Assumed != nil && f.Assumed[o] || slices.Contains(f.On[o], k)
			size := max(info.Out[o].Magnitude(), math.Abs(base[o]))
			if !declared && math.Abs(there[o]-base[o]) > 1e-6*size && math.Abs(back[o]-base[o]) <= 1e-9*size {
				slope := (there[o] - base[o]) / kick[k]
				texts = append(texts, fmt.Sprintf("%s on %s, by %.4g", info.Out[o].Name, info.In[k].Name, slope))
			}
		}
	}
	t.mention(ruleUndeclared, "undeclared dependencies in the initialisation", texts)
}
