package record

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// lock locks the file against other runs, which get ErrBusy. It locks a byte far beyond the
// end, because other programs cannot read locked bytes.
func lock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	far := windows.Overlapped{Offset: math.MaxUint32 - 1, OffsetHigh: math.MaxInt32}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &far)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrBusy
	}
	return nil
}

// renamesOpen reports whether a file may be renamed while it is open.
const renamesOpen = false

// claim creates a file beside path that only one process can open and that the system deletes
// when it is closed.
func claim(path string) (held *os.File, fresh bool, err error) {
	name, err := windows.UTF16PtrFromString(path + ".lock")
	if err != nil {
		return nil, false, err
	}
	const alone, attributes = 0, windows.FILE_ATTRIBUTE_NORMAL | windows.FILE_FLAG_DELETE_ON_CLOSE
	h, err := windows.CreateFile(name, windows.GENERIC_WRITE|windows.DELETE, alone, nil, windows.OPEN_ALWAYS, attributes, 0)
	switch {
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION), errors.Is(err, windows.ERROR_ACCESS_DENIED) && exists(path+".lock"):
		return nil, false, ErrBusy
	case err != nil:
		return nil, false, nil // the file itself will fail in the same way
	}
	return os.NewFile(uintptr(h), path+".lock"), false, nil
}
