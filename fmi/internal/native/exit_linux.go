package native

import (
	"debug/elf"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// In a C program, exit calls the destructors of all libraries by a function of the dynamic loader, which the
// start-up code of C gets from it. The start-up code of Go does not, so that glibc calls none in a program
// without cgo, and runDestructors does so instead.

// streamFunctions returns the functions of glibc for its streams; nil for another C library.
var streamFunctions = sync.OnceValue(func() map[string]uintptr {
	f := map[string]uintptr{}
	for _, name := range []string{"_IO_list_lock", "_IO_list_unlock", "_IO_iter_begin", "_IO_iter_end", "_IO_iter_next", "_IO_iter_file",
		"ftrylockfile", "funlockfile", "fflush_unlocked"} {
		if f[name] = inLibc(name); f[name] == 0 {
			return nil
		}
	}
	return f
})

// flushFree flushes the streams of glibc that no thread holds. A thread may hold one for ever, for example
// while it waits for a line. fflush(NULL) would wait for it, and meanwhile nobody could open or close a stream.
// It returns false for another C library.
func flushFree() bool {
	f := streamFunctions()
	if f == nil {
		return false
	}
	runtime.LockOSThread() // which holds the streams
	defer runtime.UnlockOSThread()
	var held []uintptr
	CallInts(f["_IO_list_lock"])
	for i := CallInts(f["_IO_iter_begin"]); i != CallInts(f["_IO_iter_end"]); i = CallInts(f["_IO_iter_next"], i) {
		if stream := CallInts(f["_IO_iter_file"], i); int32(CallInts(f["ftrylockfile"], stream)) == 0 {
			held = append(held, stream)
		}
	}
	CallInts(f["_IO_list_unlock"])
	for _, stream := range held {
		CallInts(f["fflush_unlocked"], stream)
		CallInts(f["funlockfile"], stream)
	}
	return true
}

// linkMap is a loaded library: the beginning of struct link_map of <link.h>, the same in all C libraries.
type linkMap struct {
	base    uintptr // added to the addresses in the file
	name    uintptr // C string
	dynamic *elf.Dyn64
	next    *linkMap
}

// newest returns the library that was loaded last; nil if the destructors are not ours to call.
func newest() *linkMap {
	debug := inLibc("_r_debug") // struct r_debug of <link.h>: a version, the first library
	if startsInC || debug == 0 || inLibc("gnu_get_libc_version") == 0 {
		return nil
	}
	l := *(**linkMap)(unsafe.Add(Pointer(debug), 8))
	for l != nil && l.next != nil {
		l = l.next
	}
	return l
}

// before is the library loaded last before the first FMU, which is never unloaded.
var before *linkMap

// beforeOpening is called before the first FMU is loaded, and after all libraries of our own.
var beforeOpening = sync.OnceFunc(func() { before = newest() })

// runDestructors calls, as exit of C does, exit handlers and then the destructors of the libraries of FMUs and of
// those loaded with them: of each one before those that it needs.
func runDestructors() {
	if before == nil {
		return
	}
	libraries := dependentsFirst(before.next)
	if end := inLibc("__call_tls_dtors"); end != 0 { // of this thread's objects in C++, first
		_, _, _ = callForeign(0, end)
	}
	if end := inLibc("__cxa_finalize"); end != 0 {
		_, _, _ = callForeign(withHandlers(libraries), end, 0) // 0: of all libraries, the last one first
	}
	for _, l := range libraries {
		for _, f := range l.destructors {
			_, _, _ = callForeign(tagOf(l.path), f)
		}
	}
}

// withHandlers returns the tag of the FMU of which the exit handlers are, 0 if they may be of several.
func withHandlers(libraries []*loaded) (one Tag) {
	for _, l := range libraries {
		if t := tagOf(l.path); t != 0 && t != one && l.handlers {
			if one != 0 {
				return 0
			}
			one = t
		}
	}
	return one
}

// loaded is what the destructors of a library need.
type loaded struct {
	path        string
	names       []string // by which others need it
	needs       []string
	handlers    bool      // whether it can set up exit handlers
	destructors []uintptr // in the order of calling
}

// dependentsFirst lists libraries from one on: what was loaded later comes first, except that each library
// comes before those that it needs.
func dependentsFirst(from *linkMap) []*loaded {
	var all []*loaded
	for l := from; l != nil; l = l.next {
		x := l.read()
		// A destructor may close a library whose own turn is later.
		const noLoad = 4
		if h, err := purego.Dlopen(x.path, purego.RTLD_LAZY|noLoad); err == nil && h != 0 {
			all = append(all, x)
		}
	}
	var order []*loaded
	seen := map[*loaded]bool{}
	var visit func(*loaded)
	visit = func(x *loaded) {
		if seen[x] {
			return
		}
		seen[x] = true
		for _, other := range all {
			if slices.ContainsFunc(other.names, func(name string) bool { return slices.Contains(x.needs, name) }) {
				visit(other)
			}
		}
		order = append(order, x)
	}
	for _, x := range all {
		visit(x)
	}
	slices.Reverse(order)
	return order
}

// read reads the dynamic section of a library in memory: its file may have been removed.
func (l *linkMap) read() *loaded {
	x := &loaded{path: String(l.name, maxLocale)}
	values := map[elf.DynTag]uintptr{}
	var needs []uintptr
	for d := l.dynamic; elf.DynTag(d.Tag) != elf.DT_NULL; d = (*elf.Dyn64)(unsafe.Add(unsafe.Pointer(d), unsafe.Sizeof(*d))) {
		if values[elf.DynTag(d.Tag)] = uintptr(d.Val); elf.DynTag(d.Tag) == elf.DT_NEEDED {
			needs = append(needs, uintptr(d.Val))
		}
	}
	address := func(tag elf.DynTag) uintptr {
		if at := values[tag]; at >= l.base {
			return at
		}
		return l.base + values[tag] // the loader changes it to an address, except on some processors
	}
	strings := address(elf.DT_STRTAB)
	for _, at := range needs {
		x.needs = append(x.needs, String(strings+at, maxLocale))
	}
	symbols := (*elf.Sym64)(Pointer(address(elf.DT_SYMTAB)))
	for table, size := range map[elf.DynTag]elf.DynTag{elf.DT_RELA: elf.DT_RELASZ, elf.DT_JMPREL: elf.DT_PLTRELSZ} {
		n := values[size] / unsafe.Sizeof(elf.Rela64{})
		for _, r := range unsafe.Slice((*elf.Rela64)(Pointer(address(table))), n) {
			symbol := (*elf.Sym64)(unsafe.Add(unsafe.Pointer(symbols), elf.R_SYM64(r.Info)*elf.Sym64Size))
			x.handlers = x.handlers || String(strings+uintptr(symbol.Name), maxLocale) == "__cxa_atexit"
		}
	}
	x.names = []string{filepath.Base(x.path)}
	if at, ok := values[elf.DT_SONAME]; ok {
		x.names = append(x.names, String(strings+at, maxLocale))
	}
	if at, n := values[elf.DT_FINI_ARRAY], values[elf.DT_FINI_ARRAYSZ]/8; n > 0 {
		x.destructors = slices.Clone(unsafe.Slice((*uintptr)(Pointer(l.base+at)), n))
		slices.Reverse(x.destructors)
	}
	if at := values[elf.DT_FINI]; at != 0 {
		x.destructors = append(x.destructors, l.base+at)
	}
	return x
}
