package app

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/graph"
)

const sspGraphHelp = `Draws a system as an SVG: components, connections, algebraic loops (red; dashed if
only undeclared dependencies close them) and power bonds (green; pale if only units
suggest them). Nested systems are drawn flat; for large ones use --depth and
--around.

Examples:
   macrostep ssp graph car.ssp
   macrostep ssp graph plant.ssp --depth 1
   macrostep ssp graph plant.ssp --around 'pump*' --around valve`

func (p *program) sspGraphCommand() *cli.Command {
	return &cli.Command{
		Name: "ssp graph", Usage: "draw a system", ArgsUsage: "SYSTEM",
		UsageText: "macrostep ssp graph SYSTEM [-o FILE.svg] [--depth N] [--around GLOB] [--force]", Description: sspGraphHelp,
		Flags: []cli.Flag{
			outputFlag("write `FILE` (default: SYSTEM.svg); -: standard output"), forceFlag(),
			&cli.IntFlag{Name: "depth", Usage: "draw systems below `N` levels as one box each; 0: everything flat"},
			listFlag("around", "draw the components that match `GLOB` (* and ? only) and their neighbours"),
		},
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "SYSTEM (an .ssp, a folder or an .ssd)"); err != nil {
				return err
			}
			in := newInput(c)
			part := part{depth: c.Int("depth"), around: reading(in.globs("around")).Select}
			if part.depth < 0 {
				in.fail("depth", fmt.Errorf("%d is less than 0", part.depth))
			}
			if err := in.err(); err != nil {
				return err
			}
			path := c.Args().First()
			output, err := p.target(c, strings.TrimSuffix(filepath.Clean(path), filepath.Ext(path))+".svg")
			if err != nil {
				return err
			}
			s, err := p.sspGraph(path, output, part, c.Bool(flagForce))
			if err == nil {
				p.wrote(output, ": %d components, %d connections", len(s.Nodes), len(s.Edges))
			}
			return err
		},
	}
}

// readable is the largest number of boxes of a readable picture.
const readable = 150

// part selects the part of a system that is drawn. The zero value is everything.
type part struct {
	depth  int                    // deeper systems are one box each; 0 = all are open
	around func(name string) bool // nil = all
}

// of returns the selected part of a system.
func (q part) of(s *graph.System) (*graph.System, error) {
	if q.depth > 0 {
		s = folded(s, q.depth)
	}
	if q.around == nil {
		return s, nil
	}
	chosen, keep := make([]bool, len(s.Nodes)), make([]bool, len(s.Nodes))
	any := false
	for i, n := range s.Nodes {
		chosen[i] = q.around(n.Name)
		keep[i], any = chosen[i], any || chosen[i]
	}
	if !any {
		var names []string
		for _, n := range s.Nodes {
			names = append(names, n.Name)
		}
		return nil, fmt.Errorf("--around matches no component; there are %s", diag.Some(names))
	}
	for _, e := range s.Edges {
		if chosen[e.From] || chosen[e.To] {
			keep[e.From], keep[e.To] = true, true
		}
	}
	group := make([]int, len(s.Nodes))
	var nodes []graph.Node
	for i, n := range s.Nodes {
		group[i] = -1
		if keep[i] {
			group[i] = len(nodes)
			nodes = append(nodes, n)
		}
	}
	return regrouped(s, nodes, group), nil
}

// folded replaces each nested system below a depth by one box.
func folded(s *graph.System, depth int) *graph.System {
	at, count := map[string]int{}, map[string]int{}
	group := make([]int, len(s.Nodes))
	var nodes []graph.Node
	for i, n := range s.Nodes {
		name := n.Name
		parts := strings.Split(name, ".")
		if len(parts) <= depth {
			group[i] = len(nodes)
			nodes = append(nodes, n)
			continue
		}
		name = strings.Join(parts[:depth], ".")
		k, there := at[name]
		if !there {
			k = len(nodes)
			at[name] = k
			nodes = append(nodes, graph.Node{Name: name})
		}
		count[name]++
		nodes[k].Detail = plural(count[name], "component")
		group[i] = k
	}
	return regrouped(s, nodes, group)
}

// regrouped returns a system with other nodes. group is the new index of each old node, -1 for one that is
// left out. Connections inside a group are left out.
func regrouped(s *graph.System, nodes []graph.Node, group []int) *graph.System {
	out := &graph.System{Title: s.Title, Nodes: nodes}
	edge := make([]int, len(s.Edges))
	for i, e := range s.Edges {
		edge[i] = -1
		from, to := group[e.From], group[e.To]
		if from < 0 || to < 0 || from == to && e.From != e.To {
			continue
		}
		local := func(old, now int, variable string) string { // the path from the box on
			return strings.TrimPrefix(s.Nodes[old].Name+"."+variable, nodes[now].Name+".")
		}
		e.Output, e.Input = local(e.From, from, e.Output), local(e.To, to, e.Input)
		e.From, e.To = from, to
		edge[i] = len(out.Edges)
		out.Edges = append(out.Edges, e)
	}
	for _, b := range s.Bonds {
		kept := graph.Bond{Name: b.Name, Proposed: b.Proposed}
		for _, e := range b.Edges {
			if edge[e] >= 0 {
				kept.Edges = append(kept.Edges, edge[e])
			}
		}
		if len(kept.Edges) > 0 {
			out.Bonds = append(out.Bonds, kept)
		}
	}
	return out
}

// sspGraph draws a system into a file and returns what is in the picture.
func (p *program) sspGraph(path, output string, q part, force bool) (s *graph.System, err error) {
	if s, err = pictured(path, p.dialects); err != nil {
		if s, err = p.picturedAlone(path, err); err != nil {
			return nil, err
		}
	}
	if s, err = q.of(s); err != nil {
		return nil, err
	}
	if len(s.Nodes) > readable {
		fmt.Fprintf(p.stderr, "warning: a picture of %d components is hard to read; --depth 1 draws nested systems as boxes, "+
			"--around COMPONENT a part\n", len(s.Nodes))
	}
	return s, p.writeOutput(output, force, func(w io.Writer) error { return graph.SVG(w, s) }, nil)
}

// pictured returns the picture of a system with its FMUs.
func pictured(path string, dialects []ssp.Dialect) (s *graph.System, err error) {
	a, err := assemble.Open(path, looking(dialects))
	defer func() { err = errors.Join(err, a.Close()) }()
	if err != nil {
		return nil, err
	}
	s = &graph.System{Title: a.Name}
	for i, info := range a.System.Infos {
		detail := "function" // of a structure of OSP
		if i < len(a.Components) {
			detail = filepath.Base(filepath.FromSlash(a.Components[i].Source))
			if info.Stateless {
				detail += ", stateless"
			}
		}
		s.Nodes = append(s.Nodes, graph.Node{Name: info.Name, Detail: detail})
	}
	from := map[string][]int{} // edges by output
	for _, c := range a.Connections() {
		e := graph.Edge{Note: strings.TrimSpace(gainNote(c.Gain, c.Offset) + " " + c.Map)}
		e.From, e.Output = nodeOf(s.Nodes, c.From)
		e.To, e.Input = nodeOf(s.Nodes, c.To)
		e.Loop, e.Assumed = loopOf(a.System.Loops, c.From, c.To)
		from[c.From] = append(from[c.From], len(s.Edges))
		s.Edges = append(s.Edges, e)
	}
	bond := func(name string, proposed bool, outputs ...string) {
		b := graph.Bond{Name: name, Proposed: proposed}
		ends := map[int]bool{}
		for _, o := range outputs {
			at, _ := nodeOf(s.Nodes, o)
			ends[at] = true
		}
		for _, o := range outputs {
			for _, e := range from[o] {
				if ends[s.Edges[e].To] { // an output may also feed other components
					b.Edges = append(b.Edges, e)
				}
			}
		}
		s.Bonds = append(s.Bonds, b)
	}
	declared := map[string]bool{}
	own, err := simulate.AskedBy(a.Asked)
	if err != nil {
		return nil, err
	}
	for _, d := range own.Bonds {
		var outputs []string
		for _, q := range d.Pairs {
			outputs = append(outputs, q.Effort, q.Flow)
			declared[q.Effort+" "+q.Flow] = true
		}
		bond(d.Name, false, outputs...)
	}
	found, _ := a.Bonds()
	for _, f := range found {
		if !declared[f.Effort+" "+f.Flow] {
			bond(f.Name, true, f.Effort, f.Flow)
		}
	}
	return s, nil
}

// nodeOf returns the node of a variable "component.variable", the one with the longest name that matches, and
// the variable; -1 if there is none.
func nodeOf(nodes []graph.Node, name string) (node int, variable string) {
	node, variable = -1, name
	for i, n := range nodes {
		if rest, ok := strings.CutPrefix(name, n.Name+"."); ok && len(rest) < len(variable) {
			node, variable = i, rest
		}
	}
	return node, variable
}

// gainNote formats the factor and offset of a connection.
func gainNote(gain, offset float64) string {
	text := ""
	if gain != 1 {
		text = "×" + strconv.FormatFloat(gain, 'g', 6, 64)
	}
	if offset != 0 {
		text = strings.TrimSpace(text + fmt.Sprintf(" %+g", offset))
	}
	return text
}

// loopOf returns the number of the algebraic loop of the run with a connection, counted from 1; 0 if there is none.
func loopOf(loops []master.Loop, from, to string) (number int, assumed bool) {
	n := 0
	for _, l := range loops {
		if l.Initialization {
			continue
		}
		n++
		if slices.Contains(l.Variables, from) && slices.Contains(l.Variables, to) {
			return n, l.Assumed
		}
	}
	return 0, false
}

// picturedAlone returns the picture of a document without its FMUs; why is the reason.
func (p *program) picturedAlone(path string, why error) (s *graph.System, err error) {
	pkg, failed := ssp.Open(path, &diag.List{}, p.dialects...)
	if failed != nil || assemble.IsFMU(path) {
		return nil, why
	}
	defer func() { err = errors.Join(err, pkg.Close()) }()
	n, failed := pkg.Flatten(newDeclaredOnly(pkg.Root), &diag.List{})
	if failed != nil || len(n.Components) == 0 {
		return nil, why
	}
	first, _, _ := strings.Cut(why.Error(), "\n")
	fmt.Fprintf(p.stderr, "warning: the picture is made of the document alone, without loops: %s\n", first)
	s = &graph.System{Title: n.Name}
	for _, c := range n.Components {
		s.Nodes = append(s.Nodes, graph.Node{Name: c.Path, Detail: filepath.Base(filepath.FromSlash(c.URI))})
	}
	for _, f := range n.Functions {
		s.Nodes = append(s.Nodes, graph.Node{Name: f.Path, Detail: "function"})
	}
	for _, c := range n.Connections {
		s.Edges = append(s.Edges, graph.Edge{From: c.From.Component, Output: c.From.Variable, To: c.To.Component, Input: c.To.Variable,
			Note: gainNote(c.Gain, c.Offset)})
	}
	return s, nil
}
