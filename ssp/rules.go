package ssp

import (
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp/internal/xmltree"
)

// The rules. Numbers and meaning are those of section 4 (SD) of the validation
// catalogue. The letter after a number marks a variant of the rule, with a
// level of its own.
var (
	ruleFile = &diag.Rule{ID: "SD2", Level: diag.Error, Ref: "ssp 1, 2, 12, 14, 41",
		Doc:    "Every file that is referred to is there and inside the package.",
		Remedy: "put the file where the document says, or correct the reference"}
	ruleFileOutside = &diag.Rule{ID: "SD2O", Level: diag.Warning, Strict: true, Ref: "ssp 12",
		Doc:    "References do not leave the folder of the document: such a system cannot be packed or moved.",
		Remedy: "move the file below the folder of the document, for example into resources/"}
	ruleVariants = &diag.Rule{ID: "SD2V", Level: diag.Info, Ref: "ssp 2",
		Doc:    "Further .ssd files at the root of a package are variants.",
		Remedy: "to run one, give its name behind the package: SYSTEM.ssp#VARIANT.ssd"}
	ruleVersion = &diag.Rule{ID: "SD3", Level: diag.Warning, Ref: "ssp 5",
		Doc:    "A file that says version 1.0 uses no feature of version 2.0.",
		Remedy: `set version="2.0"`}
	ruleClock = &diag.Rule{ID: "SD3C", Level: diag.Warning, Ref: "ssp 18",
		Doc:    "Connectors are not associated with clocks. FMUs of version 2.0 have none; the association has no effect.",
		Remedy: "leave out the Clock"}
	RuleName = &diag.Rule{ID: "SD4", Level: diag.Error, Ref: "ssp 11, 16",
		Doc:    "Names of elements, connectors and signal dictionaries are not empty and unique where they stand.",
		Remedy: "rename one of the two"}
	RuleEnd = &diag.Rule{ID: "SD5", Level: diag.Error, Ref: "ssp 16, 24",
		Doc:    "Both ends of a connection are connectors of this system or of an element in it.",
		Remedy: "correct the name, or declare the connector"}
	ruleUndeclared = &diag.Rule{ID: "SD5U", Level: diag.Warning, Strict: true, Ref: "ssp 16",
		Doc:    "Each connected variable of an FMU has a connector.",
		Remedy: "declare the connector; the causality of the FMU variable was taken"}
	ruleVariable = &diag.Rule{ID: "SD6", Level: diag.Error, Ref: "ssp 16",
		Doc:    "The connector of a component has the name of an FMU variable, and its kind is the causality of that variable.",
		Remedy: "correct name or kind of the connector after the modelDescription.xml of the FMU"}
	ruleVariableUnused = &diag.Rule{ID: "SD6U", Level: diag.Warning, Strict: true, Ref: "ssp 16",
		Doc:    "As SD6, for a connector that nothing is connected to.",
		Remedy: "correct name or kind of the connector after the modelDescription.xml of the FMU"}
	ruleConnectorType = &diag.Rule{ID: "SD7", Level: diag.Warning, Strict: true, Ref: "ssp 16, 18, 31",
		Doc:    "Type, unit and enumeration of a connector agree with the FMU variable. Where they do not, the FMU is right.",
		Remedy: "correct the connector after the modelDescription.xml of the FMU"}
	ruleConnectorUnit = &diag.Rule{ID: "SD7D", Level: diag.Error, Ref: "ssp 31",
		Doc:    "The unit of a connector has the dimension of the unit of the FMU variable.",
		Remedy: "correct the unit of the connector after the modelDescription.xml of the FMU"}
	ruleKinds = &diag.Rule{ID: "SD8", Level: diag.Error, Ref: "ssp 17, 25",
		Doc:    "The kinds of the two ends allow a connection.",
		Remedy: "connect an output or a calculated parameter with an input, or a parameter with a parameter of the system"}
	ruleWriters = &diag.Rule{ID: "SD9", Level: diag.Error, Ref: "ssp 26",
		Doc:    "A connector has one source at most.",
		Remedy: "remove one of the connections"}
	ruleTypes = &diag.Rule{ID: "SD10", Level: diag.Error, Ref: "ssp 18, 32",
		Doc:    "Both ends of a connection have the same type; Integer and Enumeration count as the same.",
		Remedy: "connect like with like; of what FMI 2.0 does not have connect the scalar variables that the FMUs have in its place, or remove the connection"}
	ruleEnumeration = &diag.Rule{ID: "SD10E", Level: diag.Warning, Ref: "fmi2 46, ssp 32",
		Doc:    "An enumeration is connected with an enumeration. With an Integer it exchanges numbers whose meaning nothing tells, unless a mapping does, and of those only the ones that it names.",
		Remedy: "check that both sides mean the same by each number, or add a mapping to the connection; an Integer with bounds tells which numbers come"}
	ruleDimension = &diag.Rule{ID: "SD11", Level: diag.Error, Ref: "ssp 31",
		Doc:    "Units at the two ends of a connection, or of a value and its variable, have the same dimension.",
		Remedy: `correct the units, or set suppressUnitConversion="true" where the number is meant as it stands`}
	ruleUnitLost = &diag.Rule{ID: "SD11L", Level: diag.Warning, Ref: "ssp 30, 31",
		Doc:    "Units are converted only where both are known. A transformation into a connector without a unit ends the conversion.",
		Remedy: "declare the unit of the connector"}
	ruleRelative = &diag.Rule{ID: "SD11R", Level: diag.Warning, Strict: true, Ref: "fmi2 16",
		Doc:    "Both ends of a connection are relative quantities, differences of two values, or neither is. Where units have offsets the value could not be right.",
		Remedy: "connect like with like, or correct relativeQuantity in the modelDescription.xml that is wrong"}
	ruleTransformation = &diag.Rule{ID: "SD12", Level: diag.Error, Ref: "ssp 29",
		Doc:    "A transformation suits the type that it is applied to, names each source value once and gives values of the target. Each item of an enumeration arrives as an item of the other, also where nothing maps it.",
		Remedy: "correct the transformation"}
	ruleUndefined = &diag.Rule{ID: "SD13", Level: diag.Warning, Strict: true, Ref: "ssp 9, 18, 39",
		Doc:    "Every unit and enumeration that a file names is defined in that file. The unit of a connector that is not counts as none, that of a value as SD13C says.",
		Remedy: "define it in the Units or Enumerations of this file"}
	ruleUnitUnknown = &diag.Rule{ID: "SD13C", Level: diag.Error, Ref: "ssp 9, 31, 39",
		Doc:    "The unit of a value is defined where its target has another: in the parameter set, else in the SSD that binds it, else in the FMU. Of the same name both need no definition. A name in brackets, which is not defined so, counts as without.",
		Remedy: `define it in the Units of the parameter set, or set suppressUnitConversion="true" in a mapping where the number is meant as it stands`}
	ruleNoUnit = &diag.Rule{ID: "SD13V", Level: diag.Warning, Strict: true, Ref: "ssp 15, 31, 39",
		Doc:    "A value without a unit needs none: the connector of its component has the unit of what is inside. Else it is in that of the FMU variable; at a component which another system stands for, in that of the connector, which is all that the binding document knows.",
		Remedy: "give the value a unit"}
	ruleUnmatched = &diag.Rule{ID: "SD14", Level: diag.Info, Strict: true, Ref: "ssp 34",
		Doc:    "The names of a parameter set match something.",
		Remedy: "correct the name if it is a typing error"}
	ruleUseless = &diag.Rule{ID: "SD14C", Level: diag.Info, Ref: "ssp 37",
		Doc:    "A value bound to a connector of a system goes inward over connections.",
		Remedy: "connect the connector if the value is meant for an FMU"}
	ruleNotSettable = &diag.Rule{ID: "SD14S", Level: diag.Error, Ref: "ssp 38",
		Doc:    "A value is given only to variables that can be set before the run: inputs, and what has a start value (initial exact or approx) and is not constant.",
		Remedy: "remove the value, or set what the variable is computed from"}
	ruleMapping = &diag.Rule{ID: "SD15", Level: diag.Error, Ref: "ssp 34",
		Doc:    "A parameter mapping gives each target one value. Which of two different ones counts, the standard does not say.",
		Remedy: "remove one of the entries, or bind the variable in a later binding, which beats both"}
	ruleMappingSource = &diag.Rule{ID: "SD15S", Level: diag.Info, Strict: true, Ref: "ssp 34",
		Doc:    "The source of a mapping entry is a name of the parameter set.",
		Remedy: "correct the name if it is a typing error"}
	RuleTwice = &diag.Rule{ID: "SD16T", Level: diag.Warning, Strict: true, Ref: "ssp 29, 34, 39",
		Doc:    "Names are unique in a list: parameters in a set, targets in a mapping, sources of a transformation, units, enumerations and their items; and no connection is written twice. A repeated entry that agrees with the first, or that nothing uses, changes no value.",
		Remedy: "remove one of the two; other tools may refuse the document"}
	ruleClash = &diag.Rule{ID: "SD16D", Level: diag.Error, Ref: "ssp 36, 39",
		Doc:    "A parameter set gives a variable one value. Which of two different values of one name counts, the standard does not say.",
		Remedy: "remove one of the two parameters, or bind the variable in a later binding, which beats both"}
	ruleOverridden = &diag.Rule{ID: "SD16", Level: diag.Info, Ref: "ssp 36",
		Doc:    "A variable bound several times takes the value of the outermost level, there of the last binding. This is how variants are made, so it is told and no warning.",
		Remedy: ""}
	ruleConnected = &diag.Rule{ID: "SD16C", Level: diag.Warning, Ref: "ssp 37",
		Doc:    "A connected variable takes the value that comes over the connection, not the one bound to it.",
		Remedy: "remove the value or the connection"}
	RuleValue = &diag.Rule{ID: "SD17", Level: diag.Error, Ref: "ssp 39, 40",
		Doc:    "A value can be converted into the type of its variable and lies within its bounds.",
		Remedy: "correct the value or its type"}
	ruleContent = &diag.Rule{ID: "SD18", Level: diag.Error, Ref: "ssp 33",
		Doc:    "A binding or mapping has a source or inline content, not both and not none, of a known MIME type.",
		Remedy: "correct the element"}
	ruleReference = &diag.Rule{ID: "SD19", Level: diag.Error, Ref: "ssp 12, 14, 15, 20",
		Doc:    "What an element refers to can be used: FMUs, systems that do not contain themselves, signal dictionaries of this system or one around it, and entries that they have.",
		Remedy: "correct the reference"}
	ruleComponentType = &diag.Rule{ID: "SD19T", Level: diag.Warning, Strict: true, Ref: "ssp 12",
		Doc:    "The type of a component says whether its source is an FMU, an SSD (application/x-ssp-definition) or an SSP (application/x-ssp-package).",
		Remedy: "correct the type; the component was read as what its source is"}
	ruleNested = &diag.Rule{ID: "SD19N", Level: diag.Info, Ref: "ssp 10, 15",
		Doc:    "Start, stop and settings of a run are those of the outermost document. Those of a document that stands for a component have no effect.",
		Remedy: ""}
	rulePlaceholder = &diag.Rule{ID: "SD19P", Level: diag.Warning, Ref: "ssp 12",
		Doc:    "A component without source is a placeholder. It counts as an empty system.",
		Remedy: "give the component a source"}
	ruleBase = &diag.Rule{ID: "SD18B", Level: diag.Error, Ref: "ssp 33",
		Doc:    `Files are found relative to the document (sourceBase="SSD") or, at a component with a source, inside it (sourceBase="component").`,
		Remedy: `copy the file into the package and set sourceBase="SSD"`}
	rulePunning = &diag.Rule{ID: "SD20", Level: diag.Warning, Ref: "ssp 11, 35",
		Doc:    "A hierarchical name means one variable. If it means several, all of them get the value.",
		Remedy: "rename elements so that the dots in names are not ambiguous"}
	ruleSamePath = &diag.Rule{ID: "SD20P", Level: diag.Warning, Ref: "ssp 11",
		Doc:    "The names of a variable, its component and the systems around it, joined with dots, mean that variable only. Where they mean another one, too, as where names have dots, the components are called by their names in quotes, so that flags, tables and results tell them apart.",
		Remedy: "use the names in quotes (in a shell within double quotes, as in --set \"'a.b'.c=1\"), or rename one of the two"}
	RuleForeign = &diag.Rule{ID: "SD21", Level: diag.Info, Ref: "ssp 21, 42-47",
		Doc:    "Annotations of other tools that are not understood have no effect.",
		Remedy: "nothing is to be done, unless the setting matters: then give it on the command line or in an annotation of macrostep"}
	RuleForeignPart = &diag.Rule{ID: "SD21P", Level: diag.Warning, Ref: "ssp 42-47",
		Doc:    "A setting in an annotation of a known tool that is not understood has no effect.",
		Remedy: "give the setting on the command line or in an annotation of macrostep if it matters"}
	ruleOwn = &diag.Rule{ID: "SD21O", Level: diag.Error, Ref: "ssp 46",
		Doc:    "The annotation of macrostep is read strictly: version, attributes and elements are known, values have the right form.",
		Remedy: "correct the annotation; the documentation of package ssp describes it"}
	ruleDangling = &diag.Rule{ID: "SD5D", Level: diag.Warning, Ref: "ssp 27",
		Doc:    "A connection through connectors of systems begins and ends at FMUs, or at the outermost system.",
		Remedy: "complete the connection or remove it"}
	RuleTaken = &diag.Rule{ID: "SD21T", Level: diag.Info, Ref: "ssp 42-47",
		Doc:    "Settings of another tool that mean something here are taken over, unless the annotation of macrostep or the command line says otherwise.",
		Remedy: "nothing is to be done, unless another value is wanted: the command line and an annotation of macrostep win"}
	ruleRing = &diag.Rule{ID: "SD5R", Level: diag.Error, Ref: "ssp 27",
		Doc:    "Connections through connectors of systems do not lead back to themselves.",
		Remedy: "remove one of the connections"}
)

// Rules lists the rules of this package.
func Rules() []*diag.Rule {
	return []*diag.Rule{
		xmltree.RuleSchema, xmltree.RuleTolerated, xmltree.RuleSequence, xmltree.RuleUnknown, ruleFile, ruleFileOutside, ruleVariants, ruleVersion, ruleClock, RuleName,
		RuleEnd, ruleUndeclared, ruleVariable, ruleVariableUnused, ruleConnectorType, ruleConnectorUnit, ruleKinds,
		ruleWriters, ruleTypes, ruleEnumeration, ruleDimension, ruleUnitLost, ruleRelative, ruleTransformation, ruleUndefined, ruleUnitUnknown, ruleNoUnit, ruleUnmatched,
		ruleUseless, ruleNotSettable, ruleMapping, ruleMappingSource, RuleTwice, ruleClash, ruleOverridden, ruleConnected, RuleValue,
		ruleContent, ruleReference, ruleComponentType, ruleNested, rulePlaceholder, ruleBase, rulePunning, ruleSamePath, RuleForeign,
		RuleForeignPart, RuleTaken, ruleOwn, ruleDangling, ruleRing,
	}
}
