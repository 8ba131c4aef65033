// Package slavetest builds FMUs, and slaves of them, for the tests of fmuslave and fmuprobe.
package slavetest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/test/cc"
	"github.com/macrostep/macrostep/test/probe"
)

// built holds the FMUs of a test program, each built at its first use. Their folder outlives the
// tests, because libraries stay loaded.
var built struct {
	sync.Mutex
	dir  string
	fmus map[string]*fmi.FMU
}

// Main is the body of TestMain.
func Main(m *testing.M) {
	cc.Cache()
	worker.Main()
	var err error
	if built.dir, err = os.MkdirTemp("", "macrostep-slaves-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	for _, f := range built.fmus {
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.RemoveAll(built.dir)
	os.Exit(code)
}

// open opens the FMU that build writes into dir, once for each key.
func open(tb testing.TB, key string, build func(dir string) (path string, err error)) *fmi.FMU {
	tb.Helper()
	built.Lock()
	defer built.Unlock()
	if f := built.fmus[key]; f != nil {
		return f
	}
	path, err := build(built.dir)
	Must(tb, err)
	f, _, err := fmi.Open(path, fmi.OpenOptions{})
	Must(tb, err)
	if built.fmus == nil {
		built.fmus = map[string]*fmi.FMU{}
	}
	built.fmus[key] = f
	return f
}

// Example returns one of our FMUs.
func Example(tb testing.TB, name string) *fmi.FMU {
	tb.Helper()
	return open(tb, name, func(dir string) (string, error) { return fmus.Build(dir, name) })
}

// Probe returns a probe with these capabilities.
func Probe(tb testing.TB, capabilities string) *fmi.FMU {
	tb.Helper()
	return open(tb, "probe "+capabilities, func(dir string) (string, error) {
		return probe.Build(dir, fmt.Sprint("probe", len(built.fmus)), capabilities, "")
	})
}

// Packed returns a probe with this description, compiled with macros.
func Packed(tb testing.TB, name, description string, macros ...string) *fmi.FMU {
	tb.Helper()
	return open(tb, "packed "+name, func(dir string) (string, error) {
		return probe.Pack(dir, strings.ReplaceAll(name, " ", "_"), description, macros...)
	})
}

// Redescribed returns one of our FMUs with changes to its description: old and new text in turn.
func Redescribed(tb testing.TB, name, as string, changes ...string) *fmi.FMU {
	tb.Helper()
	path := Example(tb, name).Path
	return open(tb, as, func(dir string) (string, error) {
		z, err := zip.OpenReader(path)
		Must(tb, err)
		defer z.Close()
		var entries []string
		for _, f := range z.File {
			r, err := f.Open()
			Must(tb, err)
			data, err := io.ReadAll(r)
			Must(tb, err)
			text := string(data)
			if f.Name == "modelDescription.xml" {
				text = Changed(tb, text, changes...)
			}
			entries = append(entries, f.Name, text)
		}
		return probe.Zip(filepath.Join(dir, as+".fmu"), entries...)
	})
}

// Changed replaces texts, old and new in turn, each of which must occur once.
func Changed(tb testing.TB, text string, changes ...string) string {
	tb.Helper()
	for k := 0; k < len(changes); k += 2 {
		if n := strings.Count(text, changes[k]); n != 1 {
			tb.Fatalf("%q is in the description %d times", changes[k], n)
		}
		text = strings.Replace(text, changes[k], changes[k+1], 1)
	}
	return text
}

// Life returns an FMU compiled from sources with these macros; it is closed at the end of the test.
func Life(tb testing.TB, capabilities string, macros ...string) *fmi.FMU {
	tb.Helper()
	path, err := probe.Sources(tb.TempDir(), "life", capabilities, macros...)
	Must(tb, err)
	f, _, err := fmi.Open(path, fmi.OpenOptions{Compile: true})
	Must(tb, err)
	tb.Cleanup(func() { Must(tb, f.Close()) })
	return f
}

// New returns a slave that is closed at the end of the test.
func New(tb testing.TB, c fmuslave.Config) *fmuslave.Slave {
	tb.Helper()
	s, err := fmuslave.New(c)
	Must(tb, err)
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// Started returns a slave after its initialisation.
func Started(tb testing.TB, c fmuslave.Config) *fmuslave.Slave {
	tb.Helper()
	return StartedAt(tb, c, master.Experiment{})
}

// StartedAt is Started for an experiment.
func StartedAt(tb testing.TB, c fmuslave.Config, e master.Experiment) *fmuslave.Slave {
	tb.Helper()
	s := New(tb, c)
	Start(tb, s, e)
	return s
}

// Start initialises a slave.
func Start(tb testing.TB, s *fmuslave.Slave, e master.Experiment) {
	tb.Helper()
	Must(tb, s.EnterInit(tb.Context(), e))
	Must(tb, s.EvalInit())
	Must(tb, s.ExitInit())
}

// Must ends the test at an error.
func Must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Outputs returns y.
func Outputs(tb testing.TB, s master.Subsystem) []float64 {
	tb.Helper()
	y := make([]float64, len(s.Info().Out))
	Must(tb, s.Outputs(y))
	return y
}

// Ints makes start values of Integers from names and numbers in turn.
func Ints(list ...any) []fmuslave.Value {
	var out []fmuslave.Value
	for i := 0; i < len(list); i += 2 {
		out = append(out, fmuslave.Value{Variable: list[i].(string), Integer: int64(list[i+1].(int))})
	}
	return out
}

// Reals makes start values of Reals from "A[1,2]=3 B[1,1]=-1".
func Reals(tb testing.TB, text string) []fmuslave.Value {
	tb.Helper()
	var out []fmuslave.Value
	for f := range strings.FieldsSeq(text) {
		name, number, _ := strings.Cut(f, "=")
		v := fmuslave.Value{Variable: name}
		_, err := fmt.Sscan(number, &v.Real)
		Must(tb, err)
		out = append(out, v)
	}
	return out
}

// Calls returns the functions in a trace without their prefix, states and status left out; of
// instance, or of all if it is "".
func Calls(trace *bytes.Buffer, instance string) []string {
	var out []string
	for line := range strings.Lines(trace.String()) {
		f := strings.Fields(line)
		if instance == "" || f[1] == instance {
			out = append(out, strings.TrimPrefix(f[2], "fmi2"))
		}
	}
	return out
}
