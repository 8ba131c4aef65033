//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package archive

import (
	"errors"
	"os"
	"syscall"
)

// createLock makes a lock file and locks it. Between the two a sweeper may
// take it: then errTaken.
func createLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	switch err := flock(f); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		f.Close()
		return nil, errTaken
	case err != nil:
		os.Remove(path)
		f.Close()
		return nil, errNoLocks
	}
	if !stillThere(f) {
		f.Close()
		return nil, errTaken
	}
	return f, nil
}

// takeLock returns a lock file whose owner is dead, locked, or nil.
func takeLock(path string) *os.File {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	if !mine(f) || flock(f) != nil || !stillThere(f) {
		f.Close()
		return nil
	}
	return f
}

// dropLock removes a lock file that is held.
func dropLock(f *os.File) {
	os.Remove(f.Name())
	f.Close()
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			return err
		}
	}
}

// stillThere reports whether an open file still stands under its name.
func stillThere(f *os.File) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(a, b)
}

// mine reports whether a file is a regular one of this user.
func mine(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
