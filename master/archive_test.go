package master

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// contents has a value of every kind.
type contents struct {
	bounded int
	data    []byte
	list    []float64
	intList []int
	scalar  Scalar
	all     struct {
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
	}
}

func (c *contents) archive(a *Archive) {
	a.Section("single")
	a.Index(&c.bounded, 0, 9)
	a.Bytes(&c.data)
	a.Section("lists")
	a.FloatList(&c.list)
	a.IntList(&c.intList)
	a.All(&c.scalar, &c.all)
	a.Same("this", "the place")
}

func filled() *contents {
	c := &contents{bounded: 9, data: []byte{1, 2}, list: []float64{1, 2, 3}, intList: []int{4}, scalar: Scalar{Kind: String, Text: "s"}}
	all := &c.all
	all.n, all.small, all.word, all.x, all.z = math.MinInt, math.MinInt32, math.MaxUint64, math.Copysign(0, -1), complex(1, -2)
	all.on, all.text, all.floats, all.arrays = true, "µ\x00", []float64{math.Inf(1), 5e-324}, [2][1]int{{-1}, {7}}
	all.values = Values{Real: []float64{1.5}, Integer: []int32{math.MinInt32}, Boolean: []bool{true}, String: []string{"a", ""}}
	return c
}

func empty() *contents {
	c := &contents{}
	c.all.floats = make([]float64, 2)
	c.all.values = Values{Real: make([]float64, 1), Integer: make([]int32, 1), Boolean: make([]bool, 1), String: make([]string, 2)}
	return c
}

// Values are read as they were written, bit for bit, and an error names what does not fit.
func TestArchive(t *testing.T) {
	a := NewArchive()
	filled().archive(a)
	got, from := empty(), ReadArchive(a.Data())
	if got.archive(from); from.Finish() != nil || !reflect.DeepEqual(got, filled()) || !math.Signbit(got.all.x) {
		t.Fatalf("%v: %+v", from.Finish(), got)
	}
	nan, back := math.Float64frombits(0x7ff8000000001234), 0.0
	a = NewArchive()
	a.Float(&nan)
	if ReadArchive(a.Data()).Float(&back); math.Float64bits(back) != math.Float64bits(nan) {
		t.Errorf("NaN is %x", math.Float64bits(back))
	}
	ten := 10
	for want, write := range map[string]func(a *Archive){
		"it ends too early":                                func(a *Archive) { a.Section("single") },
		`it continues with "other", not "single"`:          func(a *Archive) { a.Section("other") },
		"(single): a value is of another kind":             func(a *Archive) { a.Section("single"); a.Float(&back) },
		"a number is 10; it must lie between 0 and 9":      func(a *Archive) { a.Section("single"); a.Int(&ten) },
		"(lists): there were 1 values, and this run has 2": func(a *Archive) { c := filled(); c.all.floats = c.all.floats[:1]; c.archive(a) },
		"there were 3 values, and this run has 2":          func(a *Archive) { c := filled(); c.all.values.String = make([]string, 3); c.archive(a) },
		"9 bytes are left over":                            func(a *Archive) { filled().archive(a); a.Bool(new(bool)) },
	} {
		a := NewArchive()
		write(a)
		from := ReadArchive(a.Data())
		empty().archive(from)
		if err := from.Finish(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want … %s", err, want)
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

// No data makes reading panic or take much memory.
func FuzzArchive(f *testing.F) {
	a := NewArchive()
	filled().archive(a)
	f.Add(a.Data())
	f.Add(a.Data()[:40])
	f.Fuzz(func(t *testing.T, data []byte) {
		c, from := empty(), ReadArchive(data)
		if c.archive(from); from.Finish() != nil {
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
