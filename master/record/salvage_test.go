package record

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// kept is a Memory whose regions can be copied, as they are when a process dies.
type kept map[string][]byte

func (k kept) Region(name string, size int) []byte {
	k[name] = ordinary{}.Region(name, size)
	return k[name]
}

func (k kept) Drop(name string) { delete(k, name) }

// copy returns the regions as another process finds them.
func (k kept) copy() kept {
	c := kept{}
	for name, b := range k {
		copy(c.Region(name, len(b)), b)
	}
	return c
}

func (k kept) find(name string) []byte { return k[name] }

// moment is what a process leaves that dies at a publication.
type moment struct {
	memory kept
	file   []byte
	rows   int
}

// moments records rows and stops after each publication. From one moment to the next one
// the file only grows.
func moments(t *testing.T, path string, f Format) []moment {
	t.Helper()
	sys := testSystem(t)
	memory := kept{}
	c := begun(t, sys, path, Options{Format: f, Memory: memory})
	first := memory.copy() // as it is before the header is written
	l, _, at, err := openLedger(first[tableRegion])
	must(t, err)
	at.bytes = 0
	l.publish(at)
	all := []moment{{memory: first}}
	stop := func() { all = append(all, moment{memory.copy(), mustRead(t, path), c.Rows()}) }
	stop()
	for i := range 12 {
		recordRows(t, c, sys, i, i+1)
		stop()
		if i%4 == 1 {
			must(t, checkpoint(c))
			stop()
		}
	}
	must(t, c.End(master.Result{}))
	stop()
	return all
}

// A process may die at any instruction. Its memory is that of a publication then, and
// perhaps parts of the next one; its file ends anywhere between that and the next one.
func TestSalvageEverywhere(t *testing.T) {
	for _, f := range formats {
		path := filepath.Join(t.TempDir(), "r")
		all := moments(t, path, f)
		want := strings.SplitAfter(tableRows(t, f, path), "NaN\n")
		whole := all[len(all)-1].file
		for k, m := range all {
			next := all[min(k+1, len(all)-1)]
			for n := len(m.file); n <= len(next.file); n++ {
				if min(n-len(m.file), len(next.file)-n) > 5 && n%61 != 0 {
					continue // in the middle of a batch
				}
				memory := maps.Clone(m.memory)
				if n%2 == 1 {
					memory = maps.Clone(next.memory)
					memory[tableRegion] = kept{"": m.memory[tableRegion]}.copy()[""]
					l, _, _, _ := openLedger(memory[tableRegion])
					l.places[(l.turn.Load()+1)%2].bytes = 1 << 40
				}
				must(t, os.WriteFile(path, next.file[:n], 0o666))
				for again := range 2 {
					s, err := Salvage(memory.find)
					if err != nil {
						t.Fatalf("%v, moment %d, %d bytes: %v", f, k, n, err)
					}
					if s.Path != path || s.Rows != m.rows || s.Columns != map[Format]int{CSV: 14, Parquet: 14, MAT: 12}[f] || s.Rows > 0 && s.Newest != float64(s.Rows-1)/8 || s.Attempts != "" {
						t.Fatalf("%v, moment %d, %d bytes: %+v", f, k, n, s)
					}
					if got := tableRows(t, f, path); got != strings.Join(want[:m.rows], "") {
						t.Fatalf("%v, moment %d, %d bytes, time %d: the rows are\n%s", f, k, n, again, got)
					}
				}
			}
			if got, _ := os.ReadFile(path); m.rows == 12 && !bytes.Equal(got, whole) {
				t.Errorf("%v, moment %d: the file differs from that of a run that has come to its end", f, k)
			}
		}
	}
}

// The last point gets a row although the interval did not ask for one.
func TestSalvageLastPoint(t *testing.T) {
	sys := testSystem(t)
	for _, f := range formats {
		path := filepath.Join(t.TempDir(), "r")
		memory := kept{}
		c := begun(t, sys, path, Options{Format: f, Memory: memory, Interval: 0.5})
		var left []kept
		for i := range 12 { // the interval wants 0, 4 and 8
			recordRows(t, c, sys, i, i+1)
			left = append(left, memory.copy())
		}
		must(t, c.End(master.Result{}))
		left = append(left, memory.copy())
		want := tableRows(t, f, path)
		for i, m := range left {
			i = min(i, 11)
			s, err := Salvage(m.find)
			if err != nil || s.Rows != 1+(i+3)/4 || s.Newest != float64(i)/8 {
				t.Fatalf("%v, after point %d: %+v, %v", f, i, s, err)
			}
			if got := tableRows(t, f, path); i == 11 && got != want {
				t.Errorf("%v: the rows are\n%s\nwant\n%s", f, got, want)
			}
		}
	}
}

// A run that is continued from a checkpoint leaves the file as it was until it has a row.
func TestSalvageContinued(t *testing.T) {
	sys := testSystem(t)
	for _, f := range formats {
		path := filepath.Join(t.TempDir(), "r")
		first := begun(t, sys, path, Options{Format: f})
		recordRows(t, first, sys, 0, 30)
		a := master.NewArchive()
		first.Archive(a)
		recordRows(t, first, sys, 30, 40)
		must(t, first.End(master.Result{}))
		want := tableRows(t, f, path)
		for _, rows := range []int{0, 1, 10} {
			memory := kept{}
			second := NewTable(path, Options{Format: f, Memory: memory})
			second.Archive(master.ReadArchive(a.Data()))
			must(t, second.Begin(sys, nil))
			recordRows(t, second, sys, 30, 30+rows)
			must(t, second.file.Close()) // as if the process had ended
			s, err := Salvage(memory.find)
			if err != nil || s.Rows != 30+rows || s.Added != rows {
				t.Fatalf("%v: %+v, %v", f, s, err)
			}
			got := tableRows(t, f, path)
			if rows != 1 && got != want {
				t.Errorf("%v, %d rows: not the file of the run before", f, rows)
			}
			if rows == 1 && (!strings.HasPrefix(want, got) || countRows(t, got) != s.Rows) {
				t.Errorf("%v: the rows are\n%s", f, got)
			}
		}
	}
}

// Strings of any size are right, in the file and in what is salvaged.
func TestLongStrings(t *testing.T) {
	sys := testSystem(t)
	for _, f := range []Format{CSV, Parquet} {
		path := filepath.Join(t.TempDir(), "r")
		memory := kept{}
		c := begun(t, sys, path, Options{Format: f, Memory: memory, Interval: 0.25})
		random := rand.New(rand.NewPCG(1, uint64(f)))
		p := testPoint(sys)
		var want []byte
		const rows = 80
		for i := range 2*rows - 1 {
			vary(p, i)
			n := 1 << random.IntN(17)
			switch random.IntN(60) {
			case 0:
				n = 1 << 20 << random.IntN(3)
			case 1:
				n = 5 << 20
			}
			if i == 70 {
				n = 30 << 20
			}
			p.DiscreteOut[0].String[0] = strings.Repeat(string(rune('a'+i%26)), n)
			p.Watch[2].String[0] = p.DiscreteOut[0].String[0][:n/3]
			if i%2 == 0 {
				want = fmt.Appendf(want, "%v,%c %d %d\n", p.T, 'a'+i%26, n, n/3)
			}
			must(t, c.Record(p))
		}
		c.mu.Lock()
		left := memory.copy()
		c.mu.Unlock()
		check := func(what string) {
			t.Helper()
			var got []byte
			for _, line := range strings.Split(strings.TrimSuffix(tableRows(t, f, path), "\n"), "\n") {
				cells := strings.Split(line, ",")
				text, half := cells[5], cells[12]
				if text != strings.Repeat(text[:1], len(text)) || half != text[:len(half)] {
					t.Fatalf("%v, %s: a text is wrong", f, what)
				}
				got = fmt.Appendf(got, "%s,%c %d %d\n", cells[0], text[0], len(text), len(half))
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%v, %s: the rows are\n%s", f, what, got)
			}
		}
		must(t, c.End(master.Result{}))
		check("written")
		if _, err := Salvage(left.find); err != nil {
			t.Fatal(err)
		}
		check("salvaged")
	}
}

// Damaged memory gives errors, and what is in the file stays there. A file that is not the run's
// any more is left alone.
func TestSalvageScribbled(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, f := range formats {
		path := filepath.Join(t.TempDir(), "r")
		all := moments(t, path, f)
		at := slices.IndexFunc(all, func(m moment) bool { return m.rows == 9 })
		want := tableRows(t, f, path)
		m := all[at]
		failed := 0
		for i := range 90 {
			memory := maps.Clone(m.memory)
			names := slices.Sorted(maps.Keys(memory))
			name := names[random.IntN(len(names))]
			b := memory[name]
			if i%3 < 2 {
				b = kept{"": b}.copy()[""]
				memory[name] = b
			}
			switch i % 3 {
			case 0: // a word near the begin, where the counts are
				o := random.IntN(30) * 8
				for k := range 8 {
					b[o+k] = byte(random.IntN(256))
				}
			case 1:
				from := random.IntN(len(b))
				for k := range b[from:min(len(b), from+1+random.IntN(5000))] {
					b[from+k] = byte(random.IntN(256))
				}
			case 2:
				memory[name] = b[:random.IntN(len(b))&^7]
			}
			must(t, os.WriteFile(path, m.file, 0o666))
			_, err := Salvage(memory.find)
			if err != nil {
				failed++
			}
			data, _ := os.ReadFile(path)
			kept := bytes.Clone(data)
			if at := bytes.Index(data, []byte("data_2\x00")); f == MAT && at > 0 { // the header is updated
				copy(kept[at-36:at], m.file[at-36:])
			}
			if !bytes.HasPrefix(kept, m.file) {
				t.Fatalf("%v, %s scribbled on: what the run has written is lost: %v", f, name, err)
			}
			if err == nil && name == tableRegion && !strings.HasPrefix(want, tableRows(t, f, path)) {
				t.Fatalf("%v: wrong rows", f)
			}
		}
		if failed < 15 {
			t.Errorf("%v: %d errors", f, failed)
		}
		other := bytes.Repeat([]byte("other "), len(m.file))
		for _, data := range [][]byte{other, nil, m.file[:len(m.file)-1]} {
			must(t, os.WriteFile(path, data, 0o666))
			if _, err := Salvage(m.memory.find); err == nil || !bytes.Equal(mustRead(t, path), data) {
				t.Errorf("%v: %v", f, err)
			}
		}
		must(t, os.Remove(path))
		if _, err := Salvage(m.memory.find); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
			t.Errorf("%v: %v", f, err)
		}
	}
	if s, err := Salvage(kept{}.find); err != nil || s != (Salvaged{}) {
		t.Errorf("nothing was begun: %+v, %v", s, err)
	}
}

// The table of attempts is completed too, wherever the process dies.
func TestSalvageAttempts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	memory := kept{}
	a := NewAttempts(path, memory)
	must(t, a.Begin(nil, nil))
	var all []moment
	rows := 0
	stop := func() { all = append(all, moment{memory.copy(), mustRead(t, path), rows}) }
	for i := range 5000 { // more than the buffer holds
		must(t, a.RecordAttempt(float64(i)/3, 1e-3, master.Trial{Order: i % 4, Est: float64(i) / 7}, i%5 > 0, nil))
		rows++
		if i%500 == 77 {
			stop()
			must(t, a.Flush())
			stop()
		}
	}
	stop()
	must(t, a.End(master.Result{}))
	stop()
	lines := bytes.SplitAfter(all[len(all)-1].file, []byte("\n"))
	for k, m := range all {
		longest := all[min(k+1, len(all)-1)].file
		for n := len(m.file); n <= len(longest); n += 1 + (len(longest)-len(m.file))/7 {
			must(t, os.WriteFile(path, longest[:n], 0o666))
			s, err := Salvage(m.memory.find)
			if err != nil || s.Attempts != path || s.Path != "" {
				t.Fatalf("%+v, %v", s, err)
			}
			if got := mustRead(t, path); !bytes.Equal(got, bytes.Join(lines[:1+m.rows], nil)) {
				t.Fatalf("moment %d, %d bytes: %d bytes are there", k, n, len(got))
			}
		}
	}
	must(t, os.WriteFile(path, []byte("other"), 0o666))
	if _, err := Salvage(all[0].memory.find); err == nil {
		t.Error("another file is taken for the table of attempts")
	}
}

// The log of calls is completed, too, and ends with the unfinished calls. It takes lines of
// several goroutines, and lines longer than its buffer.
func TestSalvageCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calls.txt")
	memory := kept{}
	c := NewCallLog(path, memory)
	must(t, c.Begin())
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := range 3000 {
				_, _ = c.Write(fmt.Appendf(nil, "%d %d\n", w, i))
				if i%1000 == 99 {
					_ = c.Flush()
				}
			}
		})
	}
	wg.Wait()
	long := strings.Repeat("long ", chunk/2)
	_, _ = c.Write([]byte(long))
	left, file := memory.copy(), mustRead(t, path) // as if the process died now
	must(t, errors.Join(c.Close(), c.Close()))
	_, _ = c.Write([]byte("late\n"))
	whole := string(mustRead(t, path))
	var want [3]int
	lines, ok := strings.CutSuffix(whole, long)
	for line := range strings.Lines(lines) {
		var w, i int
		if _, err := fmt.Sscan(line, &w, &i); err != nil || i != want[w] {
			t.Fatalf("%q, want line %v", line, want)
		}
		want[w]++
	}
	if want != [3]int{3000, 3000, 3000} || !ok {
		t.Fatalf("%v lines, the long line is there: %v", want, ok)
	}
	const more = "- a fmi2DoStep -> unfinished\n- b fmi2GetReal -> unfinished\n"
	for _, c := range []struct {
		memory kept
		file   []byte
		want   string
	}{{memory, []byte(whole), whole}, {left, file, whole + more}} {
		must(t, os.WriteFile(path, c.file, 0o666))
		s, err := Salvage(c.memory.find, strings.SplitAfter(more, "\n")...)
		if got := mustRead(t, path); err != nil || s.Calls != path || s.Attempts != "" || string(got) != c.want {
			t.Errorf("%+v, %v: %d bytes, want %d", s, err, len(got), len(c.want))
		}
	}
}
