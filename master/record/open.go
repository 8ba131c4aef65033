package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
)

// patience is the time to wait for the reader of a named pipe.
const patience = 10 * time.Second

// Create opens a file for writing and creates it if necessary. The flags are 0 or os.O_TRUNC.
// A named pipe is opened as soon as it has a reader; without one for ten seconds, Create
// returns an error, whereas os.OpenFile would block forever.
func Create(path string, flags int) (*os.File, error) { return create(path, flags, patience) }

// createLocked creates or opens the file of a recorder and locks it if it is a regular file.
// It does not truncate the file, which another run may be writing. It does not open it for
// reading, because the process as its own reader would never see a pipe close. flag names
// the path in the error.
func createLocked(path, flag string) (f *os.File, regular bool, err error) {
	if f, err = Create(path, 0); err != nil {
		return nil, false, fmt.Errorf("%w%s", err, createRemedy(err))
	}
	if info, err := f.Stat(); err == nil {
		regular = info.Mode().IsRegular()
	}
	if regular {
		if err = patiently(func() error { return lock(f) }); err != nil {
			return nil, true, errors.Join(fmt.Errorf("%s: %w; choose another %s", path, err, flag), f.Close())
		}
	}
	return f, regular, nil
}

// NotWritten returns the error of a file or folder that cannot be created or written, with a remedy. Of err, which may
// be about a temporary file, only the reason is kept.
func NotWritten(path string, err error) error {
	if at := (*fs.PathError)(nil); errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s cannot be written: %w%s", path, err, cmp.Or(createRemedy(err), "; choose another name"))
}

func createRemedy(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "; create the folder first"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "; choose a folder that you may write to"
	case errors.Is(err, syscall.EISDIR):
		return "; name a file in it"
	case errors.Is(err, syscall.ENOTDIR):
		return "; a part of this path is a file, choose another folder"
	case diag.DiskFull(err):
		return "; free space or choose another disk"
	case errors.Is(err, syscall.EFBIG):
		return "; the size of files is limited (ulimit -f): raise the limit"
	case diag.DiskFailed(err):
		return "; choose another disk, this one has a fault"
	}
	return ""
}

func create(path string, flags int, wait time.Duration) (*os.File, error) {
	flags |= os.O_WRONLY | os.O_CREATE
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 || runtime.GOOS == "windows" { // Windows has no pipes in folders
		return os.OpenFile(path, flags, 0o666)
	}
	for end := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		// Without O_NONBLOCK the system would block. Writes still block, in the Go runtime.
		f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o666)
		if !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%s is a named pipe, and nothing reads from it for %v; start its reader, then the run", path, wait)
		}
	}
}
