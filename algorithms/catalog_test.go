package algorithms

import (
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
)

// Every preset has a description and can be made from its defaults.
func TestPresets(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Presets() {
		if p.Name == "" || p.Doc == "" || p.Source == "" || seen[p.Name] {
			t.Errorf("preset %+v is incomplete or a duplicate", p)
		}
		seen[p.Name] = true
		c, err := New(p.Name, nil)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
			continue
		}
		if c.Algorithm == nil || c.Preset != p.Name || len(c.Values) != len(p.Params) || len(c.Notes) > 0 {
			t.Errorf("%s: %+v", p.Name, c)
		}
		for _, q := range p.Params {
			if q.Name == "" || q.Doc == "" || q.Range == "" || c.Values[q.Name] != q.Default {
				t.Errorf("%s: parameter %+v, in force %q", p.Name, q, c.Values[q.Name])
			}
			again, err := New(p.Name, map[string]string{q.Name: q.Default})
			if err != nil || again.Discard != c.Discard {
				t.Errorf("%s: the default of %s is not accepted: %v", p.Name, q.Name, err)
			}
		}
	}
	if !seen[DefaultPreset] {
		t.Errorf("the default %q is no preset", DefaultPreset)
	}
}

// The meaning of each value of each parameter.
func TestParameters(t *testing.T) {
	for _, test := range []struct {
		preset string
		params map[string]string
		want   Config
		notes  int
	}{
		{"explicit", nil, Config{Substeps: 10}, 0},
		{"explicit", map[string]string{"scheme": "gauss-seidel"}, Config{Scheme: GaussSeidel, Substeps: 10}, 0},
		// A number of substeps chooses that delivery, unless another one is given.
		{"explicit", map[string]string{"order": "1", "substeps": "4"}, Config{Order: 1, Substeps: 4, Delivery: Substeps}, 0},
		{"explicit", map[string]string{"order": "1", "substeps": "auto"}, Config{Order: 1, Substeps: 10}, 0},
		{"explicit", map[string]string{"order": "1", "substeps": "4", "delivery": "derivatives"},
			Config{Order: 1, Substeps: 4, Delivery: Derivatives}, 0},
		{"explicit", map[string]string{"order": "1", "delivery": "held"}, Config{Order: 1, Substeps: 10, Delivery: Held}, 0},
		{"gauss-seidel", map[string]string{"sequence": "b,a"},
			Config{Scheme: GaussSeidel, Substeps: 10, Sequence: []string{"b", "a"}}, 0},
		// At order 0, too, since they hold for inputs from outside.
		{"explicit", map[string]string{"substeps": "4"}, Config{Substeps: 4, Delivery: Substeps}, 0},
		{"explicit", map[string]string{"delivery": "held"}, Config{Substeps: 10, Delivery: Held}, 0},
		// Parameters without effect are noted.
		{"explicit", map[string]string{"sequence": "b,a"}, Config{Substeps: 10, Sequence: []string{"b", "a"}}, 1},
	} {
		c, err := New(test.preset, test.params)
		if err != nil {
			t.Errorf("%s %v: %v", test.preset, test.params, err)
			continue
		}
		got := c.Algorithm.(*Coupling).config
		if got.Scheme != test.want.Scheme || got.Order != test.want.Order || got.Substeps != test.want.Substeps ||
			got.Delivery != test.want.Delivery || !slices.Equal(got.Sequence, test.want.Sequence) || len(c.Notes) != test.notes {
			t.Errorf("%s %v: %+v, want %+v; notes %q", test.preset, test.params, got, test.want, c.Notes)
		}
		for name, v := range test.params {
			if c.Values[name] != v {
				t.Errorf("%s %v: %s is %q in force", test.preset, test.params, name, c.Values[name])
			}
		}
	}
	c, err := New("explicit", map[string]string{"discard": "shorten"})
	if err != nil || c.Discard != master.ShortenOnDiscard {
		t.Errorf("discard=shorten: %+v, %v", c, err)
	}
}

// Unknown names and values out of range are refused with a list of what is allowed.
func TestCatalogueRefuses(t *testing.T) {
	for _, test := range []struct{ preset, name, value, want string }{
		{"gaus-seidel", "", "", `no algorithm is called "gaus-seidel"; did you mean "gauss-seidel"?`},
		{"jacobi", "", "", `no algorithm is called "jacobi"; did you mean "explicit"?`},
		{"xyz", "", "", `no algorithm is called "xyz"; choose one of explicit, gauss-seidel`},
		{"explicit", "ordr", "1", `algorithm explicit has no parameter "ordr"; did you mean "order"?`},
		{"explicit", "xyz", "1", `algorithm explicit has no parameter "xyz"; it has scheme, order`},
		{"implicit-euler", "", "", `no algorithm is called "implicit-euler"; choose one of explicit, gauss-seidel`},
		{"explicit", "ordre", "1", `has no parameter "ordre"; it has scheme, order`},
		{"explicit", "order", "6", "order=6: must be a whole number from 0 to 5"},
		{"explicit", "order", "-1", "from 0 to 5"},
		{"explicit", "order", "two", "from 0 to 5"},
		{"explicit", "order", "", "from 0 to 5"},
		{"explicit", "substeps", "0", "from 1 to"},
		{"explicit", "substeps", "99999999999999999999", "from 1 to"},
		{"explicit", "delivery", "fast", "auto, derivatives, substeps or held"},
		{"explicit", "scheme", "implicit", "jacobi or gauss-seidel"},
		{"implicit", "solver.kind", "newton", `fixed-point; did you mean "newton-fd", "newton-los"?`},
		{"explicit", "discard", "ignore", "stop or shorten"},
		{"ex-local", "order", "5", "order=5: must be at most 4: the second solution of ex-local is one order higher"},
		{"ex-local", "control.max-order", "5", "control.max-order=5: must be at most 4"},
		{"ex-local", "control.max-order", "6", "from 0 to 5"},
		{"model-based-corrector", "model.jacobian", "rollback", "were removed: nothing showed where they are wrong"},
	} {
		params := map[string]string{}
		if test.name != "" {
			params[test.name] = test.value
		}
		if _, err := New(test.preset, params); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %s=%s: %v, want … %s", test.preset, test.name, test.value, err, test.want)
		}
	}
}

// Step sizes that contradict each other are refused.
func TestContradictingStepSizes(t *testing.T) {
	for _, params := range []map[string]string{
		{"control.h-min": "1", "control.h-max": "1e-3"}, {"control.h0": "1", "control.h-max": "1e-3"}, {"control.h0": "1e-6", "control.h-min": "1e-3"},
	} {
		for _, preset := range []string{"ex-slocal", "im-milne", "predictor-corrector", "ecco"} {
			if _, err := New(preset, params); err == nil || !strings.Contains(err.Error(), "contradict") {
				t.Errorf("%s %v: %v", preset, params, err)
			}
		}
	}
}
