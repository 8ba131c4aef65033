// Package diag has the types by which all parsers and checkers of macrostep report problems:
// rules, findings with rule, file, path, line and remedy, and lists of findings.
//
// A Rule is declared next to the code that checks it. Its level is Error, Warning or Info; a
// Strict rule becomes an Error in strict mode, unless it is Inert.
package diag

import (
	"fmt"
	"slices"
	"strings"
)

// Level is the severity of a finding.
type Level uint8

// The levels, by increasing severity.
const (
	Info Level = iota
	Warning
	Error
)

// String returns the lower-case name of the level.
func (l Level) String() string {
	if l > Error {
		return fmt.Sprintf("level(%d)", uint8(l))
	}
	return []string{"info", "warning", "error"}[l]
}

// Rule is one requirement on a document or archive.
type Rule struct {
	ID     string // stable, for example "MD17"
	Level  Level  // unless in strict mode
	Strict bool   // Error in strict mode
	Inert  bool   // a violation changes no result: Info in every mode. Only validate, which judges by the standard, knows its Level and Strict
	Doc    string // the requirement
	Remedy string // what the user can do about a violation
	Ref    string // item of docs/fmi2.md, docs/fmi3.md or docs/ssp.md, or source, for example "fmi2 17"
}

// WithRemedy returns the rule with another remedy, for one finding.
func (r Rule) WithRemedy(remedy string) *Rule {
	r.Remedy = remedy
	return &r
}

// Place is a place in a document.
type Place struct {
	File   string // as shown to the user; in an archive "system.ssp/resources/set.ssv"
	Path   string // XPath-like
	Line   int    // 1-based; 0 = unknown
	Column int    // of the start tag: byte of the line in UTF-8, 1-based; 0 = unknown
}

// String returns "file:line"; a place without line is named by File alone.
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Finding is a violation of a rule, or an information.
type Finding struct {
	ID      string `json:"id"`
	Level   Level  `json:"-"`
	File    string `json:"file,omitempty"`   // archive or document
	Path    string `json:"path"`             // place inside the document, XPath-like
	Line    int    `json:"line,omitempty"`   // 1-based; 0 = unknown
	Column  int    `json:"column,omitempty"` // see Place
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
	Inert   bool   `json:"-"` // see Rule
}

// Brief returns the finding in one line: place, message, remedy. The place is file and line; the path if there is no
// file.
func (f Finding) Brief() string {
	text := f.Message
	switch {
	case f.File != "":
		text = Place{File: f.File, Line: f.Line}.String() + ": " + text
	case f.Path != "":
		text = f.Path + ": " + text
	}
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return text + " [" + f.ID + "]"
}

// String returns the finding in one line, remedy last.
func (f Finding) String() string {
	text := f.Message
	if f.ID != "" {
		text += " [" + f.ID + "]"
	}
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	if f.Path != "" {
		text = f.Path + ": " + text
	}
	switch {
	case f.File != "":
		text = Place{File: f.File, Line: f.Line}.String() + ": " + text
	case f.Line > 0:
		text = fmt.Sprintf("line %d: %s", f.Line, text)
	}
	return text
}

// List collects findings. The zero value is ready to use and not strict.
type List struct {
	Strict   bool // strict mode
	Findings []Finding
}

// Add is Report for a place without column.
func (l *List) Add(r *Rule, file, path string, line int, format string, args ...any) {
	l.Report(r, Place{File: file, Path: path, Line: line}, format, args...)
}

// Report records a violation of r at a place. The message is formatted with args.
func (l *List) Report(r *Rule, at Place, format string, args ...any) {
	l.Findings = append(l.Findings, Finding{
		ID: r.ID, Level: l.LevelOf(r), File: at.File, Path: at.Path, Line: at.Line, Column: at.Column,
		Message: fmt.Sprintf(format, args...), Remedy: r.Remedy, Inert: r.Inert,
	})
}

// LevelOf returns the level of findings of a rule in this list.
func (l *List) LevelOf(r *Rule) Level {
	switch {
	case r.Inert:
		return Info
	case r.Strict && l.Strict:
		return Error
	}
	return r.Level
}

// Append appends the findings of another list, with their levels.
func (l *List) Append(other *List) {
	if other != nil {
		l.Findings = append(l.Findings, other.Findings...)
	}
}

// At returns the findings of one level, in the order they were added.
func (l *List) At(level Level) []Finding {
	var out []Finding
	for _, f := range l.Findings {
		if f.Level == level {
			out = append(out, f)
		}
	}
	return out
}

// Err returns nil if no finding is an Error, else a *ListError with the errors.
func (l *List) Err() error {
	if errs := l.At(Error); len(errs) > 0 {
		return &ListError{Findings: errs}
	}
	return nil
}

// ListError is the error for a list with findings of level Error.
type ListError struct{ Findings []Finding }

// Error returns one line for each finding.
func (e *ListError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// Clip shortens a text to at most this number of bytes and an ellipsis, if possible between words.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	text = strings.ToValidUTF8(text[:most], "")
	if k := strings.LastIndexByte(text, ' '); k > most/2 {
		text = text[:k]
	}
	return text + "…"
}

// Has reports whether an error, which may be wrapped or joined, has a finding of the rule with
// this id.
func Has(err error, id string) bool {
	switch e := err.(type) {
	case *ListError:
		return slices.ContainsFunc(e.Findings, func(f Finding) bool { return f.ID == id })
	case interface{ Unwrap() error }:
		return Has(e.Unwrap(), id)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return Has(err, id) })
	}
	return false
}
