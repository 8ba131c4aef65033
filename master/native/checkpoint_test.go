package native_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/native"
)

// everyKind is a state of values of every kind.
type everyKind struct {
	x     float64
	small float32
	n     int8
	bits  uint64
	on    bool
	name  string
	z     complex128
	last  [3]struct{ v float64 }
}

func plain() master.Subsystem {
	return native.New(native.Model[everyKind]{Name: "plain", Inputs: []string{"u"}, Outputs: []string{"y"}, Start: everyKind{x: 1, name: "a"},
		Step: func(s *everyKind, t, H float64, u []float64) error {
			s.last[0], s.last[1], s.last[2] = s.last[1], s.last[2], struct{ v float64 }{s.x}
			s.x += H * (u[0] - s.x + s.last[0].v + real(s.z) + float64(s.small) + float64(len(s.name)))
			s.small, s.n, s.bits, s.on = float32(s.x)/3, s.n+7, s.bits*5+1, !s.on
			s.z = complex(float64(s.n)*1e-3, float64(s.bits%11))
			if s.on {
				s.name = fmt.Sprintf("%.3s", s.name+"b")
			}
			return nil
		},
		Output: func(s *everyKind, y []float64) {
			y[0] = s.x + imag(s.z)*1e-3
			if s.on {
				y[0] += 0.01
			}
		}})
}

// queue is a model whose state refers to others; whole tells whether all of it is archived.
func queue(archive func(s *[]float64, a *master.Archive)) master.Subsystem {
	return native.New(native.Model[[]float64]{Name: "queue", Inputs: []string{"u"}, Outputs: []string{"y"}, Start: []float64{1},
		Step: func(s *[]float64, _, _ float64, u []float64) error {
			if *s = append(*s, u[0]); len(*s) > 5 {
				*s = append([]float64{}, (*s)[1:]...)
			}
			return nil
		},
		Output:  func(s *[]float64, y []float64) { y[0] = (*s)[0] + float64(len(*s)) },
		Clone:   func(s []float64) []float64 { return append([]float64(nil), s...) },
		Archive: archive})
}

func whole(s *[]float64, a *master.Archive) { a.All(s) }

// mine is a subsystem of four methods that offers its state by one more.
type mine struct {
	info master.Info
	u, y float64
}

func newMine() *mine {
	return &mine{info: master.Info{Name: "mine", In: []master.Port{{Name: "u"}}, Out: []master.Port{{Name: "y"}}, Caps: master.Caps{SerializeState: true}}}
}

func (m *mine) Info() *master.Info          { return &m.info }
func (m *mine) SetInputs(u []float64) error { m.u = u[0]; return nil }
func (m *mine) Step(_ context.Context, t, H float64) (float64, error) {
	m.y += H * (m.u - m.y)
	return t + H, nil
}
func (m *mine) Outputs(y []float64) error { y[0] = m.y; return nil }
func (m *mine) Archive(a *master.Archive) { a.All(&m.u, &m.y) }

// ring couples subsystems, each to the next.
func ring(t *testing.T, subs ...master.Subsystem) *master.System {
	t.Helper()
	var connections []master.Connection
	for i, s := range subs {
		from, to := s.Info(), subs[(i+1)%len(subs)].Info()
		connections = append(connections, master.Connect(from.Name+"."+from.Out[0].Name, to.Name+"."+to.In[0].Name))
	}
	sys, err := master.NewSystem(subs, connections)
	must(t, err)
	return sys
}

// newRun makes a run of explicit coupling.
func newRun(t *testing.T, sys *master.System, o master.Options) (*master.Run, error) {
	t.Helper()
	c, err := algorithms.New("explicit", map[string]string{"order": "1"})
	must(t, err)
	return master.NewRun(sys, c.Algorithm, o)
}

// Systems of Go code go on from a checkpoint, regular or on demand, to the last bit.
func TestCheckpoints(t *testing.T) {
	fresh := func(o master.Options) (*master.Run, *mastertest.Memory) {
		t.Helper()
		m := &mastertest.Memory{}
		o.Step, o.Recorders = 0.01, []master.Recorder{m}
		r, err := newRun(t, ring(t, plain(), gain(), queue(whole), newMine()), o)
		must(t, err)
		return r, m
	}
	var made []master.Checkpoint
	keep := func(c master.Checkpoint) error { made = append(made, c); return nil }
	r, _ := fresh(master.Options{Stop: 0.2, Checkpoints: &master.Checkpoints{Every: 0.03, Write: keep}})
	err := r.Start(t.Context())
	for more := true; more && err == nil; {
		more, err = r.Step(t.Context())
	}
	must(t, err)
	last, err := r.Checkpoint()
	must(t, errors.Join(err, keep(last)))
	_, err = r.Close()
	if must(t, err); len(made) != 7 {
		t.Errorf("%d checkpoints", len(made))
	}
	r, want := fresh(master.Options{Stop: 0.4})
	_, err = r.Run(t.Context())
	must(t, err)
	for _, c := range made {
		r, rest := fresh(master.Options{Stop: 0.4, Resume: c.State})
		if _, err := r.Run(t.Context()); err != nil || !reflect.DeepEqual(rest.Y, want.Y[c.Steps+1:]) || !reflect.DeepEqual(rest.U, want.U[c.Steps+1:]) {
			t.Errorf("from %g: %v, other values", c.T, err)
		}
	}
}

// A subsystem that does not offer its state, or does not read what it wrote, is named with the remedy.
func TestNoCheckpoints(t *testing.T) {
	lopsided := func(s *[]float64, a *master.Archive) {
		if a.All(s); a.Reading() {
			a.All(&(*s)[0])
		}
	}
	for _, c := range []struct {
		archive func(*[]float64, *master.Archive)
		says    []string
	}{
		{nil, []string{"queue does not offer its state", "native.Model has the field Archive"}},
		{lopsided, []string{"queue: its method Archive cannot read back what it wrote"}},
	} {
		r, err := newRun(t, ring(t, gain(), queue(c.archive)), master.Options{Stop: 1, Step: 0.1, Checkpoints: &master.Checkpoints{}})
		if errors.Is(err, master.ErrCapability) != (c.archive == nil) {
			t.Error(err)
		}
		if err == nil {
			_, err = r.Run(t.Context())
		}
		for _, text := range c.says {
			if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "FMU") {
				t.Errorf("%v, want … %s", err, text)
			}
		}
	}
}

// The conformance test finds a state that is not archived as a whole.
func TestArchiveConformance(t *testing.T) {
	for name, test := range map[string]struct {
		fresh func() master.Subsystem
		says  string
	}{
		"plain": {plain, ""}, "queue": {func() master.Subsystem { return queue(whole) }, ""}, "mine": {func() master.Subsystem { return newMine() }, ""},
		"a part": {func() master.Subsystem { return queue(func(s *[]float64, a *master.Archive) { a.All(&(*s)[0]) }) }, "a part of the state is not in it"},
	} {
		err := mastertest.TestSubsystem(func() (master.Subsystem, error) { return test.fresh(), nil }, []float64{0.5}, 0, 0.01)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
