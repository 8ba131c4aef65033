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

// SolverKind selects the solver of the interface equation.
type SolverKind uint8

// The kinds.
const (
	NewtonFD   SolverKind = iota // Newton; Jacobian from differences of repeated steps
	NewtonLOS                    // Jacobian from directional derivatives (low-order sensitivities), then rank-one updates
	Broyden                      // first Jacobian from differences, then rank-one updates
	IQN                          // interface quasi-Newton with inverse least squares, no Jacobian
	FixedPoint                   // relaxed fixed point, no Jacobian
)

var solverKinds = []string{"newton-fd", "newton-los", "broyden", "iqn", "fixed-point"}

// Solver configures the solution of the interface equation of an implicit scheme.
type Solver struct {
	Kind          SolverKind
	Tolerance     float64 // weighted norm of the last correction; 0 = 1e-6
	MaxIterations int     // corrector steps; 0 = 12 (Newton), 50 (the others)
	Relaxation    float64 // factor of FixedPoint (0 = Aitken) and of the first step of IQN (0 = 0.5)
	GaussSeidel   bool    // FixedPoint steps one subsystem after the other
	// Predict steps subsystems without rollback with the predicted inputs and leaves them
	// out of the iteration. Without it they are refused.
	Predict bool
}

const (
	defaultSolverTolerance  = 1e-6 // meyer 6.1
	defaultNewtonIterations = 12   // meyer 6.1
	defaultIterations       = 50
	defaultIQNRelaxation    = 0.5
)

const (
	// perturbation is the relative size of the perturbations of inputs. A Jacobian with a
	// relative error p contracts by p, so a large perturbation costs little in nonlinear
	// systems. It exceeds the noise of solvers, and loses the fewest digits in linear systems.
	perturbation = 1e-4
	// roundingPart is the rounding error of an input relative to its magnitude.
	roundingPart = 1e-13
	// vanishing is the fraction of its nominal value below which an input counts as 0. Such
	// values occur at the end of long chains.
	vanishing = 1e-100
	// sameStep is the relative difference up to which step sizes count as equal. With
	// variable steps, equal sizes differ by rounding.
	sameStep = 1e-6
	// stagnant is the weighted norm of a correction below which an iteration that no longer
	// contracts counts as solved. The rest, a hundredth of the tolerance on the inputs, is
	// noise of the subsystems' solvers.
	stagnant = 1e-2
	// deafSteps is the number of macro steps without response to any correction before a warning.
	deafSteps = 10
	// stagnantPart is the share of macro steps whose iteration may stagnate without a warning.
	stagnantPart = 0.1
)

// implicit is the implicit scheme (meyer 3.2; schweizer 2.1.2, 2.2.2, 2.3.2). The
// unknowns z are the values of the inputs on loops at the end t+H of the macro step. The
// input polynomials go through z and the last communication points. The interface
// equation is
//
//	r(z) = z − (L y(z) + b) = 0.
//
// The predictor step uses the polynomials p through old points only. It gives the residual
// at z = p(t+H), since the polynomial of degree k through that value and the k newest points
// is p. Corrector steps repeat the macro step from the saved states. Stateless subsystems
// are stepped after their sources in each of these steps.
//
// The blocks of the graph are solved one after the other. Subsystems on no loop are stepped
// once; an input from an earlier block is known at t+H.
type implicit struct {
	config Solver
	tol    *tolerances
	in     *input.Approximation
	// predictAll adds a predictor step of all subsystems with extrapolated inputs only. Its
	// outputs go to predicted.
	predictAll bool
	predicted  []float64

	solved    int     // macro steps of blocks with loops, attempts included
	stagnated int     // of these, those whose iteration stagnated above the tolerance
	cut       int     // of the latter, those that reached the largest number of iterations
	worst     float64 // largest weighted norm at which an iteration stagnated

	// deaf counts macro steps whose corrections changed no output; -1 = a correction did.
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
		return nil, fmt.Errorf("the relaxation is %g; it must be between 0 and 2", c.Relaxation)
	case c.GaussSeidel && c.Kind != FixedPoint:
		return nil, errors.New("solver.sweep=gauss-seidel needs solver.kind=fixed-point")
	}
	return &implicit{config: c, tol: tol, in: in}, nil
}

// block is a block of the graph (master.System.Blocks) with its interface equation.
type block struct {
	*implicit
	cyclic    bool
	iterated  []int           // members with approximated inputs that can be repeated
	once      []int           // members without rollback: stepped once with the predicted inputs
	late      []int           // stateless members in the order in which they follow the others
	lateAgain []int           // those of late that can be repeated
	everyStep *input.Stepping // steps iterated
	onlyOnce  *input.Stepping // steps once
	goBack    *master.Team    // the states of all members that are repeated

	loop []int // unknowns: inputs of iterated members from sources in the block
	open []int // extrapolated inputs from sources in earlier blocks
	// The columns are the unknowns, then the inputs of late members from sources in the block.
	interfaceJacobian
	of map[int]int // input to column

	sweep         []int             // fixed point by Gauss–Seidel: members in order
	turns         []*input.Stepping // of each member of sweep
	lastH         float64           // s; differs from H by rounding at most
	z, r, dz      []float64
	weight, floor []float64
	phi           []float64   // L y + b [nu], entries of the block
	fed           []float64   // phi of the unknowns before the last correction
	base          []float64   // y of the unperturbed step, [ny]
	size          []magnitude // by column
	noise         float64     // largest relative difference of repeated steps of a member
	solver        solver.Solver
	rounds        []round // of perturbed steps
	lateRounds    []round
	// Low-order sensitivities: H C_vel and H² C_pos of held inputs, and of inputs that
	// follow their polynomials.
	models               []linearModel
	respond              *master.Phase
	heldPos, heldVel     float64
	shapedPos, shapedVel float64
}

// round is a set of perturbed steps in which at most one input of each member is perturbed.
type round struct {
	columns []int
	goBack  *master.Team
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
				errs = append(errs, fmt.Errorf("%s: %w: %s; solver.kind=newton-fd and iqn do not need them", sys.Infos[i], master.ErrCapability, why))
			}
		}
	}
	return errors.Join(errs...)
}

// iterates reports whether subsystem i takes part in the iteration: always, unless
// Solver.Predict is set and it cannot roll back.
func (s *implicit) iterates(sys *master.System, i int) bool {
	if !s.config.Predict {
		return true
	}
	_, ok := master.As[master.StateSaver](sys.Subsystems[i])
	return ok && sys.Infos[i].Caps.SaveState
}

// needsRollback returns the subsystems that are repeated: those on loops, with predictAll all.
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

// newBlock returns a block of the graph, ready to be solved.
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
			x.Note(fmt.Sprintf("%s cannot go back: it takes the predicted inputs, and its outputs are not corrected; use an explicit algorithm, or an export of "+
				"the FMU with rollback", sys.Infos[i]))
		} else {
			b.iterated = append(b.iterated, i)
		}
	}
	b.divideInputs(sys, member)
	b.everyStep, b.onlyOnce = input.NewStepping(x, s.in, b.iterated), input.NewStepping(x, s.in, b.once)
	stays := func(i int) bool { return !x.Reverts(i) }
	b.lateAgain = slices.DeleteFunc(slices.Clone(b.late), stays)
	b.goBack = x.NewTeam(append(slices.DeleteFunc(slices.Clone(b.iterated), stays), b.lateAgain...))
	if !b.cyclic {
		b.phi = make([]float64, len(x.W))
		return b, nil
	}
	return b, b.prepare(x)
}

// divideInputs finds the unknowns and the inputs from earlier blocks.
func (b *block) divideInputs(sys *master.System, member func(i int) bool) {
	holds := sys.Holds()
	for _, i := range slices.Concat(b.iterated, b.once) {
		for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
			switch from := sys.SourceSubsystem(k); {
			case from < 0 || holds[k]:
			case !member(from):
				b.open = append(b.open, k)
			case b.cyclic && slices.Contains(b.iterated, i):
				b.loop = append(b.loop, k)
			}
		}
	}
	b.cyclic = len(b.loop) > 0
}

// prepare allocates the interface equation and its solver.
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
	b.size = make([]magnitude, n)
	b.phi, b.base = make([]float64, len(x.W)), make([]float64, len(x.Y))
	for _, i := range slices.Concat(b.iterated, b.late) {
		b.noise = max(b.noise, x.Replay(i).Replays)
	}
	for j, c := range b.columns {
		b.size[j].see(x.W[c.input])
	}
	if err := b.chooseSolver(x); err != nil {
		return err
	}
	b.solver.Init(b.jacobian)
	switch {
	case b.config.Kind == NewtonLOS:
		return b.prepareModels(x)
	case b.config.Kind <= Broyden:
		return b.prepareRounds(x)
	}
	return nil
}

// chooseSolver makes the solver and, for fixed point by Gauss–Seidel, its sequence.
func (b *block) chooseSolver(x *master.Exec) error {
	switch b.config.Kind {
	case NewtonFD:
		b.solver = &solver.Newton{}
	case NewtonLOS, Broyden: // low-order sensitivities contract slowly; updates improve them
		b.solver = &solver.Broyden{}
	case IQN:
		omega := b.config.Relaxation
		if omega == 0 {
			omega = defaultIQNRelaxation
		}
		b.solver = &solver.IQN{Relaxation: omega}
	case FixedPoint:
		b.solver = &solver.FixedPoint{Relaxation: b.config.Relaxation}
		if !b.config.GaussSeidel {
			return nil
		}
		for _, i := range x.Sys.SequenceFromGraph() {
			if !slices.Contains(b.iterated, i) {
				continue
			}
			b.sweep, b.turns = append(b.sweep, i), append(b.turns, input.NewStepping(x, b.in, []int{i}))
		}
	}
	return nil
}

// refuseNoise returns an error for members whose repeated steps differ by more than the
// relative tolerance, since the iteration cannot converge below that.
func (b *block) refuseNoise(x *master.Exec) error {
	var errs []error
	for _, i := range b.iterated {
		if noise := x.Replay(i).Replays; noise > b.tol.relative {
			errs = append(errs, fmt.Errorf("%s: %w: its repeated steps differ by %.2g, more than the relative "+
				"tolerance %.2g; choose an explicit algorithm or a larger control.rtol",
				x.Sys.Infos[i], master.ErrCapability, noise, b.tol.relative))
		}
	}
	return errors.Join(errs...)
}

// prepareRounds groups the columns so that each round perturbs at most one input of every
// member. Late members have rounds of their own.
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
		r.goBack = x.NewTeam(members)
		r.steps = input.NewStepping(x, b.in, members)
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

func (s *implicit) accept(x *master.Exec, _ float64) {
	s.conclude(solver.Solver.Accept)
	for _, b := range s.blocks {
		for j, c := range b.columns {
			b.size[j].see(x.W[c.input])
		}
	}
}

func (s *implicit) reject(float64, float64) { s.conclude(solver.Solver.Reject) }

// conclude accepts or rejects the attempt of each block.
func (s *implicit) conclude(end func(solver.Solver)) {
	for _, b := range s.blocks {
		if b.cyclic && s.used {
			end(b.solver)
		}
	}
	s.used = false
}

func (s *implicit) archive(a *master.Archive) {
	a.Section("interface equation")
	a.All(&s.stagnated, &s.cut, &s.worst, &s.solved, &s.deaf)
	for _, b := range s.blocks {
		if b.cyclic {
			a.All(&b.lastH, b.size, &b.noise)
			b.solver.Archive(a)
		}
	}
}

// solve steps the members of the block from t to t+H.
func (b *block) solve(ctx context.Context, x *master.Exec, t, H float64) (effort, error) {
	if err := b.predict(ctx, x, t, H); err != nil || !b.cyclic {
		return effort{}, err
	}
	b.begin(x, H)
	var e effort
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
			// A second Jacobian in this attempt did not help, so another will not either.
			if e.jacobians > 1 && before <= stagnant && b.matches() {
				b.stagnate(before)
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
		solved, err := b.judge(x, e, norm, before, perturbed)
		if solved || err != nil {
			return e, err
		}
		before = norm
		e.iterations++
		if err := b.correct(ctx, x, t, H); err != nil {
			return e, err
		}
	}
}

// predict takes the predictor step, unless that of all subsystems has the same inputs.
func (b *block) predict(ctx context.Context, x *master.Exec, t, H float64) error {
	if b.predictAll {
		if len(b.open) == 0 {
			return nil
		}
		if err := b.goBack.Restore(); err != nil {
			return err
		}
	}
	for _, k := range b.open {
		x.Couple(b.in.Owner(k), t+H, b.phi)
		b.in.Arrived(k, b.phi[k])
	}
	return b.evaluate(ctx, x, t, H, !b.predictAll)
}

// begin starts the iteration at the predicted inputs.
func (b *block) begin(x *master.Exec, H float64) {
	for j := range b.columns {
		c := &b.columns[j]
		b.z[j] = x.U[c.input] // of late members: what they were stepped with
		if j < len(b.loop) {
			b.z[j] = b.in.Extrapolated(c.input)
		}
		b.weight[j] = b.tol.unknown(c.input, &b.size[j], b.z[j])
	}
	if s, ok := b.solver.(solver.Weighted); ok {
		s.Weigh(b.weight)
	}
	if math.Abs(H-b.lastH) > sameStep*H {
		b.lastH = H
	}
	b.solver.Begin(b.lastH, b.in.DegreeAhead())
	b.solved++
}

// judge reports whether the iteration is solved after a correction of a weighted norm; before
// is the norm of the correction before it, NaN = none. perturbed: the states are not those of z.
func (b *block) judge(x *master.Exec, e effort, norm, before float64, perturbed bool) (solved bool, err error) {
	converged := norm <= b.config.Tolerance && b.matches()
	if converged && !perturbed {
		return true, nil
	}
	diverging := !math.IsNaN(before) && b.solver.Contraction(norm/before)
	last := e.iterations >= b.config.MaxIterations
	switch {
	case norm <= stagnant && b.matches() && !perturbed && (diverging || last):
		b.stagnate(norm)
		if !diverging {
			b.cut++
		}
		return true, nil
	case converged: // one more step brings the states to the solution
	case last:
		return false, b.notConverged(x, e, fmt.Sprintf("the last correction is %.2g times the tolerance", norm/b.config.Tolerance))
	case diverging, math.IsNaN(norm), math.IsInf(norm, 0):
		return false, b.notConverged(x, e, "the iteration diverges")
	}
	return false, nil
}

// correct takes a corrector step: it repeats the macro step with z + dz.
func (b *block) correct(ctx context.Context, x *master.Exec, t, H float64) error {
	for j, k := range b.loop {
		b.fed[j] = b.phi[k]
		b.z[j] += b.dz[j]
		b.in.Arrived(k, b.z[j])
	}
	if err := b.goBack.Restore(); err != nil {
		return err
	}
	return b.evaluate(ctx, x, t, H, false)
}

// listen warns if the first corrections of many macro steps changed no output.
func (b *block) listen(x *master.Exec) {
	if b.deaf < 0 || b.deaf >= deafSteps {
		return
	}
	for j, k := range b.loop {
		if b.phi[k] != b.fed[j] {
			b.deaf = -1
			return
		}
	}
	if b.deaf++; b.deaf == deafSteps {
		x.Note("the outputs do not respond to the inputs at the end of the macro step: the components sample their " +
			"inputs at its start. Corrections change nothing, " +
			"and implicit coupling gives the results of explicit coupling at a higher cost; use explicit, or " +
			"smaller steps")
	}
}

// stagnate records an iteration that stagnated above the tolerance.
func (s *implicit) stagnate(norm float64) {
	s.stagnated++
	s.worst = max(s.worst, norm)
}

// notSolvable returns the error of a correction that could not be computed, with its unknown.
func (b *block) notSolvable(x *master.Exec, err error) error {
	var at *num.EntryError
	if errors.As(err, &at) {
		return fmt.Errorf("%w: at %s: %w", errNotConverged, x.Sys.InName(b.columns[at.Index].input), at.Err)
	}
	return fmt.Errorf("%w: %w", errNotConverged, err)
}

// notConverged returns an error with the unknown that has the largest residual.
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

// evaluate steps the members with the current polynomials, those that cannot be repeated only
// in the first evaluation of an attempt.
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

// stepInTurn steps one member after the other with the new outputs of the members before it.
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

// residual computes r = z − (L y + b) from the outputs. For inputs of late members z is the
// value of the step.
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
	}
	for j := range b.loop {
		b.floor[j] = max(b.size[j].largest, math.Abs(b.z[j])) * max(roundingPart, b.noise)
	}
	return nil
}

// norm returns the weighted norm of the correction, reduced by rounding and replay noise.
func (b *block) norm() float64 {
	return b.reduced(b.dz, func(j int) float64 { return b.weight[j] })
}

// matches reports whether the residual is as small as the correction of an iteration that
// stagnates, in the weights of the current values. A wrong Jacobian may give a small correction
// at any residual, and a wild prediction gives large weights.
func (b *block) matches() bool {
	return b.reduced(b.r, func(j int) float64 { return b.tol.unknown(b.loop[j], &b.size[j], b.z[j]) }) <= stagnant
}

// reduced returns the weighted norm of the unknowns' part of v, reduced by rounding and replay noise.
func (b *block) reduced(v []float64, weight func(j int) float64) float64 {
	sum := 0.0
	for j := range b.loop {
		if d := math.Abs(v[j]) - b.floor[j]; !(d < 0) {
			d /= weight(j)
			sum += float64(d * d)
		}
	}
	return math.Sqrt(sum / float64(len(b.loop)))
}

// evaluateJacobian computes J = I − L S at the current iterate. perturbed reports whether the
// subsystems left the states of the iterate.
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

// differences computes S from perturbed steps. All subsystems are perturbed at once, since
// their outputs depend on their own inputs only. The cost in macro steps is therefore the
// largest number of loop inputs of one subsystem (meyer, appendix A.1).
func (b *block) differences(ctx context.Context, x *master.Exec, t, H float64) error {
	copy(b.base, x.Y)
	// Late members first, while the outputs of their sources are unperturbed.
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

// delta returns the perturbation of column j: relative to the current value, and above rounding
// and replay noise of the largest values.
func (b *block) delta(x *master.Exec, j int) float64 {
	k := b.columns[j].input
	now, largest := max(math.Abs(b.z[j]), math.Abs(x.W[k])), b.size[j].largest
	if n := nominal(x.Sys, k); max(now, largest) < vanishing*n {
		now = n // a fraction of such a small value would underflow
	}
	return max(perturbation*now, math.Sqrt(max(b.noise, 0x1p-52))*largest)
}

// difference computes the column of S from the outputs of its perturbed step.
func (b *block) difference(x *master.Exec, c *column) {
	at := x.Sys.OutAt[c.subsystem]
	for out := range c.s {
		c.s[out] = (x.Y[at+out] - b.base[at+out]) / c.delta
	}
}

// review returns a warning if iterations often stagnated above the tolerance.
func (s *implicit) review() []string {
	if float64(s.stagnated) <= stagnantPart*float64(s.solved) {
		return nil
	}
	why := "the solvers in the subsystems are not more accurate; a tighter --tolerance for them or a looser " +
		"solver.tolerance avoids it"
	if 2*s.cut > s.stagnated {
		why = fmt.Sprintf("the iteration ends after solver.max-iterations=%d; more iterations or another "+
			"solver.kind avoid it", s.config.MaxIterations)
	}
	return []string{fmt.Sprintf("the corrector stagnated above solver.tolerance=%g in %d macro steps, with "+
		"corrections of up to %.1e of the weights: %s",
		s.config.Tolerance, s.stagnated, s.worst, why)}
}

// loopTreatment describes the solver for reports.
func (s *implicit) loopTreatment() string {
	return "solved at every communication point (" + solverKinds[s.config.Kind] + ")"
}

// nominal returns the nominal value of an input; 1 if it has none.
func nominal(sys *master.System, k int) float64 {
	i := num.Owner(sys.InAt, k)
	if n := sys.Infos[i].In[k-sys.InAt[i]].Nominal; n > 0 {
		return n
	}
	return 1
}
