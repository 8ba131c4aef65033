package native

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watchForks moves the word of alone into memory that Linux clears in forked processes.
var watchForks = sync.OnceFunc(func() {
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return
	}
	if unix.Madvise(page, unix.MADV_WIPEONFORK) != nil { // before Linux 4.14
		_ = unix.Munmap(page)
		return
	}
	word := (*uint32)(unsafe.Pointer(&page[0]))
	*word = 1
	alone = word
})

// leaveFork ends a forked process by a system call, since Go has lost its threads there and
// exit functions of C must not run.
//
//go:norace
func leaveFork() {
	if *alone == 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, forkExit, 0, 0)
	}
}
