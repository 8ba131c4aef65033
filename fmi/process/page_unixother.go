//go:build unix && !linux

package process

import (
	"errors"
	"io"
	"os"
)

// pageSize is written as a whole when a page is made.
const pageSize = 8 << 20

// newFile makes a file in the folder for temporary files that has no name any more.
func newFile() (*os.File, error) {
	f, err := os.CreateTemp("", "macrostep-page-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// makeRoom makes the system find room for the file now; without, an access would end the
// process when there is none.
func makeRoom(f *os.File, size int) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := io.Copy(io.NewOffsetWriter(f, 0), io.LimitReader(zeros{}, int64(size)))
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func release([]byte) bool { return false }
