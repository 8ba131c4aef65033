package host

import (
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct is a TCP connection whose reader polls, then waits for a short time in a system call of which the scheduler of Go
// does not know, and only then in the usual way: the wake-up of a sleeping processor, and of a goroutine on its locked
// thread, take longer than a step. Package fmi/worker waits for workers likewise.
type direct struct {
	*net.TCPConn
	raw syscall.RawConn

	once func(fd uintptr) bool // readOnce; kept, so that a call allocates nothing
	p    []byte
	n    int
	err  error

	looks   int  // of this Read
	waited  bool // shortly, in this Read
	refrain int  // reads without polling, since another program needs the processor
}

const (
	mostLooks  = 100
	slice      = time.Millisecond // a longer yield has run another program
	refrainFor = 100
	shortWait  = 200 * time.Microsecond // in it this thread keeps its processor from other goroutines
)

var origin = time.Now()

// quick returns such a connection. Data that the other side does not acknowledge ends it as missing answers to keep-alive do.
func quick(c *net.TCPConn) net.Conn {
	raw, err := c.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(goneAfter.Milliseconds())) // not all systems have it
		})
	}
	if err != nil {
		return c
	}
	d := &direct{TCPConn: c, raw: raw}
	d.once = d.readOnce
	return d
}

// Read has one caller at a time.
func (d *direct) Read(p []byte) (int, error) {
	d.p, d.n, d.err = p, 0, nil
	d.looks, d.waited = 0, false
	if d.refrain > 0 {
		d.refrain--
		d.looks = mostLooks
	}
	err := d.raw.Read(d.once)
	d.p = nil
	if err == nil {
		err = d.err
	}
	return d.n, err
}

// readOnce is for RawConn.Read: it returns false to be called again when there is something to read.
func (d *direct) readOnce(fd uintptr) bool {
	for {
		n, _, e := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(d.p))), uintptr(len(d.p)))
		switch {
		case e == 0 && n == 0 && len(d.p) > 0:
			d.err = io.EOF
			return true
		case e == 0:
			d.n = int(n)
			return true
		case e == syscall.EINTR:
		case e != syscall.EAGAIN:
			d.err = e
			return true
		case d.looks < mostLooks:
			d.looks++
			d.yield()
		case !d.waited:
			d.waited = true
			await(fd)
		default:
			return false
		}
	}
}

func (d *direct) yield() {
	begin := time.Since(origin)
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
	if time.Since(origin)-begin > slice {
		d.refrain, d.looks = refrainFor, mostLooks
	}
}

// await waits until there is something to read, up to shortWait.
func await(fd uintptr) {
	p := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	limit := syscall.NsecToTimespec(int64(shortWait))
	_, _, _ = syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
}
