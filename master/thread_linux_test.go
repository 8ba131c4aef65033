package master_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// threaded is a subsystem that records the threads of its calls.
type threaded struct {
	*kept
	by map[int][]string // thread to calls
}

func (s *threaded) called(what string) {
	if id := syscall.Gettid(); !slices.Contains(s.by[id], what) {
		s.by[id] = append(s.by[id], what)
	}
}

func (s *threaded) SetInputs(u []float64) error { s.called("SetInputs"); return s.kept.SetInputs(u) }
func (s *threaded) Outputs(y []float64) error   { s.called("Outputs"); return s.kept.Outputs(y) }
func (s *threaded) EvalInit() error             { s.called("EvalInit"); return s.kept.EvalInit() }
func (s *threaded) ExitInit() error             { s.called("ExitInit"); return s.kept.ExitInit() }
func (s *threaded) Terminate() error            { s.called("Terminate"); return s.kept.Terminate() }
func (s *threaded) Close() error                { s.called("Close"); return s.kept.Close() }
func (s *threaded) Archive(*master.Archive)     { s.called("Archive") }
func (s *threaded) Tunables() []master.Port     { return []master.Port{{Name: "p"}} }

func (s *threaded) Step(ctx context.Context, t, H float64) (float64, error) {
	s.called("Step")
	return s.kept.Step(ctx, t, H)
}

func (s *threaded) EnterInit(ctx context.Context, e master.Experiment) error {
	s.called("EnterInit")
	return s.kept.EnterInit(ctx, e)
}

func (s *threaded) SetDiscrete(v *master.Values) error {
	s.called("SetDiscrete")
	return s.kept.SetDiscrete(v)
}

func (s *threaded) Discrete(v *master.Values) error {
	s.called("Discrete")
	return s.kept.Discrete(v)
}

func (s *threaded) Watched(v *master.Values) error {
	s.called("Watched")
	return s.kept.Watched(v)
}

func (s *threaded) SaveState(reuse master.State) (master.State, error) {
	s.called("SaveState")
	return s.kept.SaveState(reuse)
}

func (s *threaded) RestoreState(state master.State) error {
	s.called("RestoreState")
	return s.kept.RestoreState(state)
}

func (s *threaded) FreeState(state master.State) error {
	s.called("FreeState")
	return s.kept.FreeState(state)
}

func (s *threaded) SerializeState(state master.State) ([]byte, error) {
	s.called("SerializeState")
	return s.kept.SerializeState(state)
}

func (s *threaded) DeserializeState(data []byte) (master.State, error) {
	s.called("DeserializeState")
	return s.kept.DeserializeState(data)
}

func (s *threaded) VerifyRollback(ctx context.Context, e master.Experiment, H float64) (master.Replay, error) {
	s.called("VerifyRollback")
	return s.kept.VerifyRollback(ctx, e, H)
}

func (s *threaded) SetTunable(int, master.Scalar) error { s.called("SetTunable"); return nil }

// tuner sets a parameter at each point.
type tuner struct{ meddler }

func (*tuner) At(r *master.Run) error {
	for _, name := range []string{"one.p", "two.p"} {
		v, err := r.Variable(name)
		if err == nil {
			err = v.Set(real(r.Time()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Every call of a subsystem, from its instantiation to its end, comes from one thread, however many there are and
// whoever has chosen their number: also if they do not pay, as with these subsystems, which claim to be expensive.
func TestOneThread(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	for _, algorithm := range []string{"explicit", "gauss-seidel", "implicit", "ex-slocal", "im-slocal", "predictor-corrector"} {
		for _, workers := range []int{0, 1, 2, 3} {
			var checkpoint []byte
			for range 2 { // from the start, and resumed
				_, keepers := talkers(t)
				var subs []master.Subsystem
				var all []*threaded
				for _, k := range keepers {
					s := &threaded{k, map[int][]string{}}
					all, subs = append(all, s), append(subs, &priced{Subsystem: s, cost: 1})
				}
				var made []master.Checkpoint
				o := master.Options{Stop: 1, Step: 0.01, Workers: workers, Hooks: []master.Hook{&tuner{}}, Resume: checkpoint,
					Checkpoints: checkpointsTo(&made, 0.4)}
				params := map[string]string{}
				if algorithm == "ex-slocal" || algorithm == "im-slocal" {
					params["control.step"] = "fixed"
				}
				r, err := master.NewRun(system(t, subs, talking()...), preset(t, algorithm, params), o)
				must(t, err)
				result := run(t, r)
				want := map[int]int{0: 2, 1: 1, 2: 2, 3: 2}[workers]
				if algorithm == "gauss-seidel" && workers == 0 {
					want = 1
				}
				threads := map[int]bool{}
				for _, s := range all {
					for id := range s.by {
						threads[id] = true
					}
					if len(s.by) != 1 {
						t.Errorf("%s, %d workers: %s was called from %d threads: %v", algorithm, workers, s.info.Name, len(s.by), s.by)
					}
				}
				if result.Workers != want || len(threads) != want {
					t.Errorf("%s, %d workers: %d were used, on %d threads", algorithm, workers, result.Workers, len(threads))
				}
				checkpoint = made[0].State
			}
		}
	}
}

// The calls that TestOneThread watches are those that a run makes.
func TestOneThreadWatches(t *testing.T) {
	_, keepers := talkers(t)
	var subs []master.Subsystem
	by := map[int][]string{}
	for _, k := range keepers {
		subs = append(subs, &threaded{k, by})
	}
	run(t, made(t, system(t, subs, talking()...), preset(t, "implicit", nil), master.Options{Stop: 0.1, Step: 0.01, Hooks: []master.Hook{&tuner{}},
		Checkpoints: &master.Checkpoints{Every: 0.05, Write: func(master.Checkpoint) error { return nil }}}))
	for _, calls := range by {
		slices.Sort(calls)
		if want := "[Archive Close DeserializeState Discrete EnterInit EvalInit ExitInit FreeState Outputs RestoreState SaveState " +
			"SerializeState SetDiscrete SetInputs SetTunable Step Terminate VerifyRollback Watched]"; fmt.Sprint(calls) != want {
			t.Errorf("%v", calls)
		}
	}
}
