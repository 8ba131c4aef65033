package simulate_test

import (
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp"
)

// signals are the variables of every component: an output y.
type signals map[string]ssp.Variable

func (s signals) Lookup(name string) (ssp.Variable, bool) { v, ok := s[name]; return v, ok }

func (s signals) All() iter.Seq[ssp.Variable] { return maps.Values(s) }

func (s signals) Variables(*ssp.FlatComponent) (ssp.VariableSet, error) { return s, nil }

// annotated reads a document of the components c and d, with annotations at c and at the experiment.
func annotated(t testing.TB, component, experiment string) (n *ssp.Network, findings []diag.Finding, err error) {
	wrap := func(content string) string {
		if content == "" {
			return ""
		}
		return `<Annotations><ssc:Annotation type="com.github.macrostep">` + content + "</ssc:Annotation></Annotations>"
	}
	path := filepath.Join(t.TempDir(), "SystemStructure.ssd")
	must(t, os.WriteFile(path, []byte(`<SystemStructureDescription version="1.0" name="s" xmlns="http://ssp-standard.org/SSP1/SystemStructureDescription"
  xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" xmlns:ms="https://github.com/macrostep/macrostep/ssp/1">
<System name="s"><Elements><Component name="c" source="c.fmu">`+wrap(component)+`</Component><Component name="d" source="d.fmu"/></Elements></System>
<DefaultExperiment>`+wrap(experiment)+`</DefaultExperiment></SystemStructureDescription>`), 0o600))
	var l diag.List
	p, err := ssp.Open(path, &l, simulate.Dialects(nil)...)
	if err != nil {
		return nil, l.Findings, err
	}
	defer p.Close()
	n, err = p.Flatten(signals{"y": {Name: "y", Type: ssp.Real, Causality: "output"}}, &l)
	return n, l.Findings, err
}

// Settings of the annotation of macrostep are those of flags.
func TestAnnotation(t *testing.T) {
	n, findings, err := annotated(t, `<ms:Component stateless="1" quirks="noTerminate setStarts" isolate="true" host="lab:1"/>`, `<ms:Settings version="1" stepSize="1e-3" restarts="2">
<ms:Param key="order" value="2"/><ms:Param key="note" value=""/><ms:Record match="c.*"/><ms:Record match="d.y"/>
<ms:Bond name="axle" energyScale="750" tolerance="1e-5"><ms:Pair effort="c.y" flow="d.y" opposed="true"/><ms:Pair effort="d.a[1,2]" flow="c.y"/></ms:Bond>
<ms:Rate component="c" ratio="1/10"/></ms:Settings>`)
	must(t, err)
	var got []string
	for _, a := range n.Asked {
		got = append(got, a.String()+" ["+a.Key+"]")
		if a.From != "annotation of macrostep" || a.Place.Line == 0 {
			t.Errorf("%s: source %s, %s", a, a.From, a.Place)
		}
	}
	slices.Sort(got)
	want := []string{"--bond axle=-c.y:d.y,d.a[1,2]:c.y,scale=750,tolerance=1e-5 [axle]", "--isolate c [c]", "--on c=lab:1 [c]", "--on-crash restart:2 []", "--param note= [note]",
		"--param order=2 [order]", "--quirk c=noTerminate [c noTerminate]", "--quirk c=setStarts [c setStarts]", "--quirk c=stateless [c stateless]", "--rate c=1/10 [c]",
		"--record c.* []", "--record d.y []", "--step-size 1e-3 []"}
	if !slices.Equal(got, want) || len(findings) > 0 {
		t.Errorf("settings\n%s\nwant\n%s\nfindings %v", strings.Join(got, "\n"), strings.Join(want, "\n"), findings)
	}
	r, err := simulate.AskedBy(n.Asked)
	must(t, err)
	if b := r.Bonds[0]; b.Scale != 750 || b.Tolerance != 1e-5 || len(b.Pairs) != 2 || !b.Pairs[0].Opposed || b.Pairs[1].Effort != "d.a[1,2]" || r.Restarts != 2 || r.Rates[0].Over != 10 {
		t.Errorf("%+v", r)
	}
}

// Everything that the annotation does not know is an error, with its line.
func TestAnnotationRefused(t *testing.T) {
	const good = `<ms:Settings version="1"/>`
	pair := `<ms:Pair effort="c.y" flow="d.y"/>`
	for _, c := range []struct{ component, experiment, message string }{
		{"", "<ms:Other/>", "one element Settings"},
		{"", `<ms:Settings/>`, `"version" is missing`},
		{"", `<ms:Settings version="1.0"/>`, `version "1.0" is not known`},
		{"", `<ms:Settings version="1" wokers="1"/>`, `"wokers" is not known; Settings has version, stepSize, `},
		{"", `<ms:Settings version="1"><ms:X/></ms:Settings>`, `"ms:X" is not known; Settings has Param, `},
		{"", `<ms:Settings version="1" workers="many"/>`, `workers: "many" is not a whole number`},
		{"", `<ms:Settings version="1" stepSize="0"/>`, "stepSize: 0 is not greater than 0"},
		{"", `<ms:Settings version="1" isolation="sometimes maybe"><ms:Rate component="c" ratio="1.5"/></ms:Settings>`, `Rate: "c=1.5" is not COMPONENT=N`},
		{"", `<ms:Settings version="1" algorithm=""/>`, "algorithm: the value is empty"},
		{"", `<ms:Settings version="1"><ms:Param key="k"/></ms:Settings>`, `"value" is missing`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1" unit="m"/></ms:Settings>`, `"unit" is not known`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1"><ms:X/></ms:Param></ms:Settings>`, `"ms:X" is not known`},
		{"", `<ms:Settings version="1"><ms:Param key="a" value="1"/><ms:Param key="a" value="2"/></ms:Settings>`, "a is given twice"},
		{"", `<ms:Settings version="1"><ms:Rate component="c" ratio="2"/><ms:Rate component="c" ratio="1/2"/></ms:Settings>`, "c is given twice"},
		{"", `<ms:Settings version="1"><ms:Rate component="e" ratio="2"/></ms:Settings>`, `no component "e"`},
		{"", `<ms:Settings version="1"><ms:Stateless component="e"/></ms:Settings>`, `no component "e"`},
		{"<ms:Component stateless='perhaps'/>", good, "neither true nor false"},
		{"<ms:Component quirks='odd'/>", good, "odd"},
		{"<ms:Component><ms:X/></ms:Component>", good, `"ms:X" is not known`},
		{"", `<ms:Settings version="1"><ms:Bond>` + pair + `</ms:Bond></ms:Settings>`, `"name" is missing`},
		{"", `<ms:Settings version="1"><ms:Bond name="b"/></ms:Settings>`, "no Pair"},
		{"", `<ms:Settings version="1"><ms:Bond name="b" a="c">` + pair + `</ms:Bond></ms:Settings>`, `"a" is not known`},
		{"", `<ms:Settings version="1"><ms:Bond name="b" energyScale="0">` + pair + `</ms:Bond></ms:Settings>`, "not a number above 0"},
		{"", `<ms:Settings version="1"><ms:Bond name="a,b">` + pair + `</ms:Bond></ms:Settings>`, "Bond: "},
		{"", `<ms:Settings version="1"><ms:Bond name="b"><ms:Pair effort="c.y"/></ms:Bond></ms:Settings>`, `"flow" is missing`},
		{"", `<ms:Settings version="1"><ms:Bond name="b"><ms:Pair effort="c.y" flow="d.y" opposed="-1"/></ms:Bond></ms:Settings>`, `"opposed"`},
		{"", `<ms:Settings version="1"><ms:Bond name="b">` + pair + `</ms:Bond><ms:Bond name="b">` + pair + pair + `</ms:Bond></ms:Settings>`, "b is given twice"},
	} {
		_, findings, err := annotated(t, c.component, c.experiment)
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s %s: %v, want %q", c.component, c.experiment, err, c.message)
		}
		for _, f := range findings {
			if f.ID != "SD21O" || f.Line == 0 || f.Path == "" || f.Remedy == "" {
				t.Errorf("%s %s: finding %+v", c.component, c.experiment, f)
			}
		}
	}
}

// The settings of a request come before those of documents.
func TestAdopt(t *testing.T) {
	asked := func(settings ...string) (list []ssp.Asked) {
		for i := 0; i+1 < len(settings); i += 2 {
			list = append(list, ssp.Asked{Name: settings[i], Text: settings[i+1], From: "test", Key: map[bool]string{true: settings[i+1]}[settings[i] == "isolate" && settings[i+1] == "c"]})
		}
		return list
	}
	for _, c := range []struct {
		given, documents []string
		want             string
	}{
		{nil, []string{"workers", "3", "record", "c.*", "record", "d.*"}, "auto [] 0s 0 3 true"},
		{[]string{"workers", "2", "record", "d.y"}, []string{"workers", "3", "record", "c.*"}, "auto [] 0s 0 2 false"},
		{nil, []string{"step-timeout", "30"}, "always [] 30s 0 0 false"},
		{[]string{"isolate", "auto"}, []string{"step-timeout", "30"}, "auto [] 30s 0 0 false"},
		{[]string{"isolate", "never"}, []string{"step-timeout", "0.5m", "isolate", "c"}, "never [] 30s 0 0 false"},
		{[]string{"step-timeout", "10s"}, []string{"isolate", "never", "step-timeout", "30"}, "always [] 10s 0 0 false"},
		{[]string{"on-crash", "stop"}, []string{"restart-limit", "4"}, "auto [] 0s 0 0 false"},
		{[]string{"restart-limit", "4", "on-crash", "restart"}, nil, "always [] 0s 4 0 false"},
		{[]string{"isolate", "d", "on-crash", "restart"}, []string{"isolate", "c"}, "auto [d c] 0s 10 0 false"},
	} {
		r := simulate.Request{Output: "r.csv"}
		for i := 0; i+1 < len(c.given); i += 2 {
			must(t, r.Apply(c.given[i], c.given[i+1], "--"+c.given[i]))
		}
		must(t, r.Complete())
		list := asked(c.documents...)
		for i := range list {
			if e := simulate.Find(list[i].Name); e.Old != nil {
				list[i].Name, list[i].Text = e.Old(list[i].Text)
			}
		}
		must(t, r.Adopt(list))
		if got := fmt.Sprint(r.Isolate, " ", r.IsolateComponents, " ", r.StepTimeout, " ", r.Restarts, " ", r.Workers, " ", r.Record.Match("c.x")); got != c.want {
			t.Errorf("%v, documents %v: %s, want %s", c.given, c.documents, got, c.want)
		}
	}
}

// Fields that a program has set are given.
func TestAdoptFields(t *testing.T) {
	r := simulate.Request{StepTimeout: time.Second, Workers: 2, Options: assemble.Options{Restarts: 3}}
	var asked []ssp.Asked
	for _, s := range [][2]string{{"step-timeout", "30"}, {"workers", "1"}, {"on-crash", "stop"}, {"memory-limit", "1"}} {
		asked = append(asked, ssp.Asked{Name: s[0], Text: s[1]})
	}
	must(t, r.Adopt(asked))
	if r.StepTimeout != time.Second || r.Workers != 2 || r.Restarts != 3 || r.MemoryLimit != 1<<20 {
		t.Errorf("%+v", r)
	}
}

// No annotation makes the reader panic, and what it takes can be applied.
func FuzzAnnotation(f *testing.F) {
	f.Add(`<ms:Component stateless="1" quirks="a b"/>`, `<ms:Settings version="1" workers="2" isolation="auto"><ms:Record match="c.*"/><ms:Rate component="c" ratio="2"/></ms:Settings>`)
	f.Add("", `<ms:Settings version="1"><ms:Bond name="b" energyScale="1" tolerance="1"><ms:Pair effort="c.y" flow="d.y"/></ms:Bond><ms:Param key="a=b" value=""/></ms:Settings>`)
	f.Fuzz(func(t *testing.T, component, experiment string) {
		n, _, err := annotated(t, component, experiment)
		if (n == nil) != (err != nil) {
			t.Fatalf("network %v, error %v", n, err)
		}
		if n != nil {
			_, err = simulate.AskedBy(n.Asked)
			must(t, err)
		}
	})
}
