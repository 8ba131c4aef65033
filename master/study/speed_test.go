package study

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

func BenchmarkStudy(b *testing.B) {
	dir := b.TempDir()
	path, err := fmus.WriteSystem(dir, "quarter-car-a")
	if err != nil {
		b.Fatal(err)
	}
	p, err := Parse(filepath.Join(dir, "study.yaml"), []byte(`
system: quarter-car-a.ssp
vary:
  wheel.k_w: linear(100000, 200000)
samples: 2000
collect:
 - maximum(chassis.v_c)
 - minimum(chassis.v_c)
 - final(chassis.v_c)
 - mean(wheel.F_c)
 - rms(wheel.F_c)
`), nil)
	if err != nil {
		b.Fatal(err)
	}
	m, err := Open(b.Context(), p, Options{Request: func(system string, _ []Setting) (simulate.Request, error) {
		return simulate.Request{System: system, Stop: simulate.Number(1), Step: simulate.Number(1e-3), Workers: 1}, nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	v, _ := p.Variants()
	b.Run("study", func(b *testing.B) {
		for b.Loop() {
			r, err := m.Run(context.Background(), v.List[0])
			if err != nil || r.Status != OK {
				b.Fatal(r, err)
			}
		}
	})
	b.Run("loop", func(b *testing.B) {
		model, err := assemble.OpenModel(path, assemble.Options{})
		if err != nil {
			b.Fatal(err)
		}
		sel, _ := record.ParseSelection([]string{"chassis.v_c", "wheel.F_c"})
		for b.Loop() {
			s, err := model.Instantiate(assemble.Assignment{Name: "wheel.k_w", Value: v.List[0].Values[0]})
			if err != nil {
				b.Fatal(err)
			}
			a, _ := algorithms.New("explicit", nil)
			c := record.Columns{Select: sel}
			run, err := master.NewRun(s.System, a.Algorithm, master.Options{Stop: 1, Step: 1e-3, Workers: 1, Recorders: []master.Recorder{&c}})
			if err != nil {
				b.Fatal(err)
			}
			run.Run(context.Background())
			for i := range p.Quantities {
				x, err := c.Real(p.Quantities[i].Variable)
				if err != nil {
					b.Fatal(err)
				}
				p.Quantities[i].of(c.Time(), x)
			}
			s.Close()
		}
	})
}
