package study

import (
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
