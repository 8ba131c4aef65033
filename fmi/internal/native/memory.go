package native

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// libc holds the C library's allocator.
var libc = sync.OnceValues(func() (l struct{ calloc, free uintptr }, err error) {
	if l.calloc, err = libcSymbol("calloc"); err != nil {
		return l, err
	}
	l.free, err = libcSymbol("free")
	return l, err
})

// Allocator returns the allocator of the C library. FMUs get its functions as memory
// callbacks: a pair of calls takes 0.04 µs, Go callbacks would take 1.25 µs.
func Allocator() (calloc, free uintptr, err error) {
	l, err := libc()
	return l.calloc, l.free, err
}

// Alloc returns zeroed C memory of at least one byte.
func Alloc(size uintptr) (unsafe.Pointer, error) {
	l, err := libc()
	if err != nil {
		return nil, err
	}
	p := Pointer(CallInts(l.calloc, 1, max(size, 1)))
	if p == nil {
		return nil, fmt.Errorf("out of memory: the C library refused %d bytes", size)
	}
	return p, nil
}

func cfree(p unsafe.Pointer) {
	if l, err := libc(); err == nil && p != nil {
		CallInts(l.free, uintptr(p))
	}
}

// Memory owns C memory until Release. C must not access Go memory, which the garbage
// collector manages.
type Memory struct {
	blocks []unsafe.Pointer
	cells  []int
	// The rest of the block for small pieces, which are adjacent since they are used
	// together.
	free []byte
}

const (
	smallBlock = 1024
	smallPiece = 128
)

// Alloc returns zeroed memory of at least one byte.
func (m *Memory) Alloc(size uintptr) (unsafe.Pointer, error) {
	if size > smallPiece {
		return m.block(size)
	}
	const word = 8
	size = (max(size, 1) + word - 1) &^ (word - 1)
	if size > uintptr(len(m.free)) {
		p, err := m.block(smallBlock)
		if err != nil {
			return nil, err
		}
		m.free = unsafe.Slice((*byte)(p), smallBlock)
	}
	p := unsafe.Pointer(&m.free[0])
	m.free = m.free[size:]
	return p, nil
}

// block returns a separate block.
func (m *Memory) block(size uintptr) (unsafe.Pointer, error) {
	p, err := Alloc(size)
	if err != nil {
		return nil, err
	}
	m.blocks = append(m.blocks, p)
	return p, nil
}

// Batch returns a batch that is valid until Release.
func (m *Memory) Batch() *Batch {
	k, c := newCell()
	m.cells = append(m.cells, k)
	b := c.batch()
	b.Time = math.NaN()
	return b
}

func (m *Memory) Release() {
	for _, k := range m.cells {
		atomic.StoreUint64(&cells.At(k).mark, 0)
	}
	cells.Free(m.cells...)
	m.cells = nil
	for _, p := range m.blocks {
		cfree(p)
	}
	m.blocks, m.free = nil, nil
}

// Slice returns n zeroed elements of C memory, valid until Release of m.
func Slice[T any](m *Memory, n int) ([]T, error) {
	var t T
	p, err := m.Alloc(uintptr(n) * unsafe.Sizeof(t))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(p), n), nil
}

// AddressOf returns the address of a value in C memory.
func AddressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// Address returns the address of a slice in C memory.
func Address[T any](s []T) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

// Buffer is C memory that grows on demand and is reused.
type Buffer struct {
	p    unsafe.Pointer
	size uintptr
}

// reserve provides at least size bytes; the old content is lost.
func (b *Buffer) reserve(size uintptr) error {
	if size <= b.size {
		return nil
	}
	size = (size + 63) &^ 63
	p, err := Alloc(size)
	if err != nil {
		return err
	}
	cfree(b.p)
	b.p, b.size = p, size
	return nil
}

func (b *Buffer) Release() {
	cfree(b.p)
	*b = Buffer{}
}

// BufferSlice returns n elements of the buffer, not cleared.
func BufferSlice[T any](b *Buffer, n int) ([]T, error) {
	var t T
	if err := b.reserve(uintptr(n) * unsafe.Sizeof(t)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(b.p), n), nil
}

// Scratch is C memory that is released all at once and reused.
type Scratch struct {
	mem   Memory // for pieces that do not fit into block
	block Buffer
	used  uintptr
}

const scratchBlock = 1 << 16

// Reset releases everything.
func (s *Scratch) Reset() {
	s.used = 0
	s.mem.Release()
}

// Alloc returns zeroed memory.
func (s *Scratch) Alloc(size uintptr) (uintptr, error) {
	if s.block.p == nil {
		if err := s.block.reserve(scratchBlock); err != nil {
			return 0, err
		}
	}
	size = (size + 15) &^ 15
	if size > s.block.size-s.used {
		p, err := s.mem.Alloc(size)
		return uintptr(p), err
	}
	p := uintptr(s.block.p) + s.used
	s.used += size
	clear(unsafe.Slice((*byte)(Pointer(p)), size))
	return p, nil
}

// MaxString bounds the length of C strings, which may lack their end.
const MaxString = 1 << 26

// String copies at most limit bytes of a C string; a null pointer yields "".
func String(p uintptr, limit int) string { return string(Bytes(p, limit)) }

// Bytes returns at most limit bytes of a C string without copying. It reads byte by byte,
// because memory after the end may not be mapped.
func Bytes(p uintptr, limit int) []byte {
	if p == 0 {
		return nil
	}
	n := 0
	for n < limit && *(*byte)(Pointer(p + uintptr(n))) != 0 {
		n++
	}
	return unsafe.Slice((*byte)(Pointer(p)), n)
}

// Copy returns a copy of n bytes at p, "" if p is null.
func Copy(p, n uintptr) string {
	if p == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(Pointer(p)), n))
}
