package fmi

import (
	"cmp"
	"context"
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
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
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
	told      atomic.Bool // the findings were given to someone
	modes     atomic.Bool // it was said that the FMU changes floating-point modes
	uri       string      // fmuResourceLocation
	*image                // nil until it is loaded here
	elsewhere *shown      // what it has shown in another process, nil if it was in none

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
	vr   description.ValueReference
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
	key := cmp.Or(f.Hash, f.place.library)
	if img := images[key]; img != nil && key != "" {
		f.image = img
		return f.check(&img.shown, add)
	}
	if err := f.compileOnce(add); err != nil {
		return err
	}
	t := note(notedLibrary, instance, f)
	img, changes, err := loadImage(&f.place, t)
	if err := f.judge(changes, err, add); err != nil {
		forget(t)
		return err
	}
	markLoaded(t)
	images[cmp.Or(f.Hash, f.place.library)], f.image = img, img
	for name, content := range f.bundled() {
		if bundles[name] == "" {
			bundles[name] = content
		}
	}
	return f.check(&img.shown, add)
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
	known   bool
	err     error
	library string // absolute path; "" = to be compiled
	inside  string // within the FMU, with slashes
	prefix  string // of the names of the functions, where they may have one
	chdir   bool   // load it in its own folder
	id      string // modelIdentifier
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
	p.chdir, p.id = f.chdir, f.Description.CoSimulation.ModelIdentifier
	if p.library, err = f.findLibrary(dir, add); err != nil {
		return err
	}
	p.inside = filepath.ToSlash(strings.TrimPrefix(p.library, dir+string(filepath.Separator)))
	if p.library == "" { // only sources
		p.inside, p.prefix = "sources", p.id+"_"
	}
	return nil
}

// compileOnce compiles the library if there is none yet.
func (f *FMU) compileOnce(add adder) error {
	if f.place.library != "" {
		return nil
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return err
	}
	f.place.library, err = f.buildSources(dir, add)
	return err
}

// shown is what a loaded library shows of itself.
type shown struct {
	exports uint64 // a bit for each function
	types   string // fmi2GetTypesPlatform
	version string // fmi2GetVersion
	foreign string // function of another interface, if there is no fmi2Instantiate
}

func (s *shown) has(fn function) bool { return s.exports>>fn&1 != 0 }

// check judges what the library shows.
func (f *FMU) check(s *shown, add adder) error {
	inside := f.place.inside
	if !s.has(fnInstantiate) {
		return add(ruleSymbol, inside, "", "the library does not export fmi2Instantiate%s", explainForeign(s.foreign))
	}
	if !s.has(fnGetTypesPlatform) {
		f.soften(add, inside, fnGetTypesPlatform)
	} else if s.types != "default" {
		return add(ruleTypes, inside, "", `fmi2GetTypesPlatform gives %q instead of "default"`, s.types)
	}
	if !s.has(fnGetVersion) {
		f.soften(add, inside, fnGetVersion)
	} else if s.version != "2.0" {
		add(ruleVersion, inside, "", `fmi2GetVersion gives %q instead of "2.0"`, s.version)
	}
	return nil
}

// loadImage loads a library into this process. It says what that changed in the
// process, also with an error. The tag is that of the FMU, 0 if nobody looks.
func loadImage(p *libraryPlace, t native.Tag) (_ *image, changes []string, err error) {
	img := &image{library: p.library, onceKey: onceKey(p.library)}
	folder := ""
	if p.chdir {
		if folder, err = os.Getwd(); err == nil {
			err = os.Chdir(filepath.Dir(p.library))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the folder of the library cannot be made the working directory: %w", err)
		}
	}
	g := native.Watch()
	handle, modes, err := native.OpenLibrary(p.library, t)
	img.handle = handle
	for _, c := range g.Restore() {
		changes = append(changes, "the FMU "+c.Text)
	}
	if modes {
		changes = append(changes, "the FMU changes the floating-point modes (rounding, flush to zero or exceptions); they are put back")
	}
	if folder != "" {
		if back := os.Chdir(folder); back != nil {
			return nil, changes, fmt.Errorf("the working directory %s cannot be restored: %w", folder, back)
		}
	}
	if err != nil {
		return nil, changes, fmt.Errorf("the library does not load: %w", err)
	}
	if err := img.resolve(p, t); err != nil {
		return nil, changes, err
	}
	return img, changes, nil
}

// onceKey identifies a library by its content.
func onceKey(lib string) string {
	data, err := os.ReadFile(lib)
	if err != nil {
		return lib
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// resolve finds the functions.
func (img *image) resolve(p *libraryPlace, t native.Tag) (err error) {
	s := &img.shown
	for k := range img.sym {
		if img.sym[k] = native.Symbol(img.handle, functionNames[k]); img.sym[k] == 0 && p.prefix != "" {
			// Compiled from sources with the prefix of the standard.
			img.sym[k] = native.Symbol(img.handle, p.prefix+functionNames[k])
		}
		if img.sym[k] != 0 {
			s.exports |= 1 << k
		}
	}
	if fn := img.sym[fnGetTypesPlatform]; fn != 0 {
		s.types, err = native.CallText(t.Of(uint8(fnGetTypesPlatform)), fn)
	}
	if fn := img.sym[fnGetVersion]; fn != 0 && err == nil {
		s.version, err = native.CallText(t.Of(uint8(fnGetVersion)), fn)
	}
	if !s.has(fnInstantiate) {
		for _, name := range []string{fmi3Instantiate, p.id + fmi1Instantiate, p.id + prefixedInstantiate} {
			if native.Symbol(img.handle, name) != 0 {
				s.foreign = name
				break
			}
		}
	}
	return err
}

// What a library without fmi2Instantiate may export instead; the last two after
// modelIdentifier.
const (
	fmi3Instantiate     = "fmi3InstantiateCoSimulation"
	fmi1Instantiate     = "_fmiInstantiateSlave"
	prefixedInstantiate = "_fmi2Instantiate"
)

// explainForeign says what a library is that exports the function instead.
func explainForeign(name string) string {
	switch {
	case name == fmi3Instantiate:
		return ", but it is a library of FMI 3"
	case strings.HasSuffix(name, fmi1Instantiate):
		return ", but it is a library of FMI 1"
	case strings.HasSuffix(name, prefixedInstantiate):
		return ", only with a prefix, as for source code"
	}
	return ""
}

// CheckSymbols judges which functions the loaded library exports, by what every run
// calls and by the capabilities that the description claims.
func (f *FMU) CheckSymbols(l *diag.List) {
	if !f.Loaded() {
		return
	}
	var lacks []string
	for _, k := range []function{fnFreeInstance, fnSetupExperiment, fnEnterInitializationMode, fnExitInitializationMode, fnDoStep} {
		if !f.Exports(k.String()) {
			l.Add(ruleSymbol, f.Path, f.place.inside, 0, "the library does not export %s, which every run calls", k)
		}
	}
	for k := range functionNames {
		switch function(k) {
		case fnFreeInstance, fnSetupExperiment, fnEnterInitializationMode, fnExitInitializationMode, fnDoStep, fnInstantiate, fnGetTypesPlatform, fnGetVersion:
		default:
			if !f.Exports(functionNames[k]) {
				lacks = append(lacks, functionNames[k])
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
func (f *FMU) soften(add adder, inside string, fn function) {
	r := *ruleSymbol
	r.Level = diag.Warning
	add(&r, inside, "", "the library does not export %s", fn)
}

// Exports reports whether the loaded library has a function, for example
// "fmi2GetFMUstate". It is false before Load and LoadIn.
func (f *FMU) Exports(name string) bool {
	k := slices.Index(functionNames[:], name)
	switch {
	case k < 0:
		return false
	case f.image != nil:
		return f.sym[k] != 0
	}
	loading.Lock()
	defer loading.Unlock()
	return f.elsewhere != nil && f.elsewhere.has(function(k))
}

// Loaded reports whether Exports knows what the library has.
func (f *FMU) Loaded() bool {
	if f.image != nil {
		return true
	}
	loading.Lock()
	defer loading.Unlock()
	return f.elsewhere != nil
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
func (f *FMU) variableName(kind byte, vr description.ValueReference) (string, bool) {
	f.nameOnce.Do(func() {
		f.nameOf = make(map[variableKey]string, len(f.Description.Variables))
		kinds := [...]byte{description.Real: 'r', description.Integer: 'i', description.Boolean: 'b', description.String: 's', description.Enumeration: 'i'}
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
