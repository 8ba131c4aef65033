package app

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// Metrics are served during a run, on this machine only. Who reads nothing else does not keep the run waiting for a reader of its page.
func TestMetrics(t *testing.T) {
	for _, flag := range []string{"--live", "--metrics"} {
		var stderr lockedBuffer
		address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/(metrics)?\?token=\S+`)
		var url, text, kind string
		look := func() {
			if text != "" {
				return
			}
			if url = address.FindString(stderr.String()); url == "" {
				return
			}
			url = strings.Replace(url, "/?", "/metrics?", 1)
			answer, err := http.Get(url)
			if err != nil {
				t.Error(err)
				return
			}
			body, err := io.ReadAll(answer.Body)
			if err != nil || answer.Body.Close() != nil {
				t.Error(err)
			}
			text, kind = string(body), answer.Header.Get("Content-Type")
		}
		args := []string{"run", "system.ssp", "--realtime", "--stop-time", "0.6", "--step-size", "0.01", "--record", "none", "--output", t.TempDir() + "/r.csv", flag, "0"}
		code := run(t.Context(), args, strings.NewReader(""), io.Discard, &stderr, &fake{beginStep: look})
		if code != exitDone {
			t.Fatalf("exit code %d\n%s", code, &stderr)
		}
		if !strings.Contains(text, `macrostep_steps_total{run="system.ssp"} `) || !strings.Contains(text, "macrostep_lateness_seconds_bucket") || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
			t.Errorf("%s gives %s:\n%s", url, kind, text)
		}
		if answer, err := http.Get(url); err == nil {
			_ = answer.Body.Close()
			t.Error("it is there after the run")
		}
	}
	if _, err := listenMetrics("nowhere.invalid:1"); err == nil || !strings.Contains(err.Error(), "--metrics") {
		t.Errorf("an address that is none: %v", err)
	}
}

// lockedBuffer takes what several goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
