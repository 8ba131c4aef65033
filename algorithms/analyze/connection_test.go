package analyze

import (
	"fmt"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// Of an unstable coupling those connections are named first whose gain makes it so, of a few components and of
// many.
func TestNamesConnection(t *testing.T) {
	for _, n := range []int{6, 30} {
		if n > 6 && !long.On {
			continue
		}
		const stiff = 3 // the pair 3, 4
		var subs []master.Subsystem
		var links []master.Connection
		name := func(i int) string { return fmt.Sprint("c", i) }
		for i := range n {
			subs = append(subs, mastertest.NewLinear(name(i), mastertest.Matrices{A: [][]float64{{-1}}, B: [][]float64{{1, 1}}, C: [][]float64{{1}}}, []float64{1}))
			for _, from := range []int{i - 1, i + 1} {
				if from < 0 || from >= n {
					continue
				}
				gain, port := 0.05, map[bool]string{true: "u1", false: "u2"}[from < i]
				if from == stiff && i == stiff+1 {
					gain = 40
				} else if i == stiff && from == stiff+1 {
					gain = -40
				}
				links = append(links, master.Connection{From: master.Endpoint{Subsystem: name(from), Port: "y1"}, To: master.Endpoint{Subsystem: name(i), Port: port}, Linear: &master.Linear{Gain: gain}})
			}
		}
		sys, err := master.NewSystem(subs, links)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), sys, Options{Step: 0.05, Stop: 0.05, Order: 0, From: 0.04, To: 0.06})
		if err != nil {
			t.Fatal(err)
		}
		s := &r.Strategies[0]
		if s.IsStable() || s.Mode == nil || len(s.Mode.Connections) < 2 {
			t.Fatalf("%d: %+v", n, s)
		}
		for _, c := range s.Mode.Connections[:2] {
			if !strings.HasPrefix(c.Name, "c3.y1 -> c4.") && !strings.HasPrefix(c.Name, "c4.y1 -> c3.") {
				t.Errorf("%d components: %+v", n, s.Mode.Connections)
			}
		}
	}
}
