package test

import (
	"fmt"
	"os"
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

// On a linear system Newton takes exactly one corrector in every macro step, and
// a Jacobian wherever the degree changes; the counts are those of the cost model.
func testNewtonCost(t *testing.T) {
	take := long.Sample(5)
	const H, steps = 1e-3, 200
	for _, s := range methods(3) {
		if !s.Implicit {
			continue
		}
		for _, history := range []bool{false, true} {
			s := s
			s.History = history
			if !take() {
				continue
			}
			t.Run(fmt.Sprintf("%v/history=%t", s, history), func(t *testing.T) {
				t.Parallel()
				trace := filepath.Join(t.TempDir(), "trace.csv")
				out := complete(t, append(schemeArgs(t, uneven, s, H, steps), "--trace", trace)...)
				judgeCost(t, out, s.Decomposition, steps, true)
				if out.manifest.Iterations != steps {
					t.Errorf("%d correctors in %d macro steps", out.manifest.Iterations, steps)
				}
				// Degrees 1, 2, … while the history grows; the value sought is a point.
				jacobians, low := 1, 0
				if !history && s.Order > 0 {
					jacobians, low = s.Order, s.Order-1
				}
				if out.manifest.Jacobians != jacobians {
					t.Errorf("%d Jacobians, want %d", out.manifest.Jacobians, jacobians)
				}
				want := map[string]int{fmt.Sprint(s.Order): steps - low}
				for k := 1; k <= low; k++ {
					want[fmt.Sprint(k)] = 1
				}
				if got := out.manifest.Orders; fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("macro steps by order: %v, want %v", got, want)
				}
				data, err := os.ReadFile(trace)
				if err != nil {
					t.Fatal(err)
				}
				rows := strings.Split(strings.TrimSpace(string(data)), "\n")[1:]
				if len(rows) != steps {
					t.Errorf("the trace has %d attempts", len(rows))
				}
				for n, row := range rows {
					if f := strings.Split(row, ","); len(f) != 7 || f[3] != "1" || f[6] != "1" {
						t.Fatalf("attempt %d is %q; every one has one corrector and stands", n, row)
					}
				}
			})
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
				data, err := os.ReadFile(log)
				if err != nil {
					t.Fatal(err)
				}
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

// Explicit schemes save and repeat nothing.
func testExplicitCost(t *testing.T) {
	const H, steps = 1e-3, 100
	for decomposition, inputs := range loopInputs {
		out := complete(t, schemeArgs(t, uneven, oracle.Scheme{Decomposition: decomposition, Order: 2}, H, steps)...)
		m := out.manifest
		for component := range inputs {
			if m.FMUSteps[component] != steps || m.FMUSaves[component] != 0 || m.FMURestores[component] != 0 {
				t.Errorf("%s, %s: %d steps, %d saves, %d restores", decomposition, component, m.FMUSteps[component], m.FMUSaves[component], m.FMURestores[component])
			}
		}
		if m.Iterations != 0 || m.Jacobians != 0 {
			t.Errorf("%s: %d correctors, %d Jacobians", decomposition, m.Iterations, m.Jacobians)
		}
	}
}
