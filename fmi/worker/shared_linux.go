package worker

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/remote"
)

// shared is memory of master and worker. The master writes a request and increments posted; the
// worker writes the answer and increments answered. A waiting side polls (see spinner) and then
// sleeps on a futex. Larger messages use the pipes.
//
// An FMU may overwrite this memory, so the master checks all bounds and decodes a copy.
type shared struct {
	file   *os.File // of the master, until the worker has it
	memory []byte
	c      *control
	count  uint32 // number of the present request
	spin   spinner
	buf    []byte
}

// control is at the start of the memory. Data that each side writes often are in separate cache
// lines.
type control struct {
	posted   atomic.Uint32 // futex of the worker
	asleep   atomic.Uint32 // the worker sleeps
	request  atomic.Uint64 // length, or byPipe or theEnd
	_        [48]byte
	event    atomic.Uint32 // futex of the master
	waits    atomic.Uint32 // the master sleeps
	answered atomic.Uint32
	_        uint32
	answer   atomic.Uint64 // length, or byPipe
	logs     atomic.Uint64 // number of log messages in the pipe, including one that is about to be sent
	_        [32]byte
	progress [192]byte
	messages atomic.Uint64 // number of log messages of the FMU, including dropped ones
	last     [diag.KeptLines]struct {
		length uint64
		text   [diag.MaxLine]byte
	}
}

// progress must be large enough for the Host.
var _ [len(control{}.progress) - remote.ProgressSize]byte

const (
	byPipe = ^uint64(0)
	theEnd = ^uint64(0) - 1

	controlSize = 4096
	areaSize    = 60 << 10 // of requests and of answers
)

func newShared() (*shared, error) {
	fd, err := unix.MemfdCreate("macrostep-worker", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	s := &shared{file: os.NewFile(uintptr(fd), "shared memory")}
	if err := unix.Ftruncate(fd, controlSize+2*areaSize); err != nil {
		s.close()
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	if err := s.mapIn(fd); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openShared maps the memory in the worker; fd 0 = none.
func openShared(fd uintptr) (*shared, error) {
	if fd == 0 {
		return nil, nil
	}
	s := &shared{}
	if err := s.mapIn(int(fd)); err != nil {
		return nil, err
	}
	return s, unix.Close(int(fd))
}

func (s *shared) mapIn(fd int) (err error) {
	s.memory, err = unix.Mmap(fd, 0, controlSize+2*areaSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("shared memory: %w", err)
	}
	s.c = (*control)(unsafe.Pointer(&s.memory[0]))
	return nil
}

func (s *shared) files() []*os.File {
	if s == nil {
		return nil
	}
	return []*os.File{s.file}
}

// handed closes the file of the master after the worker has inherited it.
func (s *shared) handed() {
	if s != nil {
		_ = s.file.Close()
		s.file = nil
	}
}

func (s *shared) close() {
	if s == nil {
		return
	}
	if s.file != nil {
		_ = s.file.Close()
	}
	if s.memory != nil {
		_ = unix.Munmap(s.memory)
	}
	s.file, s.memory, s.c = nil, nil, nil
}

func (s *shared) requests() []byte { return s.memory[controlSize : controlSize+areaSize] }
func (s *shared) answers() []byte  { return s.memory[controlSize+areaSize:] }

func (s *shared) progress() unsafe.Pointer {
	if s == nil {
		return nil
	}
	return unsafe.Pointer(&s.c.progress)
}

const (
	futexWait = 0
	futexWake = 1
)

// sleep waits until the word changes; it may return early. For a short time it does so without
// notifying the scheduler of Go, which would take as long as a step of an FMU.
func sleep(word *atomic.Uint32, was uint32, short time.Duration) {
	limit := syscall.NsecToTimespec(int64(short))
	_, _, e := syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(was),
		uintptr(unsafe.Pointer(&limit)), 0, 0)
	if e == syscall.ETIMEDOUT {
		_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(was), 0, 0, 0)
	}
}

// The time is shorter in the master, which also collects garbage.
const (
	shortOfMaster = 200 * time.Microsecond
	shortOfWorker = 5 * time.Millisecond
)

func wake(word *atomic.Uint32) {
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, 1, 0, 0, 0)
}

// The side of the master.

// sendShared sends a request.
func (l *link) sendShared(request []byte) error {
	s := l.shared
	n := uint64(len(request))
	if n > areaSize {
		n = byPipe
	} else {
		copy(s.requests(), request)
	}
	remote.Forget(s.progress())
	s.post(n)
	if n == byPipe {
		return l.write(request)
	}
	return nil
}

// there reports whether the last request has been answered. Any goroutine may call it.
func (s *shared) there() bool { return s.c.answered.Load() == s.c.posted.Load() }

// post notifies the worker of a request, or of the end.
func (s *shared) post(length uint64) {
	s.c.request.Store(length)
	s.count++
	s.c.posted.Store(s.count)
	if s.c.asleep.Load() != 0 {
		wake(&s.c.posted)
	}
}

// receiveShared waits for the answer and delivers log messages meanwhile.
func (l *link) receiveShared() ([]byte, error) {
	s, c := l.shared, l.shared.c
	s.spin.begin()
	for {
		event := c.event.Load()
		done := c.answered.Load() == s.count
		// Read logs after answered, so that no earlier message is missed.
		for logs := c.logs.Load(); l.logs < logs; {
			if err := l.readLog(); err != nil {
				return nil, err
			}
		}
		if done {
			break
		}
		if s.spin.again() {
			continue
		}
		if l.process.Gone() && c.answered.Load() != s.count {
			return nil, io.EOF
		}
		c.waits.Store(1)
		if c.event.Load() == event {
			sleep(&c.event, event, shortOfMaster)
		}
		c.waits.Store(0)
	}
	n := c.answer.Load()
	if n > areaSize {
		return l.answer()
	}
	s.buf = append(s.buf[:0], s.answers()[:n]...)
	return s.buf, nil
}

// readLog reads one log message.
func (l *link) readLog() error {
	kind, message, err := l.in.Next(remote.MaxTexts)
	if err == nil && kind != frameLog {
		err = fmt.Errorf("a message of kind %d instead of a log message", kind)
	}
	if err == nil {
		l.logs++
		l.log(message)
	}
	return err
}

// wake wakes the master after the end of the worker.
func (s *shared) wake() {
	if s != nil && s.c != nil {
		s.c.event.Add(1)
		wake(&s.c.event)
	}
}

// end requests the end of the worker.
func (s *shared) end() {
	if s != nil {
		s.post(theEnd)
	}
}

// begun returns the active instance, and how many calls of its present request were begun.
func (s *shared) begun() (number uint64, calls int) {
	if s == nil {
		return 0, 0
	}
	return remote.Begun(s.progress())
}

// said returns the last messages of the FMU.
func (s *shared) said() []string {
	if s == nil {
		return nil
	}
	var out []string
	n := s.c.messages.Load()
	for k := n - min(n, diag.KeptLines); k < n; k++ {
		line := &s.c.last[k%diag.KeptLines]
		out = append(out, string(line.text[:min(line.length, diag.MaxLine)]))
	}
	return out
}

// The side of the worker.

// keep stores the text of a log message among the last ones. It has one caller at a time.
func (s *shared) keep(text string) {
	if s == nil {
		return
	}
	n := s.c.messages.Load()
	line := &s.c.last[n%diag.KeptLines]
	line.length = uint64(copy(line.text[:], text))
	s.c.messages.Store(n + 1)
}

// request waits for a request; without shared memory it reads the pipe.
func (s *shared) request(in *remote.Frames) ([]byte, error) {
	if s == nil {
		return readRequest(in)
	}
	c := s.c
	s.spin.begin()
	for {
		posted := c.posted.Load()
		if posted != s.count {
			s.count = posted
			break
		}
		if s.spin.again() {
			continue
		}
		c.asleep.Store(1)
		if c.posted.Load() == posted {
			sleep(&c.posted, posted, shortOfWorker)
		}
		c.asleep.Store(0)
	}
	switch n := c.request.Load(); {
	case n == theEnd:
		return nil, io.EOF
	case n == byPipe:
		return readRequest(in)
	default:
		return s.requests()[:min(n, areaSize)], nil
	}
}

// answer writes an answer; false means that the caller must send it through the pipe.
func (s *shared) answer(answer []byte) bool {
	if s == nil {
		return false
	}
	n := uint64(len(answer))
	if n > areaSize {
		n = byPipe
	} else {
		copy(s.answers(), answer)
	}
	s.c.answer.Store(n)
	s.c.answered.Store(s.count)
	s.notify()
	return n != byPipe
}

// announce counts a log message before it is sent.
func (s *shared) announce() {
	if s != nil {
		s.c.logs.Add(1)
		s.notify()
	}
}

// notify wakes the master.
func (s *shared) notify() {
	s.c.event.Add(1)
	if s.c.waits.Load() != 0 {
		wake(&s.c.event)
	}
}
