package app

import (
	"cmp"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/validate"
)

// object is a JSON object of SARIF 2.1.0 (OASIS, errata 01), with the names of the standard.
type object = map[string]any

func sarifText(text string) object { return object{"text": text} }

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	homePage    = "https://github.com/macrostep/macrostep"
)

// writeSARIF prints findings as SARIF 2.1.0. A document in an archive is an artifact whose parent is that of
// the archive. The region is the line, and the logical location the path of the element.
func writeSARIF(w io.Writer, reports []*validate.Report) error {
	rules, at := sarifRules()
	artifacts, results, notifications := &sarifArtifacts{index: map[string]int{}}, []object{}, []object{}
	source := &excerpts{}
	for _, report := range reports {
		artifacts.add(report.File)
		for _, f := range report.Findings {
			text := f.Message
			if f.Remedy != "" {
				text += "; " + f.Remedy
			}
			location := sarifLocation(f, artifacts.add(cmp.Or(f.File, report.File)), source)
			results = append(results, object{"ruleId": f.ID, "ruleIndex": at[f.ID], "level": levelWord(f.Level),
				"message": sarifText(text), "locations": []object{location}})
		}
		if report.Stopped != "" {
			notifications = append(notifications, object{"level": "warning", "message": sarifText(report.File + ": " + report.Stopped)})
		}
	}
	invocation := object{"executionSuccessful": true}
	if len(notifications) > 0 {
		invocation["toolExecutionNotifications"] = notifications
	}
	run := object{"invocations": []object{invocation}, "results": results, "columnKind": "unicodeCodePoints", "tool": object{"driver": object{
		"name": "macrostep", "version": simulate.Version(), "informationUri": homePage, "rules": rules}}}
	if len(artifacts.list) > 0 {
		run["artifacts"] = artifacts.list
	}
	return writeJSON(w, object{"$schema": sarifSchema, "version": "2.1.0", "runs": []object{run}})
}

// sarifRules returns all rules, and their indices by ID.
func sarifRules() (rules []object, at map[string]int) {
	at = map[string]int{}
	for i, r := range validate.Rules() {
		at[r.ID] = i
		rule := object{"id": r.ID, "shortDescription": sarifText(firstSentence(r.Doc)), "fullDescription": sarifText(r.Doc),
			"defaultConfiguration": object{"level": levelWord(r.Level)}, "properties": object{"reference": r.Ref}}
		if r.Remedy != "" {
			rule["help"] = sarifText(r.Remedy)
		}
		rules = append(rules, rule)
	}
	return rules, at
}

// sarifLocation returns the location of a finding in an artifact.
func sarifLocation(f diag.Finding, artifact object, source *excerpts) object {
	place := object{"artifactLocation": artifact}
	if f.Line > 0 {
		region := object{"startLine": f.Line}
		if m, ok := source.find(f); ok {
			region = object{"startLine": m.line, "startColumn": utf8.RuneCountInString(m.text[:m.from]) + 1,
				"endColumn": utf8.RuneCountInString(m.text[:m.to]) + 1}
		}
		place["region"] = region
	}
	location := object{"physicalLocation": place}
	if f.Path != "" {
		location["logicalLocations"] = []object{{"fullyQualifiedName": f.Path}}
	}
	return location
}

// sarifArtifacts are the files with findings.
type sarifArtifacts struct {
	list  []object
	index map[string]int // by the name in findings
}

// add returns the location of a file. In an archive, its path begins with a slash, at the root
// of the archive (SARIF 3.4.3, 3.24.3).
func (a *sarifArtifacts) add(name string) object {
	at, known := a.index[name]
	if !known {
		outer, inner := splitArchive(name)
		artifact := object{"location": object{"uri": uriReference(outer)}}
		if inner != "" {
			uri := (&url.URL{Path: "/" + filepath.ToSlash(inner)}).String()
			artifact = object{"location": object{"uri": uri}, "parentIndex": a.add(outer)["index"]}
		}
		at = len(a.list)
		a.list = append(a.list, artifact)
		a.index[name] = at
	}
	return object{"uri": a.list[at]["location"].(object)["uri"], "index": at} // code hosts need the URI
}

// splitArchive splits the name of a document in an archive; inner is "" for other documents.
func splitArchive(name string) (outer, inner string) {
	if i := strings.LastIndexByte(name, '!'); i > 0 {
		return name[:i], name[i+1:]
	}
	if _, err := os.Stat(name); err != nil {
		for i, c := range name {
			if i > 0 && (c == '/' || c == filepath.Separator) {
				if info, err := os.Stat(name[:i]); err == nil && info.Mode().IsRegular() {
					return name[:i], name[i+1:]
				}
			}
		}
	}
	return name, ""
}

// uriReference returns a path as a URI reference, relative for a relative path.
func uriReference(path string) string {
	slashed := filepath.ToSlash(path)
	if filepath.IsAbs(path) {
		u := url.URL{Scheme: "file", Path: slashed}
		if !strings.HasPrefix(slashed, "/") { // a drive letter
			u.Path = "/" + slashed
		}
		return u.String()
	}
	return (&url.URL{Path: slashed}).String()
}
