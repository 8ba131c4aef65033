package master

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// contents has a value of every kind.
type contents struct {
	data   []byte
	list   []float64
	floats []float64
	all    struct {
		n      int
		small  int32
		word   uint64
		x      float64
		z      complex128
		on     bool
		text   string
		floats []float64
		arrays [2][1]int
		values Values
		lists  [][]string
		any    []struct{ x []float64 }
	}
}

func (c *contents) archive(a *Archive) {
	a.Section("single")
	a.All(&c.data)
	a.Section("lists")
	a.All(&c.list, c.floats, &c.all)
	a.Same("this", "the place")
}

func filled() *contents {
	c := &contents{data: []byte{1, 2}, list: []float64{1, 2, 3}, floats: []float64{math.Inf(1), 5e-324}}
	all := &c.all
	all.n, all.small, all.word, all.x, all.z = math.MinInt, math.MinInt32, math.MaxUint64, math.Copysign(0, -1), complex(1, -2)
	all.on, all.text, all.floats, all.arrays = true, "µ\x00", []float64{3, math.Pi}, [2][1]int{{-1}, {7}}
	all.values = Values{Real: []float64{1.5}, Integer: []int64{math.MinInt32}, Boolean: []bool{true}, String: []string{"a", ""}}
	all.lists, all.any = [][]string{{"a"}, {"b", "c"}}, []struct{ x []float64 }{{[]float64{1}}, {[]float64{2, 3}}}
	return c
}

// empty has the fixed slices of filled.
func empty() *contents {
	c := &contents{list: []float64{9}, floats: make([]float64, 2)}
	c.all.floats = make([]float64, 2)
	c.all.values = Values{Real: make([]float64, 1), Integer: make([]int64, 1), Boolean: make([]bool, 1), String: make([]string, 2)}
	return c
}

// Values are read as they were written, bit for bit, and an error names what does not fit.
func TestArchive(t *testing.T) {
	a := NewArchive()
	filled().archive(a)
	got, from := empty(), ReadArchive(a.Data())
	floats := got.all.floats
	if got.archive(from); from.Finish() != nil || !reflect.DeepEqual(got, filled()) || !math.Signbit(got.all.x) {
		t.Fatalf("%v: %+v", from.Finish(), got)
	}
	if floats[1] != math.Pi {
		t.Error("a slice of fixed length was replaced")
	}
	nan, back := math.Float64frombits(0x7ff8000000001234), 0.0
	a = NewArchive()
	a.All(&nan)
	if ReadArchive(a.Data()).All(&back); math.Float64bits(back) != math.Float64bits(nan) {
		t.Errorf("NaN is %x", math.Float64bits(back))
	}
	for want, write := range map[string]func(a *Archive){
		"it ends too early": func(a *Archive) { a.Section("single") },
		"the next part was other, but is single in this run": func(a *Archive) { a.Section("other") },
		"(single): its values have other types":              func(a *Archive) { a.Section("single"); a.All(&back) },
		"(lists): there were 1 values, and this run has 2":   func(a *Archive) { c := filled(); c.all.floats = c.all.floats[:1]; c.archive(a) },
		"(lists): there were 0 values, and this run has 2":   func(a *Archive) { c := filled(); c.floats = nil; c.archive(a) },
		"there were 3 values, and this run has 2":            func(a *Archive) { c := filled(); c.all.values.String = make([]string, 3); c.archive(a) },
		"16 bytes are left over":                             func(a *Archive) { filled().archive(a); a.All(new(bool)) },
		"an archive cannot carry a *float64":                 func(a *Archive) { a.Section("single"); p := &back; a.All(&p) },
		"an archive cannot carry a map[string]int":           func(a *Archive) { a.All(&map[string]int{}) },
	} {
		a := NewArchive()
		write(a)
		from := ReadArchive(a.Data())
		empty().archive(from)
		if err := from.Finish(); a.Err() != nil && !strings.Contains(a.Err().Error(), want) || a.Err() == nil && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, %v; want … %s", a.Err(), err, want)
		}
	}
	a = NewArchive()
	a.Same("there", "the place")
	from = ReadArchive(a.Data())
	from.Same("here", "the place")
	if err := from.Err(); err == nil || !strings.Contains(err.Error(), "the place was there, but is here in this run") {
		t.Error(err)
	}
}

// linked and tree contain themselves.
type (
	linked struct{ Next *linked }
	tree   struct {
		n    int
		kids []tree
	}
)

// A type that contains itself is carried, or refused, and ends neither run nor program.
func TestArchiveRecursion(t *testing.T) {
	a := NewArchive()
	if a.All(&linked{}); a.Err() == nil || !strings.Contains(a.Err().Error(), "cannot carry a *master.linked") {
		t.Error(a.Err())
	}
	want, got := tree{1, []tree{{2, nil}, {3, []tree{{4, nil}}}}}, tree{}
	a = NewArchive()
	a.All(&want)
	if ReadArchive(a.Data()).All(&got); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

// A field that is added, removed, renamed or moved makes another type.
func TestArchiveTypes(t *testing.T) {
	type state struct {
		A, B float64
		List []struct{ On bool }
	}
	a := NewArchive()
	a.All(&state{})
	for i, other := range []any{
		&struct{ A, B float64 }{}, &struct {
			B, A float64
			List []struct{ On bool }
		}{}, &struct {
			A, B float64
			List []struct{ Off bool }
		}{}, &struct {
			A float64
			B int
			L []struct{ On bool }
		}{},
	} {
		from := ReadArchive(a.Data())
		if from.All(other); from.Err() == nil || !strings.Contains(from.Err().Error(), "its values have other types") {
			t.Errorf("%d: %v", i, from.Err())
		}
	}
}

// Bytes of another format, and damaged ones, are refused with the reason.
func TestArchiveRefused(t *testing.T) {
	a := NewArchive()
	filled().archive(a)
	good := a.Data()
	refused := func(data []byte, says string) {
		t.Helper()
		if err := ReadArchive(data).Err(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want … %s", err, says)
		}
	}
	refused(nil, "another format")
	refused([]byte("\x01\x0a\x00\x00\x00\x00\x00\x00\x00recorders"), "resume it with the version of macrostep that wrote it") // the first format
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if i < len(archiveMark) {
			refused(bad, "another format")
		} else {
			refused(bad, "its checksum is wrong")
			refused(good[:i], "its checksum is wrong")
		}
	}
}

// sealed returns an archive with these bytes and their checksum.
func sealed(data []byte) *Archive {
	b := append([]byte(archiveMark), data...)
	return ReadArchive(binary.LittleEndian.AppendUint32(b, crc32.Checksum(data, castagnoli)))
}

// No data makes reading panic or take much memory, even with a valid checksum.
func FuzzArchive(f *testing.F) {
	a := NewArchive()
	filled().archive(a)
	f.Add(a.data)
	f.Add(a.data[:40])
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c, from := empty(), sealed(data)
		c.archive(from)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20+100*uint64(len(data)) {
			t.Errorf("%d bytes are allocated for %d", took, len(data))
		}
		if from.Finish() != nil {
			return
		}
		again := NewArchive()
		c.archive(again)
		from = ReadArchive(again.Data())
		if empty().archive(from); from.Finish() != nil {
			t.Errorf("what was read cannot be written and read: %v", from.Finish())
		}
	})
}
