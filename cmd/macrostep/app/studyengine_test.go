package app

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/study"
	"github.com/macrostep/macrostep/master/supervise"
)

func TestMain(m *testing.M) {
	supervise.Main(supervise.Config{Works: studyWorks(extensions{dialects: simulate.Dialects(nil)})})
	os.Exit(m.Run())
}

// An engine that ends between two runs is started again; neither run is to blame.
func TestEngineEndsBetweenRuns(t *testing.T) {
	dir := t.TempDir()
	if _, err := fmus.Build(dir, "mass_force"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "plan.yaml")
	text := fmt.Sprintf("{system: %s, vary: {x0: [1, 2]}, run: {stop-time: 1}, collect: {x: final(x)}}", filepath.Join(dir, "mass_force.fmu"))
	plan, err := study.Parse(path, []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram(nil, nil, io.Discard, io.Discard)
	p.newEngine = func() *supervise.Engine { return supervise.New(supervise.Options{}) }
	found, err := study.Inspect(t.Context(), plan, p.studyOptions())
	if err != nil {
		t.Fatal(err)
	}
	f, err := study.Create(filepath.Join(dir, "study"), plan, []byte(text), found)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e := p.studyEngines(f, func(text string) { t.Log(text) })(0)
	defer e.Close()
	for id, value := range []string{"1", "2"} {
		row, err := e.Run(t.Context(), study.Variant{ID: id, Values: []string{value}})
		if err != nil || row.Status != study.OK {
			t.Fatalf("run %d: %+v, %v", id, row, err)
		}
		if err := e.(*studyEngine).engine.Close(); err != nil { // and the next run finds it gone
			t.Error(err)
		}
	}
}
