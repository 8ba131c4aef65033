//go:build linux

package main

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/probe"
)

// bench is a platform with a folder for its program and systems.
type bench struct {
	*platform
	dir string
}

// pair couples a healthy FMU with one that misbehaves.
const pair = `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="pair"
    xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <ssd:System name="pair">
    <ssd:Elements>
      <ssd:Component name="good" source="resources/mass_force.fmu"><ssd:Connectors>
        <ssd:Connector name="F" kind="input"><ssc:Real/></ssd:Connector><ssd:Connector name="x" kind="output"><ssc:Real/></ssd:Connector>
      </ssd:Connectors></ssd:Component>
      <ssd:Component name="bad" source="resources/misbehave.fmu"><ssd:Connectors>
        <ssd:Connector name="u" kind="input"><ssc:Real/></ssd:Connector><ssd:Connector name="x" kind="output"><ssc:Real/></ssd:Connector>
      </ssd:Connectors></ssd:Component>
    </ssd:Elements>
    <ssd:Connections>
      <ssd:Connection startElement="good" startConnector="x" endElement="bad" endConnector="u"/>
      <ssd:Connection startElement="bad" startConnector="x" endElement="good" endConnector="F"/>
    </ssd:Connections>
  </ssd:System>
  <ssd:DefaultExperiment startTime="0" stopTime="1"/>
</ssd:SystemStructureDescription>
`

// systems are the names of the systems.
var systems = []string{"quarter-car-a", "two-mass-ff", "two-mass-fd", "pair"}

// writeNames writes an FMU, with sources only, that has functions with names of the C library.
func writeNames(path string) error {
	const own = "#pragma GCC visibility push(default)\ndouble step(double x) { return x + 1; }\ndouble j1(double x) { return 2 * x; }\n"
	_, err := probe.Zip(path, "modelDescription.xml", probe.LifeDescription("", ""), "sources/fmi2Functions.h", string(csrc.Header),
		"sources/life.c", own+strings.Replace(probe.LifeSource(), "y = m->x", "y = step(j1(m->x))", 1))
	return err
}

// newBench builds program and systems for a platform, the FMUs from those of here, unless that is nil.
func newBench(dir string, p *platform, here *bench) (*bench, error) {
	b := &bench{p, dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	program := b.program()
	if p.goos == "windows" {
		program += ".exe"
	}
	build := exec.Command("go", "build", "-o", program, "github.com/macrostep/macrostep/cmd/macrostep")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.goos, "GOARCH="+p.goarch)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building macrostep: %w\n%s", err, out)
	}
	for _, name := range systems {
		document := []byte(pair)
		if name != "pair" {
			var err error
			if document, err = fmus.SystemDocument(name); err != nil {
				return nil, err
			}
		}
		if err := b.write(name, document, here); err != nil {
			return nil, err
		}
	}
	sources := filepath.Join(dir, "sources.fmu")
	if err := writeNames(sources); err != nil {
		return nil, err
	}
	if err := b.extend(sources, filepath.Join(dir, "names.fmu"), "life"); err != nil {
		return nil, err
	}
	if p.prepare == nil {
		return b, nil
	}
	return b, p.prepare(p, dir)
}

func (b *bench) program() string { return filepath.Join(b.dir, "macrostep") }

// write creates the folder of a system with the FMUs of its document.
func (b *bench) write(name string, document []byte, here *bench) error {
	resources := filepath.Join(b.dir, name, "resources")
	if err := os.MkdirAll(resources, 0o755); err != nil {
		return err
	}
	for part := range strings.SplitSeq(string(document), `source="resources/`) {
		fmu, _, ok := strings.Cut(part, ".fmu\"")
		if !ok || strings.ContainsAny(fmu, "<> ") {
			continue // text before the first FMU
		}
		built := filepath.Join(b.dir, fmu+".fmu") // shared by several systems
		if _, err := os.Stat(built); err != nil {
			if here == nil {
				_, err = fmus.Build(b.dir, fmu)
			} else {
				err = b.extend(filepath.Join(here.dir, fmu+".fmu"), built, fmu)
			}
			if err != nil {
				return err
			}
		}
		place := filepath.Join(resources, fmu+".fmu")
		if err := os.Remove(place); err != nil && !os.IsNotExist(err) { // of an earlier run in this folder
			return err
		}
		if err := os.Link(built, place); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(b.dir, name, "SystemStructure.ssd"), document, 0o644)
}

// extend copies an FMU and adds a library for the platform, compiled from its sources.
func (b *bench) extend(from, to, name string) (err error) {
	old, err := zip.OpenReader(from)
	if err != nil {
		return err
	}
	defer old.Close()
	dir, err := os.MkdirTemp(b.dir, "sources-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	library := name + b.extension
	args := append(slices.Clone(b.compiler[1:]), "-o", library)
	for _, f := range old.File {
		source, ok := strings.CutPrefix(f.Name, "sources/")
		if !ok {
			continue
		}
		in, err := f.Open()
		if err != nil {
			return err
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, source), data, 0o644); err != nil {
			return err
		}
		if strings.HasSuffix(source, ".c") {
			args = append(args, source)
		}
	}
	cc := exec.Command(b.compiler[0], append(args, "-lm")...)
	cc.Dir = dir
	if out, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("%s for %s: %w\n%s", b.compiler[0], name, err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, library))
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	z := zip.NewWriter(out)
	for _, f := range old.File {
		if err := z.Copy(f); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	w, err := z.Create("binaries/" + b.folder + "/" + library)
	if err == nil {
		_, err = w.Write(data)
	}
	return errors.Join(err, z.Close(), out.Close())
}

// result is the result of a run.
type result struct {
	code   int
	output string
	csv    string
	status string
	reason string
	warned string // the warnings, one a line
	trail  string // what the FMU has left in files
}

// deadline ends a run that hangs; emulation is slow.
const deadline = 60 * time.Second

// run runs the program in its own folder; {} in the arguments is the folder of the systems, {here} its own.
func (b *bench) run(dir string, args ...string) (*result, error) {
	dir = filepath.Join(b.dir, "runs", dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	systems, err := filepath.Rel(dir, b.dir)
	if err != nil {
		return nil, err
	}
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.NewReplacer("{}", systems, "{here}", b.drive+dir).Replace(args[i])
	}
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	words := b.start(b.program(), args)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache")), b.env...)
	// A file, because services of Wine would keep a pipe open.
	said, err := os.Create(filepath.Join(dir, "output.txt"))
	if err != nil {
		return nil, err
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("%v: %w", words, err)
	}
	out, err := os.ReadFile(said.Name())
	if err != nil {
		return nil, err
	}
	r := &result{code: cmd.ProcessState.ExitCode(), output: strings.ReplaceAll(string(out), "\r\n", "\n")}
	if data, err := os.ReadFile(filepath.Join(dir, "results.csv")); err == nil {
		r.csv = string(data)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "results.json")); err == nil {
		var m struct {
			Status, Reason string
			Warnings       []string
		}
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, err
		}
		r.status, r.reason, r.warned = m.Status, m.Reason, strings.Join(m.Warnings, "\n")
	}
	for _, kind := range []string{"log", "buffered", "handler", "destructor"} {
		text, _ := os.ReadFile(filepath.Join(dir, "trail."+kind)) // most runs leave none
		r.trail += fmt.Sprintf("%s %q\n", kind, strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	return r, nil
}

// check is a run on both platforms.
type check struct {
	name  string
	args  []string
	code  int
	says  []string // parts of the reason
	logs  string   // part of the messages that must be equal on both platforms; "" = none are compared
	alone bool     // its FMUs are isolated
	warns string   // part of a warning
	equal string   // earlier check with an equal table; "" = the table is compared with that of the other platform
	after string   // check in whose folder it runs; "" = its own folder
	// within is the largest difference of tables; 0 = tolerance.
	within float64
}

func checks() []check {
	bad := func(fault string, more ...string) []string {
		return append([]string{"run", "{}/pair", "--step-size", "0.1", "--set", "bad.fault=" + fault, "--set", "bad.at=0.35", "--isolate", "always"}, more...)
	}
	trail := func(more ...string) []string {
		return append([]string{"run", "{}/pair", "--step-size", "0.1", "--set", "bad.trail={here}/trail"}, more...)
	}
	last := func(fault, during, isolate string) []string {
		return []string{"run", "{}/pair", "--step-size", "0.1", "--set", "bad.fault=" + fault, "--set", "bad.during=" + during, "--isolate", isolate}
	}
	// The function of the step is only known with shared memory.
	ended := []string{"bad (misbehave.fmu): step from t = 0.4 s by 0.1 s: bad: the process of misbehave.fmu ended in fmi2", "fmi2DoStep", " at t = 0.4 s: "}
	return []check{
		{name: "quarter car", args: []string{"run", "{}/quarter-car-a", "--stop-time", "1", "--isolate", "never"}},
		{name: "names of the C library", args: []string{"run", "{}/names.fmu", "--stop-time", "1"}},
		{name: "input derivatives", args: []string{"run", "{}/two-mass-fd", "--param", "order=3"}},
		{name: "two workers", args: []string{"run", "{}/two-mass-fd", "--param", "order=3", "--workers", "2"}, equal: "input derivatives"},
		{name: "rollback, fixed steps", args: []string{"run", "{}/two-mass-ff", "--algorithm", "implicit"}},
		// Go contracts x*y + z on arm64. The error estimate is a difference of nearly
		// equal numbers, and step sizes follow from it.
		{name: "rollback, variable steps", args: []string{"run", "{}/two-mass-ff", "--algorithm", "im-slocal"}, within: 1e-9},
		{name: "logger", args: []string{"run", "{}/pair", "--step-size", "0.1", "--set", "bad.fault=LogFormats", "--set", "bad.at=0.35"}, logs: "slave=bad"},
		{name: "resumed", args: []string{"run", "{}/quarter-car-a", "--stop-time", "1", "--checkpoint", "0.3", "run.checkpoint"}, equal: "quarter car"},
		{name: "resumed, from the checkpoint on", args: []string{"run", "--resume", "run.checkpoint"}, equal: "quarter car", after: "resumed"},
		{name: "isolated", args: []string{"run", "{}/quarter-car-a", "--stop-time", "1", "--isolate", "always"}, alone: true, equal: "quarter car"},
		{name: "isolated, logger", args: bad("LogFormats"), alone: true, logs: "slave=bad", equal: "logger"},
		{name: "isolated, segmentation fault", args: bad("Segfault"), alone: true, code: 1, says: ended},
		{name: "isolated, abort", args: bad("Abort"), alone: true, code: 1, says: ended},
		{name: "isolated, exit", args: bad("Exit7"), alone: true, code: 1, says: append(slices.Clip(ended), "it exited with code 7")},
		{name: "isolated, endless loop", args: bad("EndlessLoop", "--step-timeout", "1"), alone: true, code: 1, says: append(slices.Clip(ended), "it did not return within 1s")},
		{name: "trail", args: trail("--isolate", "never"), logs: "trail: step"},
		{name: "isolated, trail", args: trail("--isolate", "always"), alone: true},
		{name: "error at the end", args: last("Error", "Terminate", "never"), warns: "bad (misbehave.fmu): ending: bad: fmi2Terminate returned Error"},
		{name: "abort at the end", args: last("Abort", "FreeInstance", "never"), alone: true, warns: "bad (misbehave.fmu) in fmi2FreeInstance at t = 1 s: "},
		{name: "isolated, abort at the end", args: last("Abort", "FreeInstance", "always"), alone: true, warns: "the process of misbehave.fmu ended in fmi2FreeInstance at t = 1 s: "},
	}
}

// compare runs the checks on both platforms and returns the number of failures on there.
func compare(here, there *bench) (failed int, _ error) {
	tables := map[string]string{}
	for _, c := range checks() {
		begun := time.Now()
		if c.alone && !there.isolates {
			fmt.Printf("%s: %s: NOT TRIED; absent: binfmt_misc for arm64, and namespaces with their own (Linux 6.7)\n", there.name(), c.name)
			continue
		}
		folder := c.name
		if c.after != "" {
			folder = c.after
		}
		want, err := here.run(filepath.Join(there.goos+"-"+there.goarch, folder), c.args...)
		if err != nil {
			return failed, err
		}
		got, err := there.run(folder, c.args...)
		if err != nil {
			return failed, err
		}
		if faults := c.faults(want, nil); len(faults) > 0 {
			return failed, fmt.Errorf("%s fails here, too: %s\n%s", c.name, strings.Join(faults, "; "), want.output)
		}
		faults := c.faults(got, want)
		tables[c.name] = got.csv
		how := ""
		if c.equal != "" {
			how = ", the bytes of " + c.equal
			if got.csv != tables[c.equal] {
				faults = append(faults, "the table is not that of "+c.equal)
			}
		} else {
			rows, d, err := difference(want.csv, got.csv)
			how = fmt.Sprintf(", %d rows, largest difference %.2g", rows, d)
			if err != nil {
				faults = append(faults, err.Error())
			} else if within := cmp.Or(c.within, tolerance); !(d <= within) {
				faults = append(faults, fmt.Sprintf("the difference is %.2g, above %g", d, within))
			}
		}
		if len(faults) > 0 {
			failed++
			fmt.Printf("%s: %s: FAILED: %s\n%s", there.name(), c.name, strings.Join(faults, "; "), got.output)
			continue
		}
		if got.reason != "" {
			how += ": " + got.reason
		}
		fmt.Printf("%s: %s: right%s (%.1f s)\n", there.name(), c.name, how, time.Since(begun).Seconds())
	}
	return failed, nil
}

// faults lists the faults of a run, also in comparison with the other platform, unless other is nil.
func (c *check) faults(r, other *result) (faults []string) {
	status := map[int]string{0: "complete", 1: "failed"}[c.code]
	if r.code != c.code || r.status != status {
		faults = append(faults, fmt.Sprintf("exit code %d, status %q, want %d, %q", r.code, r.status, c.code, status))
	}
	for _, s := range c.says {
		if !strings.Contains(r.reason, s) {
			faults = append(faults, fmt.Sprintf("the reason lacks %q", s))
		}
	}
	if !strings.Contains(r.warned, c.warns) {
		faults = append(faults, fmt.Sprintf("the warnings lack %q", c.warns))
	}
	if other != nil && r.trail != other.trail {
		faults = append(faults, fmt.Sprintf("it has left %s and not %s", r.trail, other.trail))
	}
	if c.logs == "" {
		return faults
	}
	said := matching(r.output, c.logs)
	if len(said) == 0 {
		return append(faults, "nothing is logged")
	}
	if other != nil {
		for i, line := range matching(other.output, c.logs) {
			if i >= len(said) || said[i] != line {
				return append(faults, fmt.Sprintf("the message %q is missing", line))
			}
		}
	}
	return faults
}

func matching(text, with string) (lines []string) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, with) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// tolerance is the largest difference of tables, relative to the largest value of a column.
const tolerance = 1e-12

// difference returns the number of rows of a table, and the largest difference from another, relative to the largest
// value of the column.
func difference(want, got string) (rows int, d float64, err error) {
	a, err := csv.NewReader(strings.NewReader(want)).ReadAll()
	if err != nil {
		return 0, 0, err
	}
	b, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil {
		return 0, 0, err
	}
	if len(a) != len(b) || len(a) < 2 || !slices.Equal(a[0], b[0]) {
		return len(b) - 1, math.NaN(), fmt.Errorf("the table has %d lines, and should have %d, or other columns", len(b), len(a))
	}
	for column := range a[0] {
		largest, apart := 0.0, 0.0
		for row := range a[1:] {
			x, err := strconv.ParseFloat(a[row+1][column], 64)
			y, failed := strconv.ParseFloat(b[row+1][column], 64)
			if err != nil || failed != nil {
				return len(b) - 1, math.NaN(), errors.Join(err, failed)
			}
			largest, apart = max(largest, math.Abs(x)), max(apart, math.Abs(x-y))
		}
		if apart != 0 { // NaN, too
			d = max(d, apart/largest)
		}
	}
	return len(b) - 1, d, nil
}
