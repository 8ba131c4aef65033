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

// Launcher starts workers. The zero value is ready for use, by several
// goroutines too.
type Launcher struct {
	// Program is what is started; "" = the running program. It calls Main.
	Program string
	// TempDir is where the working directories are made; "" = os.TempDir().
	TempDir string
	// Timeout ends a worker whose FMU does not return from a call for so long;
	// 0 = never.
	Timeout time.Duration
	// Memory bounds the memory that an FMU may allocate, in bytes; 0 = no bound.
	// It has an effect on Linux only.
	Memory uint64
	// Stack is the size of the stack that the FMU is called on, in bytes; 0 =
	// 64 MiB. It has an effect on Linux only.
	Stack uint64
	// Pipes leaves shared memory out, as it is where the system gives none.
	Pipes bool
	// Lost is told of each worker that came to its end in a call; nil = nobody
	// is. It may be called by several goroutines at the same time.
	Lost func(fmi.Launch, *fmi.Ended)
}

// How a worker is told that it is one: both, since what an FMU starts inherits
// the variable.
const (
	variable = "MACROSTEP_WORKER"
	argument = "worker"
)

// config is what a worker is told, in the variable.
type config struct {
	Requests, Answers, Shared uintptr // files; no Shared = 0
	Memory                    uint64
	Threads                   uint64 // stack of threads that the FMU makes; 0 = as it is
}

// Launch starts a worker.
func (l *Launcher) Launch(to fmi.Launch) (fmi.Link, error) {
	dir, err := archive.NewTempDir(l.TempDir, archive.Prefix)
	if err != nil {
		return nil, err
	}
	link, err := l.start(to, dir)
	if err != nil {
		_ = dir.Remove() // the error that counts is that of starting
		return nil, fmt.Errorf("no worker can be started: %w", err)
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
	defer func() { // those of the worker; all, if it does not start
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
		// Where there is no room for it, as under a limit on the size of files, pipes do.
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

// environment is that of the program, with the locale C.
func environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LC_ALL=") && !strings.HasPrefix(v, variable+"=") {
			out = append(out, v)
		}
	}
	return append(out, "LC_ALL=C")
}
