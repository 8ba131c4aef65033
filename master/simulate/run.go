package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/measure"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/scenario"
	"github.com/macrostep/macrostep/master/workdir"
)

// Runner holds the Go values that take part in runs. The zero value is ready for use.
type Runner struct {
	// Open opens systems; nil = Open, which reads files.
	Open func(ctx context.Context, path string, o OpenOptions) (*System, error)
	// Builders create systems without documents, by the name in Request.Builder.
	Builders map[string]Builder
	// Presets are the algorithms that a request may name.
	Presets algorithms.Catalog
	// Events receives the events of a run, one at a time; nil discards them.
	Events func(Event)
	// At returns the actual path for a file of the run, which keeps its nominal path in
	// messages and manifest; nil = the same path.
	At func(path string) string
	// Own lists further files and folders that the caller writes during a run: changes of other files of the working folder
	// count as those of FMUs.
	Own []string
	// Prepare is called before the first FMU is instantiated; nil = no call. It may add to the
	// options of the run. The run uses the returned context.
	Prepare func(context.Context, *Prepared) (context.Context, error)
	// Settled is called when the run has ended, with its outcome and error, before the FMUs are terminated and freed.
	// What happens then changes no result and only adds warnings, but it may end the process. nil = no call.
	Settled func(*Outcome, error)
	// Running is called when the run begins, with a function for a program that must exit
	// at once: it saves the results so far and returns the reason with the time reached.
	// Running is called with nil when the run has ended; nil = no calls.
	Running func(abandon func(reason string) string, s *System)
}

// Prepared is a run before its first step.
type Prepared struct {
	Options  *master.Options
	System   *master.System
	Choice   *algorithms.Choice
	Manifest *record.Manifest
	Record   record.Selection
	Driven   []string // inputs "component.variable" with external signals
}

// Found is a setting that was looked for, and what that took.
type Found struct {
	Flags    string
	Runs     int
	FMUSteps int
}

// Outcome describes a run and its files.
type Outcome struct {
	Begun         bool             // the instantiation of FMUs has begun
	Manifest      *record.Manifest // nil before that; its Outcome is the verdict on the run
	ManifestPath  string           // "" = none was written
	Table         bool             // there is a table of results
	Rows, Columns int              // of the table
	Found         *Found           // the setting that was run for Request.Accuracy; nil = none was looked for
	Result        master.Result    `json:"-"` // of a run that has begun
}

// Run makes the run of a request, from documents to files.
//
// The error is a *RequestError if the request is invalid. If the run fails after Begun, the
// outcome is valid, too: the results so far are kept.
func Run(ctx context.Context, req Request) (Outcome, error) { return Runner{}.Run(ctx, req) }

// Run is like the function Run.
func (by Runner) Run(ctx context.Context, req Request) (Outcome, error) {
	if by.Open == nil {
		by.Open = Open
	}
	if by.At == nil {
		by.At = func(path string) string { return path }
	}
	if req.Accuracy != nil {
		return by.accurate(ctx, req)
	}
	r := &run{Runner: by, Request: req, events: newEvents(by.Events, req.LogLevel), began: time.Now()}
	err := r.run(ctx)
	return r.out, err
}

// run is a run under way.
type run struct {
	Runner
	Request
	events *events
	out    Outcome
	copy   workdir.Copy // of the working folder, for instances beside those of the run

	checkpoint       *record.Checkpoint // from which the run is resumed; nil = none
	signals, history *record.Signals
	scenario         *scenario.Scenario // nil = none
	player           *scenario.Player
	open             OpenOptions
	sys              *System
	chosen           *Chosen
	opt              master.Options
	driven           []string
	attempts         *record.Attempts // nil = none
	calls            *record.CallLog  // nil = none
	table            *record.Table    // nil = none
	base             *record.Manifest // before the run
	mark             *beginning
	samples          *measure.Samples // for a check; nil = none
	began            time.Time
	opening          time.Duration // from then to the initialisation
}

// run makes the run.
func (r *run) run(ctx context.Context) (err error) {
	if err := r.read(ctx); err != nil {
		return err
	}
	r.copy.Own = r.own()
	defer func() {
		if err := r.copy.Remove(); err != nil { // the results are complete
			r.events.logger().Warn("a temporary folder is left: " + err.Error())
		}
	}()
	if r.sys, err = r.openSystem(ctx); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, r.sys.Close())
		if r.mark != nil { // last, because libraries may crash while they are unloaded
			r.mark.over()
		}
	}()
	if err := r.settleAll(ctx); err != nil {
		return err
	}
	if r.calls != nil {
		defer func() { err = errors.Join(err, r.calls.Close()) }()
	}
	if r.chosen, err = Choose(r.Presets, &r.Request, r.sys); err != nil {
		return err
	}
	if m := r.chosen.Monitor; len(m) > 0 && r.sys.Monitor != nil {
		if r.sys.System, err = r.sys.Monitor(m); err != nil {
			return fmt.Errorf("parameter monitor: %w", err)
		}
	}
	m := r.manifest()
	r.base = m
	if ctx, err = r.prepare(ctx, m); err != nil {
		return err
	}
	job, err := master.NewRun(r.sys.System, r.chosen.Algorithm, r.opt)
	if err != nil {
		return err
	}
	watched := r.watchFolder()
	stopFlushing := r.flushRegularly()
	if r.Running != nil {
		r.Running(r.interrupted, r.sys)
	}
	r.mark.conclude = r.conclude
	r.opening = time.Since(r.began)
	result, err := job.Run(ctx)
	watched(&result, err)
	if r.Running != nil {
		r.Running(nil, r.sys)
	}
	stopFlushing()
	r.events.doing("")
	if r.out.Begun = r.mark.begun.Load(); !r.out.Begun {
		return err
	}
	err = r.finish(ctx, result, err)
	if r.Check != nil && r.out.Manifest.Outcome.Regular() {
		err = errors.Join(err, r.check(ctx))
	}
	return err
}

// openSystem opens the system of the request.
func (r *run) openSystem(ctx context.Context) (*System, error) {
	if r.Builder == "" {
		return r.Open(ctx, r.System, r.open)
	}
	build := r.Builders[r.Builder]
	if build == nil {
		return nil, &RequestError{fmt.Errorf("there is no builder %q%s", r.Builder,
			cmp.Or(diag.DidYouMean(r.Builder, slices.Sorted(maps.Keys(r.Builders))), "; the builders are "+diag.Some(slices.Sorted(maps.Keys(r.Builders)))))}
	}
	return build.open(ctx, &r.Request)
}

// ownSteps returns the sizes in s of the fixed steps of the subsystems; nil = the algorithm chooses them.
func (r *run) ownSteps() []float64 {
	if master.PlanOf(r.chosen.Algorithm, r.sys.System, r.sys.Step.Value).FirstStep != 0 {
		return nil
	}
	steps := slices.Repeat([]float64{r.sys.Step.Value}, len(r.sys.System.Infos))
	for i, info := range r.sys.System.Infos {
		for _, rate := range r.chosen.Rates {
			if rate.Component == info.Name {
				steps[i] *= float64(rate.Over) / float64(rate.Steps)
			}
		}
	}
	return steps
}

// read reads the tables and the scenario of the request and checks the algorithm before
// anything is unpacked.
func (r *run) read(ctx context.Context) (err error) {
	if r.signals, r.history, err = readTables(ctx, &r.Request); err != nil {
		return err
	}
	if r.Scenario != "" {
		if r.scenario, err = scenario.Read(ctx, r.Scenario); err != nil {
			return fmt.Errorf("--scenario: %w", err)
		}
		if err := r.protect(r.scenario.Files()...); err != nil {
			return err
		}
		r.player = r.scenario.Play()
	}
	if r.Algorithm != "" { // the documents may add to it
		if _, err := r.Presets.New(r.Algorithm, r.Params, algorithms.With{Rates: r.Rates}); err != nil {
			return &RequestError{err}
		}
	}
	r.open = OpenOptions{Request: r.Request, Logger: r.events.logger(), Debug: r.events.debug()}
	r.open.Copy = &r.copy
	if err := r.readCheckpoint(); err != nil {
		return err
	}
	if r.signals != nil {
		r.open.Driven, r.open.DrivenBy = r.signals.Named, "--input "+r.Input
	}
	if s, read := r.scenario, r.Read; s != nil {
		r.open.Read = func(name string) bool { return s.Uses(name) || read != nil && read(name) }
	}
	if r.LogCalls != "" {
		r.calls = record.NewCallLog(r.At(r.LogCalls), sharedMemory())
		r.open.Calls = r.calls // recorders creates the file, after the checks for overwriting
	}
	return nil
}

// settleAll completes the request with the settings of the documents.
func (r *run) settleAll(ctx context.Context) (err error) {
	if err := r.protect(r.sys.Files...); err != nil {
		return err
	}
	if r.player != nil {
		r.player.Items, r.player.Resolve = r.sys.ItemsOf, r.sys.Resolve
	}
	if err := r.Adopt(r.sys.Asked); err != nil {
		return err
	}
	r.Record = r.Record.Of(r.sys.Alone)
	if r.signals, r.history, err = r.laterTables(ctx, r.signals, r.history); err != nil {
		return err
	}
	r.driven = r.sys.Held
	if r.signals != nil {
		if err := errors.Join(r.signals.Items(r.sys.Items), r.signals.Expand(r.sys.Inputs)); err != nil {
			return fmt.Errorf("--input: %w", err)
		}
		r.driven = slices.Concat(r.driven, r.signals.Names)
	}
	return nil
}

// prepare sets the options of the run, with its recorders.
func (r *run) prepare(ctx context.Context, m *record.Manifest) (_ context.Context, err error) {
	opt := &r.opt
	*opt = master.Options{
		Start: r.sys.Start.Value, Stop: r.sys.Stop.Value, Step: r.sys.Step.Value,
		Discard: r.chosen.Discard, Workers: r.Workers, Logger: r.events.logger(), Strict: r.Strict, Tidy: r.sys.Tidy,
		Realtime: r.Realtime,
	}
	opt.Observe = func(p master.Progress) {
		r.mark.observe(p)
		r.events.progress(p)
	}
	if r.sys.Tolerance != nil {
		opt.Tolerance = r.sys.Tolerance.Value
	}
	if r.player != nil {
		opt.Hooks = append(opt.Hooks, r.player)
		m.Scenario = r.player.Report()
	}
	if r.signals != nil {
		in, err := record.BindInputs(r.signals, r.sys.System)
		if err != nil {
			return nil, fmt.Errorf("--input: %w", err)
		}
		m.Warnings = append(m.Warnings, in.Warnings(opt.Start, opt.Stop, r.ownSteps())...)
		opt.Signals = in
	}
	if r.history != nil {
		if opt.Past, err = record.BindHistory(r.history, r.sys.System, opt.Start, r.chosen.order()); err != nil {
			return nil, fmt.Errorf("--history: %w", err)
		}
	}
	if err := r.prepareCheckpoints(m); err != nil {
		return nil, err
	}
	if err := r.recorders(m); err != nil {
		return nil, err
	}
	p := &Prepared{Options: opt, System: r.sys.System, Choice: r.chosen.Choice, Manifest: m, Record: r.Record, Driven: r.driven}
	if r.Prepare != nil {
		if ctx, err = r.Prepare(ctx, p); err != nil {
			return nil, err
		}
	}
	// The last recorder, so that it begins when nothing else can fail before the first FMU is
	// instantiated.
	opt.Recorders = append(opt.Recorders, r.mark)
	return ctx, nil
}

// recorders adds the recorders of the files and the detector of growth.
func (r *run) recorders(m *record.Manifest) (err error) {
	opt := &r.opt
	path := ""
	if r.Manifest != "" { // absolute, because an FMU may change the working directory
		if path, err = filepath.Abs(r.At(r.Manifest)); err != nil {
			return fmt.Errorf("--manifest: %w", err)
		}
	}
	r.events.trace = TracePath(path)
	record.Sweep(path)
	Withdraw()
	checkpoint := ""
	if r.Checkpoints.File != "" {
		if checkpoint, err = filepath.Abs(r.Checkpoints.File); err != nil {
			return fmt.Errorf("--checkpoint: %w", err)
		}
	}
	r.mark = &beginning{manifest: m, file: record.ManifestFile{Path: path},
		leaving: leaving{Manifest: path, Given: r.Manifest, Table: !r.Record.IsNone(), Checkpoint: checkpoint}}
	if !r.Record.IsNone() {
		r.table = record.NewTable(r.At(r.Output), record.Options{
			Format: r.Format, Select: r.Record, Driven: r.driven, Interval: r.Interval, Outputs: r.sys.Outputs,
			Describe: r.sys.Describe, Names: r.sys.Names, Chosen: m.Describe, Taken: r.begin, Memory: sharedMemory(),
		})
		r.mark.table = r.table
		opt.Recorders = append(opt.Recorders, r.table)
	}
	if r.Trace != "" {
		r.attempts = record.NewAttempts(r.At(r.Trace), sharedMemory())
		opt.Recorders, opt.Attempts = append(opt.Recorders, r.attempts), r.attempts
	}
	if r.calls != nil {
		if err = r.calls.Begin(); err != nil {
			return err
		}
	}
	if r.Check != nil {
		r.samples = &measure.Samples{Start: r.opt.Start, Stop: r.opt.Stop}
		opt.Recorders = append(opt.Recorders, r.samples)
	}
	for _, text := range r.sys.Mortal {
		r.events.logger().Warn(text)
	}
	return nil
}

// begin writes the manifest before the table replaces an earlier one. It announces a large table.
func (r *run) begin(variables int) error {
	if bytes := r.tableSize(variables); bytes > largeTable {
		remedy := "record less with --record or --output-interval"
		if r.Format == record.CSV {
			remedy += ", or write a binary file with --output FILE.parquet, which is many times faster"
		}
		r.events.logger().Warn(fmt.Sprintf("%s will have about %.2g GB: %d variables, a row every %.4g s; %s",
			r.Output, bytes/1e9, variables, max(r.Interval, r.sys.Step.Value), remedy))
	}
	return r.mark.write()
}

// largeTable is the size of a table, in bytes, that is announced.
const largeTable = 1e8

// tableSize estimates the size of the table in bytes.
func (r *run) tableSize(variables int) float64 {
	value := 8.0
	if r.Format == record.CSV {
		value = 12 // on average over tables of third-party FMUs
	}
	rows := (r.sys.Stop.Value - r.sys.Start.Value) / max(r.Interval, r.sys.Step.Value)
	return rows * float64(1+variables) * value
}

// conclude writes the manifest of a run that has ended, before its FMUs are ended.
func (r *run) conclude(result master.Result) {
	var err error
	if !result.Outcome().Regular() {
		err = errors.New(result.Reason)
		if r.table != nil && r.table.Err() != nil {
			err = r.table.Err()
		}
	}
	err = r.outcome(result, err)
	_ = r.mark.end() // finish repeats it
	r.mark.publish()
	if r.Settled != nil {
		r.Settled(&r.out, err)
	}
	fmi.Flush() // an FMU that crashes then does not take with it what it has printed
}

// finish judges a run that has begun and completes its manifest. failed is the error of the
// run, or nil.
func (r *run) finish(ctx context.Context, result master.Result, failed error) error {
	err := failed
	if r.calls != nil {
		lost := r.calls.Close()
		if lost != nil && err == nil {
			result.Status, result.Reason = master.Failed, lost.Error()
		}
		err = errors.Join(err, lost)
	}
	err = r.outcome(result, err)
	m := r.out.Manifest
	if r.table != nil {
		if left := r.table.LeftOut(); len(left) > 0 {
			note := fmt.Sprintf("a .mat holds no strings and leaves out %d (%s); record to a .parquet or .csv to keep them",
				len(left), strings.Join(left[:min(len(left), 3)], ", "))
			r.events.note(note)
			m.Notes = append(m.Notes, note)
		}
	}
	lost := r.mark.end()
	r.mark.publish()
	// A supervisor may be able to write the files that this process cannot.
	unwritten := lost != nil || r.table != nil && r.table.Kept()
	r.mark.left = process.Shared() != nil && r.mark.stands && unwritten
	if lost != nil && !r.mark.left {
		err, r.out.ManifestPath = errors.Join(err, lost), ""
	}
	return err
}

// outcome sets the outcome and the manifest of a run that has ended. failed is the error of the run, or nil. It returns the
// error of the request.
func (r *run) outcome(result master.Result, failed error) error {
	var delivery []master.Delivery
	if rep, ok := r.chosen.Algorithm.(master.Reporter); ok {
		delivery = rep.Report().Delivery
	}
	m := new(record.Manifest)
	*m = *r.base
	m.Warnings, m.Notes = slices.Clip(m.Warnings), slices.Clip(m.Notes)
	m.Finish(r.sys.System, result, delivery)
	m.StartSeconds += r.opening.Seconds()
	err := errors.Join(failed, r.judgeScenario(m, result.Time))
	if m.Outcome.Regular() {
		m.Warnings = append(m.Warnings, r.longerThanRun(m)...)
	}
	if r.sys.Notices != nil {
		warnings, notes := r.sys.Notices()
		m.Warnings, m.Notes = append(m.Warnings, warnings...), append(m.Notes, notes...)
	}
	if bare := r.copy.Bare(); bare != "" {
		m.Notes = append(m.Notes, "instances for tests of FMUs ran in an empty folder, because the FMUs may write files in the working folder, "+
			"of which no copy can be made: "+bare)
	}
	r.mark.set(m)
	r.out.Begun, r.out.Manifest, r.out.ManifestPath, r.out.Result = true, m, r.Manifest, result
	if r.table != nil {
		r.out.Table, r.out.Rows, r.out.Columns = true, r.table.Rows(), r.table.Columns()
	}
	if err == nil && !m.Outcome.OK(r.Strict) && (r.Check == nil || !m.Outcome.OK(false)) { // a check judges what grows
		err = errors.New(cmp.Or(result.Reason, m.Outcome.Growth))
	}
	return err
}

// judgeScenario completes the report of the scenario. The error lists the expectations that
// were not met.
func (r *run) judgeScenario(m *record.Manifest, end float64) (err error) {
	if r.player == nil {
		return nil
	}
	m.Scenario = r.player.Report()
	for _, line := range r.player.Idle() {
		m.Warnings = append(m.Warnings, fmt.Sprintf("%s:%d: the event did not happen before the run ended at t = %.12g s; check its time or condition, or run longer",
			r.Scenario, line, end))
	}
	for _, e := range m.Scenario.Expectations {
		// After a failed run, undecided expectations are not reported.
		if !e.Passed && (!e.Undecided() || m.Outcome.Regular()) {
			err = errors.Join(err, &scenario.FailedError{Path: r.Scenario, Expectation: e})
		}
	}
	return err
}

// sharedMemory returns the memory shared with the supervisor, nil without one.
func sharedMemory() record.Memory {
	if shared := process.Shared(); shared != nil {
		return shared
	}
	return nil
}
