package diag

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Readable returns an error if reading a file could wait for ever: if it is a named pipe, a device or a socket. What another
// program writes may come through /dev/stdin or /dev/fd, as in a shell's <(…). It returns nil if there is no file.
func Readable(path string) error {
	info, err := os.Stat(path)
	dir := filepath.Dir(path)
	switch {
	case err != nil, info.Mode().IsRegular(), info.IsDir():
		return nil
	case path == "/dev/stdin", dir == "/dev/fd", strings.HasPrefix(dir, "/proc/") && filepath.Base(dir) == "fd":
		return nil
	}
	return fmt.Errorf("%s is %s, and reading it could wait for ever (what a program writes may come through /dev/stdin)", path, KindOf(info.Mode()))
}

// KindOf names the kind of something that is not a regular file.
func KindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Open opens a file for reading, unless that could wait for ever (see [Readable]).
func Open(path string) (*os.File, error) {
	if err := Readable(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// pointerBegin begins the text that Git LFS leaves in the place of a file that it has not fetched.
const pointerBegin = "version https://git-lfs.github.com/spec/"

// FetchPointer is what to do about a pointer of Git LFS.
const FetchPointer = "fetch the file with: git lfs pull"

// Pointer describes the content of a file that is a pointer of Git LFS; "" = it is none.
func Pointer(content []byte) string {
	const longest = 1024 // by the specification of Git LFS
	if len(content) > longest || !bytes.HasPrefix(content, []byte(pointerBegin)) {
		return ""
	}
	size := ""
	for line := range strings.Lines(string(content)) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "size "); ok {
			if bytes, err := strconv.ParseInt(n, 10, 64); err == nil {
				size = fmt.Sprintf(" of %d bytes", bytes)
			}
		}
	}
	return "this is a pointer of Git LFS in the place of the real file" + size
}

// PointerFile is Pointer for a file; "" also if it cannot be read.
func PointerFile(path string) string {
	f, err := Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, 2048))
	if err != nil {
		return ""
	}
	return Pointer(content)
}
