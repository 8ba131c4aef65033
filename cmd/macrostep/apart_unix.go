//go:build unix

package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// setAside makes standard error of what this process prints to f, if that is its standard
// output, and returns the name of what f was; "" if it is not.
func setAside(f *os.File) (path string, err error) {
	if f.Fd() != 1 {
		return "", nil
	}
	was, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return "", err
	}
	if path = fmt.Sprintf("/dev/fd/%d", was); !exists(path) {
		return "", unix.Close(was) // without names of open files FMUs print among the results
	}
	return path, unix.Dup2(2, 1)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
