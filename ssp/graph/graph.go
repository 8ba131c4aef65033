// Package graph draws a coupled system as an SVG picture: components as boxes with
// the connected inputs on one side and the outputs on the other, connections as
// curves between them, algebraic loops and power bonds marked.
//
//	s := &graph.System{Title: "car", Nodes: []graph.Node{{Name: "chassis"}, {Name: "wheel"}},
//		Edges: []graph.Edge{{From: 0, To: 1, Output: "v", Input: "v"}, {From: 1, To: 0, Output: "F", Input: "F"}}}
//	err := graph.SVG(w, s)
//
// The layout is layered (sugiyama): the signal flow goes from left to right as far as
// possible, and feedback from right to left in between. The heuristic of eades finds the
// feedback, longest paths the layers, barycentres their order (that with the fewest
// crossings), and least squares in this order the heights (pool adjacent violators). A flow
// that is too wide is folded like a ribbon: every second band runs from right to left, upside
// down. The layout is deterministic: equal systems give equal bytes.
//
// Sources: K. Sugiyama, S. Tagawa, M. Toda, Methods for visual understanding of
// hierarchical system structures, IEEE Trans. SMC 11 (1981); P. Eades, X. Lin, W. F.
// Smyth, A fast and effective heuristic for the feedback arc set problem, Inf. Proc.
// Letters 47 (1993).
package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// System is a coupled system to be drawn.
type System struct {
	Title string
	Nodes []Node
	Edges []Edge
	Bonds []Bond
}

// Node is a component.
type Node struct {
	Name   string // shown as the title of the box
	Detail string // shown below it, for example the FMU
}

// Edge is a connection of two variables. Nodes are indices into System.Nodes.
type Edge struct {
	From, To      int
	Output, Input string
	Note          string // for example "×0.001", shown with the names of the variables
	// Loop is the number of the algebraic loop with the connection, from 1; 0 if there is
	// none. Assumed is true if the loop depends on feedthrough that no FMU declares.
	Loop    int
	Assumed bool
}

// Bond marks two edges, by their indices, as a power bond.
type Bond struct {
	Name  string
	Edges []int
	// Proposed is true if the bond follows from units and is not declared.
	Proposed bool
}

// bundle holds all edges from one node to another, drawn as one curve.
type bundle struct {
	from, to     int
	edges        []int
	loop         bool
	assumed      bool // all of its loops are assumed
	bonds        []string
	proposed     bool // all of its bonds are proposed
	back         bool // from a later layer to an earlier one
	around       bool // within one layer, around the boxes
	chain        []int
	fromAt, toAt float64 // heights of the ports, from the middle of the ports of the box
	turn         float64 // how far a curve around boxes reaches out
}

// bundles groups the edges by their nodes.
func (s *System) bundles() ([]*bundle, error) {
	byEnds := map[[2]int]*bundle{}
	var list []*bundle
	of := make([]*bundle, len(s.Edges))
	for i, e := range s.Edges {
		if e.From < 0 || e.From >= len(s.Nodes) || e.To < 0 || e.To >= len(s.Nodes) {
			return nil, fmt.Errorf("connection %d is from node %d to node %d, but there are %d nodes", i, e.From, e.To, len(s.Nodes))
		}
		key := [2]int{e.From, e.To}
		b := byEnds[key]
		if b == nil {
			b = &bundle{from: e.From, to: e.To, assumed: true, proposed: true}
			byEnds[key] = b
			list = append(list, b)
		}
		b.edges = append(b.edges, i)
		of[i] = b
		if e.Loop > 0 {
			b.loop, b.assumed = true, b.assumed && e.Assumed
		}
	}
	for _, bond := range s.Bonds {
		for _, e := range bond.Edges {
			if e < 0 || e >= len(of) {
				return nil, fmt.Errorf("bond %q has the connection %d, but there are %d connections", bond.Name, e, len(of))
			}
			if b := of[e]; !slices.Contains(b.bonds, bond.Name) {
				b.bonds = append(b.bonds, bond.Name)
				b.proposed = b.proposed && bond.Proposed
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *bundle) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	return list, nil
}

// label names the variables of a bundle at one end.
func (s *System) label(b *bundle, output bool) string {
	var names []string
	for _, e := range b.edges {
		name := s.Edges[e].Input
		if output {
			name = s.Edges[e].Output
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if text := strings.Join(names, ", "); len(names) == 1 || len(names) <= 3 && len(text) <= 20 {
		return cut(text, 26)
	}
	return fmt.Sprintf("%d signals", len(names))
}

// cut shortens a text to n characters.
func cut(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
