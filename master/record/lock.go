package record

import "os"

// Lock keeps other processes from locking the file until it is closed. The error is ErrBusy if one has. On a
// file system without locks it does nothing.
func Lock(f *os.File) error { return lock(f) }
