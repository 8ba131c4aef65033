package simulate

import (
	"errors"
	"log/slog"
	"testing"
)

// Messages of the level asked for become events, with their attributes as facts; a run
// that begins anew does not repeat them, unless they come more often.
func TestMessages(t *testing.T) {
	var lines []string
	e := newEvents(func(e Event) { lines = append(lines, e.String()) }, slog.LevelWarn)
	say := func() {
		log := e.logger()
		log.Warn("it is hot", "slave", "wheel", "t", 0.5)
		log.Info("not shown")
		log.With("slave", "chassis").WithGroup("g").Error("gone", "err", errors.New("no"))
	}
	expect := func(want ...string) {
		t.Helper()
		if len(lines) != len(want) {
			t.Fatalf("%q, want %q", lines, want)
		}
		for i := range want {
			if lines[i] != want[i] {
				t.Errorf("%q, want %q", lines[i], want[i])
			}
		}
		lines = nil
	}
	say()
	expect("warning: it is hot (slave=wheel t=0.5)", "error: gone (slave=chassis g.err=no)")
	e.anew("two workers pay")
	expect("two workers pay")
	say()
	e.logger().Error("gone", "slave", "chassis", "g.err", "no")
	expect("error: gone (slave=chassis g.err=no)")
}
