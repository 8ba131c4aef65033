package worker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/process"
)

// Launcher starts workers. The zero value is ready for use, also by several goroutines.
type Launcher struct {
	// Program is the path of a program that calls Main; "" = the running program.
	Program string
	// TempDir is the parent of the working directories; "" = os.TempDir().
	TempDir string
	// Timeout is the longest time of a call, after which the worker is ended; 0 = unlimited.
	Timeout time.Duration
	// Memory bounds the memory that an FMU may allocate, in bytes; 0 = unlimited. Linux only.
	Memory uint64
	// Stack is the stack size for calls of the FMU, in bytes; 0 = 64 MiB. Linux only.
	Stack uint64
	// Pipes disables shared memory, which not all systems support.
	Pipes bool
	// Lost is called for each worker that ended in a call, also concurrently. It may be nil.
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
	Threads                   uint64 // stack size of threads of the FMU in bytes; 0 = default
}

// Launch starts a worker.
func (l *Launcher) Launch(to fmi.Launch) (fmi.Link, error) {
	dir, err := archive.NewTempDir(l.TempDir, archive.Prefix)
	if err != nil {
		return nil, err
	}
	link, err := l.start(to, dir)
	if err != nil {
		_ = dir.Remove() // the error of start matters more
		return nil, fmt.Errorf("cannot start a worker: %w", err)
	}
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

func (l *Launcher) start(to fmi.Launch, dir *archive.Dir) (_ *link, err error) {
	program := l.Program
	image := program
	if program == "" {
		if program, image, err = process.Image(); err != nil {
			return nil, err
		}
	}
	r, w, err := pipes(4)
	if err != nil {
		return nil, err
	}
	const life, output, request, answer = 0, 1, 2, 3
	inherited := []*os.File{r[life], w[output], r[request], w[answer]}
	own := []*os.File{w[life], r[output], w[request], r[answer]}
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
	cmd.Path, cmd.Dir = image, dir.Path
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r[life], w[output], w[output]
	numbers := process.Hand(cmd, append([]*os.File{r[request], w[answer]}, common.files()...)...)
	c := config{Memory: l.Memory, Threads: process.ThreadStack(), Requests: numbers[0], Answers: numbers[1]}
	if len(numbers) > 2 {
		c.Shared = numbers[2]
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(environment(), variable+"="+string(text))
	child, err := process.Start(cmd, process.Options{Group: true, Bound: true, Stack: cmp.Or(l.Stack, fmi.LargeStack)})
	if err != nil {
		return nil, err
	}
	process.Blocking(w[request], r[answer])
	common.handed()
	p := newProcess(child, r[output], to.Output, common.wake)
	k := &link{process: p, dir: dir, life: w[life], requests: w[request], answers: r[answer], shared: common,
		log: to.Log, timeout: l.Timeout, memory: l.Memory, lost: func(e *fmi.Ended) {
			if l.Lost != nil {
				l.Lost(to, e)
			}
		}}
	k.in.r, k.watch.giveUp = r[answer], p.Kill
	if common != nil {
		k.watch.there = common.there
	}
	return k, nil
}

// environment returns the environment of the program with the locale C.
func environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LC_ALL=") && !strings.HasPrefix(v, variable+"=") {
			out = append(out, v)
		}
	}
	return append(out, "LC_ALL=C")
}
