package fmi2

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/macrostep/macrostep/fmi/internal/native"
)

// File is a library that can be loaded.
type File struct {
	Path   string // absolute; "" = to be compiled
	Prefix string // of the names of the functions, where they may have one
	Chdir  bool   // load it in its own folder
	ID     string // modelIdentifier
}

// Library is a library in this process. It is loaded once and stays: unloading
// libraries with threads of their own crashes the process.
type Library struct {
	Path string // absolute path it was loaded from
	Key  string // see contentKey

	Shown Shown
	Sym   [NumFunctions]uintptr
	Fatal atomic.Bool // an instance returned Fatal: no further call (checklist fmi2 55)
}

// Shown is what a loaded library shows of itself.
type Shown struct {
	Exports uint64 // a bit for each function
	Types   string // fmi2GetTypesPlatform
	Version string // fmi2GetVersion
	Foreign string // function of another interface, if there is no fmi2Instantiate
}

func (s *Shown) Has(fn Function) bool { return s.Exports>>fn&1 != 0 }

// Explain says what a library is that has no fmi2Instantiate; "" = nothing is known.
func (s *Shown) Explain() string {
	switch {
	case s.Foreign == fmi3Instantiate:
		return ", but it is a library of FMI 3"
	case strings.HasSuffix(s.Foreign, fmi1Instantiate):
		return ", but it is a library of FMI 1"
	case strings.HasSuffix(s.Foreign, prefixedInstantiate):
		return ", only with a prefix, as for source code"
	}
	return ""
}

// What a library without fmi2Instantiate may export instead; the last two after
// modelIdentifier.
const (
	fmi3Instantiate     = "fmi3InstantiateCoSimulation"
	fmi1Instantiate     = "_fmiInstantiateSlave"
	prefixedInstantiate = "_fmi2Instantiate"
)

// Load loads a library into this process. It returns what that changed in the
// process, also with an error. The tag is that of the FMU, 0 if nobody looks.
func Load(p *File, t native.Tag) (_ *Library, changes []string, err error) {
	folder := ""
	if p.Chdir {
		if folder, err = os.Getwd(); err == nil {
			err = os.Chdir(filepath.Dir(p.Path))
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the folder of the library cannot be made the working directory: %w", err)
		}
	}
	g := native.Watch()
	handle, modes, err := native.OpenLibrary(p.Path, t)
	for _, c := range g.Restore() {
		changes = append(changes, "the FMU "+c.Text)
	}
	if modes {
		changes = append(changes, "the FMU changes the floating-point modes (rounding, flush to zero or exceptions); they are put back")
	}
	if folder != "" {
		if back := os.Chdir(folder); back != nil {
			return nil, changes, fmt.Errorf("the working directory %s cannot be restored: %w", folder, back)
		}
	}
	if err != nil {
		return nil, changes, fmt.Errorf("the library does not load: %w", err)
	}
	l := &Library{Path: p.Path, Key: ContentKey(p.Path)}
	return l, changes, l.resolve(handle, p, t)
}

// ContentKey identifies a file by its content.
func ContentKey(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return path
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// resolve finds the functions.
func (l *Library) resolve(handle uintptr, p *File, t native.Tag) (err error) {
	s := &l.Shown
	for k, name := range Names {
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
		s.Version, err = native.CallText(t.Of(uint8(GetVersion)), fn)
	}
	if !s.Has(Instantiate) {
		for _, name := range []string{fmi3Instantiate, p.ID + fmi1Instantiate, p.ID + prefixedInstantiate} {
			if native.Symbol(handle, name) != 0 {
				s.Foreign = name
				break
			}
		}
	}
	return err
}
