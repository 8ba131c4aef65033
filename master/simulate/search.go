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
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/measure"
)

// Search asks for settings that are better than that of a request.
type Search struct {
	Error    float64       // largest error of the setting that is looked for; 0 = that of the request's, or measure.Usual if it is larger
	Budget   time.Duration // wall time; 0 = unlimited
	Order    int           // highest extrapolation order of fixed steps
	Presets  []string      // that are tried beside the algorithm of the request
	From, To float64       // s, bounds of the steps; 0 = a thirtieth and thirty times the step of the request
	Fixed    bool          // the step is kept
	Limits   bool          // the longest usable step of the request's algorithm is looked for; with All, of each
	All      bool
	Found    func(*measure.Comparison) // is called after each trial; may be nil
	Look     func(*System, *Chosen)    // sees the system that is opened; may be nil
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
		return nil, &RequestError{fmt.Errorf("runs cannot be tried: %s", why)}
	}
	r.opt = master.Options{Start: r.sys.Start.Value, Stop: r.sys.Stop.Value, Step: r.sys.Step.Value}
	if r.sys.Tolerance != nil {
		r.opt.Tolerance = r.sys.Tolerance.Value
	}
	search := &measure.Search{Error: o.Error, From: o.From, To: o.To, Fixed: o.Fixed, Limits: o.Limits, All: o.All, Found: o.Found,
		Others: r.others(o), Plan: measure.Plan{
			Setting: measure.Setting{Preset: r.chosen.Preset, Params: r.chosen.Values, Step: r.opt.Step, Rates: r.chosen.Rates},
			Samples: &measure.Samples{Start: r.opt.Start, Stop: r.opt.Stop}, Reverts: r.reverts(), Serial: r.sys.Few, Progress: r.events.doing,
		}}
	if o.Budget > 0 {
		search.Deadline = time.Now().Add(o.Budget)
	}
	if o.Look != nil {
		o.Look(r.sys, r.chosen)
	}
	if err := leave(); err != nil { // only now, because an FMU may exist once
		return nil, err
	}
	defer r.events.doing("")
	tried := func(mode assemble.Isolation) error {
		return r.instances(ctx, mode, func(m *Model, opened OpenOptions) (err error) {
			search.Begin = r.begins(m, opened, r.opt.Stop)
			search.Samples = &measure.Samples{Start: r.opt.Start, Stop: r.opt.Stop}
			out, err = search.Run(ctx)
			return err
		})
	}
	mode := r.open.Isolate
	if err = tried(mode); out != nil && errors.Is(out.Err, measure.ErrDiffers) && mode == assemble.IsolateAuto {
		err = tried(assemble.IsolateAlways) // instances in one process may influence each other
	}
	return out, err
}

// reverts reports whether all subsystems can roll back.
func (r *run) reverts() bool {
	return !slices.ContainsFunc(r.sys.System.Infos, func(i *master.Info) bool { return !i.Caps.SaveState && !i.Stateless })
}

// others returns the settings to try beside that of the run: each preset as it is, those with fixed steps at the orders 0 to o.Order.
func (r *run) others(o Search) (list []measure.Setting) {
	for _, name := range o.Presets {
		plain, err := r.setting(name, nil)
		if err != nil { // it needs bonds, which there are not
			continue
		}
		settings := []measure.Setting{plain}
		if _, ordered := plain.Params["order"]; ordered && !plain.Chooses() {
			settings = nil
			for k := range o.Order + 1 {
				if s, err := r.setting(name, map[string]string{"order": strconv.Itoa(k)}); err == nil {
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

// setting returns a preset with parameters, at the step of the run and with its rates and bonds where it takes them.
func (r *run) setting(preset string, params map[string]string) (measure.Setting, error) {
	with := algorithms.With{Rates: r.chosen.Rates}
	if algorithms.UsesEnergy(preset) {
		with.Bonds = r.bonds()
	}
	choice, err := r.Presets.New(preset, params, with)
	if err != nil && len(with.Rates) > 0 {
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
