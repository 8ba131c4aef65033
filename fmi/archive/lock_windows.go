package archive

import (
	"os"
	"syscall"
)

// On Windows a file that is open without sharing cannot be opened again, and
// it is made and locked at once.

// createLock makes a lock file and locks it.
func createLock(path string) (*os.File, error) {
	return openAlone(path, syscall.CREATE_NEW)
}

// takeLock returns a lock file whose owner is dead, locked, or nil.
func takeLock(path string) *os.File {
	f, err := openAlone(path, syscall.OPEN_EXISTING)
	if err != nil {
		return nil
	}
	return f
}

// dropLock removes a lock file that is held. It cannot be removed while it is
// open; nobody minds who takes it in between, since its folder is gone.
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
