package app

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/validate"
)

// What is used here of SARIF 2.1.0 (OASIS, errata 01). Names are those of the
// standard, and so is which of them must be there.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool        sarifTool         `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Artifacts   []sarifArtifact   `json:"artifacts,omitempty"`
		Results     []sarifResult     `json:"results"`
		ColumnKind  string            `json:"columnKind"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string        `json:"id"`
		ShortDescription sarifMessage  `json:"shortDescription"`
		FullDescription  sarifMessage  `json:"fullDescription"`
		Help             *sarifMessage `json:"help,omitempty"`
		Default          sarifDefault  `json:"defaultConfiguration"`
		Properties       sarifSource   `json:"properties"`
	}
	sarifSource struct {
		Reference string `json:"reference"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifInvocation struct {
		ExecutionSuccessful bool                `json:"executionSuccessful"`
		Notifications       []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level   string       `json:"level"`
		Message sarifMessage `json:"message"`
	}
	sarifArtifact struct {
		Location sarifArtifactLocation `json:"location"`
		Parent   *int                  `json:"parentIndex,omitempty"`
	}
	sarifArtifactLocation struct {
		URI   string `json:"uri,omitempty"`
		Index *int   `json:"index,omitempty"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifactLocation `json:"artifactLocation"`
		Region   *sarifRegion          `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

const (
	sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
	homePage    = "https://github.com/macrostep/macrostep"
)

// writeSARIF prints findings as SARIF 2.1.0. A document in an archive is an artifact
// whose parent is that of the archive; the line in it is the region, and the path of
// the element the logical location.
func writeSARIF(w io.Writer, reports []*validate.Report) error {
	run := sarifRun{
		Tool:        sarifTool{sarifDriver{Name: "macrostep", Version: simulate.Version(), InformationURI: homePage}},
		Invocations: []sarifInvocation{{ExecutionSuccessful: true}},
		Results:     []sarifResult{}, ColumnKind: "unicodeCodePoints",
	}
	at := map[string]int{}
	for _, r := range validate.Rules() {
		at[r.ID] = len(run.Tool.Driver.Rules)
		rule := sarifRule{ID: r.ID, ShortDescription: sarifMessage{firstSentence(r.Doc)}, FullDescription: sarifMessage{r.Doc},
			Default: sarifDefault{sarifLevel(r.Level)}, Properties: sarifSource{r.Ref}}
		if r.Remedy != "" {
			rule.Help = &sarifMessage{r.Remedy}
		}
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, rule)
	}
	artifacts := &sarifArtifacts{index: map[string]int{}}
	source := &excerpts{}
	for _, report := range reports {
		artifacts.add(report.File)
		for _, f := range report.Findings {
			text := f.Message
			if f.Remedy != "" {
				text += "; " + f.Remedy
			}
			file := f.File
			if file == "" {
				file = report.File
			}
			place := sarifLocation{Physical: &sarifPhysical{Artifact: artifacts.add(file)}}
			if f.Line > 0 {
				place.Physical.Region = &sarifRegion{StartLine: f.Line}
				if m, ok := source.find(f); ok {
					from, to := len([]rune(m.text[:m.from])), len([]rune(m.text[:m.to]))
					place.Physical.Region = &sarifRegion{m.line, from + 1, to + 1}
				}
			}
			if f.Path != "" {
				place.Logical = []sarifLogical{{f.Path}}
			}
			run.Results = append(run.Results, sarifResult{RuleID: f.ID, RuleIndex: at[f.ID], Level: sarifLevel(f.Level),
				Message: sarifMessage{text}, Locations: []sarifLocation{place}})
		}
		if report.Stopped != "" {
			run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{"warning", sarifMessage{report.File + ": " + report.Stopped}})
		}
	}
	run.Artifacts = artifacts.list
	return writeJSON(w, sarifLog{sarifSchema, "2.1.0", []sarifRun{run}})
}

func sarifLevel(l diag.Level) string {
	if l == diag.Info {
		return "note"
	}
	return l.String()
}

// sarifArtifacts are the files that findings are about.
type sarifArtifacts struct {
	list  []sarifArtifact
	index map[string]int // by name as findings have it
}

// add returns the location of a file. In an archive it is named from the root of it on, by a path that
// begins with a slash (SARIF 3.4.3, 3.24.3).
func (a *sarifArtifacts) add(name string) sarifArtifactLocation {
	at, known := a.index[name]
	if !known {
		outer, inner := splitArchive(name)
		artifact := sarifArtifact{Location: sarifArtifactLocation{URI: uriReference(outer)}}
		if inner != "" {
			parent := *a.add(outer).Index
			artifact = sarifArtifact{Location: sarifArtifactLocation{URI: (&url.URL{Path: "/" + filepath.ToSlash(inner)}).String()}, Parent: &parent}
		}
		at = len(a.list)
		a.list = append(a.list, artifact)
		a.index[name] = at
	}
	return sarifArtifactLocation{URI: a.list[at].Location.URI, Index: &at} // code hosts want the first
}

// splitArchive parts the name of a document in an archive from that of the archive;
// inner is "" where there is none.
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

// uriReference writes a path as SARIF has it: relative to where the program was
// called, else absolute.
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
