package study

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// A file of any content is refused with its name, or gives a design whose runs have a value of each factor.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"system: s\nvary: {a.x: 'linear(0, 1, 3)', run.algorithm: [explicit]}\ncollect: {y: maximum(a.x)}\n",
		"{system: s, vary: {a.x: 'normal(0, 1)'}, design: halton, samples: 3, seed: 4, collect: ['crossing(a.x, 1, up)', 'value(a.x, 1)']}",
		"{system: s, vary: {a.x: 'log(1, 2)'}, optimise: {minimise: y, method: cma-es}, collect: {y: rms(a.x)}, time-limit: 3s, max-instances: {a: 1}}",
		"{system: s, convergence: {of: [y], from: 1, divide: 2, most: 3}, collect: {y: final(a.x)}, run: {param: {order: 1}}, keep: all}",
		"{system: s, vary: {a.x: 'triangular(0, 1, 2)'}, design: morris, levels: 6, samples: 2, collect: [mean(a.x)]}",
	} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "table") || strings.Contains(text, "column") || strings.Contains(text, "fit") || strings.Contains(text, "deviation") {
			return // these read other files
		}
		p, err := Parse(filepath.Join(dir, "plan.yaml"), []byte(text), nil)
		if err != nil {
			if !strings.Contains(err.Error(), "plan.yaml") {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if p.Optimise != nil || p.Convergence != nil {
			return
		}
		v, err := p.Variants()
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range v.List {
			if e.ID != i || len(e.Values) != len(v.Names) {
				t.Fatalf("variant %d: %+v", i, e)
			}
		}
	})
}

// A table of any content is refused with its name and a line, or has rows that can be evaluated and written.
func FuzzResults(f *testing.F) {
	p, err := Parse("plan.yaml", []byte("{system: s, vary: {a.x: [1, 2, 3], a.t: [x, \"y\\r\\nz\"]}, collect: {u: final(a.z), w: mean(a.z)}}"), nil)
	if err != nil {
		f.Fatal(err)
	}
	design, err := p.Variants()
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeHeader(&b, p); err != nil {
		f.Fatal(err)
	}
	header := b.String()
	f.Add("")
	for _, v := range design.List {
		r := p.NoRow(v, OK, "")
		r.Collected[0] = 0.1
		if err := writeRows(&b, r, p.NoRow(v, Crashed, "a \"b\", c")); err != nil {
			f.Fatal(err)
		}
	}
	for _, text := range []string{b.String(), header + "0,1,x,1,NaN,ok,,none,1,0,1,e\n", header + "9,1,x,,,failed,r,none,1,0,1,e\n", header + "0,1,x,Inf,,ok,warning: \x1b,met,1,0,1,\x00\n"} {
		f.Add(text)
		f.Add(byteOrderMark + strings.ReplaceAll(text, "\n", "\r\n"))
		f.Add(text[:len(text)*2/3])
	}
	f.Fuzz(func(t *testing.T, text string) {
		folder := &Folder{Plan: p, places: map[int]int{}}
		whole, err := folder.readRows("results.csv", []byte(text), design.List)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "results.csv:") || !strings.Contains(err.Error(), "made again") {
				t.Errorf("the error has no line or no remedy: %v", err)
			}
			return
		}
		if whole > len(text) || whole > 0 && text[whole-1] != '\n' {
			t.Fatalf("%d of %d bytes are whole", whole, len(text))
		}
		rows := folder.Rows()
		for i := range rows {
			if err := p.CheckRow(design.List[rows[i].ID], &rows[i]); err != nil {
				t.Error(err)
			}
		}
		Summarise(p, &Findings{Rows: rows})
		if err := WriteParquet(io.Discard, p, rows); err != nil {
			t.Error(err)
		}
	})
}
