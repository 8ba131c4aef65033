package app

import (
	"fmt"
	"math"
	"time"

	"github.com/macrostep/macrostep/master"
)

const (
	// quietFor is the time before the first progress.
	quietFor = time.Second
	// lineEvery is the time between lines if there is no terminal.
	lineEvery = 5 * time.Second
	// speedOver is the time over which speed and time left are measured.
	speedOver = 5 * time.Second
)

// progress shows the progress of a run, by the clock of the run.
type progress struct {
	con  *console
	last time.Duration // of the last line, if there is no terminal
	// The speed is measured from the point from on, because it may change during the run; mid is the
	// next such point.
	from, mid sample
}

type sample struct {
	wall  time.Duration
	t     float64
	steps int
}

func newProgress(con *console, start float64) *progress {
	return &progress{con: con, from: sample{t: start}, mid: sample{t: start}}
}

func (p *progress) observe(now master.Progress) {
	if now.Wall-p.mid.wall >= speedOver {
		p.from, p.mid = p.mid, sample{now.Wall, now.T, now.Steps}
	}
	if now.Wall < quietFor {
		return
	}
	if _, ok := p.con.terminal(); !ok {
		if now.Wall-p.last < lineEvery {
			return
		}
		p.last = now.Wall
	}
	from := p.from
	if now.Wall-from.wall < quietFor {
		from = sample{t: now.Start}
	}
	p.con.status(progressLine(now, from))
}

// progressLine formats simulated time, share done, real-time factor and speed since from, and time left.
func progressLine(now master.Progress, from sample) string {
	wall := (now.Wall - from.wall).Seconds()
	done := (now.T - now.Start) / (now.Stop - now.Start)
	factor := (now.T - from.t) / wall
	left := "?"
	if factor > 0 {
		left = duration((now.Stop - now.T) / factor)
	}
	return fmt.Sprintf("t = %s of %s s  %3.0f %%  %s × real time  %s steps/s  %s left",
		number(now.T), number(now.Stop), math.Floor(100*done), short(factor), short(float64(now.Steps-from.steps)/wall), left)
}

// short formats a number with three digits, with k and M for large ones.
func short(v float64) string {
	switch {
	case v >= 999_500:
		return fmt.Sprintf("%.3gM", v/1e6)
	case v >= 999.5:
		return fmt.Sprintf("%.3gk", v/1e3)
	}
	return fmt.Sprintf("%.3g", v)
}

// duration formats seconds for people: 0.4 ms, 0.31 s, 12 s, 3 min 20 s, 2 h 5 min.
func duration(seconds float64) string {
	s := math.Round(seconds)
	switch {
	case !(seconds < 1e9): // decades, or NaN
		return "very long"
	case seconds > 0 && seconds < 0.00995:
		return fmt.Sprintf("%.2g ms", seconds*1e3)
	case seconds < 9.95:
		return fmt.Sprintf("%.2g s", seconds)
	case s < 60:
		return fmt.Sprintf("%.0f s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", int(s)/60, int(s)%60)
	case s < 48*3600:
		return fmt.Sprintf("%d h %d min", int(s)/3600, int(s)/60%60)
	}
	return fmt.Sprintf("%d days %d h", int(s)/86400, int(s)/3600%24)
}
