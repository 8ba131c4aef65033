//go:build unix

package process

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// plainFile makes a file in the folder for temporary files that has no name any more.
func plainFile() (*os.File, error) {
	f, err := os.CreateTemp("", "macrostep-page-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// mapExtent maps a part of the file, with memory before and after it that nobody can
// access: writing beyond the end of other memory does not get there.
func mapExtent(f *os.File, offset int64, size int) ([]byte, error) {
	const guard = extentUnit
	around, err := unix.Mmap(-1, 0, size+2*guard, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	p, err := unix.MmapPtr(int(f.Fd()), offset, unsafe.Pointer(&around[guard]), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED)
	if err != nil {
		_ = unix.Munmap(around)
		return nil, err
	}
	return unsafe.Slice((*byte)(p), size), nil
}

func mapView(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmap(view []byte) { _ = unix.Munmap(view) }

// sameFile reports whether the file is still the one of the page: foreign code may have
// closed it, and its number may belong to another file.
func sameFile(f *os.File, length int64) bool {
	info, err := f.Stat()
	if err != nil || info.Size() != length {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && s.Nlink == 0
}
