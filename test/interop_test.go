package test

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/results"
)

var interop = flag.Bool("interop", false, "read results with scipy and DuckDB")

//go:embed interop/read.py
var readInScipy string

//go:embed interop/query.cjs
var queryInDuckDB string

// Other programs read the recorded values to the bit: of all types, in more than a thousand columns with long names and in
// several row groups, and a table of no rows. DuckDB also runs the commands of docs/results.md.
func TestInterop(t *testing.T) {
	if !*interop {
		return
	}
	for _, rows := range []int{0, 1000} {
		dir := t.TempDir()
		for _, name := range []string{"r.csv", "r.parquet", "r.mat"} {
			recordAll(t, filepath.Join(dir, name), rows)
		}
		var got map[string][]string
		if err := json.Unmarshal([]byte(scipy(t, dir, "r.mat")), &got); err != nil {
			t.Fatal(err)
		}
		if len(got) != 1203 || len(got["time"]) != rows {
			t.Errorf("scipy: %d variables with %d values", len(got), len(got["time"]))
		}
		out := duckDB(t, dir, "CREATE TABLE p AS SELECT * FROM 'r.parquet'", "CREATE TABLE c AS SELECT * FROM p LIMIT 0", "COPY c FROM 'r.csv' (HEADER)",
			"SELECT count(*)::INT, (SELECT count(*)::INT FROM c), (SELECT count(*)::INT FROM (DESCRIBE p)) FROM p",
			"SELECT count(*)::INT FROM (SELECT * FROM p EXCEPT ALL SELECT * FROM c)")
		if want := fmt.Sprintf("[[%d,%d,1204]]\n[[0]]\n", rows, rows); !strings.HasSuffix(out, want) {
			t.Errorf("DuckDB: %s", out)
		}
		if rows == 0 {
			continue
		}
		want, err := results.Read(filepath.Join(dir, "r.csv"), results.ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range want.Columns {
			values := got[c.Name]
			same := c.Text || slices.EqualFunc(values, c.Values, func(hex string, v float64) bool {
				w, err := strconv.ParseFloat(hex, 64)
				return err == nil && (math.Float64bits(v) == math.Float64bits(w) || v != v && w != w)
			})
			if !same {
				t.Errorf("scipy reads %.3v of %s, want %.3v", values, c.Name, c.Values)
			}
		}
	}

	dir := t.TempDir()
	for _, name := range []string{"results.parquet", "results.csv"} {
		call(t, "run", system(t, "quarter-car-a"), "--output", filepath.Join(dir, name)).is(t, 0)
	}
	var queries []string
	for _, m := range regexp.MustCompile(`(?m)^    duckdb -c "(.*)"$`).FindAllStringSubmatch(string(read(t, "../docs/results.md")), -1) {
		queries = append(queries, strings.ReplaceAll(m[1], `\"`, `"`))
	}
	table, err := results.Read(filepath.Join(dir, "results.csv"), results.ReadOptions{Select: func(name string) bool { return name == "chassis.z_c" }})
	if err != nil {
		t.Fatal(err)
	}
	greatest := fmt.Sprintf("[[%v]]\n", slices.Max(table.Columns[0].Values))
	out := duckDB(t, dir, queries...)
	if len(queries) < 2 || !strings.HasPrefix(out, greatest) || !strings.Contains(out, `\"unit\":\"m/s\"`) {
		t.Errorf("DuckDB runs %q and prints\n%s", queries, out)
	}
}

// A run into a MAT reports which strings it leaves out; the other variables are those of the CSV.
func TestMatWithoutStrings(t *testing.T) {
	dir := t.TempDir()
	path, err := fmus.BuildMisbehaving(dir, "worded", "misbehave", map[string]string{"marker": "a word"})
	if err != nil {
		t.Fatal(err)
	}
	mat, csv := filepath.Join(dir, "r.mat"), filepath.Join(dir, "r.csv")
	run := []string{"run", path, "--record", "*", "--stop-time", "1", "--output"}
	call(t, append(run, mat)...).is(t, 0, "a .mat holds no strings and leaves out 3 (worded.marker, worded.victim, worded.trail)")
	call(t, append(run, csv)...).is(t, 0)
	call(t, "compare", csv, mat, "--atol", "0").is(t, 0, "only in A: worded.marker, worded.victim, worded.trail", "all agree")
}

func scipy(t *testing.T, dir, path string) string {
	t.Helper()
	return tool(t, dir, "install scipy, for example with: apt-get install python3-scipy", "/usr/bin/python3", "-c", readInScipy, path)
}

func duckDB(t *testing.T, dir string, queries ...string) string {
	t.Helper()
	return tool(t, dir, "install Node.js, then DuckDB by npm install --prefix DIR @duckdb/node-api, and set NODE_PATH=DIR/node_modules",
		append([]string{"node", "-e", queryInDuckDB, "--"}, queries...)...)
}

// tool returns the output of a program in a folder.
func tool(t *testing.T, dir, remedy string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, remedy, out)
	}
	return string(out)
}

// silent is a subsystem that only has ports.
type silent struct {
	master.Subsystem
	info master.Info
}

func (s *silent) Info() *master.Info { return &s.info }

// recordAll records a table with values of all types.
func recordAll(t *testing.T, path string, rows int) {
	t.Helper()
	s := &silent{info: master.Info{Name: "all", DiscreteOut: []master.Port{
		{Name: "n", Kind: master.Integer}, {Name: "ok", Kind: master.Boolean}, {Name: "s", Kind: master.String},
	}}}
	for i := range 1200 {
		s.info.Out = append(s.info.Out, master.Port{Name: fmt.Sprintf("x%d[%s]", i, strings.Repeat("long", i/5)), Unit: "m"})
	}
	sys, err := master.NewSystem([]master.Subsystem{s}, nil)
	if err != nil {
		t.Fatal(err)
	}
	format, err := record.FormatOf(path)
	if err != nil {
		t.Fatal(err)
	}
	table := record.NewTable(path, record.Options{Format: format})
	if err := table.Begin(sys, nil); err != nil {
		t.Fatal(err)
	}
	p := &master.Point{Y: make([]float64, len(s.info.Out)), DiscreteIn: make([]master.Values, 1), Watch: make([]master.Values, 1),
		DiscreteOut: []master.Values{master.NewValues(s.info.DiscreteOut)}}
	special := []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64}
	for row := range rows {
		p.T = float64(row) / 3
		for i := range p.Y {
			p.Y[i] = math.Sin(float64(row * i))
			if k := (row + i) % 100; k < len(special) {
				p.Y[i] = special[k]
			}
		}
		p.DiscreteOut[0].Integer[0] = math.MinInt32 + int64(row*row)
		p.DiscreteOut[0].Boolean[0] = row%3 == 0
		p.DiscreteOut[0].String[0] = fmt.Sprintf("line %d\nä, \"%s\"", row, strings.Repeat("x", row%7))
		if err := table.Record(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.End(master.Result{}); err != nil {
		t.Fatal(err)
	}
}
