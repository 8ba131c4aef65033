package simulate

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/algorithms/analyze/forecast"
	"github.com/macrostep/macrostep/master"
)

// HighestAnalyzed is the highest order that is analysed.
const HighestAnalyzed = 5

// DefaultError is the largest error of a recommended step, relative to the standard
// deviation of an output.
const DefaultError = 0.01

// Again returns a function that opens a system once more, for the trial runs of an analysis.
func (by Runner) Again(path string, open OpenOptions) func(context.Context) (*master.System, func() error, error) {
	if by.Open == nil {
		by.Open = Open
	}
	if abs, err := filepath.Abs(path); err == nil { // it is opened in a copy of the working folder
		path = abs
	}
	return func(ctx context.Context) (*master.System, func() error, error) {
		sys, err := by.Open(ctx, path, open)
		if err != nil {
			return nil, nil, err
		}
		return sys.System, sys.Close, nil
	}
}

// Own returns the algorithm for an analysis.
func (c *Chosen) Own(presets algorithms.Catalog) *forecast.Own {
	own := &forecast.Own{Preset: c.Preset, Order: c.order(), New: func() (master.Algorithm, error) {
		same, err := presets.New(c.Preset, c.Values, algorithms.With{Bonds: c.Bonds, Rates: c.Rates})
		if err != nil {
			return nil, err
		}
		return same.Algorithm, nil
	}}
	defaults, err := presets.New(c.Preset, nil)
	for _, key := range slices.Sorted(maps.Keys(c.Values)) {
		if err == nil && key != "order" && c.Values[key] != defaults.Values[key] {
			own.Changed = append(own.Changed, key+"="+c.Values[key])
		}
	}
	return own
}
