package worker

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// process is the process of a worker.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and what it printed is read
	how  *os.ProcessState
	gone atomic.Bool // it has ended

	mu    sync.Mutex
	lines []string // the last ones printed
}

const (
	keptLines   = 4
	lineLength  = 400
	outputGrace = 200 * time.Millisecond // for what an ended worker has printed
	closeGrace  = time.Second            // for a worker to end when it is asked to
	mebibyte    = 1 << 20
)

// starts takes commands to the thread that starts them. Linux ends a worker when
// the thread that started it ends; this one lives as long as the program.
var starts = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

func startLocked(cmd *exec.Cmd, stack uint64) error {
	result := make(chan error)
	starts() <- func() {
		restore := raiseStack(stack)
		err := cmd.Start()
		restore()
		result <- err
	}
	return <-result
}

// newProcess watches a process that was started; each line that it prints goes to
// print, and wake is called when it has ended.
func newProcess(cmd *exec.Cmd, output *os.File, print func(string), wake func()) *process {
	p := &process{cmd: cmd, done: make(chan struct{})}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(output, print)
	}()
	go func() {
		_ = cmd.Wait() // its state says all
		p.how = cmd.ProcessState
		endGroup(cmd.Process.Pid)
		p.gone.Store(true)
		wake()
		_ = output.SetReadDeadline(time.Now().Add(outputGrace))
		<-read
		_ = output.Close()
		close(p.done)
	}()
	return p
}

// read takes what the process prints.
func (p *process) read(output *os.File, print func(string)) {
	s := bufio.NewReaderSize(output, 1<<16)
	for {
		line, err := s.ReadSlice('\n')
		text := strings.TrimRight(strings.ToValidUTF8(string(line), "\uFFFD"), "\r\n")
		if text != "" {
			p.keep(text)
			if print != nil {
				print(text)
			}
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

func (p *process) keep(line string) {
	if len(line) > lineLength {
		line = strings.ToValidUTF8(line[:lineLength], "") + "…"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lines) == keptLines {
		p.lines = append(p.lines[:0], p.lines[1:]...)
	}
	p.lines = append(p.lines, line)
}

func (p *process) output() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.lines...)
}

// kill ends the process and those that it has started.
func (p *process) kill() {
	if !p.gone.Load() { // else its number may be another's
		endGroup(p.cmd.Process.Pid)
		_ = p.cmd.Process.Kill() // it may have ended
	}
}

// within waits for the end, so long, and tells whether it came.
func (p *process) within(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

// reason says how the process ended, and whether nobody else may have ended it.
func (p *process) reason() (text string, crash bool) {
	if text, outside := signalled(p.how); text != "" {
		return text, !outside
	}
	if p.how.ExitCode() == exitServe {
		return "the worker gave up, as it does when the FMU has written over memory that is not its own", true
	}
	return fmt.Sprintf("it exited with code %d", p.how.ExitCode()), true
}
