package ssp_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// baseFakes are the FMUs of Base.
func baseFakes() Fakes {
	gear := map[string]int64{"park": 0, "drive": 1}
	calc := Out("q", ssp.Real)
	calc.Causality = "calculatedParameter"
	low := 0.0
	k := With(Par("k", ssp.Real), "m", Metre)
	k.Min = &low
	loc := Out("hidden", ssp.Real)
	loc.Causality = "local"
	return Fakes{
		"a":       {With(Out("y", ssp.Real), "m", Metre), Out("n", ssp.Integer), calc, Enum(Out("e", ssp.Enumeration), gear), In("u", ssp.Real), k, loc},
		"inner.b": {With(In("u", ssp.Real), "m", Metre), In("m", ssp.Integer), With(Out("y", ssp.Real), "m", Metre), With(Par("p", ssp.Real), "m", Metre), loc},
	}
}

// A document without faults gives no finding, tolerant or strict, and a network
// known in every part.
func TestSound(t *testing.T) {
	n, l, err := Flatten(t, Base, map[string]string{"set.ssv": BaseSet, "map.ssm": BaseMap}, baseFakes(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range l.Findings {
		t.Errorf("finding: %s", f)
	}
	c := Links(n)["a.y → inner.b.u"]
	if len(n.Connections) != 1 || c.Gain != 2 || c.Offset != 0 || c.Map != nil || c.Type != ssp.Real {
		t.Errorf("connections %+v", n.Connections)
	}
	s := Settings(n)
	if len(s) != 3 || s["a.k"].Value.Real != 30 || s["a.u"].Value.Real != 4 || s["inner.b.p"].Value.Real != 1.5 {
		t.Errorf("settings %+v", n.Settings)
	}
	if p := s["inner.b.p"].From; p.Level != "inner.b" || !strings.HasSuffix(p.Place.File, ssp.DocumentName) || p.Place.Line != lineOf(t, Base, `name="p"`) {
		t.Errorf("provenance %+v", p)
	}
	if len(n.Outputs) != 1 || n.Outputs[0].Name != "result" || n.Outputs[0].From != (ssp.FlatEnd{1, "y"}) {
		t.Errorf("outputs %+v", n.Outputs)
	}
	if *n.Experiment.Start != 0 || *n.Experiment.Stop != 2 {
		t.Errorf("experiment %v", n.Experiment)
	}
	if n.Components[1].Path != "inner.b" || filepath.Base(n.Components[1].Source) != "b.fmu" || !filepath.IsAbs(n.Components[1].Source) {
		t.Errorf("component %+v", n.Components[1])
	}
}

func lineOf(t testing.TB, text, marker string) int {
	t.Helper()
	before, _, found := strings.Cut(text, marker)
	if !found {
		t.Fatalf("%q is not in the document", marker)
	}
	return 1 + strings.Count(before, "\n")
}
