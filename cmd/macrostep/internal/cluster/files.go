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

	"github.com/nats-io/nats.go/jetstream"

	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/study"
)

// sent is a file of a study on the server: an object of the name Hash.
type sent struct {
	Path string `json:"path"` // in the folder, with slashes
	Hash string `json:"hash"` // SHA-256
}

// upload puts the files of a study on the server, each content once.
func upload(ctx context.Context, js jetstream.JetStream, n names, folder string, replicas int) error {
	bucket, err := js.CreateOrUpdateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: n.bucket(), Replicas: replicas})
	if err != nil {
		return err
	}
	var index []sent
	paths, err := study.FilesOf(folder)
	if err != nil {
		return err
	}
	for _, path := range paths {
		sum, err := hash(filepath.Join(folder, filepath.FromSlash(path)))
		if err != nil {
			return err
		}
		index = append(index, sent{path, sum})
		if _, err := bucket.GetInfo(ctx, sum); err == nil {
			continue
		}
		if err := put(ctx, bucket, sum, filepath.Join(folder, filepath.FromSlash(path))); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	data, err := json.Marshal(index)
	if err != nil {
		return err
	}
	_, err = bucket.PutBytes(ctx, indexObject, data) // last: with it, the files are complete
	return err
}

// put streams a file into an object.
func put(ctx context.Context, bucket jetstream.ObjectStore, name, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = bucket.Put(ctx, jetstream.ObjectMeta{Name: name}, file)
	return err
}

// download makes a folder with the files of a study. Contents that this machine has from before, by their
// hashes in the folder cache, do not travel.
func download(ctx context.Context, js jetstream.JetStream, n names, cache, folder string) error {
	bucket, err := js.ObjectStore(ctx, n.bucket())
	if err != nil {
		return err
	}
	data, err := bucket.GetBytes(ctx, indexObject)
	if err != nil {
		return err
	}
	var index []sent
	if err := json.Unmarshal(data, &index); err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return err
	}
	for _, f := range index {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) || len(f.Hash) != 2*sha256.Size || !filepath.IsLocal(f.Hash) {
			return fmt.Errorf("the study names a file %q with the hash %q", f.Path, f.Hash)
		}
		kept := filepath.Join(cache, f.Hash)
		if found, err := hash(kept); err != nil || found != f.Hash {
			if err := fetchObject(ctx, bucket, f.Hash, kept); err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
		}
		if err := place(kept, filepath.Join(folder, filepath.FromSlash(f.Path))); err != nil {
			return err
		}
	}
	return nil
}

// fetchObject streams an object into a file, which is whole or not there.
func fetchObject(ctx context.Context, bucket jetstream.ObjectStore, name, path string) error {
	file, err := os.CreateTemp(filepath.Dir(path), "partial-*")
	if err != nil {
		return err
	}
	object, err := bucket.Get(ctx, name)
	if err == nil {
		_, err = io.Copy(file, object)
		err = errors.Join(err, object.Close())
	}
	if err = errors.Join(err, file.Close()); err == nil {
		var found string
		if found, err = hash(file.Name()); err == nil && found != name {
			err = errors.New("the file is damaged on its way")
		}
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
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

// hash returns the SHA-256 of a file, without the name of the method: that of an object.
func hash(path string) (string, error) {
	sum, err := record.HashFile(path)
	return strings.TrimPrefix(sum, "sha256:"), err
}
