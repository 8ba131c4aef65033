package worker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/worker"
)

// The error for a process that ended quotes its last messages, including dropped ones.
func TestLastMessages(t *testing.T) {
	t.Setenv("KILL", "flood@fmi2DoStep@0.5")
	_, err := live(killer(t), fmi.InstanceOptions{Launcher: &worker.Launcher{TempDir: t.TempDir()}})
	if want := "its last messages: message 4997; message 4998; message 4999; message 5000; about to flood"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%q is not in: %v", want, err)
	}
}

// An FMU that overwrites the memory shared with the master ends only its process. The error names the
// cause, without a stack trace of Go.
func TestScribble(t *testing.T) {
	found := 0
	for _, fault := range []string{"scribble0", "scribble1", "scribble7", "scribble255"} {
		for _, place := range []string{"fmi2DoStep", "fmi2GetReal", "fmi2SetReal", "fmi2SetFMUstate"} {
			t.Setenv("KILL", fault+"@"+place+"@0.5")
			temp := t.TempDir()
			_, err := live(killer(t), fmi.InstanceOptions{Launcher: &worker.Launcher{TempDir: temp, Timeout: 2 * time.Second}})
			if err == nil {
				remains(t, temp)
				continue // what was written over was written again before anyone read it
			}
			found++
			var lost *fmi.ProcessError
			if !errors.As(err, &lost) {
				t.Fatalf("%s in %s: error %v", fault, place, err)
			}
			if text := err.Error(); strings.Contains(text, "goroutine") || strings.Contains(text, "worker.Main") ||
				!strings.Contains(text, "written over memory") && !strings.Contains(text, "did not return") && !strings.Contains(text, "sent an invalid answer") {
				t.Errorf("%s in %s: %v", fault, place, err)
			}
			remains(t, temp)
		}
	}
	if found < 8 {
		t.Errorf("%d of 16 were found", found)
	}
}
