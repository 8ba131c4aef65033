package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/macrostep/macrostep/master"
)

var formats = []Format{CSV, ArrowFile, ArrowStream}

// vary gives the point another time and other values.
func vary(p *master.Point, i int) {
	p.T = float64(i) / 8
	p.Y[0], p.U[4] = math.Sin(float64(i)), float64(i)
	p.DiscreteOut[0].Integer[0], p.DiscreteOut[0].Boolean[0] = int32(-i), i%3 == 0
	p.DiscreteOut[0].String[0] = fmt.Sprintf("row %d,\n\"%s\"", i, strings.Repeat("x", i%7))
}

// arrowRows reads the record batches of a stream as the rows of a CSV table, and gives
// the number of batches. An error comes with what was whole before.
func arrowRows(t *testing.T, r io.Reader) (rows string, batches int, err error) {
	t.Helper()
	s, err := ipc.NewReader(r)
	if err != nil {
		return "", 0, err
	}
	defer s.Release()
	var b []byte
	for s.Next() {
		batches++
		b = appendBatch(t, b, s.RecordBatch())
	}
	return string(b), batches, s.Err()
}

func appendBatch(t *testing.T, b []byte, batch arrow.RecordBatch) []byte {
	t.Helper()
	for r := range int(batch.NumRows()) {
		for k, c := range batch.Columns() {
			if k > 0 {
				b = append(b, ',')
			}
			switch c := c.(type) {
			case *array.Float64:
				b = appendReal(b, c.Value(r))
			case *array.Int32:
				b = fmt.Append(b, c.Value(r))
			case *array.Boolean:
				b = fmt.Append(b, map[bool]int{true: 1}[c.Value(r)])
			case *array.String:
				b = appendField(b, c.Value(r))
			default:
				t.Fatalf("column %d has type %s", k, c.DataType())
			}
			if c.IsNull(r) {
				t.Fatalf("column %d has no value in row %d", k, r)
			}
		}
		b = append(b, '\n')
	}
	return b
}

// tableRows reads a result file of any format as the rows of a CSV table.
func tableRows(t *testing.T, f Format, path string) string {
	t.Helper()
	data := mustRead(t, path)
	switch f {
	case CSV:
		_, rows, _ := strings.Cut(string(data), "\n")
		return rows
	case ArrowStream:
		rows, _, err := arrowRows(t, bytes.NewReader(data))
		must(t, err)
		return rows
	}
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	must(t, err)
	var b []byte
	for i := range r.NumRecords() {
		batch, err := r.RecordBatch(i)
		must(t, err)
		b = appendBatch(t, b, batch)
	}
	return string(b)
}

// Every format holds the same values, in the types of the variables; columns say what
// they are.
func TestFormatsAgree(t *testing.T) {
	sys := testSystem(t)
	sys.Infos[0].Out[0].Unit = "N"
	describe := func(name string) Description {
		if name == "all.y" {
			return Description{"the force", "output", "continuous"}
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
		if err := c.End(master.Result{}); err != nil || c.Rows() != rows || c.Columns() != 15 {
			t.Fatal(err, c.Rows(), c.Columns())
		}
		got := tableRows(t, f, path)
		if f == CSV {
			want = got
		}
		if got != want || strings.Count(want, "row ") != rows {
			t.Fatalf("%v: the rows differ from those of CSV", f)
		}
		if f == CSV {
			continue
		}
		data, _ := os.ReadFile(path)
		s, err := ipc.NewReader(bytes.NewReader(stream(f, data)))
		must(t, err)
		var have []string
		for _, field := range s.Schema().Fields() {
			have = append(have, strings.TrimSpace(fmt.Sprint(field.Name, " ", field.Type, " ", field.Metadata.String())))
		}
		slices.Sort(have)
		for _, text := range []string{
			`time float64 ["unit": "s", "description": "communication point", "causality": "independent", "variability": "continuous"]`,
			`all.y float64 ["unit": "N", "description": "the force", "causality": "output", "variability": "continuous"]`,
			`bond.P float64 ["unit": "W"]`, "all.n int32 []", "all.ok bool []", "all.s utf8 []",
		} {
			if !slices.Contains(have, text) {
				t.Errorf("%v: there is no column\n%s among\n%s", f, text, strings.Join(have, "\n"))
			}
		}
	}
}

// stream returns what a reader of streams takes of a file.
func stream(f Format, data []byte) []byte {
	if f == ArrowFile {
		return data[arrowMagic:]
	}
	return data
}

// checkpoint brings all rows to the file.
func checkpoint(c *Table) error {
	a := master.NewArchive()
	c.Archive(a)
	return a.Err()
}

// Wherever an Arrow file ends, its whole batches can be read as a stream. Flushes cut no
// batches; checkpoints do.
func TestArrowPrefix(t *testing.T) {
	sys := testSystem(t)
	for _, f := range []Format{ArrowFile, ArrowStream} {
		path := filepath.Join(t.TempDir(), "r")
		c := begun(t, sys, path, Options{Format: f})
		var ends []int // of the file after each checkpoint
		for i := range 60 {
			recordRows(t, c, sys, i, i+1)
			if i%3 == 1 {
				must(t, c.Flush())
			}
			if i%20 == 19 {
				must(t, checkpoint(c))
				ends = append(ends, len(mustRead(t, path)))
			}
		}
		data := mustRead(t, path)
		if _, n, err := arrowRows(t, bytes.NewReader(stream(f, data))); n != 1+len(ends) || err != nil {
			t.Errorf("%v: %d batches after %d checkpoints: %v", f, n, len(ends), err)
		}
		for n := ends[0]; n <= ends[2]; n += 7 {
			rows, _, err := arrowRows(t, bytes.NewReader(stream(f, data[:n])))
			at, exact := slices.BinarySearch(ends, n)
			whole := 20 * at
			if exact {
				whole += 20
			}
			if strings.Count(rows, "row ") != whole || exact && err != nil {
				t.Fatalf("%v, %d of %d bytes: %d rows, want %d: %v", f, n, len(data), strings.Count(rows, "row "), whole, err)
			}
		}
		must(t, c.End(master.Result{}))
	}
}

// Equal runs give equal files, whatever the clock and the scheduler do meanwhile.
func TestArrowEqual(t *testing.T) {
	sys := testSystem(t)
	for _, f := range []Format{ArrowFile, ArrowStream} {
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
		if !bytes.Equal(files[0], files[1]) || len(files[0]) < 1<<20 {
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
	for path, want := range map[string]Format{"r.csv": CSV, "r": CSV, "r.txt": CSV, "a/R.Arrow": ArrowFile, "r.feather": ArrowFile, "r.arrows": ArrowStream, "/dev/stdout": CSV} {
		if f, err := FormatOf(path); f != want || err != nil {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	if _, err := FormatOf("r.parquet"); err == nil || !strings.Contains(err.Error(), "name a .csv") {
		t.Error(err)
	}
}
