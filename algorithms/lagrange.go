package algorithms

// MaxOrder is the highest extrapolation order.
const MaxOrder = 5

// maxNodes is the largest number of points of a polynomial: error estimates
// look one degree above the order in force.
const maxNodes = MaxOrder + 2

// weightTable holds the weights of up to maxNodes values in derivatives 0, 1, ….
type weightTable [maxNodes][maxNodes]float64

// weights puts into w[m][j], m = 0…orders, the weight of the value at node j in
// the m-th derivative at z of the polynomial through all nodes; m = 0 is the
// value itself. nodes must differ; len(nodes) ≤ maxNodes.
//
// Source: B. Fornberg, Generation of finite difference formulas on arbitrarily
// spaced grids, Math. Comp. 51 (1988), the recursion of section 2.
func weights(w *weightTable, nodes []float64, z float64, orders int) {
	*w = weightTable{}
	w[0][0] = 1
	c1, c4 := 1.0, nodes[0]-z
	for i := 1; i < len(nodes); i++ {
		mn := min(i, orders)
		c2, c5 := 1.0, c4
		c4 = nodes[i] - z
		for j := range i {
			c3 := nodes[i] - nodes[j]
			c2 *= c3
			if j == i-1 {
				for m := mn; m > 0; m-- {
					w[m][i] = c1 * (float64(float64(m)*w[m-1][i-1]) - float64(c5*w[m][i-1])) / c2
				}
				w[0][i] = -c1 * c5 * w[0][i-1] / c2
			}
			for m := mn; m > 0; m-- {
				w[m][j] = (float64(c4*w[m][j]) - float64(float64(m)*w[m-1][j])) / c3
			}
			w[0][j] = c4 * w[0][j] / c3
		}
		c1 = c2
	}
}
