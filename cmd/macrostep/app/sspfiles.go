package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/master/record"
)

// onStdout is the value of --output for standard output.
const onStdout = "-"

// target returns the output file of a command: --output, else the default. An existing file is an error
// without --force, and so is an empty value of a flag.
func (p *program) target(c *cli.Context, byDefault string) (path string, err error) {
	if err := newInput(c).err(); err != nil {
		return "", err
	}
	if path = cmp.Or(c.String(flagOutput), byDefault); path == onStdout {
		p.printAside()
	}
	if !c.Bool(flagForce) {
		err = free(path)
	}
	return path, err
}

// wrote prints that a file is written, and what it holds.
func (p *program) wrote(path, format string, args ...any) {
	if path != onStdout {
		fmt.Fprintf(p.stdout, "wrote %s%s\n", path, fmt.Sprintf(format, args...))
	}
}

// writeOutput writes the output file of a command as writeChecked does, or to standard output. A package for standard
// output is a temporary file until it is checked.
func (p *program) writeOutput(path string, force bool, write func(w io.Writer) error, check func(temp string) error) (err error) {
	if path != onStdout {
		return writeChecked(path, force, write, check)
	}
	if check != nil {
		dir, err := archive.NewTempDir("", archive.Prefix)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, dir.Remove()) }()
		file := filepath.Join(dir.Path, "system.ssp")
		if err := writeChecked(file, false, write, check); err != nil {
			return renamed{err, file, "standard output"}
		}
		write = func(w io.Writer) error {
			f, err := os.Open(file)
			if err == nil {
				_, err = io.Copy(w, f)
				err = errors.Join(err, f.Close())
			}
			return err
		}
	}
	out := p.out
	if isTerminal(out) {
		out = &screen{to: out}
	}
	if err := write(out); !errors.Is(err, syscall.EPIPE) { // the reader of a pipe may leave
		return err
	}
	return nil
}

// free returns an error if a path exists.
func free(path string) error {
	if path == onStdout {
		return nil
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s exists already; choose another name, or give --%s to replace it", path, flagForce)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeChecked writes a temporary file beside its destination, calls check on it and renames it, so that no
// incomplete file is visible. It replaces an existing file only with force, and never a folder. check may
// be nil.
func writeChecked(path string, force bool, write func(w io.Writer) error, check func(temp string) error) (err error) {
	temp, path, err := beside(path, force)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	if err := errors.Join(write(temp), temp.Close()); err != nil {
		return record.NotWritten(path, err)
	}
	if check != nil {
		if err := check(temp.Path); err != nil {
			return fmt.Errorf("%s is not written: %w", path, renamed{err, temp.Path, path})
		}
	}
	if err := free(path); !force && err != nil {
		return err
	}
	return temp.Place(path)
}

// beside makes a temporary file beside its destination and returns the path of the latter, without links. It returns an
// error if the destination cannot be replaced.
func beside(path string, force bool) (*archive.File, string, error) {
	if err := free(path); !force && err != nil {
		return nil, "", err
	} else if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s is not an ordinary file and is not replaced", path)
	} else if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // replace the target of a link, not the link
	}
	temp, err := archive.NewTempFile(path)
	if err != nil {
		return nil, "", record.NotWritten(path, err)
	}
	return temp, path, nil
}

// renamed is an error with the path of a temporary file replaced by the one that the user knows.
type renamed struct {
	err      error
	from, to string
}

func (r renamed) Error() string {
	text := strings.ReplaceAll(r.err.Error(), r.from, r.to)
	return strings.ReplaceAll(text, filepath.Base(r.from), filepath.Base(r.to))
}

func (r renamed) Unwrap() error { return r.err }
