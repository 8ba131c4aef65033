package algorithms

import "math"

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
