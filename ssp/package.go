package ssp

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// DocumentName is the default variant of a package (ssp 2).
const DocumentName = "SystemStructure.ssd"

// Package is a system on disk: a .ssp, a folder, an .ssd, or a document of another Format.
type Package struct {
	Path string    // as given to Open
	Root *Document // the default variant, or the document given
	Dir  string    // absolute folder of Root; for a .ssp a private one until Close

	dialects   []Dialect
	files      []string // read so far
	top        *instance
	components []*FlatComponent
	functions  []Function
	instances  []*instance // by component, then by function
	structure  Structure   // nil for an SSP
	given      *Binding    // values of Give, nil if there are none
	beaten     map[Beaten]bool
	packed     bool // a .ssp: no file outside of Dir belongs to it
	packages   map[string]home
	documents  map[string]*Document // by path; nil if it could not be read
	cleanup    []func() error
}

// Open reads a system structure and all documents that it refers to: parameter sets and
// mappings, also inside FMUs, signal dictionaries, and systems in separate files. Otherwise it
// does not open FMUs.
//
// The path is a .ssp, which is unpacked into a private folder until Close, a folder with
// SystemStructure.ssd, or an .ssd file. Another document at the root of a package or folder is
// given after #, as in documents: "system.ssp#Variant.ssd" (ssp 2, 14). The dialects add
// formats of documents and, in Flatten, the annotations of other tools.
//
// Findings go to l (nil: nowhere); the error holds those of level Error.
func Open(path string, l *diag.List, dialects ...Dialect) (*Package, error) {
	own, done := collect(l)
	defer done()
	path, variant := SplitVariant(path)
	p := &Package{Path: path, dialects: dialects, packages: make(map[string]home), documents: make(map[string]*Document)}
	if err := p.load(variant, own); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.instantiate(own)
	if err := own.Err(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// load reads the outermost document, or a variant of it, and the documents that it refers to.
func (p *Package) load(variant string, l *diag.List) error {
	document, err := p.locate(l)
	if err != nil {
		return err
	}
	if variant != "" {
		if document != DocumentName || variant != filepath.Base(variant) {
			return p.fail(l, "the variant %q cannot be read: variants are documents at the root of a package or folder", variant)
		}
		document = variant
	}
	document, data, err := p.choose(document, l)
	p.files = []string{p.Path, filepath.Join(p.Dir, document)}
	if err != nil {
		if others, _ := filepath.Glob(filepath.Join(p.Dir, "*.ssd")); errors.Is(err, fs.ErrNotExist) && len(others) > 0 {
			return p.fail(l, "there is no %s, only %s", document, strings.Join(baseNames(others), ", "))
		}
		if empty := p.without(document); empty != "" && errors.Is(err, fs.ErrNotExist) {
			rule := *ruleFile
			rule.Remedy = "give the folder of a system or of an unpacked FMU, an .ssp, an .ssd or an .fmu"
			l.Add(&rule, p.Path, "", 0, "%s", empty)
			return l.Err()
		}
		return p.fail(l, "there is no readable %s: %v%s", document, unwrapPath(err), p.misplaced(document))
	}
	h := home{dir: p.Dir, shown: p.shown("")}
	if p.packed {
		p.tellVariants(document, l)
		h.root = p.Dir
	}
	p.read(p.parser(l, h.show(document)), data, h)
	if p.Root != nil {
		p.Root.home, p.Root.Dir = h, p.Dir
		p.documents[p.files[1]] = p.Root
		p.nested(p.Root, l)
	}
	return l.Err()
}

// fail reports that the system cannot be read.
func (p *Package) fail(l *diag.List, format string, args ...any) error {
	l.Add(ruleFile, p.Path, "", 0, format, args...)
	return l.Err()
}

// locate sets Dir, unpacking a .ssp, and returns the name of the default document in it.
func (p *Package) locate(l *diag.List) (document string, err error) {
	document = DocumentName
	switch info, err := os.Stat(p.Path); {
	case err != nil:
		return "", p.fail(l, "the system cannot be read: %v", err)
	case info.IsDir():
		p.Dir = p.Path
	case !info.Mode().IsRegular(): // opening a named pipe would wait forever
		return "", p.fail(l, "the system is neither a file nor a folder")
	case isZip(p.Path):
		p.packed = true
		dir, cleanup, err := unpack(p.Path, l)
		if err != nil {
			return "", err
		}
		p.Dir, p.cleanup = dir, append(p.cleanup, cleanup)
	default:
		p.Dir, document = filepath.Split(p.Path)
	}
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return "", p.fail(l, "%v", err)
	}
	p.Dir = dir
	return document, nil
}

// choose reads a document of Dir. If the default document does not exist, it reads one of
// another format, if there is one.
func (p *Package) choose(document string, l *diag.List) (chosen string, data []byte, err error) {
	data, err = readDocument(filepath.Join(p.Dir, document))
	if document != DocumentName {
		return document, data, err
	}
	for _, f := range p.formats() {
		other, failed := readDocument(filepath.Join(p.Dir, f.File))
		switch {
		case errors.Is(failed, fs.ErrNotExist):
		case errors.Is(err, fs.ErrNotExist):
			document, data, err = f.File, other, failed
		default:
			l.Add(ruleVariants, p.Path, "", 0, "there is both %s, which is read, and %s; to run the latter, give its path",
				DocumentName, f.File)
		}
	}
	return document, data, err
}

// formats lists the formats of the dialects.
func (p *Package) formats() (out []*Format) {
	for _, d := range p.dialects {
		if d.Format != nil {
			out = append(out, d.Format)
		}
	}
	return out
}

// parser returns a parser with the prefixes of the dialects.
func (p *Package) parser(l *diag.List, file string) *parser {
	in := newParser(l, file)
	in.Prefixes = make(map[string]string)
	for _, d := range p.dialects {
		maps.Copy(in.Prefixes, d.Prefixes)
	}
	return in
}

// read reads the outermost document. Root is nil after an error.
func (p *Package) read(in *parser, data []byte, h home) {
	root := in.Parse(data)
	if root == nil {
		return
	}
	for _, f := range p.formats() {
		if f.Root == root.Name {
			p.Root, p.structure = f.Read(&in.Reader, root, filepath.Base(p.Dir))
			if in.List.Err() == nil && (p.Root == nil || p.Root.System == nil) {
				in.Add(xmltree.RuleSchema, root, "the document has no system")
			}
			if in.List.Err() != nil {
				p.Root = nil
			}
			return
		}
	}
	p.Root = in.document(root, p.opener(h))
}

// ReadFile reads a file of bounded size by its path relative to Dir. shown is its name for
// findings.
func (p *Package) ReadFile(rel string) (data []byte, shown string, err error) {
	path := filepath.Join(p.Dir, rel)
	p.files = append(p.files, path)
	data, err = readDocument(path)
	return data, p.shown(rel), unwrapPath(err)
}

// ReadURI reads a file that the outermost document refers to. shown is its name for findings.
func (p *Package) ReadURI(uri string) (data []byte, shown string, err error) {
	return p.openFile(p.Root.home, uri)
}

// Files lists the package itself and the documents read from it.
func (p *Package) Files() []string { return slices.Clone(p.files) }

// Document returns the file name of Root.
func (p *Package) Document() string { return filepath.Base(p.files[1]) }

// Packed reports whether the package is a .ssp, unpacked into a private folder.
func (p *Package) Packed() bool { return p.packed }

// Locate returns the path of a file relative to Dir, whether or not it exists. It refuses URIs that
// are not relative or, in a package, leave the package (ssp 12).
func (d *Document) Locate(uri string) (string, error) { return d.home.locate(uri) }

// Close removes the private folders of packages. It may be called more than once.
func (p *Package) Close() error {
	var errs []error
	for _, clean := range p.cleanup {
		errs = append(errs, clean())
	}
	p.cleanup = nil
	return errors.Join(errs...)
}

// shown returns the name of a file of the package for messages.
func (p *Package) shown(rel string) string {
	if info, err := os.Stat(p.Path); err == nil && !info.IsDir() && !p.packed {
		return filepath.Join(filepath.Dir(p.Path), rel)
	}
	return filepath.Join(p.Path, rel)
}

// without describes a folder that has neither a system nor an FMU at its root; "" if the path is another one, or the document is in
// another place.
func (p *Package) without(document string) string {
	entries, err := os.ReadDir(p.Dir)
	if info, failed := os.Stat(p.Path); err != nil || failed != nil || !info.IsDir() || p.misplaced(document) != "" {
		return ""
	}
	if len(entries) == 0 {
		return "the folder is empty"
	}
	text := fmt.Sprintf("the folder has neither %s nor modelDescription.xml", document)
	if fmus, _ := filepath.Glob(filepath.Join(p.Dir, "*.fmu")); len(fmus) > 0 {
		text += fmt.Sprintf(", but %s; macrostep ssp new makes a system of FMUs", diag.Some(baseNames(fmus)))
	}
	return text
}

// misplaced describes a document of the same name in another place: with other letter case, or in a
// folder, if the package has everything in one.
func (p *Package) misplaced(document string) string {
	entries, _ := os.ReadDir(p.Dir)
	for _, e := range entries {
		if strings.EqualFold(e.Name(), document) && e.Name() != document {
			return fmt.Sprintf("; there is %q: file names are case-sensitive", e.Name())
		}
		if info, err := os.Stat(filepath.Join(p.Dir, e.Name(), document)); e.IsDir() && err == nil && info.Mode().IsRegular() {
			return fmt.Sprintf("; there is %s/%s: it must be at the root, so pack the content of the folder, not the folder",
				e.Name(), document)
		}
	}
	return ""
}

// SplitVariant splits "system.ssp#Variant.ssd" into the package or folder and the document in it,
// "" for the default. It does not split the path of an existing file.
func SplitVariant(path string) (file, variant string) {
	at := strings.LastIndexByte(path, '#')
	if at < 0 {
		return path, ""
	}
	if _, err := os.Lstat(path); err == nil {
		return path, ""
	}
	if _, err := os.Stat(path[:at]); err != nil {
		return path, ""
	}
	return path[:at], path[at+1:]
}

// tellVariants reports the other documents at the root (ssp 2).
func (p *Package) tellVariants(read string, l *diag.List) {
	all, _ := filepath.Glob(filepath.Join(p.Dir, "*.ssd"))
	others := slices.DeleteFunc(baseNames(all), func(name string) bool { return name == read })
	if len(others) > 0 {
		l.Add(ruleVariants, p.Path, "", 0, "the package has further variants, which are not read: %s", strings.Join(others, ", "))
	}
}

func baseNames(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = filepath.Base(p)
	}
	return out
}

// unwrapPath removes the path from a file error. It may be a private one, and the message names the
// file.
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
		return nil, errors.New("it is not a regular file")
	}
	if info.Size() > xmltree.MaxDocument {
		return nil, fmt.Errorf("it has %d bytes; the limit is %d", info.Size(), xmltree.MaxDocument)
	}
	return os.ReadFile(path)
}

// CheckSources reports components whose FMU does not exist or cannot be one (SD2, SD19). Open does
// not check this, and Flatten only through its resolver. The error holds the findings of level
// Error.
func (p *Package) CheckSources(l *diag.List) error {
	own, done := collect(l)
	defer done()
	for _, c := range p.Components() {
		if c.Problem == nil {
			p.checkFile(c, own)
			continue
		}
		own.Report(c.problemRule, c.Place, "%v", c.Problem)
	}
	return own.Err()
}

// checkFile reports an FMU that is missing or lies outside of the folder.
func (p *Package) checkFile(c *FlatComponent, l *diag.List) {
	info, err := os.Stat(c.Source)
	if err == nil && info.IsDir() {
		if _, failed := os.Stat(filepath.Join(c.Source, "modelDescription.xml")); errors.Is(failed, fs.ErrNotExist) {
			l.Report(ruleFile, c.Place, "the source %q of component %q is a folder without modelDescription.xml, "+
				"so it is not an unpacked FMU%s", c.URI, c.Path, c.hint())
			return
		}
	}
	if err != nil {
		l.Report(ruleFile, c.Place, "the FMU %q of component %q cannot be read: %v%s", c.URI, c.Path, unwrapPath(err), c.hint())
		return
	}
	if p.outside(c.home, c.Source) {
		l.Report(ruleFileOutside, c.Place, "the FMU %q of component %q lies outside the folder of the document", c.URI, c.Path)
	}
}

// hint describes other places with a file of the name of the FMU.
func (c *FlatComponent) hint() string {
	rel, err := filepath.Rel(c.home.dir, c.Source)
	if err != nil {
		rel = c.Source
	}
	return c.home.hint(rel)
}
