package ssp

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Bounds of a package: far above every real one, far below a disk.
const (
	maxEntries  = 100_000
	maxUnpacked = 16 << 30
)

// isZip tells whether a file begins like an archive.
func isZip(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == "PK\x03\x04"
}

// unpack puts the content of a .ssp into a private folder (ssp 1). The error
// holds findings.
func unpack(path string, l *diag.List) (dir string, cleanup func() error, err error) {
	fail := func(format string, args ...any) (string, func() error, error) {
		l.Add(ruleFile, path, "", 0, format, args...)
		if dir != "" {
			return "", nil, errors.Join(l.Err(), os.RemoveAll(dir))
		}
		return "", nil, l.Err()
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return fail("the archive cannot be read: %v", err)
	}
	defer z.Close()
	if len(z.File) > maxEntries {
		return fail("the archive has %d entries; up to %d are unpacked", len(z.File), maxEntries)
	}
	if dir, err = os.MkdirTemp("", "macrostep-ssp-"); err != nil {
		return fail("no private folder can be made: %v", err)
	}
	left := int64(maxUnpacked)
	seen := make(map[string]bool)
	for _, f := range z.File {
		n, err := unpackEntry(f, dir, left, seen)
		if err != nil {
			return fail("the entry %q: %v", f.Name, err)
		}
		left -= n
	}
	d := dir
	return d, func() error { return os.RemoveAll(d) }, nil
}

func unpackEntry(f *zip.File, dir string, left int64, seen map[string]bool) (int64, error) {
	name := filepath.Clean(filepath.FromSlash(strings.TrimSuffix(f.Name, "/")))
	switch {
	case f.Flags&1 != 0:
		return 0, errors.New("it is encrypted")
	case strings.Contains(f.Name, "\\") || !filepath.IsLocal(name):
		return 0, errors.New("its name leads out of the package or is not separated by /")
	case f.FileInfo().IsDir():
		return 0, os.MkdirAll(filepath.Join(dir, name), 0o700)
	case !f.Mode().IsRegular():
		return 0, errors.New("it is no ordinary file")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return 0, fmt.Errorf("compression method %d is not allowed; store and deflate are", f.Method)
	case seen[strings.ToLower(name)]:
		return 0, errors.New("there are two of that name")
	}
	seen[strings.ToLower(name)] = true
	to := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return 0, err
	}
	in, err := f.Open()
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, io.LimitReader(in, left+1))
	if err = errors.Join(err, out.Close()); err != nil {
		return n, err
	}
	if n > left {
		return n, fmt.Errorf("the package holds more than %d bytes", int64(maxUnpacked))
	}
	return n, nil
}
