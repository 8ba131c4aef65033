package test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/oracle"
)

// loopInputs gives the number of inputs of each component of a decomposition
// that lie on loops.
var loopInputs = map[string]map[string]int{
	"ff": {"mass1": 1, "mass2": 1, "coupling": 4},
	"fd": {"mass1": 1, "mass2": 2, "coupling": 4},
	"dd": {"mass1": 2, "mass2": 2},
}

// judgeCost holds what a run without rejected steps has done against the cost
// model: one saved state per macro step and component; one evaluation for the
// predictor, one for each corrector and, where Jacobians come from differences,
// one for each of them and each loop input of the component; the state restored
// before each evaluation.
func judgeCost(t *testing.T, out *outcome, decomposition string, steps int, differences bool) {
	t.Helper()
	m := out.manifest
	if m.Steps.Accepted != steps || m.Steps.Rejected != 0 {
		t.Errorf("%d steps accepted, %d rejected, want %d and 0", m.Steps.Accepted, m.Steps.Rejected, steps)
	}
	inputs := loopInputs[decomposition]
	if len(m.FMUSteps) != len(inputs) {
		t.Errorf("steps of the components %v, there are %d", m.FMUSteps, len(inputs))
	}
	for component, n := range inputs {
		evaluations := steps + m.Iterations
		if differences {
			evaluations += m.Jacobians * n
		}
		if a, b, c := m.FMUSteps[component], m.FMURestores[component], m.FMUSaves[component]; a != evaluations || b != evaluations || c != steps {
			t.Errorf("%s: %d evaluations, %d restores and %d saves with %d correctors and %d Jacobians; want %d, %d and %d",
				component, a, b, c, m.Iterations, m.Jacobians, evaluations, evaluations, steps)
		}
	}
}

// The cost model holds for every solver of the interface equation, in the
// manifest and in the log of what the FMUs were really asked; states are freed.
func testSolverCost(t *testing.T) {
	take := long.Sample(4)
	const H, steps = 1e-3, 100
	for _, solver := range []string{"newton-fd", "newton-los", "broyden", "iqn", "fixed-point"} {
		for _, decomposition := range []string{"ff", "fd", "dd"} {
			if !take() {
				continue
			}
			t.Run(solver+"/"+decomposition, func(t *testing.T) {
				t.Parallel()
				s := oracle.Scheme{Decomposition: decomposition, Implicit: true, Order: 2}
				args := append(schemeArgs(t, uneven, s, H, steps), "--param", "solver.kind="+solver)
				differences := solver == "newton-fd" || solver == "broyden"
				quiet := complete(t, args...)
				judgeCost(t, quiet, decomposition, steps, differences)
				log := filepath.Join(t.TempDir(), "calls.log")
				out := complete(t, append(args, "--log-fmi-calls", log)...)
				judgeCost(t, out, decomposition, steps, differences)
				if a, b := out.manifest.Iterations, quiet.manifest.Iterations; a != b {
					t.Errorf("%d correctors with the log, %d without", a, b)
				}
				data := read(t, log)
				counts := map[string]int{}
				for line := range strings.Lines(string(data)) {
					if f := strings.Fields(line); len(f) > 2 {
						counts[f[1]+" "+f[2]]++
					}
				}
				for component := range loopInputs[decomposition] {
					n := out.manifest.FMUSteps[component]
					for call, want := range map[string]int{"fmi2DoStep": n, "fmi2SetFMUstate": n, "fmi2GetFMUstate": steps, "fmi2FreeFMUstate": 1} {
						if got := counts[component+" "+call]; got != want {
							t.Errorf("%s: %s was called %d times, want %d", component, call, got, want)
						}
					}
				}
			})
		}
	}
}
