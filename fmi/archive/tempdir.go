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

// A temporary folder P, or a file P or P.ext, has a lock file P.lock. Its owner first makes and
// locks the lock file, holds the lock as long as it lives, and removes the lock file last. The
// system releases the locks of a killed process. So if another process gets the lock of an
// existing lock file, the owner is dead and the rest can be removed.

const lockSuffix = ".lock"

// Prefix is the prefix of temporary folders of all packages of macrostep, so that each package
// also sweeps those of the others. Hidden is the prefix of temporary folders and files next to
// their final place.
const (
	Prefix = "macrostep-"
	Hidden = "." + Prefix
)

// Dir is a private temporary folder of this process.
type Dir struct{ temporary }

// temporary is a folder or file of this process.
type temporary struct {
	Path string // absolute

	mu   sync.Mutex
	gone bool
	file *os.File // nil for a folder and after Place
	lock *os.File // nil if the file system has no locks
}

// registry has the folders and files of this process, for Cleanup, and the places already swept.
var registry = struct {
	sync.Mutex
	made  map[*temporary]bool
	swept map[string]bool
}{made: map[*temporary]bool{}, swept: map[string]bool{}}

// errTaken means that a sweeper locked a lock file before its owner.
var errTaken = errors.New("lock file taken")

// errNoLocks means that the file system has no locks.
var errNoLocks = errors.New("no locks here")

// NewTempDir makes a folder that only this user can access, in parent or, if that is "", in
// os.TempDir(). Its name is the prefix and eight digits. The first call for a place also calls
// Sweep. The caller must Remove the folder.
func NewTempDir(parent, prefix string) (*Dir, error) {
	d := &Dir{}
	if err := d.make(parent, prefix, "", func(path string) error { return os.Mkdir(path, 0o700) }); err != nil {
		return nil, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	return d, nil
}

// make makes a folder or file with an unused name.
func (t *temporary) make(parent, prefix, ext string, create func(path string) error) error {
	parent, err := place(parent)
	if err != nil {
		return err
	}
	registry.Lock()
	place := parent + "\x00" + prefix
	swept := registry.swept[place]
	registry.swept[place] = true
	registry.Unlock()
	if !swept {
		_, _ = Sweep(parent, prefix) // an error does no harm
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
		registry.made[t] = true
		registry.Unlock()
		if ending.Load() { // End may have missed it
			return errors.Join(errEnding, t.Remove())
		}
		return nil
	}
	return fmt.Errorf("found no unused name in %s; delete old temporary folders there, or set TMPDIR to another folder", parent)
}

func place(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	return filepath.Abs(parent)
}

// Remove removes the folder with its content, or the file. Further calls have no effect. On Windows
// a loaded library cannot be removed; then the folder remains for the next program to sweep,
// without an error.
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
		return err // keep the lock, so that no other process tries
	}
	t.leave()
	return nil
}

// leave releases the lock after removal.
func (t *temporary) leave() {
	t.gone = true
	if t.lock != nil {
		dropLock(t.lock)
	}
	registry.Lock()
	delete(registry.made, t)
	registry.Unlock()
}

// ending is true after End: nothing may be made or unpacked.
var ending atomic.Bool

var errEnding = errors.New("the program ends")

// End is Cleanup at the end of the process. Other goroutines can then neither unpack nor make
// temporary folders and files.
func End() error {
	ending.Store(true)
	return Cleanup()
}

// Cleanup removes all temporary folders and files of this process.
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

// Sweep removes the folders and files in parent with this prefix that killed processes of the same
// user left, and returns their paths.
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

// sweep removes a folder or file with this name, or this name and an extension. It reads parent
// again, because the folder or file may be newer than the list of Sweep.
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

// removeAll removes a folder with its content, including read-only folders, and while Unpack still
// writes into it.
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
