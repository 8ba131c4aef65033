package record

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ErrBusy is the error of a file that another run is writing to.
var ErrBusy = errors.New("another run is writing to it")

// replaceFile atomically replaces the file at path by data: a reader sees the old content or
// the new one. With durable, this also holds after a crash of the machine. With fresh, the
// file must not exist. Where the system can rename open files, held is the new file, open
// and locked.
func replaceFile(path string, data []byte, durable, fresh bool) (held *os.File, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		// A device or pipe cannot be replaced.
		f, err := Create(path, os.O_TRUNC)
		if err != nil {
			return nil, err
		}
		_, err = f.Write(data)
		return nil, errors.Join(err, f.Close())
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // replace the target of a link, not the link
	}
	f, err := temporary(path)
	if err != nil {
		return nil, err
	}
	temp := f.Name()
	_, err = f.Write(data)
	if durable && err == nil {
		err = f.Sync()
	}
	if !renamesOpen {
		err = errors.Join(err, f.Close())
		f = nil
	}
	switch {
	case err != nil:
	case fresh && os.Link(temp, path) == nil:
		err = os.Remove(temp)
	case fresh && exists(path):
		err = fs.ErrExist
	default: // also if the file system has no links
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = f.Close()
		return nil, errors.Join(err, os.Remove(temp))
	}
	if durable {
		SyncFolder(filepath.Dir(path))
	}
	return f, nil
}

// temporaryBegin and temporaryEnd enclose the random number in the name of a temporary file,
// after the name of the file that it will replace.
const temporaryBegin, temporaryEnd = ".ms-", ".tmp"

// temporary creates a file beside path and locks it, so that Sweep in other runs leaves it
// alone. It does not follow links.
func temporary(path string) (*os.File, error) {
	for {
		name := fmt.Sprintf("%s%s%08x%s", path, temporaryBegin, rand.Uint32(), temporaryEnd)
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		switch {
		case errors.Is(err, fs.ErrExist):
			continue
		case err != nil:
			return nil, err
		case lock(f) == nil && there(f, f.Name()) == nil:
			return f, nil
		}
		_ = f.Close() // Sweep removed it first
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Sweep deletes temporary files in the folder of path that killed runs have left while they replaced a file there: a manifest
// or a checkpoint, of any name. An empty path does nothing.
func Sweep(path string) {
	if path == "" {
		return
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !isTemporary(e.Name()) {
			continue
		}
		left := filepath.Join(filepath.Dir(path), e.Name())
		f, err := os.OpenFile(left, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lock(f) == nil && os.Remove(left) != nil {
			_ = f.Close()
			_ = os.Remove(left) // some systems cannot remove open files
			continue
		}
		_ = f.Close()
	}
}

// isTemporary reports whether a name is one that temporary gives.
func isTemporary(name string) bool {
	rest, ends := strings.CutSuffix(name, temporaryEnd)
	at := strings.LastIndex(rest, temporaryBegin)
	if !ends || at < 1 {
		return false
	}
	number := rest[at+len(temporaryBegin):]
	_, err := strconv.ParseUint(number, 16, 32)
	return err == nil && len(number) == 8
}

// SyncFolder makes names that were added to a folder durable, if the system supports it.
func SyncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// position is the end of the whole rows in the file of a table.
type position struct {
	path  string // absolute
	bytes int64
	head  int64  // bytes at the beginning that may change
	sum   uint32 // CRC-32C of the bytes after them
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// wrote counts written rows.
func (p *position) wrote(rows []byte) {
	p.bytes += int64(len(rows))
	p.sum = crc32.Update(p.sum, castagnoli, rows)
}

// whole returns an error if the size of file f differs from the bytes that were written to
// it. Another program may have written, or an FMU through a wrong file handle. Devices and
// pipes are not checked.
func whole(f *os.File, bytes int64) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == bytes {
		return nil
	}
	return fmt.Errorf("%s was changed by another program during the run: it has %d bytes, but %d were written; "+
		"it does not contain the results of this run. Run again, and leave the file alone meanwhile; "+
		"if an FMU writes to it, --isolate always keeps it away", f.Name(), info.Size(), bytes)
}

// there returns an error if path no longer leads to file f.
func there(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	now, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed or renamed during the run; run again if it is lost", path)
	case err == nil && !os.SameFile(info, now):
		return fmt.Errorf("%s was replaced by another file during the run and does not contain the results; "+
			"run again if they are lost", path)
	}
	return nil
}

// checksum returns the CRC-32C for a position of a file, and the number n ≤ p.bytes of bytes up to
// there. It reads from the beginning.
func (p *position) checksum(f *os.File) (n int64, sum uint32, err error) {
	h := crc32.New(castagnoli)
	if n, err = io.CopyN(io.Discard, f, p.head); err == nil {
		var more int64
		more, err = io.CopyN(h, f, p.bytes-p.head)
		n += more
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, h.Sum32(), err
}

// read computes the checksum from the file.
func (p *position) read() error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	n, sum, err := p.checksum(f)
	if err == nil && n < p.bytes {
		err = fmt.Errorf("%s was changed by another program during the run: it has %d bytes, but %d were written",
			p.path, n, p.bytes)
	}
	p.sum = sum
	return err
}

// reopen opens a table to be continued for writing at the position. It does not truncate the
// file: that is left to the first row.
func (p *position) reopen() (*os.File, error) {
	const remedy = "; restore it, or name another file, which gets the rows after the checkpoint"
	f, err := os.OpenFile(p.path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("the file to be continued: %w%s", err, remedy)
	}
	fail := func(err error) (*os.File, error) {
		return nil, errors.Join(fmt.Errorf("continuing %s: %w", p.path, err), f.Close())
	}
	if err := lock(f); err != nil {
		return fail(fmt.Errorf("%w; choose another --output", err))
	}
	n, sum, err := p.checksum(f)
	switch {
	case err != nil:
		return fail(err)
	case n < p.bytes:
		return fail(fmt.Errorf("it ends after %d bytes, but had %d at the checkpoint%s", n, p.bytes, remedy))
	case sum != p.sum:
		return fail(fmt.Errorf("its first %d bytes are not what they were at the checkpoint%s", p.bytes, remedy))
	}
	return f, nil // positioned after the bytes that were read
}

// lockPatience is the time to wait for a file of another run. The lock of a killed program is
// released a moment later.
var lockPatience = 2 * time.Second

// patiently calls lock until it succeeds, for at most lockPatience.
func patiently(lock func() error) error {
	const pause = 20 * time.Millisecond
	for began := time.Now(); ; time.Sleep(pause) {
		if err := lock(); !errors.Is(err, ErrBusy) || time.Since(began) > lockPatience {
			return err
		}
	}
}
