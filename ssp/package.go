package ssp

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// documentName is the default variant of a package (ssp 2).
const documentName = "SystemStructure.ssd"

// Package is a system on disk: a .ssp, a folder, a bare .ssd, or a system
// structure of OSP.
type Package struct {
	Path string    // as given to Open
	Root *Document // the default variant, or the document given
	Dir  string    // absolute folder of Root; for a .ssp a private one, gone after Close

	files      []string // read so far
	top        *instance
	components []*FlatComponent
	functions  []Function
	instances  []*instance   // by component, then by function
	osp        *ospStructure // nil: an SSP
	packed     bool          // a .ssp: nothing outside of Dir belongs to it
	cleanup    func() error
}

// Open reads a system structure: a .ssp (unpacked into a private folder that
// Close removes), a folder with SystemStructure.ssd, or a single .ssd file,
// and all parameter sets and mappings that it refers to; or an
// OspSystemStructure.xml, or a folder with one. FMUs are not touched.
// Findings go to l (nil: nowhere); the error holds those of level Error.
func Open(path string, l *diag.List) (*Package, error) {
	own := &diag.List{}
	if l != nil {
		own.Strict = l.Strict
		defer func() { l.Append(own) }()
	}
	p := &Package{Path: path}
	fail := func(format string, args ...any) (*Package, error) {
		own.Add(ruleFile, path, "", 0, format, args...)
		return nil, errors.Join(own.Err(), p.Close())
	}
	document := ""
	switch info, err := os.Stat(path); {
	case err != nil:
		return fail("the system cannot be read: %v", err)
	case info.IsDir():
		p.Dir, document = path, documentName
	case !info.Mode().IsRegular(): // opening a named pipe would wait for ever
		return fail("the system is neither a file nor a folder")
	case isZip(path):
		p.packed = true
		dir, cleanup, err := unpack(path, own)
		if err != nil {
			return nil, err
		}
		p.Dir, p.cleanup, document = dir, cleanup, documentName
	default:
		p.Dir, document = filepath.Split(path)
	}
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return fail("%v", err)
	}
	p.Dir = dir
	p.files = []string{path, filepath.Join(p.Dir, document)}
	data, err := readDocument(filepath.Join(p.Dir, document))
	if errors.Is(err, fs.ErrNotExist) && document == documentName {
		if osp, failed := readDocument(filepath.Join(p.Dir, ospDocumentName)); !errors.Is(failed, fs.ErrNotExist) {
			document, data, err = ospDocumentName, osp, failed
			p.files[1] = filepath.Join(p.Dir, document)
		}
	} else if _, failed := os.Stat(filepath.Join(p.Dir, ospDocumentName)); failed == nil && document == documentName {
		own.Add(ruleVariants, path, "", 0, "there is both %s, which is read, and %s; to run the latter, give its path", documentName, ospDocumentName)
	}
	if err != nil {
		if others, _ := filepath.Glob(filepath.Join(p.Dir, "*.ssd")); errors.Is(err, fs.ErrNotExist) && len(others) > 0 {
			return fail("there is no %s, only %s", documentName, strings.Join(baseNames(others), ", "))
		}
		return fail("there is no readable %s: %v", document, unwrapPath(err))
	}
	if p.packed {
		p.tellVariants(own)
	}
	if isOSP(data) {
		p.Root, p.osp = parseOSP(data, p.shown(document), filepath.Base(p.Dir), own)
	} else {
		p.Root = parseDocument(data, p.shown(document), p.open, own)
	}
	if err := own.Err(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.Root.Dir = p.Dir
	p.instantiate()
	return p, nil
}

// Files lists the package itself and the documents that were read from it.
func (p *Package) Files() []string { return slices.Clone(p.files) }

// Close removes the private folder of a .ssp. It may be called more than once.
func (p *Package) Close() error {
	if p.cleanup == nil {
		return nil
	}
	err := p.cleanup()
	p.cleanup = nil
	return err
}

// shown gives the name by which the user knows a file of the package.
func (p *Package) shown(rel string) string {
	if info, err := os.Stat(p.Path); err == nil && !info.IsDir() && !p.packed {
		return filepath.Join(filepath.Dir(p.Path), rel)
	}
	return filepath.Join(p.Path, rel)
}

// tellVariants names the other documents at the root (ssp 2).
func (p *Package) tellVariants(l *diag.List) {
	all, _ := filepath.Glob(filepath.Join(p.Dir, "*.ssd"))
	others := slices.DeleteFunc(baseNames(all), func(name string) bool { return name == documentName })
	if len(others) > 0 {
		l.Add(ruleVariants, p.Path, "", 0, "the package has further variants, which are left out: %s", strings.Join(others, ", "))
	}
}

func baseNames(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.Base(p)
	}
	return out
}

// open reads a file that a document refers to (ssp 41).
func (p *Package) open(uri string) ([]byte, string, error) {
	rel, err := p.locate(uri)
	if err != nil {
		return nil, "", err
	}
	p.files = append(p.files, filepath.Join(p.Dir, rel))
	data, err := readDocument(filepath.Join(p.Dir, rel))
	if err != nil {
		return nil, "", fmt.Errorf("the file %q cannot be read: %v%s", uri, unwrapPath(err), p.hint(rel))
	}
	return data, p.shown(rel), nil
}

// unwrapPath drops the path from a file error: it may be a private one, and the
// message names the file already.
func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// readDocument reads a file of bounded size.
func readDocument(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no ordinary file")
	}
	if info.Size() > maxDocument {
		return nil, fmt.Errorf("it has %d bytes; documents up to %d are read", info.Size(), maxDocument)
	}
	return os.ReadFile(path)
}

// locate turns the URI of a source into a path relative to Dir, whether or not
// there is such a file. Only relative URIs are followed, and from a .ssp none
// that leave it (ssp 12).
func (p *Package) locate(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", fmt.Errorf("the source %q is no URI: %v", uri, err)
	}
	if u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/") || filepath.IsAbs(filepath.FromSlash(u.Path)) {
		return "", fmt.Errorf("the source %q is not relative to the document; only such sources are followed", uri)
	}
	if u.RawQuery != "" || u.Path == "" {
		return "", fmt.Errorf("the source %q names no file", uri)
	}
	if strings.ContainsAny(u.Path, "\\\x00") {
		return "", fmt.Errorf("the source %q has a character that is not allowed in paths; folders are separated by /", uri)
	}
	rel := filepath.Clean(filepath.FromSlash(u.Path))
	if p.packed && !filepath.IsLocal(rel) {
		return "", fmt.Errorf("the source %q leads out of the package", uri)
	}
	return rel, nil
}

// hint tells where else a file of that name lies.
func (p *Package) hint(rel string) string {
	base := filepath.Base(rel)
	for _, candidate := range []string{base, filepath.Join("resources", base)} {
		if candidate == rel {
			continue
		}
		if info, err := os.Stat(filepath.Join(p.Dir, candidate)); err == nil && info.Mode().IsRegular() {
			return fmt.Sprintf("; there is a file of that name at %q: is that the one meant?", filepath.ToSlash(candidate))
		}
	}
	return ""
}

// CheckSources reports components whose FMU is not there or cannot be one
// (SD2, SD19): what Components cannot say, and Flatten learns only from its
// resolver. The error holds the findings of level Error.
func (p *Package) CheckSources(l *diag.List) error {
	own := &diag.List{}
	if l != nil {
		own.Strict = l.Strict
		defer func() { l.Append(own) }()
	}
	for _, c := range p.Components() {
		if c.Problem == nil {
			p.checkFile(c, own)
			continue
		}
		report(own, c.problemRule, c.Place, "%v", c.Problem)
	}
	return own.Err()
}

// checkFile reports an FMU that is missing or lies outside of the folder.
func (p *Package) checkFile(c *FlatComponent, l *diag.List) {
	rel, err := filepath.Rel(p.Dir, c.Source)
	if err != nil {
		rel = c.Source
	}
	if _, err := os.Stat(c.Source); err != nil {
		report(l, ruleFile, c.Place, "the FMU %q of component %q cannot be read: %v%s", c.URI, c.Path, unwrapPath(err), p.hint(rel))
		return
	}
	if !filepath.IsLocal(rel) {
		report(l, ruleFileOutside, c.Place, "the FMU %q of component %q lies outside the folder of the document", c.URI, c.Path)
	}
}
