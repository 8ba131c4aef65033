package native

import "runtime"

// BufferLines makes standard output of C line-buffered, also into a pipe, so that the last
// lines before a crash are not lost.
func BufferLines() {
	name, byLine := "stdout", uintptr(1)
	switch runtime.GOOS {
	case "darwin":
		name = "__stdoutp"
	case "windows": // has no such mode
		return
	}
	stdout, err := libcSymbol(name)
	if err != nil {
		return
	}
	if setvbuf, err := libcSymbol("setvbuf"); err == nil {
		CallInts(setvbuf, *(*uintptr)(Pointer(stdout)), 0, byLine, 0)
	}
}
