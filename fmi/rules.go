package fmi

import "github.com/macrostep/macrostep/fmi/diag"

// Rules on the content of an FMU.
var (
	ruleNoDescription = &diag.Rule{
		ID: "FA3", Level: diag.Error, Ref: "fmi2 2",
		Doc:    "An FMU has modelDescription.xml at its root.",
		Remedy: "if you packed the FMU yourself, pack the content of the folder, not the folder itself",
	}
	ruleTool = &diag.Rule{
		ID: "FA11", Level: diag.Info, Ref: "fmi2 9",
		Doc:    "An FMU for tool coupling starts the tool that made it.",
		Remedy: "install and license the tool; it may start slowly",
	}
	ruleToolNeeds = &diag.Rule{
		ID: "FA11D", Level: diag.Warning, Inert: true, Ref: "fmi2 9",
		Doc:    "An FMU for tool coupling lists its requirements in documentation/externalDependencies.txt or .html.",
		Remedy: "ask the supplier of the FMU what to install",
	}
	ruleClocks = &diag.Rule{
		ID: "FA13", Level: diag.Error, Ref: "fmi3 18",
		Doc: "An input Clock has an interval, and the FMU an event mode: macrostep ticks no others, and would not " +
			"compute what depends on them.",
		Remedy: "export the FMU without Clocks, for example with the clocked part sampled inside",
	}
	ruleDocumentation = &diag.Rule{
		ID: "FA12", Level: diag.Info, Ref: "fmi2 11",
		Doc:    "An FMU has documentation/index.html, and licences in documentation/licenses.",
		Remedy: "harmless; the exporter should add documentation and licence",
	}
)

// Rules lists the rules on the content of an FMU that Open checks. It also checks
// description.Rules.
func Rules() []*diag.Rule {
	return []*diag.Rule{ruleNoDescription, ruleTool, ruleToolNeeds, ruleClocks, ruleDocumentation}
}
