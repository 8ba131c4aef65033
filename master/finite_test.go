package master_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// meter is a subsystem whose outputs are the time, the time to a collision, infinite between 0.25 s and 0.65 s, and one that
// is NaN from 0.45 s on. It also has a variable that is NaN from 0.75 s on.
type meter struct {
	*kept
	now float64
}

func newMeter() *meter {
	m := &meter{kept: newKept("meter", 0, 3)}
	m.info.Watch = []master.Port{{Name: "w"}}
	m.step = func(t, H float64) (float64, error) { m.now = t + H; return t + H, nil }
	return m
}

// nanFrom returns v before a time, NaN after it.
func nanFrom(from, t, v float64) float64 {
	if t > from {
		return math.NaN()
	}
	return v
}

func meters(t float64) (y []float64, w float64) {
	ttc := 3 + t
	if t > 0.25 && t < 0.65 {
		ttc = math.Inf(1)
	}
	return []float64{t, ttc, nanFrom(0.45, t, -2)}, nanFrom(0.75, t, 1)
}

func (m *meter) Outputs(y []float64) error {
	own, _ := meters(m.now)
	copy(y, own)
	return nil
}

func (m *meter) Watched(v *master.Values) error {
	_, v.Real[0] = meters(m.now)
	return nil
}

func (m *meter) SerializeState(master.State) ([]byte, error) { return json.Marshal(m.now) }

func (m *meter) DeserializeState(data []byte) (master.State, error) {
	return &savedState{y: make([]float64, 3)}, json.Unmarshal(data, &m.now)
}

// A value that is not finite and feeds nothing is recorded, and a warning says so when it begins, and at the end. Run and
// variables return it, too. A strict run does not accept NaN.
func TestValuesThatAreNotFinite(t *testing.T) {
	same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
	seen := 0
	look := &hook{at: func(r *master.Run) error {
		want, _ := meters(r.Time())
		v, err := r.Variable("meter.y2")
		if err != nil {
			return err
		}
		is, err := v.Value()
		real, err2 := r.Real("meter.y2")
		if seen++; err != nil || err2 != nil || !same(is.Real, want[1]) || !same(real, want[1]) {
			t.Errorf("at t = %g s the value is %g and %g, want %g; %v, %v", r.Time(), is.Real, real, want[1], err, err2)
		}
		return nil
	}}
	for _, strict := range []bool{false, true} {
		memory := &mastertest.Memory{}
		o := master.Options{Stop: 1, Step: 0.1, Recorders: []master.Recorder{memory}, Hooks: []master.Hook{look}, Strict: strict}
		result, err := newRun(t, system(t, []master.Subsystem{newMeter(), newFake("other", 1, 1)}, wire("meter.y1", "other.u1")), o).Run(t.Context())
		for n, at := range memory.T {
			want, _ := meters(at)
			if got := memory.Y[n]; !slices.EqualFunc(got[1:3], want[1:], same) {
				t.Errorf("recorded %v at t = %g s, want %v", got, at, want)
			}
		}
		const infinite = "meter: meter.y2 is infinite at t = 0.3 s and feeds no input, so the run continues"
		want := []string{infinite,
			"meter: meter.y3 is NaN at t = 0.5 s and feeds no input, so the run continues; check the model of this component",
			"meter: meter.y2 is infinite at 4 of 11 communication points, the last at t = 0.6 s",
			"meter: meter.y3 is NaN at 6 of 11 communication points, the last at t = 1 s"}
		if strict {
			contains(t, "strict", err, "meter: meter.y3 is NaN at t = 0.5 s: a strict run accepts no NaN")
			want = []string{infinite, "meter: meter.y2 is infinite at 3 of 6 communication points, the last at t = 0.5 s"}
			if result.Status != master.Failed || len(memory.T) != 5 {
				t.Errorf("strict: %s with %d rows", result.Status, len(memory.T))
			}
		} else if err != nil || result.Status != master.Complete || len(memory.T) != 11 || result.Diverged || result.Growing != nil {
			t.Errorf("%v, %+v", err, result)
		}
		if !slices.Equal(result.Warnings, want) {
			t.Errorf("strict %t: the warnings are\n%s\nwant\n%s", strict, strings.Join(result.Warnings, "\n"), strings.Join(want, "\n"))
		}
	}
	if seen < 16 {
		t.Errorf("the hook was called %d times", seen)
	}
}

// A run with such values that is resumed equals the whole run, with its warnings.
func TestResumeNotFinite(t *testing.T) {
	resumes(t, []float64{0.1, 0.3}, func(t testing.TB) *master.System {
		return system(t, []master.Subsystem{newMeter()})
	}, func() []master.Hook { return nil })
}

// An output that is not finite and feeds an input ends the run, however it is taken there, and its name is in the message.
func TestConnectedNotFinite(t *testing.T) {
	for name, of := range map[string]struct {
		output string
		gain   float64
		late   bool
		want   string
	}{
		"infinite":           {"meter.y2", 1, false, "meter: the output meter.y2, which feeds other.u1, is infinite at t = 0.3 s: the subsystem has failed"},
		"by a factor of 0":   {"meter.y2", 0, false, "meter: the output meter.y2, which feeds other.u1, is infinite at t = 0.3 s"},
		"NaN":                {"meter.y3", 1, false, "meter: the output meter.y3, which feeds other.u1, is NaN at t = 0.5 s"},
		"without memory":     {"meter.y3", 2, true, "meter: the output meter.y3, which feeds other.u1, is NaN in the step from t = 0.4 s"},
		"infinite, likewise": {"meter.y2", 2, true, "meter: the output meter.y2, which feeds other.u1, is infinite in the step from t = 0.2 s"},
	} {
		other := newFake("other", 1, 1).depends()
		other.info.Stateless = of.late
		c := wire(of.output, "other.u1")
		c.Linear = &master.Linear{Gain: of.gain}
		_, err := newRun(t, system(t, []master.Subsystem{newMeter(), other}, c), master.Options{Stop: 1, Step: 0.1}).Run(t.Context())
		contains(t, name, err, of.want, "limit it in the model or remove the connection")
	}
}
