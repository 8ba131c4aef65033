package process

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options of a new process. The zero value starts it as os/exec does.
type Options struct {
	// Group starts the process in a new process group, which signals of the terminal do not
	// reach, and which ends with the process. On Windows it only disables Ctrl-C.
	Group bool
	// Bound ends the process when this one ends. Linux only.
	Bound bool
	// Wake continues the process, if it is suspended, when this one ends. Linux only, and not
	// with Bound.
	Wake bool
	// Stack is the least size of the stacks of the main thread and of other threads, in bytes;
	// 0 = as in this process. They are smaller if the limit on stacks cannot be raised, or if
	// the address space is limited to less than sixteen such stacks. Linux only.
	Stack uint64
}

// Child is a started process. Several goroutines may call its methods.
type Child struct {
	cmd   *exec.Cmd
	group bool
	done  chan struct{}
	gone  atomic.Bool
	state *os.ProcessState

	mu     sync.Mutex
	reaped bool // the process number may be reused
}

// starter starts processes. Linux ends a bound process together with the thread that
// started it, so this thread lives as long as the program.
var starter = sync.OnceValue(func() chan<- func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// Start starts a command and waits for its end in the background, so cmd.Wait must not be
// called. Standard input, output and error of the command must be files or nil.
func Start(cmd *exec.Cmd, o Options) (*Child, error) {
	if o.Group {
		setGroup(attributes(cmd))
	}
	switch {
	case o.Bound:
		bind(attributes(cmd))
	case o.Wake:
		wake(attributes(cmd))
	}
	result := make(chan error)
	starter() <- func() {
		restore := raiseStack(o.Stack)
		children.Lock()
		err := cmd.Start()
		if err == nil {
			children.pids[cmd.Process.Pid] = true
		}
		children.Unlock()
		restore()
		result <- err
	}
	if err := <-result; err != nil {
		return nil, err
	}
	c := &Child{cmd: cmd, group: o.Group, done: make(chan struct{})}
	go c.wait()
	return c, nil
}

// attributes returns the system attributes of a command.
func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	return cmd.SysProcAttr
}

// children are the processes that Start has started and that have not been waited for.
var children = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// Others calls f with those of some processes that Start has not started, such as adopted
// orphans. No process is started meanwhile.
func Others(pids []int, f func(pid int)) {
	children.Lock()
	defer children.Unlock()
	for _, pid := range pids {
		if !children.pids[pid] {
			f(pid)
		}
	}
}

// Output runs a command in a new process group and returns its output. The group is ended when ctx
// ends.
func Output(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.Stdout, cmd.Stderr = w, w
	c, err := Start(cmd, Options{Group: true, Bound: true})
	_ = w.Close() // the process has it
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, c.Kill)()
	text := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(r) // as far as possible
		text <- all
	}()
	<-c.Done()
	_ = r.SetReadDeadline(time.Now().Add(outputGrace)) // another process group may have the other end
	if !c.State().Success() {
		err = &exec.ExitError{ProcessState: c.State()}
	}
	return <-text, err
}

// outputGrace is the time for reading the output of an ended process.
const outputGrace = time.Second

// wait waits for the end of the process and then ends its group.
func (c *Child) wait() {
	zombie := awaitEnd(c.Pid())
	if !zombie {
		_ = c.cmd.Wait() // the state has the result
	}
	c.mu.Lock()
	if c.group {
		endGroup(c.Pid())
	}
	if zombie {
		_ = c.cmd.Wait()
	}
	c.state, c.reaped = c.cmd.ProcessState, true
	children.Lock()
	delete(children.pids, c.Pid())
	children.Unlock()
	c.mu.Unlock()
	c.gone.Store(true)
	close(c.done)
}

// Pid returns the number of the process.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Done returns a channel that is closed when the process and its group have ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Gone reports whether Done is closed, or will be at once.
func (c *Child) Gone() bool { return c.gone.Load() }

// State returns how the process ended; it is valid once Done is closed.
func (c *Child) State() *os.ProcessState { return c.state }

// Within waits up to d for the end of the process and reports whether it has ended.
func (c *Child) Within(d time.Duration) bool {
	return Closed(c.done, d) || c.Gone()
}

// Closed waits up to d until a channel is closed, and reports whether it is.
func Closed(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// Kill ends the process and its group. It does nothing if the process has ended.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	if c.group {
		endGroup(c.Pid())
	}
	_ = c.cmd.Process.Kill() // it may have ended
}

// Signal sends a signal to the process, and to its group if it has one. The error is
// os.ErrProcessDone if the process has ended. On Windows only os.Kill and, to a process
// with a group, os.Interrupt can be sent.
func (c *Child) Signal(s os.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.reaped:
		return os.ErrProcessDone
	case c.group:
		return signalGroup(c.cmd.Process, s)
	default:
		return c.cmd.Process.Signal(s)
	}
}

var threadStack atomic.Uint64

// SetThreadStack sets the result of ThreadStack in bytes, for a process that was started with larger
// stacks.
func SetThreadStack(bytes uint64) { threadStack.Store(bytes) }
