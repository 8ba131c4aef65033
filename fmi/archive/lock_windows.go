package archive

import (
	"os"
	"syscall"
)

// On Windows, opening a file without sharing locks it.

// createLock makes and locks a lock file.
func createLock(path string) (*os.File, error) {
	return openAlone(path, syscall.CREATE_NEW)
}

// takeLock locks and returns a lock file whose owner is dead; nil otherwise.
func takeLock(path string) *os.File {
	f, _ := openAlone(path, syscall.OPEN_EXISTING)
	return f
}

// dropLock closes and removes a locked lock file; an open file cannot be removed. Another process
// may lock it in between, which is harmless because its folder has been removed.
func dropLock(f *os.File) {
	f.Close()
	os.Remove(f.Name())
}

func openAlone(path string, how uint32) (*os.File, error) {
	p, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(p, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, how, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}
