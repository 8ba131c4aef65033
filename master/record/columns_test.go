package record

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// Columns has the variables of a table, of every kind, and the points of its last run.
func TestColumns(t *testing.T) {
	sys := testSystem(t)
	var c Columns
	if c.Time() != nil || c.Names() != nil {
		t.Error("there is something before the run")
	}
	for range 2 {
		p := testPoint(sys)
		p.Measured = []float64{0.5}
		err := c.Begin(sys, []master.Port{{Name: "residual"}})
		for p.T = 1; p.T < 4; p.T++ {
			err = errors.Join(err, c.Record(p))
			p.Y[0], p.DiscreteOut[0].String[0], p.Watch[2].Boolean[0] = 0, "", true // belongs to the run
		}
		if err := errors.Join(err, c.Flush(), c.End(master.Result{Accepted: 2})); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(c.Time(), []float64{1, 2, 3}) || c.Result.Accepted != 2 {
		t.Errorf("times %v, %d steps", c.Time(), c.Result.Accepted)
	}
	const names = "all.y,all.n,all.ok,all.m,all.s,all.gear,sys.inner.z,sys.inner.u,bare.w,bare.a, b,bare.flag,bare.text,bare.c,residual"
	if got := strings.Join(c.Names(), ","); got != names {
		t.Errorf("names %s", got)
	}
	for name, want := range map[string][]float64{
		"all.y": {6, 0, 0}, "sys.inner.u": {3, 3, 3}, "bare.a, b": {0.1, 0.1, 0.1}, "residual": {0.5, 0.5, 0.5},
	} {
		if got, err := c.Real(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v, not %v: %v", name, got, want, err)
		}
	}
	if v, err := c.Real("bare.c"); err != nil || !math.IsNaN(v[2]) {
		t.Errorf("bare.c is %v: %v", v, err)
	}
	if v, err := c.Integer("all.gear"); err != nil || !slices.Equal(v, []int64{-9, -9, -9}) {
		t.Errorf("all.gear is %v: %v", v, err)
	}
	if v, err := c.Boolean("bare.flag"); err != nil || !slices.Equal(v, []bool{false, true, true}) {
		t.Errorf("bare.flag is %v: %v", v, err)
	}
	if v, err := c.Text("all.s"); err != nil || !slices.Equal(v, []string{`say "a,b"`, "", ""}) {
		t.Errorf("all.s is %v: %v", v, err)
	}
	for name, want := range map[string]string{
		"all.ok": "all.ok is recorded as a Boolean, not as a Real",
		"y":      `no variable "y" was recorded; did you mean "all.y"?`,
		"time":   `no variable "time" was recorded; the recorded variables are all.y, `,
	} {
		if _, err := c.Real(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c.Select = selection(t, "nothing.*")
	if err := c.Begin(sys, nil); err == nil {
		t.Error("a selection of nothing is taken")
	}
}

// Variables are the columns of the table, with what is known of them and their values.
func TestVariables(t *testing.T) {
	sys := testSystem(t)
	l, err := choose(sys, nil, &Options{})
	must(t, err)
	list, err := Variables(sys, nil, Selection{}, nil)
	must(t, err)
	c := &Columns{}
	must(t, c.Begin(sys, nil))
	p := testPoint(sys)
	must(t, c.Record(p))
	equals := map[string]string{"sys.inner.u": "all.y", "all.gear": "all.m"}
	if len(list) != len(l.columns)-1 {
		t.Fatalf("%d variables, %d columns", len(list), len(l.columns)-1)
	}
	for i, v := range list {
		if v.Name != l.columns[1+i].name || v.Kind != l.columns[1+i].kind || v.Equals != equals[v.Name] || v.Held != (v.Kind != master.Real) {
			t.Errorf("%+v", v)
		}
		want := math.NaN()
		switch v.Kind {
		case master.Real:
			values, err := c.Real(v.Name)
			must(t, err)
			want = values[0]
		case master.Integer:
			values, err := c.Integer(v.Name)
			must(t, err)
			want = float64(values[0])
		case master.Boolean:
			values, err := c.Boolean(v.Name)
			must(t, err)
			if want = 0; values[0] {
				want = 1
			}
		case master.String:
			if v.Value != nil {
				t.Errorf("%s has a number", v.Name)
			}
			continue
		}
		if got := v.Value(p); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s is %v, not %v", v.Name, got, want)
		}
	}
	// An input with an external signal may differ from its source.
	list, err = Variables(sys, nil, Selection{}, []string{"sys.inner.u"})
	must(t, err)
	for _, v := range list {
		if v.Name == "sys.inner.u" && v.Equals != "" {
			t.Errorf("%+v", v)
		}
	}
	m := &Manifest{}
	m.Describe(list)
	if m.Connected["all.gear"] != "all.m" || !slices.Contains(m.Held, "all.gear") || slices.Contains(m.Held, "all.y") {
		t.Errorf("%v, %v", m.Connected, m.Held)
	}
}
