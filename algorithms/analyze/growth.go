package analyze

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/macrostep/macrostep/master"
)

const energyCorrection = "energy-correction"

// Sizes of the runs by which a growth is found.
const (
	growthStarts  = 3    // random states of all, 1 of many subsystems
	growthAlone   = 4    // components at most that are set in motion alone, the others at rest
	growthAgain   = 2    // times, from random states
	growthSteps   = 800  // macro steps, or periods, at first
	growthLonger  = 4    // times as many, where that does not tell whether it grows
	growthLongest = 3    // lengths at most; one with many subsystems
	growthBlocks  = 40   // of a run; a size is that over a block
	growthFrom    = 4    // a part of the run, its first one, does not count: what dies out soon has to have done so
	growthFewest  = 12   // blocks that tell a rate
	growthLargest = 1e60 // times the size at first: energies go with the square
	// growthLeast is what is left of the size at first when rounding of what does not die out may take over.
	growthLeast = 1e-9
	// turnsSeen are how many turns of the slowest mode a run has to have for what the correction does over one to count
	// in the mean.
	turnsSeen = 2
	// restRank is the part of the largest singular value below which a motion counts as one that nothing holds, which
	// comes to rest anywhere.
	restRank = 1e-12
	// modesKept is the part of the largest eigenvalue, without correction, of modes that count in the size of a motion.
	modesKept = 0.3
)

// meanGrowth runs a strategy that is not linear on the models, and gives the factor by which what it does grows in a
// macro step, in the mean over many (its largest Lyapunov exponent), from the start from which it grows most: from
// where the motion of the system starts, from random states of all, and of one component, the others at rest. Different
// starts may end in different motions, of which some grow and some die out, so that others than these may, too. The energy correction is such a strategy, and such a factor is all that it has: a force that makes up
// for an energy divides it by a velocity, and so is as many times larger as the motion is, whatever that is
// (rodriguez (17)), but two motions do not add up.
//
// That holds for motions that are large beside what the bonds carry at rest, in deviations from which the models
// are: an effort at rest takes part in the power.
func (p *point) meanGrowth(s *scheme, h float64, scaled int, gain float64) (eigen, error) {
	size, err := p.uncorrected(s, h, scaled, gain)
	if err != nil {
		return eigen{}, err
	}
	random, longest := growthStarts, growthLongest
	if len(p.models) > manySubsystems {
		random, longest = 1, 1
	}
	var starts []func(twins []*twin) error
	rng := rand.New(rand.NewPCG(5, 6))
	for range random {
		starts = append(starts, func(twins []*twin) error { return p.scatter(s, h, twins, rng) })
	}
	if len(p.models) <= growthAlone {
		for n := range growthAgain * len(p.models) {
			starts = append(starts, func(twins []*twin) error { return p.scatterOne(s, h, twins, n%len(p.models), rng) })
		}
	}
	if size.start != nil {
		starts = append(starts, func(twins []*twin) error {
			at := 0
			for _, t := range twins {
				at += copy(t.x0, size.start[at:])
			}
			for _, t := range twins {
				at += copy(t.y0, size.start[at:])
			}
			return nil
		})
	}
	var most eigen
	for n, start := range starts {
		mode, err := p.grownFrom(s, size, h, scaled, gain, start, longest)
		if err != nil {
			return eigen{}, err
		}
		if n == 0 || cmplx.Abs(mode.value) > cmplx.Abs(most.value) {
			most = mode
		}
	}
	most.lasts = size.lasts
	return most, nil
}

// motionSize measures a motion by its parts in the modes of explicit coupling without correction. Were it not for the
// correction, each would grow or die out evenly: sums of squares of outputs rise and fall with every swing, and over
// steps that are short beside that tell nothing.
type motionSize struct {
	lags  []int
	parts [][]complex128 // by mode: of z
	lasts bool           // there is a mode besides that neither grows nor dies out, and counts in no size
	slow  float64        // least angle in a period that a mode turns by
	grows float64        // logarithm of the largest growth in a period, without correction
	// start holds states and outputs where the motion at hand starts, as deviations from where it comes to rest;
	// nil = it is at rest.
	start []float64
}

// uncorrected finds the modes.
func (p *point) uncorrected(s *scheme, h float64, scaled int, gain float64) (*motionSize, error) {
	plain := &scheme{preset: explicitScheme, order: s.order, rates: s.rates}
	twins, sys, err := p.twins(plain, h, scaled, gain, false)
	if err != nil {
		return nil, err
	}
	g, err := p.newPropagator(plain, h, twins, sys)
	if err != nil {
		return nil, err
	}
	phi, err := g.form(plain)
	_, closed := g.run.Close()
	if err = errors.Join(err, closed); err != nil {
		return nil, err
	}
	out := &motionSize{lags: g.lags, slow: math.Pi}
	if out.start, err = p.beginning(plain, h, scaled, gain, phi); err != nil {
		return nil, err
	}
	var kept []int
	for i, seen := range g.seen {
		if seen {
			kept = append(kept, i)
		}
	}
	m := mat.NewDense(len(kept), len(kept), nil)
	for r, i := range kept {
		for c, j := range kept {
			if v := phi.At(i, j); math.Abs(v) > vanished {
				m.Set(r, c, v)
			}
		}
	}
	sizes := balance(m)
	var e mat.Eigen
	if !e.Factorize(m, mat.EigenLeft) {
		return nil, errNoEigenvalues
	}
	var left mat.CDense
	e.LeftVectorsTo(&left)
	values := e.Values(nil)
	largest := 0.0
	for _, v := range values {
		if cmplx.Abs(v-1) >= marginal {
			largest = max(largest, cmplx.Abs(v))
		}
	}
	out.grows = math.Log(largest)
	for k, v := range values {
		switch angle := math.Abs(cmplx.Phase(v)); {
		case cmplx.Abs(v-1) < marginal:
			out.lasts = true
			continue
		case !(cmplx.Abs(v) > modesKept*largest):
			continue
		case angle > 0:
			out.slow = min(out.slow, angle)
		}
		part := make([]complex128, g.size())
		for r, i := range kept {
			part[i] = cmplx.Conj(left.At(r, k)) / complex(sizes[r], 0)
		}
		out.parts = append(out.parts, part)
	}
	if len(out.parts) == 0 {
		return nil, errors.New("everything dies out at once")
	}
	return out, nil
}

// beginning gives the states and outputs at the operating point, as deviations from where what moves the components by
// themselves would let them rest; nil = they are at rest there.
func (p *point) beginning(s *scheme, h float64, scaled int, gain float64, phi *mat.Dense) ([]float64, error) {
	twins, sys, err := p.twinsOf(s, h, scaled, gain, true, false)
	if err != nil {
		return nil, err
	}
	g, err := p.newPropagator(s, h, twins, sys)
	if err != nil {
		return nil, err
	}
	own := make([]float64, g.size()) // z⁺ = Φ z + own
	err = g.apply(make([]float64, g.size()), own)
	_, closed := g.run.Close()
	if err = errors.Join(err, closed); err != nil || !slices.ContainsFunc(own, func(v float64) bool { return v != 0 }) {
		return nil, err
	}
	left := mat.NewDense(g.size(), g.size(), nil) // I − Φ
	left.Scale(-1, phi)
	for i := range own {
		left.Set(i, i, 1+left.At(i, i))
	}
	var svd mat.SVD
	if !svd.Factorize(left, mat.SVDThin) {
		return nil, errNoEigenvalues
	}
	rank, sv := 0, svd.Values(nil)
	for rank < len(sv) && sv[rank] > restRank*sv[0] {
		rank++
	}
	var rest mat.Dense
	svd.SolveTo(&rest, mat.NewDense(len(own), 1, own), rank)
	start := make([]float64, g.n+g.ny)
	for i := range start {
		start[i] = -rest.At(i, 0)
	}
	return start, nil
}

// of gives the size of what twins do, whose outputs have been those of past, the newest last.
func (m *motionSize) of(twins []*twin, past [][]float64) float64 {
	sum := 0.0
	for _, part := range m.parts {
		c, at := complex(0, 0), 0
		for _, t := range twins {
			for _, x := range t.x {
				c += part[at] * complex(x, 0)
				at++
			}
		}
		for _, lag := range m.lags {
			for _, y := range past[len(past)-1-lag] {
				c += part[at] * complex(y, 0)
				at++
			}
		}
		sum += real(c)*real(c) + imag(c)*imag(c)
	}
	return math.Sqrt(sum)
}

// grownFrom is meanGrowth from one start.
func (p *point) grownFrom(s *scheme, size *motionSize, h float64, scaled int, gain float64, start func(twins []*twin) error, longest int) (mode eigen, err error) {
	twins, sys, err := p.twins(s, h, scaled, gain, false)
	if err != nil {
		return eigen{}, err
	}
	if err := start(twins); err != nil {
		return eigen{}, err
	}
	steps, period := growthSteps, s.period()
	most := steps
	for range longest - 1 {
		most *= growthLonger
	}
	last := size.lags[len(size.lags)-1]
	run, err := s.start(sys, h, most*period+last)
	if err != nil {
		return eigen{}, err
	}
	defer func() { _, closed := run.Close(); err = errors.Join(err, closed) }()
	if err := run.Start(p.ctx); err != nil {
		return eigen{}, err
	}
	past := [][]float64{append([]float64(nil), run.Point().Y...)}
	advance := func() error {
		if _, err := macroStep(p.ctx, run); err != nil {
			return err
		}
		past = append(past, append([]float64(nil), run.Point().Y...))
		return nil
	}
	for len(past) <= last || (len(past)-1)%period != 0 {
		if err := advance(); err != nil {
			return eigen{}, err
		}
	}
	sizes := []float64{size.of(twins, past)}
	for {
		ended := false
		for len(sizes) <= steps && !ended {
			for range period {
				if err := advance(); err != nil {
					return eigen{}, err
				}
			}
			now := size.of(twins, past)
			if ended = !(now <= growthLargest*sizes[0]) || now < growthLeast*sizes[0]; !ended {
				sizes = append(sizes, now)
			}
		}
		rate, off, err := rateOf(sizes)
		if err != nil {
			return eigen{}, err
		}
		if float64(len(sizes))*size.slow < turnsSeen*2*math.Pi {
			off = max(off, math.Abs(rate-size.grows))
		}
		told := off < math.Abs(rate-float64(period)*marginal)
		switch {
		case told:
			return grownMode(past, fedOutputs(sys), math.Exp(rate/float64(period))), nil
		case ended || steps == most:
			n := float64(period)
			return eigen{}, fmt.Errorf("over %d macro steps of the models it grows by a factor between %.7g and %.7g in each, in the mean: whether it grows is not known",
				len(past)-1, math.Exp((rate-off)/n), math.Exp((rate+off)/n))
		}
		steps *= growthLonger
	}
}

// fedOutputs returns which outputs feed an input: the others follow what else there is.
func fedOutputs(sys *master.System) []bool {
	fed := make([]bool, sys.OutAt[len(sys.Infos)])
	for k := range sys.InAt[len(sys.Infos)] {
		if y, ok := sys.Source(k); ok {
			fed[y] = true
		}
	}
	return fed
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
		multiply(t.y0, r.C, t.x0, 1)
	}
	return nil
}

// rateOf gives the logarithm of the growth in each of a series of sizes, by least squares through those of its
// blocks, and by how much that is uncertain: how far the rates of its halves are from it.
func rateOf(sizes []float64) (rate, off float64, err error) {
	each := max(len(sizes)/growthBlocks, 1)
	var at, logs []float64
	for from := len(sizes) / growthFrom; from+each <= len(sizes); from += each {
		sum := 0.0
		for _, v := range sizes[from : from+each] {
			sum += math.Log(v) / float64(each)
		}
		at, logs = append(at, float64(from)), append(logs, sum)
	}
	if len(at) < growthFewest {
		return 0, 0, errors.New("the run of the models leaves the numbers, or dies out, at once")
	}
	half := len(at) / 2
	rate = slope(at, logs)
	return rate, max(math.Abs(slope(at[:half], logs[:half])-rate), math.Abs(slope(at[half:], logs[half:])-rate)), nil
}

// slope is that of the line of least squares.
func slope(x, y []float64) float64 {
	mx, my := 0.0, 0.0
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	xx, xy := 0.0, 0.0
	for i := range x {
		xx, xy = xx+(x[i]-mx)*(x[i]-mx), xy+(x[i]-mx)*(y[i]-my)
	}
	return xy / xx
}

// grownMode gives what grows as a mode: the sizes of the outputs that feed inputs in the end, and half a turn for each
// change of sign of the largest one.
func grownMode(past [][]float64, fed []bool, growth float64) eigen {
	tail := past[len(past)-len(past)/4:]
	mode := eigen{outputs: make([]float64, len(fed))}
	largest := 0
	for o := range mode.outputs {
		for _, y := range tail {
			if fed[o] {
				mode.outputs[o] = max(mode.outputs[o], math.Abs(y[o]))
			}
		}
		if mode.outputs[o] > mode.outputs[largest] {
			largest = o
		}
	}
	turns := 0
	for k := 1; k < len(tail); k++ {
		if (tail[k][largest] < 0) != (tail[k-1][largest] < 0) {
			turns++
		}
	}
	angle := math.Pi * float64(turns) / float64(len(tail)-1)
	mode.value = complex(growth*math.Cos(angle), growth*math.Sin(angle))
	return mode
}
