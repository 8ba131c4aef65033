package native

import "runtime"

// inLibc returns the address of a function or variable of the C library; 0 if it lacks it.
func inLibc(name string) uintptr {
	p, _ := libcSymbol(name)
	return p
}

// callLibc calls a function of the C library; the result is 0 if it lacks it.
func callLibc(name string, args ...uintptr) uintptr {
	if f := inLibc(name); f != 0 {
		return CallInts(f, args...)
	}
	return 0
}

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
	if stdout := inLibc(name); stdout != 0 {
		callLibc("setvbuf", *(*uintptr)(Pointer(stdout)), 0, byLine, 0)
	}
}
