package algorithms

import "gonum.org/v1/gonum/mat"
import "math"

type sparseMatrix struct {
	n             int
	colStart, row []int
	val           []float64
}
type interfaceSolver interface {
	init(pattern *sparseMatrix)
	begin(H float64, degree int)
	needsJacobian() bool
	takeJacobian(j *sparseMatrix) error
	correct(z, r, dz []float64) error
	contraction(theta float64) bool
	accept()
	reject()
}
type newton struct {
	lu   mat.LU
	have bool
	H    float64
	deg  int
	n    int
}

func (s *newton) init(p *sparseMatrix) { s.n = p.n }
func (s *newton) begin(H float64, d int) {
	if H != s.H || d != s.deg {
		s.have = false
	}
	s.H, s.deg = H, d
}
func (s *newton) needsJacobian() bool { return !s.have }
func (s *newton) takeJacobian(j *sparseMatrix) error {
	a := mat.NewDense(s.n, s.n, nil)
	for c := 0; c < s.n; c++ {
		for q := j.colStart[c]; q < j.colStart[c+1]; q++ {
			a.Set(j.row[q], c, j.val[q])
		}
	}
	s.lu.Factorize(a)
	s.have = true
	return nil
}
func (s *newton) correct(z, r, dz []float64) error {
	b := mat.NewVecDense(s.n, nil)
	for i := range r {
		b.SetVec(i, -r[i])
	}
	x := mat.NewVecDense(s.n, nil)
	s.lu.SolveVecTo(x, false, b)
	for i := range dz {
		dz[i] = x.AtVec(i)
	}
	return nil
}
func (s *newton) contraction(th float64) bool {
	if th > .1 {
		s.have = false
	}
	return th > 10
}
func (s *newton) accept() {}
func (s *newton) reject() {}

type broyden struct{ newton }
type iqn struct {
	newton
	relaxation float64
}
type fixedPoint struct {
	newton
	relaxation float64
}
type history struct {
	times  []float64
	values [][]float64
}
type errorNorms struct{ pos, vel, u float64 }
type stepControl struct{}
type controlConfig struct {
	Safety, RatioMin, RatioMax, HMin, HMax, H0 float64
	MaxOrder                                   int
	FixedOrder, FixedStep                      bool
	Order                                      int
}

func newStepControl(c controlConfig) *stepControl { return nil }
func (s *stepControl) start() (float64, int)      { return 0, 0 }
func (s *stepControl) passes(e errorNorms) bool   { return true }

type attemptOutcome struct {
	t, H   float64
	order  int
	norms  errorNorms
	result outcome
}
type outcome uint8

const (
	stepAccepted outcome = iota
	stepUnjudged
	errorTooLarge
	notConverged
	discarded
)

type decision struct {
	order int
	H     float64
}

func (s *stepControl) conclude(o attemptOutcome, h history, e []int, w, sc []float64) (decision, error) {
	return decision{o.order, o.H}, nil
}
func wrms(e, w []float64) float64 { return math.NaN() }
func errorConstants(j int, H float64, times []float64) (float64, float64) {
	p := []float64{1}
	for i := 0; i < j; i++ {
		a := (times[0] - times[i]) / H
		q := make([]float64, len(p)+1)
		for m, c := range p {
			q[m+1] += c / (1 + a)
			q[m] += c * a / (1 + a)
		}
		p = q
	}
	pos, vel := 0.0, 0.0
	for m, c := range p {
		vel += c / float64(m+1)
		pos += c / float64((m+1)*(m+2))
	}
	return pos, vel
}
