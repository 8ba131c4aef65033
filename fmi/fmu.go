package fmi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
)

// descriptionName is the file at the root of every FMU.
const descriptionName = "modelDescription.xml"

// OpenOptions are the options of Open. The zero value suits most programs.
type OpenOptions struct {
	Strict  bool           // strict rules are errors instead of warnings
	TempDir string         // parent folder for unpacking; "" = os.TempDir()
	Limits  archive.Limits // of the archive; zero fields have defaults
	// Compile allows Load to compile the C sources of an FMU without a library for
	// this platform, with $CC, cc, gcc or clang.
	Compile bool
	// Structure has values of structural parameters of FMI 3.0, by name, which are sizes of arrays (fmi3 5, 16).
	Structure map[string]uint64
}

// FMU is an unpacked FMU. Several instances may share it concurrently.
type FMU struct {
	Description *description.ModelDescription
	Path        string            // archive or folder that was opened; absolute
	Dir         string            // folder with the unpacked FMU; absolute
	Hash        string            // "sha256:…" of the archive, "sha256-tree:…" of a folder
	Structure   map[string]uint64 // of OpenOptions; with other values it is another FMU with the same Hash

	tree *tree  // nil if Open did not unpack
	temp string // parent of temporary folders

	loader

	referenceOnce sync.Once
	variableAt    map[description.ValueReference]int // FMI 3.0
}

// Open unpacks an FMU into a private folder and reads its modelDescription.xml.
// The path may also be a folder with an unpacked FMU, which is used in place and
// not changed. The FMU must offer Co-Simulation in FMI 2.0 or 3.0.
//
// The list of findings is never nil; an error that results from findings is a
// *diag.ListError. The caller must Close the FMU. Open also removes the folders of
// killed programs.
func Open(path string, o OpenOptions) (*FMU, *diag.List, error) {
	l := &diag.List{Strict: o.Strict}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, l, err
	}
	info, err := os.Stat(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, l, fmt.Errorf("%s: there is no such FMU; check the path: %w", path, fs.ErrNotExist)
	case err != nil:
		return nil, l, fmt.Errorf("the FMU cannot be read: %w; check the path and its permissions", err)
	}
	f := &FMU{Path: abs, Structure: o.Structure, temp: o.TempDir}
	f.compile = o.Compile
	if info.IsDir() {
		err = f.openFolder(path, l)
	} else if filepath.Base(abs) == descriptionName {
		return nil, l, fmt.Errorf("%s is the description of an FMU, not the FMU; give the folder of the unpacked FMU, %s, or the .fmu",
			path, filepath.Dir(path))
	} else {
		err = f.openArchive(path, o, l)
	}
	if err != nil {
		return nil, l, err
	}
	return f, l, nil
}

func (f *FMU) openFolder(path string, l *diag.List) error {
	inside := filepath.Join(f.Path, descriptionName)
	info, err := os.Stat(inside)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		l.Add(ruleNoDescription, path, "", 0, "the folder has no %s, so it is not an unpacked FMU", descriptionName)
		return l.Err()
	case err != nil:
		return err
	case !info.Mode().IsRegular(): // opening a named pipe would wait for ever
		l.Add(ruleNoDescription, path, "", 0, "%s is not a regular file", descriptionName)
		return l.Err()
	}
	r, err := os.Open(inside)
	if err != nil {
		return err
	}
	defer r.Close()
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(f.Path, filepath.FromSlash(name)))
		return err == nil
	}
	if err := f.describe(r, filepath.Join(path, descriptionName), path, has, l); err != nil {
		return err
	}
	f.Dir = f.Path
	f.Hash, err = hashTree(f.Dir)
	return err
}

// openArchive reads the description first, and does not unpack an unusable FMU.
func (f *FMU) openArchive(path string, o OpenOptions, l *diag.List) error {
	a, err := archive.Open(f.Path, l, o.Limits)
	if err != nil {
		return err
	}
	defer a.Close()
	r, err := a.Open(descriptionName)
	if errors.Is(err, fs.ErrNotExist) {
		l.Add(ruleNoDescription, path, "", 0, "the archive has no %s at its root%s", descriptionName, elsewhere(a.Names()))
		return l.Err()
	}
	if err != nil {
		return err
	}
	defer r.Close()
	names := a.Names()
	has := func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return n == name || strings.HasPrefix(n, name+"/") })
	}
	if err := f.describe(r, path+"!"+descriptionName, path, has, l); err != nil {
		if list := (*diag.ListError)(nil); !errors.As(err, &list) {
			err = fmt.Errorf("%w; the archive is damaged: export or download it again", err)
		}
		return err
	}
	if f.Hash, err = a.Hash(); err != nil {
		return err
	}
	f.tree, err = shareTree(o.TempDir, f.Hash, func(dir string) error {
		if err := a.Unpack(dir); err != nil {
			return err
		}
		// FMUs may access it although it is empty and thus not in the archive (fmi2 4).
		return os.MkdirAll(filepath.Join(dir, "resources"), 0o700)
	})
	if err != nil {
		return err
	}
	f.Dir = f.tree.dir.Path
	return nil
}

// describe reads the description and checks that the FMU offers Co-Simulation; has
// reports whether the FMU has a file or folder.
func (f *FMU) describe(r io.Reader, name, path string, has func(name string) bool, l *diag.List) error {
	d, err := description.ReadWith(r, name, l, description.ReadOptions{Structure: f.Structure})
	if err != nil {
		return err
	}
	f.Description = d
	c := d.CoSimulation
	if c == nil {
		l.Add(description.RuleCoSimulation, name, "/fmiModelDescription", 0, "the FMU offers Model Exchange only")
		return l.Err()
	}
	for k := range d.Variables {
		v := &d.Variables[k]
		if v.Clock == nil || v.Clock.Causality != description.Input || v.Clock.Interval != "triggered" && c.HasEventMode {
			continue
		}
		why := "the FMU has no event mode in which it can tick"
		if v.Clock.Interval == "triggered" {
			why = "it ticks when another FMU triggers it, and macrostep connects no Clocks"
		}
		l.Add(ruleClocks, name, "/fmiModelDescription/ModelVariables", v.Line, "%s is a Clock: %s", v.Name, why)
		return l.Err()
	}
	if c.NeedsExecutionTool {
		f.describeTool(path, has, l)
	}
	var lacks []string
	if !has("documentation/index.html") {
		lacks = append(lacks, "no documentation/index.html")
	}
	if d.License == "" && !has("documentation/licenses") {
		lacks = append(lacks, "no licence")
	}
	if len(lacks) > 0 {
		l.Add(ruleDocumentation, path, "documentation", 0, "the FMU has %s", strings.Join(lacks, " and "))
	}
	return nil
}

// describeTool reports which tool an FMU for tool coupling needs, and which of its
// documents lists further requirements (fmi2 9).
func (f *FMU) describeTool(path string, has func(name string) bool, l *diag.List) {
	tool := f.Description.GenerationTool
	if tool == "" {
		tool = "an unnamed tool"
	}
	for _, ending := range []string{"txt", "html"} {
		if name := "documentation/externalDependencies." + ending; has(name) {
			l.Add(ruleTool, path, name, 0, "the FMU needs %s to run; see %s in it for further requirements", tool, name)
			return
		}
	}
	l.Add(ruleTool, path, "", 0, "the FMU needs %s to run", tool)
	l.Add(ruleToolNeeds, path, "documentation", 0, "the FMU has neither documentation/externalDependencies.txt nor .html")
}

// Sizes lists the values of Structure: "m = 2, n = 4".
func (f *FMU) Sizes() string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.Structure)) {
		list = append(list, fmt.Sprintf("%s = %d", name, f.Structure[name]))
	}
	return strings.Join(list, ", ")
}

// elsewhere returns a remark on a description that is not at the root of an archive, "" for none.
func elsewhere(names []string) string {
	for _, name := range names {
		if base := name[strings.LastIndexByte(name, '/')+1:]; strings.EqualFold(base, descriptionName) {
			return fmt.Sprintf(", but %s", name)
		}
	}
	return ""
}

// Close removes the folder that Open made, unless another FMU of equal content uses
// it. Free all instances first. The library stays loaded, since unloading can crash
// the process. Further calls of Close have no effect.
func (f *FMU) Close() error {
	var errs []error
	if f.built != nil {
		errs = append(errs, f.built.Remove())
	}
	if t := f.tree; t != nil {
		f.tree = nil
		errs = append(errs, t.release())
	}
	return errors.Join(errs...)
}

// Hash returns the FMU.Hash of an archive or folder.
func Hash(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return hashTree(path)
	}
	return archive.HashFile(path)
}

// isFile reports whether a path is a regular file or a link to one.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// hashTree hashes names and contents of all files except those in extra/, which
// tools may change (fmi2 3, 11).
func hashTree(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			if rel == "extra" {
				return fs.SkipDir
			}
			return nil
		}
		if !isFile(path) {
			return nil
		}
		one, err := archive.HashFile(path)
		fmt.Fprintf(h, "%s\x00%s\n", filepath.ToSlash(rel), strings.TrimPrefix(one, "sha256:"))
		return err
	})
	return "sha256-tree:" + hex.EncodeToString(h.Sum(nil)), err
}
