package study

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

const (
	cmaSigma  = 0.5  // initial step; the range of a factor is π wide
	cmaSpread = 1e-7 // standard deviation along the longest axis of a search that has converged
)

// cmaes searches by the covariance matrix adaptation evolution strategy. The runs of a generation are made side by side; the points
// do not depend on how many are.
//
// Source: Hansen, The CMA evolution strategy: a tutorial (arXiv 1604.00772), with its default parameters and without negative weights.
// gonum's CmaEsChol samples without the step size σ, and hardly converges.
func (s *search) cmaes(start []float64) (ended string) {
	n := len(start)
	dim := float64(n)
	population := 4 + int(3*math.Log(dim))
	weights, sum, squares := make([]float64, population/2), 0.0, 0.0
	for i := range weights {
		weights[i] = math.Log(float64(population+1)/2) - math.Log(float64(i+1))
		sum += weights[i]
	}
	for i := range weights {
		weights[i] /= sum
		squares += weights[i] * weights[i]
	}
	mu := 1 / squares
	cs := (mu + 2) / (dim + mu + 5)
	damping := 1 + 2*max(0, math.Sqrt((mu-1)/(dim+1))-1) + cs
	cc := (4 + mu/dim) / (dim + 4 + 2*mu/dim)
	c1 := 2 / ((dim+1.3)*(dim+1.3) + mu)
	cmu := min(1-c1, 2*(mu-2+1/mu)/((dim+2)*(dim+2)+mu))
	length := math.Sqrt(dim) * (1 - 1/(4*dim) + 1/(21*dim*dim)) // of a normal vector, expected

	random := rand.New(rand.NewPCG(s.study.Plan.Optimise.Seed, seedStream))
	mean, sigma := slices.Clone(start), cmaSigma
	ps, pc := make([]float64, n), make([]float64, n)
	c := mat.NewSymDense(n, nil)
	for i := range n {
		c.SetSym(i, i, 1)
	}
	var best []float64 // of each generation
	recent := 10 + 30*n/population
	for generation := 1; ; generation++ {
		var eigen mat.EigenSym
		if !eigen.Factorize(c, true) {
			return "its covariance is not finite"
		}
		axes := eigen.Values(nil)
		for i := range axes {
			axes[i] = math.Sqrt(max(axes[i], 0))
		}
		var basis mat.Dense
		eigen.VectorsTo(&basis)
		if sigma*slices.Max(axes) < cmaSpread {
			return ending(optimize.StepConvergence)
		}

		steps, points := make([][]float64, population), make([][]float64, population) // y and x = mean + σ y
		for k := range points {
			z := make([]float64, n)
			for i := range z {
				z[i] = axes[i] * random.NormFloat64()
			}
			steps[k], points[k] = times(&basis, z, false), make([]float64, n)
			for i, y := range steps[k] {
				points[k][i] = mean[i] + sigma*y
			}
		}
		goals := s.evaluate(points...)
		order := make([]int, population)
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(goals[a], goals[b]) })
		if status, _ := s.status(); status != optimize.NotTerminated {
			return ending(status)
		}
		if s.runs+population > s.study.Plan.Optimise.Evaluations {
			return ending(optimize.FunctionEvaluationLimit)
		}
		best = append(best, goals[order[0]])
		if len(best) > recent {
			last := best[len(best)-recent:]
			low, high := slices.Min(last), max(slices.Max(last), goals[order[population-1]])
			if high-low <= 1e-14+1e-7*math.Abs(low) {
				return ending(optimize.FunctionConvergence)
			}
		}

		move := make([]float64, n) // Σ w y of the best
		for k, w := range weights {
			for i, y := range steps[order[k]] {
				move[i] += w * y
			}
		}
		white := times(&basis, move, true) // C^(−1/2) Σ w y
		for i := range white {
			if axes[i] > 0 {
				white[i] /= axes[i]
			}
		}
		white = times(&basis, white, false)
		norm := 0.0
		for i := range n {
			mean[i] += sigma * move[i]
			ps[i] = (1-cs)*ps[i] + math.Sqrt(cs*(2-cs)*mu)*white[i]
			norm += ps[i] * ps[i]
		}
		norm = math.Sqrt(norm)
		short := 0.0 // 1 unless ps is long
		if norm/math.Sqrt(1-math.Pow(1-cs, 2*float64(generation))) < (1.4+2/(dim+1))*length {
			short = 1
		}
		for i := range n {
			pc[i] = (1-cc)*pc[i] + short*math.Sqrt(cc*(2-cc)*mu)*move[i]
		}
		for i := range n {
			for j := i; j < n; j++ {
				rank := 0.0
				for k, w := range weights {
					rank += w * steps[order[k]][i] * steps[order[k]][j]
				}
				c.SetSym(i, j, (1-c1-cmu+(1-short)*c1*cc*(2-cc))*c.At(i, j)+c1*pc[i]*pc[j]+cmu*rank)
			}
		}
		sigma *= math.Exp(cs / damping * (norm/length - 1))
	}
}

// times returns B v, or Bᵀ v.
func times(b *mat.Dense, v []float64, transposed bool) []float64 {
	out := mat.NewVecDense(len(v), nil)
	var m mat.Matrix = b
	if transposed {
		m = b.T()
	}
	out.MulVec(m, mat.NewVecDense(len(v), v))
	return out.RawVector().Data
}
