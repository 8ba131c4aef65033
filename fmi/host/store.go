package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
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
	folders  []string
	compile  bool
	temp     string
	most     int64 // maxSent; tests lower it
	scanning sync.Mutex

	mu    sync.Mutex
	files map[string]*file   // in the folders, by path
	known map[string]*stored // that were used or sent, by hash
	dir   *archive.Dir       // of FMUs that were sent; nil = none yet
	taken int64              // bytes of FMUs that were or are being sent
}

// file is an FMU in a folder.
type file struct {
	Offer
	folder bool // it is not packed
	stamp  [sha256.Size]byte
}

// stored is an FMU that instances use or have used, or that was sent.
type stored struct {
	*fmi.FMU
	path, hash string
	folder     *file     // nil = it was packed, or sent
	once       sync.Once // opens it
	err        error

	users int
	used  time.Time // last
	size  int64     // as it was sent, in bytes; 0 = it is in a folder
}

func newStore(folders []string, compile bool, temp string) (*store, error) {
	s := &store{compile: compile, temp: temp, most: maxSent, files: map[string]*file{}, known: map[string]*stored{}}
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

// scan lists the FMUs in the folders, also in subfolders. Links are not followed, so that all are inside.
func (s *store) scan() {
	s.scanning.Lock()
	defer s.scanning.Unlock()
	s.mu.Lock()
	old := s.files
	s.mu.Unlock()
	files := map[string]*file{}
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
			if f := look(path, e.IsDir(), old[path]); f != nil {
				files[path] = f
			}
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = files
}

// look reads an FMU of a folder, unless it has not changed since it was read; nil = it cannot be read.
func look(path string, folder bool, old *file) *file {
	now, err := stamp(path)
	if err != nil || old != nil && old.stamp == now {
		return old
	}
	hash, err := fmi.Hash(path)
	if err != nil {
		return nil
	}
	f := &file{Offer{Name: filepath.Base(path), Hash: hash}, folder, now}
	if o, _, err := fmi.ReadOutline(path); err == nil {
		f.Model = o.Attributes["modelName"]
	}
	return f
}

// stamp returns a digest of the sizes and times of the files of an FMU.
func stamp(path string) (out [sha256.Size]byte, err error) {
	h := sha256.New()
	err = filepath.WalkDir(path, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			fmt.Fprintf(h, "%q %d %d\n", at, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	h.Sum(out[:0])
	return out, err
}

// offers lists the FMUs in the folders, by name.
func (s *store) offers() []Offer {
	s.scan()
	s.mu.Lock()
	defer s.mu.Unlock()
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

// find opens the FMU with a hash, for the caller until release; nil = there is none.
func (s *store) find(hash string) (*stored, error) {
	f := s.use(hash)
	if f != nil && f.changed() {
		s.forget(f)
		f = nil
	}
	if f == nil {
		s.scan()
		if f = s.use(hash); f == nil {
			return nil, nil
		}
	}
	f.once.Do(func() { f.FMU, f.err = s.load(f.path, hash) })
	if f.err != nil {
		s.forget(f)
		return nil, f.err
	}
	return f, nil
}

// use returns the FMU with a hash, perhaps before it is opened; nil = none is known.
func (s *store) use(hash string) *stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.known[hash]
	for path, file := range s.files {
		if f == nil && file.Hash == hash {
			f = &stored{path: path, hash: hash}
			if file.folder {
				f.folder = file
			}
			s.known[hash] = f
		}
	}
	if f != nil {
		f.users++
	}
	return f
}

func (s *store) load(path, hash string) (*fmi.FMU, error) {
	f, list, err := fmi.Open(path, fmi.OpenOptions{Compile: s.compile, TempDir: s.temp})
	if err != nil {
		return nil, err
	}
	if err = list.Err(); err == nil && f.Hash != hash {
		err = fmt.Errorf("%s has changed meanwhile", filepath.Base(path))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// changed reports whether the files of an FMU in a folder have changed. Of an archive there is a copy.
func (f *stored) changed() bool {
	if f.folder == nil {
		return false
	}
	now, err := stamp(f.path)
	return err != nil || now != f.folder.stamp
}

// release ends the use of an FMU.
func (s *store) release(f *stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.users--
	f.used = time.Now()
	if f.users == 0 && s.known[f.hash] != f {
		s.remove(f)
	}
}

// forget ends the use of an FMU that is not what it was. It may be found again.
func (s *store) forget(f *stored) {
	s.mu.Lock()
	delete(s.files, f.path)
	if s.known[f.hash] == f {
		delete(s.known, f.hash)
	}
	s.mu.Unlock()
	s.release(f)
}

// remove forgets an FMU, and removes what was sent of it. The caller holds mu.
func (s *store) remove(f *stored) {
	if s.known[f.hash] == f {
		delete(s.known, f.hash)
	}
	if f.FMU != nil {
		_ = f.Close() // what is left goes when the host ends, as below
	}
	if f.size > 0 {
		s.taken -= f.size
		_ = os.RemoveAll(f.path)
	}
}

// maxSent bounds the FMUs that were sent, in bytes.
const maxSent = 16 << 30

// reserve makes room for an FMU that is sent, if need be in place of those that nobody uses.
func (s *store) reserve(size int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for size > s.most-s.taken {
		var oldest *stored
		for _, f := range s.known {
			if size <= s.most && f.size > 0 && f.users == 0 && (oldest == nil || f.used.Before(oldest.used)) {
				oldest = f
			}
		}
		if oldest == nil {
			return fmt.Errorf("it has %d bytes, and the host has %d for FMUs that are sent, of which others take %d", size, s.most, s.taken)
		}
		s.remove(oldest)
	}
	s.taken += size
	return nil
}

// upload is an FMU that is being sent.
type upload struct {
	*stored
	store *store
	ask   *sendAsk
	file  *os.File
	sum   hash.Hash
	got   int64 // bytes
}

// receive begins an upload.
func (s *store) receive(a *sendAsk) (*upload, error) {
	_, digits, _ := strings.Cut(a.Hash, ":")
	if sum, err := hex.DecodeString(digits); err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("%q is not a hash", a.Hash)
	}
	if a.Size <= 0 {
		return nil, fmt.Errorf("its size is said to be %d bytes", a.Size)
	}
	if err := s.reserve(a.Size); err != nil {
		return nil, err
	}
	u := &upload{store: s, ask: a, sum: sha256.New(), stored: &stored{hash: a.Hash, size: a.Size, used: time.Now()}}
	dir, err := s.sentDir()
	if err == nil {
		u.file, err = os.CreateTemp(dir, "sent-*.fmu")
	}
	if err != nil {
		u.drop()
		return nil, err
	}
	u.path = u.file.Name()
	return u, nil
}

// sentDir returns the folder of FMUs that are sent.
func (s *store) sentDir() (_ string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == nil {
		if s.dir, err = archive.NewTempDir(s.temp, archive.Prefix); err != nil {
			return "", err
		}
	}
	return s.dir.Path, nil
}

// write stores a piece. The FMU is there if it was the last. After an error nothing is left.
func (u *upload) write(piece []byte) (done bool, err error) {
	if u.got += int64(len(piece)); u.got > u.size {
		err = fmt.Errorf("it is longer than the %d bytes that were announced", u.size)
	}
	if err == nil {
		_, _ = u.sum.Write(piece) // never fails
		_, err = u.file.Write(piece)
	}
	if err == nil && u.got < u.size {
		return false, nil
	}
	if err == nil {
		err = u.finish()
	}
	if err != nil {
		u.drop()
	}
	return true, err
}

// finish checks what was sent, and offers it.
func (u *upload) finish() error {
	if err := u.file.Close(); err != nil {
		return err
	}
	found := "sha256:" + hex.EncodeToString(u.sum.Sum(nil))
	if u.ask.Tree {
		packed := u.path
		folder := strings.TrimSuffix(packed, ".fmu")
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		u.path = folder
		err := errors.Join(archive.Unpack(packed, folder, &diag.List{}, archive.Limits{}), os.Remove(packed))
		if err == nil {
			found, err = fmi.Hash(folder)
		}
		if err != nil {
			return err
		}
	}
	if found != u.hash {
		return fmt.Errorf("its hash is %s, not %s", found, u.hash)
	}
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	if u.store.known[found] != nil { // another run was faster
		u.store.remove(u.stored)
	} else {
		u.store.known[found], u.used = u.stored, time.Now()
	}
	return nil
}

// drop removes what has been stored of an FMU.
func (u *upload) drop() {
	if u == nil {
		return
	}
	if u.file != nil {
		_ = u.file.Close() // it may be closed
	}
	u.store.mu.Lock()
	defer u.store.mu.Unlock()
	u.store.remove(u.stored)
}

func (s *store) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, f := range s.known {
		if f.FMU != nil {
			errs = append(errs, f.Close())
		}
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Remove())
	}
	return errors.Join(errs...)
}
