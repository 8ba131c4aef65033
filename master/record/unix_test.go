//go:build unix

package record

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/internal/parquetfile"
)

// A table that another program changes during the run is an error.
func TestTablesTouchedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name  string
		touch func(path string) error
		says  string
	}{
		{"nothing", func(string) error { return nil }, ""},
		{"removed", os.Remove, "was removed or renamed during the run"},
		{"renamed", func(path string) error { return os.Rename(path, path+".old") }, "was removed or renamed during the run"},
		{"replaced", func(path string) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, []byte("other"), 0o644))
		}, "was replaced by another file"},
		{"emptied", func(path string) error { return os.Truncate(path, 0) }, "was changed by another program during the run: it has 0 bytes"},
		{"longer", func(path string) error {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.WriteString("junk")
			}
			return errors.Join(err, f.Close())
		}, "was changed by another program during the run"},
	} {
		for _, more := range []bool{false, true} { // rows after it
			sys := testSystem(t)
			table := NewTable(filepath.Join(t.TempDir(), "r.csv"), Options{})
			attempts := NewAttempts(filepath.Join(t.TempDir(), "a.csv"), nil)
			for what, r := range map[string]struct {
				master.Recorder
				row  func() error
				path string
			}{
				"results":  {table, func() error { return table.Record(testPoint(sys)) }, table.path},
				"attempts": {attempts, func() error { return attempts.RecordAttempt(0, 1, master.Trial{}, true, nil) }, attempts.path},
			} {
				must(t, r.Begin(sys, nil))
				must(t, r.row())
				must(t, r.Flush())
				must(t, c.touch(r.path))
				var err error
				if more {
					must(t, r.row())
					err = r.Flush()
				}
				if end := r.End(master.Result{}); err == nil {
					err = end
				}
				if text := fmt.Sprint(err); (err == nil) != (c.says == "") || err != nil && !strings.Contains(text, r.path+" "+c.says) {
					t.Errorf("%s %s, more rows %v: %v", what, c.name, more, err)
				}
			}
		}
	}
}

// A named pipe without a reader is an error after a while. A reader that comes later gets
// all bytes, also more than the pipe holds.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	if f, err := create(path, os.O_TRUNC, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Fatalf("file %v, error %v", f, err)
	}
	got := make(chan string)
	go func() {
		time.Sleep(50 * time.Millisecond)
		data, err := os.ReadFile(path)
		got <- string(data) + strings.TrimPrefix(fmt.Sprint(err), "<nil>")
	}()
	f, err := create(path, 0, 5*time.Minute)
	must(t, err)
	long := strings.Repeat("0123456789", 50_000)
	_, err = f.WriteString(long)
	must(t, errors.Join(err, f.Close()))
	if text := <-got; text != long {
		t.Errorf("%d bytes of %d arrived", len(text), len(long))
	}
}

// On a full disk the file keeps whole rows, whose number is reported. A Parquet file
// still gets its footer, in the room of the row group that was truncated.
func TestTableWithoutRoom(t *testing.T) {
	if path := os.Getenv("RECORD_TEST_NO_ROOM"); path != "" { // the process with the limit
		f, err := FormatOf(path)
		must(t, err)
		sys := testSystem(t)
		c := begun(t, sys, path, Options{Format: f})
		p := testPoint(sys)
		for i := 0; err == nil && i < 1e6; i++ {
			vary(p, i)
			if err = c.Record(p); i%2000 == 0 && err == nil {
				err = checkpoint(c)
			}
		}
		end := c.End(master.Result{})
		if !errors.Is(err, syscall.EFBIG) || end == nil || end.Error() != err.Error() {
			t.Fatalf("%v\n%v", err, end)
		}
		at, _ := c.Newest()
		fmt.Printf("%d rows up to %g: %v\n", c.Rows(), at, err)
		return
	}
	sys := testSystem(t)
	for _, name := range []string{"r.csv", "r.parquet", "r.mat"} {
		path := filepath.Join(t.TempDir(), name)
		cmd := exec.Command("sh", "-c", `ulimit -f 1024; exec "$0" -test.run "^TestTableWithoutRoom$"`, os.Args[0])
		cmd.Env = append(os.Environ(), "RECORD_TEST_NO_ROOM="+path)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		var told int
		var upTo float64
		if _, err := fmt.Sscanf(string(out), "%d rows up to %g:", &told, &upTo); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		f, _ := FormatOf(path)
		p := testPoint(sys)
		rows := tableRows(t, f, path)
		if n := countRows(t, rows); n != told || n < 1000 || !strings.HasSuffix(rows, "\n") {
			t.Errorf("%s: %d rows, want %d", name, n, told)
		}
		vary(p, told-1)
		if p.T != upTo || !strings.Contains(rows, string(appendReal([]byte("\n"), p.T))+",") ||
			!strings.Contains(string(out), fmt.Sprintf("the rows up to t = %.12g s are kept", upTo)) {
			t.Errorf("%s: rows up to %g\n%s", name, upTo, out)
		}
	}
}

// A run that is faster than the reader of its results waits: memory is bounded.
func TestTableWaitsForReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // opening it for both does not block
	must(t, err)
	defer pipe.Close()
	sys := testSystem(t)
	c := begun(t, sys, path, Options{Select: selection(t, "all.y")})
	const rows = 600_000
	done := make(chan error)
	go func() {
		p := testPoint(sys)
		var err error
		for i := 0; i < rows && err == nil; i++ {
			p.T, p.Y[0] = float64(i), math.Sqrt(float64(i))
			err = c.Record(p)
		}
		done <- errors.Join(err, c.End(master.Result{}))
	}()
	last, since := -1, time.Now()
	for time.Since(since) < 200*time.Millisecond { // until the count stops changing
		if n := c.Rows(); n != last {
			last, since = n, time.Now()
		}
		time.Sleep(5 * time.Millisecond)
	}
	if most := c.ring.rows; last > most {
		t.Errorf("%d rows are accepted without a reader; there is room for %d", last, most)
	}
	text, buf := "", make([]byte, 1<<20)
	for strings.Count(text[max(0, len(text)-1<<20):], "\n") == 0 || !strings.HasSuffix(text, fmt.Sprintf("\n%d,%s\n", rows-1, appendReal(nil, math.Sqrt(rows-1)))) {
		n, err := pipe.Read(buf)
		must(t, err)
		text += string(buf[:n])
	}
	must(t, <-done)
	if n := strings.Count(text, "\n"); n != rows+1 {
		t.Errorf("%d lines", n)
	}
}

// A MAT cannot be written into a pipe.
func TestMatIntoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer pipe.Close()
	err = NewTable(path, Options{Format: MAT}).Begin(testSystem(t), nil)
	if err == nil || !strings.Contains(err.Error(), path+" is not a regular file") || !strings.Contains(err.Error(), "name a file, or use .csv") {
		t.Error(err)
	}
}

// Into a pipe, Salvage writes the rows that the process had not written.
func TestSalvagePipe(t *testing.T) {
	sys := testSystem(t)
	for _, f := range []Format{CSV, Parquet} {
		file := begun(t, sys, filepath.Join(t.TempDir(), "r"), Options{Format: f})
		recordRows(t, file, sys, 0, 20)
		must(t, file.End(master.Result{}))
		path := filepath.Join(t.TempDir(), "pipe")
		must(t, syscall.Mkfifo(path, 0o600))
		pipe, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		defer pipe.Close()
		memory := kept{}
		c := begun(t, sys, path, Options{Format: f, Memory: memory})
		recordRows(t, c, sys, 0, 10)
		must(t, checkpoint(c))
		recordRows(t, c, sys, 10, 20)
		must(t, c.file.Close())
		if s, err := Salvage(memory.find); err != nil || s.Rows != 20 || s.Added != 10 {
			t.Fatalf("%v: %+v, %v", f, s, err)
		}
		buf := make([]byte, 60_000) // less than a pipe holds
		n, err := pipe.Read(buf)
		must(t, err)
		got := ""
		if f == CSV {
			_, got, _ = strings.Cut(string(buf[:n]), "\n")
		} else {
			whole, broken, err := parquetfile.Open(bytes.NewReader(buf[:n]), int64(n))
			if must(t, err); !broken {
				t.Error("it has a footer")
			}
			got = string(parquetRows(t, whole))
		}
		if got != tableRows(t, f, file.path) {
			t.Errorf("%v: %s", f, got)
		}
	}
}
