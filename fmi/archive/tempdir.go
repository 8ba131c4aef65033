package archive

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// A folder P has a lock file P.lock beside it. Its owner makes and locks the
// file before it makes the folder, holds the lock as long as it lives, and
// removes the folder before the file. So whoever gets the lock of a file that
// still stands under its name knows that the owner is dead and that the folder
// may go; the system releases the lock of a killed process by itself.

const lockSuffix = ".lock"

// Prefix begins the names of the folders of macrostep's packages, so that each
// of them sweeps what any of them left.
const Prefix = "macrostep-"

// Dir is a private folder of this process.
type Dir struct {
	Path string // absolute

	mu   sync.Mutex
	gone bool
	lock *os.File // nil where the file system has no locks
}

// The folders of this process, for Cleanup, and the places already swept.
var registry struct {
	sync.Mutex
	dirs  map[*Dir]bool
	swept map[string]bool
}

// errTaken says that a sweeper got hold of a lock file before its owner did.
var errTaken = errors.New("lock file taken")

// errNoLocks says that the file system has no locks.
var errNoLocks = errors.New("no locks here")

// NewTempDir makes a folder that only this user can enter, under parent, or
// under os.TempDir if parent is "". Its name is the prefix and eight digits. The
// first call for a place also sweeps it (see Sweep). Remove the folder after use.
func NewTempDir(parent, prefix string) (*Dir, error) {
	parent, err := place(parent)
	if err != nil {
		return nil, err
	}
	registry.Lock()
	first := !registry.swept[parent+"\x00"+prefix]
	if first {
		if registry.swept == nil {
			registry.swept = map[string]bool{}
		}
		registry.swept[parent+"\x00"+prefix] = true
	}
	registry.Unlock()
	if first {
		// What does not go away now is no reason not to work.
		_, _ = Sweep(parent, prefix)
	}
	for range 100 {
		d, err := newDir(parent, prefix)
		if errors.Is(err, fs.ErrExist) || errors.Is(err, errTaken) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("no temporary folder in %s: %w", parent, err)
		}
		registry.Lock()
		if registry.dirs == nil {
			registry.dirs = map[*Dir]bool{}
		}
		registry.dirs[d] = true
		registry.Unlock()
		return d, nil
	}
	return nil, fmt.Errorf("no temporary folder in %s: all names tried are in use", parent)
}

func place(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	return filepath.Abs(parent)
}

func newDir(parent, prefix string) (*Dir, error) {
	var random [4]byte
	rand.Read(random[:])
	d := &Dir{Path: filepath.Join(parent, prefix+hex.EncodeToString(random[:]))}
	var err error
	if d.lock, err = createLock(d.Path + lockSuffix); err != nil && !errors.Is(err, errNoLocks) {
		return nil, err
	}
	if err := os.Mkdir(d.Path, 0o700); err != nil {
		if d.lock != nil {
			dropLock(d.lock)
		}
		return nil, err
	}
	return d, nil
}

// Remove removes the folder and all in it. It may be called again. On Windows a
// library that is loaded cannot be removed; then the folder is left to the
// sweep of the next program, without an error.
func (d *Dir) Remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return nil
	}
	if err := removeAll(d.Path); err != nil {
		if runtime.GOOS == "windows" {
			return nil
		}
		return err // the lock is kept: nobody else shall try while we live
	}
	d.gone = true
	if d.lock != nil {
		dropLock(d.lock)
	}
	registry.Lock()
	delete(registry.dirs, d)
	registry.Unlock()
	return nil
}

// Cleanup removes all folders of this process, as it ends.
func Cleanup() error {
	registry.Lock()
	var dirs []*Dir
	for d := range registry.dirs {
		dirs = append(dirs, d)
	}
	registry.Unlock()
	var errs []error
	for _, d := range dirs {
		errs = append(errs, d.Remove())
	}
	return errors.Join(errs...)
}

// Sweep removes the folders that killed processes of the same user left under
// parent with this prefix, and gives their paths. Those of living processes
// stay.
func Sweep(parent, prefix string) (removed []string, err error) {
	parent, err = place(parent)
	if err != nil {
		return nil, err
	}
	list, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, item := range list {
		name, isLock := strings.CutSuffix(item.Name(), lockSuffix)
		random, ours := strings.CutPrefix(name, prefix)
		if _, err := hex.DecodeString(random); !isLock || !ours || len(random) != 8 || err != nil {
			continue
		}
		dir := filepath.Join(parent, name)
		lock := takeLock(dir + lockSuffix)
		if lock == nil {
			continue
		}
		if err := removeAll(dir); err != nil {
			errs = append(errs, err)
			lock.Close()
			continue
		}
		dropLock(lock)
		removed = append(removed, dir)
	}
	return removed, errors.Join(errs...)
}

// removeAll removes a tree, also one with folders that were made read-only.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// CreateLock makes a file and locks it for as long as the process lives; the
// error is fs.ErrExist if there is one.
func CreateLock(path string) (*os.File, error) { return createLock(path) }

// TakeLock gives a file that CreateLock made in a process which has ended,
// locked, or nil.
func TakeLock(path string) *os.File { return takeLock(path) }

// DropLock removes a file that CreateLock or TakeLock gave.
func DropLock(f *os.File) { dropLock(f) }
