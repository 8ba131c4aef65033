package results

import (
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func table(t testing.TB, text string) *Table {
	t.Helper()
	got, err := parseText(text, ReadOptions{})
	must(t, err)
	return got
}

// Values that were computed by hand.
func TestCompare(t *testing.T) {
	const a = "time,x\n0,0\n1,1\n2,2\n"
	for _, tt := range []struct {
		name, a, b     string
		o              CompareOptions
		max, at, nrmse float64
		points         int
		agrees         bool
	}{
		{name: "equal", a: a, b: a, points: 3, agrees: true},
		// Differences 0, 0.3, -0.4: mean square 0.25/3, range 2.
		{name: "rows", a: a, b: "time,x\n0,0\n1,1.3\n2,1.6\n", max: 0.4, at: 2, nrmse: math.Sqrt(0.25/3) / 2, points: 3},
		// By time the weights are 1/2, 1, 1/2: (0.09 + 0.08)/2.
		{name: "by time", a: a, b: "time,x\n0,0\n1,1.3\n2,1.6\n", o: CompareOptions{ByTime: true}, max: 0.4, at: 2, nrmse: math.Sqrt(0.17/2) / 2, points: 3},
		// Norm: root of (0+1+4)/3.
		{name: "rms", a: a, b: "time,x\n0,0\n1,1.3\n2,1.6\n", o: CompareOptions{Norm: RMS}, max: 0.4, at: 2, nrmse: math.Sqrt(0.25/3) / math.Sqrt(5.0/3), points: 3},
		// A is 0.5 at 0.5, and B is 0.875 + (2.375−0.875)/3 at 1.
		{name: "another grid", a: a, b: "time,x\n0,0\n0.5,0.875\n2,2.375\n", max: 0.375, at: 0.5, nrmse: 0.375 * math.Sqrt(3.0/4) / 2, points: 4},
		// At 1, B goes from 1 to 5, and A stays at 1.
		{name: "jump in B", a: a, b: "time,x\n0,0\n1,1\n1,5\n2,2\n", max: 4, at: 1, nrmse: math.Sqrt(16.0/4) / 2, points: 4},
		{name: "jumps in both", a: "time,x\n0,0\n1,1\n1,5\n2,2\n", b: "time,x\n0,0\n1,1\n1,5.5\n2,2\n", max: 0.5, at: 1, nrmse: math.Sqrt(0.25/4) / 5, points: 4},
		// Between 1 and 2, A goes from 5 to 2, not from 1.
		{name: "between jumps", a: "time,x\n0,0\n1,1\n1,5\n2,2\n", b: "time,x\n0,0\n1,1\n1,5\n1.5,3\n2,2\n", max: 0.5, at: 1.5, nrmse: math.Sqrt(0.25/5) / 5, points: 5},
		{name: "part of the time", a: a, b: "time,x\n1,1\n2,2.1\n3,7\n", max: 0.1, at: 2, nrmse: math.Sqrt(0.01/2) / 1, points: 2},
		{name: "constant", a: "time,x\n0,4\n1,4\n", b: "time,x\n0,4\n1,4.4\n", o: CompareOptions{RelTol: []Tolerance{{Value: 0.11}}}, max: 0.4, at: 1, nrmse: math.Sqrt(0.16/2) / 4, points: 2, agrees: true},
		{name: "zero", a: "time,x\n0,0\n1,0\n", b: "time,x\n0,0\n1,0\n", points: 2, agrees: true},
		{name: "zero and not", a: "time,x\n0,0\n1,0\n", b: "time,x\n0,0\n1,1e-9\n", max: 1e-9, at: 1, nrmse: math.NaN(), points: 2},
		{name: "zero within", a: "time,x\n0,0\n1,0\n", b: "time,x\n0,0\n1,1e-9\n", o: CompareOptions{AbsTol: []Tolerance{{Value: 1e-8}}}, max: 1e-9, at: 1, nrmse: math.NaN(), points: 2, agrees: true},
		{name: "both NaN", a: "time,x\n0,0\n1,NaN\n2,2\n", b: "time,x\n0,0\n1,nan\n2,2\n", points: 3, agrees: true},
		{name: "one NaN", a: a, b: "time,x\n0,0\n1,\n2,2\n", points: 3},
		{name: "infinite", a: "time,x\n0,0\n1,Inf\n2,2\n", b: "time,x\n0,0\n1,1.#INF\n2,2\n", points: 3, agrees: true},
		{name: "infinite the other way", a: "time,x\n0,0\n1,Inf\n2,2\n", b: "time,x\n0,0\n1,-Inf\n2,2\n", points: 3},
		{name: "tolerance", a: a, b: "time,x\n0,0\n1,1.3\n2,1.6\n", o: CompareOptions{RelTol: []Tolerance{{Value: 0.2000001}}}, max: 0.4, at: 2, nrmse: math.Sqrt(0.25/3) / 2, points: 3, agrees: true},
		{name: "last tolerance", a: a, b: "time,x\n0,0\n1,1.3\n2,1.6\n", o: CompareOptions{RelTol: []Tolerance{{Value: 1}, {Match: func(n string) bool { return n == "x" }, Value: 0.1}}}, max: 0.4, at: 2, nrmse: math.Sqrt(0.25/3) / 2, points: 3},
		{name: "NRMSE bounded", a: a, b: "time,x\n0,0\n1,1.3\n2,1.6\n", o: CompareOptions{RelTol: []Tolerance{{Value: 1}}, MeanTol: []Tolerance{{Value: 0.1}}}, max: 0.4, at: 2, nrmse: math.Sqrt(0.25/3) / 2, points: 3},
		{name: "rounded times", a: "time,x\n0,0\n0.1,1\n0.2,0\n", b: "time,x\n0,0\n0.100000001,1\n0.2,0\n", points: 3, agrees: true},
		{name: "huge", a: "time,x\n0,-1e308\n1,1e308\n", b: "time,x\n0,-1e308\n1,0\n", o: CompareOptions{Norm: RMS}, max: 1e308, at: 1, nrmse: math.Sqrt(0.5), points: 2},
	} {
		c, err := Compare(table(t, tt.a), table(t, tt.b), tt.o)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		d := c.Variables[0]
		close := func(got, want float64) bool {
			return got == want || math.IsNaN(got) && math.IsNaN(want) || math.Abs(got-want) <= 1e-12*math.Abs(want)
		}
		if !close(d.Max, tt.max) || d.At != tt.at || !close(d.NRMSE, tt.nrmse) || c.Points != tt.points || d.Agrees != tt.agrees {
			t.Errorf("%s: max %g at %g, NRMSE %g, %d points, agrees %v; want %g at %g, %g, %d, %v", tt.name,
				d.Max, d.At, d.NRMSE, c.Points, d.Agrees, tt.max, tt.at, tt.nrmse, tt.points, tt.agrees)
		}
	}
}

// Values whose differences overflow are compared exactly.
func TestCompareHuge(t *testing.T) {
	a, b := table(t, "time,x\n0,1e308\n1,-1e308\n"), table(t, "time,x\n0,1e308\n1,0\n")
	for rel, agree := range map[float64]bool{1e-3: false, 0.49: false, 0.51: true} { // the range is 2e308
		c, err := Compare(a, b, CompareOptions{RelTol: []Tolerance{{Value: rel}}, MeanTol: []Tolerance{{Value: 0.36}}})
		if err != nil || c.Agree() != agree {
			t.Fatalf("within %g: %+v, %v", rel, c, err)
		}
		if d := c.Variables[0]; d.Max != 1e308 || d.Scale != math.MaxFloat64 || math.Abs(d.NRMSE-math.Sqrt2/4) > 1e-15 || !finite(d.RMSE) || !finite(d.Limit) || d.A != -1e308 {
			t.Errorf("%+v", d)
		}
	}
	c, err := Compare(a, table(t, "time,x\n0,-1e308\n1,-1e308\n"), CompareOptions{RelTol: []Tolerance{{Value: 0.99}}})
	if err != nil || c.Agree() || c.Variables[0].Max != math.MaxFloat64 || math.Abs(c.Variables[0].NRMSE-math.Sqrt(0.5)) > 1e-15 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, e := c.Errors(0); e[0] != -math.MaxFloat64 || e[1] != 0 {
		t.Errorf("%g", e)
	}
}

// Notes and errors of a comparison, and the variables that are compared.
func TestCompareTells(t *testing.T) {
	a := table(t, "time,car.v,car.F,car.s,name.x\n0,0,1,2,on\n1,1,1,2,off\n2,2,1,2,off\n")
	b := table(t, "Time;root.car.v [m/s];Car F;z\n0,5;0,5;1;9\n1;1;1;9\n3;1;1;9\n")
	c, err := Compare(a, b, CompareOptions{Match: map[string]string{"car.F": "Car F"}})
	must(t, err)
	var names []string
	for _, d := range c.Variables {
		names = append(names, d.Name+"="+d.InB)
	}
	if !slices.Equal(names, []string{"car.v=root.car.v", "car.F=Car F"}) || !slices.Equal(c.OnlyA, []string{"car.s", "name.x"}) || !slices.Equal(c.OnlyB, []string{"z"}) {
		t.Errorf("variables %v, only in A %v, only in B %v", names, c.OnlyA, c.OnlyB)
	}
	if c.From != 0.5 || c.To != 2 || c.OutsideA != 1 || c.OutsideB != 1 || c.InterpolatedA != 1 || c.InterpolatedB != 1 || c.Points != 3 {
		t.Errorf("%+v", c)
	}
	if !slices.Contains(c.Notes, "names of B are taken without root.") || !slices.Equal(b.Notes, []string{"fields are separated by semicolons", "decimal commas"}) {
		t.Errorf("notes %q, %q", c.Notes, b.Notes)
	}
	for want, o := range map[string]CompareOptions{
		`r.csv has no variable car.w; did you mean "car.v"?`: {Match: map[string]string{"car.w": "z"}},
		"r.csv has no variable w":                            {Match: map[string]string{"car.v": "w"}},
	} {
		if _, err := Compare(a, b, o); err == nil || err.Error() != want {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if _, err := Compare(a, table(t, "time,car.v\n5,1\n6,1\n"), CompareOptions{}); err == nil || !strings.Contains(err.Error(), "no time in common: one holds 0 to 2 s, the other 5 to 6 s") {
		t.Error(err)
	}
	c, err = Compare(table(t, "time,y,x\n0,9,0\n1,9,1\n2,9,2\n"), table(t, "time,x\n0,0\n1,1\n1,5\n2,NaN\n"), CompareOptions{})
	must(t, err)
	at, e := c.Errors(0)
	if !slices.Equal(at, []float64{0, 1, 1, 2}) || !slices.Equal(e[:3], []float64{0, 0, 4}) || !math.IsNaN(e[3]) {
		t.Errorf("%v, %v", at, e)
	}
	// Two variables may be meant.
	c, err = Compare(table(t, "time,v\n0,1\n1,1\n"), table(t, "time,a.v,b.v\n0,1,2\n1,1,2\n"), CompareOptions{})
	if err != nil || len(c.Variables) != 0 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "--match") {
		t.Errorf("%+v, %v", c, err)
	}
	// Texts are not compared, and it is said.
	c, err = Compare(a, a, CompareOptions{Select: func(n string) bool { return n == "name.x" }})
	if err != nil || len(c.Variables) != 0 || !slices.Equal(c.Notes, []string{`name.x holds texts and is not compared: "on" in line 2 is not a number`}) {
		t.Errorf("%+v, %v", c, err)
	}
	// Separators of thousands are pointed at.
	for cells, want := range map[string]string{
		"0;1.234,5\n":        `x holds texts and is not compared: "1.234,5" in line 2 is not a number; write numbers without separators of thousands`,
		"0;5\n1;1,234,567\n": `x holds texts and is not compared: "1,234,567" in line 3 is not a number; write numbers without separators of thousands`,
		"0;1.2.3\n":          `x holds texts and is not compared: "1.2.3" in line 2 is not a number`,
	} {
		text := "time;x\n" + cells
		c, err = Compare(table(t, "time,x\n0,1\n"), table(t, text), CompareOptions{})
		if err != nil || !slices.Equal(c.Notes, []string{want}) {
			t.Errorf("%q, %v; want %s", c.Notes, err, want)
		}
	}
	// Units that contradict each other.
	c, err = Compare(table(t, "time,v [m/s]\n0,1\n"), table(t, "time,v [km/h]\n0,1\n"), CompareOptions{})
	if err != nil || len(c.Variables) != 1 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "in m/s and in km/h") {
		t.Errorf("%+v, %v", c, err)
	}
}

// Names of which one is the end of the other are matched if no other name comes into question.
func TestMatchEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	names := func() (list []Column) {
		for range 1 + rng.IntN(12) {
			var parts []string
			for range 1 + rng.IntN(3) {
				parts = append(parts, []string{"a", "b", "ab", ""}[rng.IntN(4)])
			}
			list = append(list, Column{Bare: strings.Join(parts, ".")})
		}
		return list
	}
	for range 500 {
		a, b := &Table{Columns: names()}, &Table{Columns: names()}
		inB, taken := make([]int, len(a.Columns)), make([]bool, len(b.Columns))
		ends := func(i, k int) bool {
			na, nb := a.Columns[i].Bare, b.Columns[k].Bare
			return strings.HasSuffix(nb, "."+na) || strings.HasSuffix(na, "."+nb)
		}
		for i := range inB {
			inB[i] = -1
		}
		for k := range taken {
			taken[k] = rng.IntN(4) == 0
		}
		want := slices.Clone(inB)
		for i := range want {
			for k := range taken {
				others := 0 // columns of either table that match the other of the two
				for j := range want {
					if j != i && ends(j, k) {
						others++
					}
				}
				for l := range taken {
					if l != k && !taken[l] && ends(i, l) {
						others++
					}
				}
				if !taken[k] && ends(i, k) && others == 0 {
					want[i] = k
				}
			}
		}
		if matchEnds(a, b, inB, taken, func(int) bool { return true }); !slices.Equal(inB, want) {
			t.Fatalf("%+v\n%+v: %v, want %v", a.Columns, b.Columns, inB, want)
		}
	}
}

// Tables as programs write them.
func TestRead(t *testing.T) {
	for name, text := range map[string]string{
		"own":                    "time,a.x,b.y\n0,1.5,-2\n0.5,0.001,3e-5\n",
		"quoted":                 "\"Time\",\"a.x\",\"b.y\"\n\"0\",\"1.5\",\"-2\"\n\"0.5\",\"0.001\",\"3e-5\"\n",
		"semicolons":             "t;a.x;b.y\r\n0;1.5;-2\r\n0.5;0.001;3E-5\r\n",
		"decimal commas":         "time;a.x;b.y\n0,0;1,5;-2\n0,5;0,001;3,0e-5\n",
		"quoted decimal commas":  "time,a.x,b.y\n0,\"1,5\",-2\n\"0,5\",\"0,001\",\"3e-5\"\n",
		"tabs":                   "Time [s]\ta.x [m]\tb.y\n0\t1.5\t-2\n0.5\t0.001\t3e-5\n",
		"milliseconds":           "time [ms],a.x,b.y\n0,1.5,-2\n500,0.001,3e-5\n",
		"time is not the first":  "a.x,b.y,TIME\n1.5,-2,0\n0.001,3e-5,0.5\n",
		"units in parentheses":   "t (s),a.x (m/s),b.y (N·m)\n0,1.5,-2\n0.5,0.001,3e-5\n",
		"units behind bars":      "t/s,a.x / (m/s),b.y / N\n0,1.5,-2\n0.5,0.001,3e-5\n",
		"row of units":           "time,a.x,b.y\ns,m,N\n0,1.5,-2\n0.5,0.001,3e-5\n",
		"row of units in ms":     "time,a.x,b.y\n[ms],[m],[N]\n0,1.5,-2\n500,0.001,3e-5\n",
		"libcosim":               "Time,StepCount,a.x [3 real output],b.y [4 real input]\n0,0,1.5,-2\n0.5,1,0.001,3e-5\n",
		"spreadsheet":            "\xef\xbb\xbfsep=;\ntime;a.x;b.y\n0;1.5;-2\n0.5;0.001;3e-5",
		"comments":               "# made by X\n# for Y\ntime,a.x,b.y\n0,1.5,-2\n0.5,0.001,3e-5\n",
		"separators at the ends": "time;a.x;b.y;\n0;1.5;-2;\n0.5;0.001;3e-5;\n",
		"breaks off":             "time,a.x,b.y\n0,1.5,-2\n0.5,0.001,3e-5\n1,7",
		"spaces":                 "time, a.x , b.y\n 0, 1.5, -2\n 0.5, 0.001, 3e-5\n",
	} {
		got, err := parseText(text, ReadOptions{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var x, y []float64
		for _, c := range got.Columns {
			switch c.Bare {
			case "a.x":
				x = c.Values
			case "b.y":
				y = c.Values
			}
		}
		if !slices.Equal(got.Times, []float64{0, 0.5}) || !slices.Equal(x, []float64{1.5, 0.001}) || !slices.Equal(y, []float64{-2, 3e-5}) {
			t.Errorf("%s: %v, %v, %v", name, got.Times, x, y)
		}
	}
	got := table(t, "time,x[1],\"x[2,3]\",der(x),s,b,v [m]\n0,1,2,3,hello,true,\n1,1,2,-nan,\"a,b\",false,0.00120\n")
	var names []string
	for _, c := range got.Columns {
		names = append(names, c.Bare+"|"+c.Unit)
	}
	if !slices.Equal(names, []string{"x[1]|", "x[2,3]|", "der(x)|", "s|", "b|", "v|m"}) {
		t.Errorf("names %q", names)
	}
	if c := got.Columns; !c[3].Text || c[3].Values != nil || c[4].Text || c[4].Values[0] != 1 || !math.IsNaN(c[2].Values[1]) || !math.IsNaN(c[5].Values[0]) || c[5].Digits != 3 {
		t.Errorf("%+v", c)
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "r.csv: the file is empty",
		"a,b\n1,2\n":                  `r.csv:1: no column is called time or t; the columns are "a", "b"; give that of the time this name`,
		"time,a\n":                    "r.csv: there is no row below the header",
		"time,a\n0,1\nx,2\n":          `r.csv:3: time: "x" is not a finite number`,
		"time,a\n0,1\nNaN,2\n":        `r.csv:3: time: "NaN" is not a finite number`,
		"time,a\n1,1\n0,2\n":          "r.csv:3: time 0 is before the time 1 of the row above",
		"time,a\n0,1\n1,2,3\n2,2\n":   "r.csv:3: this row has 3 fields, and the header names 2",
		"time,a\n0\n1,2\n":            "r.csv:2: this row has 1 fields",
		"time,a\n0,\"1\n":             "r.csv:2: extraneous or missing \" in quoted-field; close the quotes",
		"# c\ntime;a\n0;1,5\n1;2.5\n": "r.csv:3: there is a decimal comma, and in line 4 a decimal point",
		"time [weeks],a\n0,1\n":       `r.csv:1: the unit "weeks" of the time is not one of s, ms`,
		"ARROW1\x00\x00":              "r.csv is Apache Arrow, which is not read; write it as Parquet",
		"\xff\xff\xff\xff\x10":        "r.csv is Apache Arrow, which is not read; write it as Parquet",
		"PK\x03\x04\x00":              "r.csv is a zip archive or spreadsheet, which is not read; write it as CSV",
		"MATLAB 5.0 MAT-file, x":      "r.csv is a MAT of level 5, which is not read; write a table to Parquet (parquetwrite)",
		"\x00\x01":                    "r.csv is neither text, Parquet nor a MAT of a trajectory",
		"\x89HDF\r\n":                 "r.csv is HDF5, which is not read; write it as Parquet or CSV",
		"\x89MSCKP\r\n\x00":           "r.csv is a checkpoint, not a table; macrostep run --resume continues its run",
		"\xef\xbb\xbf<!DOCTYPE html>": "r.csv is XML or HTML, not a table; name the table itself",
		"{\n  \"status\": \"ok\"":     "r.csv is JSON, perhaps the manifest of a run, not a table; name the table itself",
		"run,a,status,verdict,engine\n1,2,ok,none,x\n": "r.csv is the table of a study",
		"PAR1 and no more":            "r.csv cannot be read as Parquet: it has no footer; name a complete file",
		"time,a\n-1e308,1\n1e308,2\n": "r.csv: the time span from -1e+308 to 1e+308 s is too large for a number",
		"sep=|\ntime|a\n0|1\n":        "the separator '|' is not a comma, semicolon or tab",
	} {
		if _, err := parseText(text, ReadOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
	if _, err := parseText("clock,a\n0,1\n", ReadOptions{TimeColumn: "clock"}); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{
		"a.SSP": "a.SSP is a system, not a table; macrostep run simulates it", "a.fmu": "a.fmu is an FMU, not a table; macrostep run",
		"a.parquet": "a.parquet is a zip archive",
	} {
		if err := Stranger(path, []byte("PK\x03\x04")); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	path := filepath.Join(t.TempDir(), "r.csv")
	if _, err := Read(path, ReadOptions{}); err == nil {
		t.Error("there is no such file")
	}
	// A header is read without the rows.
	must(t, os.WriteFile(path, []byte("# made by hand\na.v [m/s];time;b.x\n1,5;0;broken"), 0o600))
	columns, err := Header(path)
	if err != nil || len(columns) != 2 || columns[0].Bare != "a.v" || columns[0].Unit != "m/s" || columns[1].Name != "b.x" {
		t.Errorf("%+v, %v", columns, err)
	}
	if got, err := Read(path, ReadOptions{}); err != nil || got.Path != path || len(got.Times) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("time,a\n0,1\n1,2\n")
	f.Add("sep=;\nt;\"a [m]\"\ns;m\n0,5;1,5\n")
	f.Add(string(parquetTable(f)))
	f.Add(string(matTable(true, binary.LittleEndian)))
	f.Add("# c\nTime [ms]\tb (N)\n1\t2\t\n1\t3")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parseText(text, ReadOptions{})
		if err != nil {
			return
		}
		for _, c := range a.Columns {
			if !c.Text && len(c.Values) != len(a.Times) {
				t.Fatalf("%d values of %s in %d rows", len(c.Values), c.Name, len(a.Times))
			}
		}
		// A table is equal to itself.
		c, err := Compare(a, a, CompareOptions{})
		if err != nil || !c.Agree() || len(c.OnlyA) > 0 {
			t.Fatalf("%+v, %v", c, err)
		}
	})
}

func parseText(text string, o ReadOptions) (*Table, error) {
	return parse(strings.NewReader(text), int64(len(text)), "r.csv", o)
}

// Only what is chosen is kept, and not more than there is room for.
func TestReadSome(t *testing.T) {
	for _, text := range []string{
		"time,a.x [m/s],a.n,b\n0,1,2,x\n1,2,3,x\n", string(parquetTable(t)), string(matTable(true, binary.LittleEndian)), string(matTable(false, binary.LittleEndian)),
	} {
		got, err := parseText(text, ReadOptions{Select: func(name string) bool { return name == "a.x" }, MostValues: 12})
		if err != nil || len(got.Columns) != 1 || got.Columns[0].Bare != "a.x" || got.Columns[0].Unit != "m/s" || got.Columns[0].Values[1] == got.Columns[0].Values[0] {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err = parseText(text, ReadOptions{MostValues: 7}); err == nil || !strings.Contains(err.Error(), "choose some of them") {
			t.Error(err)
		}
	}
}

// thin returns the points that are kept of so many.
func thin(times, values []float64, spans int) (t, v []float64) {
	h := NewThinner(spans)
	for i := range times {
		h.Add(times[i], values[i])
	}
	return h.Points(nil, nil)
}

// Every peak is there, the ends are, no point is made up, and there are few.
func TestThin(t *testing.T) {
	const n, spans = 100_001, 500
	for _, step := range []func(i int) float64{
		func(i int) float64 { return 1e-3 },
		func(i int) float64 { return 1e-3 * (1 + math.Sin(float64(i)*1e-3)) }, // variable steps, also of almost nothing
		func(i int) float64 { return float64(i % 2) },                         // two rows at each time
	} {
		times, values := make([]float64, n), make([]float64, n)
		for i := range n {
			if values[i] = math.Sin(float64(i) * 1e-2); i > 0 {
				times[i] = times[i-1] + step(i)
			}
		}
		values[31_415], values[31_416] = 7, -9
		gt, gv := thin(times, values, spans)
		if len(gt) > 4*spans || len(gt) < spans || len(gt) != len(gv) {
			t.Fatalf("%d points", len(gt))
		}
		if slices.Max(gv) != 7 || slices.Min(gv) != -9 || gt[0] != 0 || gt[len(gt)-1] != times[n-1] || gv[len(gv)-1] != values[n-1] {
			t.Errorf("greatest %g, least %g, from %g to %g", slices.Max(gv), slices.Min(gv), gt[0], gt[len(gt)-1])
		}
		at := 0
		for i := range gt {
			for at < n && (times[at] != gt[i] || values[at] != gv[i]) {
				at++
			}
			if at == n {
				t.Fatalf("the point %g, %g is not one of those given, in their order", gt[i], gv[i])
			}
		}
		// In each of many parts of the time they reach as far as all do.
		width := 0.0
		h := NewThinner(spans)
		for i := range times {
			h.Add(times[i], values[i])
		}
		width = h.width
		reach := func(times, values []float64) map[int][2]float64 {
			reached := map[int][2]float64{}
			for i, at := range times {
				s := int(at / width)
				r, ok := reached[s]
				if !ok {
					r = [2]float64{values[i], values[i]}
				}
				reached[s] = [2]float64{min(r[0], values[i]), max(r[1], values[i])}
			}
			return reached
		}
		if !maps.Equal(reach(times, values), reach(gt, gv)) {
			t.Error("a span does not reach as far as its points do")
		}
	}
	// Few points stay all, jumps and gaps too.
	gt, gv := thin([]float64{0, 1, 1, 2, 3, 4}, []float64{1, 1, 2, math.NaN(), math.Inf(1), 5}, 10)
	if !slices.Equal(gt, []float64{0, 1, 1, 4, 4}) || gv[2] != 2 || !math.IsNaN(gv[3]) || gv[4] != 5 {
		t.Errorf("%v, %v", gt, gv)
	}
	if gt, gv := thin(nil, nil, 10); gt != nil || gv != nil {
		t.Errorf("%v, %v", gt, gv)
	}
	if gt, _ = thin([]float64{2, 2}, []float64{1, 3}, 10); !slices.Equal(gt, []float64{2, 2}) {
		t.Errorf("%v", gt)
	}
	h := NewThinner(4)
	for i := range 1000 {
		h.Add(float64(i), math.NaN())
	}
	if given, bad := h.Given(); given != 1000 || bad != 1000 || len(h.spans) != 0 {
		t.Errorf("%d given, %d bad", given, bad)
	}
}

// What is told piece by piece is what is told at once.
func TestThinNews(t *testing.T) {
	h := NewThinner(64)
	var gt, gv []float64 // as a page keeps them
	var known Known
	resets := 0
	for i := range 5000 {
		h.Add(float64(i), float64(i*i%97))
		if i%37 != 0 && i != 4999 {
			continue
		}
		keep, nt, nv, any := h.News(&known, nil, nil)
		if keep == 0 {
			resets++
		}
		gt, gv = append(gt[:keep], nt...), append(gv[:keep], nv...)
		if _, _, _, again := h.News(&known, nil, nil); !any || again {
			t.Fatal("news are told once")
		}
	}
	wt, wv := h.Points(nil, nil)
	if !slices.Equal(gt, wt) || !slices.Equal(gv, wv) || resets < 2 || resets > 20 {
		t.Errorf("%d and %d points, told from the beginning %d times", len(gt), len(wt), resets)
	}
}

func TestThinAllocatesNothing(t *testing.T) {
	h := NewThinner(64)
	i := 0
	add := func() {
		h.Add(float64(i), float64(i%7))
		i++
	}
	for range 1000 {
		add()
	}
	if n := testing.AllocsPerRun(1000, add); n != 0 {
		t.Errorf("%g allocations a point", n)
	}
}

// Units that are known are converted, by hand: 36 km/h are 10 m/s, 100 bar 1e7 Pa, 20 °C
// 293.15 K, 3000 rpm 314.159… rad/s. What is not known, or ambiguous, is not.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		from, to string
		v, want  float64
	}{
		{"km/h", "m/s", 36, 10}, {"bar", "Pa", 100, 1e7}, {"°C", "K", 20, 293.15}, {"degC", "degF", 100, 212}, {"rpm", "rad/s", 3000, 100 * math.Pi}, {"deg", "rad", 180, math.Pi},
		{"kN.m", "N*m", 2, 2000}, {"kg.m2/s2", "J", 3, 3}, {"J", "N.m", 3, 3}, {"W/(m2.K)", "kg/(s3.K)", 5, 5}, {"m/s^2", "mm/s²", 1, 1000}, {"l/min", "m3/s", 60, 1e-3}, {"%", "1", 50, 0.5}, {"kWh", "MJ", 1, 3.6}, {"1/s", "Hz", 2, 2}, {"s-1", "1/min", 1, 60},
	} {
		got, ok := (&Column{Unit: c.from, Values: []float64{c.v}}).In(c.to)
		if !ok || math.Abs(got.Values[0]-c.want) > 1e-12*c.want {
			t.Errorf("%g %s are %v %s, not %g", c.v, c.from, got.Values, c.to, c.want)
		}
	}
	for _, c := range [][2]string{{"m", "s"}, {"furlong", "m"}, {"W/m2.K", "W/(m2.K)"}, {"degC/s", "K/s"}, {"rad/s", "1/s"}, {"m99", "m"}, {"", "m"}} {
		if got, ok := (&Column{Unit: c[0], Values: []float64{1}}).In(c[1]); ok {
			t.Errorf("1 %s is %v %s", c[0], got.Values, c[1])
		}
	}
	a := &Table{Path: "a", Times: []float64{0, 1}, Columns: []Column{{Name: "v [m/s]", Bare: "v", Unit: "m/s", Values: []float64{0, 10}}}}
	b := &Table{Path: "b", Times: []float64{0, 1}, Columns: []Column{{Name: "v [km/h]", Bare: "v", Unit: "km/h", Values: []float64{0, 36.36}}}}
	c, err := Compare(a, b, CompareOptions{})
	if err != nil || math.Abs(c.Variables[0].Max-0.1) > 1e-12 || math.Abs(c.Variables[0].B-10.1) > 1e-12 || len(c.Notes) != 1 || !strings.Contains(c.Notes[0], "v is in m/s and in km/h; the second is converted") {
		t.Errorf("%+v, %v", c, err)
	}
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
