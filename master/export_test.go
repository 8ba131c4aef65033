package master

import "time"

// Simulate prepares a run in real time for the clock of a synctest bubble, which moves only
// while every goroutine waits: the run sleeps on timers of Go and does not spin.
func (r *Run) Simulate() { r.pacer.sleep, r.pacer.spin = &timerSleeper{}, 0 }

// timerSleeper is an untilSleeper on timers of Go.
type timerSleeper struct{ begin time.Time }

func (s *timerSleeper) start(begin time.Time)   { s.begin = begin }
func (s *timerSleeper) until(due time.Duration) { time.Sleep(due - time.Since(s.begin)) }

// BestCrew returns the number of workers that is chosen for members with these costs of a macro step (s).
func BestCrew(costs []float64) int {
	members := make([]int, len(costs))
	for i := range members {
		members[i] = i
	}
	return bestCrew(members, costs)
}
