package capi

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/internal/native"
)

// File is a library that can be loaded.
type File struct {
	Path   string   // absolute; "" = not yet compiled
	Prefix string   // optional prefix of function names
	Chdir  bool     // make its folder the working directory while loading
	ID     string   // modelIdentifier
	API    Function // V3 for a library of FMI 3.0, else 0
	// Preload are libraries whose symbols the library uses, without naming them.
	Preload []string
}

// Library is a library in this process. It stays loaded until native.Exit, because unloading a
// library with running threads crashes the process.
type Library struct {
	Path string // absolute
	Key  string // see ContentKey

	Shown Shown
	Sym   [NumFunctions]uintptr
	Fatal atomic.Bool // an instance returned Fatal: no further call (checklist fmi2 55)
}

// Shown describes a loaded library.
type Shown struct {
	Exports uint64 // a bit for each function
	Types   string // from fmi2GetTypesPlatform
	Version string // from fmi2GetVersion
	Foreign string // a function of another interface, if there is none to instantiate

	Replaced string // see native.Replaced
}

func (s *Shown) Has(fn Function) bool { return s.Exports>>fn.Number()&1 != 0 }

// Explain returns a remark on a library without the function to instantiate, "" for none.
func (s *Shown) Explain() string {
	switch {
	case s.Foreign == (Instantiate | V3).String():
		return ", but it is a library of FMI 3"
	case s.Foreign == Instantiate.String():
		return ", but it is a library of FMI 2"
	case strings.HasSuffix(s.Foreign, fmi1Instantiate):
		return ", but it is a library of FMI 1"
	case strings.HasSuffix(s.Foreign, prefixedInstantiate):
		return ", only with a prefix, as for source code"
	}
	return ""
}

// Functions that a library may export instead; modelIdentifier precedes them.
const (
	fmi1Instantiate     = "_fmiInstantiateSlave"
	prefixedInstantiate = "_fmi2Instantiate"
)

// Load loads a library into this process and returns the changes of the process, also with
// an error. The tag is that of the FMU, 0 = none.
func Load(p *File, t native.Tag) (_ *Library, changes []string, err error) {
	folder := ""
	if p.Chdir {
		if folder, err = os.Getwd(); err == nil {
			err = os.Chdir(filepath.Dir(p.Path))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("cannot change the working directory to the folder of the library: %w", err)
		}
	}
	g := native.Watch()
	var handle uintptr
	var modes bool
	for _, file := range p.Preload {
		changed, failed := native.Preload(file, t)
		if modes = modes || changed; failed != nil {
			err = fmt.Errorf("the quirk preload: %w", failed)
			break
		}
	}
	if err == nil {
		var changed bool
		handle, changed, err = native.OpenLibrary(p.Path, t)
		modes = modes || changed
	}
	for _, c := range g.Restore() {
		changes = append(changes, "the FMU "+c.Text)
	}
	if modes {
		changes = append(changes, "the FMU changes the floating-point modes (rounding, flush to zero or exceptions); they are restored")
	}
	if folder != "" {
		if back := os.Chdir(folder); back != nil {
			return nil, changes, fmt.Errorf("the working directory %s cannot be restored: %w", folder, back)
		}
	}
	if err != nil {
		return nil, changes, fmt.Errorf("the library cannot be loaded: %w", err)
	}
	l := &Library{Path: p.Path, Key: ContentKey(p.Path), Shown: Shown{Replaced: native.Replaced(p.Path)}}
	return l, changes, l.resolve(handle, p, t)
}

// ContentKey returns the hash of the content of a file, or its path if it is unreadable.
func ContentKey(path string) string {
	key, err := archive.HashFile(path)
	if err != nil {
		return path
	}
	return key
}

// resolve finds the functions and calls those on types platform and version.
func (l *Library) resolve(handle uintptr, p *File, t native.Tag) (err error) {
	s := &l.Shown
	for k := range NumFunctions {
		name := (k | p.API).String()
		if name == "" {
			continue
		}
		if l.Sym[k] = native.Symbol(handle, name); l.Sym[k] == 0 && p.Prefix != "" {
			// Compiled from sources with the prefix of the standard.
			l.Sym[k] = native.Symbol(handle, p.Prefix+name)
		}
		if l.Sym[k] != 0 {
			s.Exports |= 1 << k
		}
	}
	if fn := l.Sym[GetTypesPlatform]; fn != 0 {
		s.Types, err = native.CallText(t.Of(uint8(GetTypesPlatform)), fn)
	}
	if fn := l.Sym[GetVersion]; fn != 0 && err == nil {
		s.Version, err = native.CallText(t.Of(uint8(GetVersion|p.API)), fn)
	}
	if !s.Has(Instantiate) {
		for _, name := range []string{(Instantiate | p.API ^ V3).String(), p.ID + fmi1Instantiate, p.ID + prefixedInstantiate} {
			if native.Symbol(handle, name) != 0 {
				s.Foreign = name
				break
			}
		}
	}
	return err
}
