package fmi

import (
	"sync"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/internal/capi"
)

// trees are the unpacked archives of this process. Archives with equal content in
// one parent folder share a tree.
var trees = struct {
	sync.Mutex
	by map[treeKey]*tree
}{by: map[treeKey]*tree{}}

type treeKey struct{ parent, hash string }

// tree is one unpacked archive. Its last user removes it.
type tree struct {
	key   treeKey
	users int // guarded by trees

	mu  sync.Mutex // held during unpacking and removal
	dir *archive.Dir
}

// shareTree returns the shared folder below parent for the content with this hash;
// unpack fills a new one. The caller must release it.
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
			_ = dir.Remove() // the error of unpack matters more
		}
	}
	if err != nil {
		t.leave()
		return nil, err
	}
	t.dir = dir
	return t, nil
}

// leave removes a user and reports whether it was the last.
func (t *tree) leave() (last bool) {
	trees.Lock()
	defer trees.Unlock()
	if t.users--; t.users > 0 {
		return false
	}
	// The next user makes a new tree.
	delete(trees.by, t.key)
	return true
}

// release removes a user, and the tree after the last one.
func (t *tree) release() error {
	if !t.leave() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dir.Remove()
}

// images are the loaded libraries, by hash or path of the FMU. Guarded by loading.
var images = map[string]*capi.Library{}
