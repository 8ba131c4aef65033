package input

import "github.com/macrostep/macrostep/algorithms/internal/num"

// grid holds the last communication points with a period, newest first.
type grid struct {
	period int        // macro steps between points
	old    polynomial // through these points, over the current macro step
	history
}

// history is the state of a grid.
type history struct {
	times  [MaxPoints]float64
	points int
	// W at the points, a ring buffer with the newest at newestAt.
	ring     [MaxPoints][]float64
	newestAt int
	block    polynomial // through these points, over the time since the newest
	line     polynomial // through the ends of the last step
}

// MaxPoints is the number of points that are kept: one more than a polynomial needs, so that the
// newest can be removed.
const MaxPoints = num.MaxNodes + 1

func newGrid(period, nu int) *grid {
	g := &grid{period: period}
	for p := range g.ring {
		g.ring[p] = make([]float64, nu)
	}
	return g
}

// at returns W [nu] at the p-th point before the newest.
func (g *grid) at(p int) []float64 { return g.ring[uint(g.newestAt+p)%MaxPoints] }

// push adds the values at a new point.
func (g *grid) push(t float64, w []float64) {
	copy(g.times[1:], g.times[:])
	g.times[0] = t
	g.newestAt = (g.newestAt + MaxPoints - 1) % MaxPoints
	copy(g.at(0), w)
	g.points = min(g.points+1, MaxPoints)
}

// pop removes the newest point.
func (g *grid) pop() {
	copy(g.times[:], g.times[1:])
	g.newestAt = (g.newestAt + 1) % MaxPoints
	g.points--
}

// nodes returns the times of the points of a polynomial of a degree.
func (g *grid) nodes(degree int) []float64 { return g.times[:min(g.points, degree+1)] }

// polynomial holds the weights of the points for one step: for value and derivatives at its start,
// and for the values at the midpoints of the substeps and at its end.
type polynomial struct {
	degree    int
	nodes     [num.MaxNodes]float64
	start     num.WeightTable
	midpoints [][num.MaxNodes]float64
	end       [num.MaxNodes]float64
}

func (p *polynomial) weigh(nodes []float64, t, H float64) {
	if p.degree = len(nodes) - 1; p.degree == 0 {
		p.nodes[0] = nodes[0]
		p.start[0][0], p.end[0] = 1, 1
		for j := range p.midpoints {
			p.midpoints[j][0] = 1
		}
		return
	}
	copy(p.nodes[:], nodes)
	num.Weights(p.start[:len(nodes)], nodes, t)
	for j := range p.midpoints {
		num.Weights(p.midpoints[j:j+1], nodes, t+H*(float64(j)+0.5)/float64(len(p.midpoints)))
	}
	var end [1][num.MaxNodes]float64
	num.Weights(end[:], nodes, t+H)
	p.end = end[0]
}

// weighLine computes the weights of the values at t and t+H.
func (p *polynomial) weighLine(t, H float64) { p.weigh([]float64{t, t + H}, t, H) }
