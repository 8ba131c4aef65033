package master

import (
	"runtime"
	"slices"
	"time"
)

const (
	worthwhile = 0.9    // several workers are chosen if they take at most this part of the time of one thread
	memberCost = 0.1e-6 // s, of a call of its own for a member that one thread would step with others
	// handOver is the time (s) of a phase beyond the work of its busiest worker. It takes 20 µs between
	// sleeping threads, less while they spin, and more if another program needs the processor.
	handOver = 50e-6
	// The costs of a run of at least keepSteps macro steps and keepTime are stored.
	keepSteps = 20
	keepTime  = 50 * time.Millisecond
)

// stepCosts returns the cost (s) of a step of each subsystem in earlier runs; known is false if a Priced
// subsystem does not know it. Subsystems that are not Priced count as zero.
func stepCosts(s *System, H float64) (costs []float64, known bool) {
	costs = make([]float64, len(s.Subsystems))
	for i, sub := range s.Subsystems {
		if priced, ok := As[Priced](sub); ok {
			if costs[i], known = priced.StepCost(H); !known {
				return costs, false
			}
		}
	}
	return costs, known
}

// bestCrew returns the best number of workers for members with these costs of a macro step (s).
func bestCrew(members []int, costs []float64) (workers int) {
	workers = max(1, min(runtime.GOMAXPROCS(0), len(members)))
	work := balance(make([]int, len(costs)), members, costs, workers)
	serial := 0.0
	for _, w := range work {
		serial += w
	}
	if slices.Max(work)+float64(len(members))*memberCost+handOver <= worthwhile*serial {
		return workers
	}
	return 1
}

// keepCosts stores the mean costs of steps for later runs.
func (r *Run) keepCosts() {
	if r.accepted < keepSteps || r.wall < keepTime {
		return
	}
	for i, sub := range r.sys.Subsystems {
		if priced, ok := As[Priced](sub); ok && r.x.steps[i] > 0 {
			priced.KeepStepCost(r.opt.Step, r.subsystemSeconds(i)/float64(r.x.steps[i]))
		}
	}
}

func (r *Run) note(text string) {
	r.notes = append(r.notes, text)
	r.opt.Logger.Info(text)
}
