package archive

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// A temporary folder P, or a file P or P.ext, has a lock file P.lock beside it. Its
// owner makes and locks the lock file before anything else, holds the lock as long as
// it lives, and removes the lock file last. So whoever gets the lock of a file that
// still stands under its name knows that the owner is dead and that the rest may go;
// the system releases the lock of a killed process by itself.

const lockSuffix = ".lock"

// Prefix begins the names of temporary folders of macrostep's packages, so that each
// of them sweeps what any of them left; Hidden those of temporary folders and files
// beside what they become.
const (
	Prefix = "macrostep-"
	Hidden = "." + Prefix
)

// Dir is a private folder of this process.
type Dir struct{ temporary }

// temporary is a folder or file of this process.
type temporary struct {
	Path string // absolute

	mu   sync.Mutex
	gone bool
	file *os.File // nil = a folder, or placed
	lock *os.File // nil where the file system has no locks
}

// What this process has made, for Cleanup, and the places already swept.
var registry struct {
	sync.Mutex
	made  map[*temporary]bool
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
	d := &Dir{}
	if err := d.make(parent, prefix, "", func(path string) error { return os.Mkdir(path, 0o700) }); err != nil {
		return nil, fmt.Errorf("no temporary folder: %w", err)
	}
	return d, nil
}

// make makes something under a name that nobody has.
func (t *temporary) make(parent, prefix, ext string, create func(path string) error) error {
	parent, err := place(parent)
	if err != nil {
		return err
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
		if ending.Load() {
			return errEnding
		}
		var random [4]byte
		rand.Read(random[:])
		name := filepath.Join(parent, prefix+hex.EncodeToString(random[:]))
		lock, err := createLock(name + lockSuffix)
		if err == nil || errors.Is(err, errNoLocks) {
			if err = create(name + ext); err != nil && lock != nil {
				dropLock(lock)
			}
		}
		switch {
		case errors.Is(err, fs.ErrExist) || errors.Is(err, errTaken):
			continue
		case err != nil:
			return err
		}
		t.Path, t.lock = name+ext, lock
		registry.Lock()
		if registry.made == nil {
			registry.made = map[*temporary]bool{}
		}
		registry.made[t] = true
		registry.Unlock()
		if ending.Load() { // perhaps End has not seen it
			return errors.Join(errEnding, t.Remove())
		}
		return nil
	}
	return fmt.Errorf("no free name was found in %s; delete left-over temporary folders there, or set TMPDIR to another folder", parent)
}

func place(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	return filepath.Abs(parent)
}

// Remove removes the folder and all in it, or the file. It may be called again. On
// Windows a library that is loaded cannot be removed; then the folder is left to the
// sweep of the next program, without an error.
func (t *temporary) Remove() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return nil
	}
	if t.file != nil {
		_ = t.file.Close() // it may be closed
		t.file = nil
	}
	if err := removeAll(t.Path); err != nil {
		if runtime.GOOS == "windows" {
			return nil
		}
		return err // the lock is kept: nobody else shall try while we live
	}
	t.leave()
	return nil
}

// leave gives up the lock of what is gone.
func (t *temporary) leave() {
	t.gone = true
	if t.lock != nil {
		dropLock(t.lock)
	}
	registry.Lock()
	delete(registry.made, t)
	registry.Unlock()
}

// ending says that the process ends: nothing is made or unpacked any more.
var ending atomic.Bool

var errEnding = errors.New("the program ends")

// End is Cleanup for a process that ends, whatever other goroutines still do: nothing
// temporary is made after it, and nothing unpacked.
func End() error {
	ending.Store(true)
	return Cleanup()
}

// Cleanup removes all temporary folders and files of this process, as it ends.
func Cleanup() error {
	registry.Lock()
	made := slices.Collect(maps.Keys(registry.made))
	registry.Unlock()
	var errs []error
	for _, t := range made {
		errs = append(errs, t.Remove())
	}
	return errors.Join(errs...)
}

// Sweep removes the folders and files that killed processes of the same user left
// under parent with this prefix, and gives their paths. Those of living processes
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
		lock := takeLock(filepath.Join(parent, item.Name()))
		if lock == nil {
			continue
		}
		left, failed := sweep(parent, name)
		removed = append(removed, left...)
		if failed != nil {
			errs = append(errs, failed)
			lock.Close()
			continue
		}
		dropLock(lock)
	}
	return removed, errors.Join(errs...)
}

// sweep removes a folder or file that was left, whose name may have an ending. The
// folder is read once more: what belongs to the lock may be newer than the list.
func sweep(parent, name string) (removed []string, err error) {
	list, err := os.ReadDir(parent)
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if rest, ours := strings.CutPrefix(item.Name(), name); !ours || rest == lockSuffix || rest != "" && rest[0] != '.' {
			continue
		}
		path := filepath.Join(parent, item.Name())
		if err := removeAll(path); err != nil {
			return removed, err
		}
		removed = append(removed, path)
	}
	return removed, nil
}

// removeAll removes a tree, also one with folders that were made read-only, or in which
// Unpack writes what it has begun when the process ends.
func removeAll(dir string) error {
	const tries = 20
	for range tries {
		err := os.RemoveAll(dir)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.ENOTEMPTY) {
			break
		}
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
