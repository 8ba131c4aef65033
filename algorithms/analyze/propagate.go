package analyze

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/linear"
	"github.com/macrostep/macrostep/master"
)

// scheme is one strategy at one extrapolation order, as the command line names it.
type scheme struct {
	preset string
	params map[string]string
	order  int
	// substeps is their number where inputs are sampled; 0 = that which strategies take by default.
	substeps int
	// rates are those of the components that have others than that of the macro step.
	rates []algorithms.Rate
	// bonds are those at which the energy is corrected. A force that makes up for an energy divides it by a velocity
	// (rodriguez (17)): the system is not linear, so that no eigenvalue shows whether motions grow.
	bonds []algorithms.Bond
	// ideal tells that the inputs of components that can neither take derivatives nor vary their step, in runs held, are
	// sampled too: it is no run but the motion that runs are compared with.
	ideal bool
	// hidden tells that the strategy has more state than the outputs at the last
	// communication points, or is not linear: its propagation is not formed but followed.
	hidden bool
	// reach is how many connections farther, at most, something has been seen in one step, as far as is
	// known from steps that were looked at before; used by one thread at a time.
	reach int
}

// degree is that of the polynomials that reach the subsystems.
func (s *scheme) degree() int { return s.order }

// stepOf gives the size of the steps that subsystem i takes.
func (p *point) stepOf(i int, s *scheme, h float64) float64 {
	m := p.models[i]
	steps, over := s.rate(m.info.Name)
	if steps > 1 { // with the polynomials at the start of each of them
		return h / float64(steps)
	}
	h *= float64(over)
	if s.holds(m) || s.degree() <= m.order || m.info.Stateless || len(m.info.In) == 0 {
		return h
	}
	if s.substeps > 0 {
		return h / float64(s.substeps)
	}
	return h / substeps
}

// holds tells that the inputs of a component are held, whatever the order.
func (s *scheme) holds(m *model) bool { return m.order == 0 && !m.info.Caps.VariableStep && !s.ideal }

// substeps is the number that the strategies take by default.
const substeps = 10

// twins makes the linear system that the strategy is run on at steps of size h. scaled, if not
// negative, is an input whose connection has its gain multiplied by gain. Driven ones move by
// themselves too.
func (p *point) twins(s *scheme, h float64, scaled int, gain float64, driven bool) ([]*twin, *master.System, error) {
	return p.twinsOf(s, h, scaled, gain, driven, driven)
}

// twinsOf is twins; whole ones have the states that no input reaches, too.
func (p *point) twinsOf(s *scheme, h float64, scaled int, gain float64, driven, whole bool) ([]*twin, *master.System, error) {
	twins := make([]*twin, len(p.models))
	for i, m := range p.models {
		r, err := p.over(i, p.stepOf(i, s, h))
		if err != nil {
			return nil, nil, err
		}
		if whole && r.Whole != nil {
			r = r.Whole
		}
		twins[i] = newTwin(m.info, r, p.stepOf(i, s, h), m.order)
		twins[i].driven = driven
		twins[i].info.Caps.VariableStep = !s.holds(m)
	}
	system, err := p.coupledTwins(twins, scaled, gain)
	return twins, system, err
}

// absolute has twin i take and show what the component does, in place of deviations from that: tolerances go by values, and a power
// is a product of them.
func (p *point) absolute(i int, t *twin) {
	sys := p.x.Sys
	t.taken, t.shown = p.x.W[sys.InAt[i]:sys.InAt[i+1]], p.y[sys.OutAt[i]:sys.OutAt[i]+p.models[i].outputs()]
	copy(t.info.StartIn, t.taken)
}

// coupledTwins couples twins as the system is, but for the gain of input scaled.
func (p *point) coupledTwins(twins []*twin, scaled int, gain float64) (*master.System, error) {
	sys := p.x.Sys
	var subs []master.Subsystem
	for _, t := range twins {
		subs = append(subs, t)
	}
	var links []master.Connection
	for k := range sys.InAt[len(sys.InAt)-1] {
		y, ok := sys.Source(k)
		if !ok {
			continue
		}
		g := sys.Gain(k)
		if k == scaled {
			g *= gain
		}
		line := &master.Linear{Gain: g}
		if twins[ownerOf(sys.InAt, k)].taken != nil {
			line.Offset = sys.Offset(k)
		}
		links = append(links, master.Connection{From: endpoint(sys, sys.OutAt, y, false), To: endpoint(sys, sys.InAt, k, true), Linear: line})
	}
	return master.NewSystem(subs, links)
}

// endpoint names the entry of u or y, whose parts begin at offsets.
func endpoint(sys *master.System, offsets []int, at int, input bool) master.Endpoint {
	i := ownerOf(offsets, at)
	ports := sys.Infos[i].Out
	if input {
		ports = sys.Infos[i].In
	}
	return master.Endpoint{Subsystem: sys.Infos[i].Name, Port: ports[at-offsets[i]].Name}
}

// algorithm gives the strategy anew.
func (s *scheme) algorithm() (master.Algorithm, error) {
	params := map[string]string{"order": fmt.Sprint(s.order)}
	for k, v := range s.params {
		params[k] = v
	}
	choice, err := algorithms.New(s.preset, params, algorithms.With{Rates: s.rates, Bonds: s.bonds})
	if err != nil {
		return nil, err
	}
	return choice.Algorithm, nil
}

// start makes a run of the strategy over some steps.
func (s *scheme) start(sys *master.System, h float64, steps int) (*master.Run, error) {
	alg, err := s.algorithm()
	if err != nil {
		return nil, err
	}
	return master.NewRun(sys, alg, master.Options{Stop: (float64(steps) + 0.5) * h, Step: h, Workers: 1})
}

// eigen is a mode of the coupled run: its outputs are multiplied by value in every macro step.
type eigen struct {
	value   complex128
	outputs []float64 // magnitudes, the largest being 1, each output in its own size
	lasts   bool      // there is an eigenvalue of 1 besides, or one of a component that nothing feeds and that oscillates on and on
	coupled float64   // magnitude of the largest of what inputs reach, from spectrum
}

// spectrum gives the dominant mode of the strategy at steps of size h; its outputs only if asked.
//
// The states that no input reaches, of components that nothing feeds, are part of no loop: no coupling changes
// them. Their eigenvalues are added to those of the others, of which they are independent.
func (p *point) spectrum(s *scheme, h float64, scaled int, gain float64, outputs bool) (eigen, error) {
	mode, err := p.coupledSpectrum(s, h, scaled, gain, outputs, false)
	if err != nil {
		return mode, err
	}
	mode.coupled = cmplx.Abs(mode.value)
	for i := range p.models {
		step := p.stepOf(i, s, h)
		own, uncertain, err := p.free(i, step)
		if step != h { // in a macro step
			own, uncertain = cmplx.Pow(own, complex(h/step, 0)), uncertain*max(h/step, 1)
		}
		switch size := cmplx.Abs(own); {
		case err != nil:
			return mode, err
		case own == 0:
		case math.Abs(size-1) <= max(marginal, uncertain):
			mode.lasts = true
		case size > cmplx.Abs(mode.value):
			mode.value = own
			if outputs {
				all, err := p.coupledSpectrum(s, h, scaled, gain, true, true)
				if err != nil {
					return mode, err
				}
				mode.outputs = all.outputs
			}
		}
	}
	return mode, nil
}

// free gives the largest eigenvalue of component i over steps of size h, where nothing feeds it and it has
// states that no input reaches; 0 = it has none, or is not known to move as a linear system.
func (p *point) free(i int, h float64) (own complex128, uncertain float64, err error) {
	for k := p.x.Sys.InAt[i]; k < p.x.Sys.InAt[i+1]; k++ {
		if p.x.Sys.SourceSubsystem(k) >= 0 {
			return 0, 0, nil
		}
	}
	r, err := p.over(i, h)
	if err != nil || r.Whole == nil || r.OwnMisfit > good {
		return 0, 0, err
	}
	return largestOf(r.Whole), slowPart * r.OwnMisfit, nil
}

// largestOf gives the eigenvalue of largest magnitude; 0 = there are no states.
func largestOf(r *linear.Response) (worst complex128) {
	var e mat.Eigen
	if r.A == nil || !e.Factorize(r.A, mat.EigenNone) {
		return 0
	}
	for _, v := range e.Values(nil) {
		if cmplx.Abs(v) > cmplx.Abs(worst) {
			worst = v
		}
	}
	return worst
}

// coupledSpectrum is spectrum of models as inputs see them, or of whole ones.
func (p *point) coupledSpectrum(s *scheme, h float64, scaled int, gain float64, outputs, whole bool) (eigen, error) {
	twins, sys, err := p.twinsOf(s, h, scaled, gain, false, whole)
	if err != nil {
		return eigen{}, err
	}
	if s.hidden {
		mode, err := p.followed(s, h, twins, sys, len(twinsOutputs(twins)))
		one := []complex128{mode.value}
		roots(one, s.period())
		mode.value = one[0]
		return mode, err
	}
	g, err := p.newPropagator(s, h, twins, sys)
	if err != nil {
		return eigen{}, err
	}
	phi, err := g.form(s)
	_, closed := g.run.Close() // which holds a thread
	if err = errors.Join(err, closed); err != nil {
		return eigen{}, err
	}
	return g.dominantOf(phi, outputs)
}

func twinsOutputs(twins []*twin) []float64 {
	var y []float64
	for _, t := range twins {
		y = append(y, t.y0...)
	}
	return y
}

// limiting gives the index of the eigenvalue of largest magnitude among those that count.
// One at 1 is a free motion, such as of a displacement that nothing holds: it is given only
// if there is nothing else, and else lasts tells that there is one.
func limiting(values []complex128, counts func(i int) bool) (worst int, lasts bool) {
	worst, free := -1, 0
	for i, v := range values {
		switch {
		case !counts(i):
		case cmplx.Abs(v-1) < marginal:
			free, lasts = i, true
		case worst < 0 || cmplx.Abs(v) > cmplx.Abs(values[worst]):
			worst = i
		}
	}
	if worst < 0 {
		return free, false
	}
	return worst, lasts
}

// Sizes of followed runs.
const (
	followedSteps = 800
	followedFewer = 300 // of many subsystems
	followedTail  = 160
	followedLags  = 12
	followedMost  = 8 // outputs, combined at random
	slightly      = 1e-3
)

// followed runs the strategy from random states and takes the dominant modes from what the
// outputs do in the end, by the eigensystem of their Hankel matrix.
func (p *point) followed(s *scheme, h float64, twins []*twin, sys *master.System, ny int) (eigen, error) {
	if err := p.scatter(s, h, twins, rand.New(rand.NewPCG(1, 2))); err != nil {
		return eigen{}, err
	}
	steps := followedSteps
	if len(twins) > manySubsystems {
		steps = followedFewer
	}
	run, err := s.start(sys, h, steps*s.period())
	if err != nil {
		return eigen{}, err
	}
	defer run.Close()
	if err := run.Start(p.ctx); err != nil {
		return eigen{}, err
	}
	var series [][]float64
	period := s.period()
	for range steps {
		if err := p.steps(run, period); err != nil {
			if len(series) > followedTail {
				break // beyond all numbers
			}
			return eigen{}, err
		}
		y := append([]float64(nil), run.Point().Y...)
		largest := 0.0
		for _, v := range y {
			largest = max(largest, math.Abs(v))
		}
		if largest > 1e200 || largest < 1e-200 || math.IsNaN(largest) {
			break
		}
		series = append(series, y)
	}
	if len(series) < 4*followedLags {
		return eigen{}, errors.New("the coupled run leaves the numbers at once")
	}
	later := series[len(series)/3:]
	tail := series[max(0, len(series)-followedTail):]
	mode, err := dominant(tail)
	if err != nil || mode.lasts && stable(mode.radius()) {
		return mode, err
	}
	if !stable(mode.radius()) {
		seen, grown := growth(tail), 0.5*math.Log(mode.radius())
		switch little := len(twins) > manySubsystems || mode.radius() < 1+slightly; {
		case little && math.Log(seen) < grown:
			// What takes little part is found with less certainty than how much all grows.
			mode.value *= complex(min(seen, 1)/mode.radius(), 0)
		case math.Log(seen) < grown || math.Log(growth(later)) < grown:
			return eigen{}, fmt.Errorf("followed over %d steps, a motion looks as if it grew by %.6g in each, and all together grows by %.6g in each: the models that are found on the way have noise", len(series), mode.radius(), growth(later))
		}
	}
	return mode, resolved(later, mode.radius())
}

// scatter puts the twins of all subsystems into random states.
func (p *point) scatter(s *scheme, h float64, twins []*twin, rng *rand.Rand) error {
	for i := range twins {
		if err := p.scatterOne(s, h, twins, i, rng); err != nil {
			return err
		}
	}
	return nil
}

// scatterOne puts the twin of subsystem i into a random state.
func (p *point) scatterOne(s *scheme, h float64, twins []*twin, i int, rng *rand.Rand) error {
	t := twins[i]
	for k := range t.x0 {
		t.x0[k] = rng.NormFloat64()
	}
	r, err := p.over(i, p.stepOf(i, s, h))
	if err != nil {
		return err
	}
	if clear(t.y0); r.C != nil {
		linear.Multiply(t.y0, r.C, t.x0, 1)
	}
	return nil
}

// nearly is how close to 1 the radius of a followed run is that is looked at again.
const nearly = 0.03

// alikeRadius is how far apart radii of it may be that are found in different ways.
const alikeRadius = 2e-4

// again are the strides of the looks: in points that lie farther apart, slow motions part more, and noise counts less.
var again = []int{2, 3}

// resolved fails if the radius found at the end of a followed run is another in points of it that lie farther
// apart, so that whether it grows cannot be told.
func resolved(series [][]float64, radius float64) error {
	if math.Abs(radius-1) > nearly {
		return nil
	}
	for _, stride := range again {
		var apart [][]float64
		for k := (len(series) - 1) % stride; k < len(series); k += stride {
			apart = append(apart, series[k])
		}
		if apart = apart[max(0, len(apart)-followedTail):]; len(apart) < 4*followedLags {
			break
		}
		mode, err := dominant(apart)
		if err != nil {
			return err
		}
		if other := math.Pow(mode.radius(), 1/float64(stride)); stable(other) != stable(radius) && math.Abs(other-radius) > alikeRadius {
			return fmt.Errorf("followed, it has a radius of %.6g or of %.6g, as it is looked at: the models that are found on the way have noise", radius, other)
		}
	}
	return nil
}

// growth gives by what factor per step a series grows, as seen from its first and last third,
// each output in its size.
func growth(series [][]float64) float64 {
	third := len(series) / 3
	sum, first := 0.0, 0.0
	size := make([]float64, len(series[0]))
	for _, y := range series {
		for o, v := range y {
			size[o] = max(size[o], math.Abs(v))
		}
	}
	for k := range third {
		for o, v := range size {
			if v > 0 {
				first += series[k][o] / v * series[k][o] / v
				last := series[len(series)-third+k][o] / v
				sum += last * last
			}
		}
	}
	return math.Pow(sum/first, 0.5/float64(len(series)-third))
}

// dominant finds the mode of largest growth in a series of outputs.
func dominant(series [][]float64) (eigen, error) {
	ny := len(series[0])
	size := make([]float64, ny)
	for _, y := range series {
		for o, v := range y {
			size[o] = max(size[o], math.Abs(v))
		}
	}
	mix := mat.NewDense(min(ny, followedMost), ny, nil)
	rng := rand.New(rand.NewPCG(3, 4))
	rows, _ := mix.Dims()
	for i := range rows {
		for o := range ny {
			switch {
			case size[o] == 0:
			case rows == ny && i == o:
				mix.Set(i, o, 1/size[o])
			case rows < ny:
				mix.Set(i, o, rng.NormFloat64()/size[o])
			}
		}
	}
	columns := len(series) - followedLags
	h := mat.NewDense(rows*followedLags, columns+1, nil)
	v := mat.NewVecDense(rows, nil)
	for k, y := range series {
		v.MulVec(mix, mat.NewVecDense(ny, y))
		for lag := range followedLags {
			if c := k - lag; c >= 0 && c <= columns {
				for i := range rows {
					h.Set(lag*rows+i, c, v.AtVec(i))
				}
			}
		}
	}
	h0, h1 := mat.DenseCopyOf(h.Slice(0, rows*followedLags, 0, columns)), h.Slice(0, rows*followedLags, 1, columns+1)
	var svd mat.SVD
	if !svd.Factorize(h0, mat.SVDThin) {
		return eigen{}, errors.New("the coupled run has no singular values")
	}
	sv := svd.Values(nil)
	n := 0
	for n < len(sv) && sv[n] > 1e-9*sv[0] {
		n++
	}
	if n == 0 {
		return eigen{}, nil
	}
	var u, w mat.Dense
	svd.UTo(&u)
	svd.VTo(&w)
	un, wn := u.Slice(0, rows*followedLags, 0, n), w.Slice(0, columns, 0, n)
	var t, a mat.Dense
	t.Mul(un.T(), h1)
	a.Mul(&t, wn)
	for i := range n {
		for j := range n {
			a.Set(i, j, a.At(i, j)/sv[j])
		}
	}
	var e mat.Eigen
	if !e.Factorize(&a, mat.EigenRight) {
		return eigen{}, errors.New("the eigenvalues of the coupled run were not found")
	}
	values := e.Values(nil)
	amplitudes, err := participation(&e, un, h0, n)
	if err != nil {
		return eigen{}, err
	}
	most := 0.0
	for _, v := range amplitudes {
		most = max(most, v)
	}
	worst, lasts := limiting(values, func(i int) bool { return amplitudes[i] > 1e-6*most }) // what takes hardly part is noise
	mode := eigen{value: values[worst], outputs: make([]float64, ny), lasts: lasts}
	last := series[len(series)-1]
	for o := range ny {
		mode.outputs[o] = math.Abs(last[o])
	}
	return mode, nil
}

// participation gives how much of each mode is in the last column.
func participation(e *mat.Eigen, un, h0 mat.Matrix, n int) ([]float64, error) {
	var vectors mat.CDense
	e.VectorsTo(&vectors)
	_, columns := h0.Dims()
	var x mat.VecDense
	x.MulVec(un.T(), mat.NewVecDense(h0.(*mat.Dense).RawMatrix().Rows, mat.Col(nil, columns-1, h0)))
	// V b = x in real numbers.
	m, right := mat.NewDense(2*n, 2*n, nil), mat.NewVecDense(2*n, nil)
	for i := range n {
		for j := range n {
			v := vectors.At(i, j)
			m.Set(i, j, real(v))
			m.Set(i, n+j, -imag(v))
			m.Set(n+i, j, imag(v))
			m.Set(n+i, n+j, real(v))
		}
		right.SetVec(i, x.AtVec(i))
	}
	var b mat.VecDense
	if err := b.SolveVec(m, right); err != nil {
		var condition mat.Condition
		if !errors.As(err, &condition) {
			return nil, err
		}
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Hypot(b.AtVec(i), b.AtVec(n+i))
	}
	return out, nil
}

// steps takes some macro steps.
func (p *point) steps(run *master.Run, n int) error {
	for range n {
		if _, err := macroStep(p.ctx, run); err != nil {
			return err
		}
	}
	return nil
}
