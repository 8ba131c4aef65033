//go:build unix

package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// setAside redirects the standard output of this process, if f is that, to standard error. It returns a
// path to the former standard output, "" if f is something else. The caller calls release when nothing is
// written there any more.
func setAside(f *os.File) (path string, release func(), err error) {
	release = func() {}
	if f.Fd() != 1 {
		return "", release, nil
	}
	was, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return "", release, err
	}
	out := os.NewFile(uintptr(was), f.Name())
	if _, err := os.Stat(fileName(out)); err != nil { // open files have no names here
		return "", release, out.Close()
	}
	path, release = fileName(out), func() { _ = out.Close() } // writers that have opened it keep it open
	if same := fmt.Sprintf("/proc/%d/fd/1", os.Getppid()); sameAs(same, out) {
		path = same // lets the supervisor complete the results
	}
	if term.IsTerminal(was) { // a person reads it
		r, w, err := os.Pipe()
		if err != nil {
			return path, release, err
		}
		shown := make(chan struct{})
		go func() {
			defer close(shown)
			_, _ = io.Copy(&screen{to: out}, r) // a closed terminal needs no text
		}()
		path, release = fileName(w), func() {
			_ = w.Close()
			select {
			case <-shown:
			case <-time.After(time.Second): // something still holds the other end
			}
			_ = out.Close()
		}
	}
	return path, release, unix.Dup2(2, 1)
}

// fileName is a path to an open file.
func fileName(f *os.File) string { return fmt.Sprintf("/dev/fd/%d", f.Fd()) }

// sameAs reports whether a path leads to an open file.
func sameAs(path string, f *os.File) bool {
	a, err := os.Stat(path)
	b, failed := f.Stat()
	return err == nil && failed == nil && os.SameFile(a, b)
}

// silence discards what FMUs in this process print to its standard output, if out is that, until restore is called.
func silence(out io.Writer) (restore func() error, err error) {
	if f, ok := out.(*os.File); !ok || f.Fd() != 1 {
		return func() error { return nil }, nil
	}
	was, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(unix.Dup2(int(null.Fd()), 1), null.Close())
	}
	return func() error { return errors.Join(unix.Dup2(was, 1), unix.Close(was)) }, err
}
