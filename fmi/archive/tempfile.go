package archive

import (
	"errors"
	"os"
	"path/filepath"
)

// File is a temporary file until Place moves it to its final path. If the process is killed
// before, it is swept like a folder of NewTempDir.
type File struct {
	*os.File
	temporary
}

// NewTempFile makes an empty file in the folder of path, with an unused name and the extension of
// path.
func NewTempFile(path string) (*File, error) {
	f := &File{}
	ext := filepath.Ext(path)
	if ext == lockSuffix {
		ext = ""
	}
	err := f.make(filepath.Dir(path), Hidden, ext, func(name string) (err error) {
		// With O_EXCL a link is not followed.
		f.File, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		f.file = f.File
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Place closes the file and moves it to path atomically. It replaces an existing file.
func (f *File) Place(path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return os.ErrClosed
	}
	if err := f.File.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	f.file = nil
	if err := os.Rename(f.Path, path); err != nil {
		return err
	}
	f.leave()
	return nil
}

// WriteFile writes data to path atomically: readers see the old content or the new one, after an
// error the old one.
func WriteFile(path string, data []byte) error {
	f, err := NewTempFile(path)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Place(path)
	}
	if err != nil {
		err = errors.Join(err, f.Remove())
	}
	return err
}
