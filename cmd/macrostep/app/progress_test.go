package app

import (
	"bytes"
	"errors"
	"flag"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/simulate"
)

var update = flag.Bool("update", false, "write golden files anew")

func TestProgressLine(t *testing.T) {
	now := master.Progress{T: 2.5, Start: 0, Stop: 10, Steps: 25000, Wall: 5 * time.Second}
	begun := now
	begun.Start, begun.Steps = 2.5, 0
	for _, c := range []struct {
		now  master.Progress
		from sample
		want string
	}{
		{now, sample{}, "t = 2.5 of 10 s   25 %  0.5 × real time  5k steps/s  15 s left"},
		// Speed since the last sample, share of the whole run.
		{now, sample{wall: 4 * time.Second, t: 0.5, steps: 5000}, "t = 2.5 of 10 s   25 %  2 × real time  20k steps/s  3.8 s left"},
		{begun, sample{t: 2.5}, "t = 2.5 of 10 s    0 %  0 × real time  0 steps/s  ? left"},
	} {
		if got := progressLine(c.now, c.from); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// A run of 20 s reports its progress every 5 s; on a terminal it rewrites one line. A short run shows
// none.
func TestProgressPlaces(t *testing.T) {
	observe := func(con *console) {
		p := newProgress(con, 0)
		for wall := 250 * time.Millisecond; wall <= 20*time.Second; wall += 250 * time.Millisecond {
			p.observe(master.Progress{T: wall.Seconds(), Stop: 20, Steps: int(wall / time.Millisecond), Wall: wall})
		}
	}
	var b bytes.Buffer
	observe(newConsole(&b))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "t = 5 of 20 s") || !strings.HasPrefix(lines[3], "t = 20 of 20 s  100 %  1 × real time  1k steps/s") {
		t.Errorf("without terminal: %q", lines)
	}
	b.Reset()
	con := newConsole(&b)
	con.terminal = func() (int, bool) { return 40, true }
	observe(con)
	if strings.Contains(b.String(), "\n") || strings.Count(b.String(), "t = ") != 77 {
		t.Errorf("on a terminal: %q", b.String())
	}
	for part := range strings.SplitSeq(b.String(), "\r") {
		if len([]rune(part)) >= 40 {
			t.Errorf("a line of %d characters wraps: %q", len([]rune(part)), part)
		}
	}
	con.clear()
	if !strings.HasSuffix(b.String(), " \r") {
		t.Error("the line is not cleared")
	}
	b.Reset()
	newProgress(con, 0).observe(master.Progress{T: 0.1, Stop: 1, Steps: 100, Wall: 900 * time.Millisecond})
	if b.Len() > 0 {
		t.Errorf("a short run shows %q", b.String())
	}
}

func TestDuration(t *testing.T) {
	for s, want := range map[float64]string{
		0: "0 s", 0.00038: "0.38 ms", 0.0123: "0.012 s", 0.5: "0.5 s", 9.94: "9.9 s", 9.96: "10 s", 59.4: "59 s", 59.7: "1 min 0 s",
		200: "3 min 20 s", 3599.6: "1 h 0 min", 7500: "2 h 5 min", 200000: "2 days 7 h", 1e12: "very long",
	} {
		if got := duration(s); got != want {
			t.Errorf("%g: %s, want %s", s, got, want)
		}
	}
}

func TestMicro(t *testing.T) {
	for s, want := range map[float64]string{0: "0 ns", 2.1e-8: "21 ns", 9.9951e-7: "1 µs", 0.0002: "200 µs", 0.0028249: "2.82 ms", 1.5: "1.5 s"} {
		if got := micro(s); got != want {
			t.Errorf("%g: %s, want %s", s, got, want)
		}
	}
}

func TestShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.01234: "0.0123", 5: "5", 999: "999", 999.9: "1k", 12345: "12.3k", 999_600: "1M", 2.5e6: "2.5M"} {
		if got := short(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}

// Messages are printed above the line of progress, errors when the run goes on or ends with an error that does not quote them.
func TestConsole(t *testing.T) {
	var b bytes.Buffer
	con := newConsole(&b)
	con.terminal = func() (int, bool) { return 80, true }
	con.status("half way")
	con.log(simulate.Event{Level: slog.LevelWarn, Text: "it is hot", Facts: " (slave=wheel t=0.5)"})
	con.log(simulate.Event{Level: slog.LevelError, Text: "gone", Facts: " (slave=chassis g.err=no)"})
	con.settle(nil)
	con.log(simulate.Event{Level: slog.LevelError, Text: "singular:\n  y = 1/0", Facts: " (slave=chassis)"})
	con.log(simulate.Event{Level: slog.LevelError, Text: "other"})
	con.settle(errors.New("fmi2DoStep returned Error; it says: singular: y = 1/0"))
	want := "\rhalf way" + "\r        \r" + "warning: it is hot (slave=wheel t=0.5)\n" + "half way" +
		"\r        \r" + "error: gone (slave=chassis g.err=no)\n" + "half way" + "\r        \r" + "error: other\n" + "half way"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if !con.printed("it is hot") || con.printed("not shown") || con.printed("gone") {
		t.Error("what was printed is not known")
	}
}
