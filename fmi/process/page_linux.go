package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// newFile makes the file of a page; memfd tells that it is memory only.
func newFile() (f *os.File, memfd bool, err error) {
	fd, err := unix.MemfdCreate("macrostep-page", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		f, err = plainFile()
		return f, false, err
	}
	return os.NewFile(uintptr(fd), "page"), true, nil
}

// keepLength makes the system refuse to shorten the file.
func keepLength(f *os.File) {
	_, _ = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
}

// isMemfd reports whether newFile has made the file as memory.
func isMemfd(f *os.File) bool {
	_, err := unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, 0)
	return err == nil
}

// release gives the memory of a part of the file back to the system; it is zero afterwards.
func release(f *os.File, offset int64, size int) bool {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, int64(size)) == nil
}
