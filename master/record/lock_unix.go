//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package record

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lock locks the file against other runs, which get ErrBusy. It does nothing on a file
// system without locks.
func lock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrBusy
		default:
			return nil
		}
	}
}

// renamesOpen reports whether a file may be renamed while it is open.
const renamesOpen = true

// claim locks the file at path. fresh: it does not exist and must be created.
func claim(path string) (held *os.File, fresh bool, err error) {
	for {
		if !exists(path) {
			return nil, true, nil
		}
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil, false, nil // a dangling link or a device
		}
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, nil // an unreadable file can still be replaced
		}
		if err := lock(f); err != nil {
			return nil, false, errors.Join(err, f.Close())
		}
		if there(f, path) == nil {
			return f, false, nil
		}
		_ = f.Close() // another run replaced it meanwhile
	}
}
