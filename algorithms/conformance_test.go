package algorithms_test

import (
	"fmt"
	"testing"

	. "github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/mastertest"
)

// Every preset, and parameters that bring further parts into play, keeps the contract of
// master where subsystems discard steps, are late, or can do less.
func TestPresetsConform(t *testing.T) {
	bond := Bond{Name: "spring", Pairs: []Pair{{Effort: "second.y1", Flow: "first.y2"}}}
	for preset, cases := range resumableCases() {
		for _, params := range cases {
			t.Run(fmt.Sprintf("%s %v", preset, params), func(t *testing.T) {
				t.Parallel()
				err := mastertest.TestAlgorithm(func() master.Algorithm {
					choice := chosen(t, preset, params, With{Bonds: []Bond{bond}, Spike: 30})
					return choice.Algorithm
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
