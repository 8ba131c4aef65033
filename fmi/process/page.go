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

// Page is memory that a parent and a child share. The child divides it into regions with
// names; the parent finds them by name, also when the child has ended, however that came
// about. A list of them stands in front. The child maps it once and closes the file:
// what it does to its files later does no harm.
//
// The child may write over everything: the parent believes nothing that it reads there.
// Its methods may be called by several goroutines. The methods of a nil Page work as if
// the system had no shared memory.
type Page struct {
	mu   sync.Mutex
	file *os.File // of the parent
	view []byte   // all of it; nil = closed

	// Of the child.
	list  []entry
	used  int                  // bytes of the view, by extents
	taken map[string]placement // by name
	free  []extent
	uses  uint64
}

// entry lists a region. It lies in shared memory.
type entry struct {
	use    uint64 // number of the use of this entry; 0 = free
	offset uint64
	size   uint64
	name   [maxName]byte // the rest is zero
}

const (
	maxName  = 40
	entries  = 1024
	listSize = entries * int(unsafe.Sizeof(entry{}))
	// extentUnit suits the pages of every system. So much before and behind each region cannot
	// be accessed, where the system can do that: writing beyond the end of other memory does
	// not get there.
	extentUnit = 64 << 10
	listAt     = extentUnit
	// leastPage is the size below which a page is of no use.
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

// Shared returns the page that this process reports into, nil if it has none.
func Shared() *Page { return shared.Load() }

// SetShared makes a page the one that Shared returns. What asked for regions before is not
// found in it.
func SetShared(p *Page) { shared.Store(p) }

// NewPage makes a page. The parent hands its File to the child and closes the page when
// it needs no region any more.
func NewPage() (*Page, error) {
	f, err := newFile()
	if err != nil {
		return nil, err
	}
	for size := pageSize; ; size /= 2 { // files, or memory, may be limited
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

// File returns what the child opens the page by. It belongs to the page.
func (p *Page) File() *os.File { return p.file }

// OpenPage opens in a child the page whose file it was handed, and closes the file.
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

// Region returns zeroed memory of a size under a name of at most 40 bytes. It begins at
// the beginning of a page of memory and keeps its place until Drop. It is ordinary memory,
// which Find does not find, if the page is nil, the name is in use, or the system refuses
// to share so much.
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

// extent returns a free one of at least a size, the smallest, or a new one.
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
	// Few sizes, so that regions of about the same size can follow each other.
	x := extent{offset: p.used, size: extentUnit << bits.Len(uint(size-1)/extentUnit)}
	next := x.offset + x.size + extentUnit
	if next > len(p.view) {
		return extent{}, false
	}
	forbid(p.view[x.offset+x.size : next])
	p.used = next
	return x, true
}

// Drop returns a region back: it is not found any more, and its memory becomes that of a
// later region. It does nothing if Region has returned ordinary memory.
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

// Find returns the region with a name as it is at present, nil if there is none. The
// memory is that of the child, which may write to it as long as it lives, and after a
// Drop use it for something else. It is valid until Close.
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
		case atomic.LoadUint64(&e.use) != use: // it is just being changed
		case offset < uint64(listAt+listSize), offset%extentUnit != 0, size == 0, offset > uint64(len(p.view)), size > uint64(len(p.view))-offset:
		default:
			return p.view[offset : offset+size : offset+size]
		}
	}
	return nil
}

// whole reports whether a file still has its length: what lies after its end must not be
// touched.
func whole(f *os.File, size int) bool {
	if f == nil { // of a child: a mapping of its own
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Size() >= int64(size)
}

// Close gives the page back in a parent: what Find has returned must not be used any more.
// In a child it does nothing, for who uses a region knows of no end.
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
