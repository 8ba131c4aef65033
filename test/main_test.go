// Package test holds the whole-program tests: the command line on our own example systems against exact solutions,
// propagation matrices and published tables, and, with -real DIR, on third-party FMUs and systems.
package test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/test/cc"
)

var realDir = flag.String("real", "", "folder with FMUs and systems made by others (fmus/, systems/); without it their tests are not registered")

// program is the binary under test; work is a folder that lives as long as the tests.
var program, work string

// raced reports whether the tests run under the race detector.
var raced bool

func TestMain(m *testing.M) {
	cc.Cache()
	embeds()
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		// Tests mostly wait for the program.
		if err := f.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err) // the value is valid
		}
	}
	code, err := setUp(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func setUp(m *testing.M) (int, error) {
	var err error
	if work, err = os.MkdirTemp("", "macrostep-test-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(work)
	if *realDir != "" {
		if *realDir, err = fromRoot(*realDir); err != nil {
			return 1, err
		}
	}
	program = filepath.Join(work, "macrostep")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	args := []string{"build", "-o", program}
	if fmi.CallPath == "portable" {
		args = append(args, "-tags", "macrostep_portable")
	}
	cgo := "CGO_ENABLED=0"
	if raced {
		args, cgo = append(args, "-race"), "CGO_ENABLED=1"
	}
	build := exec.Command("go", append(args, "../cmd/macrostep")...)
	build.Env = append(os.Environ(), cgo,
		"CC=") // linked by way of the cache it would be position-independent, which the race detector does not take
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("building macrostep: %w\n%s", err, out)
	}
	// What is known of FMUs from runs of the user is no part of a test. The tools of Go keep their cache.
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return 1, fmt.Errorf("go env GOCACHE: %w", err)
	}
	for name, value := range map[string]string{
		"GOCACHE": strings.TrimSpace(string(cache)), "XDG_CACHE_HOME": filepath.Join(work,
			"cache"), "XDG_CONFIG_HOME": filepath.Join(work, "config"), "AppData": filepath.Join(work, "config"), "LocalAppData": filepath.Join(work, "cache"),
	} {
		if err := os.Setenv(name, value); err != nil {
			return 1, err
		}
	}
	defer func() { endHost() }()
	code := m.Run()
	if *realDir != "" && !testing.RunTests(matchTest, realTests) {
		code = max(code, 1)
	}
	return code, nil
}

// fromRoot returns the absolute path of a folder that is named relative to this package or to the root of the
// repository.
func fromRoot(dir string) (string, error) {
	for _, candidate := range []string{dir, filepath.Join("..", dir)} {
		if info, err := os.Stat(candidate); err == nil && info.IsDir() {
			return filepath.Abs(candidate)
		}
	}
	return "", fmt.Errorf("%s: there is no such folder", dir)
}

// matchTest selects tests by -run.
func matchTest(pattern, name string) (bool, error) { return regexp.MatchString(pattern, name) }

// outcome is the result of one call of the program.
type outcome struct {
	args     []string
	code     int
	output   string // stdout and stderr
	results  string // path of the results
	manifest record.Manifest
	columns  map[string][]float64
	rows     int
}

// isolated returns the reasons why components are isolated, by component.
func (o *outcome) isolated() map[string]string {
	out := map[string]string{}
	for _, f := range o.manifest.FMUs {
		if f.Isolated != "" {
			out[f.Component] = f.Isolated
		}
	}
	return out
}

// macrostep calls the program in a folder of its own.
func macrostep(t testing.TB, args ...string) (code int, output string) {
	t.Helper()
	return macrostepIn(t, t.TempDir(), args...)
}

// macrostepIn calls the program in a given folder.
func macrostepIn(t testing.TB, dir string, args ...string) (code int, output string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// run runs a system and reads its results and manifest.
func run(t testing.TB, args ...string) *outcome {
	t.Helper()
	dir := t.TempDir()
	o := &outcome{args: args, results: filepath.Join(dir, "results.csv")}
	o.code, o.output = macrostep(t, append([]string{"run", "--quiet", "--output", o.results}, args...)...)
	if data, err := os.ReadFile(filepath.Join(dir, "results.json")); err == nil {
		if err := json.Unmarshal(data, &o.manifest); err != nil {
			t.Fatalf("manifest: %v\n%s", err, data)
		}
	}
	o.read(t)
	return o
}

// read takes the results in, if there are any.
func (o *outcome) read(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(o.results); err != nil {
		return
	}
	rows := readCSV(t, o.results)
	o.columns = map[string][]float64{}
	o.rows = len(rows) - 1
	for c, name := range rows[0] {
		for _, row := range rows[1:] {
			v, err := strconv.ParseFloat(row[c], 64)
			if err != nil {
				break // a column of text
			}
			o.columns[name] = append(o.columns[name], v)
		}
	}
}

// complete runs a system like run, and fails unless the run completes.
func complete(t testing.TB, args ...string) *outcome {
	t.Helper()
	o := run(t, args...)
	if o.code != 0 || o.manifest.Status != "complete" {
		t.Fatalf("macrostep run %v: exit code %d, status %q, reason %q\n%s", args, o.code, o.manifest.Status, o.manifest.Reason, o.output)
	}
	return o
}

// ownCache gives a run that will be killed a cache of its own: what the program records about its FMUs must not
// affect other tests.
func ownCache(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	cmd.Env = append(cmd.Environ(), "XDG_CACHE_HOME="+dir, "LocalAppData="+dir)
}

// until waits until something has happened. The limit is long, since the machine may be busy.
func until(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !happened(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in five minutes: %s", what)
		}
	}
}

// written waits until a run has written so many bytes of a file.
func written(t testing.TB, path string, bytes int64) {
	t.Helper()
	until(t, "the run writes "+path, func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > bytes
	})
}

// column returns a result column.
func (o *outcome) column(t testing.TB, name string) []float64 {
	t.Helper()
	c, ok := o.columns[name]
	if !ok || len(c) != o.rows {
		t.Fatalf("the results have no column %q of numbers", name)
	}
	return c
}

// read returns a file, which must be there.
func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// write writes a file, and makes its folder.
func write[T string | []byte](t testing.TB, path string, content T) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// warnings returns those of the manifest, one a line.
func (o *outcome) warnings() string { return strings.Join(o.manifest.Warnings, "\n") }

func (o *outcome) notes() string { return strings.Join(o.manifest.Notes, "\n") }

// table returns the text of the results.
func (o *outcome) table(t testing.TB) string {
	t.Helper()
	return string(read(t, o.results))
}

// listed returns the names in a folder.
func listed(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// listener collects what a program that still runs has written.
type listener struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *listener) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// until waits for a text.
func (l *listener) until(t testing.TB, text string) {
	t.Helper()
	until(t, fmt.Sprintf("%q is written", text), func() bool { return strings.Contains(l.String(), text) })
}

// process is a call of the program that is under way.
type process struct {
	*exec.Cmd
	out listener
}

// start begins a call of the program in a folder of its own.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = t.TempDir()
	return started(t, cmd)
}

// started begins a call, with a cache of its own unless there is an environment.
func started(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	if cmd.Env == nil {
		ownCache(t, cmd)
	}
	p := &process{Cmd: cmd}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	return p
}

// path names a file in its folder.
func (p *process) path(name string) string { return filepath.Join(p.Dir, name) }

// manifest reads results.json.
func (p *process) manifest(t testing.TB) (m record.Manifest) {
	t.Helper()
	if err := json.Unmarshal(read(t, p.path("results.json")), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// signal sends a signal.
func (p *process) signal(t testing.TB, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

// end waits for the end and returns the exit code.
func (p *process) end() int {
	_ = p.Wait() // the exit code tells
	return p.ProcessState.ExitCode()
}

// call calls the program in a folder of its own, without reading results.
func call(t testing.TB, args ...string) *outcome {
	t.Helper()
	code, output := macrostep(t, args...)
	return &outcome{args: args, code: code, output: output}
}

// is checks the exit code and parts of the output.
func (o *outcome) is(t testing.TB, code int, parts ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("%v: exit code %d, want %d\n%s", o.args, o.code, code, o.output)
		return
	}
	for _, part := range parts {
		if !strings.Contains(o.output, part) {
			t.Errorf("%v: %q is not in\n%s", o.args, part, o.output)
		}
	}
}

// readCSV reads a table of texts.
func readCSV(t testing.TB, path string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(read(t, path))).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return rows
}

// most returns the largest magnitude.
func most(x []float64) (m float64) {
	for _, v := range x {
		m = max(m, math.Abs(v))
	}
	return m
}
