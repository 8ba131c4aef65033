package fmi

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

func TestResourceURI(t *testing.T) {
	for _, c := range []struct {
		dir     string
		windows bool
		want    string
	}{
		{"/tmp/x", false, "file:///tmp/x/resources"},
		{"/tmp/x/", false, "file:///tmp/x/resources"},
		{"/tmp/a b#c%/ü", false, "file:///tmp/a%20b%23c%25/%C3%BC/resources"},
		{`C:\x y\z`, true, "file:///C:/x%20y/z/resources"},
		{`\\host\share\d`, true, "file://host/share/d/resources"},
	} {
		if got := resourceURI(c.dir, c.windows); got != c.want {
			t.Errorf("%s: %s, want %s", c.dir, got, c.want)
		}
	}
}

func TestPlatforms(t *testing.T) {
	for k, want := range map[string]string{
		"linux/amd64": "linux64 x86_64-linux", "linux/arm64": "aarch64-linux linux-aarch64",
		"windows/amd64": "win64 x86_64-windows", "windows/arm64": "aarch64-windows",
		"darwin/amd64": "darwin64 x86_64-darwin", "darwin/arm64": "aarch64-darwin darwin64",
		"linux/riscv64": "riscv64-linux", "freebsd/amd64": "x86_64-freebsd", "freebsd/arm64": "aarch64-freebsd",
	} {
		goos, arch, _ := strings.Cut(k, "/")
		if got := strings.Join(platforms(goos, arch), " "); got != want {
			t.Errorf("%s: %s, want %s", k, got, want)
		}
	}
}

// binaries is the folder of the libraries for this platform.
func binaries(f *FMU) string {
	return filepath.Join(f.Dir, "binaries", platforms(runtime.GOOS, runtime.GOARCH)[0])
}

// refuses loads f and wants an error with the rule and the words.
func refuses(t *testing.T, f *FMU, id string, words ...string) {
	t.Helper()
	_, err := f.Instantiate("x", InstanceOptions{})
	if !diag.Has(err, id) {
		t.Errorf("error %v, want rule %s", err, id)
		return
	}
	for _, w := range append(words, f.Path) {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if _, again := f.Instantiate("x", InstanceOptions{}); again == nil || again.Error() != err.Error() {
		t.Errorf("the second time: %v", again)
	}
}

// warns loads f and wants a warning with the rule, in the instance's log too.
func warns(t *testing.T, f *FMU, id string) *collector {
	t.Helper()
	c := new(collector)
	instance(t, f, "x", InstanceOptions{Log: c.log})
	l, err := f.Load(t.Context(), "")
	must(t, err)
	if len(l.Findings) == 0 || l.Findings[0].ID != id || l.Findings[0].Level != diag.Info {
		t.Errorf("findings %v, want %s", l.Findings, id)
	}
	if !c.has(id) {
		t.Errorf("the log does not tell %s: %q", id, c.texts())
	}
	return c
}

// A library in an unpacked FMU may be a link to a versioned file.
func TestLinkedLibrary(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // links need a privilege there
	}
	f, lib := place(t)
	build(t, lib+".1", []string{"probe.c"})
	must(t, os.Symlink(filepath.Base(lib)+".1", lib))
	before, err := hashTree(f.Dir)
	must(t, err)
	if _, err := f.Locate(); err != nil || f.place.Path != lib {
		t.Errorf("found %q, %v; want %q", f.place.Path, err, lib)
	}
	must(t, os.WriteFile(lib+".1", []byte("other"), 0o644))
	if after, err := hashTree(f.Dir); err != nil || after == before {
		t.Errorf("the hash is that of another library, %v", err)
	}
	must(t, os.Remove(lib+".1"))
	refuses(t, &FMU{Dir: f.Dir, Path: f.Path, Description: f.Description}, "FA5", runtime.GOOS)
}

func TestLoadErrors(t *testing.T) {
	f, _ := place(t)
	must(t, os.MkdirAll(f.Dir, 0o755))
	refuses(t, f, "FA5", runtime.GOOS, "no library at all")

	f, _ = place(t)
	must(t, os.MkdirAll(filepath.Join(f.Dir, "sources"), 0o755))
	refuses(t, f, "FA5", "C sources only")

	f, _ = place(t)
	must(t, os.MkdirAll(filepath.Join(f.Dir, "binaries", "vax-vms"), 0o755))
	must(t, os.WriteFile(filepath.Join(f.Dir, "binaries", "vax-vms", "probe.exe"), nil, 0o644))
	refuses(t, f, "FA5", "vax-vms")

	refuses(t, placed(t, []byte("not a library")), "FA6", "probe"+native.LibrarySuffix)

	// Cut off anywhere, a library that the loader would touch beyond its end.
	f = plainFMU(t)
	whole, err := os.ReadFile(filepath.Join(binaries(f), "probe"+native.LibrarySuffix))
	must(t, err)
	for _, n := range []int{0, 10, 100, 2000, len(whole) / 4} {
		refuses(t, placed(t, whole[:n]), "FA6", "probe"+native.LibrarySuffix)
	}

	f, lib := place(t)
	must(t, os.MkdirAll(filepath.Dir(lib), 0o755))
	for _, n := range []string{"a", "b"} {
		must(t, os.WriteFile(filepath.Join(filepath.Dir(lib), n+native.LibrarySuffix), nil, 0o644))
	}
	refuses(t, f, "FA5", "a"+native.LibrarySuffix, `modelIdentifier "probe"`)

	f, lib = place(t)
	build(t, lib, []string{"dep.c"})
	refuses(t, f, "FA7", "fmi2Instantiate")

	f, lib = place(t)
	build(t, lib, []string{"dep.c"}, "-Ddep_answer=probe_fmi2Instantiate")
	refuses(t, f, "FA7", "prefix")

	refuses(t, probeFMU(t, `-DTYPES="strange"`), "FA8", "strange", "default")

	f, _ = place(t)
	f.Description.CoSimulation = nil
	refuses(t, f, "FA7", "Co-Simulation")
}

// No damage of a library upsets what reads its names.
func TestDamagedLibrary(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join(binaries(plainFMU(t)), "probe"+native.LibrarySuffix))
	must(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		damaged := slices.Clone(whole)
		for range 1 + rng.IntN(20) {
			damaged[64+rng.IntN(len(damaged)/2)] = byte(rng.Uint32()) >> rng.IntN(8)
		}
		f := placed(t, damaged)
		f.CheckNames(&diag.List{})
		f.Shared()
		must(t, os.RemoveAll(f.Dir))
	}
}

func TestLoadDeviations(t *testing.T) {
	warns(t, probeFMU(t, `-DVERSION="2.0.3"`), "FA8V")

	rename := func(f *FMU, name string) {
		t.Helper()
		dir := binaries(f)
		must(t, os.Rename(filepath.Join(dir, "probe"+native.LibrarySuffix), filepath.Join(dir, name+native.LibrarySuffix)))
	}
	f := plainFMU(t)
	rename(f, "other")
	warns(t, f, "FA6N")

	f = plainFMU(t)
	rename(f, "archive")
	f.Path = filepath.Join(tempDir, "archive.fmu")
	dir := binaries(f)
	must(t, os.WriteFile(filepath.Join(dir, "helper"+native.LibrarySuffix), nil, 0o644))
	warns(t, f, "FA6N")

	if p := platforms(runtime.GOOS, runtime.GOARCH); len(p) > 1 {
		f = plainFMU(t)
		must(t, os.Rename(filepath.Join(f.Dir, "binaries", p[0]), filepath.Join(f.Dir, "binaries", p[1])))
		warns(t, f, "FA6N")
	}
}

// If Model Exchange has a separate library, that of Co-Simulation is loaded (fmi2 5).
func TestLibraryOfCoSimulation(t *testing.T) {
	f := plainFMU(t)
	f.Description.ModelExchange = &description.ModelExchange{ModelIdentifier: "probe_me"}
	f.Path = filepath.Join(tempDir, "probe_me.fmu")
	dir := binaries(f)
	must(t, os.WriteFile(filepath.Join(dir, "probe_me"+native.LibrarySuffix), []byte("for Model Exchange"), 0o600))
	l, err := f.Load(t.Context(), "")
	must(t, err)
	if want := filepath.Join(dir, "probe"+native.LibrarySuffix); f.Library() != want || len(l.Findings) > 0 {
		t.Errorf("loaded %s with %v, want %s", f.Library(), l.Findings, want)
	}
}

// A library can be loaded if it needs another one in its folder without a search path, or uses libm
// without naming it.
func TestUnnamedLibraries(t *testing.T) {
	f, lib := place(t)
	dir := filepath.Dir(lib)
	named := "-Wl,-soname,libprobedep.so"
	if runtime.GOOS == "darwin" {
		named = "-Wl,-install_name,libprobedep.dylib"
	}
	build(t, filepath.Join(dir, "libprobedep"+native.LibrarySuffix), []string{"dep.c"}, named)
	build(t, lib, []string{"probe.c"}, "-DNEEDS_DEP", "-L"+dir, "-lprobedep", "-lm")
	n := make([]int64, 1)
	must(t, running(t, f, "x").GetInteger([]description.ValueReference{10}, n))
	f, lib = place(t)
	build(t, lib, []string{"probe.c"}, "-DNEEDS_LIBM")
	v := make([]float64, 1)
	must(t, running(t, f, "x").GetReal([]description.ValueReference{10}, v))
	if n[0] != 42 || v[0] != math.Sqrt2 {
		t.Errorf("the dependency answers %d, sqrt(2) = %v", n[0], v[0])
	}
}

func TestNull(t *testing.T) {
	f := plainFMU(t)
	f.Description.GUID = "{other}"
	c := new(collector)
	_, err := f.Instantiate("x", InstanceOptions{Log: c.log})
	if err == nil || !strings.Contains(err.Error(), "guid {other} is not {probe}") || !strings.Contains(err.Error(), f.Path) {
		t.Errorf("error %v", err)
	}
	if !c.has("guid {other}") {
		t.Errorf("log %q", c.texts())
	}
}

// A process can have one instance of a library, also after it was freed. A failed Instantiate does
// not count.
func TestOncePerProcess(t *testing.T) {
	f := probeFMU(t, "-O0") // other bytes than the plain probe
	g := copied(t, filepath.Join(binaries(f), "probe"+native.LibrarySuffix))
	f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess = true
	g.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess = true
	f.Description.GUID = "{other}"
	if _, err := f.Instantiate("x", InstanceOptions{}); err == nil {
		t.Error("wrong guid accepted")
	}
	f.Description.GUID = g.Description.GUID
	a := instance(t, f, "first", InstanceOptions{})
	for _, x := range []*FMU{f, g, g} {
		if _, err := x.Instantiate("second", InstanceOptions{}); err == nil || !strings.Contains(err.Error(), `"first"`) {
			t.Errorf("a second instance: %v", err)
		}
		must(t, a.Free()) // it may be called again
	}
}
