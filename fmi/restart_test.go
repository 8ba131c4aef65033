package fmi

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
)

// mortal starts processes that kill ends.
type mortal struct {
	directLauncher
	launched int
	link     *mortalLink // the last one
	dying    int         // of the processes from now on, so many end in each of their calls
}

type mortalLink struct {
	*direct
	dead bool
}

func (m *mortal) Launch(to Launch) (Link, error) {
	m.launched++
	if m.dying > 0 {
		m.dying--
		m.link = &mortalLink{dead: true}
		return m.link, nil
	}
	_, err := m.directLauncher.Launch(to)
	m.link = &mortalLink{direct: m.last}
	return m.link, err
}

func (l *mortalLink) Post(request []byte, most uint64) error {
	if l.dead {
		return &Ended{Reason: "killed"}
	}
	return l.direct.Post(request, most)
}

func (l *mortalLink) Close() error {
	if l.direct == nil {
		return nil
	}
	return l.direct.Close()
}

// kill ends the last process in its next call.
func (m *mortal) kill() { m.link.dead = true }

// stepping returns an initialised instance, and a stepper whose output
// is a state that its input drives.
func stepping(t *testing.T, o InstanceOptions) (*Instance, *Stepper) {
	t.Helper()
	in := instance(t, plainFMU(t), "x", o)
	start(t, in)
	return in, stepper(t, in, StepPlan{RealIn: []description.ValueReference{0}, RealOut: []description.ValueReference{1, 2}})
}

// Restarts do not change the results of steps, substeps, and saved and serialised states.
func TestRestartIsTheSame(t *testing.T) {
	course := func(in *Instance, s *Stepper, may func()) (out []float64) {
		var state *FMUState
		for i := range 5 {
			may()
			if in.remote != nil {
				must(t, in.Keep())
			}
			at := float64(i)
			var err error
			state, err = in.GetFMUState(state)
			must(t, err)
			may()
			for range 2 {
				must(t, in.SetFMUState(state))
				s.RealIn[0] = at
				_, err = s.Step(at, 0.5, false)
				must(t, err)
				may()
				s.RealIn[0] = at + 2
				_, err = s.Step(at+0.5, 0.5, true)
				must(t, err)
				out = append(out, s.RealOut...)
			}
			may()
			bytes, err := in.SerializeFMUState(state, nil)
			must(t, err)
			may()
			again, err := in.DeserializeFMUState(bytes)
			must(t, err)
			may()
			must(t, in.FreeFMUState(again))
			may()
			must(t, s.Read())
			out = append(out, s.RealOut...)
		}
		return out
	}
	in, s := stepping(t, InstanceOptions{})
	want := course(in, s, func() {})
	for step := range 8 {
		m := &mortal{}
		said := 0
		in, s := stepping(t, InstanceOptions{Launcher: m, Restarts: 50, Log: func(m LogMessage) {
			if strings.Contains(m.Text, "its process ended in") {
				said++
			}
		}})
		must(t, in.Keep())
		n := 0
		got := course(in, s, func() {
			if n++; n%(step+2) == 0 {
				m.kill()
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("killed every %d times: %v, want %v", step+2, got, want)
		}
		if r := in.Restarts(); len(r) < 3 || len(r) != said || m.launched != 1+len(r) {
			t.Errorf("%d restarts, %d said, %d processes", len(r), said, m.launched)
		}
	}
}

// A restart loses states from before the last Keep. Setting one is an error; they can be
// overwritten and freed. After setting one before a restart there is no restart.
func TestRestartLosesStates(t *testing.T) {
	m := &mortal{}
	in, s := stepping(t, InstanceOptions{Launcher: m, Restarts: 5})
	step := func(at float64) error { _, err := s.Step(at, 1, true); return err }
	old, err := in.GetFMUState(nil)
	other, err2 := in.GetFMUState(nil)
	must(t, errors.Join(err, err2, in.Keep()))
	m.kill()
	must(t, step(0))
	if err := in.SetFMUState(old); err == nil || !strings.Contains(err.Error(), "lost with the process") {
		t.Errorf("a lost state: %v", err)
	}
	if old, err = in.GetFMUState(old); err != nil || in.SetFMUState(old) != nil || in.FreeFMUState(other) != nil {
		t.Errorf("overwriting and freeing lost states: %v", err)
	}
	must(t, errors.Join(in.Keep(), in.SetFMUState(old)))
	m.kill()
	var lost *ProcessError
	if err := step(1); !errors.As(err, &lost) || len(in.Restarts()) != 1 {
		t.Errorf("after going back behind what was kept: %v, restarts %v", err, in.Restarts())
	}
}

// The number of restarts is limited, also if new processes end at once. There is no restart
// before the first Keep and after Reset.
func TestRestartEnds(t *testing.T) {
	var lost *ProcessError
	m := &mortal{}
	in, s := stepping(t, InstanceOptions{Launcher: m, Restarts: 3})
	must(t, in.Keep())
	m.dying = 2
	m.kill()
	if _, err := s.Step(0, 1, true); err != nil || len(in.Restarts()) != 3 {
		t.Errorf("%v, restarts %v", err, in.Restarts())
	}
	m.kill()
	if _, err := s.Step(1, 1, true); !errors.As(err, &lost) || lost.Func != "fmi2SetReal, fmi2DoStep or fmi2GetReal" || !strings.Contains(err.Error(), "replaced 3 times") {
		t.Errorf("%v", err)
	}
	for name, prepare := range map[string]func(*Instance) error{
		"before Keep": func(in *Instance) error { return nil },
		"after Reset": func(in *Instance) error { return errors.Join(in.Keep(), in.Reset()) },
	} {
		m := &mortal{}
		in, _ := stepping(t, InstanceOptions{Launcher: m, Restarts: 3})
		must(t, prepare(in))
		m.kill()
		if err := in.SetReal([]description.ValueReference{0}, []float64{1}); !errors.As(err, &lost) || len(in.Restarts()) != 0 {
			t.Errorf("%s: %v, restarts %v", name, err, in.Restarts())
		}
	}
	in, _ = stepping(t, InstanceOptions{Launcher: &mortal{}})
	if err := in.Keep(); err == nil {
		t.Error("Keep without restarts")
	}
}

// If the unpacked FMU has been removed, the only restart fails with the cause.
func TestRestartWithoutFolder(t *testing.T) {
	m := &mortal{}
	in, s := stepping(t, InstanceOptions{Launcher: m, Restarts: 10})
	must(t, in.Keep())
	place := &in.fmu.place
	defer func(was string) { place.Path = was }(place.Path)
	place.Path += ".gone"
	m.kill()
	_, err := s.Step(0, 0.1, true)
	if err == nil || !strings.Contains(err.Error(), "the unpacked FMU has been deleted") || !strings.Contains(err.Error(), place.Path) {
		t.Errorf("error %v", err)
	}
	if n := len(in.Restarts()); n != 1 || m.launched != 1 {
		t.Errorf("%d restarts, %d processes", n, m.launched)
	}
}
