package algorithms

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/input"
	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/algorithms/internal/solver"
	"github.com/macrostep/macrostep/master"
)

// SolverKind is the way in which the interface equation is solved.
type SolverKind uint8

// The kinds.
const (
	NewtonFD   SolverKind = iota // Newton, interface Jacobian by differences of repeated steps
	NewtonLOS                    // low-order sensitivities from directional derivatives, then rank-one updates
	Broyden                      // first Jacobian by differences, then rank-one updates
	IQN                          // interface quasi-Newton with inverse least squares, no Jacobian
	FixedPoint                   // relaxed fixed point, no Jacobian
)

var solverKinds = []string{"newton-fd", "newton-los", "broyden", "iqn", "fixed-point"}

// Solver configures the solution of the interface equation of an implicit scheme.
type Solver struct {
	Kind          SolverKind
	Tolerance     float64 // of a correction, in units of the weights; 0 = 1e-6
	MaxIterations int     // correctors; 0 = 12 (Newton), 50 (the others)
	Relaxation    float64 // of the fixed point, and of the first step of IQN; 0 = Aitken, and 0.5
	GaussSeidel   bool    // the sweep of the fixed point
	// Predict lets subsystems without rollback take the predicted inputs and
	// keeps them out of the iteration; else they are refused.
	Predict bool
}

const (
	defaultSolverTolerance  = 1e-6 // meyer 6.1
	defaultNewtonIterations = 12   // likewise
	defaultIterations       = 50
	defaultIQNRelaxation    = 0.5
)

// Sizes of perturbations and of what rounding leaves, relative to the magnitude
// of an input. A Jacobian that is off by a part p contracts by p, so that large
// perturbations cost little where a system is not linear, and stand above the
// noise of solvers; on linear systems they lose the fewest digits.
const (
	perturbation = 1e-4
	roundingPart = 1e-13
	// vanishing is the part of its nominal value below which an input counts as 0: after
	// many subsystems there is that little left.
	vanishing = 1e-100
	// sameStep is the part by which step sizes may differ and count as one: where steps
	// vary, those that are meant to be equal differ by rounding.
	sameStep = 1e-6
	// stagnant is the weighted norm of a correction below which an iteration that
	// no longer contracts is taken for solved: what is left is noise of the
	// subsystems' solvers, a hundredth of the tolerance on the inputs.
	stagnant = 1e-2
	// deafSteps without a response to any correction make a warning.
	deafSteps = 10
	// stagnantPart is the share of macro steps that may come to rest above the tolerance
	// without a warning.
	stagnantPart = 0.1
)

// implicit is implicit coupling (meyer 3.2; schweizer 2.1.2, 2.2.2, 2.3.2). The
// unknowns z are the inputs that close loops, at the end t+H of the macro step;
// the polynomials go through them and through the last communication points.
// The interface equation is
//
//	r(z) = z − (L y(z) + b) = 0.
//
// The predictor step takes the polynomials through old points only; it is the
// residual at z = p(t+H), since the polynomial of degree k through that value
// and the k newest points is the same. Corrector steps repeat the macro step
// from the saved states. Stateless subsystems are stepped after their sources
// in each of them.
//
// Subsystems that lie on no loop take part once: blocks of the graph are solved
// one after the other, and an input that leads from one to a later one is known
// at t+H.
type implicit struct {
	config Solver
	tol    *tolerances
	in     *input.Approximation
	// predictAll asks for a predictor step of all subsystems with nothing but
	// extrapolated inputs, whose outputs go to predicted.
	predictAll bool
	predicted  []float64

	// Macro steps whose iteration came to rest above the tolerance, and the
	// largest norm at which it did.
	stagnated int
	cut       int // of these, where the number of iterations was reached
	worst     float64
	solved    int // macro steps of blocks with loops, attempts included

	// deaf counts macro steps whose corrections changed no output; -1 once one has.
	deaf int

	blocks []*block
	used   bool // since the last accept or reject
}

func newImplicit(c Solver, tol *tolerances, in *input.Approximation) (*implicit, error) {
	if c.Tolerance == 0 {
		c.Tolerance = defaultSolverTolerance
	}
	newton := c.Kind == NewtonFD || c.Kind == NewtonLOS
	if c.MaxIterations == 0 {
		c.MaxIterations = defaultIterations
		if newton {
			c.MaxIterations = defaultNewtonIterations
		}
	}
	switch {
	case int(c.Kind) >= len(solverKinds):
		return nil, fmt.Errorf("there is no solver of kind %d", c.Kind)
	case !(c.Tolerance > 0):
		return nil, fmt.Errorf("the tolerance of the solver is %g; it must be greater than 0", c.Tolerance)
	case c.MaxIterations < 1:
		return nil, fmt.Errorf("the solver may take %d iterations; it needs at least 1", c.MaxIterations)
	case c.Relaxation < 0 || c.Relaxation > 2:
		return nil, fmt.Errorf("the relaxation is %g; it lies between 0 and 2", c.Relaxation)
	case c.GaussSeidel && c.Kind != FixedPoint:
		return nil, errors.New("only the fixed point sweeps one subsystem after the other (sweep=gauss-seidel)")
	}
	return &implicit{config: c, tol: tol, in: in}, nil
}

// block is a block of the graph (master.System.Blocks), and what it takes to
// solve its interface equation.
type block struct {
	*implicit
	cyclic    bool
	iterated  []int           // members that are stepped with approximated inputs and can be repeated
	once      []int           // members that cannot go back: they take the predicted inputs
	late      []int           // stateless members, after the others in this order
	lateAgain []int           // those of them that can be repeated
	everyStep *input.Stepping // of the iterated
	onlyOnce  *input.Stepping
	goBack    *master.StateSet // of all that are repeated

	loop []int // unknowns: inputs of iterated members that are fed from within the block
	open []int // extrapolated inputs that are fed from earlier blocks
	// Its columns are the unknowns, then the inputs of late members that are fed
	// from within the block.
	interfaceJacobian
	of map[int]int // input to column

	sweep         []int             // fixed point by Gauss–Seidel: members in turn
	turns         []*input.Stepping // of each of them
	lastH         float64
	z, r, dz      []float64
	weight, floor []float64
	phi           []float64 // L y + b [nu], entries of the block
	fed           []float64 // phi of the unknowns before the last correction
	base          []float64 // y where differences start from, [ny]
	size          []float64 // by column: largest magnitude seen
	noise         []float64 // by subsystem: by how much repeated steps differ
	solver        solver.Solver
	rounds        []round // of perturbed steps
	lateRounds    []round
	// Low-order sensitivities: H C_vel and H² C_pos of inputs that are held over
	// the step, and of those that follow their polynomial.
	models               []linearModel
	respond              *master.Phase
	heldPos, heldVel     float64
	shapedPos, shapedVel float64
}

// round is one set of perturbed steps: one input of each member.
type round struct {
	columns []int
	goBack  *master.StateSet
	steps   *input.Stepping
}

func (s *implicit) check(sys *master.System) error {
	if s.config.Kind != NewtonLOS {
		return nil
	}
	var errs []error
	for _, b := range sys.Blocks() {
		if !b.Cyclic {
			continue
		}
		for _, i := range b.Members {
			if len(sys.Infos[i].In) == 0 || !s.iterates(sys, i) {
				continue
			}
			if why := lacksModel(sys, i); why != "" {
				errs = append(errs, fmt.Errorf("%s: %w: %s; solver.kind=newton-fd or iqn do without", sys.Infos[i], master.ErrCapability, why))
			}
		}
	}
	return errors.Join(errs...)
}

// iterates reports whether subsystem i is repeated: not if it cannot go back and
// the user allows that.
func (s *implicit) iterates(sys *master.System, i int) bool {
	if !s.config.Predict {
		return true
	}
	_, ok := master.As[master.StateSaver](sys.Subsystems[i])
	return ok && sys.Infos[i].Caps.SaveState
}

// needsRollback returns the subsystems that are repeated: those on loops.
func (s *implicit) needsRollback(sys *master.System) []int {
	var out []int
	for _, b := range sys.Blocks() {
		for _, i := range b.Members {
			if (b.Cyclic || s.predictAll) && s.iterates(sys, i) {
				out = append(out, i)
			}
		}
	}
	slices.Sort(out)
	return out
}

func (s *implicit) init(x *master.Exec, _ float64) error {
	s.predicted = make([]float64, len(x.Y))
	s.blocks, s.stagnated, s.cut, s.worst, s.solved, s.deaf = nil, 0, 0, 0, 0, 0
	for _, m := range x.Sys.Blocks() {
		b, err := s.newBlock(x, m)
		if err != nil {
			return err
		}
		s.blocks = append(s.blocks, b)
	}
	return nil
}

func (s *implicit) newBlock(x *master.Exec, m master.Block) (*block, error) {
	sys := x.Sys
	b := &block{implicit: s, cyclic: m.Cyclic, of: map[int]int{}}
	member := func(i int) bool { _, found := slices.BinarySearch(m.Members, i); return found }
	for _, i := range sys.Late {
		if member(i) {
			b.late = append(b.late, i)
		}
	}
	for _, i := range m.Members {
		if slices.Contains(b.late, i) {
			continue
		}
		if m.Cyclic && !s.iterates(sys, i) {
			b.once = append(b.once, i)
			x.Note(fmt.Sprintf("%s cannot go back: it takes the predicted inputs, and its outputs are not corrected", sys.Infos[i]))
		} else {
			b.iterated = append(b.iterated, i)
		}
	}
	holds := sys.Holds()
	for _, i := range slices.Concat(b.iterated, b.once) {
		for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
			switch from := sys.SourceSubsystem(k); {
			case from < 0 || holds[k]:
			case !member(from):
				b.open = append(b.open, k)
			case m.Cyclic && slices.Contains(b.iterated, i):
				b.loop = append(b.loop, k)
			}
		}
	}
	if len(b.loop) == 0 {
		b.cyclic = false
	}
	var err error
	if b.everyStep, err = input.NewStepping(x, s.in, b.iterated); err != nil {
		return nil, err
	}
	if b.onlyOnce, err = input.NewStepping(x, s.in, b.once); err != nil {
		return nil, err
	}
	var repeated []int
	for _, i := range b.iterated {
		if x.Reverts(i) {
			repeated = append(repeated, i)
		}
	}
	for _, i := range b.late {
		if x.Reverts(i) {
			b.lateAgain = append(b.lateAgain, i)
		}
	}
	repeated = append(repeated, b.lateAgain...)
	b.goBack = x.NewStateSet(repeated)
	if !b.cyclic {
		b.phi = make([]float64, len(x.W))
		return b, nil
	}
	return b, b.prepare(x)
}

// prepare lays out the interface equation.
func (b *block) prepare(x *master.Exec) error {
	sys := x.Sys
	if err := b.refuseNoise(x); err != nil {
		return err
	}
	add := func(k, i int) {
		b.of[k] = len(b.columns)
		b.columns = append(b.columns, column{input: k, subsystem: i, s: make([]float64, sys.OutAt[i+1]-sys.OutAt[i])})
	}
	for _, k := range b.loop {
		add(k, num.Owner(sys.InAt, k))
	}
	if b.config.Kind <= Broyden {
		for _, i := range b.late {
			for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
				if from := sys.SourceSubsystem(k); from >= 0 && (slices.Contains(b.iterated, from) || slices.Contains(b.late, from)) {
					add(k, i)
				}
			}
		}
	}
	n := len(b.columns)
	b.layOut(sys)
	b.z, b.r, b.dz = make([]float64, n), make([]float64, n), make([]float64, n)
	b.weight, b.floor, b.fed = make([]float64, n), make([]float64, len(b.loop)), make([]float64, len(b.loop))
	b.size = make([]float64, n)
	b.phi, b.base = make([]float64, len(x.W)), make([]float64, len(x.Y))
	b.noise = make([]float64, len(sys.Subsystems))
	for i := range b.noise {
		b.noise[i] = x.Replay(i).Replays
	}
	for j, c := range b.columns {
		b.size[j] = math.Abs(x.W[c.input])
	}
	switch b.config.Kind {
	case NewtonFD:
		b.solver = &solver.Newton{}
	case NewtonLOS, Broyden: // sensitivities of low order contract slowly; updates mend them
		b.solver = &solver.Broyden{}
	case IQN:
		omega := b.config.Relaxation
		if omega == 0 {
			omega = defaultIQNRelaxation
		}
		b.solver = &solver.IQN{Relaxation: omega}
	case FixedPoint:
		b.solver = &solver.FixedPoint{Relaxation: b.config.Relaxation}
		if b.config.GaussSeidel {
			for _, i := range sys.SequenceFromGraph() {
				if !slices.Contains(b.iterated, i) {
					continue
				}
				turn, err := input.NewStepping(x, b.in, []int{i})
				if err != nil {
					return err
				}
				b.sweep, b.turns = append(b.sweep, i), append(b.turns, turn)
			}
		}
	}
	b.solver.Init(b.jacobian)
	if b.config.Kind == NewtonLOS {
		return b.prepareModels(x)
	}
	if b.config.Kind <= Broyden {
		return b.prepareRounds(x)
	}
	return nil
}

// refuseNoise refuses members whose repeated steps differ by more than the
// tolerance: no iteration can settle below that.
func (b *block) refuseNoise(x *master.Exec) error {
	var errs []error
	for _, i := range b.iterated {
		if noise := x.Replay(i).Replays; noise > b.tol.relative {
			errs = append(errs, fmt.Errorf("%s: %w: its repeated steps differ by %.2g, more than the relative tolerance %.2g; choose an explicit algorithm or a larger control.rtol",
				x.Sys.Infos[i], master.ErrCapability, noise, b.tol.relative))
		}
	}
	return errors.Join(errs...)
}

// prepareRounds groups the columns so that each round perturbs one input of
// every member that has one left; late members have rounds of their own.
func (b *block) prepareRounds(x *master.Exec) (err error) {
	used := map[int]int{}
	for j, c := range b.columns {
		rounds := &b.rounds
		if j >= len(b.loop) {
			rounds = &b.lateRounds
		}
		g := used[c.subsystem]
		used[c.subsystem]++
		if g == len(*rounds) {
			*rounds = append(*rounds, round{})
		}
		(*rounds)[g].columns = append((*rounds)[g].columns, j)
	}
	for g := range b.rounds {
		r := &b.rounds[g]
		var members []int
		for _, j := range r.columns {
			members = append(members, b.columns[j].subsystem)
		}
		slices.Sort(members)
		r.goBack = x.NewStateSet(members)
		if r.steps, err = input.NewStepping(x, b.in, members); err != nil {
			return err
		}
	}
	return nil
}

// advance takes one macro step.
func (s *implicit) advance(ctx context.Context, x *master.Exec, t, H float64, degree int) (effort, error) {
	s.in.Begin(x, t, H, degree)
	s.used = true
	var e effort
	if s.predictAll {
		for _, b := range s.blocks {
			if err := b.evaluate(ctx, x, t, H, true); err != nil {
				return e, err
			}
		}
		copy(s.predicted, x.Y)
	}
	for _, b := range s.blocks {
		done, err := b.solve(ctx, x, t, H)
		e.iterations += done.iterations
		e.jacobians += done.jacobians
		if err != nil {
			return e, err
		}
	}
	return e, nil
}

func (s *implicit) accept(*master.Exec, float64) { s.conclude(solver.Solver.Accept) }
func (s *implicit) reject(float64, float64)      { s.conclude(solver.Solver.Reject) }

func (s *implicit) conclude(tell func(solver.Solver)) {
	for _, b := range s.blocks {
		if b.cyclic && s.used {
			tell(b.solver)
		}
	}
	s.used = false
}

func (s *implicit) archive(a *master.Archive) {
	a.Section("interface equation")
	num.Carry(a, &s.stagnated, &s.cut, &s.worst, &s.solved, &s.deaf)
	for _, b := range s.blocks {
		if b.cyclic {
			num.Carry(a, &b.lastH, b.size)
			b.solver.Archive(a)
		}
	}
}

// solve steps the members of the block from t to t+H.
func (b *block) solve(ctx context.Context, x *master.Exec, t, H float64) (effort, error) {
	var e effort
	fresh := b.predictAll && len(b.open) == 0 // the predictor step stands
	if !fresh {
		if b.predictAll {
			if err := b.goBack.Restore(); err != nil {
				return e, err
			}
		}
		for _, k := range b.open {
			x.Couple(b.in.Owner(k), t+H, b.phi)
			b.in.Arrived(k, b.phi[k])
		}
		if err := b.evaluate(ctx, x, t, H, !b.predictAll); err != nil {
			return e, err
		}
	}
	if !b.cyclic {
		return e, nil
	}
	for j := range b.columns {
		c := &b.columns[j]
		b.z[j] = x.U[c.input] // of late members: what they were stepped with
		if j < len(b.loop) {
			b.z[j] = b.in.Extrapolated(c.input)
		}
		b.weight[j] = b.tol.input(c.input, b.z[j])
	}
	if s, ok := b.solver.(solver.Weighted); ok {
		s.Weigh(b.weight)
	}
	if math.Abs(H-b.lastH) > sameStep*H {
		b.lastH = H
	}
	b.solver.Begin(b.lastH, b.in.DegreeAhead())
	b.solved++
	before := math.NaN()
	for {
		if err := b.residual(x, t, H); err != nil {
			return e, err
		}
		if e.iterations == 1 {
			b.listen(x)
		}
		perturbed := false
		if b.solver.NeedsJacobian() {
			// One of this attempt has not helped: nor will another.
			if e.jacobians > 1 && before <= stagnant {
				b.rest(before)
				return e, nil
			}
			var err error
			if perturbed, err = b.evaluateJacobian(ctx, x, t, H); err != nil {
				return e, err
			}
			e.jacobians++
			if err := b.solver.TakeJacobian(b.jacobian); err != nil {
				return e, b.notSolvable(x, err)
			}
		}
		if err := b.solver.Correct(b.z, b.r, b.dz); err != nil {
			return e, b.notSolvable(x, err)
		}
		norm := b.norm()
		if norm <= b.config.Tolerance && !perturbed {
			return e, nil
		}
		diverging := !math.IsNaN(before) && b.solver.Contraction(norm/before)
		last := e.iterations >= b.config.MaxIterations
		if norm <= stagnant && !perturbed && (diverging || last) {
			b.rest(norm)
			if !diverging {
				b.cut++
			}
			return e, nil
		}
		switch {
		case norm <= b.config.Tolerance: // the states are to be those of the solution
		case last:
			return e, b.notConverged(x, e, fmt.Sprintf("the last correction is %.2g times the tolerance", norm/b.config.Tolerance))
		case diverging, math.IsNaN(norm), math.IsInf(norm, 0):
			return e, b.notConverged(x, e, "the iteration diverges")
		}
		before = norm
		e.iterations++
		for j, k := range b.loop {
			b.fed[j] = b.phi[k]
			b.z[j] += b.dz[j]
			b.in.Arrived(k, b.z[j])
		}
		if err := b.goBack.Restore(); err != nil {
			return e, err
		}
		if err := b.evaluate(ctx, x, t, H, false); err != nil {
			return e, err
		}
	}
}

// listen checks whether the first correction has changed an output.
func (b *block) listen(x *master.Exec) {
	if b.deaf < 0 || b.deaf >= deafSteps {
		return
	}
	for j, k := range b.loop {
		if b.phi[k] != b.fed[j] {
			b.deaf = -1 // it has
			return
		}
	}
	if b.deaf++; b.deaf == deafSteps {
		x.Note("the outputs do not respond to the inputs at the end of the macro step: the components sample their inputs at its start. Corrections change nothing, " +
			"and implicit coupling gives the results of explicit coupling at a higher cost; use explicit, or smaller steps")
	}
}

// rest takes note of an iteration that came to rest above the tolerance.
func (s *implicit) rest(norm float64) {
	s.stagnated++
	s.worst = max(s.worst, norm)
}

// notSolvable names the unknown for which a correction could not be found.
func (b *block) notSolvable(x *master.Exec, err error) error {
	var at *num.EntryError
	if errors.As(err, &at) {
		return fmt.Errorf("%w: at %s: %w", errNotConverged, x.Sys.InName(b.columns[at.Index].input), at.Err)
	}
	return fmt.Errorf("%w: %w", errNotConverged, err)
}

// notConverged names the unknown that moves most.
func (b *block) notConverged(x *master.Exec, e effort, why string) error {
	worst, at := -1.0, 0
	for j := range b.loop {
		if v := math.Abs(b.r[j]) / b.weight[j]; v > worst || math.IsNaN(v) {
			worst, at = v, j
		}
	}
	if len(b.loop) == 0 {
		return errNotConverged
	}
	return fmt.Errorf("%w after %d iterations: %s; the largest residual is %.3g at %s = %.6g",
		errNotConverged, e.iterations, why, b.r[at], x.Sys.InName(b.loop[at]), b.z[at])
}

// evaluate steps the members with the polynomials as they stand; in the first
// evaluation of an attempt also those that cannot be repeated.
func (b *block) evaluate(ctx context.Context, x *master.Exec, t, H float64, first bool) error {
	if first {
		if err := b.onlyOnce.Run(ctx, t, H); err != nil {
			return err
		}
	}
	if b.sweep != nil && !first {
		if err := b.stepInTurn(ctx, x, t, H); err != nil {
			return err
		}
	} else if err := b.everyStep.Run(ctx, t, H); err != nil {
		return err
	}
	if first {
		return input.StepLate(ctx, x, b.late, t, H)
	}
	return input.StepLate(ctx, x, b.lateAgain, t, H)
}

// stepInTurn steps one member after the other, each with what those before it
// have given in this sweep.
func (b *block) stepInTurn(ctx context.Context, x *master.Exec, t, H float64) error {
	for at, i := range b.sweep {
		x.Couple(i, t+H, b.phi)
		for k := x.Sys.InAt[i]; k < x.Sys.InAt[i+1]; k++ {
			if from := x.Sys.SourceSubsystem(k); from >= 0 && slices.Contains(b.sweep[:at], from) {
				b.in.Arrived(k, b.phi[k])
			}
		}
		if err := b.turns[at].Run(ctx, t, H); err != nil {
			return err
		}
	}
	return nil
}

// residual puts r = z − (L y + b) from the outputs as read. The inputs of late
// members are what they were stepped with.
func (b *block) residual(x *master.Exec, t, H float64) error {
	x.CoupleSome(b.iterated, t+H, b.phi)
	for j := range b.columns {
		k := b.columns[j].input
		if j < len(b.loop) {
			b.r[j] = b.z[j] - b.phi[k]
		} else {
			b.z[j], b.r[j] = x.U[k], 0
		}
		if v := b.r[j] + b.z[j]; v-v != 0 {
			return fmt.Errorf("%w: the value of %s computed from the outputs is NaN or infinite", errNotConverged, x.Sys.InName(k))
		}
		b.size[j] = max(b.size[j], math.Abs(b.z[j]))
	}
	for j := range b.loop {
		b.floor[j] = b.size[j] * max(roundingPart, b.noise[b.columns[j].subsystem])
	}
	return nil
}

// norm is the weighted norm of the correction, less what rounding and replay
// noise leave open.
func (b *block) norm() float64 {
	sum := 0.0
	for j := range b.loop {
		d := math.Abs(b.dz[j]) - b.floor[j]
		if d < 0 {
			continue
		}
		d /= b.weight[j]
		sum += float64(d * d)
	}
	return math.Sqrt(sum / float64(len(b.loop)))
}

// evaluateJacobian puts J = I − L S at the present iterate. perturbed:
// the states are no longer those of the iterate.
func (b *block) evaluateJacobian(ctx context.Context, x *master.Exec, t, H float64) (perturbed bool, err error) {
	if b.config.Kind == NewtonLOS {
		err = b.lowOrderSensitivities(H)
	} else {
		perturbed = true
		err = b.differences(ctx, x, t, H)
	}
	if err != nil {
		return perturbed, err
	}
	b.assemble()
	return perturbed, nil
}

// differences finds S by perturbed steps of each subsystem, all subsystems at
// once: what one gives depends on its own inputs only. So the cost is the
// largest number of loop inputs of one subsystem (meyer, appendix A.1).
func (b *block) differences(ctx context.Context, x *master.Exec, t, H float64) error {
	copy(b.base, x.Y)
	// Late ones first: their sources are as they were.
	for g := range b.lateRounds {
		for _, j := range b.lateRounds[g].columns {
			c := &b.columns[j]
			i := c.subsystem
			if !x.Reverts(i) {
				continue
			}
			if err := x.Restore(i); err != nil {
				return err
			}
			x.Couple(i, t+H, x.U)
			c.delta = b.delta(x, j)
			x.U[c.input] += c.delta
			c.delta = x.U[c.input] - b.z[j]
			if err := input.StepWith(ctx, x, i, t, H); err != nil {
				return err
			}
			b.difference(x, c)
			copy(x.Out(i), b.base[x.Sys.OutAt[i]:x.Sys.OutAt[i+1]])
		}
	}
	for g := range b.rounds {
		r := &b.rounds[g]
		if err := r.goBack.Restore(); err != nil {
			return err
		}
		for _, j := range r.columns {
			c := &b.columns[j]
			moved := b.z[j] + b.delta(x, j)
			c.delta = moved - b.z[j]
			b.in.Arrived(c.input, moved)
		}
		if err := r.steps.Run(ctx, t, H); err != nil {
			return err
		}
		for _, j := range r.columns {
			b.difference(x, &b.columns[j])
			b.in.Arrived(b.columns[j].input, b.z[j])
		}
	}
	copy(x.Y, b.base)
	return nil
}

// delta is the size of a perturbation: large enough to stand above rounding and
// replay noise, small enough for a derivative.
func (b *block) delta(x *master.Exec, j int) float64 {
	c := &b.columns[j]
	size, typical := b.size[j], nominal(x.Sys, c.input)
	if size < vanishing*typical {
		size = typical // what is near the least numbers has no part that could be added to it
	}
	return size * max(perturbation, math.Sqrt(b.noise[c.subsystem]))
}

func (b *block) difference(x *master.Exec, c *column) {
	at := x.Sys.OutAt[c.subsystem]
	for out := range c.s {
		c.s[out] = (x.Y[at+out] - b.base[at+out]) / c.delta
	}
}

// review warns of iterations that came to rest above the tolerance.
func (s *implicit) review() []string {
	if float64(s.stagnated) <= stagnantPart*float64(s.solved) {
		return nil // corrections this small are harmless now and then
	}
	why := "the solvers in the subsystems leave that much open; a tighter --tolerance for them, or a looser solver.tolerance, avoids it"
	if 2*s.cut > s.stagnated {
		why = fmt.Sprintf("the iteration ends after solver.max-iterations=%d; more of them, or another solver.kind, avoid it", s.config.MaxIterations)
	}
	return []string{fmt.Sprintf("the corrector came to rest above solver.tolerance=%g in %d macro steps, with corrections of up to %.1e of the weights: %s",
		s.config.Tolerance, s.stagnated, s.worst, why)}
}

// loopTreatment describes the solver for reports.
func (s *implicit) loopTreatment() string {
	return "solved at every communication point (" + solverKinds[s.config.Kind] + ")"
}

// nominal is the typical magnitude of an input.
func nominal(sys *master.System, k int) float64 {
	i := num.Owner(sys.InAt, k)
	if n := sys.Infos[i].In[k-sys.InAt[i]].Nominal; n > 0 {
		return n
	}
	return 1
}
