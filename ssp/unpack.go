package ssp

import (
	"errors"
	"io"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
)

// isZip reports whether a file begins with the signature of a ZIP archive.
func isZip(path string) bool {
	f, err := diag.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [4]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && (string(magic[:]) == "PK\x03\x04" || string(magic[:]) == "PK\x05\x06") // the latter is empty
}

// unpack extracts a .ssp into a private folder (ssp 1).
func unpack(path string, l *diag.List) (dir string, cleanup func() error, err error) {
	d, err := archive.NewTempDir("", archive.Prefix)
	if err != nil {
		return "", nil, err
	}
	if err := archive.Unpack(path, d.Path, l, archive.Limits{}); err != nil {
		return "", nil, errors.Join(err, d.Remove())
	}
	return d.Path, d.Remove, nil
}
