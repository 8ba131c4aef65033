package cluster

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/master/study"
)

// folder makes the folder of a study with so many variants of a system that is never opened.
func folder(t *testing.T, plan string) *study.Folder {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.yaml")
	p, err := study.Parse(path, []byte(plan), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := study.Create(filepath.Join(dir, "study"), p, []byte(plan), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

const plan = `
system: none.ssp
vary: {a.x: "linear(0, 1)"}
samples: 200
collect: {x: final(a.x)}
`

// engineFunc is an engine in this process.
type engineFunc func(ctx context.Context, v study.Variant) (study.Row, error)

func (f engineFunc) Run(ctx context.Context, v study.Variant) (study.Row, error) { return f(ctx, v) }
func (f engineFunc) Close() error                                                { return nil }

func TestRows(t *testing.T) {
	f := folder(t, plan)
	l, err := Serve(ServerOptions{Store: filepath.Join(f.Path, "queue")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := Coordinate(ctx, l, f, false)
	if err != nil {
		t.Fatal(err)
	}
	w := &Worker{Link: l, Identity: c.Identity(), Folder: f.Path, Plan: f.Plan, Engines: 2, New: func(int) Engine {
		return engineFunc(func(_ context.Context, v study.Variant) (study.Row, error) {
			r := f.Plan.NoRow(v, study.OK, "")
			r.Collected[0] = float64(v.ID)
			return r, nil
		})
	}}
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	s := &study.Study{Plan: f.Plan, Folder: f}
	found, err := s.Run(ctx, c)
	if err != nil || len(found.Rows) != 200 {
		t.Errorf("%d rows, %v", len(found.Rows), err)
	}
	cancel()
	running.Wait()
	_ = os.Remove
}
