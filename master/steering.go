package master

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Scalar is the value of one variable.
type Scalar struct {
	Kind    Kind
	Real    float64
	Integer int64 // also of an enumeration
	Boolean bool
	Text    string
}

// String returns the value as results show it: a Real with as few digits as distinguish it, true or false,
// a text in quotes.
func (s Scalar) String() string {
	switch s.Kind {
	case Integer:
		return strconv.FormatInt(s.Integer, 10)
	case Boolean:
		return strconv.FormatBool(s.Boolean)
	case String:
		return strconv.Quote(s.Text)
	}
	return strconv.FormatFloat(s.Real, 'g', -1, 64)
}

// Tunable is a subsystem with variables that may be set between macro steps and that the system does not
// drive: tunable parameters and free inputs.
type Tunable interface {
	// Tunables lists them. The list does not change and belongs to the subsystem.
	Tunables() []Port
	// SetTunable sets entry k of Tunables, at a communication point after the initialisation. Outputs
	// change with the next step. Only the field of v for the kind is used.
	SetTunable(k int, v Scalar) error
}

// place is where the value of a variable is kept.
type place uint8

const (
	inInputs place = iota
	inOutputs
	inDiscreteInputs
	inDiscreteOutputs
	inWatched
	inTunables // and not read
)

// Variable is a variable of a system in a run: an input, an output, a watched variable, or one that can be
// set between steps (Tunable). Its methods must be called between steps, from the goroutine of the run. It
// is valid until the run is closed.
type Variable struct {
	Name string // "subsystem.port"
	Port Port

	run    *Run
	place  place
	sub    int
	at     int  // index in u or y, or among the values of the kind
	tune   int  // index in Tunables; -1 = none
	marked bool // it is in Result.Manipulated
}

// Variable finds a variable by its name, "subsystem.port". Inputs and outputs come before
// tunables and watched variables of the same name.
func (r *Run) Variable(name string) (*Variable, error) {
	if v, ok := r.variables[name]; ok {
		return v, nil
	}
	best := -1
	var found *Variable
	for i, info := range r.sys.Infos {
		port, ok := strings.CutPrefix(name, info.Name+".")
		if !ok || best >= 0 && len(info.Name) <= len(r.sys.Infos[best].Name) {
			continue
		}
		if v := r.find(i, port); v != nil {
			best, found = i, v
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no variable is called %q", name)
	}
	found.Name, found.run = name, r
	if r.variables == nil {
		r.variables = map[string]*Variable{}
	}
	r.variables[name] = found
	return found, nil
}

// Variables returns the names of all variables, ascending.
func (r *Run) Variables() []string {
	var names []string
	for i, info := range r.sys.Infos {
		lists := [][]Port{info.In, info.Out, info.DiscreteIn, info.DiscreteOut, info.Watch}
		if t := r.x.able[i].tunable; t != nil {
			lists = append(lists, t.Tunables())
		}
		for _, ports := range lists {
			for _, p := range ports {
				names = append(names, info.Name+"."+p.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Span returns start time, stop time and step size of the options, in s.
func (r *Run) Span() (start, stop, step float64) { return r.opt.Start, r.opt.Stop, r.opt.Step }

// find returns the variable of a subsystem, nil = there is none.
func (r *Run) find(i int, port string) *Variable {
	info := r.sys.Infos[i]
	named := func(p Port) bool { return p.Name == port }
	for _, list := range []struct {
		ports []Port
		place place
		first int // of the subsystem's Reals in u or y; -1 = the place is among values of the kind
	}{
		{info.In, inInputs, r.sys.InAt[i]}, {info.Out, inOutputs, r.sys.OutAt[i]},
		{info.DiscreteIn, inDiscreteInputs, -1}, {info.DiscreteOut, inDiscreteOutputs, -1},
	} {
		if k := slices.IndexFunc(list.ports, named); k >= 0 {
			at := list.first + k
			if list.first < 0 {
				at = indexOfKind(list.ports, k)
			}
			return &Variable{Port: list.ports[k], place: list.place, sub: i, at: at, tune: -1}
		}
	}
	v := &Variable{sub: i, tune: -1}
	if t := r.x.able[i].tunable; t != nil {
		if v.tune = slices.IndexFunc(t.Tunables(), named); v.tune >= 0 {
			v.Port, v.place = t.Tunables()[v.tune], inTunables
		}
	}
	if k := slices.IndexFunc(info.Watch, named); k >= 0 {
		v.Port, v.place, v.at = info.Watch[k], inWatched, indexOfKind(info.Watch, k)
	} else if v.tune < 0 {
		return nil
	}
	return v
}

// Value returns the value at the present communication point: of an input as its subsystem gets it, of an
// output as its subsystem computes it.
func (v *Variable) Value() (Scalar, error) {
	r := v.run
	s := Scalar{Kind: v.Port.Kind}
	switch v.place {
	case inInputs:
		s.Real = r.record.point.U[v.at]
	case inOutputs:
		s.Real = r.record.point.Y[v.at]
	case inDiscreteInputs:
		s.read(&r.x.discreteIn[v.sub], v.at)
	case inDiscreteOutputs:
		s.read(&r.x.discreteOut[v.sub], v.at)
	case inWatched:
		s.read(&r.record.point.Watch[v.sub], v.at)
	case inTunables:
		return s, fmt.Errorf("%s is not read in this run; record it", v.Name)
	}
	return s, nil
}

// Readable reports whether the variable has a Value.
func (v *Variable) Readable() bool { return v.place != inTunables }

func (s *Scalar) read(from *Values, at int) {
	switch s.Kind {
	case Real:
		s.Real = from.Real[at]
	case Integer:
		s.Integer = from.Integer[at]
	case Boolean:
		s.Boolean = from.Boolean[at]
	case String:
		s.Text = from.String[at]
	}
}

// write stores the value as entry at of its kind.
func (s *Scalar) write(to *Values, at int) {
	switch s.Kind {
	case Real:
		to.Real[at] = s.Real
	case Integer:
		to.Integer[at] = s.Integer
	case Boolean:
		to.Boolean[at] = s.Boolean
	case String:
		to.String[at] = s.Text
	}
}

// Settable returns why the variable cannot be set; nil = it can.
func (v *Variable) Settable() error {
	s := v.run.x.steering
	switch {
	case s == nil:
		return fmt.Errorf("%s: variables can be set only in a run with hooks or with Options.Steer", v.Name)
	case v.tune >= 0 || v.place == inInputs || v.place == inDiscreteInputs:
		return nil
	case v.place == inWatched:
		return fmt.Errorf("%s is neither an input, an output nor a parameter that may change after the initialisation (FMI: tunable): "+
			"it cannot be set; structural parameters are set when the system is opened: --set", v.Name)
	}
	if len(v.sinks()) == 0 {
		return fmt.Errorf("%s is an output that nothing is connected to: setting it, which changes only the "+
			"inputs that it feeds, has no effect", v.Name)
	}
	return nil
}

// Coupled reports whether the variable is a Real input or output, so that Override applies.
func (v *Variable) Coupled() bool { return v.place == inInputs || v.place == inOutputs }

// sinks returns the inputs that an output feeds: entries of u, or discrete links.
func (v *Variable) sinks() []int {
	var out []int
	sys := v.run.sys
	if v.place == inOutputs {
		for k, y := range sys.source {
			if y == v.at {
				out = append(out, k)
			}
		}
		return out
	}
	for l := range sys.discrete {
		if d := &sys.discrete[l]; d.from == v.sub && d.kind == v.Port.Kind && d.out == v.at {
			out = append(out, l)
		}
	}
	return out
}

// Set sets the variable from the present communication point on, until Release: an input, even if it is
// connected; an output, for all inputs that it feeds (its own value can still be read); a tunable
// permanently.
func (v *Variable) Set(to Scalar) error {
	if err := v.Settable(); err != nil {
		return err
	}
	if to.Kind != v.Port.Kind {
		return fmt.Errorf("%s is of another type than the value %s", v.Name, to)
	}
	if v.Port.Kind == Real && to.Real-to.Real != 0 {
		return fmt.Errorf("%s: the value is %s; it must be finite", v.Name, notFinite(to.Real))
	}
	r := v.run
	switch {
	case v.tune >= 0:
		return v.setTunable(to)
	case v.Coupled():
		return v.Override(Linear{Offset: to.Real})
	}
	v.mark()
	if v.place == inDiscreteInputs {
		r.pin(v, v.sub, v.at, to)
	} else {
		for _, l := range v.sinks() {
			d := &r.sys.discrete[l]
			fed := r.sys.Infos[d.to].DiscreteIn[d.toPort]
			from, mapped := NewValues([]Port{v.Port}), NewValues([]Port{fed})
			to.write(&from, 0)
			copyMapped(&mapped, 0, &from, 0, d.kind, d.table, d.linear)
			value := Scalar{Kind: fed.Kind}
			value.read(&mapped, 0)
			r.pin(v, d.to, d.in, value)
		}
	}
	return nil
}

// Track is Set for successive samples of a signal: algorithms that use the history of inputs do not treat
// the change as a jump.
func (v *Variable) Track(to Scalar) error {
	before := v.run.disturbed
	err := v.Set(to)
	v.run.disturbed = before
	return err
}

// Override replaces a Real input, or a Real output for all inputs that it feeds, by Gain times its coupled
// value plus Offset, from the present communication point on, until Release. It is applied to
// extrapolated values: a jump takes effect at once, and the history of the signal does not change. The
// override of an output is applied before that of an input that it feeds.
func (v *Variable) Override(l Linear) error {
	if err := v.Settable(); err != nil {
		return err
	}
	if v.Port.Kind != Real || !v.Coupled() {
		return fmt.Errorf("%s is not a Real that is coupled: it can be set only", v.Name)
	}
	if d := l.Gain + l.Offset; d-d != 0 {
		return fmt.Errorf("%s: a factor of %g and an offset of %g: they must be finite", v.Name, l.Gain, l.Offset)
	}
	v.mark()
	s := v.run.x.steering
	if v.place == inInputs {
		s.own[v.at] = l
	} else {
		sys := v.run.sys
		for _, k := range v.sinks() {
			// u = g y + b, with a y + c in place of y: a (u − b) + g c + b.
			b := sys.offset[k]
			s.fed[k] = Linear{Gain: l.Gain, Offset: sys.gain[k]*l.Offset + b*(1-l.Gain)}
		}
	}
	v.run.steer()
	return nil
}

// Release ends Set and Override; a tunable gets back the value that it had before it was first set, if it
// is read in the run.
func (v *Variable) Release() error {
	if err := v.Settable(); err != nil {
		return err
	}
	r, s := v.run, v.run.x.steering
	r.disturbed = true
	switch {
	case v.tune >= 0:
		if k := s.tunedAt(v); k >= 0 {
			return v.setTunable(s.tuned[k].before)
		}
		return nil // it was never set
	case v.place == inInputs:
		s.own[v.at] = Linear{Gain: 1}
	case v.place == inOutputs:
		for _, k := range v.sinks() {
			s.fed[k] = Linear{Gain: 1}
		}
	default:
		for _, p := range s.pins {
			if p.by == v.Name {
				p.before.write(&r.x.discreteIn[p.sub], p.at)
			}
		}
		s.pins = slices.DeleteFunc(s.pins, func(p pin) bool { return p.by == v.Name })
		r.coupleAllDiscrete()
		return nil
	}
	r.steer()
	return nil
}

// steer applies overridden Reals.
func (r *Run) steer() {
	r.x.steering.combine()
	r.seeInputs()
}

// mark adds the variable to Result.Manipulated.
func (v *Variable) mark() {
	r := v.run
	r.disturbed = true
	if v.marked {
		return
	}
	v.marked = true
	if !slices.Contains(r.manipulated, v.Name) {
		r.manipulated = append(r.manipulated, v.Name)
	}
}

// setTunable sets a variable inside the subsystem.
func (v *Variable) setTunable(to Scalar) error {
	r := v.run
	if s := r.x.steering; v.place == inWatched && s.tunedAt(v) < 0 {
		before, err := v.Value()
		if err != nil {
			return err
		}
		s.tuned = append(s.tuned, tuned{v.Name, before})
	}
	t := r.x.able[v.sub].tunable
	r.x.touch(v.sub)
	if err := r.x.crew.on(v.sub, func() error { return t.SetTunable(v.tune, to) }); err != nil {
		return fmt.Errorf("%s: setting %s to %s at t = %.12g s: %w", r.sys.Infos[v.sub], v.Port.Name, to, r.t, err)
	}
	r.x.current = outside
	r.x.isSaved = false // saved states do not contain it
	if v.place == inWatched {
		to.write(&r.record.point.Watch[v.sub], v.at)
	}
	v.mark()
	return nil
}

// pin is a discrete input that is held at a value.
type pin struct {
	by      string // variable
	place   place  // of it
	sub, at int
	value   Scalar
	before  Scalar // value before, restored by Release if nothing drives the input
}

// tuned is a tunable that was set, with its value before it was first set, which Release restores.
type tuned struct {
	name   string
	before Scalar
}

// tunedAt returns the index of a variable in tuned; -1 = it is not there.
func (s *steering) tunedAt(v *Variable) int {
	return slices.IndexFunc(s.tuned, func(t tuned) bool { return t.name == v.Name })
}

func (r *Run) pin(by *Variable, sub, at int, value Scalar) {
	s := r.x.steering
	for k := range s.pins {
		if p := &s.pins[k]; p.by == by.Name && p.sub == sub && p.at == at {
			p.value = value
			r.coupleAllDiscrete()
			return
		}
	}
	before := Scalar{Kind: value.Kind}
	before.read(&r.x.discreteIn[sub], at)
	s.pins = append(s.pins, pin{by: by.Name, place: by.place, sub: sub, at: at, value: value, before: before})
	// Pins by inputs take precedence over those by outputs, and so come later.
	slices.SortStableFunc(s.pins, func(a, b pin) int { return int(b.place) - int(a.place) })
	r.coupleAllDiscrete()
}

func (r *Run) coupleAllDiscrete() {
	for _, i := range r.x.listening {
		r.x.coupleDiscrete(i, r.t)
	}
}

// steering overrides inputs of subsystems.
type steering struct {
	steeringState
	inAt       []int
	total      []Linear
	active     []bool // by subsystem
	staged, du []float64
}

type steeringState struct {
	own, fed []Linear // by input: overrides of itself, and of the output that feeds it
	pins     []pin
	tuned    []tuned
}

func newSteering(sys *System) *steering {
	nu := len(sys.source)
	s := &steering{
		steeringState: steeringState{own: slices.Repeat([]Linear{{Gain: 1}}, nu), fed: slices.Repeat([]Linear{{Gain: 1}}, nu)},
		inAt:          sys.InAt, active: make([]bool, len(sys.Subsystems)), staged: make([]float64, nu), du: make([]float64, nu),
	}
	s.total = slices.Clone(s.own)
	return s
}

// combine computes the total maps.
func (s *steering) combine() {
	for i := range s.active {
		s.active[i] = false
		for k := s.inAt[i]; k < s.inAt[i+1]; k++ {
			s.total[k] = Linear{Gain: s.own[k].Gain * s.fed[k].Gain, Offset: s.own[k].Gain*s.fed[k].Offset + s.own[k].Offset}
			s.active[i] = s.active[i] || s.total[k] != Linear{Gain: 1}
		}
	}
}

// inputs returns the overridden inputs of subsystem i; u are its coupled ones.
func (s *steering) inputs(i int, u []float64) []float64 {
	if s == nil || !s.active[i] {
		return u
	}
	from := s.inAt[i]
	out := s.staged[from:s.inAt[i+1]]
	for k, v := range u {
		switch l := s.total[from+k]; {
		case l == Linear{Gain: 1}:
			out[k] = v
		case l.Gain == 0:
			out[k] = l.Offset
		default:
			out[k] = float64(l.Gain*v) + l.Offset
		}
	}
	return out
}

// slopes returns the overridden derivatives, or directions, of the inputs of subsystem i.
func (s *steering) slopes(i int, du []float64) []float64 {
	if s == nil || !s.active[i] || du == nil {
		return du
	}
	from := s.inAt[i]
	out := s.du[from:s.inAt[i+1]]
	for k, v := range du {
		out[k] = 0
		if g := s.total[from+k].Gain; g != 0 {
			out[k] = g * v
		}
	}
	return out
}

// steered returns the system with directional derivatives by the inputs before overrides.
func (s *steering) steered(sys *System) *System {
	c := *sys
	c.Subsystems = slices.Clone(sys.Subsystems)
	for i, sub := range c.Subsystems {
		direct, ok := As[DirectionalDeriver](sub)
		if !ok {
			continue
		}
		d := &steeredDeriver{Subsystem: sub, s: s, i: i, direct: direct}
		c.Subsystems[i] = d
		if linear, ok := As[Linearizer](sub); ok {
			c.Subsystems[i] = &steeredLinearizer{steeredDeriver: d, linear: linear}
		}
	}
	return &c
}

type steeredDeriver struct {
	Subsystem
	s      *steering
	i      int
	direct DirectionalDeriver
}

func (d *steeredDeriver) Unwrap() Subsystem { return d.Subsystem }

func (d *steeredDeriver) DirectionalDerivative(du, dy []float64) error {
	return d.direct.DirectionalDerivative(d.s.slopes(d.i, du), dy)
}

type steeredLinearizer struct {
	*steeredDeriver
	linear Linearizer
}

func (l *steeredLinearizer) States() []StateInfo { return l.linear.States() }

func (l *steeredLinearizer) Linearize(dx, du, dxdot, dy []float64) error {
	return l.linear.Linearize(dx, l.s.slopes(l.i, du), dxdot, dy)
}
