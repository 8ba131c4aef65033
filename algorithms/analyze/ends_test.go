package analyze

import (
	"math"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
	"github.com/macrostep/macrostep/algorithms/analyze/twin"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/test/long"
)

// powered gives, as its second output, a function of the first that is not linear.
type powered struct{ *mastertest.Linear }

func (s powered) Outputs(y []float64) error {
	err := s.Linear.Outputs(y)
	y[1] = y[0] + 0.3*y[0]*y[0]
	return err
}

// driven is an oscillator without inputs that drives another one, close to resonance, whose
// outputs feed nobody.
func driven(t *testing.T, rate float64, wrap func(*mastertest.Linear) master.Subsystem) *master.System {
	t.Helper()
	from := mastertest.NewLinear("from", mastertest.Matrices{A: [][]float64{{0, 1}, {-100, 2 * rate}}, B: [][]float64{{}, {}}, C: [][]float64{{1, 0}}}, []float64{0, 10})
	to := mastertest.NewLinear("to", mastertest.Matrices{A: [][]float64{{0, 1}, {-90, -0.2}}, B: [][]float64{{0}, {90}}, C: [][]float64{{1, 0}, {0, 1}}}, []float64{0, 0})
	return analyzetest.System(t, []master.Subsystem{from, wrap(to)}, "from.y1 -> to.u1")
}

// explicitly is the preset.
const explicitly = "explicit"

func plain(s *mastertest.Linear) master.Subsystem { return s }

// course runs a system, and gives its outputs every so many steps.
func course(t *testing.T, sys *master.System, preset string, order int, H, stop float64, every int) (out [][]float64) {
	t.Helper()
	s := &twin.Scheme{Preset: preset, Order: order}
	alg, err := s.Algorithm()
	if err != nil {
		t.Fatal(err)
	}
	run, err := master.NewRun(sys, alg, master.Options{Stop: stop, Step: H})
	if err != nil {
		t.Fatal(err)
	}
	err = run.Start(t.Context())
	for n, more := 0, true; err == nil; n++ {
		if n%every == 0 {
			out = append(out, append([]float64(nil), run.Point().Y...))
		}
		if !more {
			break
		}
		more, err = run.Step(t.Context())
	}
	if _, closed := run.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	return out
}

// The error is that of the output where it is largest, which may feed nobody: a real run has it.
func testErrorOfOutputsThatFeedNobody(t *testing.T) {
	const stop, H, finer = 10, 0.02, 100
	r, err := Run(t.Context(), driven(t, -0.15, plain), Options{Step: H, Stop: stop, Order: 2, Error: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	fine := course(t, driven(t, -0.15, plain), explicitly, 2, H/finer, stop, finer)
	looked := 0
	for _, s := range r.Strategies {
		for _, f := range s.Forecasts {
			if s.Preset != explicitly || f.Step != H {
				continue
			}
			looked++
			y := course(t, driven(t, -0.15, plain), s.Preset, s.Order, H, stop, 1)
			want := 0.0
			for o := range y[0] {
				off, mean, square := 0.0, 0.0, 0.0
				for n := range fine {
					off += (y[n][o] - fine[n][o]) * (y[n][o] - fine[n][o])
					mean += fine[n][o] / float64(len(fine))
				}
				for n := range fine {
					square += (fine[n][o] - mean) * (fine[n][o] - mean)
				}
				want = max(want, math.Sqrt(off/square))
			}
			if !(math.Abs(f.Error-want) <= 0.05*want) || !strings.HasPrefix(f.Of, "to.") {
				t.Errorf("order %d: off by %.4g of %s, a run by %.4g", s.Order, f.Error, f.Of, want)
			}
		}
	}
	if looked != 3 || r.Promised == nil || r.Promised.Error > 0.01 {
		t.Errorf("%d looked at, promised %+v", looked, r.Promised)
	}
}

// One that is not linear and feeds nobody does not keep the others from being told.
func TestErrorBesidesPowers(t *testing.T) {
	sys := driven(t, -0.15, func(s *mastertest.Linear) master.Subsystem { return powered{s} })
	r, err := Run(t.Context(), sys, Options{Step: 0.02, Stop: 10, Order: 1, Error: 0.01})
	if err != nil {
		t.Fatal(err)
	}
	if r.Large != "" || r.Promised == nil || r.Promised.Of != "to.y1" || !strings.Contains(strings.Join(r.Notes, "\n"), "to.y2") {
		t.Errorf("%q, %q, promised %+v, %q; %q", r.Large, r.WhyNoError, r.Promised, r.Notes, r.Strategies[0].Why)
	}
}

// The motion of a component that nothing feeds is part of the radius, whatever the strategy.
func TestFreeMotion(t *testing.T) {
	const H = 0.02
	for rate, want := range map[float64]float64{-0.15: math.Exp(-0.1 * H), -0.05: math.Exp(-0.05 * H), 0: 1, 0.3: math.Exp(0.3 * H)} {
		if rate != 0 && rate != 0.3 && !long.On {
			continue
		}
		r, err := Run(t.Context(), driven(t, rate, plain), Options{Step: H, Stop: 5, From: H / 2, To: 2 * H, Order: 1, Error: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Strategies {
			if math.Abs(s.Now-want) > 1e-5 || s.Lasts != (rate == 0) || s.Lasts && math.Abs(s.Besides-math.Exp(-0.1*H)) > 1e-5 {
				t.Errorf("%g: %s of order %d: radius %.8f, want %.8f; lasts %t besides %.8f", rate, s.Preset, s.Order, s.Now, want, s.Lasts, s.Besides)
			}
			if grows := rate > 0; (len(s.Stable) == 0) != grows || rate > -0.1 && rate != 0 && s.Mode.Outputs[0].Share == 0 {
				t.Errorf("%g: %s of order %d: stable %v, %v", rate, s.Preset, s.Order, s.Stable, s.Mode.Outputs)
			}
		}
		if r.Subsystems[0].States != 2 || (len(r.Alone) == 1) != (rate > 0) || (r.Whole != nil) != (rate > 0) {
			t.Errorf("%g: %d states, alone %v, whole %v", rate, r.Subsystems[0].States, r.Alone, r.Whole)
		}
	}
}
