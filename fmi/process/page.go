package process

import (
	"bytes"
	"errors"
	"math/bits"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Page is shared memory of a parent and a child. The child makes named regions in it; the parent
// finds them by name, also after the end of the child. The page begins with a list of the regions.
// The child maps it once and closes the file, so later changes of its files do no harm.
//
// The child may overwrite everything, so the parent checks all values. Several goroutines may call
// the methods of a page. The methods of a nil Page behave as if the system had no shared memory.
type Page struct {
	mu   sync.Mutex
	file *os.File // of the parent
	view []byte   // all of it; nil = closed

	// Of the child.
	list  []entry
	used  int                  // bytes of the view in extents
	taken map[string]placement // by name
	free  []extent
	uses  uint64
}

// entry describes a region. It is in shared memory.
type entry struct {
	use    uint64 // unique number of the region; 0 = free
	offset uint64
	size   uint64
	name   [maxName]byte // the rest is zero
}

const (
	maxName  = 40
	entries  = 1024
	listSize = entries * int(unsafe.Sizeof(entry{}))
	// extentUnit is a multiple of the memory pages of all systems. On Unix, as much memory before
	// and after each region is inaccessible, to protect it from writes beyond other memory.
	extentUnit = 64 << 10
	listAt     = extentUnit
	// leastPage is the smallest useful size of a page.
	leastPage = 1 << 20
)

// extent is a part of the view.
type extent struct {
	offset, size int
	dirty        bool // it may not be zero
}

// placement is the entry of a region and its extent.
type placement struct {
	entry  int
	extent extent
}

var shared atomic.Pointer[Page]

// Shared returns the page that this process shares with its parent, nil for none.
func Shared() *Page { return shared.Load() }

// SetShared sets the result of Shared. It must precede the first use of regions.
func SetShared(p *Page) { shared.Store(p) }

// NewPage makes a page. The parent passes its File to the child, and must Close the page after use.
func NewPage() (*Page, error) {
	f, err := newFile()
	if err != nil {
		return nil, err
	}
	for size := pageSize; ; size /= 2 { // the size of files, or memory, may be limited
		p := &Page{file: f}
		if err = makeRoom(f, size); err == nil {
			if p.view, err = mapFile(f, size); err == nil {
				return p, nil
			}
		}
		if size <= leastPage {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// File returns the file for OpenPage in the child. The page owns it.
func (p *Page) File() *os.File { return p.file }

// OpenPage opens a page in a child and closes its file.
func OpenPage(f *os.File) (_ *Page, err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	view, err := mapFile(f, int(info.Size()))
	if err != nil {
		return nil, err
	}
	p := &Page{view: view, list: listOf(view), taken: map[string]placement{}}
	forbid(view[:listAt])
	p.used = listAt
	p.extent(listSize)
	return p, nil
}

func listOf(view []byte) []entry {
	return unsafe.Slice((*entry)(unsafe.Pointer(&view[listAt])), entries)
}

// Region returns zeroed memory of a size in bytes, with a name of 1 to 40 bytes. It is aligned to 4096
// bytes and valid until Drop. If the page is nil or full, or the name is invalid or in use, it is
// ordinary memory, which Find does not return.
func (p *Page) Region(name string, size int) []byte {
	if p != nil && name != "" && len(name) <= maxName && size > 0 {
		if memory := p.region(name, size); memory != nil {
			return memory
		}
	}
	const page = 4096
	memory := make([]byte, max(size, 0)+page-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(memory))) % page)
	return memory[skip : skip+size : skip+size]
}

func (p *Page) region(name string, size int) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := p.taken[name]; taken || size > len(p.view) {
		return nil
	}
	k := 0
	for k < len(p.list) && atomic.LoadUint64(&p.list[k].use) != 0 {
		k++
	}
	if k >= len(p.list) {
		return nil
	}
	x, ok := p.extent(size)
	if !ok {
		return nil
	}
	memory := p.view[x.offset:][:size:size]
	if x.dirty {
		clear(memory)
	}
	p.taken[name] = placement{k, x}
	e := &p.list[k]
	atomic.StoreUint64(&e.offset, uint64(x.offset))
	atomic.StoreUint64(&e.size, uint64(size))
	clear(e.name[:])
	copy(e.name[:], name)
	p.uses++
	atomic.StoreUint64(&e.use, p.uses)
	return memory
}

// extent returns the smallest free extent of at least a size, or a new one.
func (p *Page) extent(size int) (extent, bool) {
	best := -1
	for k, x := range p.free {
		if x.size >= size && (best < 0 || x.size < p.free[best].size) {
			best = k
		}
	}
	if best >= 0 {
		x := p.free[best]
		p.free = slices.Delete(p.free, best, best+1)
		return x, true
	}
	// Sizes are powers of two, so that extents can be reused for regions of similar size.
	x := extent{offset: p.used, size: extentUnit << bits.Len(uint(size-1)/extentUnit)}
	next := x.offset + x.size + extentUnit
	if next > len(p.view) {
		return extent{}, false
	}
	forbid(p.view[x.offset+x.size : next])
	p.used = next
	return x, true
}

// Drop removes a region, whose memory later regions may reuse. It has no effect if Region returned
// ordinary memory.
func (p *Page) Drop(name string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t, ok := p.taken[name]
	if !ok {
		return
	}
	delete(p.taken, name)
	atomic.StoreUint64(&p.list[t.entry].use, 0)
	t.extent.dirty = !release(p.view[t.extent.offset:][:t.extent.size])
	p.free = append(p.free, t.extent)
}

// Find returns the region with a name, nil if there is none. The child may change the memory as long
// as it lives, and reuse it after Drop. It is valid until Close.
func (p *Page) Find(name string) []byte {
	if p == nil || name == "" || len(name) > maxName {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil || !whole(p.file, len(p.view)) {
		return nil
	}
	var wanted [maxName]byte
	copy(wanted[:], name)
	list := listOf(p.view)
	for k := range list {
		e := &list[k]
		use := atomic.LoadUint64(&e.use)
		if use == 0 || !bytes.Equal(e.name[:], wanted[:]) {
			continue
		}
		offset, size := atomic.LoadUint64(&e.offset), atomic.LoadUint64(&e.size)
		switch {
		case atomic.LoadUint64(&e.use) != use: // the child is changing it
		case offset < uint64(listAt+listSize), offset%extentUnit != 0, size == 0,
			offset > uint64(len(p.view)), size > uint64(len(p.view))-offset: // invalid
		default:
			return p.view[offset : offset+size : offset+size]
		}
	}
	return nil
}

// whole reports whether a file still has its size. Memory beyond its end is inaccessible.
func whole(f *os.File, size int) bool {
	if f == nil { // of a child: a mapping of its own
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Size() >= int64(size)
}

// Close releases the page in a parent; the results of Find are then invalid. In a child it has no
// effect, because regions may still be in use.
func (p *Page) Close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.view == nil || p.list != nil {
		return nil
	}
	unmap(p.view)
	p.view = nil
	return p.file.Close()
}
