//go:build unix

package study

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// alone runs the test in a process of its own, since the limit holds for all files of a process. It reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	const variable = "STUDY_TEST_ALONE"
	if os.Getenv(variable) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// full limits the size of files, as a full disk does, until room is called.
func full(t *testing.T, bytes int64) (room func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limit := before
	limit.Cur = uint64(bytes)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	room = func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(room)
	return room
}

// On a full disk, the table of a study ends with a whole row, and nothing half-written is left. The study goes on when there
// is room again.
func TestFolderFull(t *testing.T) {
	if !alone(t) {
		return
	}
	text := "{system: s, vary: {a.x: 'linear(1, 5, 5)'}, collect: {y: final(a.y)}}"
	p := mustParse(t, text)
	path := filepath.Join(t.TempDir(), "study")
	f, err := Create(path, p, []byte(text), &Inspection{})
	if err != nil {
		t.Fatal(err)
	}
	design, err := p.Variants()
	if err != nil {
		t.Fatal(err)
	}
	results := filepath.Join(path, ResultsFile)
	content := func() string {
		data, err := os.ReadFile(results)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	refused := func(err error, name string) {
		t.Helper()
		for _, part := range []string{name + " cannot be written", "file too large", "raise the limit"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v has no %q", err, part)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(path, "*.partial")); left != nil {
			t.Errorf("left behind: %q", left)
		}
	}
	add := func(k int) error { return f.Add(p.NoRow(design.List[k], Failed, "why")) }
	for _, k := range []int{3, 1} {
		if err := add(k); err != nil {
			t.Fatal(err)
		}
	}
	before := content()
	for range 2 {
		room := full(t, int64(len(before)+5))
		refused(add(0), ResultsFile)
		if now := content(); now != before {
			t.Errorf("the table is %q, and was %q", now, before)
		}
		room()
	}
	if err := add(0); err != nil || len(f.Rows()) != 3 {
		t.Fatalf("%v, %d rows", err, len(f.Rows()))
	}
	before = content()
	room := full(t, 20)
	refused(f.Sort(), ResultsFile)
	refused(f.WriteFile(PageFile, func(w io.Writer) error { _, err := io.WriteString(w, before); return err }), PageFile)
	_, err = Conclude(f, &Findings{Rows: f.Rows()})
	refused(err, ReportFile)
	refused(err, ParquetFile)
	if now := content(); now != before {
		t.Errorf("the table is %q, and was %q", now, before)
	}
	room()
	if err := add(4); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if f, err = OpenFolder(path, ReadWrite); err != nil {
		t.Fatal(err)
	}
	found, err := (&Study{Plan: f.Plan, Folder: f}).Run(t.Context(), function{f.Plan, func([]float64) []float64 { return []float64{1} }})
	if err != nil || len(found.Rows) != 5 || found.Rows[2].Status != OK {
		t.Errorf("%v, %+v", err, found.Rows)
	}
	if err := f.Sort(); err != nil {
		t.Fatal(err)
	}
	if table, err := readTable(results); err != nil || !slices.EqualFunc(table.Rows, []string{"0", "1", "2", "3", "4"}, func(row []string, id string) bool { return row[0] == id }) {
		t.Errorf("%v, %v", err, table)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A run whose table cannot be written, because the disk is full, has no row: it ends the study, which goes on when there is room.
func TestRunFull(t *testing.T) {
	if !alone(t) {
		return
	}
	dir := t.TempDir()
	if _, err := fmus.WriteSystem(dir, "two-mass-ff"); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, "runs")
	if err := os.Mkdir(kept, 0o777); err != nil {
		t.Fatal(err)
	}
	p, err := Parse(filepath.Join(dir, "study.yaml"), []byte("{system: two-mass-ff.ssp, run: {stop-time: 2}, vary: {coupling.c_c: [300, 400, 500]}, collect: {x: final(mass1.x)}, keep: all}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), p, Options{Kept: kept})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	study := func() (*Findings, error) { return (&Study{Plan: p}).Run(context.Background(), Local(m, 2)) }
	room := full(t, 40_000)
	found, err := study()
	if err == nil || !strings.Contains(err.Error(), kept) || !strings.Contains(err.Error(), "file too large") || len(found.Rows) > 0 {
		t.Errorf("%v, %+v", err, found.Rows)
	}
	room()
	if err := errors.Join(os.RemoveAll(kept), os.WriteFile(kept, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	if found, err := study(); err == nil || !strings.Contains(err.Error(), kept) || len(found.Rows) > 0 {
		t.Errorf("with a file in the place of the folder: %v, %+v", err, found.Rows)
	}
	if err := errors.Join(os.Remove(kept), os.Mkdir(kept, 0o777)); err != nil {
		t.Fatal(err)
	}
	if found, err := study(); err != nil || len(found.Rows) != 3 || found.Rows[0].Status != OK {
		t.Errorf("%v, %+v", err, found.Rows)
	}
}
