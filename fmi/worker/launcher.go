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

func (l *Launcher) start(to fmi.Launch, dir *archive.Dir) (_ *link, err error) {
	program := l.Program
	image := program
	if program == "" {
		if program, image, err = process.Image(); err != nil {
			return nil, err
		}
	}
	var files []*os.File
	defer func() { // the files of the worker, or all after an error
		for _, f := range files {
			_ = f.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w
	}
	lifeR, lifeW := pipe()
	outR, outW := pipe()
	requestR, requestW := pipe()
	answerR, answerW := pipe()
	if err != nil {
		return nil, err
	}
	c := config{Memory: l.Memory, Threads: process.ThreadStack()}
	cmd := exec.Command(program, argument, to.Instance)
	cmd.Path = image
	cmd.Dir = dir.Path
	cmd.Stdin, cmd.Stdout, cmd.Stderr = lifeR, outW, outW
	var common *shared
	if !l.Pipes {
		// Without room, for example under a limit on the size of files, pipes are enough.
		common, _ = newShared()
		defer func() {
			if err != nil {
				common.close()
			}
		}()
	}
	handed := process.Hand(cmd, append([]*os.File{requestR, answerW}, common.files()...)...)
	c.Requests, c.Answers = handed[0], handed[1]
	if len(handed) > 2 {
		c.Shared = handed[2]
	}
	var text []byte
	if text, err = json.Marshal(c); err != nil {
		return nil, err
	}
	cmd.Env = append(environment(), variable+"="+string(text))
	child, err := process.Start(cmd, process.Options{Group: true, Bound: true, Stack: cmp.Or(l.Stack, fmi.LargeStack)})
	if err != nil {
		return nil, err
	}
	files = []*os.File{lifeR, outW, requestR, answerW}
	process.Blocking(requestW, answerR)
	common.handed()
	p := newProcess(child, outR, to.Output, common.wake)
	k := &link{process: p, dir: dir, life: lifeW, requests: requestW, answers: answerR, shared: common,
		log: to.Log, timeout: l.Timeout, memory: l.Memory, lost: func(e *fmi.Ended) {
			if l.Lost != nil {
				l.Lost(to, e)
			}
		}}
	k.in.r, k.watch.giveUp = answerR, p.Kill
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
