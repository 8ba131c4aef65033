package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/metrics"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/scenario"
)

// placeFiles finds the manifest's place and refuses to overwrite what is read.
// Beside a device or a pipe there is no manifest.
func (r *runRequest) placeFiles() error {
	if r.Output == "-" && !r.Record.IsNone() {
		return errors.New("--output -: the results go to a file; for standard output name /dev/stdout (the summary goes to standard error then), for a file of this name ./-")
	}
	if r.Manifest == "" && !isDevice(r.Output) {
		r.Manifest = strings.TrimSuffix(r.Output, filepath.Ext(r.Output)) + ".json"
	}
	if err := r.protect(r.System, r.Input, r.History, r.Scenario); err != nil {
		return err
	}
	var errs []error
	written := r.written()
	for i, w := range written {
		if w.flag != "--"+flagCheckpoint && samePath(w.path, r.Checkpoints.Resume) {
			errs = append(errs, fmt.Errorf("%s %s would overwrite the checkpoint that the run goes on from; name another one", w.flag, w.path))
		}
		if info, err := os.Stat(w.path); err == nil && info.IsDir() {
			errs = append(errs, fmt.Errorf("%s %s is a folder; name a file in it", w.flag, w.path))
		}
		for _, other := range written[:i] {
			if samePath(w.path, other.path) {
				errs = append(errs, fmt.Errorf("%s and %s are the same file %s; name another one", other.flag, w.flag, w.path))
			}
		}
	}
	return errors.Join(errs...)
}

// isDevice reports whether a path leads to something that is neither a file nor a
// folder, or is among the devices, as /dev/stdout also is if it leads to a file.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false
	}
	abs, err := filepath.Abs(path)
	return !info.Mode().IsRegular() || err == nil && (filepath.Dir(abs) == "/dev" || filepath.Dir(abs) == "/dev/fd")
}

// summaryTo gives where the summary of a run goes: not among results that go to
// standard output.
func (p *program) summaryTo(r *runRequest) io.Writer {
	f, ok := p.stdout.(*os.File)
	if !ok || r.Record.IsNone() {
		return p.stdout
	}
	out, err := f.Stat()
	results, err2 := os.Stat(r.Output)
	if err == nil && err2 == nil && isDevice(r.Output) && os.SameFile(out, results) {
		return p.stderr
	}
	return p.stdout
}

// writtenFile is a file that a run writes, and the flag that names it.
type writtenFile struct{ flag, path string }

func (r *runRequest) written() []writtenFile {
	files := []writtenFile{{"--output", r.Output}, {"--manifest", r.Manifest}, {"--log-fmi-calls", r.LogCalls}, {"--trace", r.Trace}, {"--" + flagReport, r.Report}, {"--" + flagCheckpoint, r.Checkpoints.File}}
	if r.Record.IsNone() {
		return files[1:]
	}
	return files
}

// protect refuses to write over files that the run reads.
func (r *runRequest) protect(read ...string) error {
	var errs []error
	for _, w := range r.written() {
		for _, path := range read {
			if samePath(w.path, path) {
				errs = append(errs, fmt.Errorf("%s %s would overwrite a file that the run reads; name another one", w.flag, w.path))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// samePath reports whether two paths name the same file, which need not exist.
func samePath(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return ia.Mode().IsRegular() && os.SameFile(ia, ib)
	}
	aa, errA := filepath.Abs(a)
	ab, errB := filepath.Abs(b)
	return errA == nil && errB == nil && aa == ab
}

// execute runs a system from documents to files. The outcome holds if the run
// began, also when it failed; the error is a *runError then.
func (p *program) execute(ctx context.Context, r *runRequest) (out outcome, err error) {
	con := newConsole(p.stderr, r.LogLevel)
	defer con.clear()
	out, err = p.attempt(ctx, r, con, nil)
	var more *master.MoreWorkersError
	if errors.As(err, &more) {
		if !r.Quiet {
			con.print(anewNote(more))
		}
		con.anew()
		out, err = p.attempt(ctx, r, con, more)
	}
	return out, err
}

// anewNote returns why a run begins anew.
func anewNote(more *master.MoreWorkersError) string {
	return fmt.Sprintf("%v: the run begins anew with them (--%s %d; with --%s 1 it does not)", more, flagWorkers, more.Workers, flagWorkers)
}

// startsOver reports whether a run may begin anew: nothing that it gives out before its
// end stays, and nothing long came before it.
func (r *runRequest) startsOver() bool {
	return !isDevice(r.Output) && !isDevice(r.Manifest) && r.Live == "" && r.Metrics == "" && !r.Analyze && r.Realtime == nil && r.Checkpoints.File == "" && r.Checkpoints.Resume == ""
}

// attempt is execute for a run that may end with a *master.MoreWorkersError, but for one
// that has begun anew because of that.
func (p *program) attempt(ctx context.Context, r *runRequest, con *console, more *master.MoreWorkersError) (out outcome, err error) {
	signals, history, err := readTables(ctx, r)
	if err != nil {
		return out, err
	}
	var played *scenario.Scenario
	var player *scenario.Player
	if r.Scenario != "" {
		if played, err = scenario.Read(ctx, r.Scenario); err != nil {
			return out, fmt.Errorf("--%s: %w", flagScenario, err)
		}
		if err := r.protect(played.Files()...); err != nil {
			return out, err
		}
		player = played.Play()
	}
	// What the user asked for is checked before anything is unpacked; the
	// documents may still add to it.
	if r.Algorithm != "" {
		if _, err := algorithms.New(r.Algorithm, r.Params, algorithms.With{Rates: r.Rates}); err != nil {
			return out, &usageError{"run", err}
		}
	}
	open := openOptions{
		Strict: r.Strict, Stateless: r.Stateless, Set: r.Set, Quirks: r.Quirks, Compile: r.Compile, Isolation: r.Isolation,
		Start: r.Start, Stop: r.Stop, Step: r.Step, Tolerance: r.Tolerance,
		Logger: con.logger(), Debug: con.debug(), CallByCall: r.CallByCall,
	}
	if signals != nil {
		open.Driven, open.DrivenBy = signals.Names, "--input "+r.Input
	}
	if !r.Record.IsDefault() {
		open.Record = r.Record.Match
	}
	if played != nil {
		open.Read = played.Uses
	}
	var trace callLog // the file is made when it is known to overwrite nothing
	if r.LogCalls != "" {
		open.Trace = &trace
	}
	sys, err := p.open(ctx, r.System, open)
	if err != nil {
		return out, err
	}
	begun := false
	defer func() {
		if cerr := sys.Close(); cerr != nil && begun {
			err = errors.Join(err, &runError{cerr})
		} else {
			err = errors.Join(err, cerr)
		}
	}()
	if err := r.protect(sys.Files...); err != nil {
		return out, err
	}
	if player != nil {
		player.Items, player.Resolve = sys.ItemsOf, sys.Resolve
	}
	if err := r.settle(sys); err != nil {
		return out, err
	}
	r.Record = r.Record.Of(sys.Alone)
	if signals, history, err = r.laterTables(ctx, signals, history); err != nil {
		return out, err
	}
	if signals != nil {
		if err := errors.Join(signals.Items(sys.Items), signals.Expand(sys.Inputs)); err != nil {
			return out, fmt.Errorf("--input: %w", err)
		}
	}
	if r.LogCalls != "" {
		// Not buffered: the last calls before a crash are the ones that matter.
		if trace.file, err = record.Create(r.LogCalls, os.O_TRUNC); err != nil {
			return out, fmt.Errorf("--log-fmi-calls: %w", err)
		}
		defer func() { err = errors.Join(err, trace.file.Close()) }()
	}

	choice, bonds, rates, notes, warnings, err := choose(r, sys)
	if err != nil {
		return out, err
	}
	if len(choice.Monitor) > 0 && sys.Monitor != nil {
		if sys.System, err = sys.Monitor(choice.Monitor); err != nil {
			return out, fmt.Errorf("parameter monitor: %w", err)
		}
	}
	var told, unstable []string
	var analysis *analyze.Report
	if r.Analyze {
		if told, unstable, analysis, err = p.analyseFirst(ctx, r, open, sys, choice, bonds, rates, con); err != nil {
			return out, err
		}
	}
	m := p.manifest(r, sys, choice)
	m.Sources = r.sources(sys, choice, bonds, rates)
	m.Notes, m.Warnings = append(append(m.Notes, notes...), told...), append(append(m.Warnings, warnings...), unstable...)
	opt := master.Options{
		Start: sys.Start.Value, Stop: sys.Stop.Value, Step: sys.Step.Value,
		Discard: choice.Discard, Workers: r.Workers, CallByCall: r.CallByCall, Logger: con.logger(), Strict: r.Strict, Tidy: sys.Tidy,
		Realtime: r.Realtime,
	}
	if more == nil {
		if opt.BeginAnew = r.startsOver(); opt.BeginAnew {
			con.mayBeginAnew()
		}
	} else {
		opt.Workers, opt.Costs = more.Workers, more.Costs
		m.Notes = append(m.Notes, anewNote(more))
	}
	driven := sys.Held
	if signals != nil {
		driven = slices.Concat(driven, signals.Names)
	}
	if player != nil {
		opt.Hooks = append(opt.Hooks, player)
		m.Scenario = player.Report()
	}
	if sys.Tolerance != nil {
		opt.Tolerance = sys.Tolerance.Value
	}
	if signals != nil {
		if opt.Signals, err = record.BindInputs(signals, sys.System); err != nil {
			return out, fmt.Errorf("--input: %w", err)
		}
	}
	if history != nil {
		if opt.Past, err = record.BindHistory(history, sys.System, opt.Start, orderOf(choice)); err != nil {
			return out, fmt.Errorf("--history: %w", err)
		}
	}
	if err := r.prepareCheckpoints(func() (record.Facts, error) { return r.facts(sys, choice, bonds, played) }, m, &opt); err != nil {
		return out, err
	}
	// By its absolute path: an FMU may change the working directory meanwhile.
	manifest := ""
	if r.Manifest != "" {
		if manifest, err = filepath.Abs(r.Manifest); err != nil {
			return out, fmt.Errorf("--manifest: %w", err)
		}
	}
	record.Sweep(manifest)
	mark := &beginning{manifest: m, file: record.ManifestFile{Path: manifest}}
	defer mark.release()
	if !r.Record.IsNone() {
		out.table = record.NewTable(r.Output, record.Options{Format: r.Format, Select: r.Record, Driven: driven, Interval: r.Interval, Describe: sys.Describe, Taken: mark.write})
		opt.Recorders = append(opt.Recorders, out.table)
	}
	var attempts *record.Attempts
	if r.Trace != "" {
		attempts = record.NewAttempts(r.Trace, nil)
		opt.Recorders, opt.Attempts = append(opt.Recorders, attempts), attempts
	}
	var seen *watcher
	var report, table, attempted string // by their absolute paths, too
	if r.Report != "" {
		for _, file := range []struct {
			to   *string
			path string
		}{{&report, r.Report}, {&table, r.Output}, {&attempted, r.Trace}} {
			if file.path == "" {
				continue
			}
			if *file.to, err = filepath.Abs(file.path); err != nil {
				return out, fmt.Errorf("--%s: %w", flagReport, err)
			}
		}
	}
	if r.Report != "" || r.Live != "" {
		seen = newWatcher(r.Record, opt.Start)
		seen.driven = driven
		seen.watch(&opt, choice)
	}
	var live *liveRun
	if r.Live != "" {
		live = &liveRun{seen: seen, title: titleOf(r.System), manifest: m, start: opt.Start, stop: opt.Stop, paused: r.LivePaused}
		if ctx, err = live.follow(ctx, r.Live); err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, live.end(nil)) }() // where the run does not begin
		live.graph, live.noGraph = picture(r.System)
		opt.Admit = live.admit
		con.print("the run can be followed at " + live.url)
	}
	watch := &analyze.Watch{Warn: func(text string) { con.logger().Warn(text) }}
	opt.Recorders = append(opt.Recorders, watch)
	// Last, so that it begins when nothing is left that could fail before the
	// first FMU is instantiated.
	opt.Recorders = append(opt.Recorders, mark)
	if !r.Quiet {
		from := opt.Start
		if m.ResumedFrom != nil {
			from = m.ResumedFrom.Time
		}
		opt.Observe = newProgress(con, from).observe
	}
	var monitored *metrics.Metrics
	if r.Metrics != "" {
		l, err := listenMetrics(r.Metrics)
		if err != nil {
			return out, err
		}
		shown := opt.Observe
		monitored = metrics.New(r.System)
		opt.Observe = func(p master.Progress) {
			monitored.Observe(p)
			if shown != nil {
				shown(p)
			}
		}
		defer serveMetrics(l, monitored)()
		if !r.Quiet {
			con.print(fmt.Sprintf("metrics at http://%s/metrics", l.Addr()))
		}
	}
	job, err := master.NewRun(sys.System, choice.Algorithm, opt)
	if err != nil {
		return out, err
	}
	running := make(chan struct{}) // closed at the end
	stopFlushing := flushRegularly(mark, out.table, attempts)
	if err := p.guard(func(reason string) string { return mark.interrupted(reason, out.table, attempts) }, sys.Crashed); err != nil {
		return out, err
	}
	stopWaiting := context.AfterFunc(ctx, func() { tellWaiting(con, sys.System, running) })
	will, _ := ctx.Value(lastWillKey{}).(*lastWill)
	will.set(func() {
		mark.interrupted("interrupted twice; the step under way did not return", out.table, attempts)
	})
	result, err := job.Run(ctx)
	if monitored != nil {
		monitored.Finish(result)
	}
	close(running)
	stopWaiting()
	will.set(nil)
	stopFlushing()
	con.clear()
	if begun = mark.begun.Load(); !begun {
		return out, err
	}
	if errors.As(err, &more) && fmi.Crashed() == nil {
		return out, more
	}
	if failed := trace.failed(); failed != nil {
		if err == nil {
			result.Status, result.Reason = master.Failed, failed.Error()
		}
		err = errors.Join(err, failed)
	}
	if crash := fmi.Crashed(); crash != nil {
		c, remedy := *crash, isolateRemedy
		if sys.Crashed != nil && sys.Crashed(&c) {
			remedy = crashRemedy
		}
		err = errors.Join(err, errors.New(remedy))
	}
	var delivery []master.Delivery
	if d, ok := choice.Algorithm.(master.DeliveryReporter); ok {
		delivery = d.Deliveries()
	}
	grows := ""
	if result.Growing != nil && result.Status == master.Complete && fmi.Crashed() == nil {
		report, failed := analysis, error(nil)
		if report == nil {
			report, failed = p.analyse(ctx, r, open, sys, choice, bonds, rates, con, 0)
		}
		if result.Unstable, grows = causeOfGrowth(result.Growing, report, choice, failed); result.Unstable != "" {
			result.Warnings = append(result.Warnings, result.Unstable)
			con.logger().Warn(result.Unstable)
		}
	}
	m.Finish(sys.System, result, delivery)
	if grows != "" {
		m.Warnings = append(m.Warnings, grows)
		con.logger().Warn(grows)
	}
	if player != nil {
		m.Scenario = player.Report()
		for _, line := range player.Idle() {
			m.Warnings = append(m.Warnings, fmt.Sprintf("%s:%d: the event did not happen before the run ended at t = %.12g s", r.Scenario, line, result.Time))
		}
		for _, e := range m.Scenario.Expectations {
			// Of a run that failed, what could not be judged is no news.
			if !e.Passed && (!e.Undecided() || m.Outcome.Regular()) {
				err = errors.Join(err, &scenario.FailedError{Path: r.Scenario, Expectation: e})
			}
		}
	}
	if watch.Text != "" {
		m.Warnings = append(m.Warnings, watch.Text)
	}
	if sys.Notices != nil {
		m.Warnings = append(m.Warnings, sys.Notices()...)
	}
	out.manifest, out.manifestPath = m, r.Manifest
	if werr := mark.end(); werr != nil {
		err, out.manifestPath = errors.Join(err, werr), ""
	}
	if !r.Quiet {
		out.summary(p.summaryTo(r), con)
	}
	if r.Report != "" {
		err = errors.Join(err, p.reportRun(r, report, table, attempted, seen, m, analysis))
	}
	if live != nil {
		err = errors.Join(err, live.finish(m, analysis))
	}
	if err == nil && !m.Outcome.OK(r.Strict) {
		err = errors.New(cmp.Or(result.Reason, m.Outcome.Unstable))
	}
	if err != nil {
		return out, &runError{err}
	}
	return out, nil
}

// callLog is the file of --log-fmi-calls. The run does not end with what it can
// take, and is told at its end.
type callLog struct {
	file *os.File
	mu   sync.Mutex
	err  error
}

func (l *callLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = l.file.Write(line)
	}
	return len(line), nil
}

// failed gives the error of the first failed write.
func (l *callLog) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return fmt.Errorf("--log-fmi-calls: the log ends early: %w; the results are whole; free space, choose another file, or leave the log out", l.err)
}

// open opens a system, and has the program end as it should when an FMU in its
// process wants to end it, from loading on.
func (p *program) open(ctx context.Context, path string, o openOptions) (*opened, error) {
	if err := checkLimits(); err != nil {
		return nil, err
	}
	if err := p.guard(func(reason string) string { return reason }, nil); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	defer close(done)
	defer context.AfterFunc(ctx, func() { tellLoading(p.stderr, done) })()
	return p.engine.Open(ctx, path, o)
}

// guard has the program end as it should when an FMU in its process ends it, in a
// way that its call does not come back from: with what is computed kept by keep, which
// adds when it was, nothing left and an exit code that does not pass for success.
// crashed is told of crashes, and tells whether the next run will know; nil = nobody is.
func (p *program) guard(keep func(reason string) string, crashed func(*fmi.CrashError) (known bool)) error {
	var first sync.Mutex // for good: other threads wait for the end
	end := func(what, remedy string) {
		first.Lock()
		what = keep(what)
		p.engine.Cleanup()
		fmt.Fprintf(p.stderr, "\nmacrostep: %s, which ends the program; the rows before are kept; %s\n", what, remedy)
		os.Exit(exitFailed)
	}
	if err := fmi.OnExit(func() {
		end("an FMU has called exit", "run it again with --isolate always: then it ends as it should and says which FMU it was")
	}); err != nil {
		return err
	}
	// Where crashes cannot be caught, as without files or memory, they are Go's to tell.
	_ = fmi.CatchCrashes(func(e *fmi.CrashError) {
		c, remedy := *e, isolateRemedy
		if crashed != nil && crashed(&c) {
			remedy = crashRemedy
		}
		end(c.Error(), remedy)
	})
	return nil
}

// isolateRemedy is for crashes in the process of the run, crashRemedy for those that
// the next run will know of.
const isolateRemedy = "run it again with --isolate always"

const crashRemedy = "the FMU is on record now: run it again, and it gets a process of its own, by --isolate auto, which is the default, or always"

func readTables(ctx context.Context, r *runRequest) (signals, history *record.Signals, err error) {
	if r.Input != "" {
		if signals, err = record.ReadSignals(ctx, r.Input); err != nil {
			return nil, nil, fmt.Errorf("--input: %w", err)
		}
	}
	if r.History != "" {
		if history, err = record.ReadSignals(ctx, r.History); err != nil {
			return nil, nil, fmt.Errorf("--history: %w", err)
		}
	}
	return signals, history, nil
}

// laterTables reads the tables that documents name.
func (r *runRequest) laterTables(ctx context.Context, signals, history *record.Signals) (_, _ *record.Signals, err error) {
	later := *r
	if signals != nil {
		later.Input = ""
	}
	if history != nil {
		later.History = ""
	}
	s, h, err := readTables(ctx, &later)
	return cmp.Or(signals, s), cmp.Or(history, h), err
}

// paramFirstStep is the size of the first step, where an algorithm chooses the others.
const paramFirstStep = "control.h0"

// choose makes the algorithm from the flags and the documents. Parameters of
// the documents belong to their algorithm, or to all that take them if they name
// none; flags beat them.
func choose(r *runRequest, sys *opened) (c *algorithms.Choice, bonds []algorithms.Bond, rates []algorithms.Rate, notes, warnings []string, err error) {
	preset, params := r.Algorithm, map[string]string{}
	if preset == "" {
		preset = sys.Algorithm
	}
	if preset == "" {
		preset = algorithms.DefaultPreset
	}
	documented := maps.Clone(sys.Params)
	if r.Step != nil { // the flag beats what a document says of the first step
		delete(documented, paramFirstStep)
	}
	switch {
	case sys.Algorithm == preset:
		maps.Copy(params, documented)
	case sys.Algorithm == "":
		params, notes = suited(preset, documented)
	case len(sys.Params) > 0:
		warnings = append(warnings, fmt.Sprintf("the parameters which the system gives for algorithm %s are left out, because --%s is %s", sys.Algorithm, flagAlgorithm, preset))
	}
	maps.Copy(params, r.Params)
	bonds, more, err := chooseBonds(r, sys, preset)
	if err != nil {
		return nil, nil, nil, nil, nil, err
	}
	warnings = append(warnings, more...)
	rates = ratesWith(r.Rates, sys.Rates)
	c, err = algorithms.New(preset, params, algorithms.With{Bonds: bonds, Rates: rates, Spike: r.Spike})
	if err != nil && len(rates) > len(r.Rates) {
		// An implicit scheme takes none.
		if without, failed := algorithms.New(preset, params, algorithms.With{Bonds: bonds, Rates: r.Rates, Spike: r.Spike}); failed == nil {
			warnings = append(warnings, fmt.Sprintf("the rates which the system gives are left out: %v", err))
			c, rates, err = without, r.Rates, nil
		}
	}
	if err != nil {
		if _, own := algorithms.New(cmp.Or(r.Algorithm, algorithms.DefaultPreset), r.Params); own == nil {
			err = fmt.Errorf("%s: %w", asking(r.System, sys, err), err)
		}
		return nil, nil, nil, nil, nil, err
	}
	return c, bonds, rates, notes, append(warnings, c.Notes...), nil
}

// asking names what in a document asks for something that is refused.
func asking(system string, sys *opened, refused error) string {
	for name, s := range sys.Asked.Sources {
		if key, ok := strings.CutPrefix(name, "param "); ok && strings.HasPrefix(refused.Error(), "parameter "+key+"=") {
			return fmt.Sprintf("%s (%s)", s.Place, s.Text)
		}
	}
	if s, ok := sys.Asked.Sources["algorithm"]; ok {
		return fmt.Sprintf("%s (%s)", s.Place, s.Text)
	}
	return system + " (annotation of macrostep)"
}

// suited gives those parameters of documents that name no algorithm which a
// preset takes. Of the others, what some preset takes is left out, and a note
// says so; what none takes stays and becomes an error.
func suited(preset string, params map[string]string) (kept map[string]string, notes []string) {
	takes := func(preset, key string) bool {
		_, err := algorithms.New(preset, map[string]string{key: params[key]})
		return err == nil
	}
	presets := algorithms.Presets()
	at := slices.IndexFunc(presets, func(p algorithms.Preset) bool { return p.Name == preset })
	kept = map[string]string{}
	var left []string
	for _, key := range slices.Sorted(maps.Keys(params)) {
		other := slices.ContainsFunc(presets, func(p algorithms.Preset) bool { return takes(p.Name, key) })
		switch {
		case at < 0 || !other || takes(preset, key):
			kept[key] = params[key]
		case slices.ContainsFunc(presets[at].Params, func(p algorithms.Param) bool { return p.Name == key }):
			left = append(left, key+"="+params[key]) // it means something else there
		default:
			left = append(left, key)
		}
	}
	if left != nil {
		notes = append(notes, fmt.Sprintf("algorithm %s does not take parameters of the system that are for others: %s", preset, strings.Join(left, ", ")))
	}
	return kept, notes
}

// chooseBonds gives the bonds whose energy is followed, with their powers in W:
// those of the user, else of the documents, else all that the units show.
func chooseBonds(r *runRequest, sys *opened, preset string) (bonds []algorithms.Bond, notes []string, err error) {
	if !r.MonitorEnergy && !algorithms.UsesEnergy(preset) && len(r.Bonds) == 0 {
		return nil, nil, nil
	}
	bonds = r.Bonds
	if len(bonds) == 0 {
		bonds = sys.Bonds
	} else if len(sys.Bonds) > 0 {
		var names []string
		for _, b := range sys.Bonds {
			names = append(names, b.Name)
		}
		notes = append(notes, fmt.Sprintf("--%s takes the place of the bonds that the system declares: %s", flagBond, strings.Join(names, ", ")))
	}
	if len(bonds) == 0 && sys.BondsSeen != nil {
		if bonds = sys.BondsSeen(); len(bonds) > 0 {
			var names []string
			for _, b := range bonds {
				names = append(names, fmt.Sprintf("%s=%s:%s", b.Name, b.Pairs[0].Effort, b.Pairs[0].Flow))
			}
			notes = append(notes, "no bond is declared; found by units, signs unknown: "+strings.Join(names, ", "))
		}
	}
	bonds = slices.Clone(bonds)
	for i := range bonds {
		bonds[i].Pairs = slices.Clone(bonds[i].Pairs)
		for k := range bonds[i].Pairs {
			p := &bonds[i].Pairs[k]
			if sys.Power == nil {
				continue
			}
			if p.Watt, err = sys.Power(p.Effort, p.Flow); err != nil {
				return nil, nil, fmt.Errorf("bond %s: %w", bonds[i].Name, err)
			}
		}
	}
	return bonds, notes, nil
}

// manifest gives what is known before the run.
func (p *program) manifest(r *runRequest, sys *opened, c *algorithms.Choice) *record.Manifest {
	m := &record.Manifest{
		Status:   master.Incomplete,
		Reason:   "the run did not come to its end",
		Versions: record.Versions{Macrostep: version(), Go: runtime.Version(), Platform: platform()},
		Command:  p.args, System: r.System, Results: r.Output, FMUs: sys.FMUs,
		Algorithm: c.Preset, Parameters: c.Values,
		StartTime: sys.Start, StopTime: sys.Stop, StepSize: sys.Step, Tolerance: sys.Tolerance, EndTime: sys.Start.Value,
	}
	if r.Record.IsNone() {
		m.Results = ""
	}
	for _, f := range sys.Findings {
		if f.Level == diag.Info {
			m.Notes = append(m.Notes, f.String())
		} else {
			m.Warnings = append(m.Warnings, f.String())
		}
	}
	m.Warnings = append(m.Warnings, sys.Warnings...)
	return m
}

// beginning writes the manifest of an incomplete run when the run begins: before
// results that are there are replaced, so that the old manifest never stands
// beside the new ones.
type beginning struct {
	manifest *record.Manifest
	file     record.ManifestFile // Path "" = none is written
	written  bool
	stands   bool // that of the beginning has been written
	begun    atomic.Bool
	steps    atomic.Int64
	mu       sync.Mutex // held while the manifest is written, and for good by who writes the last one and ends the program
}

func (b *beginning) write() error {
	if b.written {
		return nil
	}
	b.written = true
	return b.end()
}

// end writes the manifest as it is now, if there is to be one.
func (b *beginning) end() error {
	if b.file.Path == "" {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.file.Write(b.manifest)
	if err == nil {
		b.stands = true
		return nil
	}
	if _, missing := os.Stat(b.file.Path); missing == nil && !errors.Is(err, record.ErrBusy) {
		of := "is not of this run"
		if b.stands {
			of = "is that of its beginning"
		}
		err = fmt.Errorf("%w; the %s that is there %s", err, b.file.Path, of)
	}
	return err
}

// release lets other runs write the manifest.
func (b *beginning) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.file.Close() // it was written
}

func (b *beginning) Begin(*master.System, []master.Port) error {
	if err := b.write(); err != nil {
		return err
	}
	b.begun.Store(true)
	return nil
}

// Record follows how far the run is, for when it does not come to an end of its own.
func (b *beginning) Record(p *master.Point) error {
	b.steps.Store(int64(p.Step))
	return nil
}

func (b *beginning) Flush() error            { return nil }
func (b *beginning) End(master.Result) error { return nil }
func (b *beginning) Next() float64           { return math.Inf(1) }

// flushInterval bounds what is lost when an FMU hangs or takes the process along.
const flushInterval = 250 * time.Millisecond

// flushRegularly writes rows to the file beside the run, which cannot do it
// while an FMU hangs, until the function it gives is called.
func flushRegularly(mark *beginning, table *record.Table, attempts *record.Attempts) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(flushInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if !mark.begun.Load() {
					continue
				}
				// The run sees the same errors at its next row.
				if table != nil {
					_ = table.Flush()
				}
				if attempts != nil {
					_ = attempts.Flush()
				}
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// outcome is what a run left behind.
type outcome struct {
	table        *record.Table // nil = none
	manifest     *record.Manifest
	manifestPath string
}

// Bounds of the summary.
const (
	shownWarnings = 10
	shownLoops    = 5
	shownNames    = 4
	shownEvents   = 8
)

// summary prints how a run ended.
func (o *outcome) summary(w io.Writer, con *console) {
	m := o.manifest
	wall, uneven := m.WallSeconds, ""
	fmt.Fprintf(w, "%s at t = %g s: %s", m.Outcome.Ended, m.EndTime, plural(m.Steps.Accepted, "step"))
	if m.Steps.Accepted > 0 {
		if m.Steps.Mean != m.StepSize.Value && m.Steps.Accepted > 1 && math.Abs(m.Steps.Mean-m.StepSize.Value) > 1e-9*m.StepSize.Value {
			uneven = ", on average"
		}
		fmt.Fprintf(w, " of %s s%s in %s", number(m.Steps.Mean), uneven, duration(wall))
	}
	if wall > 0 {
		fmt.Fprintf(w, " (%s × real time)", short((m.EndTime-m.StartTime.Value)/wall))
	}
	if m.Steps.Rejected > 0 {
		fmt.Fprintf(w, ", %d more rejected", m.Steps.Rejected)
	}
	fmt.Fprintln(w)
	if verdict := m.Outcome.String(); verdict != m.Outcome.Ended {
		fmt.Fprintf(w, "outcome   %s\n", verdict)
	}
	fmt.Fprintf(w, "algorithm %s%s\n", m.Algorithm, parameterList(m.Parameters))
	if len(m.Orders) > 1 {
		fmt.Fprintf(w, "orders   %s\n", orderList(m.Orders))
	}
	if m.Outcome.Regular() && m.Reason != "" {
		fmt.Fprintln(w, m.Reason)
	}
	if m.Scenario != nil {
		printScenario(w, m.Scenario)
	}
	if m.Realtime != nil {
		printTiming(w, m.Realtime, m.Steps.Mean, uneven)
	}
	if m.Iterations > 0 {
		fmt.Fprintf(w, "corrector %s, %s of the interface\n", plural(m.Iterations, "iteration"), plural(m.Jacobians, "Jacobian"))
	}
	if n := len(m.Monitored); n > 0 {
		shown := m.Monitored[:min(n, shownNames)]
		fmt.Fprintf(w, "error of  %s", strings.Join(shown, ", "))
		if n > len(shown) {
			fmt.Fprintf(w, " … (%d variables)", n)
		}
		fmt.Fprintln(w)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Bonds)) {
		b := m.Bonds[name]
		fmt.Fprintf(w, "bond      %s: residual energy %s J, mean power %s W, mean residual power %s W, at most %s W\n",
			name, number(b.ResidualEnergy), number(b.MeanPower), number(b.MeanAbsResidualPower), number(b.PeakResidualPower))
	}
	for i, l := range m.Loops {
		if i == shownLoops {
			fmt.Fprintf(w, "  and %s more in the manifest\n", plural(len(m.Loops)-i, "loop"))
			break
		}
		fmt.Fprintln(w, loopLine(l))
	}
	if o.table != nil {
		fmt.Fprintf(w, "results   %s (%s, %s)\n", m.Results, plural(o.table.Rows(), "row"), plural(o.table.Columns(), "column"))
	}
	if o.manifestPath != "" {
		fmt.Fprintf(w, "manifest  %s\n", o.manifestPath)
	}
	if c := m.Checkpoints; c != nil && c.Time != nil && !m.Outcome.Regular() {
		fmt.Fprintf(w, "to go on from t = %g s: macrostep run --%s %s\n", *c.Time, flagResume, c.Path)
	}
	if n := len(m.Notes); n > 0 {
		fmt.Fprintf(w, "%s on the documents in the manifest\n", plural(n, "note"))
	}
	if n := len(m.Warnings); n > 0 {
		var left []string
		for _, text := range m.Warnings {
			if !con.printed(text) {
				left = append(left, text)
			}
		}
		fmt.Fprint(w, plural(n, "warning"))
		if shown := n - len(left); shown > 0 {
			fmt.Fprintf(w, ", %d of them above", shown)
		}
		fmt.Fprintln(w)
		for i, text := range left {
			if i == shownWarnings {
				fmt.Fprintf(w, "  and %d more in the manifest\n", len(left)-i)
				break
			}
			fmt.Fprintf(w, "  %s\n", text)
		}
	}
}

// loopLine names a loop by at most a few of its variables.
func loopLine(l master.Loop) string {
	names := l.Variables
	more := ""
	if len(names) > shownNames {
		more = fmt.Sprintf(" → … (%d variables)", len(names))
		names = names[:shownNames]
	} else if len(names) > 0 {
		more = " → " + names[0]
	}
	where, how := "loop", "declared"
	if l.Initialization {
		where = "loop of the initialisation"
	}
	if l.Assumed {
		how = "assumed, since dependencies are not declared"
	}
	return fmt.Sprintf("%s  %s%s: %s; %s", where, strings.Join(names, " → "), more, how, l.Treatment)
}

// parameterList gives parameters for reading; the manifest has them whole.
func parameterList(params map[string]string) string {
	const longest = 60
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(params)) {
		v := params[k]
		if len(v) > longest {
			v = strings.ToValidUTF8(v[:longest], "") + "…"
		}
		fmt.Fprintf(&b, " %s=%s", k, v)
	}
	return b.String()
}

// orderList gives the number of macro steps of each order.
func orderList(orders map[int]int) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(orders)) {
		fmt.Fprintf(&b, " k=%d: %d", k, orders[k])
	}
	return b.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// number gives a few digits, enough for a look.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
