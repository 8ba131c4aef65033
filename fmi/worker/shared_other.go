//go:build !linux

package worker

import (
	"errors"
	"os"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/internal/remote"
)

// shared is memory of master and worker, which this system does not support.
type shared struct{}

func newShared() (*shared, error)                         { return nil, nil }
func openShared(uintptr) (*shared, error)                 { return nil, nil }
func (*shared) files() []*os.File                         { return nil }
func (*shared) handed()                                   {}
func (*shared) close()                                    {}
func (*shared) progress() unsafe.Pointer                  { return nil }
func (*shared) there() bool                               { return false }
func (*shared) wake()                                     {}
func (*shared) end()                                      {}
func (*shared) begun() (uint64, int)                      { return 0, 0 }
func (*shared) keep(string)                               {}
func (*shared) said() []string                            { return nil }
func (*shared) answer([]byte) bool                        { return false }
func (*shared) announce()                                 {}
func (*shared) request(in *remote.Frames) ([]byte, error) { return readRequest(in) }

// Without shared memory they are never called.
func (l *link) sendShared([]byte) error        { return errNone }
func (l *link) receiveShared() ([]byte, error) { return nil, errNone }

var errNone = errors.New("there is no shared memory")
