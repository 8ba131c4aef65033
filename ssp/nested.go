package ssp

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// Limits for one system. A few files that refer to each other could unfold to more than any
// memory holds.
const (
	maxPackages  = 1000    // nested .ssp, unpacked
	maxPackaged  = 32      // packages within packages
	maxDocuments = 10_000  // nested .ssd
	maxInstances = 200_000 // elements, those of nested systems counted at each use
)

// home is the folder of a document, against which its references are resolved (ssp 12).
type home struct {
	dir   string // absolute
	root  string // absolute folder of the package, which references must not leave; "" if there is no package
	shown string // name of dir in messages
	depth int    // packages around it
}

// show returns the name of a file for messages.
func (h *home) show(rel string) string { return filepath.Join(h.shown, rel) }

// locate turns the URI of a source into a path relative to the folder, whether or not the file
// exists. It refuses URIs that are not relative or, in a package, leave the package (ssp 12).
func (h *home) locate(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", fmt.Errorf("the source %q is not a URI: %v", uri, err)
	}
	if u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/") || filepath.IsAbs(filepath.FromSlash(u.Path)) {
		return "", fmt.Errorf("the source %q is not relative to the document; only relative sources are supported", uri)
	}
	if u.RawQuery != "" || u.Path == "" {
		return "", fmt.Errorf("the source %q names no file", uri)
	}
	if u.Fragment != "" {
		return "", fmt.Errorf("the source %q names a part of a file (#%s), which only systems have", uri, u.Fragment)
	}
	if strings.ContainsAny(u.Path, "\\\x00") {
		return "", fmt.Errorf("the source %q has a character that is not allowed in paths; separate folders by /", uri)
	}
	rel := filepath.Clean(filepath.FromSlash(u.Path))
	if h.root != "" {
		if within, err := filepath.Rel(h.root, filepath.Join(h.dir, rel)); err != nil || !filepath.IsLocal(within) {
			return "", fmt.Errorf("the source %q leads out of the package", uri)
		}
	}
	return rel, nil
}

// hint describes other places with a file of the same name.
func (h *home) hint(rel string) string {
	base := filepath.Base(rel)
	entries, _ := os.ReadDir(filepath.Join(h.dir, filepath.Dir(rel)))
	for _, e := range entries {
		if strings.EqualFold(e.Name(), base) && e.Name() != base {
			return fmt.Sprintf("; there is %q: file names are case-sensitive", e.Name())
		}
	}
	for _, candidate := range []string{base, filepath.Join("resources", base)} {
		if candidate == rel {
			continue
		}
		if info, err := os.Stat(filepath.Join(h.dir, candidate)); err == nil && info.Mode().IsRegular() {
			return fmt.Sprintf("; there is a file of this name at %q: is it the right one?", filepath.ToSlash(candidate))
		}
	}
	return ""
}

// opener returns a function that reads the files to which a document refers (ssp 41).
func (p *Package) opener(h home) opener {
	return func(uri string, inside *Component) ([]byte, string, bool, error) {
		if inside != nil {
			data, shown, err := p.openInside(h, uri, inside)
			return data, shown, false, err
		}
		data, shown, err := p.openFile(h, uri)
		rel, _ := h.locate(uri)
		return data, shown, err == nil && p.outside(h, filepath.Join(h.dir, rel)), err
	}
}

// openFile reads a file by its URI.
func (p *Package) openFile(h home, uri string) ([]byte, string, error) {
	rel, err := h.locate(uri)
	if err != nil {
		return nil, "", err
	}
	full := filepath.Join(h.dir, rel)
	p.files = append(p.files, full)
	data, err := readDocument(full)
	if err != nil {
		return nil, "", fmt.Errorf("the file %q cannot be read: %v%s", uri, unwrapPath(err), h.hint(rel))
	}
	return data, h.show(rel), nil
}

// outside reports whether a file is outside of the package or, without one, of the folder of the
// outermost document (ssp 12).
func (p *Package) outside(h home, full string) bool {
	root := h.root
	if root == "" {
		root = p.Dir
	}
	rel, err := filepath.Rel(root, full)
	return err != nil || !filepath.IsLocal(rel)
}

// openInside reads a file inside a component (ssp 33): in the archive of an FMU or a package, in an
// unpacked one, or in the folder of a document.
func (p *Package) openInside(h home, uri string, c *Component) ([]byte, string, error) {
	source, _, _ := strings.Cut(c.Source, "#")
	if source == "" {
		if c.Source == "" {
			return nil, "", fmt.Errorf("the file %q should be inside the component, which has no source", uri)
		}
		return p.openFile(h, uri)
	}
	rel, err := h.locate(source)
	if err != nil {
		return nil, "", err
	}
	full := filepath.Join(h.dir, rel)
	in := home{dir: full, root: full, shown: h.show(rel), depth: h.depth}
	switch info, err := os.Stat(full); {
	case err != nil:
		return nil, "", fmt.Errorf("the file %q should be inside %q, which cannot be read: %v%s", uri, source, unwrapPath(err), h.hint(rel))
	case info.IsDir():
		return p.openFile(in, uri)
	case !isZip(full):
		in = home{dir: filepath.Dir(full), root: h.root, shown: h.show(filepath.Dir(rel)), depth: h.depth}
		return p.openFile(in, uri)
	}
	name, err := in.locate(uri)
	if err != nil {
		return nil, "", err
	}
	p.files = append(p.files, full)
	a, err := archive.Open(full, &diag.List{}, archive.Limits{})
	if err != nil {
		return nil, "", fmt.Errorf("the file %q should be inside %q: %v", uri, source, err)
	}
	data, err := a.ReadFile(filepath.ToSlash(name), xmltree.MaxDocument)
	if err = errors.Join(err, a.Close()); err != nil {
		return nil, "", fmt.Errorf("the file %q inside %q cannot be read: %v", uri, source, unwrapPath(err))
	}
	return data, in.show(name), nil
}

// isSystem reports whether a component is another system (ssp 14, 15): by its type, or by its
// source if the type is that of an FMU.
func (c *Component) isSystem() bool {
	switch c.Type {
	case mimeDefinition, mimePackage:
		return c.Source != ""
	case MIMEFMU:
		source, fragment, _ := strings.Cut(strings.ToLower(c.Source), "#")
		return source == "" && fragment != "" || strings.HasSuffix(source, ".ssp") || strings.HasSuffix(source, ".ssd")
	}
	return false
}

// nested reads the documents to which the components of a document refer, recursively. Each is read
// once.
func (p *Package) nested(d *Document, l *diag.List) {
	byID := systemsByID(d.System)
	for e := range d.System.All() {
		if c, ok := e.(*Component); ok && c.isSystem() {
			p.refer(d, c, byID, l)
		}
	}
}

// systemsByID returns the systems of a document by id, nil for an id that occurs several times.
func systemsByID(top *System) map[string]*System {
	out := make(map[string]*System)
	for e := range top.All() {
		if s, ok := e.(*System); ok && s.ID != "" {
			if _, twice := out[s.ID]; twice {
				s = nil
			}
			out[e.Base().ID] = s
		}
	}
	return out
}

// refer finds the system that stands for a component, and reads its document unless that has
// been read already.
func (p *Package) refer(d *Document, c *Component, byID map[string]*System, l *diag.List) {
	fail := func(r *diag.Rule, err error) { l.Report(r, c.Place, "component %q: %v", c.Name, err) }
	source, fragment, _ := strings.Cut(c.Source, "#")
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		fail(ruleFile, fmt.Errorf("the source %q is not a URI: %v", c.Source, err))
		return
	}
	if source == "" { // a system of this document
		c.system, c.within = byID[fragment], d
		if c.system == nil {
			fail(ruleReference, fmt.Errorf("no system, or more than one, has the id %q", fragment))
		}
		return
	}
	t, rule, err := p.target(d, c, source, fragment, l)
	if err != nil {
		fail(rule, err)
		return
	}
	if c.Type != t.mime {
		l.Report(ruleComponentType, c.Place, "component %q has the type %q; its source %q is of type %q", c.Name, c.Type, c.Source, t.mime)
	}
	inner := p.document(c, t.home, t.file, l)
	if inner == nil {
		return
	}
	c.system, c.within = inner.System, inner
	if t.id != "" {
		if c.system = systemsByID(inner.System)[t.id]; c.system == nil {
			fail(ruleReference, fmt.Errorf("no system, or more than one, of %q has the id %q", source, t.id))
		}
	}
}

// target is what the source of a component refers to.
type target struct {
	home home
	file string // of the document
	id   string // of a system in it, "" for the outermost one
	mime string
}

// target resolves the source of a component that stands for a system: a document, in which the
// fragment is an id, or a package, in which it is a variant. rule is that of the error.
func (p *Package) target(d *Document, c *Component, source, fragment string, l *diag.List) (t target, rule *diag.Rule, err error) {
	rel, err := d.home.locate(source)
	if err != nil {
		return t, ruleFile, err
	}
	full := filepath.Join(d.home.dir, rel)
	info, err := os.Stat(full)
	if err != nil {
		return t, ruleFile, fmt.Errorf("the source %q cannot be read: %v%s", c.Source, unwrapPath(err), d.home.hint(rel))
	}
	if p.outside(d.home, full) {
		l.Report(ruleFileOutside, c.Place, "the source %q of component %q lies outside the folder of the document", c.Source, c.Name)
	}
	packed := !info.IsDir() && isZip(full)
	if !packed && !info.IsDir() {
		h := home{dir: filepath.Dir(full), root: d.home.root, shown: d.home.show(filepath.Dir(rel)), depth: d.home.depth}
		return target{h, filepath.Base(full), fragment, mimeDefinition}, nil, nil
	}
	t = target{file: cmp.Or(fragment, DocumentName), mime: mimePackage}
	if t.home, err = p.open(d.home, rel, packed, l); err != nil {
		return t, ruleReference, err
	}
	if t.file != filepath.Base(t.file) {
		return t, ruleFile, fmt.Errorf("the source %q names no variant: variants are at the root of a package", c.Source)
	}
	return t, nil, nil
}

// open returns the home of a nested package, which is unpacked once.
func (p *Package) open(h home, rel string, packed bool, l *diag.List) (home, error) {
	full := filepath.Join(h.dir, rel)
	if !packed {
		return home{dir: full, root: full, shown: h.show(rel), depth: h.depth}, nil
	}
	if in, ok := p.packages[full]; ok {
		return in, nil
	}
	if h.depth >= maxPackaged {
		return home{}, fmt.Errorf("packages are nested %d levels deep; the package probably contains itself: "+
			"remove the inner copy", maxPackaged)
	}
	if len(p.packages) >= maxPackages {
		return home{}, fmt.Errorf("the system has more than %d packages", maxPackages)
	}
	dir, cleanup, err := unpack(full, l)
	if err != nil {
		return home{}, fmt.Errorf("the package %q cannot be unpacked: %v", h.show(rel), err)
	}
	p.cleanup = append(p.cleanup, cleanup)
	if dir, err = filepath.Abs(dir); err != nil {
		return home{}, err
	}
	p.files = append(p.files, full)
	in := home{dir: dir, root: dir, shown: h.show(rel), depth: h.depth + 1}
	p.packages[full] = in
	return in, nil
}

// document reads the SSD of a component, and the documents to which it refers; nil if it has
// errors.
func (p *Package) document(c *Component, h home, name string, l *diag.List) *Document {
	full := filepath.Join(h.dir, name)
	if d, ok := p.documents[full]; ok {
		return d
	}
	if len(p.documents) >= maxDocuments {
		l.Report(ruleReference, c.Place, "component %q: the system has more than %d documents", c.Name, maxDocuments)
		return nil
	}
	p.documents[full] = nil
	p.files = append(p.files, full)
	data, err := readDocument(full)
	if err != nil {
		others, _ := filepath.Glob(filepath.Join(h.dir, "*.ssd"))
		hint := ""
		if errors.Is(err, fs.ErrNotExist) && len(others) > 0 {
			hint = ", only " + strings.Join(baseNames(others), ", ")
		}
		l.Report(ruleFile, c.Place, "component %q: there is no readable %s%s: %v", c.Name, h.show(name), hint, unwrapPath(err))
		return nil
	}
	d := parseDocument(p.parser(l, h.show(name)), data, p.opener(h))
	if d == nil {
		return nil
	}
	d.home, d.Dir = h, h.dir
	p.documents[full] = d // before nested, because it may refer to itself
	e := &d.Experiment
	if e.Start != nil || e.Stop != nil || len(e.Annotations) > 0 {
		l.Report(ruleNested, c.Place, "the DefaultExperiment of %s, with %d annotations, has no effect because the document "+
			"stands for a component", d.File, len(e.Annotations))
	}
	p.nested(d, l)
	return d
}
