package fmi

import "github.com/macrostep/macrostep/fmi/diag"

// Rules on the content of an FMU, by their ids in the catalogue.
var (
	ruleNoDescription = &diag.Rule{
		ID: "FA3", Level: diag.Error, Ref: "fmi2 2",
		Doc:    "An FMU has modelDescription.xml at its root.",
		Remedy: "if the file is an FMU that was packed again, pack what is in the folder and not the folder itself",
	}
	ruleTool = &diag.Rule{
		ID: "FA11", Level: diag.Info, Ref: "fmi2 9",
		Doc:    "An FMU for tool coupling starts the tool that made it.",
		Remedy: "have the tool installed and licensed; starting it may take long",
	}
	ruleToolNeeds = &diag.Rule{
		ID: "FA11D", Level: diag.Warning, Ref: "fmi2 9",
		Doc:    "An FMU for tool coupling says in documentation/externalDependencies.txt or .html what it needs.",
		Remedy: "ask the supplier of the FMU what has to be installed",
	}
	ruleDocumentation = &diag.Rule{
		ID: "FA12", Level: diag.Info, Ref: "fmi2 11",
		Doc:    "The documentation of an FMU begins with documentation/index.html, its licences stand in documentation/licenses.",
		Remedy: "harmless; the exporter should add what users of the FMU want to know",
	}
)

// Rules lists the rules on the content of an FMU that Open checks. It also checks
// description.Rules.
func Rules() []*diag.Rule {
	return []*diag.Rule{ruleNoDescription, ruleTool, ruleToolNeeds, ruleDocumentation}
}
