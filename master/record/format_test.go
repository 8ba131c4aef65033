package record

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/internal/parquetfile"
	"github.com/macrostep/macrostep/master/results"
)

var formats = []Format{CSV, Parquet, MAT}

// vary gives the point another time and other values.
func vary(p *master.Point, i int) {
	p.T = float64(i) / 8
	p.Y[0], p.U[4] = math.Sin(float64(i)), float64(i)
	p.DiscreteOut[0].Integer[0], p.DiscreteOut[0].Boolean[0] = int64(-i), i%3 == 0
	p.DiscreteOut[0].String[0] = fmt.Sprintf("row %d,\n\"%s\"", i, strings.Repeat("x", i%7))
}

// tableRows reads a result file of any format as the rows of a CSV table. The strings of a MAT are empty.
func tableRows(t *testing.T, f Format, path string) string {
	t.Helper()
	data := mustRead(t, path)
	var b []byte
	switch f {
	case CSV:
		_, rows, _ := strings.Cut(string(data), "\n")
		return rows
	case Parquet:
		file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		must(t, err)
		b = parquetRows(t, file)
	case MAT:
		if headerRows(t, data) == 0 {
			return ""
		}
		table, err := results.Read(path, results.ReadOptions{})
		must(t, err)
		for r, at := range table.Times {
			b = appendReal(b, at)
			for _, c := range table.Columns {
				b = appendReal(append(b, ','), c.Values[r])
			}
			b = append(b, '\n')
		}
	}
	return string(b)
}

// headerRows returns the number of rows that the header of a MAT states, and checks it and the times before it.
func headerRows(t *testing.T, data []byte) int {
	t.Helper()
	at := bytes.Index(data, []byte("data_2\x00"))
	columns, rows := int(data[at-16])|int(data[at-15])<<8, int(data[at-12])|int(data[at-11])<<8|int(data[at-10])<<16
	values := data[at+len("data_2\x00"):]
	if len(values) != 8*rows*columns {
		t.Fatalf("%d bytes are there of %d rows of %d columns", len(values), rows, columns)
	}
	if rows > 0 {
		start, stop := double(data[at-36:]), double(data[at-28:])
		if start != double(values) || stop != double(values[8*columns*(rows-1):]) {
			t.Fatalf("the run is from %g to %g, the rows are not", start, stop)
		}
	}
	return rows
}

func parquetRows(t *testing.T, file *parquet.File) (b []byte) {
	t.Helper()
	for _, g := range file.RowGroups() {
		rows := make([]parquet.Row, g.NumRows())
		r := g.Rows()
		if n, err := r.ReadRows(rows); n != len(rows) {
			t.Fatal(n, err)
		}
		for _, row := range rows {
			for k, v := range row {
				if k > 0 {
					b = append(b, ',')
				}
				switch v.Kind() {
				case parquet.Double:
					b = appendReal(b, v.Double())
				case parquet.Int64:
					b = fmt.Append(b, v.Int64())
				case parquet.Boolean:
					b = fmt.Append(b, map[bool]int{true: 1}[v.Boolean()])
				case parquet.ByteArray:
					b = appendField(b, v.String())
				default:
					t.Fatalf("column %d is %s", k, v.Kind())
				}
			}
			b = append(b, '\n')
		}
		must(t, r.Close())
	}
	return b
}

// countRows returns the number of rows of a CSV table.
func countRows(t *testing.T, rows string) int {
	t.Helper()
	all, err := csv.NewReader(strings.NewReader(rows)).ReadAll()
	must(t, err)
	return len(all)
}

// without returns the rows of a CSV table as a format holds them.
func without(t *testing.T, f Format, rows string) string {
	t.Helper()
	if f != MAT {
		return rows
	}
	all, err := csv.NewReader(strings.NewReader(rows)).ReadAll()
	must(t, err)
	var b strings.Builder
	for _, row := range all {
		b.WriteString(strings.Join(slices.Delete(slices.Delete(row, 12, 13), 5, 6), ",") + "\n")
	}
	return b.String()
}

// Every format holds the same values, in the types of the variables; columns say what
// they are.
func TestFormatsAgree(t *testing.T) {
	sys := testSystem(t)
	sys.Infos[0].Out[0].Unit = "N"
	describe := func(name string) Description {
		if name == "all.y" {
			return Description{"the [total] force", "output", "continuous"}
		}
		return Description{}
	}
	const rows = 5000 // more than a block
	var want string
	for _, f := range formats {
		path := filepath.Join(t.TempDir(), "r")
		c := NewTable(path, Options{Format: f, Describe: describe})
		must(t, c.Begin(sys, []master.Port{{Name: "bond.P", Unit: "W"}}))
		p := testPoint(sys)
		p.Measured = []float64{4.5}
		for i := range rows {
			vary(p, i)
			must(t, c.Record(p))
		}
		columns := 15
		if f == MAT {
			columns = 13
		}
		if err := c.End(master.Result{}); err != nil || c.Rows() != rows || c.Columns() != columns {
			t.Fatal(err, c.Rows(), c.Columns())
		}
		if left := strings.Join(c.LeftOut(), " "); left != map[Format]string{MAT: "all.s bare.text"}[f] {
			t.Errorf("%v: left out: %s", f, left)
		}
		got := tableRows(t, f, path)
		if f == CSV {
			want = got
			continue
		}
		if got != without(t, f, want) || strings.Count(want, "row ") != rows {
			t.Fatalf("%v: the rows differ from those of CSV", f)
		}
		table, err := results.Read(path, results.ReadOptions{})
		must(t, err)
		units := ""
		for _, c := range table.Columns {
			if c.Unit != "" {
				units += c.Name + " " + c.Unit + ";"
			}
		}
		if units != "all.y N;bond.P W;" {
			t.Errorf("%v: units %s", f, units)
		}
	}
}

// The columns of Parquet have types, and the metadata describes them.
func TestParquetColumns(t *testing.T) {
	sys := testSystem(t)
	sys.Infos[0].Out[0].Unit = "N"
	path := filepath.Join(t.TempDir(), "r")
	c := begun(t, sys, path, Options{Format: Parquet, Select: selection(t, "all.y", "all.n", "all.ok", "all.s"), Describe: func(string) Description {
		return Description{Text: "the \"force\""}
	}})
	must(t, c.End(master.Result{}))
	data := mustRead(t, path)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	got := ""
	for _, c := range file.Root().Columns() {
		got += fmt.Sprintf("%s %s;", c.Name(), c.Type())
	}
	if got != "time DOUBLE;all.y DOUBLE;all.n INT64;all.ok BOOLEAN;all.s STRING;" || file.NumRows() != 0 {
		t.Error(got)
	}
	about, _ := file.Lookup(parquetfile.ColumnsKey)
	if want := `{"all.n":{"description":"the \"force\""},"all.ok":{"description":"the \"force\""},"all.s":{"description":"the \"force\""},` +
		`"all.y":{"description":"the \"force\"","unit":"N"},` +
		`"time":{"causality":"independent","description":"communication point","unit":"s","variability":"continuous"}}`; about != want {
		t.Errorf("%s\nwant %s", about, want)
	}
}

// checkpoint brings all rows to the file.
func checkpoint(c *Table) error {
	a := master.NewArchive()
	c.Archive(a)
	return a.Err()
}

// Wherever a file of Parquet ends, its whole row groups are read. Flushes cut no groups; checkpoints do.
func TestParquetPrefix(t *testing.T) {
	sys := testSystem(t)
	path := filepath.Join(t.TempDir(), "r")
	c := begun(t, sys, path, Options{Format: Parquet})
	var ends []int // of the file after each checkpoint
	for i := range 60 {
		recordRows(t, c, sys, i, i+1)
		if i%3 == 1 {
			must(t, c.Flush())
		}
		if i%20 == 19 {
			must(t, checkpoint(c))
			ends = append(ends, len(mustRead(t, path)))
			must(t, c.Flush()) // adds a footer, which the next group replaces
			if rows := tableRows(t, Parquet, path); strings.Count(rows, "row ") != i+1 {
				t.Errorf("%d rows can be read, want %d", strings.Count(rows, "row "), i+1)
			}
		}
	}
	must(t, c.End(master.Result{}))
	whole := tableRows(t, Parquet, path)
	data := mustRead(t, path)
	for n := ends[0]; n <= len(data); n++ {
		if near, _ := slices.BinarySearch(ends, n-1); n%19 > 0 && n < len(data) && (near == len(ends) || ends[near] > n+1) {
			continue
		}
		file, broken, err := parquetfile.Open(bytes.NewReader(data[:n]), int64(n))
		if err != nil || broken != (n < len(data)) {
			t.Fatal(n, broken, err)
		}
		at, exact := slices.BinarySearch(ends, n)
		groups := at
		if exact {
			groups++
		}
		if rows := string(parquetRows(t, file)); strings.Count(rows, "row ") != 20*groups || len(file.RowGroups()) != groups || !strings.HasPrefix(whole, rows) {
			t.Fatalf("%d of %d bytes: %d row groups, want %d", n, len(data), len(file.RowGroups()), groups)
		}
	}
	// A damaged page ends what is read, whatever is damaged.
	for at := ends[0]; at < ends[1]; at += 5 {
		broken := bytes.Clone(data[:ends[2]])
		broken[at] ^= 0x10
		file, _, err := parquetfile.Open(bytes.NewReader(broken), int64(len(broken)))
		if err != nil || file.NumRows() != 20 {
			t.Fatalf("byte %d: %d rows: %v", at, file.NumRows(), err)
		}
	}
}

// A MAT is whole after each flush. Rows that are cut off, or that the header does not count yet, are left out.
func TestMatPrefix(t *testing.T) {
	sys := testSystem(t)
	path := filepath.Join(t.TempDir(), "r")
	c := begun(t, sys, path, Options{Format: MAT})
	for i := range 9 {
		recordRows(t, c, sys, i, i+1)
		must(t, c.Flush())
		if n := headerRows(t, mustRead(t, path)); n != i+1 {
			t.Errorf("the header counts %d rows, want %d", n, i+1)
		}
	}
	must(t, c.End(master.Result{}))
	data := mustRead(t, path)
	const row = 8 * 12
	for _, b := range [][]byte{data[:len(data)-1], data[:len(data)-row], append(bytes.Clone(data), data[len(data)-2*row:]...)} {
		want := 9
		if len(b) < len(data) {
			want = 8
		}
		got, err := results.Parse(b, "r", results.ReadOptions{})
		if err != nil || len(got.Times) != want || got.Times[want-1] != float64(want-1)/8 || (len(got.Notes) > 0) != (want < 9) {
			t.Errorf("%d of %d bytes: %v, %v", len(b), len(data), got, err)
		}
	}
}

// Equal runs give equal files, whatever the clock and the scheduler do meanwhile.
func TestFilesEqual(t *testing.T) {
	sys := testSystem(t)
	for _, f := range []Format{Parquet, MAT} {
		var files [2][]byte
		for k := range files {
			path := filepath.Join(t.TempDir(), "r")
			c := begun(t, sys, path, Options{Format: f, Interval: 0.25})
			p := testPoint(sys)
			for i := range 60_000 {
				vary(p, i)
				p.Watch[2].String[0] = strings.Repeat("text", i%20)
				err := c.Record(p)
				if i == 37_777 || i == 37_780 {
					err = errors.Join(err, checkpoint(c))
				}
				if k == 0 && i%1000 == 0 {
					err = errors.Join(err, c.Flush())
					runtime.Gosched()
				}
				must(t, err)
			}
			must(t, c.End(master.Result{}))
			files[k], _ = os.ReadFile(path)
		}
		if !bytes.Equal(files[0], files[1]) || len(files[0]) < 1<<19 {
			t.Errorf("%v: files of %d and %d bytes differ", f, len(files[0]), len(files[1]))
		}
	}
}

// A table that is continued from a checkpoint is the table of the unbroken run,
// whatever the first part has left after the checkpoint.
func TestTableContinued(t *testing.T) {
	const checkpoint, end = 7001, 9000
	sys := testSystem(t)
	for _, f := range formats {
		whole := begun(t, sys, filepath.Join(t.TempDir(), "whole"), Options{Format: f})
		recordRows(t, whole, sys, 0, end)
		must(t, whole.End(master.Result{}))
		want := tableRows(t, f, whole.path)
		for _, left := range []string{"nothing more", "further rows", "an end"} {
			path := filepath.Join(t.TempDir(), "r")
			first := begun(t, sys, path, Options{Format: f})
			recordRows(t, first, sys, 0, 10)
			first.Archive(master.NewArchive()) // the checksum goes on from here
			recordRows(t, first, sys, 10, checkpoint)
			kept := master.NewArchive()
			first.Archive(kept)
			must(t, kept.Err())
			if left != "nothing more" {
				recordRows(t, first, sys, 0, 3000)
			}
			if left == "an end" {
				must(t, first.End(master.Result{}))
			} else {
				must(t, errors.Join(first.Flush(), first.file.Close())) // a killed process lets go of it too
			}
			second := NewTable(path, Options{Format: f})
			second.Archive(master.ReadArchive(kept.Data()))
			must(t, second.Begin(sys, nil))
			recordRows(t, second, sys, checkpoint, end)
			if err := second.End(master.Result{}); err != nil || second.Rows() != end {
				t.Fatalf("%v with %s: %d rows: %v", f, left, second.Rows(), err)
			}
			if got := tableRows(t, f, path); got != want {
				t.Errorf("%v with %s: not the rows of the unbroken run", f, left)
			}
		}
		// Another table in its place is refused.
		kept := master.NewArchive()
		path := filepath.Join(t.TempDir(), "r")
		other := begun(t, sys, path, Options{Format: f, Select: selection(t, "all.y")})
		recordRows(t, other, sys, 0, 10)
		other.Archive(kept)
		must(t, other.End(master.Result{}))
		again := NewTable(path, Options{Format: f})
		again.Archive(master.ReadArchive(kept.Data()))
		if err := again.Begin(sys, nil); err == nil || !strings.Contains(err.Error(), "other columns") {
			t.Errorf("%v: %v", f, err)
		}
	}
}

func TestFormatNames(t *testing.T) {
	for path, want := range map[string]Format{"r.csv": CSV, "r": CSV, "r.txt": CSV, "a/R.Parquet": Parquet, "r.mat": MAT, "/dev/stdout": CSV} {
		if f, err := FormatOf(path); f != want || err != nil {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	for _, path := range []string{"r.arrow", "r.feather", "r.arrows"} {
		if _, err := FormatOf(path); err == nil || !strings.Contains(err.Error(), path+": files "+filepath.Ext(path)+" are not written; name a .parquet") {
			t.Error(err)
		}
	}
}
