// Package simulate runs a system, from its documents to its result files, like macrostep run
// but without flags and printing. A Request is plain data; a Runner holds the Go values that
// take part in a run.
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
	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
)

// Request describes a run. It is plain data and can be sent to another process as JSON. A
// field with the zero value is set by the documents of the system, or else has its default.
// Apply sets a setting by its name in Settings.
type Request struct {
	// System is an .ssp, a folder with SystemStructure.ssd, an .ssd or one .fmu.
	System string
	// Builder names one of Runner.Builders, which creates the system from Values instead of
	// documents; "" = System is read. With a builder, Start, Stop and Step must be given.
	Builder string
	Values  map[string]string
	// Options are those of opening the system. A run sets its functions.
	assemble.Options
	Start, Stop, Step, Tolerance *Setting // s, and the relative tolerance for the FMUs
	Algorithm                    string
	Params                       map[string]string
	Bonds                        []algorithms.Bond
	Rates                        []algorithms.Rate
	MonitorEnergy                bool
	Spike                        float64       // threshold of warnings about jumps of residual power; 0 = 50
	StepTimeout                  time.Duration // of a call into an FMU; 0 = none
	MemoryLimit                  uint64        // bytes, of each FMU; 0 = none
	// HostTimeout is that of host.ClientOptions; 0 = host.DefaultTimeout.
	HostTimeout    time.Duration
	Input, History string // tables; "" = none
	Output         string // table of results
	Manifest       string // "" = beside Output (see Place)
	Format         record.Format
	Record         record.Selection
	Interval       float64 // s, between rows; 0 = every point
	LogLevel       slog.Level
	LogCalls       string // file with the calls into FMUs; "" = none
	Trace          string // table of attempts at macro steps; "" = none
	// Report is the path of a page that the caller writes after the run. Place checks that
	// the run does not use the same file.
	Report      string
	Workers     int // 0 = automatic
	CallByCall  bool
	Check       *Check    // measure the error after the run; nil = not
	Accuracy    *Accuracy // look for the setting; nil = it is given
	Checkpoints Checkpointing
	Scenario    string           // file; "" = none
	Realtime    *master.Realtime // nil = as fast as possible
	Command     []string         // for the manifest
	// Given lists the settings that Apply has set, and those of documents; documents change none that is given. With Closed,
	// they change no settings.
	Given  []Given
	Closed bool

	recorded []string // patterns of Record
}

// RequestError is the error of an invalid request. No file was opened.
type RequestError struct{ Err error }

func (e *RequestError) Error() string { return e.Err.Error() }
func (e *RequestError) Unwrap() error { return e.Err }

// Place sets the path of the manifest beside the results if there is none, unless the results
// go to a device or a pipe. It returns an error if files would overwrite each other or files
// that the run reads.
func (r *Request) Place() error {
	if r.Output == "-" && !r.Record.IsNone() {
		return errors.New("--output -: the results go to a file; for standard output name /dev/stdout " +
			"(the summary goes to standard error then), for a file of this name ./-")
	}
	if r.Manifest == "" && !IsDevice(r.Output) {
		r.Manifest = record.ManifestPath(r.Output)
	}
	if err := r.protect(r.System, r.Input, r.History, r.Scenario); err != nil {
		return err
	}
	var errs []error
	var missing []string // folders
	written := r.Written()
	for i, w := range written {
		if w.Flag != "--checkpoint" && SamePath(w.Path, r.Checkpoints.Resume) {
			errs = append(errs, fmt.Errorf("%s %s would overwrite the checkpoint from which the run is resumed; name another one",
				w.Flag, w.Path))
		}
		if info, err := os.Stat(w.Path); err == nil && info.IsDir() {
			errs = append(errs, fmt.Errorf("%s %s is a folder; name a file in it", w.Flag, w.Path))
		}
		folder := filepath.Dir(w.Path)
		if info, err := os.Stat(folder); (err != nil || !info.IsDir()) && !slices.Contains(missing, folder) {
			missing = append(missing, folder)
			errs = append(errs, fmt.Errorf("%s %s: there is no folder %s; create the folder first", w.Flag, w.Path, folder))
		}
		for _, other := range written[:i] {
			if SamePath(w.Path, other.Path) {
				errs = append(errs, fmt.Errorf("%s and %s are the same file %s; name another one", other.Flag, w.Flag, w.Path))
			}
		}
	}
	return errors.Join(errs...)
}

// IsDevice reports whether a path leads to neither a file nor a folder, or names an open file,
// like /dev/stdout, which may be redirected to a file.
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

// WrittenFile is a file that a run writes, with the flag that sets its path.
type WrittenFile struct{ Flag, Path string }

// Written lists the files that the run writes.
func (r *Request) Written() []WrittenFile {
	files := []WrittenFile{
		{"--output", r.Output}, {"--manifest", r.Manifest}, {"--debug calls", r.LogCalls},
		{"--trace", r.Trace}, {"--report", r.Report}, {"--checkpoint", r.Checkpoints.File},
	}
	if r.Record.IsNone() {
		return files[1:]
	}
	return files
}

// protect returns an error if the run would overwrite files that it reads.
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

// RatesWith returns the given rates, followed by those of the documents for other components.
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

// Client makes a client of a host.
func (r *Request) Client(address string) (*host.Client, error) {
	return host.NewClient(address, "", host.ClientOptions{Program: Version(), Timeout: r.HostTimeout})
}

// parseOn reads GLOB=HOST, or HOST for all components.
func parseOn(text string) (assemble.On, error) {
	pattern, address, ok := strings.Cut(text, "=")
	if !ok || strings.Contains(pattern, "://") { // a URL may have equals signs
		pattern, address = "*", text
	}
	if err := host.CheckAddress(address); err != nil {
		return assemble.On{}, err
	}
	if pattern == "" || address == "" {
		return assemble.On{}, fmt.Errorf("%q is not GLOB=HOST", text)
	}
	// A ticket is found from any folder, also when the run is resumed.
	if _, err := os.Stat(address); err == nil && filepath.Ext(address) == ".json" {
		address, err = filepath.Abs(address)
		return assemble.On{Pattern: pattern, Host: address}, err
	}
	return assemble.On{Pattern: pattern, Host: address}, nil
}

// Setting is a number with its source, for example a flag.
type Setting = record.Setting

// Number returns a setting of a program.
func Number(v float64) *Setting { return &Setting{Value: v, Source: "program"} }

// Checkpointing sets where the checkpoints of a run are written, and from which one it is
// resumed.
type Checkpointing struct {
	File   string  // "" = none; also written on an interrupt
	Every  float64 // s; 0 = only on an interrupt
	Resume string  // file; "" = from the start
}
