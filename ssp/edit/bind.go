package edit

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/unit"
	"github.com/macrostep/macrostep/ssp"
)

// Bind returns parameters values that win over all others that the document binds
// (ssp 36): in the set that the outermost system binds last, if that is a file of
// its own without prefix and mapping, else in a new file that is bound behind the
// others. Names are paths below the outermost system, "component.variable", or
// "system.connector". Units are those that the values use. Where a set that is there
// means something else by the name of a unit, the value is written without: it then is in
// that of the variable or connector, as before (ssp 39).
//
// Root is changed; the files that differ now are given back, the set first, for the
// caller to write: names are relative to Dir, with slashes.
func Bind(p *ssp.Package, values []ssp.ParameterValue, units []unit.Definition) (changed []File, err error) {
	document := p.Document()
	if !strings.EqualFold(filepath.Ext(document), ".ssd") {
		return nil, fmt.Errorf("%s is no .ssd, and has no parameter sets", document)
	}
	top := p.Root.System
	set, file := lastSet(p)
	fresh := set == nil
	if fresh {
		if file, err = freeName(p, document); err != nil {
			return nil, err
		}
		set = &ssp.ParameterSet{Version: "1.0", Name: strings.TrimSuffix(path.Base(file), ".ssv")}
		top.Bindings = append(top.Bindings, ssp.Binding{Source: SourceURI(file), Set: set})
	}
	values = slices.Clone(values)
	for i := range values {
		v := &values[i]
		if v.Unit != "" {
			u := find(units, v.Unit)
			if u == nil || u.Base == nil {
				return nil, fmt.Errorf("the unit %q of %s is not defined", v.Unit, v.Name)
			}
			switch known := find(set.Units, v.Unit); {
			case known == nil:
				set.Units = append(set.Units, *u)
			case known.Base == nil || *known.Base != *u.Base:
				v.Unit = ""
			}
		}
		if i := slices.IndexFunc(set.Parameters, func(q ssp.ParameterValue) bool { return q.Name == v.Name }); i >= 0 {
			v.Place = set.Parameters[i].Place
			set.Parameters[i] = *v
			rest := set.Parameters[i+1:] // of the same name, which would be a second value
			set.Parameters = append(set.Parameters[:i+1], slices.DeleteFunc(rest, func(q ssp.ParameterValue) bool { return q.Name == v.Name })...)
			continue
		}
		set.Parameters = append(set.Parameters, *v)
	}
	data, err := EncodeSet(set)
	if err != nil {
		return nil, err
	}
	changed = []File{{Name: file, Data: data}}
	if fresh {
		if data, err = Encode(p.Root); err != nil {
			return nil, err
		}
		changed = append(changed, File{Name: document, Data: data})
	}
	return changed, nil
}

// lastSet returns the set that the outermost system binds last, and its file, if its
// names mean what they mean there and nothing else uses it.
func lastSet(p *ssp.Package) (*ssp.ParameterSet, string) {
	list := p.Root.System.Bindings
	if len(list) == 0 {
		return nil, ""
	}
	b := &list[len(list)-1]
	if b.Source == "" || b.Set == nil || b.Prefix != "" || b.Mapping != nil || b.SourceBase == "component" {
		return nil, ""
	}
	file, err := p.Root.Locate(b.Source)
	if err != nil || !filepath.IsLocal(file) {
		return nil, ""
	}
	uses := 0
	for e := range p.Root.System.All() {
		for _, b := range e.Base().Bindings {
			if other, err := p.Root.Locate(b.Source); err == nil && other == file {
				uses++
			}
		}
	}
	if uses != 1 {
		return nil, ""
	}
	return b.Set, filepath.ToSlash(file)
}

// freeName finds a name for a new set: in resources of a package, beside a document
// that stands alone.
func freeName(p *ssp.Package, document string) (string, error) {
	base := "resources/parameters"
	switch {
	case document != ssp.DocumentName && p.Packed(): // a variant
		base = "resources/" + strings.TrimSuffix(document, filepath.Ext(document))
	case document != ssp.DocumentName:
		base = strings.TrimSuffix(document, filepath.Ext(document))
	}
	for n := 1; n < 1000; n++ {
		name := base + ".ssv"
		if n > 1 {
			name = fmt.Sprintf("%s%d.ssv", base, n)
		}
		if _, err := os.Lstat(filepath.Join(p.Dir, filepath.FromSlash(name))); os.IsNotExist(err) {
			return name, nil
		} else if err != nil && !os.IsNotExist(err) {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: there are 999 sets %s….ssv already; remove some", p.Path, base)
}
