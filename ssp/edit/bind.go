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

// Bind gives parameters values that override all others that the document binds (ssp 36). It
// changes the set that the outermost system binds last, if that is in a file, without prefix and
// mapping, and not used elsewhere; else it adds a new file with a binding after all others.
//
// Names are paths below the outermost system, "component.variable" or "system.connector". units
// defines the units of the values. If an existing set defines such a name as another unit, the
// value is written without a unit, that is, in the unit of the variable or connector (ssp 39).
//
// Bind changes Root and returns the changed files, the set first, for the caller to write. Their
// names are relative to Dir, with slashes.
func Bind(p *ssp.Package, values []ssp.ParameterValue, units []unit.Definition) (changed []File, err error) {
	document := p.Document()
	if !strings.EqualFold(filepath.Ext(document), ".ssd") {
		return nil, fmt.Errorf("%s is not an .ssd and has no parameter sets", document)
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
	for _, v := range values {
		if err := put(set, v, units); err != nil {
			return nil, err
		}
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

// put gives a set a value in place of all of the same name, and defines its unit there.
func put(set *ssp.ParameterSet, v ssp.ParameterValue, units []unit.Definition) error {
	if v.Unit != "" {
		u := find(units, v.Unit)
		if u == nil || u.Base == nil {
			return fmt.Errorf("the unit %q of %s is not defined", v.Unit, v.Name)
		}
		switch known := find(set.Units, v.Unit); {
		case known == nil:
			set.Units = append(set.Units, *u)
		case known.Base == nil || *known.Base != *u.Base:
			v.Unit = ""
		}
	}
	same := func(q ssp.ParameterValue) bool { return q.Name == v.Name }
	i := slices.IndexFunc(set.Parameters, same)
	if i < 0 {
		set.Parameters = append(set.Parameters, v)
		return nil
	}
	v.Place = set.Parameters[i].Place
	set.Parameters[i] = v
	set.Parameters = append(set.Parameters[:i+1], slices.DeleteFunc(set.Parameters[i+1:], same)...)
	return nil
}

// lastSet returns the set that the outermost system binds last, and its file, if its names are not
// changed by the binding and no other binding uses it.
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

// freeName finds a name for a new set: in resources of a package, or beside a single document.
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
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: there are already 999 sets %s….ssv; remove some", p.Path, base)
}
