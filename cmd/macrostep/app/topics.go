package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/docs"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/simulate"
)

// topic returns the text of macrostep help NAME that belongs to no command: a page of docs, with .md where a command has
// its name, or a list; "" = there is none.
func topic(name string) string {
	switch name {
	case "quirks":
		return quirksTopic()
	case flagDebug:
		return debugTopic()
	case "settings":
		return settingsTopic()
	case flagScenario:
		name = "scenarios"
	}
	return docs.Page(strings.TrimSuffix(name, ".md"))
}

// topicChoices are the topics beside the commands of a program.
func topicChoices(app *cli.App) []choice {
	out := []choice{{flagDebug, "keys of --debug"}, {"quirks", "deviations that FMUs need"}, {"settings", "settings of a run, in flags, annotations and studies"}}
	for _, name := range docs.Topics() {
		title := docs.Title(name)
		if app.Command(name) != nil || name == sspGroup {
			name += ".md"
		}
		out = append(out, choice{name, title})
	}
	slices.SortFunc(out, func(a, b choice) int { return strings.Compare(a.word, b.word) })
	return out
}

// topicWords are words that others use for commands and topics.
var topicWords = diag.Words{
	"fit": "studies", "calibration": "studies", "optimisation": "studies", "optimization": "studies", "sobol": "studies", "sobolindices": "studies", "sensitivity": "studies",
	"montecarlo": "studies", "sweep": "studies", "doe": "studies", "json": "scripting", "manifest": "scripting", "exitcodes": "scripting", "python": "scripting",
	"fault": "scenarios", "faults": "scenarios", "events": "scenarios", "expectations": "scenarios", "rollback": "algorithms.md", "step": "algorithms.md",
	"csv": "results", "parquet": "results", "mat": "results", "plots": "results", "pages": "results", "annotations": "ssp-settings", "bonds": "building",
	"isolation": "crashes", "checkpoints": "crashes", "checkpoint": "crashes", "resume": "crashes", "wine": "hosts", "remote": "hosts",
	"go": "embedding", "library": "embedding", "errors": "troubleshooting", "warnings": "troubleshooting", "fmi": "fmi2", "papers": "literature",
	"hil": "realtime", "example": "tutorial", "start": "tutorial", "input": "running", "inputs": "running", "parameters": "running", "outcome": "running",
	"table": "running", "tables": "running", "units": "ssp.md", "unit": "ssp.md", "sarif": "checking", "rules": "checking",
}

// helpNames are the names of commands and topics.
func helpNames(app *cli.App) []string {
	names := commandNames(app)
	for _, c := range topicChoices(app) {
		names = append(names, c.word)
	}
	return names
}

func commandNames(app *cli.App) (names []string) {
	for _, c := range app.Commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// topicLines lists the topics for the help of the program.
func topicLines(app *cli.App) string {
	var b strings.Builder
	for _, c := range topicChoices(app) {
		fmt.Fprintf(&b, "   macrostep help %-18s%s\n", c.word, c.doc)
	}
	return b.String()
}

func quirksTopic() string {
	var b strings.Builder
	b.WriteString("Quirks, for FMUs that need them (macrostep run --quirk COMPONENT=NAME):\n\n")
	fmt.Fprintf(&b, "   %-25s%s\n", "stateless", "the outputs depend only on inputs at the same time: step it after its sources, with their new values")
	for _, q := range fmuslave.Quirks() {
		fmt.Fprintf(&b, "   %-25s%s\n", q.Name, q.Doc)
	}
	return b.String()
}

func debugTopic() string {
	var b strings.Builder
	b.WriteString("Keys of --debug, for work on macrostep and on FMUs:\n\n")
	for _, k := range runDebugKeys {
		fmt.Fprintf(&b, "   %-20s%s\n", k.name, k.usage)
	}
	return b.String()
}

func settingsTopic() string {
	var b strings.Builder
	b.WriteString("Settings of a run. Each is a flag of macrostep run. It may also be an attribute or element of ms:Settings or ms:Component\n" +
		"in a system, a key under run of a study, or a factor of a study (varies, as run.NAME).\n\n")
	fmt.Fprintf(&b, "%-20s%-24s%-12s%-8s%s\n", "setting", "in ms:Settings", "component", "study", "meaning")
	for _, e := range simulate.Settings {
		if e.Hint == "" {
			study := map[simulate.Scope]string{simulate.OfSystem: "run", simulate.Varies: "varies"}[e.Scope]
			fmt.Fprintf(&b, "%-20s%-24s%-12s%-8s%s\n", e.Name, e.Annotation, e.Component, study, strings.ReplaceAll(e.Doc, "`", ""))
		}
	}
	return b.String()
}
