// Package simulate makes one run of a system, from its documents to its results: it
// does what macrostep run does, without flags and without printing. A Request is plain
// data; Go values that take part in a run belong to a Runner.
package simulate

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
)

// Request is a run as a user asks for it. It is plain data and can cross into another
// process as JSON. The zero value of a field leaves it to the documents of the system,
// else to the default.
type Request struct {
	// System is an .ssp, a folder with SystemStructure.ssd, an .ssd or one .fmu.
	System string
	// Builder names one of Runner.Builders, which makes the system from Values in place of
	// documents; "" = System is read. Start, Stop and Step must be given then.
	Builder                      string
	Values                       map[string]string
	Start, Stop, Step, Tolerance *Setting // s, and the relative tolerance for the FMUs
	Algorithm                    string
	Params                       map[string]string
	Set                          []Assignment
	Quirks                       []Assignment // component = quirk; component "" = the only one
	Compile                      bool         // the C sources of FMUs without a library for this platform
	Isolation                    Isolation
	Stateless                    []string // components
	Input, History               string   // tables; "" = none
	Output                       string   // the table of results
	Manifest                     string   // "" = beside Output (see Place)
	Format                       record.Format
	Record                       record.Selection
	Interval                     float64 // s, between rows; 0 = every point
	Strict                       bool
	LogLevel                     slog.Level
	LogCalls, Trace              string // files; "" = none
	// Report is a page that the caller writes after the run; here it is only kept from
	// being a file that the run reads or writes.
	Report        string
	Workers       int // 0 = as many as pay
	CallByCall    bool
	Bonds         []algorithms.Bond
	Rates         []algorithms.Rate
	MonitorEnergy bool
	Analyze       bool    // the coupling, before the run
	Spike         float64 // 0 = no warning about jumps of residual power
	Checkpoints   Checkpointing
	Scenario      string           // file; "" = none
	Realtime      *master.Realtime // nil = as fast as possible
	Command       []string         // for the manifest
	// Given names the settings that the user has made, as the flags of macrostep run are
	// called; documents do not change them. With Closed, documents change none.
	Given  []string
	Closed bool
}

func (r *Request) given(setting string) bool { return slices.Contains(r.Given, setting) }

// RequestError is a request that is refused before anything is opened.
type RequestError struct{ Err error }

func (e *RequestError) Error() string { return e.Err.Error() }
func (e *RequestError) Unwrap() error { return e.Err }

// Place puts the manifest beside the results if it has no path, and refuses files that
// would overwrite each other, or files that the run reads. Beside a device or a pipe
// there is no manifest.
func (r *Request) Place() error {
	if r.Output == "-" && !r.Record.IsNone() {
		return errors.New("--output -: the results go to a file; for standard output name /dev/stdout (the summary goes to standard error then), for a file of this name ./-")
	}
	if r.Manifest == "" && !IsDevice(r.Output) {
		r.Manifest = strings.TrimSuffix(r.Output, filepath.Ext(r.Output)) + ".json"
	}
	if err := r.protect(r.System, r.Input, r.History, r.Scenario); err != nil {
		return err
	}
	var errs []error
	written := r.Written()
	for i, w := range written {
		if w.Flag != "--checkpoint" && SamePath(w.Path, r.Checkpoints.Resume) {
			errs = append(errs, fmt.Errorf("%s %s would overwrite the checkpoint that the run goes on from; name another one", w.Flag, w.Path))
		}
		if info, err := os.Stat(w.Path); err == nil && info.IsDir() {
			errs = append(errs, fmt.Errorf("%s %s is a folder; name a file in it", w.Flag, w.Path))
		}
		for _, other := range written[:i] {
			if SamePath(w.Path, other.Path) {
				errs = append(errs, fmt.Errorf("%s and %s are the same file %s; name another one", other.Flag, w.Flag, w.Path))
			}
		}
	}
	return errors.Join(errs...)
}

// IsDevice reports whether a path leads to something that is neither a file nor a folder,
// or names an open file, as /dev/stdout does also if it leads to a file.
func IsDevice(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false
	}
	if !info.Mode().IsRegular() {
		return true
	}
	for range 40 { // links
		abs, err := filepath.Abs(path)
		if err != nil {
			return false
		}
		dir := filepath.Dir(abs)
		if dir == "/dev" || dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") && filepath.Base(dir) == "fd" {
			return true
		}
		target, err := os.Readlink(abs)
		switch {
		case err != nil:
			return false
		case filepath.IsAbs(target):
			path = target
		default:
			path = filepath.Join(dir, target)
		}
	}
	return false
}

// WrittenFile is a file that a run writes, and the flag that names it.
type WrittenFile struct{ Flag, Path string }

// Written lists the files that the run writes.
func (r *Request) Written() []WrittenFile {
	files := []WrittenFile{
		{"--output", r.Output}, {"--manifest", r.Manifest}, {"--log-fmi-calls", r.LogCalls},
		{"--trace", r.Trace}, {"--report", r.Report}, {"--checkpoint", r.Checkpoints.File},
	}
	if r.Record.IsNone() {
		return files[1:]
	}
	return files
}

// protect refuses to write over files that the run reads.
func (r *Request) protect(read ...string) error {
	var errs []error
	for _, w := range r.Written() {
		for _, path := range read {
			if SamePath(w.Path, path) {
				errs = append(errs, fmt.Errorf("%s %s would overwrite a file that the run reads; name another one", w.Flag, w.Path))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// SamePath reports whether two paths name the same file, which need not exist.
func SamePath(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	ia, errA := os.Stat(a)
	ib, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return ia.Mode().IsRegular() && os.SameFile(ia, ib)
	}
	aa, errA := filepath.Abs(a)
	ab, errB := filepath.Abs(b)
	return errA == nil && errB == nil && aa == ab
}

// MemoryOf returns a size in MiB in bytes.
func MemoryOf(mib float64) uint64 { return uint64(mib * (1 << 20)) }

// LargestMemory bounds limits of memory, in MiB.
const LargestMemory = 1 << 40

// RatesWith returns the given rates, and those of the documents for other components.
func RatesWith(given, documents []algorithms.Rate) []algorithms.Rate {
	all := given
	for _, d := range documents {
		if !slices.ContainsFunc(given, func(o algorithms.Rate) bool { return o.Component == d.Component }) {
			all = append(slices.Clip(all), d)
		}
	}
	return all
}

// Assignment is component.variable = value.
type Assignment = assemble.Assignment

// Isolation says which FMUs run in processes of their own, and how.
type Isolation struct {
	Mode          assemble.Isolation
	Given         bool // the user has chosen Mode, and not the default
	Components    []string
	StepTimeout   time.Duration // 0 = none
	MemoryLimit   uint64        // bytes; 0 = none
	Restarts      int           // of a component whose process ended; 0 = its end is that of the run
	RestartsGiven bool          // the user has chosen it
}

// Setting is a number and where it comes from, for example the flag.
type Setting = record.Setting

// Number returns a setting that a program gives.
func Number(v float64) *Setting { return &Setting{Value: v, Source: "program"} }

// Checkpointing says where checkpoints of a run go, and from which it goes on.
type Checkpointing struct {
	File   string  // "" = none; one is made on an interrupt, too
	Every  float64 // s; 0 = none but on an interrupt
	Resume string  // file; "" = from the start
	// Arguments that begin a run which goes on from a checkpoint of this one.
	Arguments []string
}
