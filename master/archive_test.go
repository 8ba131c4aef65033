package master

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

// parts is something of every kind.
type parts struct {
	n, bounded int
	word       uint64
	x          float64
	on         bool
	text       string
	data       []byte
	floats     []float64
	list       []float64
	ints       []int
	intList    []int
	bools      []bool
	values     Values
}

func (p *parts) archive(a *Archive) {
	a.Section("parts")
	a.Int(&p.n)
	a.Word(&p.word)
	a.Index(&p.bounded, 0, 9)
	a.Float(&p.x)
	a.Bool(&p.on)
	a.String(&p.text)
	a.Bytes(&p.data)
	a.Section("lists")
	a.Floats(p.floats)
	a.FloatList(&p.list)
	a.Ints(p.ints)
	a.IntList(&p.intList)
	a.Bools(p.bools)
	a.Values(&p.values)
	a.Count(len(p.floats), "numbers")
	a.Same("this", "the place")
}

func someParts() *parts {
	return &parts{
		n: math.MinInt, word: math.MaxUint64, bounded: 9, x: math.Copysign(0, -1), on: true, text: "µ\x00", data: []byte{1, 2},
		floats: []float64{math.Inf(1), 5e-324}, list: []float64{1, 2, 3}, ints: []int{-1, 7}, intList: []int{4}, bools: []bool{true, false, true},
		values: Values{Real: []float64{1.5}, Integer: []int32{math.MinInt32}, Boolean: []bool{true}, String: []string{"a", ""}},
	}
}

func emptyParts() *parts {
	return &parts{floats: make([]float64, 2), ints: make([]int, 2), bools: make([]bool, 3),
		values: Values{Real: make([]float64, 1), Integer: make([]int32, 1), Boolean: make([]bool, 1), String: make([]string, 2)}}
}

// What is written is read, bit for bit, and what does not fit is an error that
// says what.
func TestArchive(t *testing.T) {
	a := NewArchive()
	someParts().archive(a)
	got := emptyParts()
	from := ReadArchive(a.Data())
	if got.archive(from); from.Finish() != nil || !reflect.DeepEqual(got, someParts()) || !math.Signbit(got.x) {
		t.Fatalf("%v: %+v", from.Finish(), got)
	}
	// NaN keeps its payload.
	nan := math.Float64frombits(0x7ff8000000001234)
	a = NewArchive()
	a.Float(&nan)
	var back float64
	ReadArchive(a.Data()).Float(&back)
	if math.Float64bits(back) != math.Float64bits(nan) {
		t.Errorf("NaN is %x", math.Float64bits(back))
	}

	for want, write := range map[string]func(a *Archive){
		"it ends too early":                   func(a *Archive) { a.Section("parts") },
		`here stands "other", not "parts"`:    func(a *Archive) { a.Section("other") },
		"(parts): a value is of another kind": func(a *Archive) { a.Section("parts"); v := 1.; a.Float(&v) },
		"a number is 10; it lies between 0 and 9": func(a *Archive) {
			p := someParts()
			p.bounded = 10
			a.Section("parts")
			a.Int(&p.n)
			a.Word(&p.word)
			a.Int(&p.bounded)
		},
		"(lists): there are 1 values where this run has 2": func(a *Archive) { p := someParts(); p.floats = p.floats[:1]; p.archive(a) },
		"there were 3 texts, and this run has 2":           func(a *Archive) { p := someParts(); p.values.String = make([]string, 3); p.archive(a) },
		"9 bytes are left over":                            func(a *Archive) { someParts().archive(a); a.Bool(new(bool)) },
	} {
		a := NewArchive()
		write(a)
		from := ReadArchive(a.Data())
		got := emptyParts()
		got.archive(from)
		if err := from.Finish(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want … %s", err, want)
		}
	}
	a = NewArchive()
	a.Same("here", "the place")
	from = ReadArchive(a.Data())
	if from.Same("there", "the place"); from.Err() == nil || !strings.Contains(from.Err().Error(), "the place was here, and is there in this run") {
		t.Error(from.Err())
	}
}

// No data makes reading panic or take much memory.
func FuzzArchive(f *testing.F) {
	a := NewArchive()
	someParts().archive(a)
	f.Add(a.Data())
	f.Add(a.Data()[:40])
	f.Fuzz(func(t *testing.T, data []byte) {
		p := emptyParts()
		from := ReadArchive(data)
		p.archive(from)
		if from.Finish() != nil {
			return
		}
		again := NewArchive()
		p.archive(again)
		if string(again.Data()) != string(data) {
			// Truth values have more than one form.
			p2 := emptyParts()
			from = ReadArchive(again.Data())
			if p2.archive(from); from.Finish() != nil {
				t.Errorf("what was read cannot be written and read: %v", from.Finish())
			}
		}
	})
}
