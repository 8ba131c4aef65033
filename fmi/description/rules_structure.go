package description

import (
	"slices"
	"strconv"

	"github.com/macrostep/macrostep/fmi/diag"
)

// structureList is one of the lists of ModelStructure.
type structureList struct {
	name    string
	element string // of an entry, in ModelStructure
	rule    *diag.Rule
	list    *[]Unknown
	places  []place
	wanted  func(v *ScalarVariable) bool        // v must be in the list
	allowed func(i int, v *ScalarVariable) bool // v, at index i from 0, may be in the list
	why     string                              // why others may not, for a message
	sorted  bool
	known   func(i int, v *ScalarVariable) bool // v may be in dependencies
}

// checkStructure checks ModelStructure and completes its lists (fmi2 26–29, 65).
func (p *reader) checkStructure() {
	d := p.d
	open := func(v *ScalarVariable) bool { return v.Initial == Approx || v.Initial == Calculated }
	stepKnown := func(i int, v *ScalarVariable) bool {
		return v.Causality == Input || v.Causality == Independent || p.isState[i] ||
			p.three && (v.Causality == Parameter || v.Variability == Discrete) // the latter may be a state
	}
	lists := []structureList{
		{
			name: "Outputs", rule: ruleOutputs, list: &d.Outputs, places: p.places.outputs,
			wanted:  func(v *ScalarVariable) bool { return v.Causality == Output },
			allowed: func(_ int, v *ScalarVariable) bool { return v.Causality == Output },
			why:     "not an output", known: stepKnown,
		},
		{
			name: "Derivatives", rule: ruleDerivatives, list: &d.Derivatives, places: p.places.derivatives,
			wanted: func(*ScalarVariable) bool { return false },
			allowed: func(_ int, v *ScalarVariable) bool {
				return v.Derivative > 0 && v.Type == Real && v.Variability == Continuous
			},
			why: "not the derivative of a continuous state", known: stepKnown,
		},
		{
			name: "InitialUnknowns", rule: ruleInitialUnknowns, list: &d.InitialUnknowns, places: p.places.initialUnknowns,
			wanted: func(v *ScalarVariable) bool {
				return v.Causality == Output && open(v) && len(v.Clocks) == 0 || v.Causality == CalculatedParameter
			},
			allowed: func(i int, v *ScalarVariable) bool {
				return open(v) && (v.Causality == Output || v.Causality == CalculatedParameter || v.Derivative > 0 || p.isState[i]) ||
					len(v.Clocks) > 0
			},
			why: "not an unknown of the initialisation", sorted: true,
			known: func(_ int, v *ScalarVariable) bool {
				return v.Causality == Input || v.Causality == Independent || v.Initial == Exact
			},
		},
	}
	for k := range lists {
		s := &lists[k]
		if s.element = s.name + "/Unknown"; p.three {
			s.name = elements3[k]
			s.element = s.name
			p.resolve(s)
		}
		p.checkList(s)
	}
	inputs := slices.ContainsFunc(d.Variables, func(v ScalarVariable) bool { return v.Causality == Input })
	if !inputs {
		return
	}
	for _, u := range d.Outputs {
		if !u.Declared {
			p.at(u.Index-1, ruleNoDependencies, "the output %q has no attribute dependencies; it is assumed to depend on all inputs",
				clip(d.Variables[u.Index-1].Name))
		}
	}
}

const structurePath = "/fmiModelDescription/ModelStructure/"

// path is the path of an entry.
func (s *structureList) path(k int) string {
	return structurePath + s.element + "[" + strconv.Itoa(s.places[k].ordinal) + "]"
}

// sameList reports whether two lists are one in memory.
func sameList(a, b []int) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

func (p *reader) checkList(s *structureList) {
	vars := p.d.Variables
	seen := make([]bool, len(vars))
	kept := (*s.list)[:0]
	changed, last := false, 0
	for k := range *s.list {
		u, line := (*s.list)[k], s.places[k].line
		if u.Index < 1 || u.Index > len(vars) {
			p.add(s.rule, s.path(k), line, "", "%s lists the variable %d, but the indices are 1 to %d", s.name, u.Index, len(vars))
			continue
		}
		v := &vars[u.Index-1]
		switch {
		case seen[u.Index-1]:
			p.add(s.rule, s.path(k), line, v.Name, "%s lists %q twice; the second entry is ignored", s.name, clip(v.Name))
			continue
		case !s.allowed(u.Index-1, v):
			p.add(s.rule, s.path(k), line, v.Name, "%s lists %q, which is %s; the entry is ignored", s.name, clip(v.Name), s.why)
			continue
		}
		if s.sorted && u.Index < last {
			if !p.three {
				p.add(s.rule, s.path(k), line, v.Name, "%s lists %q out of order; indices must ascend", s.name, clip(v.Name))
			}
			changed = true
		}
		last = max(last, u.Index)
		seen[u.Index-1] = true
		if k == 0 || !sameList(u.Dependencies, (*s.list)[k-1].Dependencies) { // elements of an array share them
			p.checkDependencies(s, &u, s.path(k), line)
		}
		kept = append(kept, u)
	}
	for i := range vars {
		if !seen[i] && s.wanted(&vars[i]) {
			p.add(s.rule, structurePath+s.name, p.sections["ModelStructure"], vars[i].Name,
				"%s does not list %q, which is taken to depend on everything", s.name, clip(vars[i].Name))
			kept = append(kept, Unknown{Index: i + 1})
			changed = true
		}
	}
	if changed {
		slices.SortFunc(kept, func(a, b Unknown) int { return a.Index - b.Index })
	}
	*s.list = kept
}

// checkDependencies checks the dependencies of one valid unknown.
func (p *reader) checkDependencies(s *structureList, u *Unknown, path string, line int) {
	vars := p.d.Variables
	name := vars[u.Index-1].Name
	for _, k := range u.Dependencies {
		if k < 1 || k > len(vars) {
			p.add(ruleDependencies, path, line, name, "%q depends on the variable %d, but the indices are 1 to %d", clip(name), k, len(vars))
			u.Declared, u.Dependencies, u.Kinds = false, nil, nil
			return
		}
	}
	if !strictlyAscending(u.Dependencies) {
		u.sort()
	}
	for _, k := range u.Dependencies {
		v, own := &vars[k-1], k == u.Index || vars[k-1].Array != nil && vars[k-1].Array == vars[u.Index-1].Array
		if !own && !s.known(k-1, v) {
			p.add(ruleKnown, path, line, name, "%q depends on %q, which is not a known", clip(name), clip(v.Name))
		}
	}
}

func strictlyAscending(list []int) bool {
	for i := 1; i < len(list); i++ {
		if list[i] <= list[i-1] {
			return false
		}
	}
	return true
}

// sort sorts the dependencies. Of repeated ones it keeps the first.
func (u *Unknown) sort() {
	order := make([]int, len(u.Dependencies))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return u.Dependencies[a] - u.Dependencies[b] })
	var list []int
	var kinds []DependencyKind
	for _, i := range order {
		if n := len(list); n > 0 && list[n-1] == u.Dependencies[i] {
			continue
		}
		list = append(list, u.Dependencies[i])
		if u.Kinds != nil {
			kinds = append(kinds, u.Kinds[i])
		}
	}
	u.Dependencies, u.Kinds = list, kinds
}
