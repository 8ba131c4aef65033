package assemble

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/ssp"
)

// Strategy describes the algorithm of a run for the rules on coupling.
type Strategy struct {
	Preset    string
	Algorithm master.Algorithm
	Discard   master.DiscardPolicy
	Order     int      // extrapolation order; −1 = chosen during the run
	Sequence  []string // of Gauss–Seidel; nil = not given
	// Unfit is the reason why Algorithm is nil.
	Unfit error
}

// Check checks CouplingRules for the algorithm of the run and its times, which Override must have
// set. It does not repeat findings of Open and does not execute code of FMUs.
func (a *Assembly) Check(s Strategy) *diag.List {
	c := &checker{a: a, s: s, l: &diag.List{Strict: a.Findings.Strict}}
	if len(a.network.Components) > 0 {
		c.openPorts()
		c.islands()
		c.loops()
		c.feedback()
		c.signals()
	}
	before := len(c.l.At(diag.Error))
	c.bonds()
	c.badBonds = len(c.l.At(diag.Error)) > before
	c.times()
	c.fitness()
	c.deployment()
	return c.l
}

// CheckErrors returns the violations of coupling rules with which a run must not start:
// connected enumerations with different numbers, and invalid power bonds.
func (a *Assembly) CheckErrors() error {
	c := &checker{a: a, l: &diag.List{Strict: a.Findings.Strict}}
	c.bonds()
	for i := range a.network.Connections {
		c.items(&a.network.Connections[i])
	}
	return c.l.Err()
}

type checker struct {
	a *Assembly
	s Strategy
	l *diag.List

	badBonds bool
}

// mostNames is the maximum number of names in one finding.
const mostNames = 6

// few lists the first names.
func few(names []string) string {
	if len(names) <= mostNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
}

func (c *checker) add(r *diag.Rule, at ssp.Place, format string, args ...any) {
	c.l.Add(r, at.File, at.Path, at.Line, format, args...)
}

// place returns the place of a component in a document; for a single FMU its file.
func (c *checker) place(component int) ssp.Place {
	switch n := c.a.network; {
	case component < len(n.Components):
		return n.Components[component].Place
	case component >= len(c.a.Components):
		return n.Functions[component-len(c.a.Components)].Place
	}
	return ssp.Place{File: c.a.Components[component].Source}
}

// whole returns the place of the system.
func (c *checker) whole() ssp.Place {
	if c.a.pkg == nil {
		return c.place(0)
	}
	return ssp.Place{File: c.a.pkg.Root.File, Path: "/SystemStructureDescription"}
}

// variable returns the variable of an FMU at an end of a connection; nil for a function.
func (c *checker) variable(e ssp.FlatEnd) (*description.ScalarVariable, *description.ModelDescription) {
	if e.Component >= len(c.a.Components) {
		return nil, nil
	}
	return c.a.variableAt(e), c.a.Components[e.Component].FMU.Description
}

// openPorts finds inputs without a value and outputs without a connection.
func (c *checker) openPorts() {
	type end = ssp.FlatEnd
	fed, used := map[end]bool{}, map[end]bool{}
	for _, k := range c.a.network.Connections {
		fed[k.To], used[k.From] = true, true
	}
	for _, s := range c.a.network.Settings {
		fed[end{Component: s.Component, Variable: s.Variable}] = true
	}
	for _, o := range c.a.network.Outputs {
		used[o.From] = true
	}
	for i, component := range c.a.Components {
		var in, out []string
		for k := range component.FMU.Description.Variables {
			v := &component.FMU.Description.Variables[k]
			e := end{Component: i, Variable: v.Name}
			switch {
			case v.Causality == description.Input && !fed[e]:
				in = append(in, v.Name)
			case v.Causality == description.Output && !used[e]:
				out = append(out, v.Name)
			}
		}
		if len(in) > 0 {
			c.add(ruleOpenInput, c.place(i), "%s: neither connected nor given a value: %s", component.Name, few(in))
		}
		if len(out) > 0 {
			c.add(ruleOpenOutput, c.place(i), "%s: not connected: %s", component.Name, few(out))
		}
	}
}

// islands finds parts of the system that are not connected with each other.
func (c *checker) islands() {
	n := len(c.a.Components) + len(c.a.network.Functions)
	root := make([]int, n)
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			root[i] = root[root[i]]
			i = root[i]
		}
		return i
	}
	for _, k := range c.a.network.Connections {
		root[find(k.To.Component)] = find(k.From.Component)
		if k.From.Component == k.To.Component {
			c.add(ruleSelf, k.Place, "%s leads back to %s", c.a.endpoint(k.From), c.a.endpoint(k.To))
		}
	}
	parts := map[int][]string{}
	var order []int
	for i, component := range c.a.Components {
		at := find(i)
		if parts[at] == nil {
			order = append(order, at)
		}
		parts[at] = append(parts[at], component.Name)
	}
	if len(order) < 2 || c.a.unconnected() { // which is reported already
		return
	}
	var texts []string
	for _, at := range order {
		texts = append(texts, strings.Join(parts[at], " + "))
	}
	c.add(ruleIsland, c.whole(), "the system falls into %d parts that nothing connects: %s", len(order), few(texts))
}

// loops reports the algebraic loops of both graphs.
func (c *checker) loops() {
	sys := c.a.System
	solves := c.s.Algorithm != nil && strings.HasPrefix(c.s.Preset, "im") && len(c.plan().Rollback) > 0
	for _, l := range slices.Concat(sys.Loops, sys.InitLoops()) {
		where := "within a macro step"
		if l.Initialization {
			where = "in the initialisation"
		}
		cycle := cycleText(l.Variables)
		switch {
		case l.Assumed:
			c.add(ruleLoopAssumed, c.ofVariable(l.Variables), "%s, a loop only because dependencies are not declared by %s: %s",
				where, few(c.undeclared(l)), cycle)
		case l.Initialization && !c.real(l.Variables):
			c.add(ruleInitLoopDiscrete, c.ofVariable(l.Variables), "a loop in the initialisation with variables that are not Reals: %s", cycle)
		case l.Initialization:
			c.add(ruleInitLoop, c.ofVariable(l.Variables), "a loop in the initialisation: %s", cycle)
		case solves:
			c.add(ruleLoopSolved, c.ofVariable(l.Variables), "a loop within a macro step, solved by %s: %s", c.s.Preset, cycle)
		default:
			c.add(ruleLoop, c.ofVariable(l.Variables), "a loop within a macro step, by declared feedthrough: %s", cycle)
		}
	}
}

// cycleText formats a loop, shortened if it is long.
func cycleText(variables []string) string {
	if len(variables) > mostNames {
		return fmt.Sprintf("%s → … (%d variables)", strings.Join(variables[:mostNames], " → "), len(variables))
	}
	return strings.Join(append(slices.Clone(variables), variables[0]), " → ")
}

// ofVariable returns the place of the component of the first known variable.
func (c *checker) ofVariable(names []string) ssp.Place {
	for _, name := range names {
		if i, _, err := c.a.find(name); err == nil {
			return c.place(i)
		}
	}
	return c.whole()
}

// real reports whether all variables are Reals.
func (c *checker) real(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, v, err := c.a.find(name)
		return err == nil && v.Type != description.Real
	})
}

// undeclared lists the components on a loop with outputs without declared dependencies.
func (c *checker) undeclared(l master.Loop) []string {
	var out []string
	for _, name := range l.Variables {
		i, v, err := c.a.find(name)
		if err != nil || v.Causality != description.Output {
			continue
		}
		d := c.a.Components[i].FMU.Description
		list := d.Outputs
		if l.Initialization {
			list = d.InitialUnknowns
		}
		k := slices.IndexFunc(list, func(u description.Unknown) bool { return &d.Variables[u.Index-1] == v })
		if (k < 0 || !list[k].Declared) && !slices.Contains(out, c.a.Components[i].Name) {
			out = append(out, c.a.Components[i].Name)
		}
	}
	return out
}

// feedback reports components that feed each other and are not on an algebraic loop.
func (c *checker) feedback() {
	sys := c.a.System
	for _, b := range sys.Blocks() {
		if !b.Cyclic || len(b.Members) < 2 {
			continue
		}
		var names []string
		for _, i := range b.Members {
			names = append(names, sys.Infos[i].Name)
		}
		c.add(ruleFeedback, c.place(b.Members[0]), "%s feed each other", few(names))
		c.zeroStability(b.Members)
	}
}

// zeroStability finds pairs with declared feedthrough on both sides of the same two
// connections.
func (c *checker) zeroStability(members []int) {
	sys := c.a.System
	if c.s.Algorithm == nil || strings.HasPrefix(c.s.Preset, "im") {
		return
	}
	feeds := make(map[int][]int, len(members)) // by source: the subsystems that it feeds
	for _, k := range members {
		for _, i := range sys.Sources(k) {
			feeds[i] = append(feeds[i], k)
		}
	}
	for _, i := range members {
		for _, k := range feeds[i] { // in the order of members, each once
			if k <= i {
				continue
			}
			there, back := c.through(sys, i, k), c.through(sys, k, i)
			if there != "" && back != "" {
				c.add(ruleZeroStability, c.place(k), "%s and %s both have direct feedthrough from each other (%s; %s)",
					sys.Infos[i].Name, sys.Infos[k].Name, there, back)
			}
		}
	}
}

// through describes declared feedthrough of i from an output of k to an input of k, "" if there is
// none.
func (c *checker) through(sys *master.System, i, k int) string {
	info := sys.Infos[i]
	for in := range sys.Infos[k].In {
		y, ok := sys.Source(sys.InAt[k] + in)
		if !ok || sys.SourceSubsystem(sys.InAt[k]+in) != i {
			continue
		}
		out := y - sys.OutAt[i]
		if out >= len(info.Step.On) || info.Step.Assumed != nil && info.Step.Assumed[out] {
			continue
		}
		for _, on := range info.Step.On[out] {
			if on < len(info.In) && sys.SourceSubsystem(sys.InAt[i]+on) == k {
				return sys.InName(sys.InAt[i]+on) + " → " + sys.OutName(y)
			}
		}
	}
	return ""
}

// signals checks each connection.
func (c *checker) signals() {
	sampled, held, oneSided := several{}, several{}, several{}
	for i := range c.a.network.Connections {
		k := &c.a.network.Connections[i]
		from, fromDescription := c.variable(k.From)
		to, toDescription := c.variable(k.To)
		if from == nil || to == nil {
			continue
		}
		name := c.a.endpoint(k.From).String() + " → " + c.a.endpoint(k.To).String()
		c.items(k)
		if from.Type != description.Real || to.Type != description.Real {
			continue
		}
		if to.Causality == description.Input && from.Variability == description.Continuous && to.Variability != description.Continuous {
			sampled.add(k.Place, name)
		}
		if to.Causality == description.Input && from.Variability != description.Continuous && to.Variability == description.Continuous {
			held.add(k.Place, name)
		}
		a, b := baseUnit(fromDescription, from), baseUnit(toDescription, to)
		if (a == nil) != (b == nil) && k.Gain == 1 && k.Offset == 0 {
			oneSided.add(k.Place, fmt.Sprintf("%s (%s)", name, unitPair(from, to)))
		}
		if p, q := from.Real.Quantity, to.Real.Quantity; p != "" && q != "" && p != q {
			c.add(ruleQuantity, k.Place, "%s: the quantities are %s and %s", name, p, q)
		}
		c.factors(k, name, from, to, a, b)
		c.ranges(k, name, from, to)
	}
	sampled.report(c, ruleSampled, "sampled at communication points")
	held.report(c, ruleHeld, "held over each macro step")
	oneSided.report(c, ruleUnitOneSided, "one side has a unit with a known dimension, and the other none")
}

// several collects connections for one finding.
type several struct {
	at    ssp.Place
	names []string
}

func (s *several) add(at ssp.Place, name string) {
	if s.names == nil {
		s.at = at
	}
	s.names = append(s.names, name)
}

func (s *several) report(c *checker, r *diag.Rule, text string) {
	if s.names != nil {
		c.add(r, s.at, "%s: %s", text, few(s.names))
	}
}

func unitPair(from, to *description.ScalarVariable) string {
	name := func(v *description.ScalarVariable) string {
		if v.Real.Unit == "" {
			return "no unit"
		}
		return v.Real.Unit
	}
	return name(from) + " and " + name(to)
}

func baseUnit(d *description.ModelDescription, v *description.ScalarVariable) *unit.Base {
	if u, ok := d.Unit(v.Real.Unit); ok && v.Real.Unit != "" {
		return u.Base
	}
	return nil
}

// items compares two enumerations that are connected without a table.
func (c *checker) items(k *ssp.FlatConnection) {
	from, fromDescription := c.variable(k.From)
	to, toDescription := c.variable(k.To)
	if from == nil || to == nil || from.Type != description.Enumeration || to.Type != description.Enumeration || len(k.Map) > 0 {
		return
	}
	values := map[string]int64{}
	for _, x := range fromDescription.Enumeration(from.DeclaredType) {
		values[x.Name] = int64(x.Value)
	}
	for _, x := range toDescription.Enumeration(to.DeclaredType) {
		if n, same := values[x.Name]; same && int64(n) != x.Value {
			c.add(ruleItemValues, k.Place, "%s → %s: the item %q is %d in one enumeration and %d in the other",
				c.a.endpoint(k.From), c.a.endpoint(k.To), x.Name, n, x.Value)
			return
		}
	}
}

// knownFactors has the factors to SI units for unambiguous names of units.
var knownFactors = map[string]float64{
	"mm": 1e-3, "cm": 1e-2, "km": 1e3, "um": 1e-6, "ms": 1e-3, "us": 1e-6, "min": 60, "h": 3600, "d": 86400,
	"g": 1e-3, "t": 1e3, "kN": 1e3, "MN": 1e6, "kW": 1e3, "MW": 1e6, "kJ": 1e3, "MJ": 1e6,
	"kPa": 1e3, "MPa": 1e6, "bar": 1e5, "mbar": 1e2,
	"deg": math.Pi / 180, "rev/min": math.Pi / 30, "rpm": math.Pi / 30, "1/min": 1. / 60, "km/h": 1 / 3.6,
	"mA": 1e-3, "kV": 1e3, "mV": 1e-3, "kHz": 1e3, "MHz": 1e6,
}

// factors checks the factors of the units at a connection.
func (c *checker) factors(k *ssp.FlatConnection, name string, from, to *description.ScalarVariable, a, b *unit.Base) {
	sameUnit := a != nil && b != nil && from.Real.Unit == to.Real.Unit && a.SameDimension(*b)
	if sameUnit && !sameFactor(a.Factor, b.Factor) {
		c.add(ruleFactorDoubt, k.Place, "%s: the unit %q has the factor %g at one side and %g at the other",
			name, from.Real.Unit, a.Factor, b.Factor)
		return
	}
	for _, side := range []struct {
		base     *unit.Base
		unit     string
		endpoint ssp.FlatEnd
	}{{a, from.Real.Unit, k.From}, {b, to.Real.Unit, k.To}} {
		want, known := knownFactors[side.unit]
		if known && side.base != nil && sameFactor(side.base.Factor, 1/want) && !sameFactor(want, 1) {
			c.add(ruleFactorDoubt, k.Place, "%s: the unit %q of %s has the factor %g, the reciprocal of the usual factor %g",
				name, side.unit, c.a.endpoint(side.endpoint), side.base.Factor, want)
		}
	}
}

// sameFactor reports whether two factors are equal up to rounding in a document.
func sameFactor(x, y float64) bool { return math.Abs(x-y) <= 1e-3*max(math.Abs(x), math.Abs(y)) }

// mostNominalRatio is the largest ratio of nominal values without a warning.
const mostNominalRatio = 1e3

// ranges compares bounds, start and nominal values at a connection, in the unit of the target.
func (c *checker) ranges(k *ssp.FlatConnection, name string, from, to *description.ScalarVariable) {
	map1 := func(x float64) float64 { return k.Gain*x + k.Offset }
	// Huge bounds mean that there are none.
	bound := func(p *float64, none float64) float64 {
		if p == nil || math.Abs(*p) >= 1e30 {
			return none
		}
		return *p
	}
	low, high := bound(to.Real.Min, math.Inf(-1)), bound(to.Real.Max, math.Inf(1))
	slack := 1e-9 * max(finite(low), finite(high))
	if from.Real.Min != nil || from.Real.Max != nil {
		x, y := bound(from.Real.Min, math.Inf(-1)), bound(from.Real.Max, math.Inf(1))
		x, y = min(map1(x), map1(y)), max(map1(x), map1(y))
		if !math.IsInf(x, -1) && x < low-slack || !math.IsInf(y, 1) && y > high+slack {
			c.add(ruleSourceRange, k.Place, "%s: the source lies between %g and %g, but the input accepts %g to %g", name, x, y, low, high)
		}
	}
	if from.HasStart {
		if x := map1(from.StartReal); x < low-slack || x > high+slack {
			c.add(ruleSourceStart, k.Place, "%s: the source starts at %g, but the input accepts %g to %g", name, x, low, high)
		}
	}
	if p, q := from.Real.Nominal, to.Real.Nominal; p != nil && q != nil && k.Gain != 0 {
		if r := math.Abs(k.Gain * *p / *q); r > mostNominalRatio || r < 1/mostNominalRatio {
			c.add(ruleNominals, k.Place, "%s: the nominal values are %g and %g, in the unit of the input",
				name, math.Abs(k.Gain**p), *q)
		}
	}
}

func finite(x float64) float64 {
	if math.IsInf(x, 0) {
		return 0
	}
	return math.Abs(x)
}

// bonds checks the power bonds that the documents declare.
func (c *checker) bonds() {
	owner := map[string]string{}
	for _, b := range c.a.declaredBonds() {
		at := b.place
		for _, p := range b.Pairs {
			if _, err := c.a.Power(p.Effort, p.Flow); err != nil {
				c.add(ruleBondUnits, at, "bond %s: %v", b.Name, err)
			}
			pair := min(p.Effort, p.Flow) + " and " + max(p.Effort, p.Flow)
			if other, taken := owner[pair]; taken {
				c.add(ruleBondShared, at, "%s belong to the bonds %s and %s", pair, other, b.Name)
			}
			owner[pair] = b.Name
			c.bondSides(b.Name, at, p)
		}
	}
}

// bondSides checks that each side of a bond takes the output of the other side, and that the bond
// is not an algebraic loop.
func (c *checker) bondSides(bond string, at ssp.Place, p algorithms.Pair) {
	sys := c.a.System
	y, okEffort := sys.FindOut(p.Effort)
	z, okFlow := sys.FindOut(p.Flow)
	if !okEffort || !okFlow {
		c.add(ssp.RuleOwn, at, "bond %s: %s and %s are not two Real outputs, component.variable", bond, p.Effort, p.Flow)
		return
	}
	inputOf := func(out, side int) int {
		for u := sys.InAt[side]; u < sys.InAt[side+1]; u++ {
			if s, ok := sys.Source(u); ok && s == out {
				return u - sys.InAt[side]
			}
		}
		return -1
	}
	e, f := ownerOf(sys.OutAt, y), ownerOf(sys.OutAt, z)
	takesEffort, takesFlow := inputOf(y, f), inputOf(z, e)
	if e == f || takesEffort < 0 || takesFlow < 0 {
		c.add(ruleBondCausality, at, "bond %s: %s is not an input of the component with the output %s, or the other way round",
			bond, p.Effort, p.Flow)
		return
	}
	declared := func(i, out, in int) bool {
		s := &sys.Infos[i].Step
		return out < len(s.On) && !(s.Assumed != nil && s.Assumed[out]) && slices.Contains(s.On[out], in)
	}
	if declared(e, y-sys.OutAt[e], takesFlow) && declared(f, z-sys.OutAt[f], takesEffort) {
		c.add(ruleBondLoop, at, "bond %s: %s and %s depend directly on each other", bond, p.Effort, p.Flow)
	}
}

func ownerOf(at []int, i int) int {
	for k := range at[1:] {
		if i < at[k+1] {
			return k
		}
	}
	return -1
}

// times checks start, stop and macro step against the FMUs.
func (c *checker) times() {
	a := c.a
	H, span := a.Step.Value, a.Stop.Value-a.Start.Value
	for i, component := range a.Components {
		d := component.FMU.Description
		fixed := !d.CoSimulation.CanHandleVariableCommunicationStepSize
		if x := d.DefaultExperiment; x != nil {
			if fixed && x.StepSize != nil && *x.StepSize > 0 && H > 0 {
				if n := H / *x.StepSize; math.Abs(n-math.Round(n)) > 1e-6*max(n, 1) || math.Round(n) < 1 {
					c.add(ruleOwnStep, c.place(i), "%s cannot vary its step and suggests %g s; the macro step is %g s",
						component.Name, *x.StepSize, H)
				}
			}
			begins := 0.
			if x.StartTime != nil {
				begins = *x.StartTime
			}
			if a.Start.Value != begins {
				c.add(ruleStartTime, c.place(i), "%s: its default experiment starts at %g s, the run at %g s",
					component.Name, begins, a.Start.Value)
			}
		}
		if fixed && H > 0 && span > 0 {
			if n := span / H; math.Abs(n-math.Round(n)) > 1e-6 {
				c.add(ruleLastStep, c.place(i), "%s cannot vary its step, and the span of %g s is %.6g steps of %g s",
					component.Name, span, n, H)
			}
		}
		c.timeUnit(i, d)
	}
	for _, text := range a.hintedRates() {
		c.add(ruleRateHint, c.whole(), "%s", text)
	}
}

// timeUnit checks the unit of the independent variable.
func (c *checker) timeUnit(component int, d *description.ModelDescription) {
	for k := range d.Variables {
		v := &d.Variables[k]
		if v.Causality != description.Independent || v.Real.Unit == "" {
			continue
		}
		b := baseUnit(d, v)
		if b == nil && v.Real.Unit != "s" || b != nil && !(b.SameDimension(unit.Base{S: 1}) && b.Factor == 1 && b.Offset == 0) {
			c.add(ruleTimeUnit, c.place(component), "%s: the independent variable %s is in %s",
				c.a.Components[component].Name, v.Name, v.Real.Unit)
		}
	}
}

// fitness checks whether the algorithm can be used.
func (c *checker) fitness() {
	s := &c.s
	if s.Algorithm == nil {
		if s.Unfit != nil {
			c.add(ruleUnfit, c.whole(), "%v", s.Unfit)
		}
		return
	}
	c.runnable()
	sys := c.a.System
	if s.Order > 0 {
		var without []string
		for i, info := range sys.Infos {
			if len(info.In) > 0 && !info.Caps.InputDerivatives && !slices.Contains(sys.Late, i) {
				how := "substeps"
				if !info.Caps.VariableStep {
					how = "held"
				}
				without = append(without, info.Name+" ("+how+")")
			}
		}
		if without != nil {
			c.add(ruleDelivery, c.whole(), "extrapolation of order %d without input derivatives: %s", s.Order, few(without))
		}
	}
	if s.Order >= 2 {
		c.add(ruleOrder, c.whole(), "the extrapolation order is %d", s.Order)
	}
	if s.Preset != "explicit" {
		var measured []string
		for _, i := range c.plan().Rollback {
			if !sys.Infos[i].Caps.DirectionalDerivative {
				measured = append(measured, sys.Infos[i].Name)
			}
		}
		if measured != nil && strings.HasPrefix(s.Preset, "im") {
			c.add(ruleJacobian, c.whole(), "the Jacobian is found by differences, which take steps, for %s", few(measured))
		}
	}
	c.sequence()
	for i, component := range c.a.Components {
		if component.FMU.Description.CoSimulation.CanRunAsynchronously {
			c.add(ruleAsynchronous, c.place(i), "%s declares canRunAsynchronuously", component.Name)
		}
	}
}

func (c *checker) plan() master.Plan { return master.PlanOf(c.s.Algorithm, c.a.System, c.a.Step.Value) }

// runnable reports the errors of master.NewRun.
func (c *checker) runnable() {
	s, sys := &c.s, c.a.System
	o := master.Options{Start: c.a.Start.Value, Stop: c.a.Stop.Value, Step: c.a.Step.Value, Discard: s.Discard}
	_, err := master.NewRun(sys, s.Algorithm, o)
	if err == nil {
		return
	}
	rule := ruleTimes
	switch {
	case s.Algorithm.Check(sys) != nil && c.badBonds:
		return // reported by the rules on bonds
	case s.Algorithm.Check(sys) != nil:
		rule = ruleUnfit
	case !errors.Is(err, master.ErrCapability):
	case strings.Contains(err.Error(), "cannot go back"), s.Discard == master.ShortenOnDiscard:
		rule = ruleRollback
	case c.plan().FirstStep > 0:
		rule = ruleVariableStep
	default:
		rule = ruleUnfit
	}
	c.add(rule, c.whole(), "algorithm %s: %v", s.Preset, err)
}

// sequence finds connections against the given order of Gauss–Seidel.
func (c *checker) sequence() {
	if c.s.Sequence == nil {
		return
	}
	sys := c.a.System
	place := map[int]int{}
	for at, name := range c.s.Sequence {
		if i := slices.IndexFunc(sys.Infos, func(f *master.Info) bool { return f.Name == name }); i >= 0 {
			place[i] = at
		}
	}
	var against []string
	onLoop := map[int]int{} // subsystem to block
	for n, b := range sys.Blocks() {
		for _, i := range b.Members {
			onLoop[i] = n
		}
	}
	for i := range sys.Infos {
		for _, from := range sys.Sources(i) {
			if place[from] > place[i] && onLoop[from] != onLoop[i] {
				against = append(against, sys.Infos[from].Name+" → "+sys.Infos[i].Name)
			}
		}
	}
	if against != nil {
		c.add(ruleSequence, c.whole(), "stepped before what feeds it: %s", few(against))
	}
}

// deployment checks the FMUs together: GUIDs, libraries, tools, isolation.
func (c *checker) deployment() {
	byGUID := map[string]int{}
	together := newSharing()
	for i, component := range c.a.Components {
		d := component.FMU.Description
		if first, seen := byGUID[d.GUID]; seen && c.a.Components[first].FMU.Hash != component.FMU.Hash {
			c.add(ruleSameGUID, c.place(i), "the FMUs of %s and %s have the same GUID %s but different content",
				c.a.Components[first].Name, component.Name, d.GUID)
		} else if !seen {
			byGUID[d.GUID] = i
		}
		if name, other := together.clash(&component); name != "" {
			c.add(ruleSameLibrary, c.place(i), "the FMUs of %s and %s have different versions of %s", other, component.Name, name)
		}
		together.add(&component)
		if d.CoSimulation.NeedsExecutionTool {
			c.add(ruleToolInRun, c.place(i), "the FMU of %s drives a tool", component.Name)
		}
		if component.Isolated != "" {
			c.add(ruleOnceIsolated, c.place(i), "%s runs in a process of its own: %s", component.Name, component.Isolated)
		}
	}
	c.resources()
	c.memory()
}

// longestPath is the longest path that old systems and FMUs support.
const longestPath = 200

// resources finds FMUs with resources on a path that FMUs may not support.
func (c *checker) resources() {
	seen := map[string]bool{}
	for i, component := range c.a.Components {
		dir := component.FMU.Dir
		if seen[dir] || !hasFiles(filepath.Join(dir, "resources")) {
			continue
		}
		seen[dir] = true
		plain := !strings.ContainsFunc(dir, func(r rune) bool { return r <= ' ' || r > '~' || r == '%' })
		if !plain || len(dir) > longestPath {
			c.add(rulePath, c.place(i), "the resources of %s are in %s, which is long or has blanks or non-ASCII characters",
				component.Name, dir)
		}
	}
}

// worthTelling is the size of results in bytes above which it is reported.
const worthTelling = 1 << 30

// memory estimates the size of the results, at 8 bytes per value.
func (c *checker) memory() {
	a := c.a
	if !(a.Step.Value > 0) {
		return
	}
	values := 0
	for _, info := range a.System.Infos {
		values += len(info.In) + len(info.Out) + len(info.DiscreteIn) + len(info.DiscreteOut) + len(info.Watch)
	}
	interval := a.Step.Value
	if rows := a.number("output-interval"); rows != nil {
		interval = max(interval, rows.Value)
	}
	if rows := (a.Stop.Value - a.Start.Value) / interval; rows*float64(8*values) > worthTelling {
		c.add(ruleMemory, c.whole(), "%d variables at %.3g communication points are %.3g GB of numbers, and more as text",
			values, rows, rows*float64(8*values)/1e9)
	}
}

func hasFiles(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}
