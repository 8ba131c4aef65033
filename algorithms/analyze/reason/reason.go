// Package reason is the vocabulary of the reasons why an analysis leaves something unknown.
//
// A message contains the word of its reason in brackets, like the id of a rule in a finding:
//
//	its responses are not those of a linear system: they are off by 0.07 [nonlinear]
package reason

import (
	"slices"
	"strings"
)

// Word is a reason in one word.
type Word string

// The words.
const (
	Nonlinear  Word = "nonlinear"
	OwnSteps   Word = "own-steps"
	Noise      Word = "noise"
	NoRollback Word = "no-rollback"
	Discrete   Word = "discrete"
	Undecided  Word = "undecided"
	Undamped   Word = "undamped"
	NoMotion   Word = "no-motion"
	NoTime     Word = "no-time"
	Diverges   Word = "diverges"
	Learning   Word = "learning"
	TooLarge   Word = "too-large"
	NotCovered Word = "not-covered"
	Uncoupled  Word = "uncoupled"
	Failed     Word = "failed"
)

// String returns the word in brackets, as in messages.
func (w Word) String() string { return "[" + string(w) + "]" }

// explained are the words, each with its meaning and with what to do.
var explained = []struct {
	word      Word
	means, do string
}{
	{Nonlinear, "a component does not respond like a linear system here", "try other times (--at), and compare runs at the step and at half of it"},
	{OwnSteps, "a component takes internal steps of its own", "try whole multiples of them as --step-size, and compare runs at the step and at half of it"},
	{Noise, "a component responds with too much noise, or has too many states", "tighten its solver (--tolerance), or try another --step-size"},
	{NoRollback, "an FMU cannot go back to a saved state", "use explicit or gauss-seidel, or export the FMU with canGetAndSetFMUstate"},
	{Discrete, "Integers, Booleans or Strings are coupled, which linear models leave out", "compare runs at the step and at half of it"},
	{Undecided, "trial runs neither settle nor clearly grow", "take a shorter step, or compare runs at the step and at half of it"},
	{Undamped, "motion hardly dies out, so that a small inaccuracy matters", "prefer an algorithm without this mark"},
	{NoMotion, "no output moves, or the time is too short for a forecast", "set start values (--set), another time (--at) or a later --stop-time"},
	{NoTime, "trial runs ran out of time", "allow more seconds with --runs"},
	{Diverges, "values become infinite", "take a shorter step"},
	{Learning, "the algorithm identifies a model during the run and is uncorrected until then", "compare runs at the step and at half of it"},
	{TooLarge, "too many components or rates for this analysis", "analyse a part of the system"},
	{NotCovered, "the analysis cannot judge this algorithm", "compare runs at the step and at half of it"},
	{Uncoupled, "no component feeds another", "compare with a run at a tenth of the tolerance (--tolerance): the accuracy is that of the FMU's own solver"},
	{Failed, "a component or the algorithm reported an error", "read it with --all, and try a shorter step"},
}

// Of returns the words in a message in their order, each once; without one it is an error of a component or an algorithm: Failed.
func Of(message string) (found []Word) {
	for rest := message; ; {
		_, after, ok := strings.Cut(rest, "[")
		if !ok {
			break
		}
		rest = after
		for _, e := range explained {
			if strings.HasPrefix(rest, string(e.word)+"]") && !slices.Contains(found, e.word) {
				found = append(found, e.word)
			}
		}
	}
	if found == nil {
		return []Word{Failed}
	}
	return found
}

// Explain returns what the word means, and what to do. The meaning begins with "a component" if it is about one.
func (w Word) Explain() (means, do string) {
	for _, e := range explained {
		if e.word == w {
			return e.means, e.do
		}
	}
	return "", ""
}

// All returns all words.
func All() (all []Word) {
	for _, e := range explained {
		all = append(all, e.word)
	}
	return all
}
