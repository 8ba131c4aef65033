package validate

import (
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// ruleSystem is the rule for errors in systems without a specific rule.
var ruleSystem = &diag.Rule{
	ID: "CC0", Level: diag.Error, Ref: "ssp 46",
	Doc: "A system can be made of the documents: every quirk, table and setting that they name exists, " +
		"and no input of an FMU is driven twice.",
	Remedy: "correct the document",
}

var ruleEmpty = &diag.Rule{
	ID: "CC0E", Level: diag.Info, Ref: "ssp 12",
	Doc: "A system has components with FMUs. One without may be a document for others to complete; it cannot be " +
		"run.",
	Remedy: "add components with a source",
}

var ruleRollback = &diag.Rule{
	ID: "CC29", Level: diag.Warning, Ref: "fmi2 59",
	Doc: "FMUs with canGetAndSetFMUstate restore their state correctly when they are tried (DY4): " +
		"algorithms that repeat steps rely on it, and refuse FMUs that do not.",
	Remedy: "take an explicit algorithm without error estimate (macrostep algorithms), or another export of the FMU",
}

// Rules lists all rules, by section and number.
func Rules() []*diag.Rule {
	all := slices.Concat(archive.Rules(), fmi.Rules(), fmi.BinaryRules(), description.Rules(), trialRules,
		ssp.Rules(), assemble.Rules(), assemble.CouplingRules(), []*diag.Rule{ruleSystem, ruleEmpty, ruleGain, ruleRollback})
	for _, d := range dialect.All() {
		all = append(all, d.Rules...)
	}
	slices.SortStableFunc(all, func(a, b *diag.Rule) int { return compareIDs(a.ID, b.ID) })
	return all
}

// Section is a part of the rules.
type Section struct{ Prefix, Title string }

// Sections lists the sections in the order of Rules.
func Sections() []Section {
	return []Section{
		{"FA", "archive and library of an FMU"},
		{"MD", "modelDescription.xml"},
		{"DY", "trial of one FMU (--dynamic)"},
		{"SD", "SSP and OSP documents"},
		{"CC", "coupling"},
	}
}

// compareIDs compares IDs by section, number and letter.
func compareIDs(a, b string) int {
	section := func(id string) int {
		return slices.IndexFunc(Sections(), func(s Section) bool { return strings.HasPrefix(id, s.Prefix) })
	}
	if d := section(a) - section(b); d != 0 {
		return d
	}
	numberA, letterA := number(a)
	numberB, letterB := number(b)
	if d := numberA - numberB; d != 0 {
		return d
	}
	return strings.Compare(letterA, letterB)
}

// number splits an ID without its section into number and letter.
func number(id string) (n int, letter string) {
	id = id[min(2, len(id)):]
	for id != "" && id[0] >= '0' && id[0] <= '9' {
		n = 10*n + int(id[0]-'0')
		id = id[1:]
	}
	return n, id
}

// Find returns a rule by its ID, ignoring case.
func Find(id string) (*diag.Rule, bool) {
	all := Rules()
	i := slices.IndexFunc(all, func(r *diag.Rule) bool { return strings.EqualFold(r.ID, id) })
	if i < 0 {
		return nil, false
	}
	return all[i], true
}

// Elsewhere explains, by ID, the numbers of the catalogue without a rule: which rule finds the
// violation instead.
func Elsewhere() map[string]string {
	return map[string]string{
		"CC8": "Connections from or to what cannot be connected are found as SD6 and SD8.",
		"CC10": "Dimensions that differ are SD11, relative quantities SD11R; " +
			"units that only one side knows are CC10U, quantities that differ CC10Q.",
		"CC16": "There is nothing to be violated: only Reals are extrapolated, iterated and corrected; " +
			"everything else is copied at communication points with every algorithm.",
		"CC40": "Values for variables that cannot be set before the run are SD14S. Nothing sets parameters during a run.",
	}
}
