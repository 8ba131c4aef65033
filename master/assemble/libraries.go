package assemble

import (
	"errors"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
)

// Absent returns findings on FMUs that have no usable library for this platform, although a component with them runs on
// this machine.
func (a *Assembly) Absent() []diag.Finding {
	var out []diag.Finding
	for _, f := range a.fmus {
		if list, err := f.Locate(); err != nil && !a.Elsewhere(f) {
			out = append(out, a.Shown(f, list.At(diag.Error))...)
		}
	}
	return out
}

// Elsewhere reports whether all components of an FMU run on hosts.
func (a *Assembly) Elsewhere(f *fmi.FMU) bool {
	return !slices.ContainsFunc(a.Components, func(c Component) bool { return c.FMU == f && c.Host == "" })
}

// Shown returns findings about an FMU with its file named for the user. Those on a missing library name the components
// that need it.
func (a *Assembly) Shown(f *fmi.FMU, findings []diag.Finding) []diag.Finding {
	out := slices.Clone(findings)
	if shown := a.shown[f]; shown != "" {
		rename(out, f.Path, shown)
	}
	if a.pkg == nil {
		return out
	}
	for i := range out {
		if out[i].ID != fmi.RuleNoLibrary.ID {
			continue
		}
		var need, on []string
		for _, c := range a.Components {
			if c.FMU == f && c.Host == "" {
				need, on = append(need, c.Name), append(on, "--on "+c.Name+"=HOST")
			}
		}
		if len(need) > 0 {
			out[i].Message = strings.Join(need, ", ") + ": " + out[i].Message
			out[i].Remedy = strings.Replace(out[i].Remedy, fmi.OnHost, strings.Join(on, " "), 1)
		}
	}
	return out
}

// shownError returns the error of loading the library of an FMU with its findings as Shown returns them.
func (a *Assembly) shownError(f *fmi.FMU, err error) error {
	var list *diag.ListError
	if !errors.As(err, &list) || err != error(list) {
		return err
	}
	return &diag.ListError{Findings: a.Shown(f, list.Findings)}
}
