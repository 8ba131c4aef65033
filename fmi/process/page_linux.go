package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// pageSize takes no memory until it is used.
const pageSize = 256 << 20

// newFile makes a file that is memory only.
func newFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("macrostep-page", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "page"), nil
}

// makeRoom sets the size of the file and seals it, so that the child cannot change it.
func makeRoom(f *os.File, size int) error {
	if err := f.Truncate(int64(size)); err != nil {
		return err
	}
	_, _ = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
	return nil
}

// release returns memory to the system and reports whether it is then zero.
func release(memory []byte) bool { return unix.Madvise(memory, unix.MADV_REMOVE) == nil }
