package dialect

import "github.com/macrostep/macrostep/fmi/diag"

// The rules for what OSP adds to SSP.
var (
	ruleOSP = &diag.Rule{ID: "SD22", Level: diag.Error, Ref: "ssp 43",
		Doc:    "What a system structure of OSP asks for can be carried out: algorithms, functions, groups of variables and power bonds are known and complete.",
		Remedy: "correct the structure"}
	ruleOSPPart = &diag.Rule{ID: "SD22P", Level: diag.Warning, Ref: "ssp 43",
		Doc:    "Every part of a system structure of OSP has an effect, and says what the FMUs say.",
		Remedy: "correct the structure if it matters"}
	ruleOSPModel = &diag.Rule{ID: "SD22V", Level: diag.Info, Strict: true, Ref: "ssp 43",
		Doc:    "The model description of OSP is of a known version: 0.1, 1.0.0 or 1.0.1, told by its namespace. Of another one the groups of variables and the units are read like those of 1.0.1.",
		Remedy: "nothing is to be done if the groups are connected as meant; what is not known in the document is reported"}
	ruleOSPUnit = &diag.Rule{ID: "SD22U", Level: diag.Warning, Ref: "ssp 43",
		Doc:    "Both ends of a connection in a system structure of OSP have the same unit. OSP converts nothing.",
		Remedy: "connect like with like, put a LinearTransformation between them, or describe the system as an SSP, where units are converted"}
	ruleOSPName = &diag.Rule{ID: "SD22N", Level: diag.Error, Ref: "ssp 43",
		Doc:    "Initial values of a simulator are those of variables that its FMU has.",
		Remedy: "correct the name after the modelDescription.xml of the FMU, or remove the value"}
)
