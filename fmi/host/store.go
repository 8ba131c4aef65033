package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
)

// store has the FMUs of a host.
type store struct {
	folders []string
	compile bool
	temp    string

	mu    sync.Mutex
	files map[string]*file    // in the folders, by path
	open  map[string]*fmi.FMU // by hash
	dir   *archive.Dir        // of FMUs that were sent; nil = none yet
	sent  map[string]string   // paths by hash
}

// file is an FMU in a folder.
type file struct {
	Offer
	modified time.Time
	size     int64
}

func newStore(folders []string, compile bool, temp string) (*store, error) {
	s := &store{compile: compile, temp: temp, files: map[string]*file{}, open: map[string]*fmi.FMU{}, sent: map[string]string{}}
	for _, f := range folders {
		abs, err := filepath.Abs(f)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(abs)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the folder of FMUs cannot be read: %w", err)
		case !info.IsDir():
			return nil, fmt.Errorf("%s is not a folder; give the folder with the FMUs", f)
		}
		s.folders = append(s.folders, abs)
	}
	s.scan()
	return s, nil
}

// scan lists the FMUs in the folders, also in subfolders. Links are not followed, so that all are inside. The
// caller holds mu, or has the store for itself.
func (s *store) scan() {
	seen := map[string]bool{}
	for _, folder := range s.folders {
		_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return nil // a folder that cannot be read offers nothing
			}
			isFMU := e.Type().IsRegular() && strings.EqualFold(filepath.Ext(path), ".fmu")
			if e.IsDir() {
				info, err := os.Lstat(filepath.Join(path, "modelDescription.xml"))
				isFMU = err == nil && info.Mode().IsRegular()
			}
			if !isFMU {
				return nil
			}
			seen[path] = true
			s.look(path, e)
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
	}
	for path := range s.files {
		if !seen[path] {
			delete(s.files, path)
		}
	}
}

// look reads an FMU of a folder, unless it is known and has not changed.
func (s *store) look(path string, e fs.DirEntry) {
	info, err := e.Info()
	if err != nil {
		return
	}
	old := s.files[path]
	if old != nil && !e.IsDir() && old.modified.Equal(info.ModTime()) && old.size == info.Size() {
		return
	}
	delete(s.files, path)
	hash, err := fmi.Hash(path)
	if err != nil {
		return
	}
	f := &file{Offer{Name: filepath.Base(path), Hash: hash}, info.ModTime(), info.Size()}
	if o, _, err := fmi.ReadOutline(path); err == nil {
		f.Model = o.Attributes["modelName"]
	}
	s.files[path] = f
}

// offers lists the FMUs in the folders, by name.
func (s *store) offers() []Offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scan()
	var out []Offer
	for _, f := range s.files {
		out = append(out, f.Offer)
	}
	slices.SortFunc(out, func(a, b Offer) int { return strings.Compare(a.Name+a.Hash, b.Name+b.Hash) })
	return out
}

// named returns the hash of an offered FMU with the name of a file, "" if there is none.
func (s *store) named(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		if f.Name == name {
			return f.Hash
		}
	}
	return ""
}

// find opens the FMU with a hash; nil = there is none.
func (s *store) find(hash string) (*fmi.FMU, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.open[hash]; f != nil {
		return f, nil
	}
	s.scan() // for an FMU that is new or has changed
	path := s.sent[hash]
	for at, f := range s.files {
		if f.Hash == hash {
			path = at
		}
	}
	if path == "" {
		return nil, nil
	}
	f, list, err := fmi.Open(path, fmi.OpenOptions{Compile: s.compile, TempDir: s.temp})
	if err != nil {
		return nil, err
	}
	if err := list.Err(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if f.Hash != hash {
		return nil, errors.Join(fmt.Errorf("%s has changed meanwhile", filepath.Base(path)), f.Close())
	}
	s.open[hash] = f
	return s.open[hash], nil
}

// receive stores a piece of an FMU that is sent.
func (s *store) receive(session string, a *sendAsk) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		if s.dir, err = archive.NewTempDir(s.temp, archive.Prefix); err != nil {
			return err
		}
	}
	// The name on disk comes from the hash. Several sessions may send an FMU at a time.
	_, digits, _ := strings.Cut(a.Hash, ":")
	if sum, err := hex.DecodeString(digits); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("%q is not a hash", a.Hash)
	}
	name := session + "-" + digits
	path := filepath.Join(s.dir.Path, name+".fmu")
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if a.At == 0 {
		err = out.Truncate(0)
	}
	if err == nil {
		_, err = out.WriteAt(a.Piece, a.At)
	}
	if err = errors.Join(err, out.Close()); err != nil || !a.Last {
		return err
	}
	if a.Tree {
		packed, folder := path, filepath.Join(s.dir.Path, name)
		list := &diag.List{}
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		path = folder
		if err := errors.Join(archive.Unpack(packed, folder, list, archive.Limits{}), os.Remove(packed)); err != nil {
			return err
		}
	}
	hash, err := fmi.Hash(path)
	if err == nil && hash != a.Hash {
		err = fmt.Errorf("its hash is %s, not %s", hash, a.Hash)
	}
	if err == nil && s.sent[a.Hash] == "" {
		s.sent[a.Hash] = path
		return nil
	}
	return errors.Join(err, os.RemoveAll(path)) // another session was faster
}

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.open {
		errs = append(errs, f.Close())
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Remove())
	}
	return errors.Join(errs...)
}
