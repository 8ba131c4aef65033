package app

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/results/page"
)

// comparedPage returns the page of several results: their lines in the same plots, and their differences from the
// first. The parts have no curves yet.
func comparedPage(paths []string, tables []*results.Table, list []*reportParts, by *together) (*page.Page, error) {
	nameResults(paths, list)
	differences, err := differenceSection(tables, list, by)
	if err != nil {
		return nil, err
	}
	for k, r := range list {
		for i := range tables[k].Columns {
			tables[k].Columns[i] = r.asInFirst(&tables[k].Columns[i], tables[0], by.of(k, tables[k].Columns[i].Bare))
		}
		r.addCurves(tables[k], len(list)*len(tables[0].Columns), by.names[k])
	}
	first := list[0]
	out := &page.Page{Title: first.title, Made: madeNow()}
	if first.manifest == nil {
		out.Title = fmt.Sprintf("%d results", len(list))
	}
	for _, r := range list {
		out.Lines = append(out.Lines, r.name)
		if r.manifest == nil {
			continue
		}
		for _, w := range r.manifest.Warnings {
			out.Warnings = append(out.Warnings, r.name+": "+w)
		}
		text, tone := verdictShown(r.manifest.Verdict())
		if tone != page.Good {
			text = r.name + ": " + text
		}
		if out.State == "" || tone == page.Bad && out.Tone != page.Bad || out.Tone == page.Good {
			out.State, out.Tone = text, tone
		}
	}
	components := componentsOf(first.manifest)
	out.Sections = append(out.Sections, runsSection(paths, tables, list))
	out.Sections = append(out.Sections, curveSections(list, components)...)
	out.Sections = append(out.Sections, differences, stepSection(list))
	if first.graph != "" {
		out.Sections = append(out.Sections, page.Section{Title: "System of " + first.name, Picture: first.graph, Closed: true})
	}
	out.Sections = withContent(out.Sections)
	return out, nil
}

// nameResults gives each result a name of its own: that of its file, or its path.
func nameResults(paths []string, list []*reportParts) {
	seen := map[string]int{}
	for _, r := range list {
		seen[r.name]++
	}
	for i, r := range list {
		if seen[r.name] > 1 {
			r.name = filepath.ToSlash(paths[i])
		}
	}
}

// asInFirst returns a column in the unit of that which is known in the first table.
func (r *reportParts) asInFirst(c *results.Column, first *results.Table, known string) results.Column {
	at := slices.IndexFunc(first.Columns, func(f results.Column) bool { return f.Bare == known })
	if at < 0 || c.Unit == "" || first.Columns[at].Unit == c.Unit || first.Columns[at].Unit == "" {
		return *c
	}
	same, ok := c.In(first.Columns[at].Unit)
	if !ok {
		r.notes = append(r.notes, fmt.Sprintf("%s is in %s and not in %s; it is drawn as it is.", c.Bare, c.Unit, first.Columns[at].Unit))
	}
	return *same
}

// runsSection returns the table of the compared runs.
func runsSection(paths []string, tables []*results.Table, list []*reportParts) page.Section {
	s := page.Section{Title: "Runs"}
	var rows [][]string
	for k, r := range list {
		row := []string{r.name, "no manifest", "–", "–", "–", "–", "–"}
		if m := r.manifest; m != nil {
			steps := fmt.Sprint(m.Steps.Accepted)
			if m.Steps.Rejected > 0 {
				steps += fmt.Sprintf(", %d more rejected", m.Steps.Rejected)
			}
			row = []string{r.name, m.Verdict().String(), m.Algorithm + parameterList(given(m)), number(m.Steps.Mean) + " s", steps, duration(m.WallSeconds), commandOf(m.Command)}
		}
		times := tables[k].Times
		rows = append(rows, append(row, fmt.Sprintf("%s, %s to %s s", paths[k], number(times[0]), number(times[len(times)-1]))))
	}
	addTable(&s, "", "result|outcome|algorithm|mean step|macro steps|took|command|file", rows)
	return s
}

// commandOf returns a command line as one types it.
func commandOf(args []string) string {
	var words []string
	for _, a := range args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// differenceSection returns the differences of results from the first.
func differenceSection(tables []*results.Table, list []*reportParts, by *together) (page.Section, error) {
	s := page.Section{Title: "Differences from " + list[0].name}
	at := map[string]int{}
	var plots []page.Plot
	var rows [][]string
	differ := map[string]bool{}
	for k, t := range tables[1:] {
		c, err := results.Compare(tables[0], t, results.CompareOptions{Match: by.pairs[k+1]})
		if err != nil {
			return s, err
		}
		for _, note := range c.Notes {
			s.Text = append(s.Text, list[k+1].name+": "+note+".")
		}
		for i, v := range c.Variables {
			if m := list[0].manifest; m != nil && m.Connected[v.Name] != "" {
				continue
			}
			differ[v.Name] = differ[v.Name] || v.Max != 0 || v.Unequal != 0
			if v.Max == 0 && v.Unequal == 0 {
				continue
			}
			unit := ""
			if col := slices.IndexFunc(tables[0].Columns, func(f results.Column) bool { return f.Bare == v.Name }); col >= 0 {
				unit = tables[0].Columns[col].Unit
			}
			mean := "–"
			if !math.IsNaN(v.NRMSE) {
				mean = number(100*v.NRMSE) + " %"
			}
			rows = append(rows, []string{v.Name, list[k+1].name, mean, number(v.Max), unit, number(v.At) + " s"})
			n, known := at[v.Name]
			if !known {
				if n = len(plots); n == pagePlots {
					continue
				}
				at[v.Name] = n
				plots = append(plots, page.Plot{Name: "Δ " + v.Name, Unit: unit})
			}
			times, e := c.Errors(i)
			plots[n].Lines = append(plots[n].Lines, lineOf(thinned(times, e, len(tables)*len(c.Variables)), k+1))
		}
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return cmp.Compare(at[a[0]], at[b[0]]) })
	equal := 0
	for _, differs := range differ {
		if !differs {
			equal++
		}
	}
	if equal > 0 {
		s.Text = append(s.Text, fmt.Sprintf("Variables that are the same in all results are not drawn (%d).", equal))
	}
	addTable(&s, "", "variable|result|NRMSE|greatest difference|unit|at", rows)
	if len(plots) > 0 {
		s.Groups = []page.Group{{Plots: plots}}
	}
	return s, nil
}
