//go:build unix

package record

import (
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
)

// A file that cannot grow any more keeps whole rows and tells how many. An Arrow file
// still gets its footer, in the room of the batch that was cut off.
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
	for _, name := range []string{"r.csv", "r.arrow", "r.arrows"} {
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
		if n := strings.Count(rows, "\"row "); n != told || n < 1000 || !strings.HasSuffix(rows, "\n") {
			t.Errorf("%s: %d rows, and %d are told", name, n, told)
		}
		vary(p, told-1)
		if p.T != upTo || !strings.Contains(rows, string(appendReal([]byte("\n"), p.T))+",") || !strings.Contains(string(out), fmt.Sprintf("the rows up to t = %.12g s are kept", upTo)) {
			t.Errorf("%s: rows up to %g\n%s", name, upTo, out)
		}
	}
}

// A run that is faster than what takes its results waits: memory is bounded.
func TestTableWaitsForReader(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // so that opening it waits for nobody
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
	for time.Since(since) < 200*time.Millisecond { // until it stands still
		if n := c.Rows(); n != last {
			last, since = n, time.Now()
		}
		time.Sleep(5 * time.Millisecond)
	}
	if most := c.ring.rows; last > most {
		t.Errorf("%d rows are taken that nobody reads; there is room for %d", last, most)
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
