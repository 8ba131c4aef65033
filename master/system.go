package master

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Linear is the map y ↦ Gain·y + Offset of a connection between Reals, unit
// conversion included.
type Linear struct{ Gain, Offset float64 }

// Endpoint names a port. If Subsystem is "", Port is "subsystem.port" (see Connect).
type Endpoint struct{ Subsystem, Port string }

// String returns "subsystem.port".
func (e Endpoint) String() string { return strings.TrimPrefix(e.Subsystem+"."+e.Port, ".") }

// Connection connects an output to an input of the same kind, or to a parameter, which gets the value
// of the output during the initialisation.
type Connection struct {
	From, To Endpoint
	Linear   *Linear         // Real only; nil = identity
	Map      map[int64]int64 // Integer and Boolean (0, 1) only; values not in it pass unchanged
}

// System is the frozen graph of coupled subsystems: u = L y + b over all Real
// inputs and outputs, and copies of the discrete signals.
type System struct {
	Subsystems []Subsystem
	Infos      []*Info
	InAt       []int // first index in u of each subsystem; len(Subsystems)+1 entries
	OutAt      []int // first index in y of each subsystem; len(Subsystems)+1 entries

	// Stepped lists the subsystems whose inputs are approximated over a macro step, ascending. Late
	// lists the stateless subsystems on no loop of stateless subsystems, in the order in which they
	// are stepped after their sources.
	Stepped, Late []int
	// Loops are the algebraic loops of the stepping graph.
	Loops []Loop

	source   []int     // by input: index in y, or -1
	gain     []float64 // by input: the entry of L
	offset   []float64 // by input: b; the start value where nothing is connected
	discrete []discreteLink
	linkAt   [][]int // by subsystem: indices into discrete of its inputs

	transfers []transfer
}

// Connect returns the connection of two ports "subsystem.port". If names contain dots, NewSystem takes
// the subsystem with the longest matching name.
func Connect(from, to string) Connection {
	return Connection{From: Endpoint{Port: from}, To: Endpoint{Port: to}}
}

// split returns the endpoint with Subsystem and Port separated.
func (e Endpoint) split(subsystems map[string]int) Endpoint {
	if e.Subsystem != "" {
		return e
	}
	last := strings.LastIndexByte(e.Port, '.')
	for dot := last; dot >= 0; dot = strings.LastIndexByte(e.Port[:dot], '.') {
		if _, ok := subsystems[e.Port[:dot]]; ok {
			return Endpoint{e.Port[:dot], e.Port[dot+1:]}
		}
	}
	return Endpoint{e.Port[:max(last, 0)], e.Port[last+1:]} // for the message: there is no such subsystem
}

// transfer gives a parameter the value of an output during the initialisation.
type transfer struct {
	kind      Kind // of the source
	from, to  int  // subsystem
	fromPort  int  // index in Out, or in DiscreteOut
	out       int  // index in Out, or among the discrete values of the kind
	parameter int  // index in Params
	linear    Linear
	table     map[int64]int64
}

// discreteLink copies one Integer, Boolean or String.
type discreteLink struct {
	kind     Kind // of the source
	from, to int  // subsystem
	out, in  int  // index among the values of the kind
	fromPort int  // index in DiscreteOut
	toPort   int  // index in DiscreteIn
	table    map[int64]int64
	linear   *Linear // for an Integer that becomes a Real; nil for all others
}

// NewSystem makes a system. It fails if a name is used twice, a port of a dependency or connection does
// not exist, the kinds of connected ports differ, or an input has two sources.
func NewSystem(subsystems []Subsystem, connections []Connection) (*System, error) {
	s := &System{Subsystems: slices.Clone(subsystems), InAt: []int{0}, OutAt: []int{0}}
	if len(subsystems) == 0 {
		return nil, errors.New("the system has no subsystem; give at least one")
	}
	byName := make(map[string]int, len(subsystems))
	for i, sub := range subsystems {
		info := sub.Info()
		if _, twice := byName[info.Name]; twice {
			return nil, fmt.Errorf("two subsystems are called %q", info.Name)
		}
		byName[info.Name] = i
		s.Infos = append(s.Infos, info)
		s.InAt = append(s.InAt, s.InAt[i]+len(info.In))
		s.OutAt = append(s.OutAt, s.OutAt[i]+len(info.Out))
		if info.StartIn != nil && len(info.StartIn) != len(info.In) {
			return nil, fmt.Errorf("%s: %d start values for %d inputs", info.Name, len(info.StartIn), len(info.In))
		}
		if have, want := info.StartDiscreteIn, NewValues(info.DiscreteIn); have != nil && !have.fits(&want) {
			return nil, fmt.Errorf("%s: the start values of the discrete inputs do not fit the %d ports", info.Name, len(info.DiscreteIn))
		}
		if err := info.checkFeedthrough(); err != nil {
			return nil, err
		}
		s.offset = append(s.offset, info.StartIn...)
		for len(s.offset) < s.InAt[i+1] {
			s.offset = append(s.offset, 0)
		}
	}
	s.source = slices.Repeat([]int{-1}, len(s.offset))
	s.gain = make([]float64, len(s.offset))
	s.linkAt = make([][]int, len(subsystems))
	var errs []error
	for _, c := range connections {
		if err := s.connect(byName, c); err != nil {
			errs = append(errs, fmt.Errorf("connection %s → %s: %w", c.From, c.To, err))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	s.orderStateless()
	s.Loops = s.loops(nil)
	return s, nil
}

func (s *System) connect(byName map[string]int, c Connection) error {
	c.From, c.To = c.From.split(byName), c.To.split(byName)
	from, ok := byName[c.From.Subsystem]
	if !ok {
		return fmt.Errorf("no subsystem %q", c.From.Subsystem)
	}
	to, ok := byName[c.To.Subsystem]
	if !ok {
		return fmt.Errorf("no subsystem %q", c.To.Subsystem)
	}
	fi, ti := s.Infos[from], s.Infos[to]
	named := func(name string) func(Port) bool { return func(p Port) bool { return p.Name == name } }
	in, out := slices.IndexFunc(ti.In, named(c.To.Port)), slices.IndexFunc(fi.Out, named(c.From.Port))
	din, dout := slices.IndexFunc(ti.DiscreteIn, named(c.To.Port)), slices.IndexFunc(fi.DiscreteOut, named(c.From.Port))
	param := slices.IndexFunc(ti.Params, named(c.To.Port))
	switch {
	case in < 0 && din < 0 && param < 0:
		return fmt.Errorf("%s has no input %q", ti.Name, c.To.Port)
	case out < 0 && dout < 0:
		return fmt.Errorf("%s has no output %q", fi.Name, c.From.Port)
	case out >= 0 && fi.Out[out].Internal:
		return fmt.Errorf("%s.%s is not an output; it is only read together with the outputs", fi.Name, c.From.Port)
	case in < 0 && din < 0:
		return s.transfer(from, out, dout, to, param, c)
	case in >= 0 && out >= 0:
		return s.connectReal(s.InAt[to]+in, s.OutAt[from]+out, c)
	case din >= 0 && dout >= 0:
		return s.connectDiscrete(from, dout, to, din, c)
	}
	return errTypes
}

var errTypes = errors.New("the two ends have different types; connect like with like")

// check fails if the transformation does not apply to signals of a kind.
func (c *Connection) check(kind Kind) error {
	switch {
	case kind == Real && c.Map != nil:
		return errors.New("a table of values does not apply to Real signals")
	case kind != Real && c.Linear != nil:
		return errors.New("a linear transformation applies to Real signals only")
	}
	return nil
}

// connectReal connects entry y of the outputs to entry u of the inputs.
func (s *System) connectReal(u, y int, c Connection) error {
	if err := c.check(Real); err != nil {
		return err
	}
	if s.source[u] >= 0 {
		return fmt.Errorf("the input already has a source, %s", s.OutName(s.source[u]))
	}
	linear := Linear{Gain: 1}
	if c.Linear != nil {
		linear = *c.Linear
	}
	s.source[u], s.gain[u], s.offset[u] = y, linear.Gain, linear.Offset
	return nil
}

// connectDiscrete connects port out of a subsystem's DiscreteOut to port in of another's DiscreteIn.
func (s *System) connectDiscrete(from, out, to, in int, c Connection) error {
	outs, ins := s.Infos[from].DiscreteOut, s.Infos[to].DiscreteIn
	widens := outs[out].Kind == Integer && ins[in].Kind == Real
	switch {
	case widens && c.Linear == nil:
		c.Linear = &Linear{Gain: 1}
	case widens:
	case ins[in].Kind != outs[out].Kind:
		return errTypes
	default:
		if err := c.check(ins[in].Kind); err != nil {
			return err
		}
	}
	for _, l := range s.linkAt[to] {
		if d := &s.discrete[l]; d.toPort == in {
			return fmt.Errorf("the input already has a source, %s.%s", s.Infos[d.from].Name, s.Infos[d.from].DiscreteOut[d.fromPort].Name)
		}
	}
	s.linkAt[to] = append(s.linkAt[to], len(s.discrete))
	s.discrete = append(s.discrete, discreteLink{
		kind: outs[out].Kind, from: from, to: to, fromPort: out, toPort: in,
		out: indexOfKind(outs, out), in: indexOfKind(ins, in), table: c.Map, linear: c.Linear,
	})
	return nil
}

// transfer enters a connection to a parameter.
func (s *System) transfer(from, out, dout, to, param int, c Connection) error {
	fi, ti := s.Infos[from], s.Infos[to]
	t := transfer{kind: Real, from: from, to: to, fromPort: out, out: out, parameter: param, linear: Linear{Gain: 1}, table: c.Map}
	if out < 0 {
		t.kind, t.fromPort, t.out = fi.DiscreteOut[dout].Kind, dout, indexOfKind(fi.DiscreteOut, dout)
	}
	if c.Linear != nil {
		t.linear = *c.Linear
	}
	if kind := ti.Params[param].Kind; t.kind != Integer || kind != Real {
		if kind != t.kind {
			return errTypes
		}
		if err := c.check(t.kind); err != nil {
			return err
		}
	}
	if _, ok := As[ParameterSetter](s.Subsystems[to]); !ok {
		return fmt.Errorf("%s cannot take parameters from others", ti.Name)
	}
	for i := range s.transfers {
		if o := &s.transfers[i]; o.to == to && o.parameter == param {
			return fmt.Errorf("the parameter already has a source, %s", s.outPortName(o))
		}
	}
	s.transfers = append(s.transfers, t)
	return nil
}

// paramName returns "subsystem.port" of the target of a transfer.
func (s *System) paramName(t *transfer) string {
	return s.Infos[t.to].Name + "." + s.Infos[t.to].Params[t.parameter].Name
}

// outPortName returns "subsystem.port" of the source of a transfer.
func (s *System) outPortName(t *transfer) string {
	info := s.Infos[t.from]
	if t.kind == Real {
		return info.Name + "." + info.Out[t.fromPort].Name
	}
	return info.Name + "." + info.DiscreteOut[t.fromPort].Name
}

// checkFeedthrough fails if dependencies name ports that do not exist.
func (i *Info) checkFeedthrough() error {
	inputs, outputs := len(i.In)+len(i.DiscreteIn), len(i.Out)+len(i.DiscreteOut)
	for _, f := range []struct {
		name string
		*Feedthrough
	}{{"Step", &i.Step}, {"Init", &i.Init}} {
		if f.On != nil && len(f.On) != outputs {
			return fmt.Errorf("%s: %s.On has %d entries for %d outputs", i.Name, f.name, len(f.On), outputs)
		}
		if f.Assumed != nil && len(f.Assumed) != outputs {
			return fmt.Errorf("%s: %s.Assumed has %d entries for %d outputs", i.Name, f.name, len(f.Assumed), outputs)
		}
		for out, on := range f.On {
			for _, in := range on {
				if in < 0 || in >= inputs {
					return fmt.Errorf("%s: %s.On[%d] names input %d of %d", i.Name, f.name, out, in, inputs)
				}
			}
		}
	}
	return nil
}

// indexOfKind returns the place of port i among the ports of its kind.
func indexOfKind(ports []Port, i int) int {
	n := 0
	for _, p := range ports[:i] {
		if p.Kind == ports[i].Kind {
			n++
		}
	}
	return n
}

// NewValues returns storage for the values of ports.
func NewValues(ports []Port) Values {
	var n [String + 1]int
	for _, p := range ports {
		n[p.Kind]++
	}
	return Values{
		Real: make([]float64, n[Real]), Integer: make([]int64, n[Integer]),
		Boolean: make([]bool, n[Boolean]), String: make([]string, n[String]),
	}
}

// fits reports whether two lists have the same number of values of each kind.
func (v *Values) fits(o *Values) bool {
	return len(v.Real) == len(o.Real) && len(v.Integer) == len(o.Integer) && len(v.Boolean) == len(o.Boolean) &&
		len(v.String) == len(o.String)
}

// InName returns "subsystem.port" of entry i of u.
func (s *System) InName(i int) string { return globalName(s.Infos, s.InAt, i, true) }

// OutName returns "subsystem.port" of entry i of y.
func (s *System) OutName(i int) string { return globalName(s.Infos, s.OutAt, i, false) }

func globalName(infos []*Info, at []int, i int, in bool) string {
	sub := owner(at, i)
	ports := infos[sub].Out
	if in {
		ports = infos[sub].In
	}
	return infos[sub].Name + "." + ports[i-at[sub]].Name
}

// owner returns the subsystem to which entry i belongs, by its offsets.
func owner(at []int, i int) int {
	sub, found := slices.BinarySearch(at, i)
	if !found {
		return sub - 1
	}
	for at[sub+1] == i { // skip subsystems without entries
		sub++
	}
	return sub
}

// Source returns the entry of y that feeds entry i of u; false if there is none.
func (s *System) Source(i int) (int, bool) { return s.source[i], s.source[i] >= 0 }

// Feeds reports whether entry y of the outputs feeds an input.
func (s *System) Feeds(y int) bool { return slices.Contains(s.source, y) }

// FeedsDiscrete reports whether entry k of the discrete outputs of subsystem i feeds an input.
func (s *System) FeedsDiscrete(i, k int) bool {
	return slices.ContainsFunc(s.discrete, func(l discreteLink) bool { return l.from == i && l.fromPort == k })
}

// loose returns, by subsystem, the entries of y that feed neither an input nor a parameter.
func (s *System) loose() [][]int {
	feeds := make([]bool, s.OutAt[len(s.Subsystems)])
	for _, y := range s.source {
		if y >= 0 {
			feeds[y] = true
		}
	}
	for k := range s.transfers {
		if t := &s.transfers[k]; t.kind == Real {
			feeds[s.OutAt[t.from]+t.out] = true
		}
	}
	out := make([][]int, len(s.Subsystems))
	for i := range out {
		for y := s.OutAt[i]; y < s.OutAt[i+1]; y++ {
			if !feeds[y] {
				out[i] = append(out[i], y)
			}
		}
	}
	return out
}

// DiscreteConnected reports whether an output feeds entry k of subsystem sub's
// DiscreteIn.
func (s *System) DiscreteConnected(sub, k int) bool {
	return slices.ContainsFunc(s.linkAt[sub], func(l int) bool { return s.discrete[l].toPort == k })
}

// SourceSubsystem returns the subsystem that feeds entry i of u, or -1.
func (s *System) SourceSubsystem(i int) int {
	if s.source[i] < 0 {
		return -1
	}
	return owner(s.OutAt, s.source[i])
}

// Gain returns the factor of the connection to entry i of u.
func (s *System) Gain(i int) float64 { return s.gain[i] }

// Offset returns the constant that is added to input i, the entry of b.
func (s *System) Offset(i int) float64 { return s.offset[i] }

// DiscreteLink is a connection of an Integer, Boolean or String.
type DiscreteLink struct {
	From, To string // "subsystem.port"
	Map      string // describes the table of values, for comparison; "" = none
}

// DiscreteLinks lists the connections of discrete signals.
func (s *System) DiscreteLinks() []DiscreteLink {
	var out []DiscreteLink
	for _, d := range s.discrete {
		l := DiscreteLink{
			From: s.Infos[d.from].Name + "." + s.Infos[d.from].DiscreteOut[d.fromPort].Name,
			To:   s.Infos[d.to].Name + "." + s.Infos[d.to].DiscreteIn[d.toPort].Name,
		}
		if d.table != nil {
			var pairs []string
			for _, from := range slices.Sorted(maps.Keys(d.table)) {
				pairs = append(pairs, fmt.Sprintf("%d → %d", from, d.table[from]))
			}
			l.Map = " by " + strings.Join(pairs, ", ")
		}
		if d.linear != nil {
			l.Map += fmt.Sprintf(" times %v plus %v", d.linear.Gain, d.linear.Offset)
		}
		out = append(out, l)
	}
	return out
}

// Block is a maximal set of subsystems that all depend on each other within a macro step, or a single
// subsystem that is on no such cycle.
type Block struct {
	Members []int // ascending
	Cyclic  bool
}

// Blocks returns all subsystems in blocks, each after those that feed it. Inputs that are held over the
// step are not dependencies: Reals that change only at communication points, and discrete signals of
// subsystems that are not stepped late.
func (s *System) Blocks() []Block {
	n := len(s.Subsystems)
	late := make([]bool, n)
	for _, i := range s.Late {
		late[i] = true
	}
	feeds := make([][]int, n)
	for i := range n {
		sources := s.Sources(i)
		if !late[i] {
			sources = sources[:0]
			for u := s.InAt[i]; u < s.InAt[i+1]; u++ {
				if s.source[u] >= 0 && !s.holds(u) {
					sources = append(sources, owner(s.OutAt, s.source[u]))
				}
			}
			slices.Sort(sources)
			sources = slices.Compact(sources)
		}
		for _, from := range sources {
			feeds[from] = append(feeds[from], i)
		}
	}
	succ := func(v int) []int { return feeds[v] }
	var blocks []Block
	for _, scc := range components(n, succ) {
		blocks = append(blocks, Block{Members: scc, Cyclic: cyclic(scc, succ)})
	}
	return blocks
}

// FindIn returns the entry of u with this name, "subsystem.port".
func (s *System) FindIn(name string) (int, bool) {
	for i := range s.source {
		if s.InName(i) == name {
			return i, true
		}
	}
	return 0, false
}

// FindOut returns the entry of y with this name.
func (s *System) FindOut(name string) (int, bool) {
	for i := range s.OutAt[len(s.Subsystems)] {
		if s.OutName(i) == name {
			return i, true
		}
	}
	return 0, false
}

// ExtrapolatedOutputs returns the entries of y that feed extrapolated inputs, ascending. A history
// before the start must contain them.
func (s *System) ExtrapolatedOutputs() []int {
	var out []int
	for _, sub := range s.Stepped {
		for i := s.InAt[sub]; i < s.InAt[sub+1]; i++ {
			if s.source[i] >= 0 && !s.holds(i) {
				out = append(out, s.source[i])
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// holds reports whether input i keeps the last value of its source at any order of extrapolation,
// because one of the two changes only at communication points.
func (s *System) holds(i int) bool {
	sub := owner(s.InAt, i)
	if s.Infos[sub].In[i-s.InAt[sub]].Discrete {
		return true
	}
	src := s.source[i]
	if src < 0 {
		return false
	}
	from := owner(s.OutAt, src)
	return s.Infos[from].Out[src-s.OutAt[from]].Discrete
}

// Holds reports for each entry of u whether it is held over a macro step instead of extrapolated.
func (s *System) Holds() []bool {
	h := make([]bool, len(s.source))
	for i := range h {
		h[i] = s.holds(i)
	}
	return h
}

// Sources returns the subsystems that feed subsystem i, ascending.
func (s *System) Sources(i int) []int {
	var out []int
	for u := s.InAt[i]; u < s.InAt[i+1]; u++ {
		if s.source[u] >= 0 {
			out = append(out, owner(s.OutAt, s.source[u]))
		}
	}
	for _, l := range s.linkAt[i] {
		out = append(out, s.discrete[l].from)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Affects reports whether subsystem from feeds subsystem to, directly or through others.
func (s *System) Affects(from, to int) bool {
	seen := make([]bool, len(s.Infos))
	var visit func(i int) bool
	visit = func(i int) bool {
		for _, j := range s.Sources(i) {
			if j == from {
				return true
			}
			if !seen[j] {
				seen[j] = true
				if visit(j) {
					return true
				}
			}
		}
		return false
	}
	return visit(to)
}

// SequenceFromGraph orders the subsystems so that each comes after its sources, except within a
// feedback loop, whose members keep the order of the system.
func (s *System) SequenceFromGraph() []int {
	n := len(s.Subsystems)
	feeds := make([][]int, n)
	for i := range n {
		for _, from := range s.Sources(i) {
			feeds[from] = append(feeds[from], i)
		}
	}
	var order []int
	for _, scc := range components(n, func(v int) []int { return feeds[v] }) {
		order = append(order, scc...)
	}
	return order
}

// orderStateless splits the subsystems into Stepped and Late. Subsystems are stepped as a whole, so a
// loop here is one of subsystems, regardless of their ports.
func (s *System) orderStateless() {
	n := len(s.Subsystems)
	feeds := make([][]int, n) // among stateless subsystems
	for i, info := range s.Infos {
		if !info.Stateless {
			continue
		}
		for _, from := range s.Sources(i) {
			if s.Infos[from].Stateless {
				feeds[from] = append(feeds[from], i)
			}
		}
	}
	succ := func(v int) []int { return feeds[v] }
	for _, scc := range components(n, succ) {
		if s.Infos[scc[0]].Stateless && !cyclic(scc, succ) {
			s.Late = append(s.Late, scc[0])
		} else {
			s.Stepped = append(s.Stepped, scc...)
		}
	}
	slices.Sort(s.Stepped)
}

// portGraph is the graph of ports: its edges are the feedthrough from inputs to outputs and the
// connections from outputs to inputs. Its nodes are u, y, discrete inputs, discrete outputs, each by
// subsystem, and then transfers. During the initialisation a parameter affects all outputs of its
// subsystem.
type portGraph struct {
	s                *System
	yAt, dinAt, dout int   // first node of each group
	transferAt       int   // first node of the transfers
	din, doutBy      []int // first node of each subsystem's discrete ports; one entry more than subsystems
	succ             [][]int
}

func (s *System) portGraph(of func(*Info) *Feedthrough, declaredOnly bool) *portGraph {
	n := len(s.Subsystems)
	g := &portGraph{s: s, yAt: s.InAt[n]}
	g.dinAt = g.yAt + s.OutAt[n]
	at := g.dinAt
	for _, info := range s.Infos {
		g.din = append(g.din, at)
		at += len(info.DiscreteIn)
	}
	g.din = append(g.din, at)
	g.dout = at
	for _, info := range s.Infos {
		g.doutBy = append(g.doutBy, at)
		at += len(info.DiscreteOut)
	}
	g.doutBy = append(g.doutBy, at)
	g.transferAt = at
	g.succ = make([][]int, at+len(s.transfers))
	calculated := g.transferred()
	for i, info := range s.Infos {
		f := of(info)
		for out, on := range f.On {
			if f.Assumed != nil && f.Assumed[out] && (declaredOnly || calculated[g.outNode(i, out)]) {
				continue
			}
			for _, in := range on {
				v := g.inNode(i, in)
				g.succ[v] = append(g.succ[v], g.outNode(i, out))
			}
		}
	}
	for u, y := range s.source {
		if y >= 0 {
			g.succ[g.yAt+y] = append(g.succ[g.yAt+y], u)
		}
	}
	for _, l := range s.discrete {
		v := g.doutBy[l.from] + l.fromPort
		g.succ[v] = append(g.succ[v], g.din[l.to]+l.toPort)
	}
	return g
}

// transferred enters the transfers and returns the output nodes that are their sources: parameters that
// are calculated from parameters, and depend on inputs only if that is declared.
func (g *portGraph) transferred() map[int]bool {
	sources := map[int]bool{}
	for k := range g.s.transfers {
		t := &g.s.transfers[k]
		v := g.doutBy[t.from] + t.fromPort
		if t.kind == Real {
			v = g.yAt + g.s.OutAt[t.from] + t.fromPort
		}
		sources[v] = true
		at := g.transferAt + k
		g.succ[v] = append(g.succ[v], at)
		info := g.s.Infos[t.to]
		for out := range len(info.Out) + len(info.DiscreteOut) {
			g.succ[at] = append(g.succ[at], g.outNode(t.to, out))
		}
	}
	return sources
}

// inNode returns the node of input in of subsystem sub, counted over In and DiscreteIn.
func (g *portGraph) inNode(sub, in int) int {
	if n := len(g.s.Infos[sub].In); in >= n {
		return g.din[sub] + in - n
	}
	return g.s.InAt[sub] + in
}

func (g *portGraph) outNode(sub, out int) int {
	if n := len(g.s.Infos[sub].Out); out >= n {
		return g.doutBy[sub] + out - n
	}
	return g.yAt + g.s.OutAt[sub] + out
}

// place returns the subsystem of a node and whether it is an input.
func (g *portGraph) place(v int) (sub int, input bool) {
	switch {
	case v < g.yAt:
		return owner(g.s.InAt, v), true
	case v < g.dinAt:
		return owner(g.s.OutAt, v-g.yAt), false
	case v < g.dout:
		return owner(g.din, v), true
	case v >= g.transferAt:
		return g.s.transfers[v-g.transferAt].to, true
	}
	return owner(g.doutBy, v), false
}

func (g *portGraph) name(v int) string {
	sub, _ := g.place(v)
	info := g.s.Infos[sub]
	switch {
	case v < g.yAt:
		return g.s.InName(v)
	case v < g.dinAt:
		return g.s.OutName(v - g.yAt)
	case v < g.dout:
		return info.Name + "." + info.DiscreteIn[v-g.din[sub]].Name
	case v >= g.transferAt:
		return info.Name + "." + info.Params[g.s.transfers[v-g.transferAt].parameter].Name
	}
	return info.Name + "." + info.DiscreteOut[v-g.doutBy[sub]].Name
}

func macroStep(i *Info) *Feedthrough { return &i.Step }
func initStep(i *Info) *Feedthrough  { return &i.Init }

// loops returns the algebraic loops of the stepping graph. leaks are undeclared dependencies, by
// subsystem, that count as feedthrough.
func (s *System) loops(leaks map[int][]Leak) []Loop {
	g := s.portGraph(macroStep, false)
	for i := range s.Subsystems {
		for _, l := range leaks[i] {
			g.add(i, l.In, l.Out)
		}
	}
	return g.loops(s.onDeclaredLoop(macroStep), Loop{Treatment: "broken by the extrapolated inputs"})
}

// InitLoops returns the algebraic loops of the initialisation, which solves them.
func (s *System) InitLoops() []Loop {
	return s.portGraph(initStep, false).loops(s.onDeclaredLoop(initStep), Loop{Initialization: true, Treatment: "solved"})
}

// cycles returns the components of the graph that hold a cycle.
func (g *portGraph) cycles() [][]int {
	return slices.DeleteFunc(components(len(g.succ), g.next), func(scc []int) bool { return !cyclic(scc, g.next) })
}

// loops returns the loops of the graph, with the stage and treatment of kind.
func (g *portGraph) loops(declared []bool, kind Loop) (out []Loop) {
	for _, scc := range g.cycles() {
		l := g.loop(scc, declared)
		l.Initialization, l.Treatment = kind.Initialization, kind.Treatment
		out = append(out, l)
	}
	return out
}

// add adds a dependency that was found to the graph.
func (g *portGraph) add(sub, in, out int) {
	v := g.inNode(sub, in)
	g.succ[v] = append(g.succ[v], g.outNode(sub, out))
}

// onDeclaredLoop reports for each node whether it is on a loop of declared dependencies.
func (s *System) onDeclaredLoop(of func(*Info) *Feedthrough) []bool {
	g := s.portGraph(of, true)
	on := make([]bool, len(g.succ))
	for _, v := range slices.Concat(g.cycles()...) {
		on[v] = true
	}
	return on
}

func (g *portGraph) next(v int) []int { return g.succ[v] }

func (g *portGraph) loop(scc []int, declared []bool) Loop {
	l := Loop{Assumed: true}
	for _, v := range scc {
		if declared[v] {
			l.Assumed = false
		}
	}
	for _, v := range g.walk(scc) {
		l.Variables = append(l.Variables, g.name(v))
	}
	return l
}

// walk orders the nodes of a component so that each after the first is reached from an earlier one:
// along the loop if there is only one.
func (g *portGraph) walk(scc []int) []int {
	seen := make(map[int]bool, len(scc))
	var out []int
	var visit func(v int)
	visit = func(v int) {
		seen[v] = true
		out = append(out, v)
		for _, w := range g.succ[v] {
			if _, member := slices.BinarySearch(scc, w); member && !seen[w] {
				visit(w)
			}
		}
	}
	visit(scc[0])
	return out
}
