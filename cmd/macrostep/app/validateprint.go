package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/validate"
)

// writeValidation prints findings for people: by document, each with its line and remedy. The remedy of a
// rule is printed once per file.
func writeValidation(w io.Writer, reports []*validate.Report) {
	var total [3]int
	source := &excerpts{}
	for n, r := range reports {
		if n > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s (%s): %s\n", r.File, r.Kind, counts(r.Count(diag.Error), r.Count(diag.Warning), r.Count(diag.Info)))
		file, advised := "", map[string]bool{}
		for _, f := range r.Findings {
			total[f.Level]++
			if f.File != file && f.File != "" && f.File != r.File {
				fmt.Fprintf(w, "\n  %s\n", f.File)
			} else if f.File != file || file == "" && len(advised) == 0 {
				fmt.Fprintln(w)
			}
			file = f.File
			writeFinding(w, source, f, advised)
		}
		if r.Disabled > 0 {
			fmt.Fprintf(w, "\n  %s of disabled rules left out\n", plural(r.Disabled, "finding"))
		}
		if r.Stopped != "" {
			fmt.Fprintf(w, "\n  not complete: %s\n", r.Stopped)
		}
	}
	if len(reports) > 1 {
		fmt.Fprintf(w, "\n%s: %s\n", plural(len(reports), "file"), counts(total[diag.Error], total[diag.Warning], total[diag.Info]))
	}
}

func counts(errors, warnings, notes int) string {
	if errors+warnings+notes == 0 {
		return "nothing found"
	}
	return fmt.Sprintf("%s, %s, %s", plural(errors, "error"), plural(warnings, "warning"), plural(notes, "note"))
}

func writeFinding(w io.Writer, source *excerpts, f diag.Finding, advised map[string]bool) {
	where := ""
	m, shown := source.find(f)
	switch {
	case f.Line > 0:
		where = fmt.Sprintf("%d: ", f.Line)
	case f.Path != "" && f.Path != "/":
		where = f.Path + ": "
	}
	head := fmt.Sprintf("%s%s %s: ", where, levelWord(f.Level), f.ID)
	fmt.Fprintln(w, "  "+strings.TrimLeft(fold(head+oneLine(f.Message), 4), " "))
	if shown {
		text, at, width := m.show()
		gutter := fmt.Sprintf("%8d | ", m.line)
		fmt.Fprintf(w, "%s%s\n%s%s\n", gutter, text, strings.Repeat(" ", len(gutter)+at), strings.Repeat("^", max(width, 1)))
	}
	if f.Remedy != "" && f.Level > diag.Info && !advised[f.ID] {
		advised[f.ID] = true
		fmt.Fprintln(w, fold("→ "+oneLine(f.Remedy), 6))
	}
}

// fileInfo is the JSON of a report.
type fileInfo struct {
	File     string        `json:"file"`
	Kind     string        `json:"kind"`
	Errors   int           `json:"errors"`
	Warnings int           `json:"warnings"`
	Notes    int           `json:"notes"`
	Disabled int           `json:"disabled"` // findings of disabled rules, left out
	Complete bool          `json:"complete"` // all rules were checked
	Why      string        `json:"why"`      // reason if not
	Seconds  float64       `json:"seconds"`
	Findings []findingInfo `json:"findings"`
}

// writeValidationJSON prints findings for programs. Level "info" corresponds to "note" in text.
func writeValidationJSON(w io.Writer, reports []*validate.Report) error {
	out := struct {
		Macrostep string     `json:"macrostep"`
		Errors    int        `json:"errors"`
		Warnings  int        `json:"warnings"`
		Notes     int        `json:"notes"`
		Files     []fileInfo `json:"files"`
	}{Macrostep: simulate.Version()}
	for _, r := range reports {
		f := fileInfo{File: r.File, Kind: r.Kind, Errors: r.Count(diag.Error), Warnings: r.Count(diag.Warning), Notes: r.Count(diag.Info),
			Disabled: r.Disabled, Complete: r.Stopped == "", Why: r.Stopped, Seconds: r.Took.Seconds(), Findings: findings(r.Findings)}
		out.Errors, out.Warnings, out.Notes = out.Errors+f.Errors, out.Warnings+f.Warnings, out.Notes+f.Notes
		out.Files = append(out.Files, f)
	}
	return writeJSON(w, out)
}
