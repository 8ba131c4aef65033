package study

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// The table has typed columns in the order of results.csv, nulls for what is missing, and the same bits.
func TestParquet(t *testing.T) {
	p := mustParse(t, `
system: s.ssp
vary: {z.number: "1, 2", a.text: "explicit, 2"}
collect: {"value(a.z, 1)": "value(a.z, 1)", b: final(a.z)}
`)
	rows := []Row{
		{Variant: Variant{Values: []string{"0.1", "explicit"}}, Collected: []float64{math.Pi, math.Inf(1)}, Status: OK, Verdict: "none", Steps: 1 << 40, Seconds: 0.1, Engine: "ä:1:0"},
		{Variant: Variant{ID: 1, Values: []string{"", ""}}, Collected: []float64{math.NaN(), 5e-324}, Status: Failed, Reason: `it, "failed"`, Rejected: 3},
	}
	var b bytes.Buffer
	if err := WriteParquet(&b, p, rows); err != nil {
		t.Fatal(err)
	}
	file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, c := range file.Root().Columns() {
		got += fmt.Sprintf("%s %s;", c.Name(), c.Type())
	}
	const want = "run INT(64,true);z.number DOUBLE;a.text STRING;value(a.z, 1) DOUBLE;b DOUBLE;status STRING;reason STRING;verdict STRING;" +
		"steps INT(64,true);rejected INT(64,true);seconds DOUBLE;engine STRING;"
	if got != want {
		t.Errorf("columns %s\nwant    %s", got, want)
	}
	read := make([]parquet.Row, 3)
	r := file.RowGroups()[0].Rows()
	defer r.Close()
	n, err := r.ReadRows(read)
	if n != 2 || err != nil && err != io.EOF {
		t.Fatal(n, err)
	}
	for i, want := range []string{
		`0|0.1|explicit|3.141592653589793|+Inf|ok||none|1099511627776|0|0.1|ä:1:0|`,
		`1|<null>|<null>|<null>|5e-324|failed|it, "failed"||0|3|0||`,
	} {
		got := ""
		for _, v := range read[i] {
			got += fmt.Sprintf("%v|", v)
		}
		if got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
}

// A study without rows still has a table.
func TestParquetEmpty(t *testing.T) {
	p := mustParse(t, "system: s.ssp\nvary: {a.x: 1}\ncollect: [final(a.z)]")
	var b bytes.Buffer
	if err := WriteParquet(&b, p, nil); err != nil {
		t.Fatal(err)
	}
	if file, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil || file.NumRows() != 0 {
		t.Error(err)
	}
}
