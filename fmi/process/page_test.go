package process_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/process"
)

// both returns the two ends of a page in this process.
func both(t *testing.T) (parent, child *process.Page) {
	t.Helper()
	parent, err := process.NewPage()
	must(t, err)
	t.Cleanup(func() { must(t, parent.Close()) })
	child, err = process.OpenPage(duplicate(t, parent.File()))
	must(t, err)
	return parent, child
}

func TestRegions(t *testing.T) {
	parent, child := both(t)
	if parent.Find("rows") != nil || child.Find("rows") != nil {
		t.Error("there is a region that nobody has made")
	}
	sizes := []int{1, 100, 4096, 64 << 10, 64<<10 + 1, 3 << 20}
	for k, size := range sizes {
		r := child.Region(fmt.Sprint("r", k), size)
		if len(r) != size || cap(r) != size || uintptr(unsafe.Pointer(&r[0]))%4096 != 0 || !zero(r) {
			t.Errorf("the region of %d bytes has %d of %d at %p, zero %v", size, len(r), cap(r), r, zero(r))
		}
		fill(r, byte(k+1))
	}
	for k, size := range sizes {
		for _, p := range []*process.Page{parent, child} {
			r := p.Find(fmt.Sprint("r", k))
			if len(r) != size || !filled(r, byte(k+1)) {
				t.Errorf("region %d of %d bytes is found with %d", k, size, len(r))
			}
		}
	}
	parent.Find("r1")[7] = 99 // both write
	if child.Find("r1")[7] != 99 {
		t.Error("the child does not see what the parent writes")
	}
	if r := child.Region("r1", 100); !zero(r) || parent.Find("r1")[7] != 99 {
		t.Error("a name in use was given to another region")
	}
	child.Drop("r1")
	child.Drop("r1")
	if parent.Find("r1") != nil {
		t.Error("a dropped region is found")
	}
	if r := child.Region("r1", 50); !zero(r) || len(parent.Find("r1")) != 50 {
		t.Error("the region after it is not a new one")
	}
}

// Dropped regions are reused, also by several goroutines: together these need more than a page has.
func TestRegionsAreUsedAgain(t *testing.T) {
	parent, child := both(t)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for k := range 500 {
				name, size := fmt.Sprint(g, ".", k%3), 1+137*(8*k+g)%300_000
				r := child.Region(name, size)
				if !zero(r) {
					t.Errorf("%s is not zero", name)
				}
				fill(r, byte(g+1))
				if f := parent.Find(name); len(f) != size || !filled(f, byte(g+1)) {
					t.Errorf("%s: %d bytes", name, len(f))
				}
				child.Drop(name)
			}
		})
	}
	wg.Wait()
}

// More regions than the list holds, and names that are too long, get ordinary memory.
func TestOrdinaryRegions(t *testing.T) {
	parent, child := both(t)
	for k := range 1100 {
		if r := child.Region(fmt.Sprint(k), 10); len(r) != 10 || !zero(r) {
			t.Fatal(k)
		}
	}
	if parent.Find("1000") == nil || parent.Find("1099") != nil {
		t.Error("it is not the first ones that are found")
	}
	long := string(make([]byte, 41))
	var none *process.Page
	for _, r := range [][]byte{child.Region(long, 10), child.Region("", 10), none.Region("a", 10), parent.Region("b", 10)} {
		if len(r) != 10 || !zero(r) || uintptr(unsafe.Pointer(&r[0]))%4096 != 0 {
			t.Errorf("%d bytes at %p", len(r), r)
		}
	}
	if parent.Find(long) != nil || none.Find("a") != nil || parent.Find("b") != nil {
		t.Error("ordinary memory is found")
	}
	none.Drop("a")
	child.Drop("of nobody")
	if len(none.Region("c", 0)) != 0 || none.Close() != nil {
		t.Error("nil page")
	}
}

// With any content of the list, Find returns accessible memory or nil.
func TestScribbledList(t *testing.T) {
	parent, child := both(t)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		child.Region(name, 70_000)
	}
	const listAt = 1 << 16
	list := make([]byte, 1<<16)
	_, err := parent.File().ReadAt(list, listAt)
	must(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	odd := []uint64{0, 1, 4095, 1 << 16, 1<<16 + 1, 1 << 17, 1 << 20, 1 << 40, 1 << 62, 1 << 63, 1<<64 - 1, 1<<64 - 1<<16}
	var sum byte
	for range 3000 {
		spoiled := bytes.Clone(list)
		for range 1 + random.IntN(4) {
			at := 8 * random.IntN(3*8)
			switch random.IntN(3) {
			case 0:
				binary.NativeEndian.PutUint64(spoiled[at:], odd[random.IntN(len(odd))])
			case 1:
				binary.NativeEndian.PutUint64(spoiled[at:], random.Uint64())
			default:
				spoiled[at+random.IntN(8)]++
			}
		}
		_, err = parent.File().WriteAt(spoiled, listAt)
		must(t, err)
		for _, name := range names {
			if r := parent.Find(name); r != nil {
				for k := 0; k < len(r); k += 1024 {
					sum += r[k]
				}
				sum += r[len(r)-1]
			}
		}
	}
	for _, fill := range []byte{0, 1, 0xff} {
		_, err = parent.File().WriteAt(bytes.Repeat([]byte{fill}, 1<<16), listAt)
		must(t, err)
		for _, name := range names {
			if parent.Find(name) != nil {
				t.Errorf("%s is found in a list of bytes %d", name, fill)
			}
		}
	}
	_ = sum
}

// After Close nothing is found, and no region is made.
func TestClose(t *testing.T) {
	parent, child := both(t)
	child.Region("a", 10)
	if err := child.Close(); err != nil || parent.Find("a") == nil {
		t.Errorf("closed by the child: %v", err)
	}
	if err := parent.Close(); err != nil || parent.Find("a") != nil {
		t.Errorf("closed: %v", err)
	}
}

func zero(b []byte) bool { return filled(b, 0) }

func filled(b []byte, with byte) bool {
	return bytes.Count(b, []byte{with}) == len(b)
}

func fill(b []byte, with byte) {
	for k := range b {
		b[k] = with
	}
}
