package graph_test

import (
	"fmt"
	"strings"

	"github.com/macrostep/macrostep/ssp/graph"
)

func ExampleSVG() {
	s := &graph.System{
		Title: "car", Nodes: []graph.Node{{Name: "chassis"}, {Name: "wheel"}},
		Edges: []graph.Edge{{From: 0, To: 1, Output: "v", Input: "v"}, {From: 1, To: 0, Output: "F", Input: "F"}},
		Bonds: []graph.Bond{{Name: "axle", Edges: []int{0, 1}}},
	}
	var svg strings.Builder
	if err := graph.SVG(&svg, s); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Count(svg.String(), `class="box"`), "boxes,", strings.Count(svg.String(), `class="name"`), "bond")
	// Output: 2 boxes, 1 bond
}
