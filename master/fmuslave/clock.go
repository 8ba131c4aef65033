package fmuslave

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
)

// clock compares the time that an FMU exposes with the communication point: some FMUs solve on a grid of
// their own and stop short of a communication point, or beyond it, without an error (fmi2 70).
type clock struct {
	vr    []description.ValueReference // of the independent variable
	name  string
	start float64 // s
	shown [1]float64
}

// ticking is the state of a clock.
type ticking struct {
	runs  bool // the variable exists, and was right at the start
	steps int
	first float64 // s, start of the first unchecked step
}

// The first clockedFirst steps of an FMU are checked, then one in clockedEach.
const clockedFirst, clockedEach = 16, 64

// clockTolerance is the largest error of the time that counts as accumulated rounding, in units of H.
const clockTolerance = 1e-6

// planClock finds the independent variable, if the FMU exposes one.
func (s *Slave) planClock() {
	d := s.config.FMU.Description
	for i := range d.Variables {
		v := &d.Variables[i]
		if v.Causality == description.Independent && v.Type == description.Real {
			s.clock.vr, s.clock.name = []description.ValueReference{v.ValueReference}, v.Name
			return
		}
	}
}

// startClock starts the comparison if the independent variable has the start time.
func (s *Slave) startClock() error {
	c := &s.clock
	if s.ticking = (ticking{}); c.name == "" {
		return nil
	}
	shown, err := s.readClock()
	s.ticking.runs = math.Abs(shown-c.start) <= 1e-9*max(1, math.Abs(c.start))
	return err
}

// readClock returns the time of the FMU.
func (s *Slave) readClock() (float64, error) {
	err := s.instance.GetReal(s.clock.vr, s.clock.shown[:])
	return s.clock.shown[0], err
}

// checkClock warns, once, if the FMU is not at the end of its step from t by H.
func (s *Slave) checkClock(t, H float64) error {
	c := &s.ticking
	if !c.runs {
		return nil
	}
	c.steps++
	if c.steps <= clockedFirst || c.steps%clockedEach == 1 {
		c.first = t
	}
	if c.steps > clockedFirst && c.steps%clockedEach != 0 {
		return nil
	}
	end := t + H
	got, err := s.readClock()
	if err != nil {
		return err
	}
	if math.Abs(got-end) <= clockTolerance*H+8*0x1p-52*math.Abs(end) {
		return nil
	}
	c.runs = false
	if s.config.Options.Log == nil {
		return nil
	}
	step := fmt.Sprintf("the step from t = %.12g s by %.12g s, which it reports", t, H)
	if c.first < t {
		step = fmt.Sprintf("the steps from t = %.12g s by %.12g s each, which it reports", c.first, H)
	}
	s.config.Options.Log(fmi.LogMessage{Instance: s.config.Name, Status: fmi.StatusWarning, Category: fmi.OwnCategory,
		Text: fmt.Sprintf("%s: after %s as done, the FMU says by its variable %s that it is at %.12g s; "+
			"its outputs belong to that time. It may work on a grid of its own: choose a macro step that is a multiple of it",
			filepath.Base(s.config.FMU.Path), step, s.clock.name, got)})
	return nil
}
