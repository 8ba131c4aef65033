// Package workdir watches and copies the working folder, in which FMUs may read and write files.
//
// An instance for a test must not overwrite what the instance of the run writes. So it gets a copy of the folder, unless
// its FMU is known to leave the folder as it is.
package workdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
)

// MostBytes and MostFiles bound a folder that is copied. MostFiles also bounds one that is watched.
const (
	MostBytes = 100 << 20
	MostFiles = 2000
)

// Folder is a working folder.
type Folder struct {
	Path string
	// Own lists the files and folders that the program itself writes. They are neither watched nor copied, like those to
	// which standard streams go, temporary files of macrostep, and the folders of version control.
	Own []string
}

// TooLargeError is the error of a folder beyond the limits.
type TooLargeError struct{ Why string }

func (e *TooLargeError) Error() string { return e.Why }

// versions are the folders of version control, which are often larger than what they are about.
var versions = []string{".git", ".hg", ".svn"}

// file is a file or folder below a Folder.
type file struct {
	name string // relative
	fs.FileInfo
}

// files lists the files and folders, a folder before what is in it. Links count as what they lead to.
func (d Folder) files() (list []file, err error) {
	var own []fs.FileInfo
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if info, err := f.Stat(); err == nil {
			own = append(own, info)
		}
	}
	for _, path := range d.Own {
		if info, err := os.Stat(path); err == nil {
			own = append(own, info)
		}
	}
	var folder func(name string, above []fs.FileInfo) error
	folder = func(name string, above []fs.FileInfo) error {
		entries, _ := os.ReadDir(filepath.Join(d.Path, name)) // what cannot be read is of no use to an FMU either
		for _, e := range entries {
			f := file{name: filepath.Join(name, e.Name())}
			if f.FileInfo, err = os.Stat(filepath.Join(d.Path, f.name)); err != nil {
				continue
			}
			same := func(o fs.FileInfo) bool { return os.SameFile(f.FileInfo, o) }
			switch {
			case strings.HasPrefix(e.Name(), archive.Hidden), slices.ContainsFunc(own, same):
				continue
			case f.IsDir() && (slices.Contains(versions, e.Name()) || slices.ContainsFunc(above, same)):
				continue
			case !f.IsDir() && !f.Mode().IsRegular():
				continue
			case len(list) == MostFiles:
				return &TooLargeError{fmt.Sprintf("%s has more than %d files", d.Path, MostFiles)}
			}
			list = append(list, f)
			if f.IsDir() {
				if err := folder(f.name, append(slices.Clip(above), f.FileInfo)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	top, err := os.Stat(d.Path)
	if err != nil {
		return nil, err
	}
	return list, folder("", []fs.FileInfo{top})
}

// View is what a folder contained at a time.
type View struct {
	of   Folder
	list []file
}

// Watch returns a view of the folder. The error is a *TooLargeError.
func (d Folder) Watch() (*View, error) {
	list, err := d.files()
	if err != nil {
		return nil, err
	}
	return &View{d, list}, nil
}

// Changed lists the files and folders that were made, written or removed since.
func (v *View) Changed() (names []string, err error) {
	list, err := v.of.files()
	if err != nil {
		return nil, err
	}
	before := make(map[string]fs.FileInfo, len(v.list))
	for _, f := range v.list {
		before[f.name] = f.FileInfo
	}
	for _, f := range list {
		b := before[f.name]
		delete(before, f.name)
		if b == nil || f.IsDir() != b.IsDir() || !f.IsDir() && (f.Size() != b.Size() || !f.ModTime().Equal(b.ModTime()) || !os.SameFile(f.FileInfo, b)) {
			names = append(names, f.name)
		}
	}
	for name := range before {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Copy copies the folder into an empty one, without FMUs and systems (.fmu, .ssp), and without what was made since a view of
// it, unless that is nil. If it is too large, the error is a *TooLargeError, and nothing is copied.
func (d Folder) Copy(into string, before *View) error {
	list, err := d.toCopy(before)
	if err != nil {
		return err
	}
	for _, f := range list {
		from, to := filepath.Join(d.Path, f.name), filepath.Join(into, f.name)
		if f.IsDir() {
			err = os.Mkdir(to, f.Mode().Perm()|0o700)
		} else {
			err = copyFile(to, from, f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Copyable returns the error of Copy if the folder is too large.
func (d Folder) Copyable() error {
	_, err := d.toCopy(nil)
	return err
}

// toCopy lists what Copy copies.
func (d Folder) toCopy(before *View) ([]file, error) {
	list, err := d.files()
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(f file) bool {
		return !f.IsDir() && slices.Contains([]string{".fmu", ".ssp"}, strings.ToLower(filepath.Ext(f.name))) ||
			before != nil && !slices.ContainsFunc(before.list, func(b file) bool { return b.name == f.name })
	})
	bytes := int64(0)
	for _, f := range list {
		if !f.IsDir() {
			bytes += f.Size()
		}
	}
	if bytes > MostBytes {
		return nil, &TooLargeError{fmt.Sprintf("%s has %d MB, more than %d", d.Path, bytes>>20, MostBytes>>20)}
	}
	return list, nil
}

// copyFile copies a file with its mode and time. One that cannot be opened is left out.
func copyFile(to, from string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return nil
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// Copy is a copy of the working folder of this process, made when it is needed. Its methods may be called by several
// goroutines.
type Copy struct {
	Own []string // see Folder

	mu      sync.Mutex
	before  *View
	dir     *archive.Dir // nil = there is none yet
	bare    string
	home    string // working folder of the process before Enter
	entered int    // calls of Enter without Leave
}

// Dir returns the path of the copy. If the working folder is too large or cannot be copied, it is an empty folder, and bare is
// the reason.
func (c *Copy) Dir() (path, bare string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.make()
}

// Before leaves out of the copy what was made since a view of the working folder.
func (c *Copy) Before(v *View) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before = v
}

func (c *Copy) make() (path, bare string, err error) {
	if c.dir != nil {
		return c.dir.Path, c.bare, nil
	}
	c.bare = ""
	if c.dir, err = archive.NewTempDir("", archive.Prefix); err != nil {
		return "", "", err
	}
	here, err := os.Getwd()
	if err == nil {
		err = Folder{here, c.Own}.Copy(c.dir.Path, c.before)
	}
	if err == nil {
		return c.dir.Path, "", nil
	}
	// An incomplete copy would be neither. Without space on the disk, an empty folder would change results.
	err = errors.Join(err, c.dir.Remove())
	if c.dir = nil; diag.DiskFailed(err) {
		return "", "", err
	}
	if c.dir, _ = archive.NewTempDir("", archive.Prefix); c.dir == nil {
		return "", "", err
	}
	c.bare = err.Error()
	return c.dir.Path, c.bare, nil
}

// Enter makes the copy the working folder of this process, which must have none but FMUs for an analysis, or be one of several
// that run the same FMUs. It stays that until as many calls of Leave. If there is no copy (see Dir),
// Enter does nothing, and returns the reason.
func (c *Copy) Enter() (bare string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entered == 0 {
		if c.home, err = os.Getwd(); err != nil {
			return "", err
		}
		path, bare, err := c.make()
		if err == nil && bare == "" {
			err = change(path)
		}
		if err != nil || bare != "" {
			return bare, err
		}
	}
	c.entered++
	return "", nil
}

// Leave goes back to the folder before Enter.
func (c *Copy) Leave() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entered--; c.entered > 0 {
		return nil
	}
	return change(c.home)
}

// change sets the working folder, also for programs that look for it in the environment.
func change(path string) error {
	if _, set := os.LookupEnv("PWD"); set {
		_ = os.Setenv("PWD", path) // the name is valid
	}
	return os.Chdir(path)
}

// Bare returns why the folder of Dir is empty, "" if it is a copy or there is none yet.
func (c *Copy) Bare() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bare
}

// Remove removes the copy, if there is one.
func (c *Copy) Remove() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dir == nil {
		return nil
	}
	dir := c.dir
	c.dir = nil
	return dir.Remove()
}
