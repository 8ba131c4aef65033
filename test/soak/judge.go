//go:build linux

package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// manifest is what is judged of the manifest.
type manifest struct {
	Status, Reason string
	Results        string // the table; "" = none
	Outcome        struct{ Stability string }
	Steps          struct{ Accepted int }
	EndTime        float64 `json:"end_time"`
	Warnings       []string
}

func (c *drawn) manifest() (*manifest, error) {
	data, err := os.ReadFile(filepath.Join(c.dir, "results.json"))
	if err != nil {
		return nil, err
	}
	if string(data) == oldResult {
		return nil, fs.ErrNotExist
	}
	m := &manifest{}
	return m, json.Unmarshal(data, m)
}

// The statuses of a manifest.
const (
	complete   = "complete"
	terminated = "terminated"
	incomplete = "incomplete"
	failed     = "failed"
)

// unfinished is the reason in a manifest of a run that has not come to its end.
const unfinished = "the run did not come to its end"

// memory is what a run may need at most, in MiB: most of it is the runtime's and the buffers'; an FMU that takes
// memory in the same process takes 256 more.
const memory = 300

// crash are texts that only a broken program prints.
var crash = []string{"panic:", "goroutine ", "fatal error:", "runtime error", "SIGSEGV: ", "unexpected fault", "DATA RACE"}

// judge checks what must be true however a run ends.
func judge(c *drawn, st step, e *end) (findings []string) {
	if e.skipped {
		return nil
	}
	found := func(format string, a ...any) { findings = append(findings, fmt.Sprintf(format, a...)) }
	code, signalled := e.code, e.signal != 0
	how := fmt.Sprintf("exit code %d", code)
	if signalled {
		how = "ended by " + e.signal.String()
	}
	crashed := ""
	for _, text := range crash {
		if i := strings.Index(e.output, text); i >= 0 && crashed == "" {
			crashed = line(e.output, i)
		}
	}
	c.once = c.once || c.killed
	c.killed = false
	switch {
	case e.hung && st.deaf:
		c.killed = true
	case e.hung:
		e.label = "outcome=no end"
		found("it does not end:\n%s", e.output)
		return findings
	case st.mayDie && (signalled || crashed != "" || code == 2 && st.closed == "stderr" || code == 7 ||
		strings.Contains(e.output, "terminate called") || strings.Contains(e.output, "an FMU has called exit")):
		c.killed = true
	case crashed != "":
		found("%s, and it prints %q", how, crashed)
	case signalled && e.sent && st.event.kind == kill:
		c.killed = true
	case signalled && e.sent && e.before == filesIn(c.dir):
		c.killed = true // before the program was ready for signals
	case signalled:
		found("%s", how)
	case code < 0 || code > 2:
		found("%s is none of 0, 1, 2", how)
	}
	if len(e.left) > 0 {
		found("%s, and processes are left: %v", how, e.left)
	}
	bound := memory
	if st.hogs {
		bound += 300
	}
	if e.peak > bound {
		found("%d MiB of memory, more than %d", e.peak, bound)
	}
	if !c.killed {
		left, err := os.ReadDir(filepath.Join(c.dir, "tmp"))
		if err != nil || len(left) > 0 {
			found("%s, and the temporary folder holds %v, %v", how, left, err)
		}
		for _, name := range c.stray() {
			if !c.once { // else it may be left of a file that was being replaced
				found("%s, and there is a stray file %s", how, name)
			}
		}
	}
	if !st.judged {
		e.label = "swept=yes"
		return findings
	}
	findings = append(findings, results(c, st, e, code, how)...)
	return findings
}

// line returns the line of a text around a place in it.
func line(text string, at int) string {
	from := strings.LastIndexByte(text[:at], '\n') + 1
	to := strings.IndexByte(text[at:], '\n')
	if to < 0 {
		return text[from:]
	}
	return text[from : at+to]
}

// stray lists unexpected files in the folder of the case.
func (c *drawn) stray() (names []string) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return []string{err.Error()}
	}
	known := []string{"system", "tmp", "cache", "results.csv", "results.json", "after.json", "trace.csv", "calls.txt",
		"input.csv", "run.checkpoint", "marker"}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// results judges exit code, manifest and table of a run.
func results(c *drawn, st step, e *end, code int, how string) (findings []string) {
	found := func(format string, a ...any) { findings = append(findings, fmt.Sprintf(format, a...)) }
	group := "outcome"
	if st.resume {
		group = "resumed"
	}
	now := filesIn(c.dir)
	m, err := c.manifest()
	if err != nil && !os.IsNotExist(err) {
		found("%s, and the manifest is not whole: %v", how, err)
	}
	if err == nil && code != 2 && now.manifest == e.before.manifest && now.results != e.before.results && !st.spoilt {
		found("%s, and results of this run stand beside the manifest of another", how)
	}
	switch {
	case c.killed:
		e.label = group + "=killed" // it may have come to its end before; then the table shows it
	case code == 2:
		e.label = group + "=refused"
		return append(findings, refused(c, st, e, now, how)...)
	default:
		e.label = group + "=none"
		if err == nil {
			e.label = group + "=" + m.Status
			findings = append(findings, fits(st, e, m, code, how)...)
		} else if os.IsNotExist(err) && !(code == 1 && (e.sent || e.limited || st.cheated)) {
			found("%s, and there is no manifest:\n%s", how, e.output)
		}
		if e.limited {
			e.label = group + "=took long"
		}
		if code == 1 && e.output == "" && st.closed != "stderr" {
			found("exit code 1, and not a word")
		}
	}
	if err != nil || m.Results == "" || st.spoilt || now.results == "" || now.results == e.before.results && !st.resume {
		return findings
	}
	// A resumed run cuts off the rows after its checkpoint when it has others.
	kept := st.resume && now.results == e.before.results && m.Status != complete
	return append(findings, rows(c, st, m, kept, how)...)
}

// refused judges a run that must not have begun.
func refused(c *drawn, st step, e *end, now files, how string) (findings []string) {
	if now != e.before {
		findings = append(findings, fmt.Sprintf("%s, and results have changed:\n%s", how, e.output))
	}
	if st.calls != "" && !st.resume {
		if data, err := os.ReadFile(filepath.Join(c.dir, st.calls)); err == nil && len(data) > 0 {
			findings = append(findings, fmt.Sprintf("%s, and FMUs were called:\n%s%s", how, clip(string(data)), e.output))
		}
	}
	if st.resume && !st.cheated {
		findings = append(findings, "a checkpoint of macrostep is refused:\n"+e.output)
	}
	return findings
}

// fits compares exit code and manifest.
func fits(st step, e *end, m *manifest, code int, how string) (findings []string) {
	grows := slices.Contains(st.args, "--strict") && (m.Outcome.Stability == "grows" || m.Outcome.Stability == "unstable")
	switch {
	case code == 0 && m.Status != complete && m.Status != terminated:
		findings = append(findings, "exit code 0, and the manifest says "+m.Status)
	case code == 1 && m.Status == complete && !st.cheated && !grows:
		findings = append(findings, "exit code 1, and the manifest says complete:\n"+e.output)
	}
	switch {
	case m.Status != complete && m.Reason == "":
		findings = append(findings, fmt.Sprintf("%s, and the manifest gives no reason why it is %s", how, m.Status))
	case m.Reason == unfinished && !st.cheated && !e.insisted:
		findings = append(findings, how+", and the manifest is that of the beginning")
	}
	return findings
}

// rows compares the table of results and the manifest.
func rows(c *drawn, st step, m *manifest, kept bool, how string) (findings []string) {
	found := func(format string, a ...any) { findings = append(findings, fmt.Sprintf(format, a...)) }
	t, err := readTable(filepath.Join(c.dir, "results.csv"))
	if err != nil {
		return []string{fmt.Sprintf("%s, and the results are not right: %v", how, err)}
	}
	if m.Reason == unfinished {
		return nil
	}
	if t.tail {
		found("%s, and the results do not end with a whole line", how)
	}
	if !st.thinned && !st.cheated && !kept {
		if want := m.Steps.Accepted + 1; t.rows != want && !(t.rows == 0 && m.Steps.Accepted == 0) {
			found("%s, %s, and the results have %d rows for %d steps: %s", how, m.Status, t.rows, m.Steps.Accepted, m.Reason)
		}
		if t.rows > 0 && t.last != m.EndTime {
			found("%s, %s, and the last row is that of t = %g, not of %g: %s", how, m.Status, t.last, m.EndTime, m.Reason)
		}
	}
	warned := func(w string) bool {
		return strings.Contains(w, "NaN") || strings.Contains(w, "infinite") || strings.Contains(w, "not finite")
	}
	if m.Status == complete && t.nan != "" && !slices.ContainsFunc(m.Warnings, warned) {
		found("complete, and %s, and no warning: %q", t.nan, m.Warnings)
	}
	return findings
}

func clip(s string) string {
	const most = 1000
	if len(s) > most {
		return s[:most] + "…\n"
	}
	return s
}

// table is the part of the results that is judged.
type table struct {
	rows int
	last float64 // time of the last row
	nan  string  // the first number that is none
	tail bool    // there is something behind the last newline
}

// readTable reads the results up to the last newline. The error describes what is wrong. Rows are not kept: the peak
// memory of a child includes that of its parent when it is started.
func readTable(path string) (*table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	whole, size, err := lastNewline(f)
	if err != nil {
		return nil, err
	}
	t := &table{last: math.Inf(-1), tail: whole < size}
	r := csv.NewReader(io.NewSectionReader(f, 0, whole))
	r.ReuseRecord = true
	names, err := r.Read()
	if err != nil {
		if whole == 0 {
			return t, nil
		}
		return nil, err
	}
	names = slices.Clone(names)
	if names[0] != "time" {
		return nil, fmt.Errorf("the first column is %q", names[0])
	}
	for {
		row, err := r.Read() // an error if it has another number of fields
		if row == nil {
			if err == io.EOF {
				return t, nil
			}
			return nil, err
		}
		if err != nil {
			return nil, err
		}
		now, err := strconv.ParseFloat(row[0], 64)
		if err != nil || !(now > t.last) {
			return nil, fmt.Errorf("row %d: the time %s does not follow on %g", t.rows+1, row[0], t.last)
		}
		t.last = now
		t.rows++
		for i, field := range row[1:] {
			x, err := strconv.ParseFloat(field, 64)
			if err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) && t.nan == "" {
				t.nan = fmt.Sprintf("%s is %s at t = %g s", names[i+1], field, now)
			}
		}
	}
}

// lastNewline returns the offset after the last newline, and the size.
func lastNewline(f *os.File) (whole, size int64, err error) {
	if size, err = f.Seek(0, io.SeekEnd); err != nil {
		return 0, 0, err
	}
	b := make([]byte, 1<<16)
	for to := size; to > 0; {
		n := min(to, int64(len(b)))
		to -= n
		if _, err := f.ReadAt(b[:n], to); err != nil {
			return 0, 0, err
		}
		if i := bytes.LastIndexByte(b[:n], '\n'); i >= 0 {
			return to + int64(i) + 1, size, nil
		}
	}
	return 0, size, nil
}
