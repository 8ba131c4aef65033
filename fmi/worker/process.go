package worker

import (
	"bufio"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/process"
)

// workerProcess is the process of a worker.
type workerProcess struct {
	*process.Child
	done chan struct{} // closed when it has ended and its output has been read

	printing sync.Mutex // held while a line is passed on

	output diag.LastLines
}

const (
	outputGrace = 200 * time.Millisecond // for the output of an ended worker
	closeGrace  = time.Second            // for a worker to end after an error
	mebibyte    = 1 << 20
)

// newProcess watches a started process: it passes each line of its standard output and error to print, and
// calls wake when the process has ended.
func newProcess(c *process.Child, stdout, stderr *os.File, print func(line string, stderr bool), wake func()) *workerProcess {
	p := &workerProcess{Child: c, done: make(chan struct{})}
	var reading sync.WaitGroup
	for _, f := range []*os.File{stdout, stderr} {
		reading.Go(func() {
			p.read(f, func(line string) { print(line, f == stderr) })
			_ = f.Close()
		})
	}
	read := make(chan struct{})
	go func() {
		reading.Wait()
		close(read)
	}()
	go func() {
		<-c.Done()
		wake()
		// Another program that the FMU has started may keep a pipe open. Pipes of Windows have no deadline.
		grace := time.Now().Add(outputGrace)
		if stdout.SetReadDeadline(grace) == nil && stderr.SetReadDeadline(grace) == nil {
			<-read
		} else {
			process.Closed(read, outputGrace)
		}
		close(p.done)
	}()
	return p
}

// read reads the output of the process.
func (p *workerProcess) read(output *os.File, print func(string)) {
	s := bufio.NewReaderSize(output, 1<<16)
	for {
		line, err := s.ReadSlice('\n')
		text := strings.TrimRight(string(line), "\r\n")
		if text != "" {
			p.output.Add(text)
			p.printing.Lock()
			print(text)
			p.printing.Unlock()
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// within waits up to d for the end of process and output, and reports whether they have ended.
func (p *workerProcess) within(d time.Duration) bool { return process.Closed(p.done, d) }

// reason returns how the process ended, and whether it crashed.
func (p *workerProcess) reason() (text string, crash bool) {
	if p.State().ExitCode() == exitServe {
		return "the worker failed; the FMU has probably written over memory that is not its own", true
	}
	text, outside := process.Reason(p.State())
	return text, !outside
}
