package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/study"
)

// sent is a file of a study that workers get.
type sent struct {
	Path string `json:"path"` // in the folder, with slashes
	Hash string `json:"hash"` // SHA-256
}

// partialSuffix is that of files that are being written.
const partialSuffix = ".partial"

// indexOf returns the list of a study's files, as JSON, and where they are by their hashes.
func indexOf(folder string) (list []byte, place map[string]string, err error) {
	paths, err := study.FilesOf(folder)
	if err != nil {
		return nil, nil, err
	}
	index := make([]sent, len(paths))
	place = map[string]string{}
	for i, path := range paths {
		local := filepath.Join(folder, filepath.FromSlash(path))
		sum, err := hash(local)
		if err != nil {
			return nil, nil, err
		}
		index[i], place[sum] = sent{path, sum}, local
	}
	list, err = json.Marshal(index)
	return list, place, err
}

// sumOf returns the SHA-256 of data.
func sumOf(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// hash returns the SHA-256 of a file.
func hash(path string) (string, error) {
	sum, err := record.HashFile(path)
	return strings.TrimPrefix(sum, "sha256:"), err
}

// Download makes a folder with the files of a study. Contents that this machine has from before, by their
// hashes in the folder cache, do not travel.
func (c *Client) Download(ctx context.Context, cache, folder string) error {
	if err := errors.Join(os.MkdirAll(cache, 0o700), os.MkdirAll(folder, 0o700)); err != nil {
		return err
	}
	list := filepath.Join(folder, "index")
	if err := c.fetch(ctx, c.index, list+partialSuffix, list); err != nil {
		return fmt.Errorf("the list of files: %w", err)
	}
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var index []sent
	if err := json.Unmarshal(data, &index); err != nil {
		return err
	}
	for _, f := range index {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || len(f.Hash) != 2*sha256.Size || !filepath.IsLocal(f.Hash) {
			return fmt.Errorf("the study names a file %q with the hash %q", f.Path, f.Hash)
		}
		kept := filepath.Join(cache, f.Hash)
		if found, err := hash(kept); err != nil || found != f.Hash {
			if err := c.fetch(ctx, f.Hash, filepath.Join(folder, f.Hash+partialSuffix), kept); err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
		}
		if err := place(kept, filepath.Join(folder, filepath.FromSlash(f.Path))); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets a file of the study by its hash, through a partial file.
func (c *Client) fetch(ctx context.Context, name, partial, path string) error {
	file, err := os.Create(partial)
	if err != nil {
		return err
	}
	for at := int64(0); err == nil; {
		var data []byte
		if data, err = c.piece(ctx, name, at); err != nil || len(data) == 0 {
			break
		}
		at += int64(len(data))
		_, err = file.Write(data)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	switch found, err := hash(partial); {
	case err != nil:
		return err
	case found != name:
		return errors.New("the file is not the one that the study began with; if it was changed in the folder of the study, begin the study anew")
	}
	return os.Rename(partial, path)
}

// place puts a file of the cache into a folder, as a link where the system can.
func place(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// readPiece reads a piece of a file; none is its end.
func readPiece(path string, at int64, most int) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, most)
	n, err := file.ReadAt(data, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return data[:n], err
}

// writePiece appends a piece to a file if it begins where that ends, and returns where it ends now.
func writePiece(path string, at int64, data []byte) (end int64, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return 0, err
	}
	if end, err = file.Seek(0, io.SeekEnd); err == nil && end == at {
		var n int
		n, err = file.Write(data)
		end += int64(n)
	}
	return end, errors.Join(err, file.Close())
}
