//go:build unix

package process_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// duplicate returns a file like the one that a child inherits.
func duplicate(t *testing.T, f *os.File) *os.File {
	t.Helper()
	fd, err := unix.Dup(int(f.Fd()))
	must(t, err)
	return os.NewFile(uintptr(fd), "page")
}
