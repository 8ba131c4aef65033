package record

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

var update = flag.Bool("update", false, "write golden files anew")

// still is a subsystem that only has ports.
type still struct{ info master.Info }

func (s *still) Info() *master.Info                                              { return &s.info }
func (s *still) SetInputs([]float64) error                                       { return nil }
func (s *still) Outputs([]float64) error                                         { return nil }
func (s *still) Step(_ context.Context, t, H float64) (reached float64, e error) { return t + H, nil }

func ports(kind master.Kind, names ...string) []master.Port {
	var out []master.Port
	for _, n := range names {
		out = append(out, master.Port{Name: n, Kind: kind})
	}
	return out
}

// internal returns an output, unless it has no name, and one that is internal.
func internal(name, hidden string) []master.Port {
	var out []master.Port
	if name != "" {
		out = ports(master.Real, name)
	}
	return append(out, master.Port{Name: hidden, Internal: true})
}

// testSystem has a component with everything, one nested with a connected
// input, and one with neither outputs nor connected inputs. Internal outputs are
// no columns, and no outputs in this sense.
func testSystem(t *testing.T) *master.System {
	t.Helper()
	all := &still{master.Info{
		Name: "all", In: ports(master.Real, "free", "x[1]"), Out: internal("y", "hidden"),
		DiscreteIn:  slices.Concat(ports(master.Boolean, "on"), ports(master.Integer, "mode"), ports(master.String, "name"), ports(master.Integer, "gear")),
		DiscreteOut: slices.Concat(ports(master.Integer, "n"), ports(master.Boolean, "ok"), ports(master.Integer, "m"), ports(master.String, "s")),
	}}
	inner := &still{master.Info{Name: "sys.inner", In: ports(master.Real, "u", "v"), Out: ports(master.Real, "z")}}
	bare := &still{master.Info{Name: "bare", In: ports(master.Real, "w"), Out: internal("", "flow"),
		Watch: slices.Concat(ports(master.Real, "a, b"), ports(master.Boolean, "flag"), ports(master.String, "text"), ports(master.Real, "c"))}}
	sys, err := master.NewSystem([]master.Subsystem{all, inner, bare}, []master.Connection{
		{From: master.Endpoint{Subsystem: "all", Port: "y"}, To: master.Endpoint{Subsystem: "sys.inner", Port: "u"}},
		{From: master.Endpoint{Subsystem: "all", Port: "m"}, To: master.Endpoint{Subsystem: "all", Port: "gear"}},
	})
	must(t, err)
	return sys
}

func testPoint(sys *master.System) *master.Point {
	p := &master.Point{U: []float64{1, 2, 3, 4, 5}, Y: []float64{6, 96, 7, 97}}
	for _, info := range sys.Infos {
		p.DiscreteIn = append(p.DiscreteIn, master.NewValues(info.DiscreteIn))
		p.DiscreteOut = append(p.DiscreteOut, master.NewValues(info.DiscreteOut))
		p.Watch = append(p.Watch, master.NewValues(info.Watch))
	}
	p.DiscreteIn[0].Integer[1] = -9
	p.DiscreteOut[0].Integer[0], p.DiscreteOut[0].Integer[1] = 11, 12
	p.DiscreteOut[0].Boolean[0] = true
	p.DiscreteOut[0].String[0] = `say "a,b"`
	p.Watch[2].Real[0], p.Watch[2].Real[1] = 0.1, math.NaN()
	p.Watch[2].String[0] = "two\nlines"
	return p
}

func selection(t *testing.T, patterns ...string) Selection {
	t.Helper()
	s, err := ParseSelection(patterns)
	must(t, err)
	return s
}

func TestCSVColumns(t *testing.T) {
	for _, tt := range []struct {
		patterns []string
		want     string
	}{
		{nil, `time,all.y,all.n,all.ok,all.m,all.s,all.gear,sys.inner.z,sys.inner.u,bare.w,"bare.a, b",bare.flag,bare.text,bare.c
0,6,11,1,12,"say ""a,b""",-9,7,3,5,0.1,0,"two
lines",NaN
`},
		{[]string{"all.x[1]", "*.z"}, "time,all.x[1],sys.inner.z\n0,2,7\n"},
		{[]string{"?are.c"}, "time,bare.c\n0,NaN\n"},
		{[]string{"all.n", "all.on", "all.mode"}, "time,all.n,all.on,all.mode\n0,11,0,0\n"},
	} {
		sys := testSystem(t)
		path := filepath.Join(t.TempDir(), "r.csv")
		c := begun(t, sys, path, Options{Select: selection(t, tt.patterns...)})
		must(t, errors.Join(c.Record(testPoint(sys)), c.End(master.Result{})))
		got := mustRead(t, path)
		if string(got) != tt.want {
			t.Errorf("%v:\n%s\nwant\n%s", tt.patterns, got, tt.want)
		}
		rows, err := csv.NewReader(strings.NewReader(string(got))).ReadAll()
		if err != nil || len(rows) != 2 || c.Rows() != 1 || c.Columns() != len(rows[0]) {
			t.Errorf("%v: %d rows, %d columns: %v", tt.patterns, c.Rows(), c.Columns(), err)
		}
	}
}

func TestCSVErrorsNameFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "r.csv")
	err := NewTable(path, Options{}).Begin(testSystem(t), nil)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "create the folder first") {
		t.Errorf("creating: %v", err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		return // only Linux has a device that is always full
	}
	c := NewTable("/dev/full", Options{})
	err = c.Begin(testSystem(t), nil)
	if err == nil || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("writing to a full disk: %v", err)
	}
	if again := c.Record(testPoint(testSystem(t))); again == nil {
		t.Error("a recorder that failed goes on")
	}
	if end := c.End(master.Result{}); !errors.Is(end, err) {
		t.Errorf("at the end it is another failure: %v", end)
	}
}

// TestCSVWholeRows looks at the file during a run: it always ends in a whole row.
func TestCSVWholeRows(t *testing.T) {
	sys := testSystem(t)
	path := filepath.Join(t.TempDir(), "r.csv")
	c := begun(t, sys, path, Options{Select: selection(t, "all.y", "bare.w")})
	p := testPoint(sys)
	writes, size := 0, int64(0)
	for i := range 80000 {
		p.T, p.Y[0] = float64(i)/3, rand.Float64()
		must(t, c.Record(p))
		info, err := os.Stat(path)
		must(t, err)
		if info.Size() == size {
			continue
		}
		size = info.Size()
		writes++
		data := mustRead(t, path)
		rows, err := csv.NewReader(bytes.NewReader(data[:bytes.LastIndexByte(data, '\n')+1])).ReadAll()
		if err != nil || len(rows) > 1 && rows[len(rows)-1][0] != string(appendReal(nil, float64(len(rows)-2)/3)) {
			t.Fatalf("after point %d the file is not whole rows in order: %v", i, err)
		}
	}
	if writes < 4 {
		t.Errorf("%d writes; the test must see several", writes)
	}
	// What is flushed is there, whoever asks.
	done := make(chan error)
	go func() { done <- c.Flush() }()
	must(t, <-done)
	if s, err := ReadSignals(t.Context(), path); err != nil || len(s.Times) != 80000 || s.Times[79999] != p.T {
		t.Errorf("flushed: %v", err)
	}
	if err := errors.Join(c.End(master.Result{}), c.End(master.Result{})); !errors.Is(err, errEnded) || !errors.Is(c.Record(p), errEnded) {
		t.Errorf("after the end: %v", err)
	}
}

// TestRun records a real run, and reads the table back to the same bits.
func TestRun(t *testing.T) {
	sys := oscillator(t)
	choice, err := algorithms.New("explicit", nil)
	must(t, err)
	path := filepath.Join(t.TempDir(), "r.csv")
	memory := &mastertest.Memory{}
	run, err := master.NewRun(sys, choice.Algorithm, master.Options{Stop: 1, Step: 0.01,
		Recorders: []master.Recorder{NewTable(path, Options{}), memory}})
	must(t, err)
	_, err = run.Run(t.Context())
	must(t, err)
	s, err := ReadSignals(t.Context(), path)
	must(t, err)
	want := []string{"first.y1", "first.y2", "first.u1", "second.y1", "second.u1", "second.u2"}
	if !slices.Equal(s.Times, memory.T) || !slices.Equal(s.Names, want) {
		t.Errorf("times %v, columns %v", s.Times, s.Names)
	}
	for i, at := range s.Times {
		for k := range memory.Y[i] {
			col, ok := s.Column(sys.OutName(k))
			if !ok || s.At(col, at) != memory.Y[i][k] {
				t.Fatalf("%s at %g", sys.OutName(k), at)
			}
		}
	}
	// The same table is a history for a run that starts later.
	past, err := BindHistory(s, sys, 0.5, 3)
	must(t, err)
	if len(past) != 50 || past[49].T != memory.T[49] || past[49].Y[2] != memory.Y[49][2] {
		t.Errorf("%d points of history", len(past))
	}
}

// oscillator returns the coupled oscillator of mastertest.
func oscillator(t *testing.T) *master.System {
	t.Helper()
	subs := mastertest.Oscillator()
	sys, err := master.NewSystem([]master.Subsystem{subs[0], subs[1]}, mastertest.OscillatorConnections())
	must(t, err)
	return sys
}

// wide returns a system of so many outputs and a point of it.
func wide(t testing.TB, outputs int) (*master.System, *master.Point) {
	t.Helper()
	var names []string
	for i := range outputs {
		names = append(names, fmt.Sprint("y", i))
	}
	sys, err := master.NewSystem([]master.Subsystem{&still{master.Info{Name: "s", Out: ports(master.Real, names...)}}}, nil)
	must(t, err)
	none := make([]master.Values, 1)
	return sys, &master.Point{Y: make([]float64, outputs), DiscreteIn: none, DiscreteOut: none, Watch: none}
}

func BenchmarkRecord(b *testing.B) {
	for _, f := range formats {
		for _, columns := range []int{1, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%v/%d", f, columns), func(b *testing.B) {
				sys, p := wide(b, columns)
				c := begun(b, sys, os.DevNull, Options{Format: f})
				b.ReportAllocs()
				x := 0.1
				for b.Loop() {
					p.T += 0.001
					for i := range p.Y {
						x = 3.9 * x * (1 - x) // all digits vary
						p.Y[i] = x
					}
					must(b, c.Record(p))
				}
				must(b, c.End(master.Result{}))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*(columns+1)), "ns/value")
			})
		}
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}

// begun returns a table that has begun.
func begun(t testing.TB, sys *master.System, path string, o Options) *Table {
	t.Helper()
	c := NewTable(path, o)
	must(t, c.Begin(sys, nil))
	return c
}

// recordRows records rows of varied points.
func recordRows(t testing.TB, c *Table, sys *master.System, from, to int) {
	t.Helper()
	p := testPoint(sys)
	for i := from; i < to; i++ {
		vary(p, i)
		must(t, c.Record(p))
	}
}

// A row is due at the first point at or after each multiple of the interval.
func TestInterval(t *testing.T) {
	at := func(n int, h float64) (ts []float64) {
		for i := range n + 1 {
			ts = append(ts, float64(i)*h)
		}
		return ts
	}
	var each100 []float64
	for i := range 1001 {
		each100 = append(each100, float64(100*i)*0.001)
	}
	for _, tt := range []struct {
		name     string
		times    []float64
		interval float64
		want     []float64
	}{
		{"multiple of the step", at(10, 0.1), 0.5, []float64{0, 0.5, 1}},
		{"no multiple of the step", at(10, 1), 2.5, []float64{0, 3, 5, 8, 10}},
		{"below the step", at(3, 1), 0.3, []float64{0, 1, 2, 3}},
		{"stop between multiples", at(7, 1), 3, []float64{0, 3, 6}},
		{"from the start on", []float64{10.5, 11, 11.5, 12, 12.5}, 1, []float64{10.5, 11.5, 12.5}},
		{"a hair early", []float64{0, 0.5, 1 - 1e-12, 1.5, 2}, 1, []float64{0, 1 - 1e-12, 2}},
		{"early by more than rounding", []float64{0, 0.5, 1 - 1e-6, 1.5, 2}, 1, []float64{0, 1.5, 2}},
		{"rounding does not add up", at(100_000, 0.001), 0.1, each100},
	} {
		c := Table{opt: Options{Interval: tt.interval}}
		var got []float64
		for _, at := range tt.times {
			if c.wants(at) {
				got = append(got, at)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Recording allocates nothing per point; the allocations of a batch are spread over its
// points. Neither does a line in the log of calls.
func TestRecordAllocatesNothing(t *testing.T) {
	none := func(what string, f func()) {
		t.Helper()
		for range 1200 { // buffers grow, two batches are written
			f()
		}
		if n := testing.AllocsPerRun(3000, f); n != 0 {
			t.Errorf("%s: %g allocations", what, n)
		}
	}
	for _, f := range formats {
		sys, p := wide(t, 1000)
		all := testSystem(t)
		for sys, p := range map[*master.System]*master.Point{sys: p, all: testPoint(all)} {
			c := begun(t, sys, filepath.Join(t.TempDir(), "r"), Options{Format: f})
			none(fmt.Sprintf("%v, %d columns", f, c.Columns()), func() {
				p.T += 0.001
				for k := range p.Y {
					p.Y[k] = p.T + float64(k)
				}
				must(t, c.Record(p))
			})
			must(t, c.End(master.Result{}))
		}
	}
	c := NewCallLog(filepath.Join(t.TempDir(), "calls.txt"), nil)
	must(t, c.Begin())
	line := []byte("0.001273 engine fmi2SetReal vr=[0 3] v=[1 2.5] -> OK 0.4µs\n")
	none("a line", func() { _, _ = c.Write(line) })
	must(t, c.Close())
}

// Numbers have the shortest text that reads back to the same bits, also those that are
// repeated or whole, which have shortcuts.
func TestReals(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", -1.5: "-1.5", 0.1: "0.1", 1e-4: "0.0001", 1e-5: "1e-5", 1.25e-10: "1.25e-10", 123456: "123456",
		1e6: "1000000", 1e15: "1e15", 1e20: "1e20", 1e100: "1e100", -3e-300: "-3e-300", math.MaxFloat64: "1.7976931348623157e308",
		math.SmallestNonzeroFloat64: "5e-324", math.Inf(1): "Inf", math.Inf(-1): "-Inf",
	} {
		if got := string(appendReal(nil, v)); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
	if got := string(appendReal(appendReal(nil, math.NaN()), math.Copysign(0, -1))); got != "NaN-0" {
		t.Error(got)
	}
	var s seenReal
	v := 0.0
	for i := range 300_000 {
		switch i % 6 {
		case 0:
			v = math.Float64frombits(rand.Uint64())
		case 1:
			v = float64(rand.Int64N(1 << 54))
		case 2:
			v = -float64(rand.IntN(1000)) / 4
		case 3:
			v = math.Copysign(v, -v)
		case 4:
			v = math.Float64frombits(math.Float64bits(v) ^ 1)
		}
		text := string(s.append([]byte("12"), v))
		back, err := strconv.ParseFloat(text[3:], 64)
		if err != nil || text[:3] != "12," || math.Float64bits(back) != math.Float64bits(v) && !math.IsNaN(v) {
			t.Fatalf("%x: %s reads back as %x: %v", math.Float64bits(v), text, math.Float64bits(back), err)
		}
		if shortest := strconv.FormatFloat(v, 'g', -1, 64); len(text)-2 > widest || digits(text[3:]) > digits(shortest) {
			t.Fatalf("%s is longer than %s", text[3:], shortest)
		}
	}
}

// digits counts the significant digits of a number.
func digits(text string) int {
	mantissa, _, _ := strings.Cut(text, "e")
	return len(strings.Trim(strings.NewReplacer("-", "", ".", "", "+", "").Replace(mantissa), "0"))
}
