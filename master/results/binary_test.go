package results

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// show returns the columns of a table as text.
func show(t *Table) (text string) {
	text = fmt.Sprint("time ", t.Times)
	for _, c := range t.Columns {
		text += fmt.Sprint("; ", c.Name)
		if c.Unit != "" {
			text += " in " + c.Unit
		}
		if c.Text {
			text += " text"
			continue
		}
		text += fmt.Sprint(" ", c.Values)
	}
	return text
}

// parquetTable makes a file as other programs write them: two row groups, with dictionaries, nulls and several types.
func parquetTable(t testing.TB) []byte {
	t.Helper()
	n := func(v uint64) *uint64 { return &v }
	x := func(v float64) *float64 { return &v }
	type row struct {
		N      *uint64  `parquet:"a.n,optional,dict,zstd"`
		X      *float64 `parquet:"a.x [m/s],optional"`
		Time   float32  `parquet:"time,split"`
		Flag   bool     `parquet:"flag"`
		Price  int64    `parquet:"price,decimal(2:12),snappy"`
		Name   string   `parquet:"name"`
		Date   int64    `parquet:"date,timestamp"`
		Nested struct {
			I int32 `parquet:"i,delta"`
		} `parquet:"nested"`
		List []float64 `parquet:"list"`
	}
	rows := []row{
		{N: n(math.MaxUint64), Time: 0, X: x(0.1), Flag: true, Price: 1999, Name: "a", Date: 5, List: []float64{1, 2}},
		{Time: 0.5, X: x(math.Inf(1)), Price: -5}, {N: n(7), Time: 0.5}, {N: n(7), Time: 2.5, X: x(math.NaN())},
	}
	rows[2].Nested.I = -9
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	for _, part := range [][]row{rows[:3], rows[3:]} {
		_, err := w.Write(part)
		must(t, err)
		must(t, w.Flush())
	}
	must(t, w.Close())
	return b.Bytes()
}

func TestReadParquet(t *testing.T) {
	raw := parquetTable(t)
	got, err := parseText(string(raw), ReadOptions{})
	must(t, err)
	const want = "time [0 0.5 0.5 2.5]; a.n [1.8446744073709552e+19 NaN 7 7]; a.x [m/s] in m/s [0.1 +Inf NaN NaN]; flag [1 0 0 0]; " +
		"price [19.99 -0.05 0 0]; name text; date text; nested.i [0 0 -9 0]; list.list.element text"
	if text := show(got); strings.ReplaceAll(text, "list.list.element", "list") != strings.ReplaceAll(want, "list.list.element", "list") {
		t.Errorf("%s\nwant %s", text, want)
	}
	if _, err := parseText(string(raw), ReadOptions{TimeColumn: "date"}); err == nil || !strings.Contains(err.Error(), "column date holds no numbers; name a column with the time") {
		t.Error(err)
	}
	if _, err := parseText(string(raw), ReadOptions{TimeColumn: "a.n"}); err == nil || !strings.Contains(err.Error(), "the time in row 2 is NaN") {
		t.Error(err)
	}
	got, err = parseText(string(raw), ReadOptions{Cells: true})
	must(t, err)
	for _, c := range got.Columns {
		want := map[string][]string{"a.n": {"18446744073709551615", "", "7", "7"}, "name": {"a", "", "", ""}}[c.Name]
		if !slices.Equal(c.Cells, want) {
			t.Errorf("cells of %s: %q, want %q", c.Name, c.Cells, want)
		}
	}
	damaged(t, raw)
}

// damaged checks that a damaged file is an error or a table.
func damaged(t *testing.T, raw []byte) {
	t.Helper()
	for i := 0; i < len(raw); i += 3 {
		for _, broken := range [][]byte{raw[:i], slices.Concat(raw[:i], []byte{raw[i] ^ 0xff}, raw[i+1:])} {
			if got, err := parseText(string(broken), ReadOptions{}); err == nil && len(got.Times) == 0 {
				t.Fatalf("byte %d: neither table nor error", i)
			}
		}
	}
}

// matTable makes a trajectory like those of Dymola and OpenModelica: matrices of several types; variables of parameters,
// negated aliases, and a variable with times of its own.
func matTable(transposed bool, order binary.ByteOrder) []byte {
	var b bytes.Buffer
	write := func(v any) { _ = binary.Write(&b, order, v) } // to memory
	// add adds a matrix with the values of a row in each list; turned exchanges rows and columns.
	add := func(name string, kind int32, turned bool, lists ...[]float64) {
		if turned {
			other := make([][]float64, len(lists[0]))
			for _, list := range lists {
				for k, v := range list {
					other[k] = append(other[k], v)
				}
			}
			lists = other
		}
		if order == binary.BigEndian {
			kind += 1000
		}
		write([]int32{kind, int32(len(lists)), int32(len(lists[0])), 0, int32(len(name) + 1)})
		write([]byte(name + "\x00"))
		for k := range lists[0] {
			for _, list := range lists {
				switch kind % 1000 / 10 {
				case 0:
					write(list[k])
				case 1:
					write(float32(list[k]))
				case 2:
					write(int32(list[k]))
				case 3:
					write(int16(list[k]))
				case 5:
					write(byte(list[k]))
				}
			}
		}
	}
	texts := func(list ...string) (out [][]float64) {
		for _, s := range list {
			row := slices.Repeat([]float64{' '}, 24)
			for k := range s {
				row[k] = float64(s[k])
			}
			out = append(out, row)
		}
		return out
	}
	class := "binNormal"
	if transposed {
		class = "binTrans"
	}
	add("Aclass", 51, false, texts("Atrajectory", "1.1", "made by hand", class)...)
	add("name", 51, transposed, texts("Time", "a.x", "minus.x", "a.n", "p", "minus.p", "x[1,2]", "slow")...)
	add("description", 1, transposed, texts("Time in [s]", "Speed [m/s|km/h]", "", "No. [:#(type=Integer)]", "Parameter [N.m]", "", "An element", "")...)
	add("dataInfo", 20, transposed, []float64{0, 1, 0, -1}, []float64{2, 2, 0, -1}, []float64{2, -2, 0, -1}, []float64{2, 3, 0, -1},
		[]float64{1, 2, 0, 0}, []float64{1, -2, 0, 0}, []float64{1, 2, 0, 0}, []float64{3, 2, 1, -1})
	add("data_1", 10, transposed, []float64{0, 7}, []float64{2, 7})
	add("data_2", 30, transposed, []float64{0, 1, 4}, []float64{1, 2, -4}, []float64{1, 3, 0}, []float64{2, 5, 6})
	add("data_3", 0, transposed, []float64{0, 1}, []float64{2, 0.5})
	return b.Bytes()
}

func TestReadMat(t *testing.T) {
	const want = "time [0 1 1 2]; a.x in m/s [1 2 3 5]; minus.x [-1 -2 -3 -5]; a.n [4 -4 0 6]; p in N.m [7 7 7 7]; minus.p [-7 -7 -7 -7]; " +
		"x[1,2] [7 7 7 7]; slow text"
	for _, transposed := range []bool{true, false} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			raw := matTable(transposed, order)
			got, err := parseText(string(raw), ReadOptions{})
			must(t, err)
			if text := show(got); text != want || fmt.Sprint(got.Notes) != "[slow has values at other times than most variables and is left out]" {
				t.Errorf("transposed %v, %v: %s %q\nwant %s", transposed, order, text, got.Notes, want)
			}
		}
	}
	damaged(t, matTable(true, binary.LittleEndian))
	raw := string(matTable(true, binary.LittleEndian))
	for change, want := range map[[2]string]string{
		{"Atrajectory", "Alinearsyst"}: "it is no trajectory",
		{"dataInfo", "dataOutf"}:       "it has no matrix dataInfo",
		{"data_1\x00", "dato_1\x00"}:   "it has no values of p (variable 2 of matrix data_1)",
	} {
		changed := raw
		if change[0] == "Atrajectory" { // its letters are apart
			changed = strings.Replace(raw, "A1mb", "X1mb", 1)
		}
		changed = strings.Replace(changed, change[0], change[1], 1)
		if _, err := parseText(changed, ReadOptions{}); err == nil || !strings.Contains(err.Error(), "r.csv cannot be read as a MAT: "+want) {
			t.Errorf("%v: %v", change, err)
		}
	}
}
