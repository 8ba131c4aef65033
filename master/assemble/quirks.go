package assemble

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master/fmuslave"
)

// planQuirks sets the quirks of the components.
func (a *Assembly) planQuirks(o Options) error {
	var errs []error
	for _, q := range o.Quirks {
		name := cmp.Or(q.Component, a.Alone())
		i := slices.IndexFunc(a.Components, func(c Component) bool { return c.Name == name })
		if name == "" {
			errs = append(errs, fmt.Errorf("the quirk %s needs the name of a component, COMPONENT=%s; the system has %s",
				q.Name, q.Name, strings.Join(a.componentNames(), ", ")))
			continue
		}
		if i < 0 {
			errs = append(errs, a.noComponent(name, "have a quirk"))
			continue
		}
		if err := a.addQuirk(i, q.Name); err != nil {
			errs = append(errs, fmt.Errorf("component %s: %w", name, err))
		}
	}
	for _, c := range a.Components {
		if c.Quirks.Has(fmuslave.ChdirOnLoad) {
			c.FMU.LoadInItsFolder()
		}
	}
	return errors.Join(errs...)
}

func (a *Assembly) addQuirk(component int, name string) error {
	q, err := fmuslave.ParseQuirk(name)
	if err == nil {
		a.Components[component].Quirks |= q
	}
	return err
}
