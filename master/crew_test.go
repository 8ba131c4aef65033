package master

import (
	"runtime"
	"testing"
)

// Workers are chosen where they take at most nine tenths of the time of one thread, with a
// hand-over that is measured only if it matters.
func TestBestCrew(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	const us = 1e-6
	for _, c := range []struct {
		name     string
		members  int
		cost     func(i int) float64
		handOver float64 // s; 0 = not measured
		workers  int
		side     float64 // s
	}{
		{"eight of 100 µs", 8, func(int) float64 { return 100 * us }, 10 * us, 2, 410.8 * us},
		{"eight of 100 µs, no free processor", 8, func(int) float64 { return 100 * us }, 400 * us, 1, 800 * us},
		{"eight of 10 µs", 8, func(int) float64 { return 10 * us }, 10 * us, 2, 50.8 * us},
		{"eight of 1 µs", 8, func(int) float64 { return us }, 10 * us, 1, 8 * us},
		{"two of 1 µs", 2, func(int) float64 { return us }, 0, 1, 2 * us},
		{"a thousand of 30 ns", 1000, func(int) float64 { return 0.03 * us }, 0, 1, 30 * us},
		{"one that outweighs the others", 8, func(i int) float64 { return []float64{1000 * us, us, us, us, us, us, us, us}[i] }, 0, 1, 1007 * us},
		{"unequal ones", 4, func(i int) float64 { return []float64{300 * us, 100 * us, 100 * us, 100 * us}[i] }, 10 * us, 2, 310.4 * us},
	} {
		var members []int
		var costs []float64
		for i := range c.members {
			members, costs = append(members, i), append(costs, c.cost(i))
		}
		measured := false
		workers, side, _ := bestCrew(members, costs, func([]float64) float64 { measured = true; return c.handOver })
		if workers != c.workers || side < c.side-1e-9 || side > c.side+1e-9 || measured != (c.handOver > 0) {
			t.Errorf("%s: %d workers, %g s, hand-over measured %t; want %d, %g", c.name, workers, side, measured, c.workers, c.side)
		}
	}
}
