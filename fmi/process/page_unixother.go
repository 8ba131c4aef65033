//go:build unix && !linux

package process

import (
	"errors"
	"io"
	"os"
)

// pageSize is the size of a page, which makeRoom writes completely.
const pageSize = 8 << 20

// newFile makes a temporary file without name.
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

// makeRoom writes the whole file, because an access without space on the disk would end the process.
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
