package test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// batches reads an Arrow stream as far as it goes.
func batches(t *testing.T, data []byte) (rows [][]float64, schema *arrow.Schema, err error) {
	t.Helper()
	r, err := ipc.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, nil, err
	}
	for r.Next() {
		b := r.RecordBatch()
		for i := range int(b.NumRows()) {
			var row []float64
			for _, c := range b.Columns() {
				row = append(row, c.(*array.Float64).Value(i))
			}
			rows = append(rows, row)
		}
	}
	return rows, r.Schema(), r.Err()
}

// A run that is killed leaves its whole record batches, with the rows of a run to CSV;
// columns have the descriptions of their variables. A run that ends leaves a whole file.
func testArrowResults(t *testing.T) {
	t.Parallel()
	dir, model := t.TempDir(), system(t, "quarter-car-a")
	const limited = "1"
	for _, name := range []string{"r.csv", "r.arrow"} {
		if code, out := macrostepIn(t, dir, "run", model, "--step-size", "1e-4", "--stop-time", limited, "--output", name); code != 0 || !strings.Contains(out, name+" (10001 rows, ") {
			t.Fatalf("exit code %d\n%s", code, out)
		}
	}
	lines := strings.Split(string(read(t, filepath.Join(dir, "r.csv"))), "\n")
	same := func(rows [][]float64, all bool) {
		t.Helper()
		if all && len(rows) != len(lines)-2 || len(rows) < 2 {
			t.Fatalf("%d rows, and CSV has %d", len(rows), len(lines)-2)
		}
		for i, row := range rows[:min(len(rows), len(lines)-2)] {
			for k, cell := range strings.Split(lines[i+1], ",") {
				if v, err := strconv.ParseFloat(cell, 64); err != nil || v != row[k] {
					t.Fatalf("row %d, column %d: %v, and CSV has %s", i, k, row[k], cell)
				}
			}
		}
	}
	file, err := ipc.NewFileReader(bytes.NewReader(read(t, filepath.Join(dir, "r.arrow"))))
	if err != nil {
		t.Fatal(err)
	}
	if n := file.NumRecords(); n < 2 {
		t.Errorf("%d batches", n)
	}
	const magic = 8
	rows, schema, err := batches(t, read(t, filepath.Join(dir, "r.arrow"))[magic:])
	if err != nil {
		t.Fatal(err)
	}
	same(rows, true)
	var names []string
	for _, f := range schema.Fields() {
		names = append(names, f.Name)
	}
	if got := strings.Join(names, ","); got != lines[0] {
		t.Errorf("columns %s, and CSV has %s", got, lines[0])
	}
	field, _ := schema.FieldsByName("chassis.v_c")
	if len(field) != 1 {
		t.Fatal("no chassis.v_c among " + lines[0])
	}
	for key, want := range map[string]string{"unit": "m/s", "causality": "output", "variability": "continuous"} {
		if v, _ := field[0].Metadata.GetValue(key); v != want {
			t.Errorf("%s of chassis.v_c: %q", key, v)
		}
	}
	if text, ok := field[0].Metadata.GetValue("description"); !ok || text == "" {
		t.Error("chassis.v_c has no description")
	}

	killed := map[string]*exec.Cmd{}
	for _, name := range []string{"k.arrow", "l.arrows"} {
		cmd := exec.Command(program, "run", model, "--step-size", "1e-4", "--stop-time", "1e6", "--quiet", "--output", name)
		cmd.Dir = dir
		ownCache(t, cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killed[name] = cmd
	}
	begins := map[string]int{"k.arrow": magic, "l.arrows": 0}
	for name, cmd := range killed {
		size := int64(-1)
		until(t, "batches in "+name, func() bool {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Size() == size {
				return false
			}
			size = info.Size()
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || len(data) < magic {
				return false
			}
			rows, _, _ := batches(t, data[begins[name]:])
			return len(rows) >= 2
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the run came to its end")
		}
		data := read(t, filepath.Join(dir, name))     // the engine may still write, and end the file
		rows, _, _ := batches(t, data[begins[name]:]) // the last batch may be cut
		same(rows, false)
		var m struct{ Status string }
		if err := json.Unmarshal(read(t, filepath.Join(dir, strings.TrimSuffix(name, filepath.Ext(name))+".json")), &m); err != nil || m.Status != "incomplete" {
			t.Errorf("the manifest says %q: %v", m.Status, err)
		}
	}
}
