package diag

import (
	"errors"
	"runtime"
	"slices"
	"syscall"
)

// Errors of Windows, which are not those of package syscall with the same meaning: ERROR_HANDLE_DISK_FULL, ERROR_DISK_FULL and
// ERROR_DISK_QUOTA_EXCEEDED; ERROR_WRITE_PROTECT and ERROR_IO_DEVICE.
var (
	windowsFull   = []syscall.Errno{39, 112, 1295}
	windowsFaulty = []syscall.Errno{19, 1117}
)

// DiskFull reports whether an error is that of a disk, or of a share of one, without space.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || onWindows(err, windowsFull)
}

// DiskFailed reports whether an error is that of a disk, which would refuse another file as well: it is full, files may not be that large, it is
// read-only, or it has a fault.
func DiskFailed(err error) bool {
	return DiskFull(err) || errors.Is(err, syscall.EFBIG) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EIO) || onWindows(err, windowsFaulty)
}

func onWindows(err error, codes []syscall.Errno) bool {
	var code syscall.Errno
	return runtime.GOOS == "windows" && errors.As(err, &code) && slices.Contains(codes, code)
}
