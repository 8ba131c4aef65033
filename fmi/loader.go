package fmi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
)

// Rules on the binary of an FMU.
var (
	ruleNoBinary = &diag.Rule{
		ID: "FA5", Level: diag.Error, Ref: "fmi2 5, 10",
		Doc:    "An FMU needs a library for the platform that runs it.",
		Remedy: "have the FMU exported for this platform, or run it on one that it holds a library for",
	}
	ruleLoad = &diag.Rule{
		ID: "FA6", Level: diag.Error, Ref: "fmi2 7",
		Doc: "The library loads with what this system has.",
	}
	ruleLibraryName = &diag.Rule{
		ID: "FA6N", Level: diag.Warning, Strict: true, Ref: "fmi2 5",
		Doc:    "The library is named after modelIdentifier and stands in the folder of the platform.",
		Remedy: "harmless here; the exporter should name folder and file as FMI 2.0.4 says",
	}
	ruleSymbol = &diag.Rule{
		ID: "FA7", Level: diag.Error, Ref: "fmi2 6",
		Doc:    "The library exports the functions of FMI 2.0 for Co-Simulation without prefix.",
		Remedy: "export the FMU again as FMI 2.0 for Co-Simulation with all functions visible",
	}
	ruleTypes = &diag.Rule{
		ID: "FA8", Level: diag.Error, Ref: "fmi2 8",
		Doc:    `fmi2GetTypesPlatform gives "default".`,
		Remedy: "have the FMU exported for the default types platform; no other can be called",
	}
	ruleVersion = &diag.Rule{
		ID: "FA8V", Level: diag.Warning, Ref: "fmi2 8",
		Doc:    `fmi2GetVersion gives "2.0".`,
		Remedy: "usually harmless; the exporter should correct it",
	}
	ruleProcess = &diag.Rule{
		ID: "FA6G", Level: diag.Warning, Ref: "fmi2 73",
		Doc:    "Loading the library changes nothing in the process: working folder, signal handlers, floating-point modes.",
		Remedy: "run the FMU in a process of its own if this disturbs it",
	}
)

// BinaryRules lists the rules on the library of an FMU that Load checks.
func BinaryRules() []*diag.Rule {
	return []*diag.Rule{ruleNoBinary, ruleLoad, ruleLibraryName, ruleSymbol, ruleTypes, ruleVersion, ruleProcess,
		ruleSources, ruleGuessed, ruleBuildOption}
}

// loader is the half of FMU that holds its library, which it shares with other
// FMUs of equal content in this process.
type loader struct {
	once     sync.Once
	err      error
	findings diag.List
	told     atomic.Bool // the findings were given to someone
	modes    atomic.Bool // it was said that the FMU changes floating-point modes
	uri      string      // fmuResourceLocation
	*image               // nil until it is loaded

	compile bool         // sources, if there is no library
	chdir   bool         // load in the folder of the library
	built   *archive.Dir // with what was compiled; nil = none

	nameOnce sync.Once
	nameOf   map[variableKey]string
}

// variableKey is what a log message refers to a variable by.
type variableKey struct {
	kind byte // r, i, b or s
	vr   ValueReference
}

// loading is held while a library loads: its initialisers run, and the guard
// compares the process before and after.
var loading sync.Mutex

// Load finds and loads the library of the FMU, once; Instantiate does so too.
// The findings tell what deviates from the standard without harm. The error is
// a *diag.ListError that names library, cause and remedy.
func (f *FMU) Load() (*diag.List, error) {
	f.told.Store(true)
	return f.loadOnce()
}

func (f *FMU) loadOnce() (*diag.List, error) {
	f.once.Do(func() {
		loading.Lock()
		defer loading.Unlock()
		f.err = f.load()
	})
	return &f.findings, f.err
}

func (f *FMU) load() error {
	l := &f.findings
	add := func(r *diag.Rule, path, remedy, format string, args ...any) error {
		l.Add(r, f.Path, path, 0, format, args...)
		if remedy != "" {
			l.Findings[len(l.Findings)-1].Remedy = remedy
		}
		return l.Err()
	}
	if f.Description == nil || f.Description.CoSimulation == nil {
		return add(ruleSymbol, "modelDescription.xml", "export the FMU for Co-Simulation",
			"the FMU does not offer Co-Simulation")
	}
	if _, err := libc(); err != nil {
		return add(ruleLoad, "", "", "%v", err)
	}
	startTicker()
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return add(ruleLoad, f.Dir, "", "%v", err)
	}
	f.uri = resourceURI(dir, runtime.GOOS == "windows")
	inside, err := f.findImage(dir, add)
	if err != nil {
		return err
	}
	if f.sym[fnInstantiate] == 0 {
		return add(ruleSymbol, inside, "", "the library does not export fmi2Instantiate%s", f.otherExports(f.handle))
	}
	if p := f.sym[fnGetTypesPlatform]; p == 0 {
		f.soften(add, inside, fnGetTypesPlatform)
	} else if t := cstring(callInts(p), 64); t != "default" {
		return add(ruleTypes, inside, "", `fmi2GetTypesPlatform gives %q instead of "default"`, t)
	}
	if p := f.sym[fnGetVersion]; p == 0 {
		f.soften(add, inside, fnGetVersion)
	} else if v := cstring(callInts(p), 64); v != "2.0" {
		add(ruleVersion, inside, "", `fmi2GetVersion gives %q instead of "2.0"`, v)
	}
	return nil
}

// findImage gives the FMU its library, loaded now or before, and the name of the
// library inside the FMU.
func (f *FMU) findImage(dir string, add func(r *diag.Rule, path, remedy, format string, args ...any) error) (inside string, err error) {
	key := f.Hash
	lib, err := f.findLibrary(dir, add)
	if err != nil {
		return "", err
	}
	prefix := ""
	inside = filepath.ToSlash(strings.TrimPrefix(lib, dir+string(filepath.Separator)))
	if lib == "" { // only sources
		inside, prefix = "sources", f.Description.CoSimulation.ModelIdentifier+"_"
	}
	if key == "" {
		key = lib
	}
	if f.image = images[key]; f.image != nil && key != "" {
		return inside, nil
	}
	if lib == "" {
		if lib, err = f.buildSources(dir, add); err != nil {
			return inside, err
		}
		if key == "" {
			key = lib
		}
	}
	img := &image{library: lib, onceKey: lib}
	if data, err := os.ReadFile(lib); err == nil {
		sum := sha256.Sum256(data)
		img.onceKey = hex.EncodeToString(sum[:])
	}
	folder := ""
	if f.chdir {
		if folder, err = os.Getwd(); err == nil {
			err = os.Chdir(filepath.Dir(lib))
		}
		if err != nil {
			return inside, add(ruleLoad, inside, "", "the folder of the library cannot be made the working directory: %v", err)
		}
	}
	g := watch()
	handle, modes, err := openLibrary(lib)
	img.handle = handle
	var changes []string
	for _, c := range g.restore() {
		changes = append(changes, "the FMU "+c.text)
	}
	if modes {
		changes = append(changes, "the FMU changes the floating-point modes (rounding, flush to zero or exceptions); they are put back")
	}
	for _, change := range changes {
		add(ruleProcess, inside, "", "while loading: %s", change)
	}
	if folder != "" {
		if back := os.Chdir(folder); back != nil {
			return inside, add(ruleLoad, inside, "", "the working directory %s cannot be restored: %v", folder, back)
		}
	}
	if err != nil {
		return inside, add(ruleLoad, inside, "", "the library does not load: %v", err)
	}
	for k := range img.sym {
		if img.sym[k] = symbol(img.handle, functionNames[k]); img.sym[k] == 0 && prefix != "" {
			// Compiled from sources with the prefix of the standard.
			img.sym[k] = symbol(img.handle, prefix+functionNames[k])
		}
	}
	images[key], f.image = img, img
	return inside, nil
}

// LoadInItsFolder makes Load change the working directory to the folder of the
// library while it loads, for libraries that look for others there (checklist
// fmi2 7). It has an effect before the first Load only.
func (f *FMU) LoadInItsFolder() { f.chdir = true }

// soften reports a missing function that the FMU can be run without.
func (f *FMU) soften(add func(r *diag.Rule, path, remedy, format string, args ...any) error, inside string, fn function) {
	r := *ruleSymbol
	r.Level = diag.Warning
	add(&r, inside, "", "the library does not export %s", fn)
}

// otherExports guesses what a library without fmi2Instantiate is instead.
func (f *FMU) otherExports(h uintptr) string {
	id := f.Description.CoSimulation.ModelIdentifier
	for _, c := range [][2]string{
		{"fmi3InstantiateCoSimulation", ", but it is a library of FMI 3"},
		{id + "_fmiInstantiateSlave", ", but it is a library of FMI 1"},
		{id + "_fmi2Instantiate", ", only with a prefix, as for source code"},
	} {
		if symbol(h, c[0]) != 0 {
			return c[1]
		}
	}
	return ""
}

// Exports tells whether the loaded library has a function, for example
// "fmi2GetFMUstate". It is false before Load.
func (f *FMU) Exports(name string) bool {
	k := slices.Index(functionNames[:], name)
	return k >= 0 && f.image != nil && f.sym[k] != 0
}

// Library gives the path of the loaded library, "" before Load.
func (f *FMU) Library() string {
	if f.image == nil {
		return ""
	}
	return f.library
}

// platforms lists the folders of binaries that serve a system, the standard's
// own name first (checklist fmi2 5).
func platforms(goos, goarch string) []string {
	switch goos + "/" + goarch {
	case "linux/amd64":
		return []string{"linux64", "x86_64-linux"}
	case "linux/386":
		return []string{"linux32", "x86-linux"}
	case "linux/arm64":
		return []string{"aarch64-linux", "linux-aarch64"}
	case "windows/amd64":
		return []string{"win64", "x86_64-windows"}
	case "windows/386":
		return []string{"win32", "x86-windows"}
	case "windows/arm64":
		return []string{"aarch64-windows"}
	case "darwin/amd64":
		return []string{"darwin64", "x86_64-darwin"}
	case "darwin/arm64": // darwin64 may hold a universal library
		return []string{"aarch64-darwin", "darwin64"}
	}
	arch := goarch
	if goarch == "amd64" {
		arch = "x86_64"
	} else if goarch == "arm64" {
		arch = "aarch64"
	}
	return []string{arch + "-" + goos}
}

// findLibrary gives the library for this platform: the one named after
// modelIdentifier, else the one named after the archive, else the only one. It
// is "" if there is none and the sources are to be compiled.
func (f *FMU) findLibrary(dir string, add func(r *diag.Rule, path, remedy, format string, args ...any) error) (string, error) {
	id := f.Description.CoSimulation.ModelIdentifier
	folders := platforms(runtime.GOOS, runtime.GOARCH)
	base := strings.TrimSuffix(filepath.Base(f.Path), filepath.Ext(f.Path))
	for n, p := range folders {
		found := libraries(filepath.Join(dir, "binaries", p))
		if len(found) == 0 {
			continue
		}
		name := id + librarySuffix
		switch {
		case slices.Contains(found, name):
			if n > 0 && folders[0] != "aarch64-darwin" {
				add(ruleLibraryName, "binaries/"+p, "", "the folder should be called %s", folders[0])
			}
		case slices.Contains(found, base+librarySuffix):
			name = base + librarySuffix
			add(ruleLibraryName, "binaries/"+p+"/"+name, "", "the library is named after the archive and not after modelIdentifier %q", id)
		case len(found) == 1:
			name = found[0]
			add(ruleLibraryName, "binaries/"+p+"/"+name, "", "the library is not named after modelIdentifier %q; it is the only one, so it is taken", id)
		default:
			return "", add(ruleNoBinary, "binaries/"+p, "rename the right library to "+name,
				"none of the libraries %s is named after modelIdentifier %q", strings.Join(found, ", "), id)
		}
		return filepath.Join(dir, "binaries", p, name), nil
	}
	if f.compile && hasSources(dir) {
		return "", nil
	}
	remedy := ""
	if hasSources(dir) {
		remedy = "let macrostep compile the sources: with --compile, which needs a C compiler"
	}
	return "", add(ruleNoBinary, "binaries", remedy, "no library for %s/%s (looked in %s); %s",
		runtime.GOOS, runtime.GOARCH, strings.Join(folders, ", "), offers(dir))
}

// libraries lists the shared libraries of this system's kind in a folder.
func libraries(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), librarySuffix) {
			out = append(out, e.Name())
		}
	}
	return out
}

// offers says which platforms an unpacked FMU has libraries for.
func offers(dir string) string {
	var have []string
	entries, _ := os.ReadDir(filepath.Join(dir, "binaries")) // absent is an answer too
	for _, e := range entries {
		if sub, err := os.ReadDir(filepath.Join(dir, "binaries", e.Name())); err == nil && len(sub) > 0 {
			have = append(have, e.Name())
		}
	}
	if len(have) > 0 {
		return "the FMU holds libraries for " + strings.Join(have, ", ")
	}
	if hasSources(dir) {
		return "the FMU holds C sources only, which have to be compiled first"
	}
	return "the FMU holds no library at all"
}

// resourceURI gives fmuResourceLocation for the absolute folder of an unpacked
// FMU: file:///… with three slashes (on Windows also before a drive letter, and
// file://host/… for a share), percent-encoded, without slash at the end
// (checklist fmi2 4).
func resourceURI(dir string, windows bool) string {
	u := url.URL{Scheme: "file"}
	if windows {
		dir = strings.ReplaceAll(dir, `\`, "/")
		if host, rest, ok := strings.Cut(strings.TrimPrefix(dir, "//"), "/"); ok && strings.HasPrefix(dir, "//") {
			u.Host, dir = host, "/"+rest
		} else {
			dir = "/" + dir
		}
	}
	u.Path = strings.TrimSuffix(dir, "/") + "/resources"
	return u.String()
}

// variableName gives the name of the variable that a log message refers to.
func (f *FMU) variableName(kind byte, vr ValueReference) (string, bool) {
	f.nameOnce.Do(func() {
		f.nameOf = make(map[variableKey]string, len(f.Description.Variables))
		kinds := [...]byte{Real: 'r', Integer: 'i', Boolean: 'b', String: 's', Enumeration: 'i'}
		for k := range f.Description.Variables {
			v := &f.Description.Variables[k]
			key := variableKey{kinds[v.Type], v.ValueReference}
			if _, taken := f.nameOf[key]; !taken { // of aliases the first
				f.nameOf[key] = v.Name
			}
		}
	})
	n, ok := f.nameOf[variableKey{kind, vr}]
	return n, ok
}

// onlyOnce holds the FMUs with canBeInstantiatedOnlyOncePerProcess that had an
// instance: hash of the library to name of the instance. The limit is one of
// the process, whatever archive the library came from, and lasts as long as the
// process: the library stays loaded with its static state.
var onlyOnce = struct {
	sync.Mutex
	used map[string]string
}{used: map[string]string{}}

// claimOnce takes the only place in the process, if the FMU has only one.
func (f *FMU) claimOnce(instance string) error {
	if !f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
		return nil
	}
	onlyOnce.Lock()
	defer onlyOnce.Unlock()
	if other, taken := onlyOnce.used[f.onceKey]; taken {
		return fmt.Errorf("%s: %s declares canBeInstantiatedOnlyOncePerProcess and this process has had instance %q of it; a second one needs a process of its own",
			instance, f.Path, other)
	}
	onlyOnce.used[f.onceKey] = instance
	return nil
}

// releaseOnce gives the place back, if no instance came to be.
func (f *FMU) releaseOnce() {
	if !f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
		return
	}
	onlyOnce.Lock()
	defer onlyOnce.Unlock()
	delete(onlyOnce.used, f.onceKey)
}
