package edit

import (
	"archive/zip"
	"cmp"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
)

// File is an entry of an archive, from a file on disk or from memory.
type File struct {
	Name string // in the archive, folders separated by /
	Path string // on disk; "" if the content is Data
	Data []byte
}

// maxArchive is the largest ZIP file without extensions for large files, which the standard does
// not allow (ssp 1).
const maxArchive = 1<<32 - 1

// packedTime is the time of all entries, the earliest of ZIP. A fixed time makes archives of equal
// content equal.
var packedTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// WriteArchive writes files as a .ssp (ssp 1, 48, 50): sorted by name, with one fixed time and
// equal permissions, compressed unless compressed already. Equal content gives equal bytes. Names
// must be relative, without . and .., and unique regardless of case.
func WriteArchive(w io.Writer, files []File) error {
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	seen := make(map[string]string)
	for _, f := range files {
		if !fs.ValidPath(f.Name) || f.Name == "." || strings.ContainsAny(f.Name, "\\:\x00") {
			return fmt.Errorf("%q cannot be the name of a file in a package: it must be relative, without \\ and :", f.Name)
		}
		key := strings.ToLower(f.Name)
		if other, twice := seen[key]; twice {
			return fmt.Errorf("the package would have two files %q and %q, which some systems cannot tell apart", other, f.Name)
		}
		seen[key] = f.Name
		for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
			if other, isFile := seen[dir]; isFile {
				return fmt.Errorf("%q would be both a file and a folder of the package", other)
			}
		}
	}
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	var total int64
	for _, f := range files {
		n, err := writeEntry(z, f)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		if total += n; total > maxArchive-1<<20 {
			return fmt.Errorf("%s: the package would be larger than 4 GB, which the standard does not allow", f.Name)
		}
	}
	return z.Close()
}

func writeEntry(z *zip.Writer, f File) (int64, error) {
	h := &zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: packedTime}
	switch strings.ToLower(path.Ext(f.Name)) {
	case ".fmu", ".ssp", ".zip", ".png", ".jpg", ".gz":
		h.Method = zip.Store
	}
	h.SetMode(0o644)
	w, err := z.CreateHeader(h)
	if err != nil {
		return 0, err
	}
	if f.Path == "" {
		n, err := w.Write(f.Data)
		return int64(n), err
	}
	if info, err := os.Stat(f.Path); err != nil { // before opening, which waits at a named pipe
		return 0, err
	} else if !info.Mode().IsRegular() {
		return 0, errors.New("it is not a regular file")
	}
	r, err := os.Open(f.Path)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return io.Copy(w, io.LimitReader(r, maxArchive+1))
}

// FolderFiles lists the files of a folder as entries of an archive. hidden are those whose name, or
// that of a folder around them, begins with a dot: files of editors and version control. Links,
// pipes and the like are an error.
func FolderFiles(dir string) (files, hidden []File, err error) {
	err = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		switch {
		case strings.HasPrefix(name, ".") || strings.Contains(name, "/."):
			hidden = append(hidden, File{Name: name, Path: p})
		case !e.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file; a package can contain only regular files", p)
		default:
			files = append(files, File{Name: name, Path: p})
		}
		return nil
	})
	return files, hidden, err
}

// Needed lists the document and the files that it refers to as entries of an archive: Root as
// SystemStructure.ssd, parameter sets, mappings, FMUs and systems. It fails if a reference leaves
// the folder of the document.
func Needed(p *ssp.Package) ([]File, error) {
	files := []File{{Name: ssp.DocumentName, Path: filepath.Join(p.Dir, p.Document())}}
	seen := map[string]bool{ssp.DocumentName: true}
	add := func(rel string) {
		if name := filepath.ToSlash(rel); !seen[name] {
			seen[name] = true
			files = append(files, File{Name: name, Path: filepath.Join(p.Dir, rel)})
		}
	}
	var errs []error
	refer := func(uri string) {
		uri, _, _ = strings.Cut(uri, "#")
		if uri == "" {
			return
		}
		switch rel, err := p.Root.Locate(uri); {
		case err != nil:
			errs = append(errs, err)
		case !filepath.IsLocal(rel):
			errs = append(errs, fmt.Errorf("%s lies outside of the folder of the document; move it into that folder, "+
				"for example into resources, and correct the reference", uri))
		default:
			add(rel)
		}
	}
	for e := range p.Root.System.All() {
		for _, b := range e.Base().Bindings {
			if b.SourceBase != "component" { // else it is inside another file
				refer(b.Source)
			}
		}
		if c, ok := e.(*ssp.Component); ok {
			file, _ := p.Proxied(c.Source)
			refer(file)
		}
	}
	// Files that were read: mappings, and those that other documents refer to.
	inside := func(file string) {
		if rel, err := filepath.Rel(p.Dir, file); err == nil && filepath.IsLocal(rel) {
			add(rel)
		}
	}
	read := p.Files()
	for _, file := range read[min(2, len(read)):] {
		inside(file)
	}
	for _, c := range p.Components() {
		if c.Problem == nil {
			inside(c.Source)
		}
	}
	for _, f := range files {
		if info, err := os.Stat(f.Path); err == nil && !info.Mode().IsRegular() {
			errs = append(errs, fmt.Errorf("%s is %s; a package can contain only files, so name a file in the document", f.Path, diag.KindOf(info.Mode())))
		}
	}
	return files, errors.Join(errs...)
}

// SourceURI returns the URI by which a document refers to a file: relative, with slashes and
// escapes (ssp 12).
func SourceURI(rel string) string {
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	if strings.Contains(parts[0], ":") { // else it would be a scheme
		parts[0] = strings.ReplaceAll(parts[0], ":", "%3A")
	}
	return strings.Join(parts, "/")
}
