//go:build unix

package process_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// duplicate returns what a child would get.
func duplicate(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.Dup(int(f.Fd()))
	must(t, err)
	return os.NewFile(uintptr(fd), "page")
}
