package fmi

import (
	"sync"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/internal/fmi2"
)

// trees are the unpacked archives of this process, by the place and the hash of
// their content: archives with equal content share one tree.
var trees = struct {
	sync.Mutex
	by map[treeKey]*tree
}{by: map[treeKey]*tree{}}

type treeKey struct{ parent, hash string }

// tree is one unpacked archive. It goes with its last user.
type tree struct {
	key   treeKey
	users int // guarded by trees

	mu  sync.Mutex // held while it is unpacked and while it is removed
	dir *archive.Dir
}

// shareTree returns the shared folder below parent for the content with this hash; unpack fills a new one.
// Release it after use.
func shareTree(parent, hash string, unpack func(dir string) error) (*tree, error) {
	key := treeKey{parent, hash}
	trees.Lock()
	t := trees.by[key]
	if t == nil {
		t = &tree{key: key}
		trees.by[key] = t
	}
	t.users++
	trees.Unlock()

	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir != nil {
		return t, nil
	}
	dir, err := archive.NewTempDir(parent, archive.Prefix)
	if err == nil {
		if err = unpack(dir.Path); err != nil {
			_ = dir.Remove() // the error that counts is that of unpacking
		}
	}
	if err != nil {
		t.leave()
		return nil, err
	}
	t.dir = dir
	return t, nil
}

// leave takes one user off and tells whether it was the last.
func (t *tree) leave() (last bool) {
	trees.Lock()
	defer trees.Unlock()
	if t.users--; t.users > 0 {
		return false
	}
	// Whoever comes now makes a tree of its own.
	delete(trees.by, t.key)
	return true
}

// release removes the tree with its last user.
func (t *tree) release() error {
	if !t.leave() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dir.Remove()
}

// images are the libraries of this process, by the content of their FMU.
// Guarded by loading.
var images = map[string]*fmi2.Library{}
