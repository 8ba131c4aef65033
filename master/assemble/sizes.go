package assemble

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
)

// isSize reports whether a variable is set when the FMU is opened (fmi3 5).
func isSize(v *description.ScalarVariable) bool {
	return v != nil && v.Causality == description.StructuralParameter && v.Type == description.Integer
}

// resize opens the FMUs of components anew whose structural parameters get other values than those of
// modelDescription.xml, by the documents or by Options.Set, which overrides these.
func (a *Assembly) resize() error {
	sizes := make([]map[string]uint64, len(a.Components))
	var errs []error
	put := func(component int, name string, n int64) {
		if n < 0 {
			of := a.Components[component].Name
			errs = append(errs, fmt.Errorf("%s.%s = %d: a size of arrays is not negative", of, name, n))
		}
		if sizes[component] == nil {
			sizes[component] = map[string]uint64{}
		}
		sizes[component][name] = uint64(n)
	}
	if a.pkg != nil {
		for _, s := range a.pkg.Sizes(a.files) {
			put(s.Component, s.Variable, s.Value.Int)
		}
	}
	for _, set := range a.options.Set {
		i, v, _, err := a.target(set.Name)
		if err != nil || !isSize(v) { // planStarts reports an error
			continue
		}
		value, err := parseValue(v, a.Components[i].FMU.Description, set.Value)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s=%s: %w", set.Name, set.Value, err))
			continue
		}
		put(i, v.Name, value.Integer)
	}
	opened := map[string]*fmi.FMU{}
	for i := range a.Components {
		c := &a.Components[i]
		maps.DeleteFunc(sizes[i], func(name string, n uint64) bool {
			v, _ := c.FMU.Description.Variable(name)
			_, other := c.FMU.Structure[name]
			return uint64(v.StartInteger) == n && !other
		})
		if maps.Equal(sizes[i], c.FMU.Structure) || len(errs) > 0 {
			continue
		}
		key := fmt.Sprintf("%s %v", c.FMU.Path, sizes[i])
		if opened[key] == nil {
			f, err := a.openResized(c.FMU, sizes[i])
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
				continue
			}
			opened[key] = f
		}
		c.FMU = opened[key]
		if a.pkg != nil {
			a.files[a.pkg.Components()[i].Quoted] = c.FMU
		}
	}
	if len(opened) > 0 {
		a.fmus = slices.DeleteFunc(a.fmus, func(f *fmi.FMU) bool {
			unused := a.using(f) == nil
			if unused {
				errs = append(errs, f.Close())
			}
			return unused
		})
	}
	return errors.Join(errs...)
}

// openResized opens an FMU again with other sizes of its arrays.
func (a *Assembly) openResized(f *fmi.FMU, sizes map[string]uint64) (*fmi.FMU, error) {
	o := a.opening
	o.Structure = sizes
	g, list, err := fmi.Open(f.Path, o)
	a.Findings.Findings = append(a.Findings.Findings, slices.DeleteFunc(a.Shown(f, list.Findings),
		func(found diag.Finding) bool {
			return slices.Contains(a.Findings.Findings, found)
		})...)
	if err != nil {
		return nil, a.shownError(f, err)
	}
	a.fmus = append(a.fmus, g)
	if shown := a.shown[f]; shown != "" {
		a.shown[g] = shown
	}
	return g, nil
}
