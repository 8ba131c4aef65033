package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/fmi/archive"
)

// free refuses a path where there is something.
func free(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is there already; choose another name, or give --%s to replace it", path, flagForce)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeChecked writes a file beside its place, has it checked there and then puts
// it in its place, in one go: nobody sees a part of it. What is there is replaced
// only if force says so; a folder never. check may be nil.
func writeChecked(path string, force bool, write func(w io.Writer) error, check func(temp string) error) (err error) {
	if !force {
		if err := free(path); err != nil {
			return err
		}
	} else if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no ordinary file and is not replaced", path)
	} else if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // replace what a link points to, not the link
	}
	temp, err := archive.NewTempFile(path)
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	if err := errors.Join(write(temp), temp.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if check != nil {
		if err := check(temp.Path); err != nil {
			return fmt.Errorf("%s is not written: %w", path, renamed{err, temp.Path, path})
		}
	}
	if !force {
		if err := free(path); err != nil {
			return err
		}
	}
	return temp.Place(path)
}

// renamed is an error that names a file as the user knows it.
type renamed struct {
	err      error
	from, to string
}

func (r renamed) Error() string {
	text := strings.ReplaceAll(r.err.Error(), r.from, r.to)
	return strings.ReplaceAll(text, filepath.Base(r.from), filepath.Base(r.to))
}

func (r renamed) Unwrap() error { return r.err }
