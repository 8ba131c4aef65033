package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/scenario"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/workdir"
	"github.com/macrostep/macrostep/ssp"
)

// Options are the options of Open that a plan does not contain.
type Options struct {
	Presets  algorithms.Catalog
	Dialects []ssp.Dialect // nil: those of package dialect
	// Kept is the folder for tables of the runs that the plan keeps; "" = none is kept.
	Kept string
	// Engine names this process in rows.
	Engine string
	// Expendable means that an FMU may end this process (see simulate.OpenOptions).
	Expendable bool
	// Running receives the system of a run when it begins; nil = nobody does.
	Running func(*simulate.System)
	// Settled receives the row or the error of a run before its FMUs are terminated and freed, in case that ends the process;
	// nil = nobody does.
	Settled func(Row, error)
	// Own lists files and folders that the program writes meanwhile: they are no sign that FMUs write files.
	Own    []string
	Logger *slog.Logger // of what opening reports; nil = nothing is logged
}

// Model is the system of a plan, opened once. Its methods may be called by several goroutines.
type Model struct {
	plan     *Plan
	names    []string // of factors
	options  Options
	model    *simulate.Model
	selected record.Selection // of the collected variables
	copy     workdir.Copy     // of the working folder, for instances beside those of runs

	mu       sync.Mutex
	requests map[string]simulate.Request // by the settings that vary
}

// Open opens the system of a plan and loads its FMUs.
func Open(ctx context.Context, p *Plan, o Options) (*Model, error) {
	m := newModel(p, o)
	opening, _, err := m.opening(ctx)
	if err != nil {
		return nil, err
	}
	if m.model, err = simulate.OpenModel(ctx, p.System, opening); err != nil {
		return nil, err
	}
	return m, nil
}

// Inspection is what the documents define for a study, before its first run.
type Inspection struct {
	Files    []string // that the runs read
	Step     float64  // macro step in s of the system
	Warnings []string
	// Units has the units of factors and quantities by name, Starts the values of the factors in the system itself;
	// what has none is missing.
	Units, Starts map[string]string
}

// Inspect reads the documents of a plan's system. It checks that the system has what varies and what is collected,
// and that runs take the settings. It runs no code of FMUs.
func Inspect(ctx context.Context, p *Plan, o Options) (*Inspection, error) {
	m := newModel(p, o)
	opening, files, err := m.opening(ctx)
	if err != nil {
		return nil, err
	}
	requests, err := m.distinct()
	if err != nil {
		return nil, err
	}
	var variables []string
	for i := range p.Quantities {
		variables = append(variables, p.Quantities[i].Variable)
	}
	i, err := simulate.Inspect(ctx, p.System, opening, variables, p.assignments(p.first())...)
	if err != nil {
		return nil, err
	}
	for k := range p.Quantities {
		if err := p.Quantities[k].checkUnit(i.Units); err != nil {
			return nil, err
		}
	}
	for _, r := range requests {
		preset := cmp.Or(r.Algorithm, i.Algorithm, algorithms.DefaultPreset)
		if _, err := m.options.Presets.New(preset, r.Params, algorithms.With{Rates: r.Rates}); err != nil {
			return nil, err
		}
	}
	for name := range p.MaxInstances {
		if !slices.Contains(i.Components, name) {
			return nil, fmt.Errorf("max-instances: the system has no component %q%s", name, diag.DidYouMean(name, i.Components))
		}
	}
	if !slices.ContainsFunc(m.names, func(name string) bool { return name == "run.start-time" || name == "run.stop-time" }) {
		if err := p.checkReferences(i.Start.Value, i.Stop.Value); err != nil {
			return nil, err
		}
	}
	for _, r := range requests {
		if err := r.Record.Of(i.Alone).Check(i.Variables); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	out := &Inspection{Files: slices.Concat(p.files, files, i.Files), Step: i.Step.Value, Warnings: i.Warnings}
	for _, a := range opening.Set {
		i.Starts[a.Name] = a.Value
	}
	out.describe(p, i)
	return out, nil
}

// describe sets the units and values that are known of a plan's factors and quantities.
func (i *Inspection) describe(p *Plan, system *simulate.Inspection) {
	i.Units, i.Starts = map[string]string{}, map[string]string{}
	put := func(in map[string]string, name, text string) {
		if text != "" {
			in[name] = text
		}
	}
	for _, name := range p.FactorNames() {
		put(i.Units, name, system.Units[name])
		put(i.Starts, name, system.Starts[name])
		switch strings.TrimPrefix(name, SettingPrefix) {
		case "start-time", "stop-time", "step-size":
			i.Units[name] = "s"
		}
	}
	for k := range p.Quantities {
		q := &p.Quantities[k]
		put(i.Units, q.Name, q.unit(system.Units[q.Variable]))
	}
}

// checkUnit refuses measurements in another unit than the variable's.
func (q *Quantity) checkUnit(units map[string]string) error {
	if own := units[q.Variable]; q.given != "" && own != "" && own != q.given {
		return fmt.Errorf("%s: the column has the unit %s, the variable %s; convert the column", q.Text, q.given, own)
	}
	return nil
}

// checkReferences refuses tables with times outside of the runs.
func (p *Plan) checkReferences(start, stop float64) error {
	for i := range p.Quantities {
		q := &p.Quantities[i]
		if within := 1e-9 * max(math.Abs(start), math.Abs(stop)); q.until > stop+within || q.from < start-within {
			return fmt.Errorf("%s: the table covers %g to %g s, and the runs %g to %g s; shorten the table, or change run: {start-time: …, stop-time: …}", q.Text, q.from, q.until, start, stop)
		}
	}
	return nil
}

// distinct returns the runs of all settings in a plan, without what they set.
func (m *Model) distinct() ([]simulate.Request, error) {
	list := []Variant{m.plan.first()}
	if m.plan.Optimise == nil && m.plan.Convergence == nil {
		design, err := m.plan.Variants()
		if err != nil {
			return nil, err
		}
		list = append(list, design.List...)
	}
	if c := m.plan.Convergence; c != nil && c.From > 0 {
		list = append(list, c.variant(0, c.From, ""))
	}
	var out []simulate.Request
	known := map[string]bool{}
	for _, v := range list {
		key, _ := m.settings(v)
		if known[key] {
			continue
		}
		known[key] = true
		r, err := m.request(v)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func newModel(p *Plan, o Options) *Model {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Engine = oneLine(o.Engine)
	return &Model{plan: p, names: p.FactorNames(), options: o, requests: map[string]simulate.Request{}, copy: workdir.Copy{Own: o.Own}}
}

// opening returns how the system is opened, and the files beside it that a run reads.
func (m *Model) opening(ctx context.Context) (_ simulate.OpenOptions, files []string, err error) {
	r, err := m.request(Variant{})
	if err != nil {
		return simulate.OpenOptions{}, nil, err
	}
	var names []string
	for i := range m.plan.Quantities {
		names = append(names, m.plan.Quantities[i].Variable)
	}
	if m.selected, err = record.ParseSelection(names); err != nil {
		return simulate.OpenOptions{}, nil, err
	}
	open := simulate.OpenOptions{Request: r, Logger: m.options.Logger, Expendable: m.options.Expendable}
	open.Dialects, open.Read, open.Copy = m.options.Dialects, m.selected.Match, &m.copy
	if m.plan.Keep == KeepNone {
		open.Record = record.Selection{}
	}
	if r.Scenario != "" {
		s, err := scenario.Read(ctx, r.Scenario)
		if err != nil {
			return open, nil, err
		}
		open.Read = func(name string) bool { return m.selected.Match(name) || s.Uses(name) }
		files = append(s.Files(), r.Scenario)
	}
	if r.Input != "" {
		s, err := record.ReadSignals(ctx, r.Input)
		if err != nil {
			return open, nil, fmt.Errorf("input: %w", err)
		}
		open.Driven, open.DrivenBy = s.Named, "the setting input "+r.Input
		files = append(files, r.Input)
	}
	if r.History != "" {
		files = append(files, r.History)
	}
	return open, files, nil
}

// Close closes the system.
func (m *Model) Close() error { return errors.Join(m.model.Close(), m.copy.Remove()) }

// settings returns those of a variant, and a key that distinguishes them from those of others.
func (m *Model) settings(v Variant) (key string, settings []Setting) {
	settings = m.plan.Run
	for i, value := range v.Values {
		name, ok := strings.CutPrefix(m.names[i], SettingPrefix)
		if !ok || value == "" {
			continue
		}
		if setting, part, ok := strings.Cut(name, "."); ok { // param.order
			name, value = setting, part+"="+value
		}
		settings = override(settings, Setting{name, value})
		key += name + "\x00" + value + "\x00"
	}
	return key, settings
}

// request returns the run of a variant, without what it sets.
func (m *Model) request(v Variant) (simulate.Request, error) {
	key, settings := m.settings(v)
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.requests[key]
	if !ok {
		var err error
		if r, err = m.plan.Request(settings); err != nil {
			return r, fmt.Errorf("run: %w", err)
		}
		m.requests[key] = r
	}
	return r, nil
}

// Request returns the run of the system with settings. It has one worker unless they say otherwise: the other cores have runs of
// their own.
func (p *Plan) Request(settings []Setting) (simulate.Request, error) {
	r := simulate.Request{System: p.System, Workers: 1}
	var errs []error
	for _, s := range settings {
		errs = append(errs, r.Apply(s.Name, s.Value, "--"+s.Name))
	}
	return r, errors.Join(append(errs, r.Complete())...)
}

// override returns the settings with another value for one of them.
func override(settings []Setting, s Setting) []Setting {
	key, _, part := strings.Cut(s.Value, "=")
	var out []Setting
	for _, o := range settings {
		if o.Name != s.Name || part && !strings.HasPrefix(o.Value, key+"=") {
			out = append(out, o)
		}
	}
	return append(out, s)
}

// Run makes the run of a variant. What goes wrong in it is in the row. The error is that of a context which is done, or of a file of the
// program itself that could not be written: nothing is wrong with the variant then, and it needs another run.
func (m *Model) Run(ctx context.Context, v Variant) (Row, error) {
	began := time.Now()
	complete := func(row Row) Row {
		row.Seconds, row.Engine = time.Since(began).Seconds(), m.options.Engine
		return row
	}
	if v.checks() {
		row, err := m.check(ctx, v)
		return complete(row), err
	}
	row, err := m.run(ctx, v, func(row Row, err error) {
		if m.options.Settled != nil {
			m.options.Settled(complete(row), err)
		}
	})
	if v.ID >= 0 {
		m.plan.Tidy(row, m.options.Kept)
	}
	return complete(row), err
}

// Tidy removes the files of a run in the folder kept that the plan does not keep.
func (p *Plan) Tidy(row Row, kept string) {
	if p.Keep == KeepFailed && row.Status == OK && kept != "" {
		for _, file := range []string{keptTable(row.ID), keptManifest(row.ID)} {
			_ = os.Remove(filepath.Join(kept, file)) // at worst, there is a file more
		}
	}
}

func (m *Model) run(ctx context.Context, v Variant, settled func(Row, error)) (Row, error) {
	r, err := m.request(v)
	if err != nil {
		return m.plan.NoRow(v, Failed, err.Error()), nil
	}
	set := m.plan.assignments(v)
	selection := r.Record
	r.Output, r.Manifest, r.Record = "", "", none
	given := r.Given
	r.Given = append(slices.Clip(r.Given), simulate.Given{Name: "record", Source: "the study"})
	if m.plan.Keep != KeepNone && m.options.Kept != "" && v.ID >= 0 {
		r.Given = given // documents may choose what is recorded
		r.Output, r.Record = filepath.Join(m.options.Kept, keptTable(v.ID)), selection
		if err := r.Place(); err != nil {
			return Row{}, fmt.Errorf("the table of %s cannot be kept: %w", v, err)
		}
	}
	var columns record.Columns
	resolve := func(name string) (string, error) { return name, nil }
	runner := simulate.Runner{
		Presets: m.options.Presets, Own: m.options.Own, Running: m.running,
		Open: func(_ context.Context, _ string, o simulate.OpenOptions) (*simulate.System, error) {
			o.Set = set
			sys, err := m.model.Instantiate(o)
			if err != nil {
				return nil, err
			}
			columns.Select = m.selected.Of(sys.Alone)
			if sys.Resolve != nil {
				resolve = sys.Resolve
			}
			return sys, nil
		},
		Prepare: func(ctx context.Context, p *simulate.Prepared) (context.Context, error) {
			p.Options.Recorders = append(p.Options.Recorders, &columns)
			return ctx, nil
		},
	}
	judged := func(out *simulate.Outcome, err error) (Row, error) {
		if unwritten := m.unwritten(err); unwritten != nil {
			return Row{}, unwritten
		}
		row := m.judge(v, out, err)
		if row.Status == OK {
			err = m.collect(&row, &columns, resolve)
		}
		if row.Status == OK && err != nil {
			row = m.plan.NoRow(v, Failed, err.Error())
		}
		return row, nil
	}
	warnings := 0 // before the FMUs were ended
	runner.Settled = func(out *simulate.Outcome, err error) {
		warnings = len(out.Result.Warnings)
		if ctx.Err() == nil {
			settled(judged(out, err))
		}
	}
	out, err := runner.Run(ctx, r)
	if ctx.Err() != nil {
		return Row{}, context.Cause(ctx)
	}
	row, err := judged(&out, err)
	if late := out.Result.Warnings[warnings:]; row.Status == OK && len(late) > 0 {
		row.Warn(late[0])
	}
	return row, err
}

// unwritten returns the error of a run for which a file of the program itself could not be written: a kept table, its manifest, or a temporary
// file. nil = err is another one. What an FMU cannot write comes as a text in its error.
func (m *Model) unwritten(err error) error {
	var at *fs.PathError
	file := errors.As(err, &at) && at.Op != "read"
	switch failed := diag.DiskFailed(err); {
	case file && m.keeps(at):
		return record.NotWritten(at.Path, at.Err)
	case file && failed:
		return fmt.Errorf("%w (temporary files are in TMPDIR, on Windows TEMP)", record.NotWritten(at.Path, at.Err))
	case failed, errors.Is(err, record.ErrBusy):
		return err
	}
	return nil
}

// keeps reports whether an error is that of a file among the kept tables for which no FMU is to blame: FMUs may close files of the program, or
// leave it none to open.
func (m *Model) keeps(err *fs.PathError) bool {
	own := diag.DiskFailed(err) || err.Op == "open" && !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE)
	return own && m.options.Kept != "" && within(m.options.Kept, err.Path)
}

// running announces the system of a run that begins.
func (m *Model) running(abandon func(string) string, s *simulate.System) {
	if abandon != nil && m.options.Running != nil {
		m.options.Running(s)
	}
}

// judge returns the row of a run without what is collected. failed is the error of the run, or nil.
func (m *Model) judge(v Variant, out *simulate.Outcome, failed error) Row {
	row := m.plan.NoRow(v, OK, "")
	row.Steps, row.Rejected = out.Result.Accepted, out.Result.Rejected
	if out.Manifest == nil {
		row.end(Failed, failed.Error())
		return row
	}
	o := &out.Manifest.Outcome
	row.Verdict = o.Expectations
	var unmet *scenario.FailedError
	switch {
	case o.Stability == master.Unstable:
		row.end(Unstable, o.Growth)
	case failed != nil && !(errors.As(failed, &unmet) && o.Regular()):
		row.end(Failed, failed.Error())
	case out.Result.Growing != nil:
		row.Warn(out.Result.Growing.String())
	}
	return row
}

// collect fills in the quantities of a row. Those that are not finite because their variable is not stay empty, with a
// warning as the reason.
func (m *Model) collect(row *Row, columns *record.Columns, resolve func(string) (string, error)) error {
	var lost []string
	for i := range m.plan.Quantities {
		q := &m.plan.Quantities[i]
		name, err := resolve(q.Variable)
		if err != nil {
			return err
		}
		values, err := columnOf(columns, name)
		if err != nil {
			return err
		}
		if row.Samples && m.plan.fits(q.Name) {
			curve := q.curve(columns.Time(), values)
			if slices.ContainsFunc(curve, notFinite) {
				return fmt.Errorf("%s has no finite value at a time of its measurements: the run ends before, or the variable is infinite or NaN", q.Variable)
			}
			row.Curves = append(row.Curves, curve)
		}
		if x := q.of(columns.Time(), values); x-x == 0 {
			row.Collected[i] = x
		} else if slices.ContainsFunc(values, func(v float64) bool { return v-v != 0 }) {
			lost = append(lost, q.Text)
		}
	}
	if lost != nil {
		row.Warn(fmt.Sprintf("%s is empty, because the variable is infinite or NaN at some point", strings.Join(lost, ", ")))
	}
	return nil
}

// assignments returns the parameters and start values of a variant.
func (p *Plan) assignments(v Variant) (set []simulate.Assignment) {
	names := p.FactorNames()
	for i, value := range v.Values {
		if name := names[i]; value != "" && !strings.HasPrefix(name, SettingPrefix) {
			set = append(set, simulate.Assignment{Name: name, Value: value})
		}
	}
	return set
}

// first returns a variant with a value for every factor.
func (p *Plan) first() Variant {
	var v Variant
	if t := p.Design.Table; t != nil {
		v.Values = slices.Clone(t.Rows[0])
	}
	for i := range p.Factors {
		v.Values = append(v.Values, p.Factors[i].Quantile(0.5))
	}
	return v
}

var none, _ = record.ParseSelection([]string{"none"})

// columnOf returns a variable as numbers; true is 1.
func columnOf(c *record.Columns, name string) ([]float64, error) {
	if v, err := c.Real(name); err == nil {
		return v, nil
	}
	if v, err := c.Integer(name); err == nil {
		return convert(v, func(e int64) float64 { return float64(e) }), nil
	}
	v, err := c.Boolean(name)
	if err != nil {
		return nil, fmt.Errorf("collect: %s is not a number: %w", name, err)
	}
	return convert(v, func(e bool) float64 {
		if e {
			return 1
		}
		return 0
	}), nil
}

func convert[T any](in []T, number func(T) float64) []float64 {
	out := make([]float64, len(in))
	for i, v := range in {
		out[i] = number(v)
	}
	return out
}
