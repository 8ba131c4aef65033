package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
)

// Motion is how a system answers small kicks: offsets that are added to inputs on loops, one at a time, for a while from the start on.
type Motion struct {
	Setting string `json:"setting"`       // of the kicked runs
	Mode    *Mode  `json:"slowest_mode"`  // the slowest that neither stays nor is faint; nil = unknown
	Why     string `json:"why,omitempty"` // it is unknown
	// Gain is the spectral radius of the matrix by which changes of the inputs on loops come back to them after one macro step of the run, inputs being held:
	// below 1, repetitions of the first step converge. nil = unknown.
	Gain *float64 `json:"step_gain"`
}

// Mode is a motion that follows a kick.
type Mode struct {
	Rate        float64 `json:"rate"`          // 1/s, by which it grows; negative = it dies out
	Frequency   float64 `json:"frequency"`     // Hz; 0 = it does not swing
	Doubt       float64 `json:"doubt"`         // 1/s, of the rate
	Damping     float64 `json:"damping_ratio"` // 1 = it does not swing
	Outputs     []Part  `json:"outputs"`       // that take part, the largest first
	Connections []Lever `json:"connections"`   // that were kicked, the strongest first
}

// Part is the amplitude of an output in a mode, relative to its motion in the run, and that to the largest.
type Part struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
}

// Lever is what a tenth more gain of a connection changes in a mode.
type Lever struct {
	From      string  `json:"from"`
	To        string  `json:"to"`
	Rate      float64 `json:"rate"`      // 1/s
	Frequency float64 `json:"frequency"` // Hz
	Doubt     float64 `json:"doubt"`     // 1/s, of both
}

// kick adds an offset to an input from the start to a time, in s.
type kick struct {
	input       string
	size, until float64
	v           *master.Variable
	over        bool
}

func (k *kick) Bind(r *master.Run) (err error) {
	k.v, err = r.Variable(k.input)
	return err
}

func (k *kick) At(r *master.Run) error {
	start, _, step := r.Span()
	switch t := r.Time(); {
	case t == start:
		return k.v.Override(master.Linear{Gain: 1, Offset: k.size})
	case !k.over && t > k.until-step/2:
		k.over = true
		return k.v.Release()
	}
	return nil
}

// edge is a connection on a loop.
type edge struct {
	input, source int // in u and y
	gain          float64
	motion        float64 // of the source
	size          float64 // of a kick
}

// A kick has a size relative to the motion of the input, and a length relative to that of the run. At most mostKicks connections are kicked.
const (
	kicked    = 0.01
	lasting   = 0.01
	mostKicks = 8
	agreeing  = 0.05 // largest difference of a pole from the same in another run, relative to its magnitude
	late      = 2    // steps by which a kick may come too late
	seen      = 0.01 // least amplitude of the slowest mode, relative to the largest
)

// edges returns connections on loops, and whether these are all.
func (s *search) edges() (list []edge, all bool) {
	sys, weights := s.Samples.sys, weightsOf(s.Samples.T)
	all = true
	for to, end := range sys.InAt[1:] {
		for u := sys.InAt[to]; u < end; u++ {
			y, connected := sys.Source(u)
			if !connected || !sys.Affects(to, sys.SourceSubsystem(u)) {
				continue
			}
			if len(list) == mostKicks {
				return list, false
			}
			e := edge{input: u, source: y, gain: sys.Gain(u)}
			m := momentsOf(s.Samples.V[y], weights)
			e.motion = cmp.Or(m.deviation, m.rms)
			if e.size = kicked * math.Abs(e.gain) * e.motion; e.size > 0 && !math.IsInf(e.size, 0) {
				list = append(list, e)
			}
		}
	}
	return list, all
}

// kick makes the motion known, unless that takes too long.
func (s *search) kick(ctx context.Context) error {
	list, all := s.edges()
	setting, cost := s.calm()
	const further = 5 // runs: without a kick, and two with half the step
	if len(list) == 0 || setting == nil || !s.affords(float64((len(list)+further)*cost)*s.each(), 0.3) {
		return nil
	}
	motion := &Motion{Setting: setting.String()}
	if all {
		var err error
		if motion.Gain, err = s.stepGain(ctx, list); err != nil {
			return err
		}
	}
	s.out.Motion = motion
	k := &kicks{search: s, list: list}
	H, span := setting.Step, s.Samples.Stop-s.Samples.Start
	k.length = max(1, math.Round(lasting*span/H)) * H
	spacing := H * math.Ceil(span/H/s.Samples.most)
	for n := range int((span-k.length)/spacing + same) {
		k.t, k.grid = append(k.t, float64(n)*spacing), append(k.grid, s.Samples.Start+k.length+float64(n)*spacing)
	}
	for _, e := range list {
		if !slices.ContainsFunc(k.outputs, func(o edge) bool { return o.source == e.source }) {
			k.outputs = append(k.outputs, e)
		}
	}
	var err error
	if motion.Mode, err = k.mode(ctx, *setting); err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil || errors.Is(err, ErrBudget) {
		return err
	}
	motion.Why = err.Error()
	return nil
}

// calm returns the setting, with its cost, of the most accurate run that extrapolates or repeats fixed steps only, none longer than that of the run, and costs at most a few times what the run does;
// nil = none is usable.
func (s *search) calm() (best *Setting, cost int) {
	const few = 4
	least := math.Inf(1)
	for _, l := range s.out.Lines {
		for _, t := range l.Trials {
			if slices.Contains([]string{"explicit", "gauss-seidel", "implicit"}, t.Preset) && t.rung >= 0 && t.Usable && t.Error < least && t.Cost <= few*s.out.Present.Cost {
				best, least, cost = &t.Setting, t.Error, t.Cost
			}
		}
	}
	return best, cost
}

// stepGain returns the gain around the loops over the first macro step.
func (s *search) stepGain(ctx context.Context, list []edge) (*float64, error) {
	held := Setting{Preset: "explicit", Params: map[string]string{"order": "0"}, Step: s.out.Present.Step}
	step := func(e edge, size float64) (y []float64, err error) {
		rec := &Samples{Start: s.Samples.Start, Stop: s.Samples.Start + held.Step}
		c := &course{Setting: held}
		s.call(func() {
			c.run, c.close, err = s.Begin(ctx, held, rec, &kick{input: s.Samples.sys.InName(e.input), size: size, until: math.Inf(1)})
			if err == nil {
				_, err = c.run.Step(ctx)
			}
		})
		s.end(c)
		return rec.now, err
	}
	base, err := step(list[0], 0)
	m := mat.NewDense(len(list), len(list), nil)
	for from, e := range list {
		var y []float64
		if err == nil {
			y, err = step(e, e.size)
		}
		if err != nil {
			return nil, context.Cause(ctx)
		}
		for to, back := range list {
			m.Set(to, from, back.gain*(y[back.source]-base[back.source])/e.size)
		}
	}
	if n := mat.Norm(m, 2); n-n != 0 {
		return nil, nil
	}
	var eigen mat.Eigen
	if !eigen.Factorize(m, mat.EigenNone) {
		return nil, nil
	}
	radius := 0.0
	for _, v := range eigen.Values(nil) {
		radius = max(radius, cmplx.Abs(v))
	}
	return &radius, nil
}

// kicks are runs with a kick at one connection each.
type kicks struct {
	*search
	list    []edge
	outputs []edge    // one for each source
	length  float64   // s, of a kick
	t, grid []float64 // s, from the end of a kick, and of the run
}

// mode finds the slowest mode in what kicks change. Half a kick, with half the step, must show it, too.
func (k *kicks) mode(ctx context.Context, setting Setting) (*Mode, error) {
	if len(k.grid) < markers {
		return nil, errors.New("the run has too few steps")
	}
	base, err := k.run(ctx, setting, k.list[0], 0)
	if err != nil {
		return nil, err
	}
	r := &ring{t: k.t}
	for _, e := range k.list {
		run, err := k.run(ctx, setting, e, e.size)
		if err != nil {
			return nil, err
		}
		r.d = append(r.d, k.change(base, run))
	}
	poles, window, err := r.poles()
	if err != nil {
		return nil, err
	}
	at, strongest := r.slowest(poles, window)
	if at < 0 {
		return nil, errors.New("all that kicks change stays")
	}
	finer := k.scaled(setting, 2)
	if base, err = k.run(ctx, finer, k.list[strongest], 0); err != nil {
		return nil, err
	}
	half, err := k.run(ctx, finer, k.list[strongest], k.list[strongest].size/2)
	if err != nil {
		return nil, err
	}
	again := (&ring{t: k.t, d: [][][]float64{k.change(base, half)}}).realize(window)
	p, doubt := poles[at], math.Inf(1)
	for _, q := range again {
		if off := cmplx.Abs(q - poles[at]); off < doubt {
			p, doubt = 2*q-poles[at], off // half the step halves an error of first order, and more than that of a higher one
		}
	}
	if imag(poles[at]) == 0 {
		p = complex(real(p), 0)
	}
	switch {
	case doubt > agreeing*cmplx.Abs(p):
		return nil, errors.New("half a kick, with half the step, shows other modes: the system is not linear about its course, the coupling error changes them, or noise hides them")
	case real(p) > doubt && k.ref.fine.grows == nil:
		return nil, errors.New("what kicks change grows along the course, though nothing grows in the run")
	default:
		return k.describe(r, poles, at, window, p, doubt, setting.Step), nil
	}
}

// run makes a run with a kick of some size.
func (k *kicks) run(ctx context.Context, setting Setting, e edge, size float64) (*Samples, error) {
	c := &course{Setting: setting, samples: k.own(),
		hooks: []master.Hook{&kick{input: k.Samples.sys.InName(e.input), size: size, until: k.Samples.Start + k.length}}}
	c.samples.At = func() []float64 { return k.grid }
	if err := k.advance(ctx, c); err != nil {
		return nil, err
	}
	if n := len(c.samples.T); c.err == nil && n < len(k.grid) {
		c.err = fmt.Errorf("a kicked run ends after %d of %d steps", n, len(k.grid))
	}
	return c.samples, c.err
}

// change returns what a kick changes in the outputs, relative to their motion.
func (k *kicks) change(base, kicked *Samples) (d [][]float64) {
	for _, o := range k.outputs {
		v := make([]float64, len(k.grid))
		for n := range v {
			v[n] = (kicked.V[o.source][n] - base.V[o.source][n]) / o.motion
		}
		d = append(d, v)
	}
	return d
}

// describe describes a mode with a pole p and a doubt in 1/s, from kicks with steps of H s.
func (k *kicks) describe(r *ring, poles []complex128, at int, window float64, p complex128, doubt, H float64) *Mode {
	amplitudes, _ := r.fit(poles, window/10, window)
	m := &Mode{Rate: real(p), Frequency: imag(p) / (2 * math.Pi), Damping: -real(p) / cmplx.Abs(p), Doubt: doubt}
	top := 0.0
	for i, o := range k.outputs {
		size := 0.0
		for _, a := range amplitudes {
			size = max(size, cmplx.Abs(a[i][at]))
		}
		m.Outputs, top = append(m.Outputs, Part{k.Samples.Name(o.source), size}), max(top, size)
	}
	for i := range m.Outputs {
		m.Outputs[i].Share /= top
	}
	slices.SortStableFunc(m.Outputs, func(a, b Part) int { return cmp.Compare(b.Share, a.Share) })
	for n, e := range k.list {
		// A kick of size a and length l changes the source of its input by Re(A exp(p t)) after it, where A = (c v)(w b) a (exp(p l) − 1)/p, twice that for a
		// pair, and dp/dg = (c v)(w b) is the derivative of the pole with respect to the gain of the connection.
		i := slices.IndexFunc(k.outputs, func(o edge) bool { return o.source == e.source })
		by := amplitudes[n][i][at] * complex(e.motion/e.size, 0) * poles[at] / (cmplx.Exp(poles[at]*complex(k.length, 0)) - 1)
		if imag(p) != 0 {
			by /= 2
		}
		by *= complex(0.1*e.gain, 0)
		m.Connections = append(m.Connections, Lever{From: k.Samples.Name(e.source), To: k.Samples.sys.InName(e.input), Rate: real(by), Frequency: imag(by) / (2 * math.Pi),
			Doubt: cmplx.Abs(by) * max(late*cmplx.Abs(p)*H, misfit)})
	}
	slices.SortStableFunc(m.Connections, func(a, b Lever) int {
		return cmp.Compare(math.Hypot(b.Rate, 2*math.Pi*b.Frequency), math.Hypot(a.Rate, 2*math.Pi*a.Frequency))
	})
	return m
}
