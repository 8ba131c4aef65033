//go:build unix

package secret

import (
	"io/fs"
	"syscall"
)

// access returns the owner of a file, and the rights of all other users.
func access(info fs.FileInfo) (owner int, others fs.FileMode) {
	return int(info.Sys().(*syscall.Stat_t).Uid), info.Mode().Perm() & 0o077
}
