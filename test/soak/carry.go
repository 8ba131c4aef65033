//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// end is how a step ended, with what is not in its files.
type end struct {
	skipped  bool // there was nothing to do
	label    string
	code     int            // exit code, -1 if a signal ended it
	signal   syscall.Signal // 0 = none
	peak     int            // memory in MiB
	output   string         // stdout and stderr
	limited  bool           // it was told to end because it took long
	insisted bool           // it was told a second time, which ends it at once
	hung     bool           // it did not end for all that
	left     []int          // processes that were there after it
	sent     bool           // the event came before the end
	before   files          // before the step
}

// files are the results of a run, as hashes; "" = none.
type files struct{ results, manifest string }

func filesIn(dir string) files {
	sum := func(name string) string {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return ""
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%x", h.Sum(nil))
	}
	return files{sum("results.csv"), sum("results.json")}
}

// How long a run may take until a first interrupt, a second one, and a kill; and how long a process may outlive the
// run whose worker it is.
const (
	limit     = 4 * time.Second
	patience  = 5 * time.Second
	again     = 250 * time.Millisecond
	afterlife = 5 * time.Second
)

// environment is what the runs of a case get besides that of the soak.
func (c *drawn) environment() []string {
	return []string{"TMPDIR=" + filepath.Join(c.dir, "tmp"), "XDG_CACHE_HOME=" + filepath.Join(c.dir, "cache")}
}

// carryOut calls the program once.
func (s *soak) carryOut(ctx context.Context, c *drawn, st step) (*end, error) {
	e := &end{before: filesIn(c.dir)}
	switch {
	case st.resume && !c.resumable():
		e.skipped, e.label = true, "resumed=no"
		return e, nil
	case st.after && !c.killed:
		e.skipped, e.label = true, "swept=no"
		return e, nil
	}
	words := append([]string{s.program}, st.args...)
	if st.files > 0 { // in blocks of 512 bytes
		words = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$@"`, 2*st.files), "sh"}, words...)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), c.environment()...)
	cmd.WaitDelay = patience // what the run leaves may hold the pipes
	out := &tail{}
	cmd.Stdout, cmd.Stderr = out, out
	if st.closed != "" {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		r.Close()
		defer w.Close()
		if st.closed == "stdout" {
			cmd.Stdout = w
		} else {
			cmd.Stderr = w
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	if err := e.attend(ctx, c, st, cmd.Process, done); err != nil {
		return nil, err
	}
	e.code, e.output = cmd.ProcessState.ExitCode(), out.String()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.signal = ws.Signal()
	}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		e.peak = int(u.Maxrss / 1024)
	}
	// Workers end with their master, but not in the same moment.
	for deadline := time.Now().Add(afterlife); ; time.Sleep(5 * time.Millisecond) {
		if e.left = c.processes(""); len(e.left) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, pid := range e.left {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
	}
	return e, nil
}

// attend waits for the end of a run, and does to it what is to be done.
func (e *end) attend(ctx context.Context, c *drawn, st step, p *os.Process, done <-chan error) error {
	type deed struct {
		after time.Duration
		do    func()
	}
	send := func(s syscall.Signal) func() { return func() { _ = p.Signal(s) } } // it may have ended
	toWorker := func(s syscall.Signal) func() {
		return func() {
			for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if workers := c.processes("MACROSTEP_WORKER="); len(workers) > 0 {
					_ = syscall.Kill(workers[0], s) // it may have ended
					return
				}
			}
		}
	}
	insist := func() { e.insisted = true; send(syscall.SIGINT)() }
	var deeds []deed
	signals := map[string]func(){
		interrupt: send(syscall.SIGINT), twice: send(syscall.SIGINT), terminate: send(syscall.SIGTERM), hangUp: send(syscall.SIGHUP),
		kill: send(syscall.SIGKILL), killWorker: toWorker(syscall.SIGKILL), stopWorker: toWorker(syscall.SIGSTOP),
	}
	if do := signals[st.event.kind]; do != nil {
		deeds = append(deeds, deed{st.event.after, func() { e.sent = true; do() }})
	}
	if st.event.kind == twice {
		deeds = append(deeds, deed{again, insist})
	}
	deeds = append(deeds,
		deed{limit, func() { e.limited = true; send(syscall.SIGINT)() }},
		deed{patience, insist},
		deed{patience, func() { e.hung = true; send(syscall.SIGQUIT)() }}, // which prints where it hangs
		deed{patience, send(syscall.SIGKILL)})
	for _, d := range deeds {
		select {
		case err := <-done:
			return ended(err)
		case <-ctx.Done():
			_ = p.Kill()
			return ended(<-done)
		case <-time.After(d.after):
			d.do()
		}
	}
	return ended(<-done)
}

// ended leaves the errors that are none of the run.
func ended(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// processes lists those that were started for the case, with a text in their environment.
func (c *drawn) processes(with string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	ours := "TMPDIR=" + filepath.Join(c.dir, "tmp") + "\x00"
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && strings.Contains(string(text), ours) && strings.Contains(string(text), with) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// resumable reports whether there is a checkpoint of a run that did not complete.
func (c *drawn) resumable() bool {
	_, err := os.Stat(filepath.Join(c.dir, "run.checkpoint"))
	m, merr := c.manifest()
	return err == nil && merr == nil && m.Status != "complete"
}

// tail keeps the beginning and the end of what is written: some FMUs log without end.
type tail struct {
	mu          sync.Mutex
	first, last []byte
}

const kept = 1 << 18

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(p), kept-len(t.first))
	t.first = append(t.first, p[:n]...)
	t.last = append(t.last, p[n:]...)
	if len(t.last) > 2*kept {
		t.last = append(t.last[:0], t.last[len(t.last)-kept:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.first) + string(t.last)
}
