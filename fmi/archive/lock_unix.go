//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package archive

import (
	"errors"
	"os"
	"syscall"
)

// createLock makes and locks a lock file. The error is errTaken if a sweeper locked it first.
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

// takeLock locks and returns a lock file whose owner is dead; nil otherwise.
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

// dropLock removes and closes a locked lock file.
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

// stillThere reports whether an open file still exists with its name.
func stillThere(f *os.File) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(f.Name())
	return err == nil && os.SameFile(a, b)
}

// mine reports whether a file is a regular file of this user.
func mine(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
