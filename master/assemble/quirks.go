package assemble

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	for i := range a.Components {
		a.preload(&a.Components[i])
	}
	return errors.Join(errs...)
}

func (a *Assembly) addQuirk(component int, name string) error {
	q, err := fmuslave.ParseQuirk(name)
	if err != nil {
		return err
	}
	c := &a.Components[component]
	c.Quirks |= q
	if file := fmuslave.PreloadFile(name); file != "" {
		if strings.ContainsAny(file, `/\`) { // else the loader searches for it
			if file, err = filepath.Abs(file); err != nil {
				return err
			}
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("the quirk preload: %w", err)
			}
		}
		c.Preload = append(c.Preload, file)
	}
	return nil
}

// preload gives the libraries of a component to its FMU, and to all components with it, since they may share a process.
func (a *Assembly) preload(c *Component) {
	if len(c.Preload) == 0 {
		return
	}
	c.FMU.Preload(c.Preload)
	for i := range a.Components {
		if o := &a.Components[i]; o.FMU == c.FMU {
			o.Preload, o.Quirks = c.Preload, o.Quirks|fmuslave.Preload
		}
	}
}

// QuirkNames lists the names of the quirks of a component, sorted.
func (c *Component) QuirkNames() []string {
	names := (c.Quirks &^ fmuslave.Preload).Names()
	for _, file := range c.Preload {
		names = append(names, "preload:"+file)
	}
	slices.Sort(names)
	return names
}
