package test

import (
	"testing"

	"github.com/macrostep/macrostep/test/probe"
)

func TestMkEvents(t *testing.T) {
	for n, c := range map[string]string{"periodic": `intervalVariability="constant" intervalDecimal="0.1"`, "asked": `intervalVariability="fixed"`,
		"changing": `intervalVariability="changing"`, "countdown": `intervalVariability="countdown"`} {
		if _, err := probe.Sampler("/tmp/smp", n, c); err != nil {
			t.Fatal(err)
		}
	}
}
