package worker

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
)

// Record keeps in a folder which FMUs have crashed, so that they are isolated the
// next time. An FMU that ended a worker stays on record. One that was in the
// process of a program when that ended without coming to its end is suspected,
// with all others that were there, until a run with it in a worker has shown
// whether it was the one.
//
// It is a convenience: what cannot be read or written counts as not there.
type Record struct{ Dir string }

// recordVersion is that of the files.
const recordVersion = 1

// crashFile is kept about an FMU.
type crashFile struct {
	Version  int    `json:"version"`
	FMU      string `json:"fmu"`   // hash
	Model    string `json:"model"` // for whoever looks into the file
	Platform string `json:"platform"`
	How      string `json:"how"`
}

// markFile is the first line of a file that is there as long as FMUs are in the
// process of a program. If that crashes, what Go says about it follows.
type markFile struct {
	Version int      `json:"version"`
	FMUs    []string `json:"fmus"`
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func (r *Record) path(hash string) string {
	sum := sha256.Sum256([]byte(platform() + " " + hash))
	return filepath.Join(r.Dir, "crashed", hex.EncodeToString(sum[:])+".json")
}

// Crashed returns how an FMU has crashed or why it is suspected, "" if neither.
func (r *Record) Crashed(f *fmi.FMU) string {
	if r.Dir == "" || f.Hash == "" {
		return ""
	}
	var c crashFile
	if data, err := os.ReadFile(r.path(f.Hash)); err == nil && json.Unmarshal(data, &c) == nil &&
		c.Version == recordVersion && c.FMU == f.Hash && c.Platform == platform() {
		return cmp.Or(c.How, "it has crashed")
	}
	how := ""
	r.suspicions(func(m markFile, said string) bool {
		if slices.Contains(m.FMUs, f.Hash) {
			how = "the last program that had it in its process did not come to its end"
			if said != "" {
				how += " (" + said + ")"
			}
		}
		return false
	})
	return how
}

// suspicions gives the marks of ended programs, and what Go said when they
// crashed; those for which drop says so are removed.
func (r *Record) suspicions(drop func(m markFile, said string) bool) {
	paths, err := filepath.Glob(filepath.Join(r.Dir, "crashed", "run-*"))
	if err != nil {
		return
	}
	for _, path := range paths {
		f := archive.TakeLock(path)
		if f == nil {
			continue // it runs
		}
		data, _ := io.ReadAll(io.LimitReader(f, 1<<20)) // what there is
		first, rest, _ := bytes.Cut(data, []byte("\n"))
		var m markFile
		if json.Unmarshal(first, &m) != nil || m.Version != recordVersion {
			archive.DropLock(f)
			continue
		}
		said, _, _ := strings.Cut(string(rest), "\n")
		if drop(m, strings.ToValidUTF8(said[:min(len(said), 200)], "")) {
			archive.DropLock(f)
		} else {
			_ = f.Close()
		}
	}
}

// Lost takes down that an FMU has ended its worker; it is for Launcher.Lost.
func (r *Record) Lost(to fmi.Launch, e *fmi.Ended) { r.Take(to, e) }

// Take takes down that an FMU has crashed, and tells whether that will be known.
func (r *Record) Take(to fmi.Launch, e *fmi.Ended) (known bool) {
	if r.Dir == "" || to.Hash == "" || !e.Crash {
		return false
	}
	c := crashFile{Version: recordVersion, FMU: to.Hash, Model: to.Model, Platform: platform(), How: e.Reason}
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil || os.MkdirAll(filepath.Dir(r.path(to.Hash)), 0o700) != nil {
		return false
	}
	return archive.WriteFile(r.path(to.Hash), append(data, '\n')) == nil
}

// Mark is left while FMUs are in the process.
type Mark struct{ file *os.File }

// Begin marks that FMUs are in this process from now on. Go writes into the mark
// if the process crashes (debug.SetCrashOutput). End it when they are called no
// more. Nil if there are none, or if it cannot be done.
func (r *Record) Begin(fmus []*fmi.FMU) *Mark {
	m := markFile{Version: recordVersion}
	for _, f := range fmus {
		if f.Hash != "" && !slices.Contains(m.FMUs, f.Hash) {
			m.FMUs = append(m.FMUs, f.Hash)
		}
	}
	dir := filepath.Join(r.Dir, "crashed")
	if r.Dir == "" || len(m.FMUs) == 0 || os.MkdirAll(dir, 0o700) != nil {
		return nil
	}
	var random [8]byte
	rand.Read(random[:])
	f, err := archive.CreateLock(filepath.Join(dir, fmt.Sprintf("run-%x", random)))
	if err != nil {
		return nil
	}
	data, err := json.Marshal(m)
	if err == nil {
		_, err = f.Write(append(data, '\n'))
	}
	if err == nil {
		err = debug.SetCrashOutput(f, debug.CrashOptions{})
	}
	if err != nil {
		archive.DropLock(f)
		return nil
	}
	return &Mark{f}
}

// End removes the mark. It may be called again, and of nil.
func (m *Mark) End() {
	if m == nil || m.file == nil {
		return
	}
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	archive.DropLock(m.file)
	m.file = nil
}

// Leave leaves the mark, with the reason: some FMU has ended the program, and it is
// not known which. It may be called of nil, and after End without effect.
func (m *Mark) Leave(reason string) {
	if m == nil || m.file == nil {
		return
	}
	_ = debug.SetCrashOutput(nil, debug.CrashOptions{})
	_, _ = m.file.WriteString(reason + "\n") // it is a convenience
	_ = m.file.Close()
	m.file = nil
}

// Absolve takes the suspicion off FMUs that have run in workers: one that
// crashed there is on record now.
func (r *Record) Absolve(fmus []*fmi.FMU) {
	if r.Dir == "" {
		return
	}
	r.suspicions(func(m markFile, _ string) bool {
		return slices.ContainsFunc(fmus, func(f *fmi.FMU) bool { return slices.Contains(m.FMUs, f.Hash) })
	})
}
