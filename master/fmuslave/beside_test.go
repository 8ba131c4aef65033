package fmuslave_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuprobe"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/test/probe"
)

// refuser starts no process.
type refuser struct{}

func (refuser) Launch(fmi.Launch) (fmi.Link, error) { return nil, errors.New("a process is asked for") }

// Instances for tests run where they cannot change the working folder, unless the FMU is known to leave it alone.
func TestSandbox(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		writes   *bool // what is known; nil = nothing
		none     bool  // there is no sandbox
		bare     string
		asks     bool
		untested string
	}{
		"nothing is known":              {asks: true},
		"it writes":                     {writes: &yes, asks: true},
		"it does not":                   {writes: &no},
		"nothing is known, no sandbox":  {none: true},
		"it writes, no sandbox":         {writes: &yes, none: true, untested: "there is no launcher of processes"},
		"it may write, an empty folder": {bare: "it is large", untested: "in an empty folder (c (test of promises): no process for the FMU: a process is asked for), perhaps for want of files"},
	} {
		t.Run(name, func(t *testing.T) {
			config := fmuslave.Config{FMU: lifeFMU(t, probe.LifeCapabilities), Cache: &fmuprobe.Cache{Dir: t.TempDir()}}
			if !c.none {
				config.Sandbox = &fmuslave.Sandbox{Launcher: refuser{}, Dir: func() (string, string, error) { return t.TempDir(), c.bare, nil }}
			}
			s := lived(t, config)
			if c.writes != nil {
				s.KeepWrites(*c.writes)
			}
			replay, err := s.VerifyRollback(t.Context(), master.Experiment{Stop: 1}, 0.01)
			if asks := err != nil && strings.Contains(err.Error(), "a process is asked for"); asks != c.asks || err != nil && !asks {
				t.Errorf("error %v", err)
			}
			if c.untested == "" && replay.Untested != "" || !strings.Contains(replay.Untested, c.untested) {
				t.Errorf("untested: %q", replay.Untested)
			}
			if _, err := s.Duplicate(t.Context(), 0); (err == nil) != (!c.asks && c.untested == "") {
				t.Errorf("another instance: %v", err)
			}
			// The subsystem itself, for an analysis.
			config.Name, config.Sandboxed = "c", true
			if s, err = fmuslave.New(config); err == nil {
				err = s.EnterInit(t.Context(), master.Experiment{Stop: 1})
				_ = s.Close()
			}
			if (err == nil) != (!c.asks && c.untested == "") {
				t.Errorf("in a sandbox itself: %v", err)
			}
		})
	}
}
