package simulate

import (
	"context"

	"github.com/macrostep/macrostep/algorithms/analyze"
)

// Analyze reports what all algorithms and other steps show beside the setting of a request. Where it ends early, the report has what is
// known, and the reason.
func (by Runner) Analyze(ctx context.Context, req Request, o Search) (*analyze.Report, error) {
	var coupling analyze.Structure
	o.Look = func(sys *System, chosen *Chosen) error {
		bonds, declared := sys.Bonds, true
		if len(bonds) == 0 && sys.BondsSeen != nil {
			bonds, declared = sys.BondsSeen(), false
		}
		coupling = analyze.Coupling(sys.System, chosen.Rates, bonds, declared)
		return nil
	}
	for _, p := range by.Presets.All() {
		o.Presets = append(o.Presets, p.Name)
	}
	c, err := by.Search(ctx, req, o)
	if c == nil {
		return nil, err
	}
	r := analyze.New(c, by.Presets)
	r.Structure = coupling
	return r, err
}
