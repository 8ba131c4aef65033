package main

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
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/graph"
)

const sspGraphHelp = `Draws a system as an SVG, which every browser shows: components with the
connected inputs and outputs, connections, algebraic loops (red; dashed where only
missing dependencies close them) and power bonds (green; pale where units alone
say so). Where the pointer rests on a connection, its variables are named. Nested
systems are drawn flat, with their components under their paths.

FMUs that are not there are no obstacle: the picture is then made of the document
alone, without loops.

Examples:
   macrostep ssp graph car.ssp
   macrostep ssp graph car.ssp -o - > car.svg
   macrostep ssp graph car/SystemStructure.ssd -o car.svg --force`

func (p *program) sspGraphCommand() *cli.Command {
	return &cli.Command{
		Name: "ssp graph", Usage: "draw a system", ArgsUsage: "SYSTEM",
		UsageText: "macrostep ssp graph SYSTEM [-o FILE.svg] [--force]", Description: sspGraphHelp,
		Flags: []cli.Flag{outputFlag("write `FILE`; - is the standard output; by default SYSTEM.svg; -o for short"), forceFlag()},
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "SYSTEM (an .ssp, a folder or an .ssd)"); err != nil {
				return err
			}
			path, output := c.Args().First(), c.String("output")
			if output == "" {
				output = strings.TrimSuffix(filepath.Clean(path), filepath.Ext(path)) + ".svg"
			}
			return p.sspGraph(path, output, c.Bool(flagForce))
		},
	}
}

func (p *program) sspGraph(path, output string, force bool) error {
	if output != "-" && !force {
		if err := free(output); err != nil {
			return err
		}
	}
	s, err := pictured(path)
	if err != nil {
		if s, err = p.picturedAlone(path, err); err != nil {
			return err
		}
	}
	if output == "-" {
		return graph.SVG(p.stdout, s)
	}
	if err := writeChecked(output, force, func(w io.Writer) error { return graph.SVG(w, s) }, nil); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "wrote %s: %d components, %d connections\n", output, len(s.Nodes), len(s.Edges))
	return nil
}

// pictured makes the picture of a system with its FMUs.
func pictured(path string) (s *graph.System, err error) {
	a, err := assemble.Open(path, assemble.Options{})
	defer func() { err = errors.Join(err, a.Close()) }()
	if err != nil {
		return nil, err
	}
	s = &graph.System{Title: a.Name}
	nodes := map[string]int{}
	for i, info := range a.System.Infos {
		nodes[info.Name] = i
		detail := "function" // of a structure of OSP
		if i < len(a.Components) {
			detail = filepath.Base(filepath.FromSlash(a.Components[i].Source))
			if info.Stateless {
				detail += ", stateless"
			}
		}
		s.Nodes = append(s.Nodes, graph.Node{Name: info.Name, Detail: detail})
	}
	component := func(name string) (int, string) { // the longest path that fits
		at := -1
		for n, i := range nodes {
			if strings.HasPrefix(name, n+".") && (at < 0 || len(n) > len(s.Nodes[at].Name)) {
				at = i
			}
		}
		if at < 0 {
			return -1, name
		}
		return at, name[len(s.Nodes[at].Name)+1:]
	}
	from := map[string][]int{} // edges by output
	for _, c := range a.Connections() {
		e := graph.Edge{}
		e.From, e.Output = component(c.From)
		e.To, e.Input = component(c.To)
		e.Note = strings.TrimSpace(gainNote(c.Gain, c.Offset) + " " + c.Map)
		e.Loop, e.Assumed = loopOf(a.System.Loops, c.From, c.To)
		from[c.From] = append(from[c.From], len(s.Edges))
		s.Edges = append(s.Edges, e)
	}
	bond := func(name string, proposed bool, outputs ...string) {
		b := graph.Bond{Name: name, Proposed: proposed}
		ends := map[int]bool{}
		for _, o := range outputs {
			at, _ := component(o)
			ends[at] = true
		}
		for _, o := range outputs {
			for _, e := range from[o] {
				if ends[s.Edges[e].To] { // an output may feed others, too
					b.Edges = append(b.Edges, e)
				}
			}
		}
		s.Bonds = append(s.Bonds, b)
	}
	declared := map[string]bool{}
	for _, d := range a.DeclaredBonds {
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

// gainNote says how a value changes on its way.
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

// loopOf finds the algebraic loop of the run that a connection lies on, by number
// from 1.
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

// picturedAlone makes the picture of a document whose FMUs cannot be had.
func (p *program) picturedAlone(path string, why error) (s *graph.System, err error) {
	pkg, failed := ssp.Open(path, &diag.List{})
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
