package algorithms

import "gonum.org/v1/gonum/mat"

func holdIntegrals(a, b *mat.Dense, h float64, p int) (*mat.Dense, []*mat.Dense) {
	n, m := b.Dims()
	size := n + m*(p+1)
	block := mat.NewDense(size, size, nil)
	block.Slice(0, n, 0, n).(*mat.Dense).Scale(h, a)
	block.Slice(0, n, n, n+m).(*mat.Dense).Scale(h, b)
	for i := range m * p {
		block.Set(n+i, n+m+i, h)
	}
	var e mat.Dense
	e.Exp(block)
	var parts []*mat.Dense
	for i := range p + 1 {
		parts = append(parts, mat.DenseCopyOf(e.Slice(0, n, n+i*m, n+(i+1)*m)))
	}
	return mat.DenseCopyOf(e.Slice(0, n, 0, n)), parts
}
