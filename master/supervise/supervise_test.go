package supervise_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/supervise"
)

func TestMain(m *testing.M) {
	supervise.Main(supervise.Config{
		Works:    map[string]supervise.Work{"end": end, "echo": echo, "wait": wait},
		Builders: map[string]simulate.Builder{"oscillator": oscillator},
	})
	os.Exit(m.Run())
}

// end ends the process.
func end(j *supervise.Job) (any, error) {
	var how string
	if err := json.Unmarshal(j.Request, &how); err != nil {
		return nil, err
	}
	endBy(how)
	return nil, nil
}

func endBy(how string) {
	switch how {
	case "exit":
		os.Exit(0)
	case "kill":
		if p, err := os.FindProcess(os.Getpid()); err == nil {
			_ = p.Kill()
		}
	case "panic":
		go panic("on purpose")
	case "panic here":
		panic("on purpose")
	}
	select {}
}

func echo(j *supervise.Job) (any, error) {
	j.Send("before")
	if string(j.Request) == "13" {
		return nil, errors.New("an unlucky number")
	}
	return j.Request, nil
}

func wait(j *supervise.Job) (any, error) {
	j.Send("waiting")
	<-j.Context.Done()
	return nil, context.Cause(j.Context)
}

// dying ends its process in the step from a time on.
type dying struct {
	master.Subsystem
	how string
}

func (d *dying) Unwrap() master.Subsystem { return d.Subsystem }

func (d *dying) Step(ctx context.Context, t, h float64) (float64, error) {
	if d.how != "" && t > 0.5 {
		endBy(d.how)
	}
	return d.Subsystem.Step(ctx, t, h)
}

func oscillator(_ context.Context, values map[string]string) (*master.System, func() error, error) {
	subs := mastertest.Oscillator()
	sys, err := master.NewSystem([]master.Subsystem{&dying{subs[0], values["how"]}, subs[1]}, mastertest.OscillatorConnections())
	return sys, nil, err
}

// An engine does one work after the other, hands on events and errors, and is replaced
// when it has died.
func TestEngine(t *testing.T) {
	e := supervise.New(supervise.Options{})
	defer e.Close()
	for range 2 {
		events := 0
		answer, err := e.Do(t.Context(), "echo", 7, func(json.RawMessage) { events++ })
		if err != nil || string(answer) != "7" || events != 1 {
			t.Errorf("answer %s, error %v, %d events", answer, err, events)
		}
		if _, err := e.Do(t.Context(), "echo", 13, nil); err == nil || err.Error() != "an unlucky number" {
			t.Errorf("an error of the work arrives as %v", err)
		}
		if _, err := e.Do(t.Context(), "nothing", 1, nil); err == nil || !strings.Contains(err.Error(), `knows no work "nothing"`) {
			t.Errorf("an unknown work gives %v", err)
		}
		for how, want := range map[string]string{"exit": "exited with code 0", "kill": "the engine ended", "panic": "exited with code 2",
			"panic here": "panic: on purpose, a fault of macrostep; to report it, send "} {
			var death *supervise.Death
			if _, err := e.Do(t.Context(), "end", how, nil); !errors.As(err, &death) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", how, err)
			} else if _, path, kept := strings.Cut(err.Error(), "send "); kept {
				if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "supervise_test.endBy(") {
					t.Errorf("the trace: %v, %s", err, text)
				}
				_ = os.Remove(path)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err = e.Do(ctx, "wait", nil, func(json.RawMessage) { cancel() })
		if err == nil || err.Error() != master.ErrInterrupted.Error() {
			t.Errorf("an interrupted work gives %v", err)
		}
		var death *supervise.Death
		_, err = e.Do(t.Context(), "wait", nil, func(json.RawMessage) { e.Kill("enough") })
		if !errors.As(err, &death) || !death.Killed || err.Error() != "enough" {
			t.Errorf("a killed engine gives %v", err)
		}
	}
}

// An engine is closed while a request for it is on its way, without a data race.
func TestCancelAtEnd(t *testing.T) {
	for range 5 {
		e := supervise.New(supervise.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var closing sync.WaitGroup
		_, err := e.Do(ctx, "wait", nil, func(json.RawMessage) {
			closing.Go(func() { _ = e.Close() })
			cancel()
		})
		if err == nil {
			t.Error("the work has ended by itself")
		}
		closing.Wait()
	}
}

// A run in the engine gives what it gives in this process; one whose engine dies leaves
// every row up to the last communication point, and a manifest with the reason.
func TestRun(t *testing.T) {
	e := supervise.New(supervise.Options{})
	defer e.Close()
	request := func(name, how string) simulate.Request {
		at := func(v float64) *simulate.Setting { return &simulate.Setting{Value: v, Source: "test"} }
		r := simulate.Request{Builder: "oscillator", Values: map[string]string{"how": how}, Start: at(0), Stop: at(1), Step: at(1.0 / 1024), Output: filepath.Join(t.TempDir(), name)}
		if r.Format, _ = record.FormatOf(name); r.Place() != nil {
			t.Fatal("the request is refused")
		}
		return r
	}
	whole := request("whole.csv", "")
	if out, err := (simulate.Runner{Builders: map[string]simulate.Builder{"oscillator": oscillator}}).Run(t.Context(), whole); err != nil || out.Rows != 1025 {
		t.Fatalf("%d rows, %v", out.Rows, err)
	}
	rows := lines(t, whole.Output)
	for range 2 {
		r := request("r.csv", "")
		progress := 0
		out, err := e.Run(t.Context(), r, func(simulate.Event) { progress++ })
		if err != nil || out.Rows != 1025 || out.Manifest.Outcome.String() != "complete" || strings.Join(lines(t, r.Output), "") != strings.Join(rows, "") {
			t.Errorf("%d rows, %v", out.Rows, err)
		}
		for _, how := range []string{"exit", "kill"} {
			r := request("r.csv", how)
			out, err := e.Run(t.Context(), r, nil)
			var death *supervise.Death
			if !errors.As(err, &death) || !out.Begun || out.Rows != 514 || out.Manifest.Outcome.Ended != master.EndedFailed || out.Manifest.EndTime != 513.0/1024 {
				t.Errorf("%s: %v, %+v", how, err, out)
			}
			if got := lines(t, r.Output); strings.Join(got, "") != strings.Join(rows[:515], "") {
				t.Errorf("%s: %d lines are left", how, len(got))
			}
			var m record.Manifest
			text, err := os.ReadFile(r.Manifest)
			if err != nil || json.Unmarshal(text, &m) != nil || m.Status != master.Failed || m.Steps.Accepted != 513 || !strings.Contains(m.Reason, death.Cause) {
				t.Errorf("%s: %v, %s", how, err, text)
			}
		}
	}
	r, events := request("r.csv", "panic here"), ""
	out, err := e.Run(t.Context(), r, func(e simulate.Event) { events += e.String() + "\n" })
	trace := simulate.TracePath(r.Manifest)
	if err == nil || !strings.Contains(err.Error(), "panic near subsystem") || out.Rows != 514 || strings.Contains(events, "goroutine") || !strings.Contains(events, "trace="+trace) {
		t.Errorf("a panic: %v, %+v\n%s", err, out, events)
	}
	if text, err := os.ReadFile(trace); err != nil || !strings.Contains(string(text), "supervise_test.endBy(") {
		t.Errorf("its trace: %v, %s", err, text)
	}
	bad := request("r.csv", "")
	bad.Builder = "other"
	if _, err := e.Run(t.Context(), bad, nil); err == nil || fmt.Sprint(err) != `there is no builder "other"; the builders are oscillator` {
		t.Errorf("an unknown builder gives %v", err)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(text)))
}
