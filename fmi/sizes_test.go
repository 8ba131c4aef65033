package fmi

import (
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/test/probe"
)

// An instance has the sizes of its FMU, also after Reset; one that does not get them is not made.
func TestStructure(t *testing.T) {
	path, err := probe.Space(t.TempDir(), "space")
	must(t, err)
	open := func(n uint64) *FMU {
		f, _, err := Open(path, OpenOptions{Structure: map[string]uint64{"n": n, "m": 2}})
		must(t, err)
		t.Cleanup(func() { must(t, f.Close()) })
		return f
	}
	small, large := open(2), open(4)
	if small.Hash != large.Hash || small.Sizes() != "m = 2, n = 2" {
		t.Errorf("%s, %s", small.Sizes(), small.Hash)
	}
	for _, f := range []*FMU{small, large} {
		in := instance(t, f, "sized", InstanceOptions{})
		var vr []description.ValueReference
		var want []float64
		for k := range f.Description.Variables {
			if v := &f.Description.Variables[k]; v.Array != nil && v.Array.Name == "x0" {
				vr, want = append(vr, v.ValueReference), append(want, float64(k))
			}
		}
		if n := int(f.Structure["n"]); len(vr) != n {
			t.Fatalf("%d elements, want %d", len(vr), n)
		}
		for range 2 {
			must(t, in.SetReal(vr, want))
			must(t, in.SetupExperiment(Experiment{}))
			must(t, in.EnterInitializationMode())
			got := make([]float64, len(vr))
			if must(t, in.GetReal(vr, got)); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			must(t, in.Reset())
		}
	}
	_, err = open(5).Instantiate("refused", InstanceOptions{})
	if err == nil || !strings.Contains(err.Error(), "fmi3SetUInt64 returned Discard; the FMU does not take m = 2, n = 5") {
		t.Error(err)
	}
}
