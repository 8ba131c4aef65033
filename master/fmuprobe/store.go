package fmuprobe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/master"
)

// storeVersion is the version of the files and of the tests: if either changes it increases, and older files
// are ignored.
const storeVersion = 5

// mostEntries bounds the entries of each kind in one file; the oldest go first.
const mostEntries = 16

// Cache is a folder for measurements of FMUs. It remembers what was found there once, so that runs of an opened model do not read
// it again and again. Its methods may be called by several goroutines; a nil Cache stores nothing.
type Cache struct {
	Dir string // "" = nothing is stored

	mu    sync.Mutex
	found map[[3]string]json.RawMessage // by FMU, kind and subject of the measurement
}

// mostFound bounds what a Cache remembers.
const mostFound = 1000

// Store stores the measurements of one FMU in a file. A file that cannot be read or written is ignored: the
// measurements are repeated.
type Store struct {
	*Cache
	FMU   string // hash of the FMU and its settings; "" = nothing is stored
	Model string // its name, for readers of the file
}

// storeFile is the file of one FMU.
type storeFile struct {
	Version int     `json:"version"`
	FMU     string  `json:"fmu"`
	Model   string  `json:"model"`
	Entries []entry `json:"entries"`
}

// entry is one measurement on a platform.
type entry struct {
	Kind     string          `json:"kind"`
	Platform string          `json:"platform"`
	About    string          `json:"about"` // the step size, or the ports
	Value    json.RawMessage `json:"value"`
}

// Kinds of measurements.
const (
	ofRollback    = "rollback"
	ofFeedthrough = "feedthrough"
	ofSlopes      = "slopes"
	ofCost        = "step cost"
	ofFiles       = "files" // whether it changes the working folder
)

// same reports whether two entries are of the same measurement.
func (e *entry) same(o *entry) bool {
	return e.Kind == o.Kind && e.Platform == o.Platform && e.About == o.About
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// atStep identifies a measurement at a step size, exactly.
func atStep(H float64) string { return fmt.Sprintf("%x", H) }

// between identifies a measurement between ports.
func between(ports []master.Port) string {
	h := sha256.New()
	for _, p := range ports {
		fmt.Fprintf(h, "%q\n", p.Name)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Replay returns the stored test of the rollback for a macro step.
func (s Store) Replay(H float64) (r master.Replay, known bool) {
	known = s.recall(ofRollback, atStep(H), &r) && r.Step > 0 && r.FirstTry >= 0 && r.FirstTry <= maxNoise && r.Replays >= 0
	if !known {
		return master.Replay{}, false
	}
	r.Known = true
	return r, true
}

// KeepReplay stores it.
func (s Store) KeepReplay(H float64, r master.Replay) { s.keep(ofRollback, atStep(H), r) }

// KnowsTrue reports whether the declared dependencies on these inputs have been tested and are true.
func (s Store) KnowsTrue(inputs []master.Port) (known bool) {
	return s.recall(ofFeedthrough, between(inputs), &known) && known
}

// KeepTrue stores that they are.
func (s Store) KeepTrue(inputs []master.Port) { s.keep(ofFeedthrough, between(inputs), true) }

// Slopes returns the stored test of the directional derivatives between ports.
func (s Store) Slopes(ports []master.Port) (t master.SlopeTest, known bool) {
	if !s.recall(ofSlopes, between(ports), &t) || !(t.Difference >= 0) || !(t.Step >= 0) {
		return master.SlopeTest{}, false
	}
	t.Known = true
	return t, true
}

// KeepSlopes stores it.
func (s Store) KeepSlopes(ports []master.Port, t master.SlopeTest) {
	s.keep(ofSlopes, between(ports), t)
}

// Cost returns the mean time in s of a step of the FMU in a run with a macro step H.
func (s Store) Cost(H float64) (seconds float64, known bool) {
	known = s.recall(ofCost, atStep(H), &seconds) && seconds >= 0
	return seconds, known
}

// KeepCost stores it, unless the stored one is similar.
func (s Store) KeepCost(H, seconds float64) {
	if known, ok := s.Cost(H); !ok || seconds >= 1.5*known || known >= 1.5*seconds {
		s.keep(ofCost, atStep(H), seconds)
	}
}

// Writes reports whether a run of the FMU changed the working folder.
func (s Store) Writes(logging bool) (writes, known bool) {
	known = s.recall(ofFiles, strconv.FormatBool(logging), &writes)
	return writes, known
}

// KeepWrites stores it.
func (s Store) KeepWrites(logging, writes bool) {
	if was, known := s.Writes(logging); !known || was != writes {
		s.keep(ofFiles, strconv.FormatBool(logging), writes)
	}
}

func (s Store) path() string {
	sum := sha256.Sum256([]byte(s.FMU)) // a hash names its kind before a colon
	return filepath.Join(s.Dir, "replay", hex.EncodeToString(sum[:])+".json")
}

// load reads the file; an invalid one counts as empty.
func (s Store) load() storeFile {
	none := storeFile{Version: storeVersion, FMU: s.FMU}
	const limit = 1 << 16 // bytes; sixteen entries of each kind are far below
	info, err := os.Stat(s.path())
	if err != nil || info.Size() > limit || !info.Mode().IsRegular() {
		return none
	}
	data, err := os.ReadFile(s.path())
	if err != nil {
		return none
	}
	var f storeFile
	if json.Unmarshal(data, &f) != nil || f.Version != storeVersion || f.FMU != s.FMU {
		return none
	}
	return f
}

func (s Store) usable() bool { return s.Cache != nil && s.Dir != "" && s.FMU != "" }

// recall reads a stored measurement, and reports whether there is one.
func (s Store) recall(kind, about string, to any) bool {
	if !s.usable() {
		return false
	}
	s.mu.Lock()
	value, known := s.found[[3]string{s.FMU, kind, about}]
	s.mu.Unlock()
	if !known {
		f, wanted := s.load(), entry{Kind: kind, Platform: platform(), About: about}
		i := slices.IndexFunc(f.Entries, func(e entry) bool { return e.same(&wanted) })
		if i < 0 {
			return false
		}
		value = f.Entries[i].Value
		s.remember(kind, about, value)
	}
	return json.Unmarshal(value, to) == nil
}

func (s Store) remember(kind, about string, value json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.found == nil || len(s.found) >= mostFound {
		s.found = map[[3]string]json.RawMessage{}
	}
	s.found[[3]string{s.FMU, kind, about}] = value
}

// keep writes the file again with a measurement.
func (s Store) keep(kind, about string, v any) {
	value, err := json.Marshal(v)
	if err != nil || !s.usable() {
		return
	}
	s.remember(kind, about, value)
	f, fresh := s.load(), entry{kind, platform(), about, value}
	f.Model = s.Model
	n := 0 // of the kind, the newest first
	slices.Reverse(f.Entries)
	f.Entries = slices.DeleteFunc(f.Entries, func(e entry) bool {
		if e.Kind == kind {
			n++
		}
		return e.same(&fresh) || e.Kind == kind && n >= mostEntries
	})
	slices.Reverse(f.Entries)
	f.Entries = append(f.Entries, fresh)
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil || os.MkdirAll(filepath.Dir(s.path()), 0o700) != nil {
		return
	}
	_ = archive.WriteFile(s.path(), append(data, '\n')) // without the file the measurement is repeated
}
