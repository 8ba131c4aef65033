package process

import (
	"bytes"
	"io"
	"math/bits"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Page is memory that a parent and a child share. The child divides it into regions with
// names; the parent finds them by name, also when the child has ended, however that came
// about. A region is a part of a file; the beginning of the file lists the regions.
//
// The child may write over everything: the parent believes nothing that it reads there.
// Its methods may be called by several goroutines. The methods of a nil Page work as if
// the system had no shared memory.
type Page struct {
	mu     sync.Mutex
	file   *os.File
	memfd  bool // of this process: what is dropped can be given back to the system
	closed bool

	views [][]byte // the file as it was mapped as a whole, later ones are longer

	// Of the child.
	list   []entry
	used   int64                // of the file by extents
	length int64                // of the file
	taken  map[string]placement // by name
	free   []extent
	uses   uint64
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
	// extentUnit suits the pages of every system, and where a mapping may begin on Windows.
	extentUnit = 64 << 10
	// maxFile bounds what is believed of the size of the file.
	maxFile = 1 << 40
)

// extent is a part of the file, mapped for as long as the child lives.
type extent struct {
	offset int64
	memory []byte
	dirty  bool // it may not be zero
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
	f, memfd, err := newFile()
	if err != nil {
		return nil, err
	}
	p := &Page{file: f, memfd: memfd}
	if err := f.Truncate(int64(listSize)); err != nil {
		p.Close()
		return nil, err
	}
	if memfd {
		keepLength(f)
	}
	return p, nil
}

// File returns what the child opens the page by. It belongs to the page.
func (p *Page) File() *os.File { return p.file }

// OpenPage opens in a child the page whose file it was handed. The page owns the file.
func OpenPage(f *os.File) (*Page, error) {
	CloseOnExec(f.Fd())
	p := &Page{file: f, memfd: isMemfd(f), taken: map[string]placement{}, used: int64(listSize)}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p.length = info.Size()
	memory, err := mapExtent(f, 0, listSize)
	if err != nil {
		return nil, err
	}
	p.list = unsafe.Slice((*entry)(unsafe.Pointer(&memory[0])), entries)
	return p, nil
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
	if _, taken := p.taken[name]; taken || p.closed || int64(size) > maxFile/2 {
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
	if x.dirty {
		clear(x.memory)
	}
	p.taken[name] = placement{k, x}
	e := &p.list[k]
	atomic.StoreUint64(&e.offset, uint64(x.offset))
	atomic.StoreUint64(&e.size, uint64(size))
	clear(e.name[:])
	copy(e.name[:], name)
	p.uses++
	atomic.StoreUint64(&e.use, p.uses)
	return x.memory[:size:size]
}

// extent returns a free one of at least a size, the smallest, or a new one.
func (p *Page) extent(size int) (extent, bool) {
	best := -1
	for k, x := range p.free {
		if len(x.memory) >= size && (best < 0 || len(x.memory) < len(p.free[best].memory)) {
			best = k
		}
	}
	if best >= 0 {
		x := p.free[best]
		p.free = append(p.free[:best], p.free[best+1:]...)
		return x, true
	}
	if !sameFile(p.file, p.length) {
		return extent{}, false
	}
	// Few sizes, so that regions of about the same size can follow each other.
	whole := extentUnit << bits.Len(uint(size-1)/extentUnit)
	if end := p.used + int64(whole); end > p.length && !p.grow(end) || !p.memfd && !reserve(p.file, p.used, whole) {
		return extent{}, false
	}
	memory, err := mapExtent(p.file, p.used, whole)
	if err != nil {
		return extent{}, false
	}
	x := extent{offset: p.used, memory: memory}
	p.used += int64(whole)
	return x, true
}

// grow makes the file as long as needed, at least.
func (p *Page) grow(need int64) bool {
	if need > maxFile {
		return false
	}
	for _, length := range []int64{max(need, 2*p.length), need} { // the parent maps it anew each time
		if p.file.Truncate(length) == nil {
			p.length = length
			return true
		}
	}
	return false
}

// reserve makes the system find room for a part of a file now; without, an access would
// end the process when there is none.
func reserve(f *os.File, offset int64, size int) bool {
	_, err := io.Copy(io.NewOffsetWriter(f, offset), io.LimitReader(zeros{}, int64(size)))
	return err == nil
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Drop gives a region back: it is not found any more, and its memory becomes that of a
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
	t.extent.dirty = !p.memfd || !sameFile(p.file, p.length) || !release(p.file, t.extent.offset, len(t.extent.memory))
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
	view := p.view()
	if len(view) < listSize {
		return nil
	}
	var wanted [maxName]byte
	copy(wanted[:], name)
	list := unsafe.Slice((*entry)(unsafe.Pointer(&view[0])), entries)
	for k := range list {
		e := &list[k]
		use := atomic.LoadUint64(&e.use)
		if use == 0 || !bytes.Equal(e.name[:], wanted[:]) {
			continue
		}
		offset, size := atomic.LoadUint64(&e.offset), atomic.LoadUint64(&e.size)
		switch {
		case atomic.LoadUint64(&e.use) != use: // it is just being changed
		case offset < uint64(listSize), offset%extentUnit != 0, size == 0, offset > uint64(len(view)), size > uint64(len(view))-offset:
		default:
			return view[offset : offset+size : offset+size]
		}
	}
	return nil
}

// view returns the file as it is now; what lies after its end must not be touched.
func (p *Page) view() []byte {
	if p.closed {
		return nil
	}
	info, err := p.file.Stat()
	if err != nil {
		return nil
	}
	length := info.Size()
	var last []byte
	if n := len(p.views); n > 0 {
		last = p.views[n-1]
	}
	switch {
	case length == int64(len(last)):
		return last
	case length < int64(len(last)), length < int64(listSize), length > maxFile:
		return nil
	}
	view, err := mapView(p.file, int(length))
	if err != nil {
		return nil
	}
	p.views = append(p.views, view)
	return view
}

// Close gives the page back in a parent: what Find has returned must not be used any more.
// In a child it does nothing, for who uses a region knows of no end.
func (p *Page) Close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.list != nil {
		return nil
	}
	p.closed = true
	for _, v := range p.views {
		unmap(v)
	}
	p.views = nil
	return p.file.Close()
}
