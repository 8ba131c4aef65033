package native

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// watchForks puts the word that alone points to into memory that the system clears in
// processes that are forked off.
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

// leaveFork ends this process if it was forked off: without Go, which has lost its threads,
// and without what C does at an exit.
//
//go:norace
func leaveFork() {
	if *alone == 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, forkExit, 0, 0)
	}
}
