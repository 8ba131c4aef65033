package exact

import (
	"math"
	"testing"
)

func TestJudgeByHand(t *testing.T) {
	q := LinearQuarterCar()
	times, f, v := []float64{0, 0.5, 1.5}, []float64{0, 2, 3}, []float64{1, 4, 5}
	a, err := q.Judge(A, times, f, v)
	if err != nil {
		t.Fatal(err)
	}
	b, err := q.Judge(B, times, f, v)
	if err != nil {
		t.Fatal(err)
	}
	residual := (1*2-0*4)*0.5 + (4*3-2*5)*1.0
	power := (2*4*0.5 + 3*5*1.0) / 1.5
	if a.Step != 0.75 || a.Power != power || a.Residual != residual || b.Residual != -residual || b.Power != power {
		t.Errorf("got %+v and %+v", a, b)
	}
	for name, bad := range map[string][3][]float64{
		"one point":       {{0}, {0}, {0}},
		"lengths":         {{0, 1}, {0}, {0, 0}},
		"start":           {{1, 2}, {0, 0}, {0, 0}},
		"decreasing time": {{0, 2, 1}, {0, 0, 0}, {0, 0, 0}},
		"NaN":             {{0, math.NaN()}, {0, 0}, {0, 0}},
	} {
		if m, err := q.Judge(A, bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%s: got %+v", name, m)
		}
	}
}
