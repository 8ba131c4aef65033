package simulate

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
)

// Messages of the level asked for become events, with their attributes as facts.
func TestMessages(t *testing.T) {
	var lines []string
	e := newEvents(func(e Event) { lines = append(lines, e.String()) }, slog.LevelWarn)
	log := e.logger()
	log.Warn("it is hot", "slave", "wheel", "t", 0.5)
	log.Info("not shown")
	log.With("slave", "chassis").WithGroup("g").Error("gone", "err", errors.New("no"))
	if want := []string{"warning: it is hot (slave=wheel t=0.5)", "error: gone (slave=chassis g.err=no)"}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}
