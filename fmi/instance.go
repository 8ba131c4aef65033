package fmi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
	protocol "github.com/macrostep/macrostep/fmi/internal/remote"
)

// InstanceOptions are the options of Instantiate.
type InstanceOptions struct {
	Visible   bool // the FMU may interact with the user
	LoggingOn bool // the FMU logs debug messages, and none of its messages is dropped
	// Log receives the messages of the instance, one at a time, in the goroutine
	// that calls the instance or in a thread of the FMU. Nil discards them. Log must
	// not call runtime.Goexit (or t.Fatal), nor acquire a lock that is held across
	// calls of the instance. A panic in Log is discarded, because it must not unwind
	// the frames of the FMU.
	Log func(LogMessage)
	// Trace logs every call; nil = none.
	Trace *Trace
	// CallByCall enters C separately for each call, as a Trace does. It is for
	// comparison with batches of calls.
	CallByCall bool
	// Launcher starts a separate process for the instance (see package fmi/worker);
	// nil = this process. If the FMU crashes or ends its process, the call returns a
	// *ProcessError. The results are the same as in this process, and so is what surrounds the FMU.
	Launcher Launcher
	// Dir is the working folder of the separate process; "" = that of this process. On another machine a
	// process has a temporary folder.
	Dir string
	// Restarts is how often the process of the instance may be replaced after it ended
	// in a call; 0 = never. It requires Launcher and calls of Keep.
	Restarts int
	// StepTimeout is the longest time that a step may be Pending, including the time
	// in fmi2DoStep; 0 = unlimited. After it GetStatus returns an error: in this process
	// the step is cancelled, or the instance is unusable if the FMU cannot cancel; a
	// separate process is ended and not replaced. The Launcher limits the time of calls
	// that do not return.
	StepTimeout time.Duration
	// Context cancels compiling, if Load has not been called. After its end, the instance waits for another machine only
	// as long as that gives signs of life. nil = context.Background().
	Context context.Context
	// EventMode: the FMU has an event mode, and handles events in it (fmi3 19).
	EventMode bool
	// NoState: the state of the FMU is not to be relied on. On another machine the instance ends with the connection.
	NoState bool
}

// Instance is one instance of an FMU for Co-Simulation. It has one caller at a
// time, which should always be in the same locked thread (checklist fmi2 38).
//
// Before it calls the FMU, every method returns a *UsageError if the state machine
// forbids the call (checklist fmi2 39), the FMU does not support it, or lengths do
// not match. If the FMU returns Discard, Error or Fatal, the error is a
// *StatusError; Warning is not an error.
// After Error only SetFMUState, Reset and Free are useful; after Fatal no instance
// of the FMU is called. Methods with empty lists do not call the FMU (checklist
// fmi2 45).
type Instance struct {
	fmu  *FMU
	api  capi.Function // version of its functions
	name string
	tag  native.Tag // 0 in a separate process
	// The library, in this or a separate process.
	library string
	sym     *[capi.NumFunctions]uintptr
	fatal   *atomic.Bool
	comp    uintptr // fmi2Component
	state   State
	step    *step      // results of fmi3DoStep; nil with FMI 2.0
	events  *events    // nil unless in event mode
	setup   bool       // SetupExperiment was called since Instantiated
	given   Experiment // by it
	from    float64    // start time of its last step, s
	time    float64    // its time, at the end of a pending step, s
	gone    error      // why an instance in this process is unusable; nil = usable
	warned  bool       // a Warning without a message has been reported

	run    func(*native.Batch)
	remote *remote // nil in this process
	batch  *native.Batch
	rec    *native.Record // the one record of batch

	// crossings counts the entries into C. It is deliberately not atomic: the race
	// detector does not see accesses in C, but it detects two callers here.
	crossings uint64
	ticks     uint64
	spent     uint64            // ticks of the last crossing
	pending   protocol.Patience // with the pending step; Limit 0 = unlimited
	took      time.Duration     // duration of the last call; only with a trace

	mem      native.Memory // lives as long as the instance
	vrBuf    native.Buffer
	valBuf   native.Buffer
	auxBuf   native.Buffer
	textBuf  native.Buffer
	handle   *uintptr // slot for state handles
	size     *uintptr // slot for sizes
	states   []*FMUState
	steppers []*Stepper
	plain    [2]group // of groups, FMI 2.0; turn is the last one
	turn     int
	arrays   map[uint32][]value // FMI 3.0: arrays that have been set
	log      *capi.Log
	trace    *Trace
	line     line // of the trace
	single   bool // one call per crossing
}

// Instantiate makes an instance (checklist fmi2 30–37), whose name must not be blank
// and should be unique. If Load has not been called, it loads the library and logs
// the findings of Load. The caller must Free the instance.
func (f *FMU) Instantiate(name string, o InstanceOptions) (*Instance, error) {
	if strings.TrimSpace(name) == "" || strings.ContainsRune(name, 0) {
		return nil, usage(name, "%s: %q is not a valid name: it must not be blank or contain NUL", capi.Instantiate|f.api(), name)
	}
	in := &Instance{fmu: f, api: f.api(), name: name, run: native.Run, pending: protocol.Patience{Limit: o.StepTimeout},
		trace: o.Trace, single: o.CallByCall || o.Trace != nil}
	if o.Context == nil {
		o.Context = context.Background()
	}
	in.log = &capi.Log{Instance: name, FMU: filepath.Base(f.Path), VariableName: f.variableName, Keep: report, All: o.LoggingOn}
	if o.Log != nil {
		in.log.Sink = func(m native.Message) { o.Log(public(m)) }
	}
	var err error
	if o.Launcher == nil {
		err = in.instantiateHere(o)
	} else {
		err = in.instantiateIn(o.Launcher, o)
	}
	if err != nil {
		return nil, err
	}
	if err = in.configure(); err != nil {
		return nil, errors.Join(err, in.Free())
	}
	if f.told.CompareAndSwap(false, true) { // Load has not been called
		for _, d := range f.findings.Findings {
			in.log.Say(noteIf(d.Level == diag.Info), d.String())
		}
	}
	return in, nil
}

// instantiateHere makes the instance in this process.
func (in *Instance) instantiateHere(o InstanceOptions) error {
	f := in.fmu
	if _, err := f.loadOnce(o.Context, in.name); err != nil {
		return err
	}
	img := f.image.Load()
	in.library, in.sym, in.fatal = img.Path, &img.Sym, &img.Fatal
	if in.fatal.Load() {
		return in.refuse(capi.Instantiate, StateFatal)
	}
	if err := f.claimOnce(in.name); err != nil {
		return err
	}
	in.tag = note(notedInstance, in.name, f)
	if err := in.instantiate(o); err != nil {
		f.releaseOnce()
		return errors.Join(err, in.dispose())
	}
	used.Store(true)
	alive.Add(1)
	return nil
}

// instantiate allocates the C memory of the instance and calls fmi2Instantiate.
func (in *Instance) instantiate(o InstanceOptions) error {
	in.batch = in.mem.Batch()
	recs, err := native.Slice[native.Record](&in.mem, 1)
	if err != nil {
		return err
	}
	in.rec, in.batch.Recs, in.batch.N = &recs[0], native.Address(recs), 1
	words, err := native.Slice[uintptr](&in.mem, 2)
	if err != nil {
		return err
	}
	in.handle, in.size = &words[0], &words[1]
	if in.api == capi.V3 {
		steps, err := native.Slice[step](&in.mem, 1)
		if err != nil {
			return err
		}
		in.step = &steps[0]
	}
	if o.EventMode {
		if in.api != capi.V3 || !in.fmu.Description.CoSimulation.HasEventMode {
			return usage(in.name, "%s has no event mode (hasEventMode of FMI 3.0): do without it", in.fmu.Path)
		}
		if in.events, err = newEvents(in); err != nil {
			return err
		}
	}
	if in.remote == nil {
		if err = in.log.Register(); err != nil {
			return err
		}
	}
	var texts [3]uintptr // name, GUID, resources; valid until Free, since some FMUs keep the pointers
	for k, s := range []string{in.name, in.fmu.Description.GUID, in.fmu.uri} {
		b, err := native.Slice[byte](&in.mem, len(s)+1)
		if err != nil {
			return err
		}
		copy(b, s)
		texts[k] = native.Address(b)
	}
	const coSimulation = 1
	g := in.watch()
	if in.api == capi.V3 {
		in.prepare(capi.Instantiate, texts[0], texts[1], texts[2], flag(o.Visible), flag(o.LoggingOn), flag(o.EventMode),
			flag(o.EventMode), 0, 0, in.callback("environment"), in.callback("logger"), 0)
	} else {
		in.prepare(capi.Instantiate, texts[0], coSimulation, texts[1], texts[2],
			in.callback("callbacks"), flag(o.Visible), flag(o.LoggingOn))
	}
	in.cross(in.batch, in.now(), 0)
	in.comp = in.rec.Ret
	in.traceCall(capi.Instantiate, in.rec)
	in.report(g)
	if in.lost() != nil {
		return in.lost()
	}
	if in.comp == 0 {
		msg := in.log.TakeRecent()
		if msg == "" {
			msg = "it gave no reason"
		}
		guid := "guid"
		if in.api == capi.V3 {
			guid = "instantiationToken"
		}
		return &RefusedError{fmt.Sprintf("%s: %s of %s refused: %s; common causes are a %s in modelDescription.xml "+
			"that differs from that of the library (%s here), a missing file in resources, "+
			"or a missing licence of the exporting tool", in.name, in.is(capi.Instantiate), in.fmu.Path, msg, guid,
			in.fmu.Description.GUID)}
	}
	return nil
}

// configure sets the structural parameters in Configuration Mode, which lasts as long as this call (fmi3 16).
func (in *Instance) configure() error {
	names := slices.Sorted(maps.Keys(in.fmu.Structure))
	if len(names) == 0 {
		return nil
	}
	vr, values := make([]description.ValueReference, len(names)), make([]int64, len(names))
	for k, name := range names {
		v, _ := in.fmu.Description.Variable(name)
		vr[k], values[k] = v.ValueReference, v.StartInteger
	}
	err := in.transition(capi.EnterConfigurationMode, StateInstantiated)
	if err == nil {
		err = in.SetInteger(vr, values)
	}
	if err == nil {
		err = in.transition(capi.ExitConfigurationMode, StateInstantiated)
	}
	if err != nil {
		in.state = max(in.state, StateError) // Discard, too: the sizes are not those of the description
		return fmt.Errorf("%w; the FMU does not take %s; give other sizes, or none", err, in.fmu.Sizes())
	}
	return nil
}

// callback returns an argument for the log messages of an instance in this process.
func (in *Instance) callback(kind string) uintptr {
	if in.remote != nil {
		return 0
	}
	return in.log.Callback(kind)
}

// is returns a function in the version of the FMU.
func (in *Instance) is(f capi.Function) capi.Function { return f | in.api }

// RefusedError is the error of an FMU that makes no instance.
type RefusedError struct{ text string }

func (e *RefusedError) Error() string { return e.text }

// watch returns a guard of the process settings; nil for an instance in a separate process.
func (in *Instance) watch() *native.Guard {
	if in.remote != nil {
		return nil
	}
	return native.Watch()
}

// lost returns the error of an unusable instance, else nil.
func (in *Instance) lost() error {
	if in.remote == nil {
		return in.gone
	}
	return in.remote.err
}

// refuse returns the error of a call of f that is not legal in state s.
func (in *Instance) refuse(f capi.Function, s State) error {
	if err := in.lost(); err != nil && s == StateFatal {
		return err
	}
	return orderError(in.name, in.is(f), s)
}

// noteIf returns the status of a message of our own that is a note, or else a warning.
func noteIf(harmless bool) int32 {
	if harmless {
		return capi.StatusOK
	}
	return capi.StatusWarning
}

// report restores the process settings that the FMU changed, and logs them.
func (in *Instance) report(g *native.Guard) {
	if g == nil {
		return
	}
	for _, change := range g.Restore() {
		in.log.Say(noteIf(!change.Lasting), "the FMU "+change.Text)
	}
}

// Tell logs a warning about the instance, with the category OwnCategory.
func (in *Instance) Tell(text string) { in.log.Say(capi.StatusWarning, text) }

// dispose releases the memory of the instance without calling the FMU, and ends its
// separate process.
func (in *Instance) dispose() error {
	var err error
	if in.remote != nil {
		err = in.remote.end()
	}
	in.log.Close()
	in.log.Unregister()
	for _, s := range in.steppers {
		s.clear()
	}
	in.mem.Release()
	for _, b := range []*native.Buffer{&in.vrBuf, &in.valBuf, &in.auxBuf, &in.textBuf} {
		b.Release()
	}
	forget(in.tag)
	in.tag = 0
	in.steppers, in.states, in.batch, in.rec = nil, nil, nil, nil
	in.state = StateFreed
	return err
}

// Name returns the name of the instance.
func (in *Instance) Name() string { return in.name }

// FMU returns the FMU of the instance.
func (in *Instance) FMU() *FMU { return in.fmu }

// State returns the state of the instance (checklist fmi2 39).
func (in *Instance) State() State {
	if in.state != StateFreed && in.fatal.Load() {
		return StateFatal
	}
	return in.state
}

// Ticks returns the time spent inside the FMU so far, in ticks (see TickRate).
func (in *Instance) Ticks() uint64 { return in.ticks }

func flag(b bool) uintptr {
	if b {
		return 1
	}
	return 0
}

// begin checks whether f may be called now.
func (in *Instance) begin(f capi.Function) error {
	if s := in.State(); !in.legal(f, s) {
		return in.refuse(f, s)
	}
	return in.supports(f)
}

// supports checks whether the library exports f and the description declares it.
func (in *Instance) supports(f capi.Function) error {
	if in.sym[f] == 0 {
		return in.argument(f, "the library %s does not export this function; export the FMU again with the function, or do without it", in.library)
	}
	if name, ok := in.fmu.declares(f); !ok {
		return in.argument(f, "modelDescription.xml does not declare %s, so the function may not be called", in.fmu.spelled(name))
	}
	return nil
}

// declares reports whether the description allows f, and the attribute of CoSimulation for it in FMI 2.0.
func (f *FMU) declares(fn capi.Function) (attribute string, ok bool) {
	c := f.Description.CoSimulation
	switch fn {
	case capi.GetFMUState, capi.SetFMUState, capi.FreeFMUState:
		return "canGetAndSetFMUstate", c.CanGetAndSetFMUState
	case capi.SerializedFMUStateSize, capi.SerializeFMUState, capi.DeSerializeFMUState:
		return "canSerializeFMUstate", c.CanSerializeFMUState
	case capi.GetDirectionalDerivative:
		return "providesDirectionalDerivative", c.ProvidesDirectionalDerivative
	case capi.SetRealInputDerivatives:
		return "canInterpolateInputs", c.CanInterpolateInputs
	case capi.GetRealOutputDerivatives:
		return "maxOutputDerivativeOrder", c.MaxOutputDerivativeOrder > 0
	}
	return "", true
}

// spelled returns an attribute of FMI 2.0 as the version of the FMU spells it.
func (f *FMU) spelled(attribute string) string {
	if f.api() == capi.V3 {
		return strings.NewReplacer("FMUstate", "FMUState", "Derivative", "Derivatives").Replace(attribute)
	}
	return attribute
}

// prepare sets up the record for a call of f with integer arguments.
func (in *Instance) prepare(f capi.Function, args ...uintptr) *native.Record {
	r := in.aim(f)
	copy(r.Int[:], args)
	return r
}

// aim sets function and signature of the record.
func (in *Instance) aim(f capi.Function) *native.Record {
	r := in.rec
	r.Fn, r.Sig, r.Tag = in.sym[f], in.is(f).Signature(), in.tag.Of(uint8(in.is(f)))
	return r
}

// now returns the time of the instance, s; NaN before SetupExperiment.
func (in *Instance) now() float64 {
	if !in.setup {
		return math.NaN()
	}
	return in.time
}

// cross makes the calls of a batch, at time t or in a step from t by h.
func (in *Instance) cross(b *native.Batch, t, h float64) {
	in.crossings++
	b.Time, b.Step = t, h
	if in.trace == nil {
		in.run(b)
	} else {
		t := time.Now()
		in.run(b)
		in.took = time.Since(t)
	}
	in.crossed(b)
}

// post starts the calls of a batch in a process of its own, and await waits for their end.
func (in *Instance) post(b *native.Batch) {
	in.crossings++
	in.remote.Post(b)
}

func (in *Instance) await(b *native.Batch) {
	in.remote.Await(b)
	in.crossed(b)
}

// crossed evaluates time and floating-point modes of a crossing.
func (in *Instance) crossed(b *native.Batch) {
	in.spend(native.Span(b.Start, b.End), 1)
	if b.Modes != 0 {
		in.changedModes(b.Records())
	}
}

// spend adds the ticks of a crossing, which stands for so many.
func (in *Instance) spend(ticks, weight uint64) {
	in.spent = ticks
	in.ticks += weight * ticks
}

// changedModes logs, once for an FMU, that it changed the floating-point modes, and in
// or near which call. The trampoline has restored them.
func (in *Instance) changedModes(recs []native.Record) {
	for k := range recs {
		r := &recs[k]
		if r.Sig&native.SigModes == 0 {
			continue
		}
		r.Sig &^= native.SigModes
		if in.fmu.modes.CompareAndSwap(false, true) {
			where := "in " + in.is(capi.Function(slices.Index(in.sym[:], r.Fn))).String()
			if len(recs) > 1 {
				where += " or in the calls before it"
			}
			in.log.Say(capi.StatusOK, fmt.Sprintf("the FMU changes the floating-point modes (rounding, flush to zero or exceptions) %s; "+
				"they are restored after it", where))
		}
	}
}

// call makes the prepared call.
func (in *Instance) call(f capi.Function) error { return in.callAt(f, in.now(), 0) }

// callAt makes the prepared call at time t, or a step from t by h.
func (in *Instance) callAt(f capi.Function, t, h float64) error {
	in.cross(in.batch, t, h)
	in.traceCall(f, in.rec)
	if s := Status(in.rec.Status()); s != StatusOK {
		return in.settle(f, s)
	}
	return nil
}

func (in *Instance) traceCall(f capi.Function, r *native.Record) {
	if in.trace != nil {
		in.trace.add(in, in.is(f), r)
	}
}

// settle sets the state after a status other than OK, and returns the error
// (checklist fmi2 51–55). After a failed status query the state is unchanged
// (checklist fmi2 69).
func (in *Instance) settle(f capi.Function, s Status) error {
	if err := in.lost(); err != nil {
		in.state = StateFatal
		return err
	}
	msg := in.log.TakeRecent()
	query := f >= capi.GetStatus && f <= capi.GetStringStatus
	switch {
	case s == StatusWarning:
		in.tellWarning(in.is(f).String(), msg)
		return nil
	case s == StatusFatal:
		in.state = StateFatal
		in.fatal.Store(true)
	case s == StatusDiscard:
		if f == capi.DoStep {
			in.state = StateStepFailed
		}
	case s == StatusPending && f == capi.DoStep:
		in.state = StateStepInProgress
		in.pend()
		return nil
	case query:
	default:
		in.state = StateError
	}
	e := &StatusError{Instance: in.name, Func: in.is(f).String(), Status: s, Msg: msg, call: f}
	if s == StatusDiscard && f == capi.DoStep && in.endedEarly() {
		if e.With = "earlyReturn, which was not allowed"; in.step.terminate&0xff != 0 {
			e.With = "terminateSimulation"
		}
	}
	return e
}

// tellWarning logs, once, that a call returned Warning without a message.
func (in *Instance) tellWarning(call, msg string) {
	if msg == "" && !in.warned {
		in.warned = true
		in.log.Say(capi.StatusWarning, call+" returned Warning without logging a reason")
	}
}

func (in *Instance) argument(f capi.Function, format string, args ...any) error {
	return usage(in.name, "%s: %s", in.is(f), fmt.Sprintf(format, args...))
}

// SetDebugLogging switches debug logging of the given declared categories on or off
// (checklist fmi2 24); none means all.
func (in *Instance) SetDebugLogging(on bool, categories []string) error {
	if err := in.begin(capi.SetDebugLogging); err != nil {
		return err
	}
	for _, c := range categories {
		if !slices.ContainsFunc(in.fmu.Description.LogCategories, func(l description.LogCategory) bool { return l.Name == c }) {
			return in.argument(capi.SetDebugLogging, "modelDescription.xml declares no log category %q", c)
		}
	}
	pointers, err := native.BufferSlice[uintptr](&in.valBuf, len(categories))
	if err != nil {
		return in.argument(capi.SetDebugLogging, "%v", err)
	}
	p := uintptr(0)
	if len(categories) > 0 {
		p = native.Address(pointers)
	}
	if err := in.texts(capi.SetDebugLogging, p, categories, false); err != nil {
		return err
	}
	in.prepare(capi.SetDebugLogging, in.comp, flag(on), uintptr(len(categories)), p)
	return in.call(capi.SetDebugLogging)
}

// Experiment holds the arguments of SetupExperiment (checklist fmi2 40).
type Experiment struct {
	Tolerance *float64 // relative; nil without error control
	Start     float64  // s
	// Stop is the stop time, s; FMUs must refuse steps beyond it. Nil = not defined.
	Stop *float64
}

// SetupExperiment passes the experiment to the FMU; with FMI 3.0 EnterInitializationMode does (fmi3 16). It must
// precede EnterInitializationMode.
func (in *Instance) SetupExperiment(e Experiment) error {
	f := capi.SetupExperiment
	if in.api == capi.V3 {
		f = capi.EnterInitializationMode
	}
	if err := in.begin(f); err != nil {
		return err
	}
	for _, v := range []*float64{e.Tolerance, &e.Start, e.Stop} {
		if v != nil && !finite(*v) {
			return in.argument(f, "start, stop and tolerance must be finite numbers, not %v", *v)
		}
	}
	in.given = e
	if in.api != capi.V3 {
		in.experiment(f)
		if err := in.callAt(f, e.Start, 0); err != nil {
			return err
		}
	}
	in.setup, in.time = true, e.Start
	return nil
}

// experiment sets up the record for a call of f, whose arguments are the experiment.
func (in *Instance) experiment(f capi.Function) {
	e := &in.given
	r := in.prepare(f, in.comp, flag(e.Tolerance != nil), flag(e.Stop != nil))
	r.Float = [3]float64{1: e.Start}
	if e.Tolerance != nil {
		r.Float[0] = *e.Tolerance
	}
	if e.Stop != nil {
		r.Float[2] = *e.Stop
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// transition calls a function whose only argument is the component, or with FMI 3.0 also the experiment, and sets the
// state. It restores the process settings that the FMU changes meanwhile.
func (in *Instance) transition(f capi.Function, to State) error {
	if err := in.begin(f); err != nil {
		return err
	}
	g := in.watch()
	if in.is(f) == capi.EnterInitializationMode|capi.V3 {
		in.experiment(f)
	} else {
		in.prepare(f, in.comp)
	}
	err := in.call(f)
	in.report(g)
	if err == nil {
		in.state = to
	}
	return err
}

// EnterInitializationMode begins the initialisation.
func (in *Instance) EnterInitializationMode() error {
	if in.State() == StateInstantiated && !in.setup {
		return usage(in.name, "%s in state %s: %s must be called first", in.is(capi.EnterInitializationMode), in.state,
			capi.SetupExperiment)
	}
	return in.transition(capi.EnterInitializationMode, StateInitialization)
}

// ExitInitializationMode ends the initialisation. Steps may follow, or in event mode Stepper.Start.
func (in *Instance) ExitInitializationMode() error {
	if in.events != nil {
		if err := in.begin(capi.ExitInitializationMode); err != nil {
			return err
		}
		if err := in.events.start(); err != nil {
			return err
		}
		return in.transition(capi.ExitInitializationMode, StateEventMode)
	}
	return in.transition(capi.ExitInitializationMode, StateStepComplete)
}

// Terminate ends the simulation of the FMU. Values may still be read.
func (in *Instance) Terminate() error { return in.transition(capi.Terminate, StateTerminated) }

// Reset returns the instance to the state after Instantiate; start values and
// SetupExperiment must be set again (checklist fmi2 61).
func (in *Instance) Reset() error {
	err := in.transition(capi.Reset, StateInstantiated)
	if err == nil {
		in.setup, in.arrays = false, nil
		if in.events != nil {
			in.events.schedule = schedule{Next: math.Inf(1)}
		}
		err = in.configure()
	}
	return err
}

// Free frees all saved states and then the instance (checklist fmi2 58, 62). Its
// steppers and their slices become invalid. Further calls have no effect. After
// Fatal the FMU is not called, and memory that it may still use stays allocated.
// While a step is in progress Free returns an error, as the standard requires: call
// GetStatus until the step is done, or CancelStep. Free flushes the streams of C (Flush).
func (in *Instance) Free() error {
	switch in.State() {
	case StateFreed:
		return nil
	case StateFatal:
		if in.remote != nil { // the FMU uses no memory of this process
			return in.dispose()
		}
		in.log.Close()
		for _, s := range in.steppers {
			s.clear()
		}
		native.Flush()
		in.state = StateFreed
		return nil
	}
	if err := in.begin(capi.FreeInstance); err != nil {
		return err
	}
	failed := in.state == StateError
	var errs []error
	for _, s := range slices.Backward(slices.Clone(in.states)) {
		if err := in.FreeFMUState(s); err != nil {
			errs = append(errs, err)
		}
	}
	if in.State() == StateFatal {
		return errors.Join(append(errs, in.Free())...)
	}
	g := in.watch()
	in.prepare(capi.FreeInstance, in.comp)
	in.cross(in.batch, in.now(), 0)
	in.traceCall(capi.FreeInstance, in.rec)
	in.report(g)
	if in.remote == nil {
		native.Flush()
		alive.Add(-1)
		if failed {
			erring.Store(true)
		}
	}
	return errors.Join(append(errs, in.lost(), in.dispose())...)
}

// DoStep advances the instance from time t by h > 0, both in s (checklist fmi2
// 48–53). noRestoreBefore promises that no state before t will be set. The status is
// OK or Warning; Pending without an error (call GetStatus until the step is done);
// or Discard, Error or Fatal with a *StatusError.
func (in *Instance) DoStep(t, h float64, noRestoreBefore bool) (Status, error) {
	if v := in.events; v != nil {
		if v.bare == nil {
			var err error
			if v.bare, err = in.NewStepper(StepPlan{}); err != nil {
				return StatusErr, err
			}
		}
		v.bare.NoRestoreBefore = noRestoreBefore
		return v.bare.Step(t, h, false)
	}
	if err := in.begin(capi.DoStep); err != nil {
		return StatusErr, err
	}
	if err := in.checkStep(t, h); err != nil {
		return StatusErr, err
	}
	r := in.aim(capi.DoStep)
	r.Int[0], r.Int[1] = in.comp, flag(noRestoreBefore)
	r.Float[0], r.Float[1] = t, h
	in.stepResults(r)
	in.from, in.time = t, t+h
	in.forgetStep()
	if err := in.callAt(capi.DoStep, t, h); err != nil || !in.endedEarly() {
		return in.lastStatus(), err
	}
	return StatusDiscard, in.settle(capi.DoStep, StatusDiscard)
}

// step has the results of fmi3DoStep but its status, as C writes them.
type step struct {
	event, terminate, early uint64 // fmi3Boolean in the lowest byte
	last                    float64
}

// stepResults adds the arguments of fmi3DoStep for its results to a record.
func (in *Instance) stepResults(r *native.Record) {
	if s := in.step; s != nil {
		copy(r.Int[2:], []uintptr{native.AddressOf(&s.event), native.AddressOf(&s.terminate),
			native.AddressOf(&s.early), native.AddressOf(&s.last)})
	}
}

// forgetStep clears the results of the last step, which Discard leaves as they are.
func (in *Instance) forgetStep() {
	if in.step != nil {
		*in.step = step{}
	}
}

// endedEarly reports whether the last step, whose status was OK or Warning, ended the simulation or, without event
// mode, did not get to its end (fmi3 17). Its status then counts as Discard, as that of an FMU of FMI 2.0 in this case.
func (in *Instance) endedEarly() bool {
	return in.step != nil && (in.step.terminate&0xff != 0 || in.step.early&0xff != 0 && in.events == nil)
}

// lastStatus returns the status of the last single call; an undefined status is Error.
func (in *Instance) lastStatus() Status { return defined(Status(in.rec.Status())) }

func defined(s Status) Status {
	if s < StatusOK || s > StatusPending {
		return StatusErr
	}
	return s
}

func (in *Instance) checkStep(t, h float64) error {
	if !(h > 0) || !finite(t) || !finite(h) {
		return in.argument(capi.DoStep, "cannot step from t = %v by h = %v: both must be finite, and h greater than 0", t, h)
	}
	return nil
}

// CancelStep cancels a pending step. Afterwards SetFMUState, Reset or Free must follow.
func (in *Instance) CancelStep() error { return in.transition(capi.CancelStep, StateStepCanceled) }

// queryStatus calls one of the status functions, whose value has the C type T.
func queryStatus[T any](in *Instance, f capi.Function, k StatusKind) (T, error) {
	var none T
	if err := in.begin(f); err != nil {
		return none, err
	}
	*in.handle = 0
	value := (*T)(unsafe.Pointer(in.handle))
	in.prepare(f, in.comp, uintptr(k), in.handleAddress())
	if err := in.call(f); err != nil {
		return none, err
	}
	return *value, nil
}

// GetStatus returns the status of kind DoStepStatus. When a pending step is done, the
// state of the instance changes as if DoStep had returned the status. If the step has
// been pending for longer than InstanceOptions.StepTimeout, the error says so; in a
// separate process it is a *ProcessError.
func (in *Instance) GetStatus(k StatusKind) (Status, error) {
	value, err := queryStatus[int32](in, capi.GetStatus, k)
	if err != nil {
		return StatusErr, err
	}
	s := Status(value)
	if in.state == StateStepInProgress && k == DoStepStatus {
		if s == StatusPending {
			if in.pending.Limit > 0 && in.pending.Late() {
				return StatusErr, in.giveUp()
			}
			return s, nil
		}
		in.state = StateStepComplete
		if s != StatusOK {
			err = in.settle(capi.DoStep, s)
		}
	}
	return defined(s), err
}

// GetRealStatus returns the Real status LastSuccessfulTime, s.
func (in *Instance) GetRealStatus(k StatusKind) (float64, error) {
	if in.step != nil {
		if in.endedEarly() {
			return in.step.last, nil
		}
		return in.from, nil // after Discard the FMU is where the step began
	}
	return queryStatus[float64](in, capi.GetRealStatus, k)
}

// GetIntegerStatus returns an Integer status; the standard defines none.
func (in *Instance) GetIntegerStatus(k StatusKind) (int32, error) {
	return queryStatus[int32](in, capi.GetIntegerStatus, k)
}

// GetBooleanStatus returns the Boolean status Terminated.
func (in *Instance) GetBooleanStatus(k StatusKind) (bool, error) {
	if in.step != nil {
		return in.step.terminate&0xff != 0, nil
	}
	value, err := queryStatus[int32](in, capi.GetBooleanStatus, k)
	return value != 0, err
}

// GetStringStatus returns the String status PendingStatus.
func (in *Instance) GetStringStatus(k StatusKind) (string, error) {
	value, err := queryStatus[uintptr](in, capi.GetStringStatus, k)
	return capi.ValidUTF8(native.String(value, native.MaxString)), err
}
