package analyze

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

// Sources of the models of subsystems.
const (
	Measured    = "measured"    // by steps repeated from a saved state, its own solver included
	Renewed     = "renewed"     // likewise, but each time from the start by another instance, led the way again
	Directional = "directional" // by directional derivatives, integrated exactly
	None        = "none"
)

const (
	// responseSteps are those over which the response to an input is followed.
	responseSteps = 25
	// longestStride bounds how many times as many there are of short steps.
	longestStride = 80
	// measuredNoise is the part of the largest singular value of a measured response
	// that counts as none, where replays are exact.
	measuredNoise = 1e-10
	// atRest is the part of an output that it moves by where that counts as none.
	atRest = 1e-12
	// good is the misfit of a model below which no better one is looked for.
	good = 1e-4
	// untrustedShift is how far a response may be from that of the same movement at another step.
	untrustedShift = 0.1
)

// kicks are how far an input is moved, relative to its magnitude: little where the subsystem is
// not linear, more where its solver leaves more open, or where the magnitude is not known and
// hardly moves it.
var kicks = []float64{1e-3, 1e-4, 1e-5, 1e-6, 1e-2, 1e-1, 1, 1e2, 1e4}

// point is a coupled system at an operating point, of which the models are taken: it holds the
// run there while they are.
type point struct {
	ctx    context.Context
	x      *master.Exec
	t      float64
	step   float64   // of the analysis
	y      []float64 // outputs
	sizes  []float64 // of inputs: the largest that they were on the way here
	order  int       // highest power of s that inputs may have
	models []*model
	// horizon is how long the motion from here on is forecast, in s.
	horizon float64
	doubt   float64 // of errors
	// window is how long responses are followed at least, in s: over a few short steps slow
	// modes could not be told.
	window float64
	// way holds the inputs at the communication points from the start to here, which lie a step apart.
	way   [][]float64
	start float64
	// measurements are asked for by those who work beside the calling thread; nil = nobody does.
	measurements chan func()
	// broken tells by subsystem why it cannot go back although it promises to.
	broken map[int]string
}

// model is what is known of one subsystem.
type model struct {
	info        *master.Info
	source, why string
	order       int                // of input derivatives that it takes, as far as the analysis looks
	takes       int                // of those that it takes at all
	space       *linear.StateSpace // Directional
	another     master.Duplicator  // makes further instances; nil = none are needed, or there are none
	// departs tells how a component does otherwise than its directional derivatives say; "" = not that is known.
	departs string
	lock    sync.Mutex
	known   map[float64]found // by step
}

// found is a response, or why there is none.
type found struct {
	response *linear.Response
	err      error
}

// end ends a subsystem that was duplicated.
func end(s master.Subsystem) error {
	var err error
	if t, ok := master.As[master.Terminator](s); ok {
		err = t.Terminate()
	}
	if c, ok := master.As[io.Closer](s); ok {
		err = errors.Join(err, c.Close())
	}
	return err
}

// newPoint chooses where the model of each subsystem comes from.
func newPoint(ctx context.Context, x *master.Exec, o Options, t float64, of *prober) (*point, error) {
	p := &point{ctx: ctx, x: x, t: t, step: o.Step, start: o.Start, order: o.Order, y: slices.Clone(x.Y), sizes: of.sizes, way: of.way, broken: of.broken}
	for i, info := range x.Sys.Infos {
		m := &model{info: info, source: Measured, order: of.taken[i], takes: of.takes[i], known: map[float64]found{}}
		p.models = append(p.models, m)
		without := "it cannot go back (canGetAndSetFMUstate)"
		if x.Reverts(i) {
			differs := x.Replay(i).Unpromised
			if differs == "" {
				continue
			}
			without = "it computes something else in steps that may be undone (noSetFMUStatePriorToCurrentPoint = false): " + differs
		}
		m.space, m.why = p.derivatives(i)
		exact, why := m.space, m.why
		m.source = None
		if exact == nil {
			m.why = without + ", and " + why
			if broken, ok := p.broken[i]; ok {
				m.why = broken + "; " + why
			}
		}
		none := p.renewable(i)
		if none == "" {
			m.source = Renewed
		}
		switch {
		case exact != nil:
			p.compare(i, none, o)
		case none != "":
			m.why += "; " + none
		}
	}
	return p, nil
}

// renewable has another instance of subsystem i led to where it is, and tells why that cannot be done, "" if
// it can.
func (p *point) renewable(i int) string {
	another, ok := master.As[master.Duplicator](p.x.Sys.Subsystems[i])
	if !ok {
		return "there are no further instances of it"
	}
	if why := p.leads(i); why != "" {
		return why
	}
	p.models[i].another = another
	one, err := p.renew(i)
	if err == nil {
		why := p.elsewhere(i, one)
		if err = end(one); err == nil && why != "" {
			err = errors.New(why)
		}
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// longestWay is that from the start, in steps, that another instance is led again and again.
const longestWay = 20_000

// leads returns why another instance of subsystem i cannot be led from the start to here, "" if it can.
func (p *point) leads(i int) string {
	info := p.x.Sys.Infos[i]
	if len(p.way) > longestWay {
		return fmt.Sprintf("the way of %d steps from the start is too long to be gone by further instances again and again: take an earlier point or longer steps", len(p.way)-1)
	}
	for k := range info.DiscreteIn {
		if len(p.way) > 1 && p.x.Sys.DiscreteConnected(i, k) {
			return fmt.Sprintf("its input %s is not Real and has moved since the start, where it could be measured on further instances", info.DiscreteIn[k].Name)
		}
	}
	return ""
}

// renew makes another instance of subsystem i and leads it from the start to the operating point
// by the inputs that the first one has had. The caller ends it.
func (p *point) renew(i int) (sub master.Subsystem, err error) {
	x, m := p.x, p.models[i]
	from, to := x.Sys.InAt[i], x.Sys.InAt[i+1]
	copy(x.U[from:to], p.way[0][from:to])
	if err := x.Stage(i); err != nil {
		return nil, err
	}
	if sub, err = m.another.Duplicate(p.ctx, m.order); err != nil {
		return nil, err
	}
	late := 0 // what is stepped after its sources has their new values
	if slices.Contains(x.Sys.Late, i) {
		late = 1
	}
	y := make([]float64, len(m.info.Out))
	for n := range len(p.way) - 1 {
		if err = sub.SetInputs(p.way[n+late][from:to]); err == nil {
			if _, err = sub.Step(p.ctx, p.start+float64(float64(n)*p.step), p.step); err == nil {
				err = sub.Outputs(y) // as in the run
			}
		}
		if err != nil {
			return nil, errors.Join(err, end(sub))
		}
	}
	return sub, nil
}

// elsewhere tells that another instance, led the same way, is not where the first one is, "" if it is.
func (p *point) elsewhere(i int, sub master.Subsystem) string {
	const same = 1e-6
	m := p.models[i]
	y := make([]float64, len(m.info.Out))
	if len(p.way) == 1 {
		return ""
	}
	if err := sub.Outputs(y); err != nil {
		return err.Error()
	}
	for o, v := range y[:m.outputs()] {
		if want := p.y[p.x.Sys.OutAt[i]+o]; math.Abs(v-want) > same*max(math.Abs(want), m.info.Out[o].Magnitude()) {
			return fmt.Sprintf("a further instance, led the same way, is elsewhere: %s is %g and not %g", m.info.Out[o].Name, v, want)
		}
	}
	return ""
}

// outputs gives the number of outputs that are no internal ones.
func (m *model) outputs() int {
	n := 0
	for _, o := range m.info.Out {
		if !o.Internal {
			n++
		}
	}
	return n
}

// derivatives asks subsystem i for its state space.
func (p *point) derivatives(i int) (*linear.StateSpace, string) {
	sys := p.x.Sys
	info, sub := sys.Infos[i], sys.Subsystems[i]
	source, ok := master.As[master.Linearizer](sub)
	if !info.Caps.DirectionalDerivative || !ok {
		return nil, "it gives no directional derivatives (providesDirectionalDerivative)"
	}
	n, nu, ny := len(source.States()), len(info.In), len(info.Out)
	if n == 0 && !info.Stateless {
		return nil, "it exposes no continuous states with their derivatives (ModelStructure/Derivatives)"
	}
	s := &linear.StateSpace{D: mat.NewDense(max(ny, 1), max(nu, 1), nil)}
	if n > 0 {
		s.A, s.B, s.C = mat.NewDense(n, n, nil), mat.NewDense(n, max(nu, 1), nil), mat.NewDense(max(ny, 1), n, nil)
	}
	rate, slope := make([]float64, n), make([]float64, ny)
	for c := range n + nu {
		dx, du := make([]float64, n), make([]float64, nu)
		if c < n {
			dx[c] = 1
		} else {
			du[c-n] = 1
		}
		if err := source.Linearize(dx, du, rate, slope); err != nil {
			return nil, err.Error()
		}
		for r, v := range rate {
			if c < n {
				s.A.Set(r, c, v)
			} else {
				s.B.Set(r, c-n, v)
			}
		}
		for r, v := range slope {
			if c < n {
				s.C.Set(r, c, v)
			} else {
				s.D.Set(r, c-n, v)
			}
		}
	}
	return s, ""
}

// over gives the response of subsystem i over steps of size h.
func (p *point) over(i int, h float64) (*linear.Response, error) {
	m := p.models[i]
	m.lock.Lock()
	got, ok := m.known[h]
	m.lock.Unlock()
	if ok {
		return got.response, got.err
	}
	if p.measurements == nil {
		return p.find(i, h)
	}
	done := make(chan struct{})
	var r *linear.Response
	var err error
	p.measurements <- func() {
		defer close(done)
		r, err = p.find(i, h)
	}
	<-done
	return r, err
}

// find is over on the thread from which the subsystems are called.
func (p *point) find(i int, h float64) (*linear.Response, error) {
	m := p.models[i]
	m.lock.Lock()
	got, ok := m.known[h]
	m.lock.Unlock()
	if ok { // in the meantime
		return got.response, got.err
	}
	switch m.source {
	case Measured, Renewed:
		got.err = guarded(func() (err error) { got.response, err = p.measure(i, h); return err })
		if m.source == Measured { // however it ended, the run goes on from here
			got.err = errors.Join(got.err, p.x.Restore(i))
		}
	case Directional:
		got.response, got.err = m.space.Over(h, p.order)
	default:
		got.err = errors.New(m.why)
	}
	if got.err != nil {
		var step *master.StepError // which says of whom
		if text := got.err.Error(); errors.As(got.err, &step) && strings.HasPrefix(text, m.info.Name) {
			got = found{err: got.err}
		} else {
			got = found{err: fmt.Errorf("%s over steps of %.4g s: %w", m.info, h, got.err)}
		}
	}
	m.lock.Lock()
	m.known[h] = got
	m.lock.Unlock()
	return got.response, got.err
}

// measure finds the response of subsystem i over steps of size h, by the way of moving its
// inputs that gives the best.
func (p *point) measure(i int, h float64) (best *linear.Response, err error) {
	for _, kick := range kicks {
		r, failed := p.measureBy(i, h, kick)
		if failed != nil {
			err = failed
			continue
		}
		if best == nil || best.Silent() && !r.Silent() || r.Misfit < best.Misfit && r.Silent() == best.Silent() {
			best = r
		}
		if best.Misfit <= good && !best.Silent() {
			break
		}
	}
	if best == nil {
		return nil, err
	}
	if best.Misfit > linear.Untrusted {
		return nil, fmt.Errorf("its responses are not those of a linear system of few states: they are off by %.2g", best.Misfit)
	}
	if err := p.invariant(i, h, best); err != nil {
		return nil, err
	}
	return best, p.grows(i, h, best)
}

// later are the steps at which inputs are moved again, to see whether the response is the same.
var later = []int{1, 3}

// invariant fails if the response of subsystem i depends on when an input is moved: one that
// takes steps of its own, whatever it is asked, sees some of them and others not.
func (p *point) invariant(i int, h float64, r *linear.Response) error {
	m := p.models[i]
	base, err := p.follow(i, h, -1, 0, 0, 0)
	if err != nil {
		return err
	}
	const remedy = "; whole multiples of its own step as macro step, or another time (--at), may show it"
	const always = -1
	stands := func(y [][]float64) error {
		if j := stillness(p.y[p.x.Sys.OutAt[i]:p.x.Sys.OutAt[i]+m.outputs()], y); j > 0 {
			return fmt.Errorf("its outputs stand still over step %d and move over steps before and after it: it takes steps of its own%s", j+1, remedy)
		}
		return nil
	}
	if err := stands(base); err != nil {
		return err
	}
	for k := range m.info.In {
		if r.Ways[k] == 0 {
			continue
		}
		moved, err := p.follow(i, h, k, 0, r.Ways[k], always)
		if err != nil {
			return err
		}
		if err := stands(moved); err != nil {
			return err
		}
		var first [][]float64
		largest := make([]float64, m.outputs())
		for _, when := range append([]int{0}, later...) {
			y, err := p.follow(i, h, k, 0, r.Ways[k], when)
			if err != nil {
				return err
			}
			for j := range y {
				for o := range y[j] {
					y[j][o] -= base[j][o]
					if when == 0 {
						largest[o] = max(largest[o], math.Abs(y[j][o]))
					}
				}
			}
			if when == 0 {
				first = y
				continue
			}
			for j := when; j < len(y); j++ {
				for o, v := range y[j] {
					noise := 100 * max(linear.OutputRounding, p.x.Replay(i).Replays) * math.Abs(base[j][o])
					if off := math.Abs(v - first[j-when][o]); off > untrustedShift*largest[o]+noise {
						return fmt.Errorf("its response to %s depends on when it is moved (%s is off by %.2g): it takes steps of its own, or is not linear%s", m.info.In[k].Name, m.info.Out[o].Name, off/largest[o], remedy)
					}
				}
			}
		}
	}
	return nil
}

// dither is the part of the largest movement of an output in a step below which it does not count as one: what
// has come to rest moves by the last digit now and then.
const dither = 1e-6

// stillness gives a step, counted from 0, over which all outputs stand still to the last digit while they
// move over steps before and after it; 0 = there is none. start holds them before the first step.
func stillness(start []float64, y [][]float64) int {
	before := func(j int) []float64 {
		if j == 0 {
			return start
		}
		return y[j-1]
	}
	largest := make([]float64, len(start))
	for j := range y {
		for o, v := range y[j] {
			largest[o] = max(largest[o], math.Abs(v-before(j)[o]))
		}
	}
	at, moved := 0, false
	for j := range y {
		moves := false
		for o, v := range y[j] {
			moves = moves || math.Abs(v-before(j)[o]) > dither*largest[o]
		}
		switch {
		case moves && at > 0:
			return at
		case moves:
			moved = true
		case moved && at == 0 && slices.Equal(before(j), y[j]):
			at = j
		}
	}
	return 0
}

// measureBy follows subsystem i over responseSteps steps of size h, once as it goes with its
// inputs held, and once for each coefficient of each input over the first step, always from
// the operating point.
func (p *point) measureBy(i int, h, kick float64) (*linear.Response, error) {
	m, x := p.models[i], p.x
	ny, nu := m.outputs(), len(m.info.In)
	powers := 1 + m.order
	base, err := p.follow(i, h, -1, 0, 0, 0)
	if err != nil {
		return nil, err
	}
	stride, ways := p.stride(h), make([]float64, nu)
	markov := make([]*mat.Dense, len(base))
	for j := range markov {
		markov[j] = mat.NewDense(max(ny, 1), max(nu*powers, 1), nil)
	}
	noise := max(measuredNoise, 100*x.Replay(i).Replays)
	rounding, sizes := mat.NewDense(max(ny, 1), max(nu*powers, 1), nil), make([]float64, ny)
	for _, y := range base {
		for o, v := range y {
			sizes[o] = max(sizes[o], math.Abs(v))
		}
	}
	for power := range powers {
		for k := range nu {
			// There and back: the difference is the response, and what the mean is off by
			// is noise, and what is not linear.
			way := p.inputSize(i, k) * max(kick, math.Sqrt(x.Replay(i).Replays))
			if power == 0 {
				ways[k] = way
			}
			there, err := p.follow(i, h, k, power, way, 0)
			if err != nil {
				return nil, err
			}
			back, err := p.follow(i, h, k, power, -way, 0)
			if err != nil {
				return nil, err
			}
			for o := range ny {
				off := max(linear.OutputRounding, x.Replay(i).Replays) * sizes[o]
				for j := range there {
					markov[j].Set(o, power*nu+k, (there[j][o]-back[j][o])/(2*way))
					off = max(off, math.Abs(there[j][o]+back[j][o]-2*base[j][o])/2)
				}
				rounding.Set(o, power*nu+k, off/way)
			}
		}
	}
	a, b, c, err := linear.Realise(markov, rounding, noise, stride)
	if err != nil {
		return nil, err
	}
	r := &linear.Response{A: a, C: c, Misfit: linear.Misfit(markov, rounding, a, b, c), Ways: ways}
	for power := range powers {
		r.D = append(r.D, mat.DenseCopyOf(markov[0].Slice(0, max(ny, 1), power*nu, max((power+1)*nu, 1))))
		if b != nil {
			n, _ := b.Dims()
			r.B = append(r.B, mat.DenseCopyOf(b.Slice(0, n, power*nu, (power+1)*nu)))
		}
	}
	for _, y := range base {
		for o := range y {
			if y[o] -= p.y[x.Sys.OutAt[i]+o]; math.Abs(y[o]) <= atRest*sizes[o] {
				y[o] = 0
			}
		}
	}
	if r.OwnMisfit = r.Drive(base); r.OwnMisfit > ownMisfit {
		r.TakeWhole(markov, rounding, noise, base, stride)
	}
	return r, nil
}

// inputSize returns the size of input k of subsystem i: the largest that it was on the way here, or its magnitude where
// that is what is left of a difference of larger numbers.
func (p *point) inputSize(i, k int) float64 {
	size, typical := p.sizes[p.x.Sys.InAt[i]+k], p.models[i].info.In[k].Magnitude()
	if size < linear.Nothing*typical {
		return typical
	}
	return size
}

// stride gives the number of steps between those of a response that a model is found in.
func (p *point) stride(h float64) int {
	return int(min(max(math.Ceil(p.window/(responseSteps*h)), 1), longestStride))
}

// begin gives subsystem i at the operating point: itself, taken back, or another instance. done is
// called in the end.
func (p *point) begin(i int) (sub master.Subsystem, done func() error, err error) {
	if p.models[i].another == nil {
		sub = p.x.Sys.Subsystems[i]
		return sub, func() error { promise(sub, true); return nil }, p.x.Restore(i)
	}
	if sub, err = p.renew(i); err != nil {
		return nil, nil, err
	}
	return sub, func() error { return end(sub) }, nil
}

// take has subsystem i step from point n of a course that begin has begun. Itself it goes back to the
// operating point again, but not to before that.
func (p *point) take(i int, sub master.Subsystem, n int, h float64) error {
	if p.models[i].another == nil {
		promise(sub, n == 0)
	}
	_, err := sub.Step(p.ctx, p.t+float64(float64(n)*h), h)
	return err
}

func promise(sub master.Subsystem, noRestoreBefore bool) {
	if aware, ok := master.As[master.RestoreAware](sub); ok {
		aware.NoRestoreBefore(noRestoreBefore)
	}
}

// follow goes back to the operating point and takes steps with the inputs held, but for the
// coefficient of the power of s/h of input k over one of the steps, which is moved, or over all if when
// is negative.
func (p *point) follow(i int, h float64, k, power int, way float64, when int) (out [][]float64, err error) {
	x, m := p.x, p.models[i]
	sub, done, err := p.begin(i)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	derivatives, _ := master.As[master.InputDerivativeSetter](sub)
	hold := x.W[x.Sys.InAt[i]:x.Sys.InAt[i+1]]
	u, du, y := make([]float64, len(hold)), make([]float64, len(hold)), make([]float64, len(m.info.Out))
	for j := range 1 + (responseSteps-1)*p.stride(h) {
		copy(u, hold)
		if (j == when || when < 0) && k >= 0 && power == 0 {
			u[k] += way
		}
		if err := sub.SetInputs(u); err != nil {
			return nil, err
		}
		if m.order > 0 {
			factor := 1.0 // m!/h^m
			for order := 1; order <= m.order; order++ {
				factor *= float64(order) / h
				clear(du)
				if (j == when || when < 0) && k >= 0 && order == power {
					du[k] = factor * way
				}
				if err := derivatives.SetInputDerivatives(order, du); err != nil {
					return nil, err
				}
			}
		}
		if err := p.take(i, sub, j, h); err != nil {
			return nil, err
		}
		if err := sub.Outputs(y); err != nil {
			return nil, err
		}
		out = append(out, append([]float64(nil), y[:m.outputs()]...))
	}
	return out, nil
}

// mostDerivatives is the highest order of input derivatives that an algorithm asks for: the second solution of ex-local has
// one more than the highest extrapolation order.
const mostDerivatives = algorithms.MaxOrder + 1

// prober is an algorithm that goes to the operating point by another one, and has something
// done there.
type prober struct {
	*algorithms.Coupling
	at    float64
	order int
	do    func(ctx context.Context, x *master.Exec, t float64) error
	done  bool
	// broken tells by subsystem why it cannot go back although it promises to.
	broken map[int]string
	taken  []int       // by subsystem: order of input derivatives that it takes, up to order
	takes  []int       // likewise, up to what algorithms ask for
	sizes  []float64   // of inputs, so far
	way    [][]float64 // inputs at the communication points, so far
}

// NeedsRollback gives all subsystems that can: their responses are measured.
func (p *prober) NeedsRollback(s *master.System) []int {
	var out []int
	for i, info := range s.Infos {
		if _, ok := master.As[master.StateSaver](s.Subsystems[i]); ok && info.Caps.SaveState {
			out = append(out, i)
		}
	}
	return out
}

// DoesWithout lets subsystems that do not keep their promises be told of.
func (p *prober) DoesWithout(i int, why error) bool {
	if p.broken == nil {
		p.broken = map[int]string{}
	}
	p.broken[i] = reason(why)
	return true
}

// reason gives an error without the kind that it is of.
func reason(err error) string {
	return strings.Replace(err.Error(), master.ErrCapability.Error()+": ", "", 1)
}

// InputDerivativeOrder asks for those that responses are measured to.
func (p *prober) InputDerivativeOrder() int { return p.order }

func (p *prober) Init(x *master.Exec, t0 float64) error {
	p.taken, p.takes, p.sizes = make([]int, len(x.Sys.Subsystems)), make([]int, len(x.Sys.Subsystems)), make([]float64, len(x.W))
	for i := range p.taken {
		if !x.Interpolates(i) {
			continue
		}
		prepare := func(most int) (order int, err error) {
			for order = most; order >= 0; order-- {
				if err = x.PrepareDerivatives(i, order); err == nil || !errors.Is(err, master.ErrCapability) {
					break
				}
			}
			return order, err
		}
		var err error
		if p.takes[i], err = prepare(mostDerivatives); err == nil {
			p.taken[i], err = prepare(min(p.order, p.takes[i]))
		}
		if err != nil {
			return err
		}
	}
	return p.Coupling.Init(x, t0)
}

func (p *prober) Attempt(ctx context.Context, x *master.Exec, t, H float64, trial *master.Trial) error {
	if !p.done && len(p.way) <= longestWay+1 {
		p.way = append(p.way, slices.Clone(x.W))
	}
	for k, v := range x.W {
		p.sizes[k] = max(p.sizes[k], math.Abs(v))
	}
	if !p.done && t >= p.at-1e-9*H {
		p.done = true
		if err := p.do(ctx, x, t); err != nil {
			return err
		}
	}
	return p.Coupling.Attempt(ctx, x, t, H, trial)
}
