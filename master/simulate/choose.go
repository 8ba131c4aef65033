package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/ssp"
)

// ParamFirstStep is the parameter for the size of the first step of variable-step algorithms.
const ParamFirstStep = "control.h0"

// Chosen is the algorithm of a run with its bonds and rates.
type Chosen struct {
	*algorithms.Choice
	Bonds           []algorithms.Bond
	Rates           []algorithms.Rate
	notes, warnings []string // about the choice
}

// order returns the extrapolation order, 0 if the algorithm has none.
func (c *Chosen) order() int {
	order, err := strconv.Atoi(c.Values["order"])
	if err != nil {
		return 0
	}
	return order
}

// Choose creates the algorithm from the request and the documents. Parameters of the documents
// apply to the algorithm that they name, or else to all algorithms that accept them. The
// request overrides them.
func Choose(presets algorithms.Catalog, r *Request, sys *System) (*Chosen, error) {
	preset, params := cmp.Or(r.Algorithm, sys.Algorithm, algorithms.DefaultPreset), map[string]string{}
	documented := maps.Clone(sys.Params)
	if r.Step != nil { // overrides the first step of a document
		delete(documented, ParamFirstStep)
	}
	out := &Chosen{}
	switch {
	case sys.Algorithm == preset:
		maps.Copy(params, documented)
	case sys.Algorithm == "":
		params, out.notes = suited(presets, preset, documented)
	case len(sys.Params) > 0:
		out.notes = append(out.notes, fmt.Sprintf(
			"parameters of the system for algorithm %s are left out, because --algorithm is %s", sys.Algorithm, preset))
	}
	maps.Copy(params, r.Params)
	found, _ := presets.Find(preset) // New returns the error
	var err error
	if out.Bonds, err = out.chooseBonds(r, sys, found); err != nil {
		return nil, err
	}
	with := algorithms.With{Bonds: out.Bonds, Rates: RatesWith(r.Rates, sys.Rates), Spike: r.spike()}
	if len(out.Bonds) == 0 {
		with.Watched = watchedBonds(sys)
	}
	out.Rates = with.Rates
	out.Choice, err = presets.New(preset, params, with)
	if err != nil && len(out.Rates) > len(r.Rates) {
		// Implicit schemes have no rates.
		with.Rates = r.Rates
		without, failed := presets.New(preset, params, with)
		if failed == nil {
			out.warnings = append(out.warnings, fmt.Sprintf(
				"rates of the system are left out: %v; choose an algorithm that takes rates, such as explicit", err))
			out.Choice, out.Rates, err = without, r.Rates, nil
		}
	}
	if err != nil {
		if _, own := presets.New(cmp.Or(r.Algorithm, algorithms.DefaultPreset), r.Params); own == nil {
			err = fmt.Errorf("%s: %w", asking(r.System, sys, err), err)
		}
		return nil, err
	}
	out.warnings = append(out.warnings, out.Notes...)
	return out, nil
}

// asking returns the place of the refused setting in a document.
func asking(system string, sys *System, refused error) string {
	for _, name := range []string{ssp.Param, ssp.Algorithm} {
		for _, a := range sys.Asked {
			if a.Name == name && (a.Key == "" || strings.HasPrefix(refused.Error(), "parameter "+a.Key+"=")) {
				return fmt.Sprintf("%s (%s)", a.Place, a.From)
			}
		}
	}
	return system + " (annotation of macrostep)"
}

// suited returns the parameters of the documents that a preset accepts. It omits those that
// only other presets accept and returns a note on them. It keeps those that no preset accepts,
// which will be errors.
func suited(presets algorithms.Catalog, preset string, params map[string]string) (kept map[string]string, notes []string) {
	takes := func(preset, key string) bool {
		_, err := presets.New(preset, map[string]string{key: params[key]})
		return err == nil
	}
	own, _ := presets.Find(preset)
	kept = map[string]string{}
	var left []string
	for _, key := range slices.Sorted(maps.Keys(params)) {
		other := slices.ContainsFunc(presets.All(), func(p algorithms.Preset) bool { return takes(p.Name, key) })
		switch {
		case own == nil || !other || takes(preset, key):
			kept[key] = params[key]
		case slices.ContainsFunc(own.Params, func(p algorithms.Param) bool { return p.Name == key }):
			left = append(left, key+"="+params[key]) // the preset accepts other values
		default:
			left = append(left, key)
		}
	}
	if left != nil {
		notes = append(notes, fmt.Sprintf("algorithm %s does not take parameters of the system that are for others: %s",
			preset, strings.Join(left, ", ")))
	}
	return kept, notes
}

// chooseBonds returns the bonds whose energy is monitored, with their powers in W: those of
// the user, else those of the documents, else those found by units.
func (c *Chosen) chooseBonds(r *Request, sys *System, preset *algorithms.Preset) (bonds []algorithms.Bond, err error) {
	if !r.MonitorEnergy && (preset == nil || !preset.Energy) && len(r.Bonds) == 0 {
		return nil, nil
	}
	bonds = r.Bonds
	if len(bonds) == 0 {
		bonds = sys.Bonds
	} else if len(sys.Bonds) > 0 {
		var names []string
		for _, b := range sys.Bonds {
			names = append(names, b.Name)
		}
		c.notes = append(c.notes, "--bond replaces the bonds of the system: "+strings.Join(names, ", "))
	}
	if len(bonds) == 0 && sys.BondsSeen != nil {
		if bonds = sys.BondsSeen(); len(bonds) > 0 {
			var names []string
			for _, b := range bonds {
				names = append(names, fmt.Sprintf("%s=%s:%s", b.Name, b.Pairs[0].Effort, b.Pairs[0].Flow))
			}
			c.warnings = append(c.warnings, "no power bond is declared; those found by units, with unknown signs, are taken: "+
				strings.Join(names, ", ")+"; check them and give them with --bond")
		}
	}
	return inWatts(sys, bonds)
}

// watchedBonds returns the bonds of the documents, or else those found by units, whose residual energy is judged.
func watchedBonds(sys *System) []algorithms.Bond {
	bonds := sys.Bonds
	if len(bonds) == 0 && sys.BondsSeen != nil {
		bonds = sys.BondsSeen()
	}
	bonds, err := inWatts(sys, bonds)
	if err != nil {
		return nil
	}
	return bonds
}

// inWatts returns bonds with their powers in W.
func inWatts(sys *System, bonds []algorithms.Bond) (_ []algorithms.Bond, err error) {
	bonds = slices.Clone(bonds)
	for i := range bonds {
		bonds[i].Pairs = slices.Clone(bonds[i].Pairs)
		for k := range bonds[i].Pairs {
			p := &bonds[i].Pairs[k]
			if sys.Power == nil {
				continue
			}
			if p.Watt, err = sys.Power(p.Effort, p.Flow); err != nil {
				return nil, fmt.Errorf("bond %s: %w", bonds[i].Name, err)
			}
		}
	}
	return bonds, nil
}

// StrategyOf chooses the algorithm as a run of the system would.
func StrategyOf(presets algorithms.Catalog, a *assemble.Assembly, r *Request) assemble.Strategy {
	own, err := AskedBy(a.Asked)
	if err != nil {
		return assemble.Strategy{Unfit: err}
	}
	sys := &System{System: a.System, Algorithm: own.Algorithm, Params: own.Params, Asked: a.Asked,
		Bonds: own.Bonds, Rates: own.Rates, BondsSeen: func() []algorithms.Bond { return bondsSeen(a) }}
	for _, h := range a.Hinted {
		sys.Rates = append(sys.Rates, h.Rate)
	}
	choice, err := Choose(presets, r, sys)
	if err != nil {
		return assemble.Strategy{Preset: cmp.Or(r.Algorithm, own.Algorithm), Unfit: err}
	}
	s := assemble.Strategy{Preset: choice.Preset, Algorithm: choice.Algorithm, Discard: choice.Discard, Order: -1}
	if order, err := strconv.Atoi(choice.Values["order"]); err == nil {
		s.Order = order
	}
	if names := choice.Values["sequence"]; names != "" && names != "graph" && choice.Values["scheme"] == "gauss-seidel" {
		for name := range strings.SplitSeq(names, ",") {
			s.Sequence = append(s.Sequence, strings.TrimSpace(name))
		}
	}
	return s
}
