//go:build unix

package process

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapFile(f *os.File, size int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// forbid makes memory inaccessible.
func forbid(memory []byte) { _ = unix.Mprotect(memory, unix.PROT_NONE) }

func unmap(view []byte) { _ = unix.Munmap(view) }
