package description

import "github.com/macrostep/macrostep/fmi/diag"

// Rules on modelDescription.xml, by their ids in the catalogue. A letter after
// the number marks a variant with a level of its own. Where the document can be
// understood in spite of a violation, the rule is a strict Warning; what reading
// then does stands in Doc.
var (
	ruleFMIVersion = &diag.Rule{
		ID: "FA4", Level: diag.Error, Ref: "fmi2 2",
		Doc:    `fmiVersion is "2.0".`,
		Remedy: "export the FMU as FMI 2.0 for Co-Simulation",
	}
	ruleFMIVersionForm = &diag.Rule{
		ID: "FA4V", Level: diag.Warning, Strict: true, Ref: "fmi2 2",
		Doc:    `fmiVersion is "2.0" for every 2.0.x. Another writing is read as "2.0".`,
		Remedy: `write fmiVersion="2.0"`,
	}
	ruleSchema = &diag.Rule{
		ID: "MD1", Level: diag.Error, Ref: "fmi2 13",
		Doc:    "The document is well-formed and follows the schema of FMI 2.0.",
		Remedy: "export the FMU again or correct modelDescription.xml at this place",
	}
	ruleSchemaLoose = &diag.Rule{
		ID: "MD1L", Level: diag.Warning, Strict: true, Ref: "fmi2 13",
		Doc:    "Elements stand in the order of the schema, and lists are neither missing nor empty. They are read all the same.",
		Remedy: "the exporter should follow the schema; other tools may refuse the FMU",
	}
	ruleUnknown = &diag.Rule{
		ID: "MD1U", Level: diag.Warning, Ref: "fmi2 13, 68",
		Doc:    "There is nothing in the document that the schema does not know. It is passed over.",
		Remedy: "usually harmless; check the spelling if it was meant to have an effect",
	}
	ruleEncoding = &diag.Rule{
		ID: "MD2", Level: diag.Warning, Strict: true, Ref: "fmi2 12",
		Doc:    "The document is in UTF-8. Other encodings are converted.",
		Remedy: "harmless here; the exporter should write UTF-8",
	}
	ruleNotANumber = &diag.Rule{
		ID: "MD2N", Level: diag.Error, Ref: "fmi2 12",
		Doc:    "Numbers are finite: neither NaN nor INF.",
		Remedy: "leave the attribute out, or write a number",
	}
	// RuleCoSimulation is the rule on the interfaces that an FMU offers. Read
	// applies it only to an FMU with neither interface, since it also reads FMUs for
	// Model Exchange.
	RuleCoSimulation = &diag.Rule{
		ID: "MD3", Level: diag.Error, Ref: "fmi2 13",
		Doc:    "An FMU offers Co-Simulation, Model Exchange or both; macrostep needs Co-Simulation.",
		Remedy: "export the FMU for Co-Simulation",
	}
	ruleIdentifier = &diag.Rule{
		ID: "MD4", Level: diag.Warning, Strict: true, Ref: "fmi2 5",
		Doc:    "modelIdentifier is a C identifier. Another name is used as it stands.",
		Remedy: "harmless if the library loads; the exporter should use letters, digits and underscores",
	}
	ruleIdentifierPath = &diag.Rule{
		ID: "MD4P", Level: diag.Error, Ref: "fmi2 5",
		Doc:    "modelIdentifier names a file in the folder of the platform.",
		Remedy: "do not use the FMU if you do not trust its source; else correct modelIdentifier",
	}
	ruleNames = &diag.Rule{
		ID: "MD6", Level: diag.Warning, Ref: "fmi2 24",
		Doc:    "Source files, tools of annotations and log categories are named once. The repeated ones are kept.",
		Remedy: "usually harmless",
	}
	ruleDefinitions = &diag.Rule{
		ID: "MD7", Level: diag.Warning, Strict: true, Ref: "fmi2 15, 17",
		Doc:    "Names of units, of display units within a unit, and of types are unique. The first one counts.",
		Remedy: "remove the other definition",
	}
	ruleFactor = &diag.Rule{
		ID: "MD8", Level: diag.Error, Ref: "fmi2 15",
		Doc:    "The factor of a unit is not 0, or values could not be converted.",
		Remedy: "correct the factor",
	}
	ruleUnit = &diag.Rule{
		ID: "MD9", Level: diag.Warning, Strict: true, Ref: "fmi2 66",
		Doc:    "Units are defined in UnitDefinitions. An undefined one counts as unknown: it is not converted.",
		Remedy: "define the unit, or check by hand that connected variables have the same",
	}
	ruleDisplayUnit = &diag.Rule{
		ID: "MD10", Level: diag.Warning, Strict: true, Ref: "fmi2 66",
		Doc:    "A display unit is defined for the unit of the variable or type. Another one is not used.",
		Remedy: "harmless: values are exchanged in the unit itself",
	}
	ruleDeclaredType = &diag.Rule{
		ID: "MD11", Level: diag.Warning, Strict: true, Ref: "fmi2 66",
		Doc:    "declaredType names a type of the same base type, and every enumeration has one. Otherwise it is not used, and the enumeration is an Integer.",
		Remedy: "define the type",
	}
	ruleTypeName = &diag.Rule{
		ID: "MD12", Level: diag.Warning, Strict: true, Ref: "fmi2 17",
		Doc:    "No type has the name of a variable.",
		Remedy: "harmless here; rename the type",
	}
	ruleItems = &diag.Rule{
		ID: "MD13", Level: diag.Warning, Strict: true, Ref: "fmi2 17",
		Doc:    "An enumeration has items, with unique names and values. All are kept.",
		Remedy: "correct the items; a name or value used twice means the first of them",
	}
	ruleRange = &diag.Rule{
		ID: "MD14", Level: diag.Warning, Strict: true, Ref: "fmi2 17",
		Doc:    "min is not greater than max. The bounds are advice and kept.",
		Remedy: "correct the bounds",
	}
	ruleRangeOfType = &diag.Rule{
		ID: "MD14T", Level: diag.Warning, Ref: "fmi2 17",
		Doc:    "The range of a variable lies in that of its type. The variable's counts.",
		Remedy: "check which bounds are meant",
	}
	ruleNominal = &diag.Rule{
		ID: "MD15", Level: diag.Warning, Strict: true, Ref: "fmi2 17",
		Doc:    "nominal is greater than 0. Another one is dropped.",
		Remedy: "correct the nominal value",
	}
	ruleStartRange = &diag.Rule{
		ID: "MD16", Level: diag.Warning, Strict: true, Ref: "fmi2 17, 45",
		Doc:    "The start value lies between min and max. The bounds are advice, and the value is kept.",
		Remedy: "check start value and bounds",
	}
	ruleNoStartRange = &diag.Rule{
		ID: "MD16Z", Level: diag.Warning, Ref: "fmi2 17, 19",
		Doc:    "Where a start value is missing, 0 lies between min and max: many FMUs and tools begin with 0 then.",
		Remedy: "set the variable, or connect it",
	}
	ruleDuplicate = &diag.Rule{
		ID: "MD17", Level: diag.Error, Ref: "fmi2 18",
		Doc:    "Names of variables are unique.",
		Remedy: "rename one of the variables",
	}
	ruleVariability = &diag.Rule{
		ID: "MD19", Level: diag.Warning, Strict: true, Ref: "fmi2 19, 63",
		Doc:    "Variability and causality fit together. Otherwise causality stands, and variability becomes the default for it.",
		Remedy: "check that the variability assumed is right",
	}
	ruleInitial = &diag.Rule{
		ID: "MD20", Level: diag.Warning, Strict: true, Ref: "fmi2 19, 63",
		Doc:    "initial fits causality and variability. Otherwise it becomes the default for them.",
		Remedy: "check that the kind of initial value assumed is right",
	}
	ruleNoStart = &diag.Rule{
		ID: "MD21", Level: diag.Warning, Strict: true, Ref: "fmi2 19, 64",
		Doc:    "Inputs, parameters, constants and what has initial exact or approx have a start value. Without one the variable is not set, and the FMU's own value holds.",
		Remedy: "set or connect the variable if the FMU's own value is not the right one",
	}
	ruleStart = &diag.Rule{
		ID: "MD22", Level: diag.Warning, Strict: true, Ref: "fmi2 19, 64",
		Doc:    "Calculated variables and the independent one have no start value. It is passed over.",
		Remedy: "harmless, unless the value was meant as initial value: then the exporter must write initial",
	}
	ruleContinuous = &diag.Rule{
		ID: "MD23", Level: diag.Warning, Strict: true, Ref: "fmi2 19, 63",
		Doc:    "Only Reals are continuous, which is the default: others state their variability. Otherwise it becomes the default for the causality.",
		Remedy: "check that the variability assumed is right",
	}
	ruleIndependent = &diag.Rule{
		ID: "MD24", Level: diag.Error, Ref: "fmi2 20",
		Doc:    "At most one variable is the independent one, and it is a Real.",
		Remedy: "give the others another causality",
	}
	ruleForModelExchange = &diag.Rule{
		ID: "MD25", Level: diag.Warning, Ref: "fmi2 18",
		Doc:    "reinit is for continuous states and canHandleMultipleSetPerTimeInstant for inputs, both for Model Exchange only.",
		Remedy: "harmless in Co-Simulation",
	}
	ruleAliasStart = &diag.Rule{
		ID: "MD26", Level: diag.Warning, Strict: true, Ref: "fmi2 21, 67",
		Doc:    "Of variables with the same valueReference one at most has a start value; constants only go with constants, and have the same value. Only the first start value is used.",
		Remedy: "set at most one of these variables: they are the same",
	}
	ruleAliasSettable = &diag.Rule{
		ID: "MD27", Level: diag.Warning, Strict: true, Ref: "fmi2 21, 67",
		Doc:    "Of variables with the same valueReference one at most can be set, and none if one is independent. All are kept.",
		Remedy: "set or connect at most one of these variables: they are the same",
	}
	ruleAliasUnit = &diag.Rule{
		ID: "MD28", Level: diag.Warning, Strict: true, Ref: "fmi2 21",
		Doc:    "Variables with the same valueReference have the same unit. All are kept as they are.",
		Remedy: "find out which unit is right before using the variables",
	}
	ruleAliasVariability = &diag.Rule{
		ID: "MD28V", Level: diag.Warning, Ref: "fmi2 21",
		Doc:    "Variables with the same valueReference have the same variability.",
		Remedy: "usually harmless",
	}
	ruleDerivative = &diag.Rule{
		ID: "MD29", Level: diag.Warning, Strict: true, Ref: "fmi2 22",
		Doc:    "derivative is the index of another Real variable. Otherwise it is dropped.",
		Remedy: "harmless unless an algorithm needs to know the states",
	}
	ruleOutputs = &diag.Rule{
		ID: "MD30", Level: diag.Warning, Strict: true, Ref: "fmi2 26, 65",
		Doc:    "ModelStructure/Outputs lists the variables with causality output, each once. Missing ones are added with dependencies on everything, others dropped.",
		Remedy: "the exporter should list the outputs with their dependencies; until then loops may be assumed that are none",
	}
	ruleDerivatives = &diag.Rule{
		ID: "MD31", Level: diag.Warning, Strict: true, Ref: "fmi2 26",
		Doc:    "ModelStructure/Derivatives lists continuous Reals with the attribute derivative, each once. Others are dropped.",
		Remedy: "usually harmless in Co-Simulation",
	}
	ruleDerivativesMissing = &diag.Rule{
		ID: "MD31M", Level: diag.Info, Ref: "fmi2 26",
		Doc:    "ModelStructure/Derivatives lists all derivatives. In Co-Simulation it may be left out.",
		Remedy: "harmless in Co-Simulation",
	}
	ruleInitialUnknowns = &diag.Rule{
		ID: "MD32", Level: diag.Warning, Strict: true, Ref: "fmi2 26, 65",
		Doc:    "ModelStructure/InitialUnknowns lists the outputs, states and derivatives with initial approx or calculated and the calculated parameters, each once, in ascending order. Missing ones are added with dependencies on everything, others dropped.",
		Remedy: "the exporter should complete the list; until then loops in the initialisation may be assumed that are none",
	}
	ruleDependencies = &diag.Rule{
		ID: "MD33", Level: diag.Warning, Strict: true, Ref: "fmi2 29",
		Doc:    "dependencies are indices of variables. Otherwise the unknown is taken to depend on everything.",
		Remedy: "correct the list; until then loops may be assumed that are none",
	}
	ruleDependencyOrder = &diag.Rule{
		ID: "MD33O", Level: diag.Warning, Ref: "fmi2 27",
		Doc:    "dependencies are ascending and without repetition. They are sorted.",
		Remedy: "harmless",
	}
	ruleKinds = &diag.Rule{
		ID: "MD34", Level: diag.Warning, Strict: true, Ref: "fmi2 28, 29",
		Doc:    "dependenciesKind has the length of dependencies, and only known words. Otherwise the unknown is taken to depend on everything.",
		Remedy: "correct the list; until then loops may be assumed that are none",
	}
	ruleInitialKinds = &diag.Rule{
		ID: "MD35", Level: diag.Warning, Ref: "fmi2 28",
		Doc:    "Dependencies of InitialUnknowns are only dependent or constant.",
		Remedy: "harmless: the kind is not relied on",
	}
	ruleOwnDependency = &diag.Rule{
		ID: "MD36", Level: diag.Warning, Ref: "fmi2 27",
		Doc:    "No unknown depends on itself. The entry is dropped.",
		Remedy: "harmless",
	}
	ruleKnown = &diag.Rule{
		ID: "MD37", Level: diag.Warning, Ref: "fmi2 27",
		Doc:    "Unknowns depend on knowns only: inputs, states and the independent variable, in the initialisation inputs, what has initial exact and the independent variable. Other entries are kept and have no effect.",
		Remedy: "usually harmless",
	}
	ruleLinear = &diag.Rule{
		ID: "MD38", Level: diag.Warning, Ref: "fmi2 28",
		Doc:    "Only Reals depend linearly. The kind becomes dependent.",
		Remedy: "harmless",
	}
	ruleExperiment = &diag.Rule{
		ID: "MD39", Level: diag.Warning, Ref: "fmi2 23",
		Doc:    "The default experiment is possible: it stops after it starts, its step is shorter than it, its tolerance is not negative. A negative tolerance is dropped.",
		Remedy: "give start, stop and step explicitly",
	}
	ruleStepSize = &diag.Rule{
		ID: "MD40", Level: diag.Warning, Ref: "fmi2 23, 49",
		Doc:    "The step size is greater than 0, and divides the time span if steps must be constant. One that is not greater than 0 is dropped.",
		Remedy: "give the step size explicitly",
	}
	ruleSerialize = &diag.Rule{
		ID: "MD41", Level: diag.Warning, Strict: true, Ref: "fmi2 14",
		Doc:    "Who can serialise the state can also get and set it. Otherwise it counts as not able to serialise.",
		Remedy: "correct the capability flags",
	}
	ruleNoDependencies = &diag.Rule{
		ID: "MD42", Level: diag.Info, Ref: "fmi2 27",
		Doc:    "Outputs without dependencies are taken to depend on all inputs.",
		Remedy: "if loops are assumed that are none, have the exporter write dependencies",
	}
)

// Rules lists the rules on modelDescription.xml that Read checks.
func Rules() []*diag.Rule {
	return []*diag.Rule{
		ruleFMIVersion, ruleFMIVersionForm,
		ruleSchema, ruleSchemaLoose, ruleUnknown, ruleEncoding, ruleNotANumber, RuleCoSimulation,
		ruleIdentifier, ruleIdentifierPath, ruleNames, ruleDefinitions, ruleFactor,
		ruleUnit, ruleDisplayUnit, ruleDeclaredType, ruleTypeName, ruleItems, ruleRange,
		ruleRangeOfType, ruleNominal, ruleStartRange, ruleNoStartRange, ruleDuplicate, ruleVariability,
		ruleInitial, ruleNoStart, ruleStart, ruleContinuous, ruleIndependent, ruleForModelExchange,
		ruleAliasStart, ruleAliasSettable, ruleAliasUnit, ruleAliasVariability, ruleDerivative,
		ruleOutputs, ruleDerivatives, ruleDerivativesMissing, ruleInitialUnknowns, ruleDependencies, ruleDependencyOrder,
		ruleKinds, ruleInitialKinds, ruleOwnDependency, ruleKnown, ruleLinear, ruleExperiment,
		ruleStepSize, ruleSerialize, ruleNoDependencies,
	}
}
