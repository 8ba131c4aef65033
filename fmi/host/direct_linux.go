package host

import (
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct is a TCP connection whose reader first waits for a short time in a system call of which the scheduler of Go does
// not know. The wake-up of a goroutine that waits in the usual way, on its locked thread, takes longer than a step.
type direct struct {
	*net.TCPConn
	raw syscall.RawConn

	read   func(fd uintptr) bool // fills p; kept, so that a call allocates nothing
	p      []byte
	n      int
	err    error
	waited bool
	long   int // waits that are left before the next short one
}

// shortWait is the longest wait in the system call, in which this thread keeps its processor from other goroutines.
const shortWait = 200 * time.Microsecond

// afterLong is how many times the reader waits in the usual way after a wait that was not short.
const afterLong = 16

func quick(c net.Conn) net.Conn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return c
	}
	d := &direct{TCPConn: t, raw: raw}
	d.read = d.readOnce
	return d
}

// Read has one caller at a time.
func (d *direct) Read(p []byte) (int, error) {
	d.p, d.n, d.err, d.waited = p, 0, nil, false
	if d.long > 0 {
		d.long--
		d.waited = true
	}
	err := d.raw.Read(d.read)
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
		case d.waited:
			return false
		default:
			d.waited = true
			if !poll(fd) {
				d.long = afterLong
			}
		}
	}
}

// poll waits up to shortWait and reports whether there is something to read.
func poll(fd uintptr) bool {
	p := unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	limit := syscall.NsecToTimespec(int64(shortWait))
	n, _, _ := syscall.RawSyscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	return int(n) > 0
}
