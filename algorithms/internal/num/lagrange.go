package num

// MaxNodes is the largest number of points of a polynomial.
const MaxNodes = 7

// WeightTable holds, by order of the derivative, the weights of up to MaxNodes values.
type WeightTable [MaxNodes][MaxNodes]float64

// Weights sets w[m][j] to the weight of the value at node j in the m-th derivative at z of the
// polynomial through all nodes; m = 0 is the value. The nodes must differ; len(nodes) ≤ MaxNodes.
//
// Source: B. Fornberg, Generation of finite difference formulas on arbitrarily
// spaced grids, Math. Comp. 51 (1988), the recursion of section 2.
func Weights(w [][MaxNodes]float64, nodes []float64, z float64) {
	clear(w)
	w[0][0] = 1
	c1, c4 := 1.0, nodes[0]-z
	for i := 1; i < len(nodes); i++ {
		mn := min(i, len(w)-1)
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
