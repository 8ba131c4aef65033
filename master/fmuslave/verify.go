package fmuslave

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuprobe"
)

var (
	_ master.RollbackVerifier    = (*Slave)(nil)
	_ master.FeedthroughVerifier = (*Slave)(nil)
	_ master.DerivativeVerifier  = (*Slave)(nil)
	_ master.Duplicator          = (*Slave)(nil)
	_ fmuprobe.LinearSubject     = (*Slave)(nil)
)

// VerifyRollback tests that the FMU restores a saved state (fmi2 59), with the inputs staged now, and measures
// how exactly it repeats a step. The test uses separate instances. If the FMU can be instantiated only
// once, it uses the instance of the run and restores it afterwards. Measurements are stored (see
// Config.Cache) and not repeated.
//
// The error names the output and both values; it wraps master.ErrCapability if
// the FMU does not go back.
func (s *Slave) VerifyRollback(ctx context.Context, e master.Experiment, H float64) (master.Replay, error) {
	store := s.store()
	replay, known := store.Replay(H)
	if known && (replay.Untested == "" || replay.Unpromised != "" || s.config.once()) {
		return replay, nil
	}
	var err error
	c := s.config
	if c.once() {
		s.stepper.NoRestoreBefore = false
		replay, err = fmuprobe.RollbackInPlace(ctx, s, e, H, s.Staged())
		s.stepper.NoRestoreBefore = !s.experiment.Reverts
	} else if c, err = s.beside("test of rollback"); err != nil {
		return master.Replay{Untested: err.Error()}, nil
	} else {
		replay, err = s.testTwins(ctx, e, H, c)
	}
	why := c.untested(err)
	if refused := (*fmi.RefusedError)(nil); why == "" && errors.As(err, &refused) {
		why = refused.Error()
	}
	switch {
	case ctx.Err() == nil && why != "":
		return master.Replay{Untested: why}, nil
	case err != nil:
		return replay, err
	case c.bare == "":
		store.KeepReplay(H, replay)
	}
	return replay, nil
}

// Staged copies the inputs that are staged now.
func (s *Slave) Staged() fmuprobe.Inputs {
	u := fmuprobe.Inputs{Real: slices.Clone(s.stepper.RealIn[:len(s.in)])}
	u.Discrete.Real = slices.Clone(s.stepper.RealIn[len(s.in):])
	u.Discrete.Integer = slices.Clone(s.stepper.IntegerIn)
	for _, b := range s.stepper.BooleanIn {
		u.Discrete.Boolean = append(u.Discrete.Boolean, b != 0)
	}
	u.Discrete.String = slices.Clone(s.stringIn)
	return u
}

// testTwins tests the rollback on separate instances with a configuration.
func (s *Slave) testTwins(ctx context.Context, e master.Experiment, H float64, c Config) (master.Replay, error) {
	c.Outputs, c.Watch, c.Monitor = nil, nil, nil
	d := c.FMU.Description
	for i := range d.Variables {
		switch v := &d.Variables[i]; {
		case v.Causality == description.Output:
			c.Outputs = append(c.Outputs, v.Name)
		case v.Derivative > 0 && v.Causality == description.Local: // and with it what it is the derivative of
			if x := &d.Variables[v.Derivative-1]; x.Causality == description.Local && !slices.Contains(c.Watch, x.Name) {
				c.Watch = append(c.Watch, x.Name)
			}
		}
	}
	u := s.Staged()
	return fmuprobe.Rollback(ctx, e, H, u, func(purpose string, reverts bool) (fmuprobe.Subject, error) {
		c, e := c, e
		e.Reverts = reverts
		c.Name = fmt.Sprintf("%s (%s)", s.config.Name, purpose)
		return newTwin(ctx, e, c, u)
	})
}

// newTwin returns a separate instance at the start of the steps.
func newTwin(ctx context.Context, e master.Experiment, c Config, u fmuprobe.Inputs) (*Slave, error) {
	twin, err := New(c)
	if err != nil {
		return nil, err
	}
	if err = twin.begin(ctx, e, u); err == nil {
		err = twin.ExitInit()
	}
	if err != nil {
		return nil, errors.Join(err, twin.Terminate(), twin.Close())
	}
	return twin, nil
}

// Duplicate instantiates the FMU again.
func (s *Slave) Duplicate(ctx context.Context, order int) (_ master.Subsystem, err error) {
	if s.config.once() {
		return nil, fmt.Errorf("%w: the FMU can be instantiated only once per process "+
			"(canBeInstantiatedOnlyOncePerProcess)", master.ErrCapability)
	}
	c, err := s.beside("another")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", master.ErrCapability, err)
	}
	another, err := New(c)
	if err != nil {
		return nil, err
	}
	end := func(err error) error { return errors.Join(err, another.Terminate(), another.Close()) }
	e, u := s.experiment, s.Staged()
	e.InputDerivatives = order
	if err := another.EnterInit(ctx, e); err != nil {
		return nil, end(err)
	}
	if err := errors.Join(u.Stage(another), another.EvalInit()); err != nil {
		return nil, end(err)
	}
	if err := another.ExitInit(); err != nil {
		return nil, end(err)
	}
	if order > 0 {
		if err := another.PrepareInputDerivatives(order); err != nil {
			return nil, end(err)
		}
	}
	return another, nil
}

// begin takes a twin into its initialisation, with inputs.
func (s *Slave) begin(ctx context.Context, e master.Experiment, u fmuprobe.Inputs) error {
	e.InputDerivatives = 0
	if err := s.EnterInit(ctx, e); err != nil {
		return err
	}
	if err := u.Stage(s); err != nil {
		return err
	}
	return s.EvalInit()
}

// quiet returns a logger for test instances, whose messages are only for debugging.
func quiet(log func(fmi.LogMessage)) func(fmi.LogMessage) {
	if log == nil {
		return nil
	}
	return func(m fmi.LogMessage) {
		if m.Category != fmi.OwnCategory {
			m.Status = fmi.StatusOK
			log(m)
		}
	}
}

// VerifyFeedthrough moves inputs of a separate instance and finds outputs that move in the same step although
// they do not depend on them by ModelStructure (fmi2 27). An FMU is not tested if it cannot vary its step,
// or can be instantiated only once. If all declarations are true, that is stored with the hash of the FMU
// and its settings (see Config.Cache) and not tested again.
func (s *Slave) VerifyFeedthrough(ctx context.Context, e master.Experiment, H float64, ins []int) ([]master.Leak, error) {
	H = min(H, (e.Stop-e.Start)/2)
	if caps := s.info.Caps; s.config.once() || !caps.SaveState || !caps.VariableStep || !(H > 0) {
		return nil, nil
	}
	var inputs []master.Port
	for _, k := range ins {
		inputs = append(inputs, s.info.In[k])
	}
	store := s.store()
	if store.KnowsTrue(inputs) {
		return nil, nil
	}
	c, err := s.beside("test of dependencies")
	if err != nil {
		return nil, nil
	}
	twin, err := c.dependent()
	if err != nil {
		return nil, err
	}
	defer func() { // errors do not matter here
		_ = twin.Terminate()
		_ = twin.Close()
	}()
	u := s.Staged()
	e.Reverts = true
	if twin.begin(ctx, e, u) != nil || twin.ExitInit() != nil {
		return nil, context.Cause(ctx) // the instance of the run will report the error
	}
	found, whole := fmuprobe.Feedthrough(ctx, twin, e.Start, H, u, ins)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if len(found) == 0 && whole && c.bare == "" {
		store.KeepTrue(inputs)
	}
	var own []master.Leak // at ports of this slave
	for _, l := range found {
		v := twin.out[l.Out].variable
		if l.Out = slices.IndexFunc(s.out[:s.coupled], func(g signal) bool { return g.variable == v }); l.Out >= 0 {
			own = append(own, l)
		}
	}
	return own, nil
}

// dependent returns a twin with all outputs whose dependencies are declared.
func (c Config) dependent() (*Slave, error) {
	c.Watch, c.Monitor = nil, nil
	c.Outputs = slices.Clone(c.Outputs)
	d := c.FMU.Description
	for _, u := range d.Outputs {
		v := &d.Variables[u.Index-1]
		if u.Declared && v.Causality == description.Output && v.Type == description.Real && !slices.Contains(c.Outputs, v.Name) {
			c.Outputs = append(c.Outputs, v.Name)
		}
	}
	return New(c)
}

// VerifyDerivatives compares the directional derivatives of the outputs by the driven inputs with differences
// of outputs, on separate instances: in the initialisation, and within steps if the run uses the rollback
// of the FMU and the FMU can vary its step. An FMU that can be instantiated only once, in this process, is not tested. Right
// derivatives are stored with the hash of the FMU and its settings (see Config.Cache) and not tested again.
func (s *Slave) VerifyDerivatives(ctx context.Context, e master.Experiment, H float64) (master.SlopeTest, error) {
	var test master.SlopeTest
	switch {
	case !s.info.Caps.DirectionalDerivative:
		return test, fmt.Errorf("%w: the FMU provides no directional derivatives", master.ErrCapability)
	case s.config.once():
		test.Untested = "the FMU can be instantiated only once per process"
		return test, nil
	}
	ports := slices.Concat(s.info.In, s.info.Out)
	store := s.store()
	if known, ok := store.Slopes(ports); ok {
		return known, nil
	}
	c, err := s.beside("test of derivatives")
	if err != nil {
		test.Untested = err.Error()
		return test, nil
	}
	c.Watch = nil
	t := slopeTest{run: s, config: c, ctx: ctx, e: e, H: min(H, (e.Stop-e.Start)/2)}
	for _, part := range []func() error{t.initially, t.within} {
		if err := part(); err != nil {
			if t.Untested = c.untested(err); t.Untested != "" && ctx.Err() == nil {
				return t.SlopeTest, nil
			}
			return t.SlopeTest, err
		}
	}
	if t.Compared == 0 {
		t.Untested = "no output responds to an input linearly and by more than its noise"
		return t.SlopeTest, nil
	}
	if c.bare == "" {
		store.KeepSlopes(ports, t.SlopeTest)
	}
	return t.SlopeTest, nil
}

// slopeTest is the test of one slave.
type slopeTest struct {
	fmuprobe.Slopes
	run    *Slave
	config Config // of twins
	ctx    context.Context
	e      master.Experiment
	H      float64
}

// twin returns a slave like that of the run, in its initialisation; nil if that fails, which the instance of
// the run will report.
func (t *slopeTest) twin() (s *Slave, u fmuprobe.Inputs, end func()) {
	s, err := New(t.config)
	if err != nil {
		return nil, u, nil
	}
	end = func() { // errors do not matter here
		_ = s.Terminate()
		_ = s.Close()
	}
	u = t.run.Staged()
	if s.begin(t.ctx, t.e, u) != nil {
		end()
		return nil, u, nil
	}
	return s, u, end
}

// initially compares in the initialisation.
func (t *slopeTest) initially() error {
	s, u, end := t.twin()
	if s == nil {
		return context.Cause(t.ctx)
	}
	defer end()
	return t.Initially(t.ctx, s, u)
}

// within compares responses over steps.
func (t *slopeTest) within() error {
	if caps := t.run.info.Caps; !caps.SaveState || !caps.VariableStep || !(t.H > 0) {
		return nil
	}
	// The effects of a request are tested for the slave of the run, which needs the result.
	which, states := 0, len(t.run.States()) > 0
	if states {
		_, refused := t.run.tryOut(1)
		if states = refused == nil; states {
			which = 1
		}
	}
	if _, refused := t.run.tryOut(which); refused != nil {
		return refused
	}
	s, u, end := t.twin()
	if s == nil {
		return context.Cause(t.ctx)
	}
	defer end()
	s.trials, s.linear.refused = t.run.trials, t.run.linear.refused
	if s.ExitInit() != nil {
		return fmuprobe.Refusal(t.ctx, s)
	}
	return t.Within(t.ctx, s, t.e.Start, t.H, u, states)
}

// store returns the stored measurements of the FMU.
func (s *Slave) store() fmuprobe.Store { return s.config.store() }

func (c *Config) store() fmuprobe.Store {
	return fmuprobe.Store{Cache: c.Cache, FMU: c.identity(), Model: c.FMU.Description.ModelName}
}

// Instance returns the instance, nil before the initialisation. It belongs to the slave.
func (s *Slave) Instance() *fmi.Instance { return s.instance }

// State returns the state of the instance.
func (s *Slave) State() fmi.State { return s.instance.State() }

// InputMax returns the upper bound of a Real input, +Inf if it has none.
func (s *Slave) InputMax(k int) float64 {
	if most := s.in[k].variable.Real.Max; most != nil {
		return *most
	}
	return math.Inf(1)
}

// identity identifies the FMU and its settings, because capabilities may depend on these: a parameter may
// choose the solver, or switch off a path from input to output. It contains the values of all given
// variables, but of Reals only whether they are zero, so that systems that differ in the sizes of
// parameters share measurements.
func (c *Config) identity() string {
	if c.FMU.Hash == "" || len(c.Starts) == 0 && len(c.FMU.Structure) == 0 && !c.Quirks.Has(SetStarts) {
		return c.FMU.Hash
	}
	set := slices.Clone(c.Starts)
	slices.SortStableFunc(set, func(a, b Value) int { return strings.Compare(a.Variable, b.Variable) })
	h := sha256.New()
	if c.Quirks.Has(SetStarts) {
		fmt.Fprintln(h, "all documented starts")
	}
	if len(c.FMU.Structure) > 0 {
		fmt.Fprintln(h, c.FMU.Sizes())
	}
	for i, v := range set {
		if i+1 < len(set) && set[i+1].Variable == v.Variable {
			continue // the last one counts
		}
		fmt.Fprintf(h, "%q %t %d %t %q\n", v.Variable, v.Real != 0, v.Integer, v.Boolean, v.String)
	}
	return c.FMU.Hash + "+" + hex.EncodeToString(h.Sum(nil))
}

// CacheDir returns the folder for measurements of FMUs, "" if the system has no place for it. The folder may
// not exist yet.
func CacheDir() string {
	base, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(base, "macrostep")
}
