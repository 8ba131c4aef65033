package test

import (
	"bufio"
	"bytes"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/test/long"
)

// The page of a run steps and stops it, even if the FMUs could take many macro steps at once.
func TestLiveSteps(t *testing.T) {
	run := startLive(t, "run", system(t, "quarter-car-a"), "--live", "0", "--debug", "live-paused",
		"--stop-time", "1000", "--step-size", "1e-4", "--record", "none")
	for _, name := range []string{"step", "step", "step"} {
		command(t, run.at("command/"+name))
	}
	// The steps are taken before the run sees that it is to stop.
	run.says(t, "3 macro steps")
	command(t, run.at("command/stop"))
	if code, m := run.end(), run.manifest(t); code != 1 || m.Status != "incomplete" || m.Steps.Accepted != 3 {
		t.Errorf("%s: %s after %d steps", m.Status, m.Reason, m.Steps.Accepted)
	}
}

// liveProcess is a run that serves its page.
type liveProcess struct {
	*process
	address string
}

// at returns the address of another resource of the server.
func (l *liveProcess) at(path string) string {
	return strings.Replace(l.address, "/?", "/"+path+"?", 1)
}

// startLive starts a run with --live and waits for its address.
func startLive(t *testing.T, args ...string) *liveProcess {
	t.Helper()
	run := &liveProcess{process: start(t, args...)}
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`)
	until(t, "an address", func() bool { run.address = address.FindString(run.out.String()); return run.address != "" })
	return run
}

// Pausing and stepping a run changes no results, with scenario, threads, isolation or real time.
func TestLiveWith(t *testing.T) {
	take := long.Sample(11)
	scenario := filepath.Join(t.TempDir(), "s.yaml")
	write(t, scenario, "events:\n  - {at: 0.02, set: {wheel.v_c: 1}, for: 0.1}\nexpect:\n  - {variable: wheel.v_c, at: 0.05, value: 1, tolerance: 0}\n")
	for _, args := range [][]string{
		{"--scenario", scenario}, {"--workers", "2"}, {"--isolate", "always",
			"--step-timeout", "5"}, {"--realtime"}, {"--realtime", "--overrun", "skip", "--scenario", scenario}, {"--algorithm", "im-slocal", "--param", "control.step=fixed"},
	} {
		if !take() {
			continue
		}
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			args := append([]string{"run", system(t, "quarter-car-a"), "--stop-time", "0.3"}, args...)
			plain := t.TempDir()
			if code, output := macrostepIn(t, plain, args...); code != 0 {
				t.Fatalf("exit code %d\n%s", code, output)
			}
			run := startLive(t, append(args, "--live", "0", "--debug", "live-paused")...)
			command(t, run.at("command/step"))
			run.says(t, "1 macro step")
			if slices.Contains(args, "--step-timeout") {
				time.Sleep(6 * time.Second) // longer than the time an FMU may take
			}
			command(t, run.at("command/step"))
			command(t, run.at("command/resume"))
			code, m := run.end(), run.manifest(t)
			if code != 0 || m.Status != "complete" || !bytes.Equal(read(t, filepath.Join(plain, "results.csv")),
				read(t, filepath.Join(run.Dir, "results.csv"))) {
				t.Errorf("%s, or other results", m.Status)
			}
			if rt := m.Realtime; rt != nil && !(rt.Paused > 0) { // TestResync: nothing has to be caught up
				t.Errorf("%g s of pauses", rt.Paused)
			}
		})
	}
}

// says waits until the run says something about its state.
func (l *liveProcess) says(t *testing.T, text string) {
	t.Helper()
	answer, err := http.Get(l.at("events"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	events := bufio.NewScanner(answer.Body)
	events.Buffer(nil, 1<<20)
	for events.Scan() {
		if strings.Contains(events.Text(), text) {
			return
		}
	}
	t.Fatalf("the run does not say %q: %v", text, events.Err())
}

func command(t *testing.T, address string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Macrostep", "1")
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusNoContent {
		t.Fatalf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
}
