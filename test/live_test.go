package test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// A run of FMUs whose macro steps are taken many at once is stepped one by one by its
// page, and stopped.
func TestLiveSteps(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(program, "run", system(t, "quarter-car-a"), "--live", "0", "--live-paused", "--stop-time", "1000", "--step-size", "1e-4", "--record", "none")
	cmd.Dir = dir
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	address := ""
	for address == "" && lines.Scan() {
		address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(lines.Text())
	}
	for _, name := range []string{"step", "step", "step"} {
		command(t, address+"command/"+name)
	}
	// The steps are taken before the run sees that it is to stop.
	for {
		answer, err := http.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		page := bufio.NewScanner(answer.Body)
		page.Buffer(nil, 1<<20)
		to := 1.0
		for page.Scan() {
			if m := regexp.MustCompile(`data-to="([^"]*)"`).FindStringSubmatch(page.Text()); m != nil {
				if to, err = strconv.ParseFloat(m[1], 64); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
		_ = answer.Body.Close()
		if to > 2.5e-4 && to < 1 || to > 1 { // 1: nothing is done yet
			break
		}
	}
	command(t, address+"command/stop")
	for lines.Scan() { // so that the run does not wait
	}
	_ = cmd.Wait() // it was stopped
	var m manifest
	if err := json.Unmarshal(mustRead(t, filepath.Join(dir, "results.json")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Status != "incomplete" || m.Steps.Accepted != 3 {
		t.Errorf("%s: %s after %d steps", m.Status, m.Reason, m.Steps.Accepted)
	}
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
