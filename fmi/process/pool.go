package process

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"unsafe"
)

// Pool has values in regions name.0, name.1 … of the page that this process shares. The numbers of values begin with 1.
// Any goroutine may use it.
type Pool[T any] struct {
	Name string
	Many int // values in a region

	mu   sync.Mutex
	all  []*T
	free []int // numbers; the last is the next
}

// Take returns a free value, as its last user has left it.
func (p *Pool[T]) Take() (number int, value *T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.free) == 0 {
		all := Values[T](Shared().Region(p.region(len(p.all)/p.Many), p.Many*int(unsafe.Sizeof(*value))), p.Many)
		for k := range all {
			p.all = append(p.all, &all[k])
			p.free = append(p.free, len(p.all))
		}
		slices.Reverse(p.free) // use the first one first
	}
	last := len(p.free) - 1
	number, p.free = p.free[last], p.free[:last]
	return number, p.all[number-1]
}

// At returns a taken value.
func (p *Pool[T]) At(number int) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[number-1]
}

// Free frees values.
func (p *Pool[T]) Free(numbers ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, numbers...)
}

// In returns the values of the same pool of the process that shares a page, also free ones.
func (p *Pool[T]) In(page *Page) iter.Seq2[int, *T] {
	return func(yield func(int, *T) bool) {
		for k := 0; ; k++ {
			all := Values[T](page.Find(p.region(k)), p.Many)
			for j := range all {
				if !yield(k*p.Many+j+1, &all[j]) {
					return
				}
			}
			if all == nil {
				return
			}
		}
	}
}

func (p *Pool[T]) region(k int) string { return fmt.Sprint(p.Name, ".", k) }

// Values returns the values in a region, at most so many; nil if there is no region.
func Values[T any](region []byte, most int) []T {
	var one T
	n := min(len(region)/int(unsafe.Sizeof(one)), most)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(region))), n)
}
