package record

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// patience is how long a named pipe is waited for to get a reader.
const patience = 10 * time.Second

// Create opens a file for writing, made if it is not there, with what os.O_TRUNC
// among the flags does. A named pipe is opened as soon as something reads from it; one
// that nothing reads from for ten seconds is an error, where plain opening would wait
// for ever, deaf to signals.
func Create(path string, flags int) (*os.File, error) { return create(path, flags, patience) }

func create(path string, flags int, wait time.Duration) (*os.File, error) {
	flags |= os.O_WRONLY | os.O_CREATE
	info, err := os.Stat(path)
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 || runtime.GOOS == "windows" { // there pipes are no files
		return os.OpenFile(path, flags, 0o666)
	}
	for end := time.Now().Add(wait); ; time.Sleep(10 * time.Millisecond) {
		// Without O_NONBLOCK the system would wait. Writes wait all the same: the
		// runtime sees to that.
		f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o666)
		if !errors.Is(err, syscall.ENXIO) {
			return f, err
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%s is a named pipe, and nothing reads from it for %v; start its reader, then the run", path, wait)
		}
	}
}
