package test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/test/long"
)

// naming is a kind of FMUs that define names of other libraries. There are two of it, with N = 1 and 2.
type naming struct {
	name     string
	source   string     // of the function answer, in C or C++
	flags    []string   // of the compiler
	files    []string   // more sources, names and contents in turn
	more     [][]string // more libraries, as for compiledFMU
	want     [2]float64
	isolated string // part of the reason why one of the two is isolated; "" = none is
}

// allocator is an allocator that ends the process if it is to free what it has not allocated.
const allocator = `#include <stddef.h>
void abort(void);
void *memcpy(void *, const void *, size_t);
static char heap[1 << 26];
static size_t used;
void *malloc(size_t n) {
  size_t *p = (size_t *)(heap + __sync_fetch_and_add(&used, n + 31 & ~15));
  p[0] = n;
  return p + 2;
}
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *old, size_t n) {
  size_t *p = old;
  return p ? memcpy(malloc(n), p, n < p[-2] ? n : p[-2]) : malloc(n);
}
void free(void *p) { if (p && ((char *)p < heap || (char *)p >= heap + sizeof heap)) abort(); }
`

// kindsOfNames are FMUs that a plain loader in C runs rightly, each by itself.
func kindsOfNames() []*naming {
	cpp := []string{"-x", "c++", "-std=c++17", "-fno-builtin", "-w", "answer.c", "-x", "none", "-lstdc++", "-Wl,-rpath,$ORIGIN"}
	return []*naming{
		{name: "functions of libm", want: [2]float64{1011, 2022}, source: `double j1(double x) { return x + N; }
int log(const char *s) { return s[0] + 10 * N; }
double gamma(double x) { return x + 1000 * N; }
int answer(void) { return j1(0) + log("") + gamma(0); }`},
		{name: "variables of libm", want: [2]float64{13, 23}, source: `double y1 = 3, lgamma(double);
int signgam = 10 * N;
int answer(void) { lgamma(-0.5); return y1 + signgam; }`},
		{name: "functions that have left libc", want: [2]float64{21, 22}, source: `int step(int x) { return x + N; }
int advance(int x) { return x + 20; }
int answer(void) { return step(0) + advance(0); }`},
		{name: "functions and variables of libc", want: [2]float64{7654321, 7654322}, source: `#include <stddef.h>
int index(int x) { return x + N; }
int read(int x) { return x + 20; }
int error(int x) { return x + 300; }
int signal(int x) { return x + 4000; }
int close(int x) { return x + 50000; }
double timezone = 600000;
int optind = 7000000;
void *fopen(const char *, const char *); size_t fread(void *, size_t, size_t, void *); int fclose(void *);
int answer(void) {
  char c;
  void *f = fopen("/proc/self/stat", "r"); /* the C library goes on to use its own read and close */
  if (!f || fread(&c, 1, 1, f) != 1 || fclose(f)) return -1;
  return index(0) + read(0) + error(0) + signal(0) + close(0) + timezone + optind;
}`},
		{name: "an allocator", want: [2]float64{3, 4}, source: allocator + `
char *strdup(const char *);
int answer(void) {
  char *s = strdup("abc");
  int n = s[2] - 'a' + N;
  free(s);
  return n;
}`},
		{name: "libm without naming it", want: [2]float64{2, 7}, flags: []string{"-fno-builtin", "-w", "-L.", "answer.c"},
			files: []string{"libm.so", "/* an empty library for -lm */"}, source: `#if N == 1
double sqrt(double);
int answer(void) { volatile double four = 4; return sqrt(four); }
#else
double sqrt(double x) { return x + 3; }
int answer(void) { volatile double four = 4; return sqrt(four); }
#endif`},
		{name: "a library that it loads into the global scope", want: [2]float64{1, 2},
			more: [][]string{{"libplug.so", "-fPIC", "-fno-builtin", "plug.c"}}, files: []string{"plug.c", "int helper(void) { return 100; }"},
			source: `#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int helper(void) { return N; }
__attribute__((constructor)) static void plug(void) {
  static int here;
  Dl_info info;
  char path[4096];
  if (!dladdr(&here, &info)) abort();
  snprintf(path, sizeof path, "%s", info.dli_fname);
  strcpy(strrchr(path, '/') + 1, "libplug.so");
  if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL)) abort();
}
int answer(void) { return helper(); }`},
		{name: "OpenMP", want: [2]float64{4951 + 30000, 4952 + 30000}, flags: []string{"-fopenmp", "-w", "answer.c"}, source: `int read(int x) { return x + N; }
int log(int x) { return x + 30000; }
int answer(void) {
  int sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(3)
  for (int k = 0; k < 100; k++) sum += k;
  return sum + read(0) + log(0);
}`},
		{name: "C++ over libraries of its own", want: [2]float64{54321, 54322}, flags: append(cpp[:len(cpp):len(cpp)], "-L.", "-l:libpart.so"),
			more: [][]string{append([]string{"libpart.so", "-fPIC", "-Wl,-soname,libpart.so"}, strings.Fields("-x c++ -std=c++17 -w part.cpp -x none -lstdc++")...)},
			files: []string{"part.h", `#include <string>
struct Base { virtual ~Base() {} virtual int id() = 0; };
struct Derived : Base { int id() override { return 20; } };
struct Failure { int n; };
Base *produce();
void fail();
std::string text(double);
`, "part.cpp", `#include "part.h"
#include <fstream>
#include <sstream>
Base *produce() { return new Derived; }
void fail() { throw Failure{300}; }
std::string text(double x) {
  std::ifstream f("/proc/self/stat"); /* needs read and close of the C library */
  std::string first;
  std::ostringstream out;
  out << x;
  return f >> first ? out.str() : "";
}
`}, source: `#include "part.h"
#include <iostream>
extern "C" int own_read(int) __asm__("read");
int own_read(int x) { return x + N; }
extern "C" int own_close(int) __asm__("close");
int own_close(int x) { return x + 50000; }
extern "C" int answer() {
  int n = own_read(0) + own_close(0);
  try { fail(); } catch (Failure &f) { n += f.n; }
  Base *b = produce();
  if (dynamic_cast<Derived *>(b)) n += b->id();
  delete b;
  std::cerr << std::flush;
  return n + (text(1.5) == "1.5" ? 4000 : 0);
}`},
		{name: "variables that C++ shares", want: [2]float64{11, 22}, flags: cpp, isolated: "variable ", source: `inline int count = 0;
struct Registry {
  static Registry &get() { static Registry r; return r; }
  int n = 0;
};
extern "C" int answer() {
  Registry::get().n |= N;
  count |= 10 * N;
  return Registry::get().n + count;
}`},
		{name: "operator new", want: [2]float64{301, 302}, flags: cpp, isolated: "operator new", source: `#include <cstdlib>
#include <new>
#include <string>
static char pool[1 << 20];
static size_t used;
void *operator new(size_t n) { return pool + (used += n + 31 & ~31); }
void operator delete(void *p) noexcept { if (p && ((char *)p < pool || (char *)p >= pool + sizeof pool)) abort(); }
void operator delete(void *p, size_t) noexcept { operator delete(p); }
extern "C" int step(int x) { return x + N; }
extern "C" int answer() {
  std::string s;
  for (int k = 0; k < 100; k++) s += "abc";
  return step(s.size());
}`},
	}
}

// write writes the FMUs one and two of a kind, and a system of both.
func (k *naming) write(t testing.TB, dir string) (system string) {
	t.Helper()
	sources := map[string]string{"fmu.c": answerFMU, "answer.c": k.source}
	for i := 0; i < len(k.files); i += 2 {
		sources[k.files[i]] = k.files[i+1]
	}
	flags := k.flags
	if flags == nil {
		flags = []string{"-fno-builtin", "-w", "answer.c"}
	}
	for n, name := range []string{"one", "two"} {
		compiledFMU(t, dir, name, sources, append(k.more[:len(k.more):len(k.more)],
			append([]string{name + ".so", "-fPIC", "-w", "fmu.c", fmt.Sprint("-DN=", n+1)}, flags...))...)
	}
	return systemOf(t, dir, map[string]string{"first": "one", "second": "two"})
}

// Functions and variables of an FMU are its own, whatever other libraries call theirs, and other libraries keep theirs.
func TestOwnNames(t *testing.T) {
	flag := hostFlag(t)
	take := long.Sample(3)
	for _, k := range kindsOfNames() {
		ways := []string{"--isolate=auto"}
		for _, way := range []string{"--isolate=always", flag, "study"} {
			if take() {
				ways = append(ways, way)
			}
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			system := k.write(t, t.TempDir())
			for _, way := range ways {
				var first, last [2]float64
				var o *outcome
				if way == "study" {
					var folder string
					folder, o = makeStudy(t, "system: "+system+`
vary: {run.step-size: [0.5, 0.25]}
collect: {first: final(first.y), second: final(second.y)}`)
					o.is(t, 0, "2 runs: 2 ok")
					a, b := rowsOfStudy(t, folder).numbers(t, "first"), rowsOfStudy(t, folder).numbers(t, "second")
					first, last = [2]float64{a[0], b[0]}, [2]float64{a[1], b[1]}
				} else {
					o = complete(t, system, "--step-size", "0.5", way)
					first, last = o.answers(t)
				}
				if first != k.want || last != k.want || o.warned("FA6S") {
					t.Errorf("%s: the answers are %v and later %v, want %v\n%s", way, first, last, k.want, o.output)
				}
				if why := o.isolated(); way == "--isolate=auto" &&
					(len(why) > 0 != (k.isolated != "") || !strings.Contains(why["first"]+why["second"], k.isolated)) {
					t.Errorf("isolated: %v, want %q", why, k.isolated)
				}
			}
		})
	}
}

// answers returns the first and the last answers of both FMUs.
func (o *outcome) answers(t testing.TB) (first, last [2]float64) {
	t.Helper()
	a, b := o.column(t, "first.y"), o.column(t, "second.y")
	return [2]float64{a[0], b[0]}, [2]float64{a[len(a)-1], b[len(b)-1]}
}

// A library of the system that FMUs share keeps the functions of the C library, whatever an FMU calls its own.
func TestNamesOfSharedLibraries(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ name, definition string }{{"log", "double log(double x) { return 100; }"}, {"abs", "int abs(int x) { return 100; }"}} {
		t.Setenv("LD_LIBRARY_PATH", filepath.Join(dir, c.name))
		source := "double log(double); int abs(int);\nint common(void) { volatile double one = 1; volatile int two = -2; return log(one) + abs(two); }"
		cc, err := csrc.Compiler()
		if err == nil {
			write(t, filepath.Join(dir, c.name, "common.c"), source)
			err = csrc.Library(t.Context(), cc, filepath.Join(dir, c.name), filepath.Join(dir, c.name, "libcommon.so"), "-fno-builtin", "-Wl,-soname,libcommon.so", "common.c")
		}
		if err != nil {
			t.Fatal(err)
		}
		kind := naming{flags: []string{"-fno-builtin", "-w", "answer.c", "-L" + filepath.Join(dir, c.name), "-lcommon"}, source: `int common(void);
#if N == 1
` + c.definition + `
int answer(void) { return common() + ` + c.name + `(1); }
#else
int answer(void) { return common(); }
#endif`}
		system := kind.write(t, filepath.Join(dir, c.name))
		for _, way := range []string{"--isolate=auto", "--isolate=always"} {
			if _, last := complete(t, system, "--step-size", "0.5", way).answers(t); last != [2]float64{102, 2} {
				t.Errorf("%s, %s: the answers are %v", c.name, way, last)
			}
		}
	}
}

// warned reports whether the manifest has a warning with a text.
func (o *outcome) warned(part string) bool {
	return strings.Contains(strings.Join(o.manifest.Warnings, "\n"), part)
}

// What is preloaded stays in force for an FMU. If it gets names of the process then, runs and validate report it.
func TestPreloaded(t *testing.T) {
	dir := t.TempDir()
	kind := naming{source: `char *strdup(const char *);
void free(void *);
long time(long *);
double timezone = N;
int answer(void) { free(strdup("abc")); return timezone + 10 * (time(0) == 42); }`}
	system := kind.write(t, dir)
	t.Setenv("TZ", "UTC") // timezone of the C library is 0
	for _, c := range []struct {
		source   string
		want     [2]float64
		replaced string // the reason
	}{
		{"int no_name_of_another;", [2]float64{1, 2}, ""},
		{allocator, [2]float64{0, 0}, "timezone, because the FMU would otherwise use free of "},
		{"long time(long *p) { return 42; }", [2]float64{10, 10}, "timezone, because the FMU would otherwise use time of "},
	} {
		library := filepath.Join(t.TempDir(), "preloaded.so")
		write(t, filepath.Join(dir, "preloaded.c"), c.source)
		cc, err := csrc.Compiler()
		if err == nil {
			err = csrc.Library(t.Context(), cc, dir, library, "-fno-builtin", "-w", "preloaded.c")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("LD_PRELOAD", library)
		for _, way := range []string{"--isolate=auto", "--isolate=always"} {
			o := complete(t, system, "--step-size", "0.5", way)
			if _, last := o.answers(t); last != c.want || o.warned("FA6S") != (c.replaced != "") || c.replaced != "" && !o.warned(c.replaced) {
				t.Errorf("%s, preloaded %s: the answers are %v, want %v; want %q in %q", way, c.source, last, c.want, c.replaced, o.manifest.Warnings)
			}
		}
		if _, out := macrostep(t, "validate", "--json", filepath.Join(dir, "one.fmu")); strings.Contains(out, "FA6S") != (c.replaced != "") ||
			!strings.Contains(out, c.replaced) {
			t.Errorf("preloaded %s: validate does not report %q:\n%s", c.source, c.replaced, out)
		}
	}
}

// An FMU with an allocator of its own gets that of the process, and with it other names; this is reported.
func TestAllocatorWithOtherNames(t *testing.T) {
	kind := naming{source: allocator + "\ndouble timezone = N;\nint answer(void) { free(malloc(10)); return timezone; }"}
	t.Setenv("TZ", "UTC")
	o := complete(t, kind.write(t, t.TempDir()), "--step-size", "0.5")
	if _, last := o.answers(t); last != [2]float64{} || !o.warned("timezone, because the FMU also defines ") {
		t.Errorf("the answers are %v; warnings %q", last, o.manifest.Warnings)
	}
}
