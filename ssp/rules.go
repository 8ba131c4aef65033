package ssp

import (
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// The rules of section 4 (SD) of the validation catalogue. A letter after the number marks a
// variant of a rule with a level of its own.
var (
	ruleFile = &diag.Rule{ID: "SD2", Level: diag.Error, Ref: "ssp 1, 2, 12, 14, 41",
		Doc:    "Every referenced file exists and is inside the package.",
		Remedy: "put the file where the document says, or correct the reference"}
	ruleFileOutside = &diag.Rule{ID: "SD2O", Level: diag.Warning, Strict: true, Inert: true, Ref: "ssp 12",
		Doc:    "References do not leave the folder of the document: such a system cannot be packed or moved.",
		Remedy: "move the file below the folder of the document, for example into resources/"}
	ruleVariants = &diag.Rule{ID: "SD2V", Level: diag.Info, Ref: "ssp 2",
		Doc:    "Further .ssd files at the root of a package are variants.",
		Remedy: "to run one, append its name to the package: SYSTEM.ssp#VARIANT.ssd"}
	ruleVersion = &diag.Rule{ID: "SD3", Level: diag.Warning, Inert: true, Ref: "ssp 5",
		Doc:    "A file of version 1.0 uses no feature of version 2.0.",
		Remedy: `set version="2.0"`}
	ruleClock = &diag.Rule{ID: "SD3C", Level: diag.Warning, Inert: true, Ref: "ssp 18",
		Doc:    "Connectors are not associated with clocks. FMUs of version 2.0 have none; the association has no effect.",
		Remedy: "remove the Clock"}
	RuleName = &diag.Rule{ID: "SD4", Level: diag.Error, Ref: "ssp 11, 16",
		Doc:    "Names of elements, connectors and signal dictionaries are not empty, and are unique in their list.",
		Remedy: "rename one of the two"}
	RuleEnd = &diag.Rule{ID: "SD5", Level: diag.Error, Ref: "ssp 16, 24",
		Doc:    "Both ends of a connection are connectors of this system or of an element in it.",
		Remedy: "correct the name, or declare the connector"}
	ruleUndeclared = &diag.Rule{ID: "SD5U", Level: diag.Warning, Strict: true, Inert: true, Ref: "ssp 16",
		Doc:    "Each connected variable of an FMU has a connector.",
		Remedy: "declare the connector; the causality of the FMU variable was used"}
	ruleDangling = &diag.Rule{ID: "SD5D", Level: diag.Warning, Ref: "ssp 27",
		Doc:    "A connection through connectors of systems begins and ends at FMUs, or at the outermost system.",
		Remedy: "complete the connection or remove it"}
	ruleRing = &diag.Rule{ID: "SD5R", Level: diag.Error, Ref: "ssp 27",
		Doc:    "Connections through connectors of systems do not lead back to themselves.",
		Remedy: "remove one of the connections"}
	ruleVariable = &diag.Rule{ID: "SD6", Level: diag.Error, Ref: "ssp 16",
		Doc:    "The connector of a component has the name of an FMU variable, and its kind is the causality of that variable.",
		Remedy: "correct the name or kind of the connector to match the modelDescription.xml of the FMU"}
	ruleVariableUnused = &diag.Rule{ID: "SD6U", Level: diag.Warning, Strict: true, Inert: true, Ref: "ssp 16",
		Doc:    "Like SD6, for a connector without connections.",
		Remedy: "correct the name or kind of the connector to match the modelDescription.xml of the FMU"}
	ruleConnectorType = &diag.Rule{ID: "SD7", Level: diag.Warning, Strict: true, Ref: "ssp 16, 18, 31",
		Doc:    "Type, unit and enumeration of a connector agree with the FMU variable. If they do not, those of the FMU are used.",
		Remedy: "correct the connector to match the modelDescription.xml of the FMU"}
	ruleConnectorUnit = &diag.Rule{ID: "SD7D", Level: diag.Error, Ref: "ssp 31",
		Doc:    "The unit of a connector has the dimension of the unit of the FMU variable.",
		Remedy: "correct the unit of the connector to match the modelDescription.xml of the FMU"}
	ruleKinds = &diag.Rule{ID: "SD8", Level: diag.Error, Ref: "ssp 17, 25",
		Doc: "The kinds of the two ends allow a connection.",
		Remedy: "connect an output or a calculated parameter to an input, " +
			"or a parameter of the system to a parameter"}
	ruleWriters = &diag.Rule{ID: "SD9", Level: diag.Error, Ref: "ssp 26",
		Doc:    "A connector has at most one source.",
		Remedy: "remove one of the connections"}
	ruleTypes = &diag.Rule{ID: "SD10", Level: diag.Error, Ref: "ssp 18, 32",
		Doc: "Both ends of a connection have the same type; Integer and Enumeration count as the same, and an Integer may feed a Real.",
		Remedy: "connect ends of the same type; for types that FMI 2.0 does not have, connect the scalar " +
			"variables that the FMUs have in their place, or remove the connection"}
	ruleEnumeration = &diag.Rule{ID: "SD10E", Level: diag.Warning, Ref: "fmi2 46, ssp 32",
		Doc: "Enumerations are connected to enumerations. A connection to an Integer passes numbers whose meaning " +
			"is unknown, except for those that a mapping names.",
		Remedy: "check that both sides mean the same by each number, or add a mapping to the connection; " +
			"declare min and max of an Integer to limit the numbers that may occur"}
	ruleDimension = &diag.Rule{ID: "SD11", Level: diag.Error, Ref: "ssp 31",
		Doc: "Units at the two ends of a connection, or of a value and its variable, have the same dimension.",
		Remedy: `correct the units, or set suppressUnitConversion="true" ` +
			`if the number is to be used without conversion`}
	ruleUnitLost = &diag.Rule{ID: "SD11L", Level: diag.Warning, Ref: "ssp 30, 31",
		Doc: "Units are converted only if both are known. After a transformation into a connector without a unit " +
			"the unit is unknown.",
		Remedy: "declare the unit of the connector"}
	ruleRelative = &diag.Rule{ID: "SD11R", Level: diag.Warning, Strict: true, Ref: "fmi2 16",
		Doc: "Both ends of a connection are relative quantities (differences of two values), or neither is. " +
			"If a unit has an offset, the value would be wrong.",
		Remedy: "connect quantities of the same sort, or correct relativeQuantity in the modelDescription.xml"}
	ruleTransformation = &diag.Rule{ID: "SD12", Level: diag.Error, Ref: "ssp 29",
		Doc: "A transformation suits the type of the signal, names each source value once and gives values of the " +
			"target. Each item of an enumeration becomes an item of the target, with or without a mapping.",
		Remedy: "correct the transformation"}
	ruleUndefined = &diag.Rule{ID: "SD13", Level: diag.Warning, Strict: true, Inert: true, Ref: "ssp 9, 18, 39",
		Doc: "Every unit and enumeration that a file uses is defined in that file. An undefined unit of a connector " +
			"is ignored; for that of a value see SD13C.",
		Remedy: "define it in the Units or Enumerations of this file"}
	ruleUnitUnknown = &diag.Rule{ID: "SD13C", Level: diag.Error, Ref: "ssp 9, 31, 39",
		Doc: "The unit of a value is defined if its target has another unit: in the parameter set, in the SSD that " +
			"binds the set, or in the FMU. If both have the same name, no definition is needed. An undefined name " +
			"in brackets, [m], is read without the brackets.",
		Remedy: `define it in the Units of the parameter set, or set suppressUnitConversion="true" in a mapping ` +
			`if the number is to be used without conversion`}
	ruleNoUnit = &diag.Rule{ID: "SD13V", Level: diag.Warning, Strict: true, Ref: "ssp 15, 31, 39",
		Doc: "A value without a unit is unambiguous: the connector of its component has the unit of the variable " +
			"behind it. If the units differ, the value is in the unit of the FMU variable or, where a system " +
			"stands for a component, in the unit of the connector of the component.",
		Remedy: "give the value a unit"}
	ruleUnmatched = &diag.Rule{ID: "SD14", Level: diag.Info, Strict: true, Ref: "ssp 34",
		Doc:    "The names of a parameter set match something.",
		Remedy: "correct the name if it is a typing error"}
	ruleUseless = &diag.Rule{ID: "SD14C", Level: diag.Info, Ref: "ssp 37",
		Doc:    "A value bound to a connector of a system reaches an FMU over connections.",
		Remedy: "connect the connector if the value is meant for an FMU"}
	ruleNotSettable = &diag.Rule{ID: "SD14S", Level: diag.Error, Ref: "ssp 38",
		Doc: "Values are given only to variables that can be set before the run: inputs, and variables with a start " +
			"value (initial exact or approx) that are not constant.",
		Remedy: "remove the value, or set the variables from which this one is computed"}
	ruleMapping = &diag.Rule{ID: "SD15", Level: diag.Error, Ref: "ssp 34",
		Doc: "A parameter mapping gives each target one value. The standard does not say which of two different " +
			"values counts.",
		Remedy: "remove one of the entries, or bind the variable in a later binding, which overrides both"}
	ruleMappingSource = &diag.Rule{ID: "SD15S", Level: diag.Info, Strict: true, Ref: "ssp 34",
		Doc:    "The source of a mapping entry is a name of the parameter set.",
		Remedy: "correct the name if it is a typing error"}
	ruleOverridden = &diag.Rule{ID: "SD16", Level: diag.Info, Ref: "ssp 36",
		Doc: "A variable that is bound several times takes the value of the outermost level, and there of the last " +
			"binding. Variants use this, so it is only information.",
		Remedy: ""}
	ruleConnected = &diag.Rule{ID: "SD16C", Level: diag.Warning, Ref: "ssp 37",
		Doc:    "A connected variable takes the value of the connection, not the one bound to it.",
		Remedy: "remove the value or the connection"}
	ruleClash = &diag.Rule{ID: "SD16D", Level: diag.Error, Ref: "ssp 36, 39",
		Doc: "A parameter set gives a variable one value. The standard does not say which of two different values " +
			"with the same name counts.",
		Remedy: "remove one of the two parameters, or bind the variable in a later binding, which overrides both"}
	RuleTwice = &diag.Rule{ID: "SD16T", Level: diag.Warning, Strict: true, Inert: true, Ref: "ssp 29, 34, 39",
		Doc: "Names are unique in a list: parameters in a set, targets in a mapping, sources of a transformation, " +
			"units, enumerations and their items; and no connection is repeated. A repeated entry that agrees with " +
			"the first, or that nothing uses, changes no value.",
		Remedy: "remove one of the two; other tools may refuse the document"}
	RuleValue = &diag.Rule{ID: "SD17", Level: diag.Error, Ref: "ssp 39, 40",
		Doc:    "A value can be converted into the type of its variable and is within its bounds.",
		Remedy: "correct the value or its type"}
	ruleContent = &diag.Rule{ID: "SD18", Level: diag.Error, Ref: "ssp 33",
		Doc:    "A binding or mapping has either a source or inline content, of a known MIME type.",
		Remedy: "correct the element"}
	ruleBase = &diag.Rule{ID: "SD18B", Level: diag.Error, Ref: "ssp 33",
		Doc: `Files are found relative to the document (sourceBase="SSD") or, at a component with a source, ` +
			`inside it (sourceBase="component").`,
		Remedy: `copy the file into the package and set sourceBase="SSD"`}
	ruleReference = &diag.Rule{ID: "SD19", Level: diag.Error, Ref: "ssp 12, 14, 15, 20",
		Doc: "References lead to something usable: FMUs, systems that do not contain themselves, signal " +
			"dictionaries of this system or one around it, and their entries.",
		Remedy: "correct the reference"}
	ruleNested = &diag.Rule{ID: "SD19N", Level: diag.Info, Ref: "ssp 10, 15",
		Doc: "Start, stop and settings of a run are those of the outermost document. Those of a document that " +
			"stands for a component have no effect.",
		Remedy: ""}
	rulePlaceholder = &diag.Rule{ID: "SD19P", Level: diag.Warning, Ref: "ssp 12",
		Doc:    "Every component has a source. One without is a placeholder and counts as an empty system.",
		Remedy: "give the component a source"}
	ruleComponentType = &diag.Rule{ID: "SD19T", Level: diag.Warning, Strict: true, Inert: true, Ref: "ssp 12",
		Doc: "The type of a component agrees with its source: an FMU, an SSD (application/x-ssp-definition) or " +
			"an SSP (application/x-ssp-package).",
		Remedy: "correct the type; the component was read according to its source"}
	rulePunning = &diag.Rule{ID: "SD20", Level: diag.Warning, Ref: "ssp 11, 35",
		Doc:    "A hierarchical name means one variable. If it means several, all of them get the value.",
		Remedy: "rename elements so that the dots in names are not ambiguous"}
	ruleSamePath = &diag.Rule{ID: "SD20P", Level: diag.Warning, Inert: true, Ref: "ssp 11",
		Doc: "The path of a variable, names joined with dots, means one variable only. If names with dots make it " +
			"ambiguous, flags, tables and results use the names of the components in quotes.",
		Remedy: "use the names in quotes (in a shell within double quotes, as in --set \"'a.b'.c=1\"), " +
			"or rename one of the two"}
	RuleForeign = &diag.Rule{ID: "SD21", Level: diag.Info, Ref: "ssp 21, 42-47",
		Doc: "Unknown annotations of other tools have no effect.",
		Remedy: "no action needed, unless the setting matters: then give it on the command line " +
			"or in an annotation of macrostep"}
	RuleOwn = &diag.Rule{ID: "SD21O", Level: diag.Error, Ref: "ssp 46",
		Doc: "The annotation of macrostep is read strictly: version, attributes and elements are known, and values " +
			"are well-formed.",
		Remedy: "correct the annotation; docs/ssp-settings.md describes it"}
	RuleForeignPart = &diag.Rule{ID: "SD21P", Level: diag.Warning, Ref: "ssp 42-47",
		Doc:    "Unknown settings in the annotation of a known tool have no effect.",
		Remedy: "give the setting on the command line or in an annotation of macrostep if it matters"}
	RuleTaken = &diag.Rule{ID: "SD21T", Level: diag.Info, Ref: "ssp 42-47",
		Doc: "Known settings of other tools are used, unless the annotation of macrostep or the command line " +
			"gives another value.",
		Remedy: "no action needed, unless another value is wanted: the command line and an annotation of macrostep override it"}
)

// Rules lists the rules of this package and those of its XML reader.
func Rules() []*diag.Rule {
	return []*diag.Rule{
		xmltree.RuleSchema, xmltree.RuleTolerated, xmltree.RuleSequence, xmltree.RuleUnknown,
		ruleFile, ruleFileOutside, ruleVariants, ruleVersion, ruleClock, RuleName,
		RuleEnd, ruleUndeclared, ruleVariable, ruleVariableUnused, ruleConnectorType, ruleConnectorUnit,
		ruleKinds, ruleWriters, ruleTypes, ruleEnumeration, ruleDimension, ruleUnitLost, ruleRelative,
		ruleTransformation, ruleUndefined, ruleUnitUnknown, ruleNoUnit, ruleUnmatched, ruleUseless,
		ruleNotSettable, ruleMapping, ruleMappingSource, RuleTwice, ruleClash, ruleOverridden, ruleConnected,
		RuleValue, ruleContent, ruleReference, ruleComponentType, ruleNested, rulePlaceholder, ruleBase,
		rulePunning, ruleSamePath, RuleForeign, RuleForeignPart, RuleTaken, RuleOwn, ruleDangling, ruleRing,
	}
}

// ruleUntransformed is ruleTransformation for a connection that has no transformation.
func ruleUntransformed() *diag.Rule {
	rule := *ruleTransformation
	rule.Remedy = "add an EnumerationMappingTransformation to the connection that maps the items of the source to those of the target"
	return &rule
}
