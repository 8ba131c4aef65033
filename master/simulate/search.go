package simulate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/measure"
	"github.com/macrostep/macrostep/master/record"
)

// Search asks for settings that are better than that of a request.
type Search struct {
	Error    float64       // largest error of the setting that is looked for; 0 = that of the request's, or measure.Usual if it is larger
	Budget   time.Duration // wall time; 0 = unlimited
	Order    int           // highest extrapolation order of fixed steps
	Presets  []string      // that are tried beside the algorithm of the request
	From, To float64       // s, bounds of the steps; 0 = a thirtieth and thirty times the step of the request
	Keep     bool          // an algorithm and a step that the request or the documents give are kept
	Limits   bool          // the longest usable step of the request's algorithm is looked for; with All, of each
	All      bool
	Kicks    bool                         // the slowest mode and the gain of loops are looked for
	Of       func(name string) bool       // selects the variables whose errors count; nil = all outputs that feed inputs
	Runs     float64                      // there is time for at least that many, even beyond the budget
	Look     func(*System, *Chosen) error // sees the system that is opened, and may refuse it; may be nil
}

// Search looks for settings of a run that are better than those of a request, by runs without files. The error is a *RequestError if
// the request is invalid; where trials end early, the comparison has what is known, and the reason.
func (by Runner) Search(ctx context.Context, req Request, o Search) (out *measure.Comparison, err error) {
	if by.Open == nil {
		by.Open = Open
	}
	r := &run{Runner: by, Request: req, events: newEvents(by.Events, req.LogLevel)}
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.copy.Remove()) }()
	r.open.Sandboxed = true
	if r.sys, err = r.openSystem(ctx); err != nil {
		return nil, err
	}
	closed := false
	leave := func() error {
		if closed {
			return nil
		}
		closed = true
		return r.sys.Close()
	}
	defer func() { err = errors.Join(err, leave()) }()
	if err := r.settleAll(ctx); err != nil {
		return nil, err
	}
	if r.chosen, err = Choose(r.Presets, &r.Request, r.sys); err != nil {
		return nil, err
	}
	if why := r.unrepeatable(); why != "" {
		return nil, &RequestError{fmt.Errorf("other settings cannot be tried, because the run cannot be repeated: %s", why)}
	}
	r.opt = master.Options{Start: r.sys.Start.Value, Stop: r.sys.Stop.Value, Step: r.sys.Step.Value}
	if r.sys.Tolerance != nil {
		r.opt.Tolerance = r.sys.Tolerance.Value
	}
	var kept map[string]string
	if o.Keep {
		kept = maps.Clone(r.sys.Params)
		maps.DeleteFunc(kept, func(key, value string) bool { return r.chosen.Values[key] != value }) // of another algorithm
		if kept == nil {
			kept = map[string]string{}
		}
		maps.Copy(kept, r.Params)
		if r.Algorithm != "" || r.sys.Algorithm != "" {
			o.Presets = []string{r.chosen.Preset}
		}
	}
	search := &measure.Search{Error: o.Error, From: o.From, To: o.To, Fixed: o.Keep && r.Step != nil, Limits: o.Limits, All: o.All, Kicks: o.Kicks, Of: o.Of, Runs: o.Runs,
		Others: r.others(o, kept), Plan: measure.Plan{
			Setting: measure.Setting{Preset: r.chosen.Preset, Params: r.chosen.Values, Step: r.opt.Step, Rates: r.chosen.Rates},
			Samples: &measure.Samples{Start: r.opt.Start, Stop: r.opt.Stop}, Reverts: r.reverts(), Serial: r.sys.Few,
		}}
	known := ""
	search.Progress = func(text string) { r.events.doing(known + text) }
	search.Found = func(c *measure.Comparison) {
		if t := c.Present; t.At >= 0 {
			known = fmt.Sprintf("present error %s; ", record.Percent(t.Error))
		}
		if t := c.Best; t != nil {
			known += fmt.Sprintf("best so far %s, error %s; ", t.Setting, record.Percent(t.Error))
		}
	}
	if o.Budget > 0 {
		search.Deadline = time.Now().Add(o.Budget)
	}
	if o.Look != nil {
		if err := o.Look(r.sys, r.chosen); err != nil {
			return nil, &RequestError{err}
		}
	}
	if err := leave(); err != nil { // only now, because an FMU may exist once
		return nil, err
	}
	defer r.events.doing("")
	tried := func(mode assemble.Isolation) error {
		return r.instances(ctx, mode, func(m *Model, opened OpenOptions) (err error) {
			search.Begin = r.begins(m, opened, r.opt.Stop)
			search.Samples = &measure.Samples{Start: r.opt.Start, Stop: r.opt.Stop}
			if out, err = search.Run(ctx); out != nil && errors.Is(out.Err, measure.ErrStuck) {
				return out.Err
			}
			return err
		})
	}
	mode := r.open.Isolate
	if err = tried(mode); out != nil && errors.Is(out.Err, measure.ErrDiffers) && mode == assemble.IsolateAuto {
		err = tried(assemble.IsolateAlways) // instances in one process may influence each other
	}
	if out != nil && errors.Is(err, measure.ErrStuck) {
		err = nil // it is in the comparison
	}
	return out, err
}

// reverts reports whether all subsystems can roll back.
func (r *run) reverts() bool {
	return !slices.ContainsFunc(r.sys.System.Infos, func(i *master.Info) bool { return !i.Caps.SaveState && !i.Stateless })
}

// others returns the settings to try beside that of the run: each preset with the parameters that are kept, those with fixed steps at the orders 0
// to o.Order.
func (r *run) others(o Search, kept map[string]string) (list []measure.Setting) {
	for _, name := range o.Presets {
		plain, err := r.setting(name, kept, o.Keep)
		if err != nil { // it needs bonds, which there are not, or has no such parameter
			continue
		}
		settings := []measure.Setting{plain}
		_, ordered := plain.Params["order"]
		if _, given := kept["order"]; ordered && !given && !plain.Chooses() {
			settings = nil
			for k := range o.Order + 1 {
				params := map[string]string{"order": strconv.Itoa(k)}
				maps.Copy(params, kept)
				if s, err := r.setting(name, params, o.Keep); err == nil {
					settings = append(settings, s)
				}
			}
		}
		for _, s := range settings {
			if s.Preset != r.chosen.Preset || !maps.Equal(s.Params, r.chosen.Values) {
				list = append(list, s)
			}
		}
	}
	return list
}

// setting returns a preset with parameters, at the step of the run and with its rates and bonds where it takes them; keep: it must take the rates.
func (r *run) setting(preset string, params map[string]string, keep bool) (measure.Setting, error) {
	with := algorithms.With{Rates: r.chosen.Rates}
	if algorithms.UsesEnergy(preset) {
		with.Bonds = r.bonds()
	}
	choice, err := r.Presets.New(preset, params, with)
	if err != nil && len(with.Rates) > 0 && !keep {
		with.Rates = nil
		choice, err = r.Presets.New(preset, params, with)
	}
	if err != nil {
		return measure.Setting{}, err
	}
	return measure.Setting{Preset: preset, Params: choice.Values, Step: r.opt.Step, Rates: with.Rates}, nil
}

// bonds returns the power bonds of the run, or else those of the system, in W.
func (r *run) bonds() []algorithms.Bond {
	if len(r.chosen.Bonds) > 0 {
		return r.chosen.Bonds
	}
	return watchedBonds(r.sys)
}

// For Request.Accuracy: the time for the search and its least number of runs, if none is given, and what is tried beside explicit coupling.
const (
	accuracyBudget = time.Minute
	accuracyRuns   = 10
)

var accuracyPresets = []string{"explicit", "gauss-seidel", "implicit", "model-based-corrector", "richardson", "ex-slocal"}

// accurate looks for the cheapest setting with the accuracy that a request asks for, and runs it. Its error is that of the search.
func (by Runner) accurate(ctx context.Context, req Request) (Outcome, error) {
	if req.Checkpoints.Resume != "" {
		return Outcome{}, &RequestError{errors.New("--accuracy looks for a setting, but a resumed run has that of its checkpoint; leave out --accuracy")}
	}
	limit := req.Accuracy.Limit
	o := Search{Error: limit, Budget: accuracyBudget, Runs: accuracyRuns, Order: 1, Presets: accuracyPresets, Keep: true}
	quiet := req
	quiet.Accuracy, quiet.Check = nil, nil
	if !req.Accuracy.Of.IsDefault() {
		if o.Of = req.Accuracy.Of.Match; quiet.Read != nil {
			read := quiet.Read
			quiet.Read = func(name string) bool { return o.Of(name) || read(name) }
		} else {
			quiet.Read = o.Of
		}
		o.Look = func(sys *System, _ *Chosen) error {
			var names []string
			for y := range sys.System.OutAt[len(sys.System.Infos)] {
				names = append(names, sys.System.OutName(y))
			}
			return req.Accuracy.Of.Check(names)
		}
	}
	if req.Check != nil {
		o.Budget, o.Runs = req.Check.Budget, 0
	}
	c, err := by.Search(ctx, quiet, o)
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(err, fmt.Errorf("%w while a setting for --accuracy was looked for: nothing was run", cause))
	}
	if errors.Is(err, measure.ErrBudget) {
		out, failed := by.Run(ctx, quiet)
		return out, errors.Join(failed, fmt.Errorf("no setting with an error of %.3g %% is known: %w before one run had ended; more time: --budget", 100*limit, err))
	}
	if err != nil || c == nil {
		return Outcome{}, err
	}
	if errors.Is(c.Err, measure.ErrUncoupled) {
		return by.Run(ctx, quiet) // no setting has a coupling error
	}
	found := c.Present
	if c.Best != nil {
		found = c.Best
	}
	params := analyze.Changed(by.Presets, found.Setting)
	flags := fmt.Sprintf("--algorithm %s", found.Preset)
	for _, key := range slices.Sorted(maps.Keys(params)) {
		flags += fmt.Sprintf(" --param %s=%s", key, params[key])
	}
	flags += fmt.Sprintf(" --step-size %g", found.Step)
	if found != c.Present {
		quiet.Algorithm, quiet.Params = found.Preset, params
		quiet.Step = &Setting{Value: found.Step, Source: "--accuracy"}
		quiet.find("algorithm", found.Preset, "")
		quiet.find("step-size", strconv.FormatFloat(found.Step, 'g', -1, 64), "")
		for _, key := range slices.Sorted(maps.Keys(params)) {
			quiet.find("param", key+"="+params[key], key)
		}
	}
	// A resumed run has the setting that was found.
	quiet.Given = slices.DeleteFunc(quiet.Given, func(g Given) bool { return g.Name == "accuracy" || g.Name == "budget" })
	quiet.find("check", strconv.FormatFloat(limit, 'g', -1, 64), "")
	quiet.Check = &Check{Limit: limit, Budget: o.Budget, known: func(run *measure.Samples) *measure.Bar { return c.BarOf(found, run) }}
	out, err := by.Run(ctx, quiet)
	out.Found = &Found{Flags: flags, Runs: c.Runs, FMUSteps: c.Cost}
	if err != nil || out.Manifest == nil {
		return out, err
	}
	switch e := out.Manifest.Error; {
	case e == nil || e.Worst == nil:
		err = fmt.Errorf("no setting with an error of %.3g %% is known", 100*limit)
	case *e.Worst > limit:
		err = fmt.Errorf("no setting with an error of %.3g %% was found; this is the best that was tried", 100*limit)
	}
	if err != nil && c.Err != nil {
		err = fmt.Errorf("%w (%w)", err, c.Err)
	}
	return out, err
}

// find adds a setting that was found to those given.
func (r *Request) find(name, text, key string) {
	r.Given = append(slices.Clip(r.Given), Given{Name: name, Text: text, Key: key, Source: "--accuracy"})
}
