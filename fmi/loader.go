package fmi

import (
	"cmp"
	"context"
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
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/internal/fmi2"
	"github.com/macrostep/macrostep/fmi/internal/native"
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
	ruleSymbolMissing = &diag.Rule{
		ID: "FA7M", Level: diag.Warning, Ref: "fmi2 6",
		Doc:    "The library exports every function of FMI 2.0 for Co-Simulation. One that is missing cannot be used; what needs it counts as not offered, or fails when it is called.",
		Remedy: "harmless while nothing needs the function; the exporter should provide all of them",
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
	return []*diag.Rule{ruleNoBinary, ruleLoad, ruleLibraryName, ruleSymbol, ruleSymbolMissing, ruleTypes, ruleVersion, ruleProcess,
		ruleSources, ruleGuessed, ruleBuildOption}
}

// loader is the half of FMU that holds its library, which it shares with other
// FMUs of equal content in this process.
type loader struct {
	once      sync.Once
	err       error
	findings  diag.List
	told      atomic.Bool                  // the findings were given to someone
	modes     atomic.Bool                  // it was said that the FMU changes floating-point modes
	uri       string                       // fmuResourceLocation
	image     atomic.Pointer[fmi2.Library] // nil until it is loaded here
	elsewhere *fmi2.Shown                  // what it has shown in another process, nil if it was in none

	place   libraryPlace
	beside  map[string]string // shared libraries beside its own, name to content; nil = not looked for yet
	compile bool              // sources, if there is no library
	ctx     context.Context   // ends that
	chdir   bool              // load in the folder of the library
	built   *archive.Dir      // with what was compiled; nil = none

	nameOnce sync.Once
	nameOf   map[variableKey]string
}

// variableKey is what a log message refers to a variable by.
type variableKey struct {
	kind byte // r, i, b or s
	vr   uint32
}

// loading is held while a library loads: its initialisers run, and the guard
// compares the process before and after.
var loading sync.Mutex

// Load finds and loads the library of the FMU, once; Instantiate does so too. It is named
// as the call of an instance (see Calls); "" = of none.
// The findings tell what deviates from the standard without harm. The error is
// a *diag.ListError that names library, cause and remedy.
func (f *FMU) Load(instance string) (*diag.List, error) {
	f.told.Store(true)
	return f.loadOnce(instance)
}

// loadOnce loads the library for an instance; its name is "" for none.
func (f *FMU) loadOnce(instance string) (*diag.List, error) {
	f.once.Do(func() {
		loading.Lock()
		defer loading.Unlock()
		f.err = f.load(instance)
	})
	return &f.findings, f.err
}

// adder adds a finding; the error is that of the list.
type adder = func(r *diag.Rule, path, remedy, format string, args ...any) error

// adder adds to the findings of the FMU.
func (f *FMU) adder() adder { return f.addTo(&f.findings) }

func (f *FMU) addTo(l *diag.List) adder {
	return func(r *diag.Rule, path, remedy, format string, args ...any) error {
		l.Add(r, f.Path, path, 0, format, args...)
		if remedy != "" {
			l.Findings[len(l.Findings)-1].Remedy = remedy
		}
		return l.Err()
	}
}

// load brings the library into this process.
func (f *FMU) load(instance string) error {
	if err := f.locate(); err != nil {
		return err
	}
	add := f.adder()
	if _, _, err := native.Allocator(); err != nil {
		return add(ruleLoad, "", "", "%v", err)
	}
	native.StartTicker()
	key := cmp.Or(f.Hash, f.place.Path)
	if img := images[key]; img != nil && key != "" {
		f.image.Store(img)
		return f.check(&img.Shown, add)
	}
	if err := f.compileOnce(add); err != nil {
		return err
	}
	t := note(notedLibrary, instance, f)
	img, changes, err := fmi2.Load(&f.place.File, t)
	if err := f.judge(changes, err, add); err != nil {
		forget(t)
		return err
	}
	markLoaded(t)
	images[cmp.Or(f.Hash, f.place.Path)] = img
	f.image.Store(img)
	for name, content := range f.bundled() {
		if bundles[name] == "" {
			bundles[name] = content
		}
	}
	return f.check(&img.Shown, add)
}

// judge reports what loading changed in the process, and why it failed.
func (f *FMU) judge(changes []string, failed error, add adder) error {
	for _, change := range changes {
		add(ruleProcess, f.place.inside, "", "while loading: %s", change)
	}
	if failed != nil {
		return add(ruleLoad, f.place.inside, "", "%v", failed)
	}
	return nil
}

// libraryPlace is where the library of an FMU is.
type libraryPlace struct {
	fmi2.File
	known  bool
	err    error
	inside string // within the FMU, with slashes
}

// locate finds the library, once. The lock loading is held.
func (f *FMU) locate() error {
	p := &f.place
	if !p.known {
		p.known, p.err = true, f.findPlace(f.adder())
	}
	return p.err
}

// Locate finds the library for this platform, without loading it: the rules on
// where it is and what it is called. The list holds the error too.
func (f *FMU) Locate() (*diag.List, error) {
	loading.Lock()
	defer loading.Unlock()
	err := f.locate()
	return &f.findings, err
}

func (f *FMU) findPlace(add adder) error {
	if f.Description == nil || f.Description.CoSimulation == nil {
		return add(ruleSymbol, "modelDescription.xml", "export the FMU for Co-Simulation",
			"the FMU does not offer Co-Simulation")
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return add(ruleLoad, f.Dir, "", "%v", err)
	}
	f.uri = resourceURI(dir, runtime.GOOS == "windows")
	p := &f.place
	p.Chdir, p.ID = f.chdir, f.Description.CoSimulation.ModelIdentifier
	if p.Path, err = f.findLibrary(dir, add); err != nil {
		return err
	}
	p.inside = filepath.ToSlash(strings.TrimPrefix(p.Path, dir+string(filepath.Separator)))
	if p.Path == "" { // only sources
		p.inside, p.Prefix = "sources", p.ID+"_"
	}
	return nil
}

// compileOnce compiles the library if there is none yet.
func (f *FMU) compileOnce(add adder) error {
	if f.place.Path != "" {
		return nil
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return err
	}
	f.place.Path, err = f.buildSources(dir, add)
	return err
}

// check judges what the library shows.
func (f *FMU) check(s *fmi2.Shown, add adder) error {
	inside := f.place.inside
	if !s.Has(fmi2.Instantiate) {
		return add(ruleSymbol, inside, "", "the library does not export fmi2Instantiate%s", s.Explain())
	}
	if !s.Has(fmi2.GetTypesPlatform) {
		f.soften(add, inside, fmi2.GetTypesPlatform)
	} else if s.Types != "default" {
		return add(ruleTypes, inside, "", `fmi2GetTypesPlatform gives %q instead of "default"`, s.Types)
	}
	if !s.Has(fmi2.GetVersion) {
		f.soften(add, inside, fmi2.GetVersion)
	} else if s.Version != "2.0" {
		add(ruleVersion, inside, "", `fmi2GetVersion gives %q instead of "2.0"`, s.Version)
	}
	return nil
}

// CheckSymbols judges which functions the loaded library exports, by what every run
// calls and by the capabilities that the description claims.
func (f *FMU) CheckSymbols(l *diag.List) {
	if !f.Loaded() {
		return
	}
	var lacks []string
	for _, k := range []fmi2.Function{fmi2.FreeInstance, fmi2.SetupExperiment, fmi2.EnterInitializationMode, fmi2.ExitInitializationMode, fmi2.DoStep} {
		if !f.Exports(k.String()) {
			l.Add(ruleSymbol, f.Path, f.place.inside, 0, "the library does not export %s, which every run calls", k)
		}
	}
	for k := range fmi2.Names {
		switch fmi2.Function(k) {
		case fmi2.FreeInstance, fmi2.SetupExperiment, fmi2.EnterInitializationMode, fmi2.ExitInitializationMode, fmi2.DoStep, fmi2.Instantiate, fmi2.GetTypesPlatform, fmi2.GetVersion:
		default:
			if !f.Exports(fmi2.Names[k]) {
				lacks = append(lacks, fmi2.Names[k])
			}
		}
	}
	if lacks != nil {
		l.Add(ruleSymbolMissing, f.Path, f.place.inside, 0, "the library does not export %s", strings.Join(lacks, ", "))
	}
}

// LoadInItsFolder makes Load change the working directory to the folder of the
// library while it loads, for libraries that look for others there (checklist
// fmi2 7). It has an effect before the first Load only.
func (f *FMU) LoadInItsFolder() { f.chdir = true }

// soften reports a missing function that the FMU can be run without.
func (f *FMU) soften(add adder, inside string, fn fmi2.Function) {
	r := *ruleSymbol
	r.Level = diag.Warning
	add(&r, inside, "", "the library does not export %s", fn)
}

// Exports reports whether the loaded library has a function, for example
// "fmi2GetFMUstate". It is false before Load and LoadIn.
func (f *FMU) Exports(name string) bool {
	k := slices.Index(fmi2.Names[:], name)
	if k < 0 {
		return false
	}
	if img := f.image.Load(); img != nil {
		return img.Shown.Has(fmi2.Function(k))
	}
	loading.Lock()
	defer loading.Unlock()
	return f.elsewhere != nil && f.elsewhere.Has(fmi2.Function(k))
}

// Loaded reports whether Exports knows what the library has.
func (f *FMU) Loaded() bool {
	if f.image.Load() != nil {
		return true
	}
	loading.Lock()
	defer loading.Unlock()
	return f.elsewhere != nil
}

// Library returns the path of the loaded library, "" before Load.
func (f *FMU) Library() string {
	img := f.image.Load()
	if img == nil {
		return ""
	}
	return img.Path
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

// findLibrary returns the library for this platform: the one named after
// modelIdentifier, else the one named after the archive, else the only one. It
// is "" if there is none and the sources are to be compiled.
func (f *FMU) findLibrary(dir string, add adder) (string, error) {
	id := f.Description.CoSimulation.ModelIdentifier
	folders := platforms(runtime.GOOS, runtime.GOARCH)
	base := strings.TrimSuffix(filepath.Base(f.Path), filepath.Ext(f.Path))
	for n, p := range folders {
		found := libraries(filepath.Join(dir, "binaries", p))
		if len(found) == 0 {
			continue
		}
		name := id + native.LibrarySuffix
		switch {
		case slices.Contains(found, name):
			if n > 0 && folders[0] != "aarch64-darwin" {
				add(ruleLibraryName, "binaries/"+p, "", "the folder should be called %s", folders[0])
			}
		case slices.Contains(found, base+native.LibrarySuffix):
			name = base + native.LibrarySuffix
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
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), native.LibrarySuffix) {
			out = append(out, e.Name())
		}
	}
	return out
}

// offers returns which platforms an unpacked FMU has libraries for.
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

// resourceURI returns fmuResourceLocation for the absolute folder of an unpacked
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

// variableName returns the name of the variable that a log message refers to.
func (f *FMU) variableName(kind byte, vr uint32) (string, bool) {
	f.nameOnce.Do(func() {
		f.nameOf = make(map[variableKey]string, len(f.Description.Variables))
		kinds := [...]byte{description.Real: 'r', description.Integer: 'i', description.Boolean: 'b', description.String: 's', description.Enumeration: 'i'}
		for k := range f.Description.Variables {
			v := &f.Description.Variables[k]
			key := variableKey{kinds[v.Type], uint32(v.ValueReference)}
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
	if other, taken := onlyOnce.used[f.image.Load().Key]; taken {
		return fmt.Errorf("%s: %s declares canBeInstantiatedOnlyOncePerProcess and this process has had instance %q of it; a second one needs a process of its own",
			instance, f.Path, other)
	}
	onlyOnce.used[f.image.Load().Key] = instance
	return nil
}

// releaseOnce returns the place back, if no instance came to be.
func (f *FMU) releaseOnce() {
	if !f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
		return
	}
	onlyOnce.Lock()
	defer onlyOnce.Unlock()
	delete(onlyOnce.used, f.image.Load().Key)
}
