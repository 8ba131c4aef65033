package description

import "github.com/macrostep/macrostep/fmi/diag"

// remedyList is the remedy for lists of dependencies.
const remedyList = "the exporter should correct the list; loops that macrostep assumes because of it are in the manifest (loops, assumed)"

// Rules on modelDescription.xml. A letter after the number of an id marks a
// variant with another level. If the meaning of a document is clear in spite of
// a violation, the rule is a strict Warning, and Doc states how Read repairs it.
var (
	// RuleVersion is the rule on the version of FMI.
	RuleVersion = &diag.Rule{
		ID: "FA4", Level: diag.Error, Ref: "fmi2 2",
		Doc:    `fmiVersion is "2.0" or "3.0".`,
		Remedy: "export the FMU as FMI 2.0 or 3.0 for Co-Simulation",
	}
	ruleFMIVersionForm = &diag.Rule{
		ID: "FA4V", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 2",
		Doc:    `fmiVersion is "2.0", also for 2.0.x, or "3.0" or 3.0.x. Other forms are read as one of these.`,
		Remedy: `write fmiVersion="2.0" or "3.0"`,
	}
	ruleSchema = &diag.Rule{
		ID: "MD1", Level: diag.Error, Ref: "fmi2 13",
		Doc:    "The document is well-formed and follows the schema of its version of FMI.",
		Remedy: "export the FMU again, or correct modelDescription.xml at this place",
	}
	ruleSchemaLoose = &diag.Rule{
		ID: "MD1L", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 13",
		Doc: "Elements are in the order of the schema, and lists are present and not empty. The document is read " +
			"nevertheless.",
		Remedy: "the exporter should follow the schema; other tools may refuse the FMU",
	}
	ruleUnknown = &diag.Rule{
		ID: "MD1U", Level: diag.Info, Ref: "fmi2 13, 68",
		Doc:    "The document has only elements and attributes of the schema. Others are ignored.",
		Remedy: "usually harmless; check the spelling if it should have an effect",
	}
	ruleEncoding = &diag.Rule{
		ID: "MD2", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 12",
		Doc:    "The document is in UTF-8. Other encodings are converted.",
		Remedy: "harmless here; the exporter should write UTF-8",
	}
	ruleNotANumber = &diag.Rule{
		ID: "MD2N", Level: diag.Error, Ref: "fmi2 12",
		Doc:    "Numbers are finite: neither NaN nor INF.",
		Remedy: "omit the attribute, or write a finite number",
	}
	// RuleCoSimulation is the rule on the interfaces of an FMU. Read also accepts
	// FMUs for Model Exchange and reports only FMUs without any interface.
	RuleCoSimulation = &diag.Rule{
		ID: "MD3", Level: diag.Error, Ref: "fmi2 13",
		Doc:    "An FMU offers Co-Simulation, Model Exchange or both; macrostep needs Co-Simulation.",
		Remedy: "export the FMU for Co-Simulation, or add a solver and that interface with FMPy (fmpy.cswrapper)",
	}
	ruleIdentifierPath = &diag.Rule{
		ID: "MD4P", Level: diag.Error, Ref: "fmi2 5",
		Doc:    "modelIdentifier names a file in the folder of the platform.",
		Remedy: "do not use the FMU unless you trust its source; correct modelIdentifier",
	}
	ruleDefinitions = &diag.Rule{
		ID: "MD7", Level: diag.Warning, Strict: true, Ref: "fmi2 15, 17",
		Doc:    "Names of units, of display units within a unit, and of types are unique. The first definition is used.",
		Remedy: "remove the other definition",
	}
	ruleFactor = &diag.Rule{
		ID: "MD8", Level: diag.Error, Ref: "fmi2 15",
		Doc:    "The factor of a unit is not 0; otherwise values cannot be converted.",
		Remedy: "correct the factor",
	}
	ruleUnit = &diag.Rule{
		ID: "MD9", Level: diag.Warning, Strict: true, Ref: "fmi2 66",
		Doc:    "Units are defined in UnitDefinitions. Values in an undefined unit are not converted.",
		Remedy: "define the unit, or make sure that connected variables have the same unit",
	}
	ruleDeclaredType = &diag.Rule{
		ID: "MD11", Level: diag.Warning, Strict: true, Ref: "fmi2 66",
		Doc: "declaredType names a type of the same base type, and every enumeration has one. Otherwise it is " +
			"ignored, and the enumeration is treated as an Integer.",
		Remedy: "define the type",
	}
	ruleItems = &diag.Rule{
		ID: "MD13", Level: diag.Warning, Strict: true, Ref: "fmi2 17",
		Doc:    "An enumeration has items, with unique names and values. All are kept.",
		Remedy: "correct the items; for a duplicate name or value the first item is used",
	}
	ruleNominal = &diag.Rule{
		ID: "MD15", Level: diag.Warning, Strict: true, Ref: "fmi2 17",
		Doc:    "nominal is greater than 0. Other values are ignored.",
		Remedy: "correct the nominal value",
	}
	ruleStartRange = &diag.Rule{
		ID: "MD16", Level: diag.Warning, Strict: true, Ref: "fmi2 17, 45",
		Doc:    "The start value lies between min and max. The value is kept.",
		Remedy: "check start value and bounds",
	}
	ruleNoStartRange = &diag.Rule{
		ID: "MD16Z", Level: diag.Warning, Ref: "fmi2 17, 19",
		Doc:    "If a start value is missing, 0 lies between min and max, since many FMUs and tools then start from 0.",
		Remedy: "set or connect the variable",
	}
	ruleDuplicate = &diag.Rule{
		ID: "MD17", Level: diag.Error, Ref: "fmi2 18",
		Doc:    "Names of variables are unique; in FMI 3.0 (2.4.7) their value references are, too.",
		Remedy: "rename one of the variables, or give it another value reference",
	}
	ruleVariability = &diag.Rule{
		ID: "MD19", Level: diag.Warning, Strict: true, Ref: "fmi2 19, 63",
		Doc:    "Variability fits causality. Otherwise it is replaced with the default for the causality.",
		Remedy: "check that the assumed variability is right",
	}
	ruleInitial = &diag.Rule{
		ID: "MD20", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 19, 63",
		Doc:    "initial fits causality and variability. Otherwise it is replaced with their default.",
		Remedy: "check that the assumed value of initial is right",
	}
	ruleNoStart = &diag.Rule{
		ID: "MD21", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 19, 64",
		Doc: "Inputs, parameters, constants and variables with initial exact or approx have a start value. " +
			"Without one the FMU's own value is used.",
		Remedy: "set or connect the variable if the FMU's own value is wrong",
	}
	ruleContinuous = &diag.Rule{
		ID: "MD23", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 19, 63",
		Doc: "Only Reals are continuous; in FMI 2.0 variables of other types must set variability, whose default is " +
			"continuous. Otherwise it is replaced with the default for the causality.",
		Remedy: "check that the assumed variability is right",
	}
	ruleIndependent = &diag.Rule{
		ID: "MD24", Level: diag.Error, Ref: "fmi2 20",
		Doc:    "At most one variable is independent, and it is a Real.",
		Remedy: "give the others another causality",
	}
	ruleAliasStart = &diag.Rule{
		ID: "MD26", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 21, 67",
		Doc: "Of variables with the same valueReference at most one has a start value, or all are constants with " +
			"the same value. Only the first start value is used.",
		Remedy: "set at most one of these variables: they are the same",
	}
	ruleAliasSettable = &diag.Rule{
		ID: "MD27", Level: diag.Warning, Strict: true, Ref: "fmi2 21, 67",
		Doc:    "Of variables with the same valueReference at most one can be set, and none if one is independent. All are kept.",
		Remedy: "set or connect at most one of these variables: they are the same",
	}
	ruleAliasUnit = &diag.Rule{
		ID: "MD28", Level: diag.Warning, Strict: true, Ref: "fmi2 21",
		Doc:    "Variables with the same valueReference have the same unit. The units are kept.",
		Remedy: "find out which unit is right before you use the variables",
	}
	ruleDerivative = &diag.Rule{
		ID: "MD29", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 22",
		Doc: "derivative is the index of another Real variable, in FMI 3.0 (2.4.7) the reference of one of the same " +
			"size. Otherwise it is ignored.",
		Remedy: "harmless unless an algorithm needs to know the states",
	}
	ruleOutputs = &diag.Rule{
		ID: "MD30", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 26, 65",
		Doc: "ModelStructure/Outputs (FMI 3.0: Output) lists all variables with causality output and no others, each once. Missing " +
			"outputs are added, dependent on everything; other entries are ignored.",
		Remedy: remedyList,
	}
	ruleDerivatives = &diag.Rule{
		ID: "MD31", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 26",
		Doc: "ModelStructure/Derivatives (FMI 3.0: ContinuousStateDerivative) lists only continuous Reals with the attribute " +
			"derivative, each once. Other entries are ignored.",
		Remedy: "usually harmless in Co-Simulation",
	}
	ruleInitialUnknowns = &diag.Rule{
		ID: "MD32", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 26, 65",
		Doc: "ModelStructure/InitialUnknowns (FMI 3.0: InitialUnknown) lists the calculated parameters and the outputs, " +
			"states and derivatives with initial approx or calculated, each once, in FMI 2.0 in ascending order, in " +
			"FMI 3.0 also clocked variables. Missing ones are added, dependent on everything; other entries are ignored.",
		Remedy: remedyList,
	}
	ruleDependencies = &diag.Rule{
		ID: "MD33", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 29",
		Doc:    "dependencies holds indices of variables, in FMI 3.0 references. Otherwise the unknown is assumed to depend on everything.",
		Remedy: remedyList,
	}
	ruleKinds = &diag.Rule{
		ID: "MD34", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 28, 29",
		Doc: "dependenciesKind has as many entries as dependencies, all defined by the standard. Otherwise the " +
			"unknown is assumed to depend on everything.",
		Remedy: remedyList,
	}
	ruleKnown = &diag.Rule{
		ID: "MD37", Level: diag.Info, Ref: "fmi2 27",
		Doc: "Unknowns depend on knowns only: inputs, states and the independent variable, in FMI 3.0 (2.4.8) also " +
			"parameters; in the initialisation inputs, variables with initial exact and the independent variable. Other entries have no effect.",
		Remedy: "usually harmless",
	}
	ruleExperiment = &diag.Rule{
		ID: "MD39", Level: diag.Warning, Ref: "fmi2 23",
		Doc: "In the default experiment the stop time is after the start time, the step size is shorter than the " +
			"time span, and the tolerance is not negative. A negative tolerance is ignored.",
		Remedy: "set start time, stop time and step size yourself",
	}
	ruleStepSize = &diag.Rule{
		ID: "MD40", Level: diag.Warning, Ref: "fmi2 23, 49",
		Doc: "Step sizes are greater than 0, and that of the default experiment divides the time span if steps must be constant. A step size " +
			"that is not greater than 0 is ignored.",
		Remedy: "set the step size yourself",
	}
	ruleSerialize = &diag.Rule{
		ID: "MD41", Level: diag.Warning, Strict: true, Inert: true, Ref: "fmi2 14",
		Doc:    "An FMU that can serialise its state can also get and set it. Otherwise canSerializeFMUstate is ignored.",
		Remedy: "correct the capability flags",
	}
	ruleNoDependencies = &diag.Rule{
		ID: "MD42", Level: diag.Info, Ref: "fmi2 27",
		Doc:    "Outputs without the attribute dependencies are assumed to depend on all inputs.",
		Remedy: remedyList,
	}
	ruleWidth = &diag.Rule{
		ID: "MD43", Level: diag.Error, Ref: "fmi3 3",
		Doc: "In FMI 3.0 (2.4.1) a value lies in the range of its type. That of UInt64 ends at 2^63-1 here, since " +
			"macrostep represents integers as Int64; a greater max is ignored.",
		Remedy: "correct the value, or choose a wider type in the exporter",
	}
	ruleDimension = &diag.Rule{
		ID: "MD44", Level: diag.Error, Ref: "fmi3 4, 5",
		Doc: "In FMI 3.0 (2.4.7) each Dimension has a size greater than 0, or refers to a UInt64 with a start value that is a " +
			"structural parameter or constant; an array has one start value, or one for each element. All arrays " +
			"together have at most 1048576 elements, aliases counted.",
		Remedy: "correct the dimensions and start values, or give the structural parameters other sizes, of at least 1",
	}
	ruleClock = &diag.Rule{
		ID: "MD45", Level: diag.Warning, Strict: true, Ref: "fmi3 11",
		Doc: "In FMI 3.0 (2.2.8, 2.4.4) a Clock is discrete, and input, output or local; all but inputs are triggered. Only " +
			"periodic Clocks have an interval, which is greater than 0, and a shift, which is not negative; a constant one " +
			"has an interval. clocks refers to Clocks, and an FMU with Clocks has the event mode. What is " +
			"wrong is ignored.",
		Remedy: "correct the attributes of the Clock",
	}
)

// Rules lists the rules on modelDescription.xml that Read checks.
func Rules() []*diag.Rule {
	return []*diag.Rule{
		RuleVersion, ruleFMIVersionForm, ruleSchema, ruleSchemaLoose, ruleUnknown, ruleEncoding, ruleNotANumber,
		RuleCoSimulation, ruleIdentifierPath, ruleDefinitions, ruleFactor, ruleUnit, ruleDeclaredType, ruleItems,
		ruleNominal, ruleStartRange, ruleNoStartRange, ruleDuplicate, ruleVariability, ruleInitial, ruleNoStart,
		ruleContinuous, ruleIndependent, ruleAliasStart, ruleAliasSettable, ruleAliasUnit, ruleDerivative, ruleOutputs,
		ruleDerivatives, ruleInitialUnknowns, ruleDependencies, ruleKinds, ruleKnown, ruleExperiment, ruleStepSize,
		ruleSerialize, ruleNoDependencies, ruleWidth, ruleDimension, ruleClock,
	}
}
