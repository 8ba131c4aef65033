//go:build !linux

package process

import "os"

// newFile makes the file of a page.
func newFile() (f *os.File, memfd bool, err error) {
	f, err = plainFile()
	return f, false, err
}

func keepLength(*os.File) {}

func isMemfd(*os.File) bool { return false }

func release(*os.File, int64, int) bool { return false }
