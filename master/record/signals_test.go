package record

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

func table(t *testing.T, text string) *Signals {
	t.Helper()
	s, err := parseSignals(t.Context(), []byte(text), "in.csv")
	must(t, err)
	return s
}

func TestAt(t *testing.T) {
	s := table(t, "time,a.x,\"a.y, z\"\n0,1,10\n1,2,10\n\n1,5,10\r\n3,-1,10\n")
	x, ok := s.Column("a.x")
	if !ok {
		t.Fatal("no column a.x")
	}
	for at, want := range map[float64]float64{-1: 1, 0: 1, 0.25: 1.25, 1: 5, 2: 2, 3: -1, 99: -1, math.Inf(1): -1} {
		if got := s.At(x, at); got != want {
			t.Errorf("at %g: %g, want %g", at, got, want)
		}
	}
	if y, ok := s.Column("a.y, z"); !ok || s.At(y, 2.71) != 10 {
		t.Error("a constant column must be constant to the bit")
	}
	if _, ok := s.Column("a.w"); ok {
		t.Error("found what is not there")
	}
	// Between rows of extreme values nothing overflows.
	s = table(t, "time,x\n0,-1.7e308\n1,1.7e308\n")
	if got := s.At(0, 0.5); got != 0 {
		t.Errorf("%g", got)
	}
}

func TestBindInputs(t *testing.T) {
	sys := testSystem(t)
	sys.Infos[0].In[1].Discrete = true
	s := table(t, "time,all.free,all.x[1],all.on,all.mode,all.name,bare.w\n"+
		"0,0,1,false,1,1.0,5\n1,10,2,TRUE,2,\"b,c\",6\n2,20,3,0,-3,x,7\n")
	in, err := BindInputs(s, sys)
	must(t, err)
	if !slices.Equal(in.Inputs(), []int{0, 1, 4}) {
		t.Fatalf("drives %v", in.Inputs())
	}
	v := master.NewValues(sys.Infos[0].DiscreteIn)
	v.Integer[1] = 77 // gear is not driven
	// Times jump back and forth: the memory of the last row must not matter.
	for _, tt := range []struct {
		at, free, held, w float64
		on                bool
		mode              int64
		name              string
	}{
		{0, 0, 1, 5, false, 1, "1.0"},
		{0.5, 5, 1, 5.5, false, 1, "1.0"},
		{1, 10, 2, 6, true, 2, "b,c"},
		{1.75, 17.5, 2, 6.75, true, 2, "b,c"},
		{5, 20, 3, 7, false, -3, "x"},
		{0.5, 5, 1, 5.5, false, 1, "1.0"},
		{-1, 0, 1, 5, false, 1, "1.0"},
		{2, 20, 3, 7, false, -3, "x"},
	} {
		in.Discrete(0, tt.at, &v)
		in.Discrete(1, tt.at, nil) // nothing is driven there
		if in.Real(0, tt.at) != tt.free || in.Real(1, tt.at) != tt.held || in.Real(4, tt.at) != tt.w {
			t.Errorf("at %g: %g %g %g", tt.at, in.Real(0, tt.at), in.Real(1, tt.at), in.Real(4, tt.at))
		}
		if v.Boolean[0] != tt.on || v.Integer[0] != tt.mode || v.Integer[1] != 77 || v.String[0] != tt.name {
			t.Errorf("at %g: %+v", tt.at, v)
		}
	}
	if n := testing.AllocsPerRun(100, func() { in.Real(0, 0.3); in.Discrete(0, 1.3, &v) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// The course of an input over a step: value at its start, value at its end before a jump there, mean.
func TestOver(t *testing.T) {
	in, err := BindInputs(table(t, "time,all.free\n0,0\n1,10\n2,20\n2,50\n3,50\n5,10\n"), testSystem(t))
	must(t, err)
	for _, test := range []struct{ t, H, start, end, mean float64 }{
		{0, 0.5, 0, 5, 2.5},
		{0.5, 1, 5, 15, 10}, // one line through two rows
		{-1, 2, 0, 10, 2.5},
		{1, 1, 10, 20, 15},                    // up to a jump
		{1, 0x1.0000000000001p0, 10, 20, 15},  // which rounding lies beyond
		{2, 1, 50, 50, 50},                    // from the jump on
		{0x1.fffffffffffffp0, 1, 50, 50, 50},  // which rounding lies beyond
		{1.5, 1, 15, 20, 18.75},               // a jump within the step acts at its end
		{2.5, 1.5, 50, 30, (25 + 40.0) / 1.5}, // a bend
		{4, 2, 30, 10, 15},
		{6, 1, 10, 10, 10},
	} {
		start, end, mean := in.Over(in.Inputs()[0], test.t, test.H)
		if math.Abs(start-test.start)+math.Abs(end-test.end)+math.Abs(mean-test.mean) > 1e-12 {
			t.Errorf("from %g by %g: %g, %g, %g; want %g, %g, %g", test.t, test.H, start, end, mean, test.start, test.end, test.mean)
		}
	}
	if n := testing.AllocsPerRun(100, func() { in.Over(in.Inputs()[0], 0.5, 4) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// A run learns where its inputs jump, and what it does not see of the table.
func TestJumps(t *testing.T) {
	sys := testSystem(t)
	in, err := BindInputs(table(t, "time,all.free,all.on\n1,0,0\n1.2,0,1\n1.21,0,0\n2,0,0\n2,5,0\n3,5,0\n"), sys)
	must(t, err)
	for at, want := range map[float64]float64{0: 1.2, 1.2: 1.21, 1.21: 2, 0x1.fffffffffffffp0: math.Inf(1), 1.99: 2, 2: math.Inf(1)} {
		if got := in.NextEvent(at); got != want {
			t.Errorf("after %g: %g, want %g", at, got, want)
		}
	}
	for _, test := range []struct {
		start, stop, step float64
		want              []string
	}{
		{1, 3, 0.01, nil},
		{1, 3, 0, nil},
		{1, 2.5, 0.5, []string{"all.on changes more than once within a step of 0.5 s, first before t = 1.21 s (changes like this: 1)"}},
		{0, 4, 0.01, []string{"begins at 1 s, the run at 0 s", "ends at 3 s, the run later"}},
	} {
		var steps []float64
		if test.step > 0 {
			steps = slices.Repeat([]float64{test.step}, len(sys.Infos))
		}
		got := in.Warnings(test.start, test.stop, steps)
		if len(got) != len(test.want) {
			t.Errorf("%+v: %q", test, got)
			continue
		}
		for i, want := range test.want {
			if !strings.Contains(got[i], want) {
				t.Errorf("%q, want %q", got[i], want)
			}
		}
	}
}

// Bends are rows between which a column is on lines. Those that are large are missed by long steps.
func TestBends(t *testing.T) {
	var text strings.Builder
	text.WriteString("time,all.free,bare.w\n")
	for k := range 1001 {
		at := float64(k) / 1000
		fmt.Fprintf(&text, "%g,%.17g,%g\n", at, math.Sin(2*math.Pi*5*at), max(0, min(0.1, at-0.4)))
	}
	s := table(t, text.String())
	sys := testSystem(t)
	in, err := BindInputs(s, sys)
	must(t, err)
	if rows := s.bends(1, fine); !slices.Equal(rows, []int{400, 500}) {
		t.Errorf("a ramp bends at rows %v", rows)
	}
	rows := append(append([]int{0}, s.bends(0, fine)...), 1000)
	for i := range rows[1:] {
		a, b := rows[i], rows[i+1]
		for r := a; r <= b; r++ {
			share := float64(r-a) / float64(b-a)
			if d := math.Abs(s.columns[0][r] - s.columns[0][a]*(1-share) - s.columns[0][b]*share); d > 2*2*fine {
				t.Fatalf("row %d is %g off the line from row %d to %d", r, d, a, b)
			}
		}
	}
	if len(rows) > 400 || len(rows) < 50 {
		t.Errorf("a sine bends at %d rows", len(rows))
	}
	for step, want := range map[float64]bool{0.2: true, 0.01: false} {
		if got := in.Warnings(0, 1, slices.Repeat([]float64{step}, len(sys.Infos))); (len(got) > 0) != want {
			t.Errorf("steps of %g s: %q", step, got)
		}
	}
}

func FuzzSignals(f *testing.F) {
	for _, seed := range []string{
		"time,all.free\n0,1\n1,2\n", "time,\"all.x[1]\",all.on\n0,1,true\n0,NaN,false\n", "\xef\xbb\xbftime;a\n",
		"time,all.name,all.mode\n0,\"a\nb\",3\n5,x,-2147483648\n", "time\n0\n", "time,a\n1e308,1\n",
	} {
		f.Add([]byte(seed), 0.5)
	}
	f.Fuzz(func(t *testing.T, data []byte, at float64) {
		s, err := parseSignals(t.Context(), data, "in.csv")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "in.csv:") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if !slices.IsSorted(s.Times) {
			t.Errorf("times %v", s.Times)
		}
		for col := range s.Names {
			s.At(col, at)
			if cells := s.texts[col]; len(cells) != len(s.Times) {
				t.Errorf("%d cells for %d rows", len(cells), len(s.Times))
			}
		}
		sys := testSystem(t)
		in, err := BindInputs(s, sys)
		if err != nil {
			return
		}
		v := master.NewValues(sys.Infos[0].DiscreteIn)
		in.Discrete(0, at, &v)
		for _, u := range in.Inputs() {
			if x := in.Real(u, at); math.IsNaN(x) && !math.IsNaN(at) {
				t.Errorf("input %d at %g is %g", u, at, x)
			}
		}
	})
}

// refused checks that an error contains a text.
func refused(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%q: %v, want %s", what, err, want)
	}
}

// Errors name file, line, column and remedy.
func TestSignalsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "in.csv: the file is empty; its first line must name the columns, as in time,component.variable",
		"a,b\n":                      `in.csv:1: no column is called time or t; the columns are "a", "b"`,
		"PK\x03\x04":                 "in.csv is a zip archive or spreadsheet",
		"MATLAB 7.3 MAT-file, x":     "in.csv is a MAT of version 7.3, which is not read",
		"time,a.x\n0,\x00\n":         "in.csv is neither text, Parquet nor a MAT",
		"time,\n0,1\n":               "in.csv:2: this row has 2 fields, and the header names 1",
		"time,a.x,a.x\n0,1,1\n":      `in.csv: there are two columns "a.x"; remove one`,
		"time,a.x\n":                 "in.csv: there is no row below the header; give at least one",
		"time,a.x\n0,1\n1,5,2\n":     "in.csv:3: this row has 3 fields, and the header names 2; give every row as many",
		"time,a.x\n0,1\n\nnow,1\n":   `in.csv:4: time: "now" is not a finite number`,
		"time,a.x\nNaN,1\n":          `in.csv:2: time: "NaN" is not a finite number`,
		"time,a.x\n1e999,1\n":        `in.csv:2: time: "1e999" is not a finite number`,
		"time,a.x\n0x10,1\n":         `in.csv:2: time: "0x10" is not a finite number`,
		"time,a.x\n2,1\n1,1\n":       "in.csv:3: time 1 is before the time 2 of the row above; sort the rows by time",
		"time,a.x\n0,\"1\n":          `in.csv:2: extraneous or missing " in quoted-field; close the quotes`,
		"\xef\xbb\xbftme,a.x\n0,1\n": `in.csv:1: no column is called time or t; the columns are "tme", "a.x"`,
	} {
		_, err := parseSignals(t.Context(), []byte(text), "in.csv")
		refused(t, text, err, want)
	}
	for text, want := range map[string]string{
		"time,all.fre\n0,1\n":                             `in.csv:1: no input is called "all.fre"; did you mean "all.free"?`,
		"time,all.y\n0,1\n":                               `no input is called "all.y"; it is an output, remove the column`,
		"time,sys.inner.u\n0,1\n":                         "in.csv:1: sys.inner.u is connected; only free inputs can be given, remove the column",
		"time,all.gear\n0,1\n":                            "all.gear is connected",
		"time,all.free\n0,1\n1,\n":                        `in.csv:3: all.free: "" is not a finite number`,
		"time,all.free\n0,NaN\n":                          `in.csv:2: all.free: "NaN" is not a finite number`,
		"time,all.mode\n0,1.5\n":                          `in.csv:2: all.mode: "1.5" is not a whole number from -9223372036854775808 to 9223372036854775807; correct the cell`,
		"time,all.mode\n0,1e19\n":                         `"1e19" is not a whole number from`,
		"time,all.mode\n0,9.5e15\n1,9007199254740993.5\n": `in.csv:3: all.mode: "9007199254740993.5" is not a whole number`,
		"time,all.on\n0,1\n1,yes\n":                       `in.csv:3: all.on: "yes" is not true or false`,
	} {
		_, err := BindInputs(table(t, text), testSystem(t))
		refused(t, text, err, want)
	}
	// The first twenty errors are reported together.
	header := "time"
	for i := range 30 {
		header += fmt.Sprintf(",all.x%d", i)
	}
	_, err := BindInputs(table(t, header+"\n0"+strings.Repeat(",0", 30)+"\n"), testSystem(t))
	refused(t, "30 errors", err, `no input is called "all.x19"`)
	if n := strings.Count(err.Error(), "\n") + 1; n != mostErrors {
		t.Errorf("%d errors", n)
	}
	head := "time,first.y1,first.y2,second.y1,other\n"
	for text, want := range map[string]string{
		"time,first.y1,first.y2,second.y\n-2,1,1,1\n-1,1,1,1\n": `there is no column "second.y1"; did you mean "second.y"?`,
		head + "-1,1,1,1,1\n0,1,1,1,1\n":                        "in.csv: 1 rows lie before the start time 0 s; the extrapolation order needs 2",
		head + "-2,1,1,1,1\n-1,1,1,1,1\n-1,1,1,1,1\n":           "in.csv:4: the row above has the time -1, too; the times of a history must be strictly increasing",
		head + "-2,1,NaN,x,1\n-1,1,1,1,1\n":                     "in.csv:2: first.y2: \"NaN\" is not a finite number; correct the cell\nin.csv:2: second.y1: \"x\" is not",
	} {
		_, err := BindHistory(table(t, text), oscillator(t), 0, 2)
		refused(t, text, err, want)
	}
	// Unused cells are not checked: other columns, rows from the start on.
	past, err := BindHistory(table(t, head+"-2,1,2,3,\n-1,4,5,6,text\n0,NaN,x,,\n0,1,1,1,1\n"), oscillator(t), 0, 2)
	if err != nil || len(past) != 2 || past[0].T != -2 || past[1].T != -1 || !slices.Equal(past[1].Y, []float64{4, 5, 6}) {
		t.Errorf("%v: %v", past, err)
	}
}

// If a name can be split in two ways, the longer component wins.
func TestLongestComponent(t *testing.T) {
	outer := &still{master.Info{Name: "a", In: ports(master.Real, "b.c")}}
	inner := &still{master.Info{Name: "a.b", In: ports(master.Real, "c")}}
	sys, err := master.NewSystem([]master.Subsystem{outer, inner}, nil)
	must(t, err)
	in, err := BindInputs(table(t, "time,a.b.c\n0,1\n"), sys)
	if err != nil || !slices.Equal(in.Inputs(), []int{1}) {
		t.Errorf("%v %v", in, err)
	}
}

// Columns are derived from others with a gain, with a map, or unchanged; texts stay.
func TestExpand(t *testing.T) {
	s := table(t, "time,u,flag,mode,all.name\n0,1,false,1,a\n1,2,TRUE,2,b\n")
	must(t, s.Expand(map[string][]Derived{
		"u":    {{Name: "all.free", Gain: 1000, Offset: 1}, {Name: "bare.w", Gain: 1}},
		"flag": {{Name: "all.on", Gain: 1, Map: map[int64]int64{0: 1, 1: 0}}},
		"mode": {{Name: "all.mode", Gain: 1, Map: map[int64]int64{1: 7}}},
	}))
	if want := [][]float64{{1001, 2001}, {1, 2}, {1, 0}, {7, 2}}; !slices.EqualFunc(s.columns[:4], want, slices.Equal[[]float64]) {
		t.Errorf("columns %v, want %v", s.columns, want)
	}
	in, err := BindInputs(s, testSystem(t))
	must(t, err)
	v := master.NewValues(testSystem(t).Infos[0].DiscreteIn)
	if in.Discrete(0, 1, &v); in.Real(0, 0.5) != 1501 || v.Boolean[0] || v.Integer[0] != 2 || v.String[0] != "b" {
		t.Errorf("%g, %+v", in.Real(0, 0.5), v)
	}
	err = table(t, "time,u,all.free\n0,1,2\n").Expand(map[string][]Derived{"u": {{Name: "all.free", Gain: 1}}})
	refused(t, "two columns", err, `all.free is given twice, by the column "all.free"`)
}

// Cells of enumerations are names of items or their numbers.
func TestSignalItems(t *testing.T) {
	items := map[string]map[string]int64{"a.e": {"red": 1, "blue": 7, "3": 7}, "absent": {"x": 1}}
	s := table(t, "time,a.e,a.u\n0,red,1\n1, blue ,2\n2,7,3\n3,3,4\n")
	must(t, s.Items(items))
	if want := [][]float64{{1, 7, 7, 7}, {1, 2, 3, 4}}; !slices.EqualFunc(s.columns, want, slices.Equal[[]float64]) {
		t.Errorf("%v", s.columns)
	}
	for cell, want := range map[string]string{
		"green": `in.csv:3: a.e: "green" is neither the name nor the number of an item; the items are red (1), 3 (7), blue (7)`,
		"2":     `in.csv:3: a.e: "2" is neither`, "NaN": "neither",
	} {
		refused(t, cell, table(t, "time,a.e\n0,red\n1,"+cell+"\n").Items(items), want)
	}
}

// ReadSignals accepts a byte order mark, names a missing file, and ends with its context.
func TestReadSignals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in.csv")
	_, err := ReadSignals(t.Context(), path)
	refused(t, "a missing file", err, "in.csv")
	must(t, os.WriteFile(path, []byte("\xef\xbb\xbfTime,a\n0,1\n"), 0o600))
	if s, err := ReadSignals(t.Context(), path); err != nil || !slices.Equal(s.Names, []string{"a"}) {
		t.Errorf("a byte order mark: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := ReadSignals(ctx, path); !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := parseSignals(ctx, []byte("time,a\n0,1\n"), path); !errors.Is(err, why) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// Tables in all formats are the same signals, and errors name rows.
func TestSignalsOfEveryFormat(t *testing.T) {
	sys := testSystem(t)
	for _, f := range formats {
		path := filepath.Join(t.TempDir(), "r")
		c := begun(t, sys, path, Options{Format: f, Select: selection(t, "all.y", "all.n", "all.ok", "bare.c", "all.s")})
		recordRows(t, c, sys, 0, 9)
		must(t, c.End(master.Result{}))
		s, err := ReadSignals(t.Context(), path)
		must(t, err)
		y, _ := s.Column("all.y")
		n, _ := s.Column("all.n")
		ok, _ := s.Column("all.ok")
		never, _ := s.Column("bare.c")
		if len(s.Times) != 9 || s.At(y, 0.5) != math.Sin(4) || s.At(n, 1) != -8 {
			t.Errorf("%v: %v, %g, %g", f, s.Times, s.At(y, 0.5), s.At(n, 1))
		}
		if err := errors.Join(s.check(y, master.Port{Kind: master.Real}, 9), s.check(n, master.Port{Kind: master.Integer}, 9), s.check(ok, master.Port{Kind: master.Boolean}, 9)); err != nil {
			t.Error(err)
		}
		line := map[Format]string{CSV: ":2:", Parquet: ":1:", MAT: ":1:"}[f] // of the first row
		if err := s.check(never, master.Port{Kind: master.Real}, 9); err == nil || !strings.Contains(err.Error(), path+line+` bare.c: "NaN" is not a finite number`) {
			t.Errorf("%v: %v", f, err)
		}
		if text, recorded := s.Column("all.s"); recorded != (f != MAT) || recorded && s.check(text, master.Port{Kind: master.Integer}, 9) == nil {
			t.Errorf("%v: a column of texts is taken for numbers", f)
		}
		must(t, s.Expand(map[string][]Derived{"all.y": {{Name: "b.y", Gain: 2}, {Name: "c.y", Gain: 1, Offset: 1}}}))
		if twice, _ := s.Column("b.y"); s.At(twice, 0.5) != 2*math.Sin(4) {
			t.Errorf("%v: %g", f, s.At(twice, 0.5))
		}
		if never, _ := s.Column("bare.c"); !strings.Contains(fmt.Sprint(s.check(never, master.Port{Kind: master.Real}, 9)), `"NaN"`) {
			t.Errorf("%v: the cells of bare.c are others after Expand", f)
		}
	}
}

// Integers, items and bytes of a table have all their bits, also in a table that was recorded, and lie in the range
// of the type.
func TestExactCells(t *testing.T) {
	kinds := []master.Port{{Name: "n", Kind: master.Integer}, {Name: "b", Kind: master.String, Binary: true}, {Name: "s", Kind: master.String}}
	sub := &still{master.Info{Name: "a", DiscreteIn: kinds}}
	sys, err := master.NewSystem([]master.Subsystem{sub}, nil)
	must(t, err)
	const least, most, odd = math.MinInt64, math.MaxInt64, 1<<53 + 1
	want := []master.Values{
		{Integer: []int64{least}, String: []string{"\x00\xff", "x"}}, {Integer: []int64{most - 1}, String: []string{"", ","}},
		{Integer: []int64{most}, String: []string{"a", ""}}, {Integer: []int64{odd}, String: []string{"a", ""}}, {Integer: []int64{1e18}, String: []string{"a", ""}},
	}
	play := func(s *Signals) {
		t.Helper()
		in, err := BindInputs(s, sys)
		must(t, err)
		for k := range want {
			v := master.NewValues(kinds)
			if in.Discrete(0, float64(k), &v); !slices.Equal(v.Integer, want[k].Integer) || !slices.Equal(v.String, want[k].String) {
				t.Errorf("%s at %d: %v, want %v", s.Path, k, v, want[k])
			}
			n, err := s.Replay("a.n", kinds[0])
			if must(t, err); n(float64(k)).Integer != want[k].Integer[0] {
				t.Errorf("%s at %d: replays %v", s.Path, k, n(float64(k)))
			}
		}
		if next := in.NextEvent(1); next != 2 {
			t.Errorf("the jump by 1 at 2 s is not seen before %g s", next)
		}
	}
	play(table(t, fmt.Sprintf("time,a.n,a.b,a.s\n0,%d,00fF,x\n1,%d,,\",\"\n2,%d,61,\n3,%d,61,\n4,1e18,61,\n", least, most-1, most, odd)))
	for _, f := range []Format{CSV, Parquet} {
		path := filepath.Join(t.TempDir(), "r")
		c := begun(t, sys, path, Options{Format: f})
		for k := range want {
			must(t, c.Record(&master.Point{T: float64(k), DiscreteIn: want[k : k+1], DiscreteOut: make([]master.Values, 1), Watch: make([]master.Values, 1)}))
		}
		must(t, c.End(master.Result{}))
		s, err := ReadSignals(t.Context(), path)
		must(t, err)
		play(s)
	}
	items := map[string]int64{"even": odd - 1, "odd": odd}
	s := table(t, fmt.Sprintf("time,e,m\n0,odd,%d\n1,%d,%d\n", odd, odd, odd-1))
	must(t, s.Items(map[string]map[string]int64{"e": items}))
	must(t, s.Expand(map[string][]Derived{"m": {{Name: "to", Gain: 1, Map: map[int64]int64{odd: most}}}}))
	for name, want := range map[string][2]int64{"e": {odd, odd}, "to": {most, odd - 1}} {
		at, err := s.Replay(name, kinds[0])
		if must(t, err); at(0).Integer != want[0] || at(1).Integer != want[1] {
			t.Errorf("%s is %v, %v, want %d", name, at(0), at(1), want)
		}
	}
	for text, p := range map[string]master.Port{
		`"200" is not a whole number from -128 to 127`:                 {Kind: master.Integer, Low: -128, High: 127},
		`"18446744073709551615" is not a whole number from 0 to 9223`:  {Kind: master.Integer, High: most},
		`"0f0" is not a list of bytes, each of two hexadecimal digits`: {Kind: master.String, Binary: true},
		`"1e39" is not a finite number of 32 bits`:                     {Single: true},
	} {
		_, err := table(t, "time,x\n0,11\n1,"+strings.Split(text, `"`)[1]+"\n").Replay("x", p)
		refused(t, text, err, "in.csv:3: x: "+text)
	}
}
