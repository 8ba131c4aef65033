//go:build linux || darwin || freebsd || netbsd

package native

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// The loader of ELF libraries binds a name to the first library that defines it: those in the
// global scope, such as the C library, come before the FMU and the libraries that it needs. So
// a function or variable of an FMU called step, index or timezone would be that of the C
// library. With RTLD_DEEPBIND the FMU comes first. On macOS and Windows a library states for
// each name which library it is from.

// names are the names that the loader looks up for a library and those that it brings along.
type names struct {
	own     []string // defined in these libraries
	foreign []string // not defined there
	needs   []string // libraries of the system
	shared  []string // own variables that the loader shares between all libraries of the process
}

// readNames reads the names of the library at a path. There are none if it is no ELF library of
// 64 bits for this processor.
func readNames(path string) (n names) {
	defined, used, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for queue := []string{path}; len(queue) > 0; queue = queue[1:] {
		x := openImage(queue[0])
		if x == nil {
			continue
		}
		for _, k := range x.lookedUp() {
			used[x.text(uint64(x.symbol(k).Name))] = true
		}
		for k := range x.symbols {
			s := x.symbol(k)
			bind := elf.ST_BIND(s.Info)
			if elf.SectionIndex(s.Shndx) == elf.SHN_UNDEF || bind == elf.STB_LOCAL || elf.ST_VISIBILITY(s.Other) != elf.STV_DEFAULT {
				continue
			}
			name := x.text(uint64(s.Name))
			defined[name] = true
			if bind == stbUnique && queue[0] == path && x.variable(s.Value) && !cxxLibrary.MatchString(name) {
				n.shared = append(n.shared, name)
			}
		}
		for _, name := range x.listed(elf.DT_NEEDED) {
			if seen[name] {
				continue
			}
			seen[name] = true
			if file := x.beside(name); file != "" {
				queue = append(queue, file)
			} else {
				n.needs = append(n.needs, name)
			}
		}
		_ = x.file.Close()
	}
	delete(used, "")
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if defined[name] {
			n.own = append(n.own, name)
		} else {
			n.foreign = append(n.foreign, name)
		}
	}
	return n
}

// stbUnique marks variables that exist once in a process, for example static variables in inline
// functions of C++.
const stbUnique = elf.STB_LOOS

// cxxLibrary matches names of the C++ standard library.
var cxxLibrary = regexp.MustCompile(`^_Z(GV|GR|T[VIST]|Z)*(N[rVK]*)?(S[tabsiod]|9__gnu_cxx)`)

// beside returns where the loader finds a needed library by the search path in this one; "" if it
// is a library of the system.
func (x *image) beside(needed string) string {
	folder := filepath.Dir(x.file.Name())
	origin := strings.NewReplacer("$ORIGIN", folder, "${ORIGIN}", folder)
	for _, list := range append(x.listed(elf.DT_RPATH), x.listed(elf.DT_RUNPATH)...) {
		for dir := range strings.SplitSeq(list, ":") {
			file := filepath.Join(origin.Replace(dir), needed)
			if info, err := os.Stat(file); dir != "" && err == nil && info.Mode().IsRegular() {
				return file
			}
		}
	}
	return ""
}

// baseVersion is the first version of the C library, by processor. The loader binds names to
// functions of this version even if new programs cannot be linked with them, such as step.
var baseVersion = map[string]string{"amd64": "GLIBC_2.2.5", "arm64": "GLIBC_2.17"}[runtime.GOARCH]

// libm returns the handle of the mathematical library; 0 if it is a part of the C library.
var libm = sync.OnceValue(func() uintptr {
	h, _ := purego.Dlopen("libm.so.6", purego.RTLD_LAZY|purego.RTLD_LOCAL)
	return h
})

// clashing returns the own names that the global scope has, and those that libm has.
func (n *names) clashing() (global, mathematical []string) {
	find, old := inLibc("dlsym"), inLibc("dlvsym") // old is 0 on systems without versions
	if find == 0 {
		return nil, nil
	}
	if baseVersion == "" {
		old = 0
	}
	joined := baseVersion + "\x00" + strings.Join(n.own, "\x00")
	var mem Memory
	defer mem.Release()
	texts, err := Slice[byte](&mem, len(joined)+1)
	if err != nil {
		return nil, nil
	}
	copy(texts, joined)
	version := Address(texts)
	text := version + uintptr(len(baseVersion)) + 1
	for _, name := range n.own {
		has := func(library uintptr) bool {
			return CallInts(find, library, text) != 0 || old != 0 && CallInts(old, library, text, version) != 0
		}
		if has(purego.RTLD_DEFAULT) {
			global = append(global, name)
		} else if libm() != 0 && has(libm()) {
			mathematical = append(mathematical, name)
		}
		text += uintptr(len(name)) + 1
	}
	return global, mathematical
}

// oneForAll are names of the C library that a process can have only once. What the C library allocates,
// for example in strdup, must return to it.
var oneForAll = strings.Fields("malloc calloc realloc reallocarray free cfree aligned_alloc memalign posix_memalign valloc pvalloc " +
	"malloc_usable_size malloc_trim malloc_stats mallinfo mallinfo2 mallopt environ")

// single reports whether a name must be that of the global scope for the FMU, too.
func (n *names) single(name string) bool {
	return slices.Contains(oneForAll, name) || n.cxx() != "" && cxxNew.MatchString(name)
}

// inseparable returns why the loader cannot prefer own names to those of the global scope, given
// the names in both; "" if it can. That must not change the meaning of foreign names.
func (n *names) inseparable(global []string) string {
	if inLibc("gnu_get_libc_version") == 0 {
		return "the loader of this system cannot prefer those of the FMU"
	}
	if k := slices.IndexFunc(global, n.single); k >= 0 {
		return "the FMU also defines " + global[k] + ", which a process can have only once"
	}
	var needs []uintptr
	for _, name := range append(slices.Clip(n.needs), "libc.so.6") {
		const noLoad = 4 // RTLD_NOLOAD
		if h, err := purego.Dlopen(name, purego.RTLD_LAZY|noLoad); err == nil {
			needs = append(needs, h)
		}
	}
	// A sanitizer replaces dlopen, and ends the process if it is called with RTLD_DEEPBIND.
	for _, name := range append(slices.Clip(n.foreign), "malloc", "dlopen") {
		global := Symbol(purego.RTLD_DEFAULT, name)
		for _, library := range needs {
			p := Symbol(library, name)
			if p == 0 || global == 0 || p == global {
				continue
			}
			if from, to := LibraryOf(global), LibraryOf(p); !glibc.MatchString(from) || !glibc.MatchString(to) {
				return fmt.Sprintf("the FMU would otherwise use %s of %s instead of %s", name, to, from)
			}
		}
	}
	return ""
}

// glibc matches the libraries of the C library. Some functions are in several of them.
var glibc = regexp.MustCompile(`/(ld|lib(c|m|dl|rt|pthread))[-.][^/]*$`)

// Replaced returns which functions and variables of the library at a path are replaced by those of
// the process when it is loaded, and why; "" for none. It does not load the library.
func Replaced(path string) string {
	n := readNames(path)
	global, _ := n.clashing()
	replaced := slices.DeleteFunc(slices.Clone(global), func(name string) bool { return n.single(name) && name != "environ" })
	if len(replaced) == 0 {
		return ""
	}
	why := n.inseparable(global)
	if why == "" {
		return ""
	}
	const few = 5
	text := strings.Join(replaced[:min(len(replaced), few)], ", ")
	if more := len(replaced) - few; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ", because " + why
}

// cxxNew matches the operators new and delete. A library that defines them replaces them in the
// library of C++ as well, if it is loaded first.
var cxxNew = regexp.MustCompile(`^_Z(nw|na|dl|da)`)

func (n *names) replacesNew() bool { return slices.ContainsFunc(n.own, cxxNew.MatchString) }

// cxx returns the library of C++ that is needed from the system, "" for none.
func (n *names) cxx() string {
	for _, name := range n.needs {
		if strings.HasPrefix(name, "libstdc++.") || strings.HasPrefix(name, "libc++.") {
			return name
		}
	}
	return ""
}

// Shared returns what the libraries of a process share with that at a path by name, and whether
// the library has its own version.
func Shared(path string) map[string]bool {
	n := readNames(path)
	out := map[string]bool{}
	for _, name := range n.shared {
		out["variable "+name] = true
	}
	if name := n.cxx(); name != "" {
		out["operator new in "+name] = n.replacesNew()
	}
	return out
}
