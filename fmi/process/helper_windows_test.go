package process_test

import (
	"os"
	"testing"

	"golang.org/x/sys/windows"
)

// duplicate returns a file like the one that a child inherits.
func duplicate(t *testing.T, f *os.File) *os.File {
	t.Helper()
	var h windows.Handle
	self := windows.CurrentProcess()
	must(t, windows.DuplicateHandle(self, windows.Handle(f.Fd()), self, &h, 0, false, windows.DUPLICATE_SAME_ACCESS))
	return os.NewFile(uintptr(h), "page")
}
