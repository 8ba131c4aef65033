package dialect

import "github.com/macrostep/macrostep/fmi/diag"

// The rules for system structures of OSP.
var (
	ruleOSP = &diag.Rule{ID: "SD22", Level: diag.Error, Ref: "ssp 43",
		Doc: "Algorithms, functions, groups of variables and power bonds in a system structure of OSP are known " +
			"and complete.",
		Remedy: "correct the structure"}
	ruleOSPPart = &diag.Rule{ID: "SD22P", Level: diag.Warning, Ref: "ssp 43",
		Doc:    "Every part of a system structure of OSP has an effect and agrees with the FMUs.",
		Remedy: "correct the structure if it matters"}
	ruleOSPModel = &diag.Rule{ID: "SD22V", Level: diag.Info, Strict: true, Ref: "ssp 43",
		Doc: "The model description of OSP is of a known version, 0.1, 1.0.0 or 1.0.1, according to its namespace. " +
			"Another version is read like 1.0.1.",
		Remedy: "check that the groups are connected as intended; unknown parts of the document are reported"}
	ruleOSPUnit = &diag.Rule{ID: "SD22U", Level: diag.Warning, Ref: "ssp 43",
		Doc: "Both ends of a connection in a system structure of OSP have the same unit. OSP converts no units.",
		Remedy: "connect variables with the same unit, put a LinearTransformation between them, " +
			"or describe the system as an SSP, which converts units"}
	ruleOSPName = &diag.Rule{ID: "SD22N", Level: diag.Error, Ref: "ssp 43",
		Doc:    "Initial values of a simulator are for variables of its FMU.",
		Remedy: "correct the name to match the modelDescription.xml of the FMU, or remove the value"}
)
