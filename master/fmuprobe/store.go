package fmuprobe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/master"
)

// replayVersion is that of the files and of the test behind them: a change of
// either makes a new one, and older files are measured anew.
const replayVersion = 4

// maxReplays bounds the entries of each kind in one file; the oldest go first.
const maxReplays = 16

// replayFile is what is kept about one FMU.
type replayFile struct {
	Version int           `json:"version"`
	FMU     string        `json:"fmu"`   // hash
	Model   string        `json:"model"` // for whoever looks into the file
	Replays []replayEntry `json:"replays"`
	// Claims that were found to be true.
	Feedthrough []claimEntry `json:"feedthrough,omitempty"`
	Slopes      []slopeEntry `json:"slopes,omitempty"`
	Costs       []costEntry  `json:"step_costs,omitempty"`
}

// costEntry is the least mean time of a step over blocks of steps: other programs on the
// machine prolong a step, and nothing shortens it.
type costEntry struct {
	Platform string  `json:"platform"`
	Step     float64 `json:"step"`    // macro step, s
	Seconds  float64 `json:"seconds"` // of a step of the FMU
}

// claimEntry tells that no output depends directly on one of some inputs, but as
// declared.
type claimEntry struct {
	Platform string `json:"platform"`
	Ports    string `json:"ports"` // hash of their names
}

// slopeEntry returns how well the directional derivatives between some ports agreed.
type slopeEntry struct {
	claimEntry
	Difference float64 `json:"difference"`
	Step       float64 `json:"step"`
}

// about names a measurement between ports.
func about(ports []master.Port) claimEntry {
	h := sha256.New()
	for _, p := range ports {
		fmt.Fprintf(h, "%q\n", p.Name)
	}
	return claimEntry{platform(), hex.EncodeToString(h.Sum(nil))}
}

// replayEntry is one measurement. The noise depends on the step size, and on
// the platform, which decides what library runs.
type replayEntry struct {
	Platform   string  `json:"platform"`
	Asked      float64 `json:"asked"` // macro step, s
	Step       float64 `json:"step"`  // that was tested, s
	FirstTry   float64 `json:"first_try"`
	Replays    float64 `json:"replays"`
	AtStart    string  `json:"at_start,omitempty"`
	Unpromised string  `json:"unpromised,omitempty"`
}

// Store keeps the measurements of one FMU in a file. It is a convenience:
// what cannot be read or written is measured again.
type Store struct {
	Dir   string // "" = nothing is kept
	FMU   string // hash of the FMU and of what it is set to; "" = nothing is kept
	Model string // its name, for whoever looks into the file
}

func (s Store) path() string {
	sum := sha256.Sum256([]byte(s.FMU)) // a hash names its kind before a colon
	return filepath.Join(s.Dir, "replay", hex.EncodeToString(sum[:])+".json")
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// load reads the file; a wrong one counts as empty.
func (s Store) load() replayFile {
	none := replayFile{Version: replayVersion, FMU: s.FMU}
	const limit = 1 << 16 // bytes; sixteen entries of each kind are far below
	info, err := os.Stat(s.path())
	if err != nil || info.Size() > limit || !info.Mode().IsRegular() {
		return none
	}
	data, err := os.ReadFile(s.path())
	if err != nil {
		return none
	}
	var f replayFile
	if json.Unmarshal(data, &f) != nil || f.Version != replayVersion || f.FMU != s.FMU {
		return none
	}
	f.Replays = slices.DeleteFunc(f.Replays, func(e replayEntry) bool {
		return !(e.Step > 0) || !(e.FirstTry >= 0 && e.FirstTry <= maxNoise) || !(e.Replays >= 0) || math.IsInf(e.Replays, 0)
	})
	f.Costs = slices.DeleteFunc(f.Costs, func(e costEntry) bool { return !(e.Seconds >= 0) || math.IsInf(e.Seconds, 0) })
	f.Slopes = slices.DeleteFunc(f.Slopes, func(e slopeEntry) bool { return !(e.Difference >= 0) || !(e.Step >= 0) })
	return f
}

func (s Store) usable() bool { return s.Dir != "" && s.FMU != "" }

// Replay gives what is known for a macro step.
func (s Store) Replay(H float64) (master.Replay, bool) {
	if !s.usable() {
		return master.Replay{}, false
	}
	for _, e := range s.load().Replays {
		if e.Platform == platform() && e.Asked == H {
			return master.Replay{Step: e.Step, FirstTry: e.FirstTry, Replays: e.Replays, AtStart: e.AtStart, Unpromised: e.Unpromised, Known: true}, true
		}
	}
	return master.Replay{}, false
}

// KeepReplay keeps a measurement.
func (s Store) KeepReplay(H float64, r master.Replay) {
	s.change(func(f *replayFile) {
		f.Replays = slices.DeleteFunc(f.Replays, func(e replayEntry) bool { return e.Platform == platform() && e.Asked == H })
		f.Replays = newest(append(f.Replays, replayEntry{platform(), H, r.Step, r.FirstTry, r.Replays, r.AtStart, r.Unpromised}))
	})
}

// newest gives the last entries of a list.
func newest[T any](list []T) []T { return list[max(0, len(list)-maxReplays):] }

// KnowsTrue reports whether the dependencies on these inputs are known to be true.
func (s Store) KnowsTrue(inputs []master.Port) bool {
	return s.usable() && slices.Contains(s.load().Feedthrough, about(inputs))
}

// KeepTrue keeps that they are.
func (s Store) KeepTrue(inputs []master.Port) {
	s.change(func(f *replayFile) { f.Feedthrough = newest(append(f.Feedthrough, about(inputs))) })
}

// Slopes gives what is known of the directional derivatives between ports.
func (s Store) Slopes(ports []master.Port) (master.SlopeTest, bool) {
	if !s.usable() {
		return master.SlopeTest{}, false
	}
	for _, e := range s.load().Slopes {
		if e.claimEntry == about(ports) {
			return master.SlopeTest{Difference: e.Difference, Step: e.Step, Known: true}, true
		}
	}
	return master.SlopeTest{}, false
}

// KeepSlopes keeps that.
func (s Store) KeepSlopes(ports []master.Port, t master.SlopeTest) {
	s.change(func(f *replayFile) {
		f.Slopes = newest(append(f.Slopes, slopeEntry{about(ports), t.Difference, t.Step}))
	})
}

// Cost returns the cost (s) of a step in runs with the same macro step.
func (s Store) Cost(H float64) (seconds float64, known bool) {
	if !s.usable() {
		return 0, false
	}
	for _, e := range s.load().Costs {
		if e.Platform == platform() && e.Step == H {
			return e.Seconds, true
		}
	}
	return 0, false
}

// KeepCost keeps a cost.
func (s Store) KeepCost(H, seconds float64) {
	// Much the same is not worth a new file.
	if known, ok := s.Cost(H); ok && seconds < 1.5*known && known < 1.5*seconds {
		return
	}
	s.change(func(f *replayFile) {
		f.Costs = slices.DeleteFunc(f.Costs, func(e costEntry) bool { return e.Platform == platform() && e.Step == H })
		f.Costs = newest(append(f.Costs, costEntry{platform(), H, seconds}))
	})
}

// change writes the file anew, as a whole.
func (s Store) change(do func(f *replayFile)) {
	if !s.usable() {
		return
	}
	f := s.load()
	f.Model = s.Model
	do(&f)
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil || os.MkdirAll(filepath.Dir(s.path()), 0o700) != nil {
		return
	}
	_ = archive.WriteFile(s.path(), append(data, '\n')) // it is a convenience
}
