package twin

import (
	"context"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze/analyzetest"
)

// A panic in the analysis is an error, of a single algorithm if it affects no other.
func TestFaultsAreErrors(t *testing.T) {
	sys, _ := analyzetest.Masses(t, 2)
	_, err := At(t.Context(), sys, Options{Step: 1e-3}, func(*Point) error { panic("bad length") })
	if err == nil || !strings.Contains(err.Error(), "could not be analysed") || !strings.Contains(err.Error(), "bad length") {
		t.Errorf("%v", err)
	}
	p := &Point{Ctx: context.Background()}
	var found [2]string
	err = p.Each(2, nil, func(k int) {
		if k == 0 {
			panic("bad length")
		}
		found[k] = "fine"
	}, func(k int, err error) { found[k] = err.Error() })
	if err != nil || !strings.Contains(found[0], "bad length") || found[1] != "fine" {
		t.Errorf("%q, %v", found, err)
	}
}
