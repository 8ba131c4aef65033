package native

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
)

// compiled loads the library of testdata/calls.c.
var compiled = sync.OnceValues(func() (uintptr, error) {
	cc, err := csrc.Compiler()
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "macrostep-native-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir) // it stays loaded
	path := filepath.Join(dir, "calls"+LibrarySuffix)
	if err := csrc.Library(context.Background(), cc, "testdata", path, "calls.c", "-lpthread"); err != nil {
		return 0, err
	}
	h, _, err := OpenLibrary(path, 0)
	return h, err
})

// symbol returns the address of a function or variable of testdata/calls.c.
func symbol(t *testing.T, name string) uintptr {
	t.Helper()
	h, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	p := Symbol(h, name)
	if p == 0 {
		t.Fatalf("testdata/calls.c does not export %s", name)
	}
	return p
}

// batch returns a batch with n records.
func batch(t *testing.T, n int) (*Batch, []Record) {
	t.Helper()
	var mem Memory
	b := mem.Batch()
	recs, err := Slice[Record](&mem, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mem.Release)
	b.Recs, b.N = Address(recs), uintptr(n)
	return b, recs
}

// call calls a function of the library with integers and returns its status.
func call(t *testing.T, name string, args ...uintptr) int32 {
	t.Helper()
	b, recs := batch(t, 1)
	recs[0].Fn = symbol(t, name)
	copy(recs[0].Int[:], args)
	Run(b)
	return recs[0].Status()
}

// Calls with many and few arguments in one batch arrive in order, each with its own arguments.
func TestArguments(t *testing.T) {
	words := func(v ...uint64) []uint64 { return append([]uint64{uint64(len(v))}, v...) }
	high := uint64(1) << 40 // more than 32 bits
	distinct := func(n int) (v []uint64) {
		for k := range n {
			v = append(v, high*uint64(n)+uint64(k)+1)
		}
		return v
	}
	real := math.Float64bits
	var mem Memory
	defer mem.Release()
	last, err := Slice[float64](&mem, 1)
	if err != nil {
		t.Fatal(err)
	}
	flags, err := Slice[uint8](&mem, 3)
	if err != nil {
		t.Fatal(err)
	}
	bools := []uint64{high, high + 1, high + 2, 1, 0, 1, 1, high + 3, high + 4, high + 5, high + 6, high + 7}
	calls := []struct {
		name  string
		sig   uintptr
		ints  []uint64
		float [3]float64
		want  []uint64
	}{
		{"ints12", SigLong, distinct(12), [3]float64{}, words(distinct(12)...)},
		{"ints7", SigInts, distinct(7), [3]float64{}, words(distinct(7)...)},
		{"do_step", SigIFFI, []uint64{high, 1, uint64(Address(flags)), uint64(Address(flags[1:])), uint64(Address(flags[2:])),
			uint64(Address(last))}, [3]float64{0.25, 0.5}, words(high, real(0.25), real(0.5), 1)},
		{"ints9", SigLong, distinct(9), [3]float64{}, words(distinct(9)...)},
		{"initialize", SigIIFFIF, []uint64{high, 1, 0}, [3]float64{1e-5, -1, 12.5},
			words(high, 1, real(1e-5), real(-1), 0, real(12.5))},
		{"", SigInts, nil, [3]float64{}, nil}, // a time stamp
		{"ints8", SigLong, distinct(8), [3]float64{}, words(distinct(8)...)},
		{"instantiate", SigLong, bools, [3]float64{}, words(bools...)},
		{"ints7", SigInts, distinct(7), [3]float64{}, words(distinct(7)...)},
	}
	for path, run := range map[string]func(*Batch){"Run": Run, "RunPortable": RunPortable} {
		b, recs := batch(t, len(calls))
		var want []uint64
		for k, c := range calls {
			r := &recs[k]
			if r.Sig, r.Float = c.sig, c.float; c.name != "" {
				r.Fn = symbol(t, c.name)
			}
			for i, v := range c.ints {
				r.Int[i] = uintptr(v)
			}
			want = append(want, c.want...)
		}
		call(t, "clear_notes")
		copy(flags, []uint8{0, 1, 0})
		last[0] = 0
		run(b)
		noted := *(*[256]uint64)(Pointer(symbol(t, "noted")))
		if got := noted[:len(want)]; !slices.Equal(got, want) || noted[len(want)] != 0 {
			t.Errorf("%s: the functions received %x, want %x", path, noted[:len(want)+1], want)
		}
		if !slices.Equal(flags, []uint8{1, 0, 1}) || last[0] != 0.75 {
			t.Errorf("%s: the step wrote %v, %g", path, flags, last[0])
		}
		if b.Done != b.N || b.Worst != 1 || recs[0].Status() != 0 || recs[6].Status() != 1 || recs[7].Ret != 0 {
			t.Errorf("%s: %d of %d calls, worst status %d; %d, %d, %d", path, b.Done, b.N, b.Worst, recs[0].Status(), recs[6].Status(), recs[7].Ret)
		}
	}
}
