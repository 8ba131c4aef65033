package fmuslave

import (
	"testing"

	"github.com/macrostep/macrostep/fmi"
)

// What is measured of an FMU with other sizes of its arrays is stored apart.
func TestIdentityOfSizes(t *testing.T) {
	seen := map[string]bool{}
	for _, sizes := range []map[string]uint64{nil, {"n": 2}, {"n": 3}, {"m": 2}, {"m": 2, "n": 3}} {
		c := Config{FMU: &fmi.FMU{Hash: "h", Structure: sizes}}
		if id := c.identity(); seen[id] || sizes == nil && id != "h" {
			t.Errorf("%v: %s", sizes, id)
		} else {
			seen[id] = true
		}
	}
}
