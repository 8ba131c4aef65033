package num

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A polynomial of the degree of the interpolation is met to rounding, with all
// its derivatives, on random unequal grids.
func TestWeightsExactForPolynomials(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for degree := 0; degree < MaxNodes-1; degree++ {
		t.Run(fmt.Sprint(degree), func(t *testing.T) {
			for range 200 {
				nodes := make([]float64, degree+1)
				at := rng.Float64()
				for j := range nodes {
					nodes[j] = at
					at -= 0.2 + rng.Float64()
				}
				coef := make([]float64, degree+1)
				for i := range coef {
					coef[i] = rng.NormFloat64()
				}
				z := nodes[0] + rng.Float64()
				var w WeightTable
				Weights(w[:degree+1], nodes, z)
				for m := 0; m <= degree; m++ {
					got, size := 0.0, 0.0
					for j, node := range nodes {
						v := polynomialAt(coef, 0, node)
						got += w[m][j] * v
						size += math.Abs(w[m][j] * v)
					}
					if want := polynomialAt(coef, m, z); math.Abs(got-want) > 1e-13*(size+math.Abs(want)+1) {
						t.Fatalf("derivative %d at %g through %v: %.17g, want %.17g", m, z, nodes, got, want)
					}
				}
			}
		})
	}
}

// polynomialAt returns the m-th derivative of Σ c_i zⁱ.
func polynomialAt(c []float64, m int, z float64) float64 {
	sum := 0.0
	for i := m; i < len(c); i++ {
		f := c[i] * math.Pow(z, float64(i-m))
		for q := range m {
			f *= float64(i - q)
		}
		sum += f
	}
	return sum
}
