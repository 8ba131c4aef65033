package worker

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/process"
)

// Launcher starts workers. The zero value is ready for use, also by several goroutines.
type Launcher struct {
	// Program is the path of a program that calls Main; "" = the running program.
	Program string
	// TempDir is the parent of the folders of workers without fmi.Launch.Dir; "" = os.TempDir().
	TempDir string
	// Timeout is the longest time of a call, after which the worker is ended; 0 = unlimited.
	Timeout time.Duration
	// Memory bounds the memory that an FMU may allocate, in bytes; 0 = unlimited. Linux only.
	Memory uint64
	// Stack is the stack size for calls of the FMU, in bytes; 0 = 64 MiB. Linux only.
	Stack uint64
	// Pipes disables shared memory, which not all systems support.
	Pipes bool
	// Lost is called for each worker that ended in a call other than fmi2Terminate and fmi2FreeInstance, also
	// concurrently. It may be nil.
	Lost func(fmi.Launch, *fmi.Ended)
}

// A worker has this environment variable and this argument. The variable is not enough, since
// programs that an FMU starts inherit it.
const (
	variable = "MACROSTEP_WORKER"
	argument = "worker"
)

// config is the content of the variable.
type config struct {
	Requests, Answers, Shared uintptr // numbers of files; Shared may be 0
	Memory                    uint64
	Threads                   uint64        // stack size of threads of the FMU in bytes; 0 = default
	ExitTime                  time.Duration // for exit handlers and destructors
}

// Able reports whether the launcher can start workers: the running program has called Main, or Program is another one.
func (l *Launcher) Able() bool { return l.Program != "" || able.Load() }

// Launch starts a worker.
func (l *Launcher) Launch(to fmi.Launch) (fmi.Link, error) {
	if !l.Able() { // it would run main again
		return nil, errors.New("this program cannot be started as a worker, because it does not call worker.Main first in main")
	}
	var own *archive.Dir
	if to.Dir == "" {
		var err error
		if own, err = archive.NewTempDir(l.TempDir, archive.Prefix); err != nil {
			return nil, err
		}
		to.Dir = own.Path
	}
	link, err := l.start(to)
	if err != nil {
		if own != nil {
			_ = own.Remove() // the error of start matters more
		}
		return nil, fmt.Errorf("cannot start a worker: %w", err)
	}
	link.dir = own
	return link, nil
}

// pipes makes n pipes and returns their ends for reading and writing. After an error there are none.
func pipes(n int) (r, w []*os.File, err error) {
	for range n {
		from, to, err := os.Pipe()
		if err != nil {
			closeAll(append(r, w...))
			return nil, nil, err
		}
		r, w = append(r, from), append(w, to)
	}
	return r, w, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func (l *Launcher) start(to fmi.Launch) (_ *link, err error) {
	program := l.Program
	image := program
	if program == "" {
		if program, image, err = process.Image(); err != nil {
			return nil, err
		}
	}
	r, w, err := pipes(5)
	if err != nil {
		return nil, err
	}
	const life, stdout, stderr, request, answer = 0, 1, 2, 3, 4
	inherited := []*os.File{r[life], w[stdout], w[stderr], r[request], w[answer]}
	own := []*os.File{w[life], r[stdout], r[stderr], w[request], r[answer]}
	var common *shared
	if !l.Pipes {
		// Without room, for example under a limit on the size of files, pipes are enough.
		common, _ = newShared()
	}
	defer closeAll(inherited)
	defer func() {
		if err != nil {
			closeAll(own)
			common.close()
		}
	}()
	cmd := exec.Command(program, argument, to.Instance)
	cmd.Path = image
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r[life], w[stdout], w[stderr]
	numbers := process.Hand(cmd, append([]*os.File{r[request], w[answer]}, common.files()...)...)
	c := config{Memory: l.Memory, ExitTime: fmi.ExitTime(l.Timeout) + closeGrace, Threads: process.ThreadStack(), Requests: numbers[0], Answers: numbers[1]}
	if len(numbers) > 2 {
		c.Shared = numbers[2]
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd.Env = process.Environment(variable, string(text))
	if here, err := os.Getwd(); err != nil || here != to.Dir {
		cmd.Dir, cmd.Env = to.Dir, append(cmd.Env, "PWD="+to.Dir)
	}
	child, err := process.Start(cmd, process.Options{Group: true, Bound: true, Stack: cmp.Or(l.Stack, fmi.LargeStack)})
	if err != nil {
		return nil, err
	}
	process.Blocking(w[request], r[answer])
	common.handed()
	p := newProcess(child, r[stdout], r[stderr], to.Output, common.wake)
	k := &link{process: p, life: w[life], requests: w[request], answers: r[answer], shared: common,
		log: to.Log, timeout: l.Timeout, memory: l.Memory, lost: func(e *fmi.Ended) {
			if l.Lost != nil {
				l.Lost(to, e)
			}
		}}
	k.in.R, k.watch.giveUp = r[answer], p.Kill
	if common != nil {
		k.watch.there = common.there
	}
	return k, nil
}
