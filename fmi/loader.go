package fmi

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// Rules on the binary of an FMU.
var (
	// RuleNoLibrary is the rule that an FMU breaks that has no library for this platform.
	RuleNoLibrary = &diag.Rule{
		ID: "FA5", Level: diag.Error, Ref: "fmi2 5, 10",
		Doc:    "An FMU needs a library for the platform that runs it.",
		Remedy: "have the FMU exported for this platform, or run it on a platform for which it has a library",
	}
	ruleLoad = &diag.Rule{
		ID: "FA6", Level: diag.Error, Ref: "fmi2 7",
		Doc: "The library can be loaded on this system.",
	}
	ruleLibraryName = &diag.Rule{
		ID: "FA6N", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 5",
		Doc:    "The library is named after modelIdentifier and is in the folder of the platform.",
		Remedy: "harmless here; the exporter should name folder and file as FMI 2.0.4 requires",
	}
	ruleNames = &diag.Rule{
		ID: "FA6S", Level: diag.Warning, Ref: "fmi2 7",
		Doc: "The library uses its own functions and variables, whatever other libraries of the process define.",
		Remedy: "have the FMU exported with only the functions of FMI visible (-fvisibility=hidden), or linked with -Bsymbolic; " +
			"or run without what replaces libraries of the system (LD_PRELOAD, a sanitizer)",
	}
	ruleSymbol = &diag.Rule{
		ID: "FA7", Level: diag.Error, Ref: "fmi2 6",
		Doc:    "The library exports the functions of FMI 2.0 for Co-Simulation without prefix.",
		Remedy: "export the FMU again as FMI 2.0 for Co-Simulation with all functions visible",
	}
	ruleSymbolMissing = &diag.Rule{
		ID: "FA7M", Level: diag.Info, Ref: "fmi2 6",
		Doc: "The library exports every function of FMI 2.0 for Co-Simulation. " +
			"Features that need a missing function are not available, or fail when they are used.",
		Remedy: "harmless if no feature that needs the function is used; the exporter should provide all functions",
	}
	ruleTypes = &diag.Rule{
		ID: "FA8", Level: diag.Error, Ref: "fmi2 8",
		Doc:    `fmi2GetTypesPlatform returns "default".`,
		Remedy: "have the FMU exported for the default types platform; macrostep supports no other",
	}
	ruleVersion = &diag.Rule{
		ID: "FA8V", Level: diag.Info, Ref: "fmi2 8",
		Doc:    `fmi2GetVersion returns "2.0".`,
		Remedy: "usually harmless; the exporter should correct it",
	}
	ruleProcess = &diag.Rule{
		ID: "FA6G", Level: diag.Warning, Inert: true, Ref: "fmi2 73",
		Doc:    "Loading the library does not change working directory, signal handlers or floating-point modes of the process.",
		Remedy: "isolate the FMU if the change causes trouble",
	}
)

// BinaryRules lists the rules on the library of an FMU that Load checks.
func BinaryRules() []*diag.Rule {
	return []*diag.Rule{RuleNoLibrary, ruleLoad, ruleLibraryName, ruleNames, ruleSymbol, ruleSymbolMissing, ruleTypes, ruleVersion, ruleProcess,
		ruleSources, ruleGuessed, ruleBuildOption}
}

// loader is the part of FMU for its library, which FMUs of equal content share in
// this process.
type loader struct {
	settled   atomic.Bool // the library has been loaded, or cannot be because of err
	err       error
	findings  diag.List
	told      atomic.Bool                  // the findings have been returned or logged
	modes     atomic.Bool                  // a message about changed floating-point modes has been logged
	uri       string                       // fmuResourceLocation, or resourcePath of FMI 3.0
	image     atomic.Pointer[capi.Library] // nil until it is loaded here
	elsewhere *capi.Shown                  // exports of the library in another process; nil if none

	place   libraryPlace
	shares  map[string]string // see Shared; nil = not yet known
	compile bool              // compile the sources if there is no library
	chdir   bool              // load in the folder of the library
	preload []string          // see Preload
	built   *archive.Dir      // with the compiled library; nil = none

	nameOnce sync.Once
	nameOf   map[variableKey]string
}

// variableKey is a reference to a variable in a log message.
type variableKey struct {
	kind byte // r, i, b or s
	vr   uint32
}

// loading is held while a library loads and its initialisers run, since the guard
// compares the process before and after.
var loading sync.Mutex

// Load finds and loads the library of the FMU, once; Instantiate also does so. ctx
// cancels compiling: the next call then tries again. Calls attributes loading to the
// given instance; "" = none. The findings are harmless deviations from the standard.
// The error is a *diag.ListError with library, cause and remedy.
func (f *FMU) Load(ctx context.Context, instance string) (*diag.List, error) {
	f.told.Store(true)
	return f.loadOnce(ctx, instance)
}

// loadOnce is Load without marking the findings as returned.
func (f *FMU) loadOnce(ctx context.Context, instance string) (*diag.List, error) {
	if f.settled.Load() {
		return &f.findings, f.err
	}
	loading.Lock()
	defer loading.Unlock()
	if !f.settled.Load() {
		err := f.load(ctx, instance)
		if err != nil && ctx.Err() != nil {
			return &f.findings, err
		}
		f.err = err
		f.settled.Store(true)
	}
	return &f.findings, f.err
}

// adder adds a finding and returns the error of the list.
type adder = func(r *diag.Rule, path, format string, args ...any) error

// addTo returns an adder to a list.
func (f *FMU) addTo(l *diag.List) adder {
	return func(r *diag.Rule, path, format string, args ...any) error {
		l.Add(r, f.Path, path, 0, format, args...)
		return l.Err()
	}
}

// load loads the library into this process.
func (f *FMU) load(ctx context.Context, instance string) error {
	if err := f.locate(); err != nil {
		return err
	}
	add := f.addTo(&f.findings)
	if _, _, err := native.Allocator(); err != nil {
		return add(ruleLoad, "", "%v", err)
	}
	native.StartTicker()
	key := cmp.Or(f.Hash, f.place.Path)
	if img := images[key]; img != nil && key != "" {
		f.image.Store(img)
		return f.check(&img.Shown, add)
	}
	if err := f.compileOnce(ctx); err != nil {
		return err
	}
	t := note(notedLibrary, instance, f)
	img, changes, err := capi.Load(&f.place.File, t)
	if err := f.judge(changes, err, add); err != nil {
		forget(t)
		return err
	}
	markLoaded(t)
	images[cmp.Or(f.Hash, f.place.Path)] = img
	f.image.Store(img)
	for name, version := range f.shared() {
		if _, there := sharedHere[name]; !there {
			sharedHere[name] = version
		}
	}
	return f.check(&img.Shown, add)
}

// judge reports changes of the process during loading, and the error of loading.
func (f *FMU) judge(changes []string, failed error, add adder) error {
	for _, change := range changes {
		add(ruleProcess, f.place.inside, "while loading: %s", change)
	}
	if failed != nil {
		return add(ruleLoad, f.place.inside, "%v", failed)
	}
	return nil
}

// libraryPlace is the place of the library of an FMU.
type libraryPlace struct {
	capi.File
	known  bool
	err    error
	inside string // path within the FMU, with slashes
}

// locate finds the library, once. The caller holds loading.
func (f *FMU) locate() error {
	p := &f.place
	if !p.known {
		p.known, p.err = true, f.findPlace(f.addTo(&f.findings))
	}
	return p.err
}

// Locate finds the library for this platform without loading it, and checks the
// rules on its folder and name. The list includes the error.
func (f *FMU) Locate() (*diag.List, error) {
	loading.Lock()
	defer loading.Unlock()
	err := f.locate()
	return &f.findings, err
}

func (f *FMU) findPlace(add adder) error {
	if f.Description == nil || f.Description.CoSimulation == nil {
		return add(ruleSymbol.WithRemedy("export the FMU for Co-Simulation"), "modelDescription.xml",
			"the FMU does not offer Co-Simulation")
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return add(ruleLoad, f.Dir, "%v", err)
	}
	if f.uri = resourceURI(dir, runtime.GOOS == "windows"); f.api() == capi.V3 {
		f.uri = filepath.Join(dir, "resources") + string(filepath.Separator)
	}
	p := &f.place
	p.API, p.Chdir, p.Preload, p.ID = f.api(), f.chdir, f.preload, f.Description.CoSimulation.ModelIdentifier
	if p.Path, err = f.findLibrary(dir, add); err != nil {
		return err
	}
	p.inside = filepath.ToSlash(strings.TrimPrefix(p.Path, dir+string(filepath.Separator)))
	if what := diag.PointerFile(p.Path); what != "" {
		return add(ruleLoad.WithRemedy(diag.FetchPointer), p.inside, "%s", what)
	}
	if p.Path == "" { // only sources
		p.inside, p.Prefix = "sources", p.ID+"_"
	}
	return nil
}

// compileOnce compiles the library if there is none yet. Compiling that is cancelled leaves no finding and no file.
func (f *FMU) compileOnce(ctx context.Context) error {
	if f.place.Path != "" {
		return nil
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return err
	}
	found := len(f.findings.Findings)
	if f.place.Path, err = f.buildSources(ctx, dir, f.addTo(&f.findings)); err != nil && ctx.Err() != nil {
		f.findings.Findings = f.findings.Findings[:found]
		if f.built != nil {
			err = errors.Join(err, f.built.Remove())
			f.built = nil
		}
	}
	return err
}

// check checks the exports of the library, its types platform and version.
func (f *FMU) check(s *capi.Shown, add adder) error {
	inside := f.place.inside
	f.checkNames(s.Replaced, add)
	if !s.Has(capi.Instantiate) {
		return add(ruleSymbol, inside, "the library does not export %s%s", capi.Instantiate|f.api(), s.Explain())
	}
	if f.api() == capi.V3 {
		for _, fn := range everyRun {
			if name := (fn | capi.V3).String(); name != "" && !s.Has(fn) {
				return add(ruleSymbol, inside, "the library does not export %s, which every run calls", name)
			}
		}
	} else if !s.Has(capi.GetTypesPlatform) {
		f.soften(add, inside, capi.GetTypesPlatform)
	} else if s.Types != "default" {
		return add(ruleTypes, inside, `fmi2GetTypesPlatform returns %q instead of "default"`, s.Types)
	}
	if !s.Has(capi.GetVersion) {
		f.soften(add, inside, capi.GetVersion|f.api())
	} else if want := f.Description.FMIVersion; s.Version != want &&
		(want == "2.0" || !strings.HasPrefix(s.Version, "3.0.")) {
		add(ruleVersion, inside, "%s returns %q instead of %q", capi.GetVersion|f.api(), s.Version, want)
	}
	return nil
}

// everyRun are the functions that every run calls and Load does not check.
var everyRun = []capi.Function{
	capi.FreeInstance, capi.SetupExperiment, capi.EnterInitializationMode, capi.ExitInitializationMode, capi.DoStep,
}

// CheckSymbols reports functions that the loaded library does not export.
func (f *FMU) CheckSymbols(l *diag.List) {
	if !f.Loaded() {
		return
	}
	var lacks []string
	for fn := range capi.NumFunctions {
		switch name := (fn | f.api()).String(); {
		case name == "", f.shown().Has(fn):
		case slices.Contains(everyRun, fn):
			l.Add(ruleSymbol, f.Path, f.place.inside, 0, "the library does not export %s, which every run calls", name)
		case fn != capi.Instantiate && fn != capi.GetTypesPlatform && fn != capi.GetVersion:
			lacks = append(lacks, name)
		}
	}
	if lacks != nil {
		l.Add(ruleSymbolMissing, f.Path, f.place.inside, 0, "the library does not export %s", strings.Join(lacks, ", "))
	}
}

// CheckNames reports functions and variables that the library would not use itself if this process
// loaded it. Load reports the same.
func (f *FMU) CheckNames(l *diag.List) {
	loading.Lock()
	defer loading.Unlock()
	if f.locate() == nil && f.place.Path != "" {
		f.checkNames(native.Replaced(f.place.Path), f.addTo(l))
	}
}

func (f *FMU) checkNames(replaced string, add adder) {
	if replaced != "" {
		_ = add(ruleNames, f.place.inside, "the FMU gets functions or variables of this process instead of its own: %s",
			replaced)
	}
}

// LoadInItsFolder makes the folder of the library the working directory during Load,
// for libraries that search for others there (checklist fmi2 7). It must be called
// before Load.
func (f *FMU) LoadInItsFolder() { f.chdir = true }

// Preload makes libraries be loaded before that of the FMU, which uses their symbols without naming them: as
// LD_PRELOAD, for the process that loads the FMU. It must be called before Load.
func (f *FMU) Preload(files []string) { f.preload = files }

// soften reports a missing function that is not essential.
func (f *FMU) soften(add adder, inside string, fn capi.Function) {
	r := *ruleSymbol
	r.Level = diag.Info
	add(&r, inside, "the library does not export %s", fn)
}

// api returns the version of the functions of the FMU.
func (f *FMU) api() capi.Function {
	if f.Description.FMIVersion == "3.0" {
		return capi.V3
	}
	return 0
}

// Exports reports whether the loaded library has a function, for example
// "fmi2GetFMUstate". It is false before Load and LoadIn.
func (f *FMU) Exports(name string) bool {
	s := f.shown()
	for fn := range capi.NumFunctions {
		if s != nil && (fn|f.api()).String() == name && name != "" {
			return s.Has(fn)
		}
	}
	return false
}

// Loaded reports whether the library has been loaded, here or by LoadIn.
func (f *FMU) Loaded() bool { return f.shown() != nil }

// shown describes the loaded library; nil if there is none.
func (f *FMU) shown() *capi.Shown {
	if img := f.image.Load(); img != nil {
		return &img.Shown
	}
	loading.Lock()
	defer loading.Unlock()
	return f.elsewhere
}

// Library returns the path of the loaded library, "" before Load.
func (f *FMU) Library() string {
	img := f.image.Load()
	if img == nil {
		return ""
	}
	return img.Path
}

// platforms lists the folders of binaries for a system, the name of the standard
// first (checklist fmi2 5).
func platforms(goos, goarch string) []string {
	switch goos + "/" + goarch {
	case "linux/amd64":
		return []string{"linux64", "x86_64-linux"}
	case "linux/arm64":
		return []string{"aarch64-linux", "linux-aarch64"}
	case "windows/amd64":
		return []string{"win64", "x86_64-windows"}
	case "windows/arm64":
		return []string{"aarch64-windows"}
	case "darwin/amd64":
		return []string{"darwin64", "x86_64-darwin"}
	case "darwin/arm64": // darwin64 may hold a universal library
		return []string{"aarch64-darwin", "darwin64"}
	}
	return []string{cmp.Or(map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[goarch], goarch) + "-" + goos}
}

// findLibrary returns the path of the library for this platform: it is named after
// modelIdentifier, or after the archive, or the only one. The path is "" if there is
// none and the sources will be compiled.
func (f *FMU) findLibrary(dir string, add adder) (string, error) {
	id := f.Description.CoSimulation.ModelIdentifier
	folders := platforms(runtime.GOOS, runtime.GOARCH)
	if f.api() == capi.V3 && strings.HasPrefix(folders[len(folders)-1], "x86_64-") { // the name of FMI 3.0
		slices.Reverse(folders)
	}
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
				add(ruleLibraryName, "binaries/"+p, "the folder should be called %s", folders[0])
			}
		case slices.Contains(found, base+native.LibrarySuffix):
			name = base + native.LibrarySuffix
			add(ruleLibraryName, "binaries/"+p+"/"+name,
				"the library is named after the archive, not after modelIdentifier %q", id)
		case len(found) == 1:
			name = found[0]
			add(ruleLibraryName, "binaries/"+p+"/"+name,
				"the library is not named after modelIdentifier %q; it is used as the only one", id)
		default:
			return "", add(RuleNoLibrary.WithRemedy("rename the right library to "+name), "binaries/"+p,
				"none of the libraries %s is named after modelIdentifier %q", strings.Join(found, ", "), id)
		}
		return filepath.Join(dir, "binaries", p, name), nil
	}
	if f.compile && hasSources(dir) {
		return "", nil
	}
	have := offered(dir)
	var remedies []string
	if others := slices.DeleteFunc(slices.Clone(have), func(p string) bool { return !runs(p) }); len(others) > 0 {
		remedies = append(remedies, fmt.Sprintf("run it on a machine with %s: start macrostep host there, and add %s here (macrostep help host)",
			strings.Join(others, " or "), OnHost))
	}
	if hasSources(dir) {
		remedies = append(remedies, "let macrostep compile the sources (--compile); this needs a C compiler")
	}
	rule := RuleNoLibrary.WithRemedy(cmp.Or(strings.Join(remedies, "; or "), RuleNoLibrary.Remedy))
	return "", add(rule, "binaries", "no library for %s/%s (looked in %s); %s",
		runtime.GOOS, runtime.GOARCH, strings.Join(folders, ", "), offers(dir, have))
}

// OnHost is the flag that the remedy of RuleNoLibrary proposes. In a system it names the component as well.
const OnHost = "--on HOST"

// runs reports whether macrostep runs on the platform of a folder of binaries.
func runs(folder string) bool {
	for _, goos := range []string{"linux", "windows", "darwin"} {
		for _, goarch := range []string{"amd64", "arm64"} {
			if slices.Contains(platforms(goos, goarch), folder) {
				return true
			}
		}
	}
	return false
}

// libraries lists the names of shared libraries in a folder.
func libraries(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), native.LibrarySuffix) && isFile(filepath.Join(dir, e.Name())) {
			out = append(out, e.Name())
		}
	}
	return out
}

// offered lists the platforms for which an unpacked FMU has libraries.
func offered(dir string) (have []string) {
	entries, _ := os.ReadDir(filepath.Join(dir, "binaries")) // absent is an answer too
	for _, e := range entries {
		if sub, err := os.ReadDir(filepath.Join(dir, "binaries", e.Name())); err == nil && len(sub) > 0 {
			have = append(have, e.Name())
		}
	}
	return have
}

// offers returns a clause on these platforms.
func offers(dir string, have []string) string {
	if len(have) > 0 {
		return "the FMU has libraries for " + strings.Join(have, ", ")
	}
	if hasSources(dir) {
		return "the FMU has C sources only, which must be compiled"
	}
	return "the FMU has no library at all"
}

// resourceURI returns fmuResourceLocation for the absolute folder of an unpacked
// FMU: percent-encoded, with three slashes (also before a drive letter) or
// file://host/… for a Windows share, without a final slash (checklist fmi2 4).
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

// variableName returns the name of a variable that a log message references.
func (f *FMU) variableName(kind byte, vr uint32) (string, bool) {
	if f.api() == capi.V3 { // messages refer to no variables there
		return "", false
	}
	f.nameOnce.Do(func() {
		f.nameOf = make(map[variableKey]string, len(f.Description.Variables))
		kinds := [...]byte{description.Real: 'r', description.Integer: 'i', description.Enumeration: 'i',
			description.Boolean: 'b', description.String: 's'}
		for k := range f.Description.Variables {
			v := &f.Description.Variables[k]
			key := variableKey{kinds[v.Type], v.ValueReference.Number()}
			if _, taken := f.nameOf[key]; !taken { // the first of aliases
				f.nameOf[key] = v.Name
			}
		}
	})
	n, ok := f.nameOf[variableKey{kind, vr}]
	return n, ok
}

// onlyOnce has the instances of FMUs with canBeInstantiatedOnlyOncePerProcess: hash of
// the library to name of the instance. Entries are never removed, since the library
// stays loaded with its static data.
var onlyOnce = struct {
	sync.Mutex
	used map[string]string
}{used: map[string]string{}}

// claimOnce registers an instance of an FMU with canBeInstantiatedOnlyOncePerProcess.
func (f *FMU) claimOnce(instance string) error {
	if !f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
		return nil
	}
	onlyOnce.Lock()
	defer onlyOnce.Unlock()
	if other, taken := onlyOnce.used[f.image.Load().Key]; taken {
		return fmt.Errorf("%s: %s declares canBeInstantiatedOnlyOncePerProcess and this process has had instance %q of it; "+
			"a second one needs a process of its own", instance, f.Path, other)
	}
	onlyOnce.used[f.image.Load().Key] = instance
	return nil
}

// releaseOnce reverts claimOnce after Instantiate failed.
func (f *FMU) releaseOnce() {
	if !f.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
		return
	}
	onlyOnce.Lock()
	defer onlyOnce.Unlock()
	delete(onlyOnce.used, f.image.Load().Key)
}
