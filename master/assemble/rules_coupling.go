package assemble

import "github.com/macrostep/macrostep/fmi/diag"

// The rules on the coupling of a system. A letter after the number marks a variant with a level of its
// own. What is only worth knowing before a run is Info: of most of it nearly every
// system has some.
var (
	// Structure.
	ruleLoop = &diag.Rule{ID: "CC1", Level: diag.Warning, Ref: "fmi2 29, 44",
		Doc:    "No outputs depend on themselves within a macro step, through declared feedthrough and connections. Explicit coupling breaks such a loop by its extrapolated inputs, which adds an error of the order of the extrapolation and can be unstable at any step size.",
		Remedy: "take an implicit algorithm (--algorithm implicit) if the FMUs on the loop can go back, or look at the stability first: macrostep analyze"}
	ruleLoopSolved = &diag.Rule{ID: "CC1S", Level: diag.Info, Ref: "fmi2 29, 44",
		Doc:    "Algebraic loops within a macro step are solved by the chosen algorithm, at the cost of iterations.",
		Remedy: "nothing is to be done"}
	ruleInitLoop = &diag.Rule{ID: "CC2", Level: diag.Info, Ref: "fmi2 43",
		Doc:    "Outputs that depend on themselves in the initialisation, by InitialUnknowns, are made consistent by iteration before the first step.",
		Remedy: "nothing is to be done; if the initialisation does not converge, give better start values"}
	ruleInitLoopDiscrete = &diag.Rule{ID: "CC2D", Level: diag.Warning, Ref: "fmi2 43",
		Doc:    "Loops of the initialisation hold Reals only. For others there is no Newton iteration but only repetition, which need not end.",
		Remedy: "check the values at the start, or break the loop by a connection less"}
	ruleLoopAssumed = &diag.Rule{ID: "CC3", Level: diag.Info, Ref: "fmi2 27, 29",
		Doc:    "Loops are closed by declared dependencies. An output without any is taken to depend on all inputs, so that loops are assumed that may be none.",
		Remedy: "have the FMU exported with dependencies in ModelStructure/Outputs and InitialUnknowns"}
	ruleFeedback = &diag.Rule{ID: "CC5", Level: diag.Info, Ref: "schweizer",
		Doc:    "Components that feed each other see each other's outputs one macro step late, or extrapolated. Whether that is stable depends on the step size.",
		Remedy: "macrostep analyze tells up to which step size it is stable"}
	ruleOpenInput = &diag.Rule{ID: "CC6", Level: diag.Warning, Ref: "ssp 16, 37",
		Doc:    "Inputs are connected or have a value in the documents. Others keep the start value of the FMU over the whole run.",
		Remedy: "connect the input, or give it a value in a parameter binding or by --input"}
	ruleOpenOutput = &diag.Rule{ID: "CC7", Level: diag.Info, Ref: "ssp 16",
		Doc:    "Outputs are connected. Others are only recorded.",
		Remedy: "nothing is to be done, unless a connection was forgotten"}
	ruleIsland = &diag.Rule{ID: "CC7C", Level: diag.Info, Ref: "ssp 24",
		Doc:    "All components are connected with each other, directly or through others. Parts that are not could as well be run by themselves, at steps of their own.",
		Remedy: "nothing is to be done, unless a connection was forgotten"}
	ruleSelf = &diag.Rule{ID: "CC9", Level: diag.Warning, Ref: "ssp 24",
		Doc:    "No output of a component is connected with an input of the same component: the feedback would be delayed by a macro step, where inside the FMU it would not be.",
		Remedy: "close the feedback inside the model if it is meant"}

	// Signals.
	ruleUnitOneSided = &diag.Rule{ID: "CC10U", Level: diag.Warning, Ref: "fmi2 16, ssp 31",
		Doc:    "Of two connected variables both have a unit with a dimension or neither. Where one side is unknown the number passes as it is.",
		Remedy: "declare the unit at the other side, or check by hand that the numbers mean the same"}
	ruleQuantity = &diag.Rule{ID: "CC10Q", Level: diag.Info, Ref: "fmi2 16",
		Doc:    "Connected variables are of the same quantity. Equal dimensions do not tell torque from energy.",
		Remedy: "check that the connection is meant"}
	ruleFactorDoubt = &diag.Rule{ID: "CC11", Level: diag.Warning, Ref: "fmi2 15",
		Doc:    "The factor of a unit takes values of it to SI units: 0.001 for mm. The reciprocal is right for a DisplayUnit only, and two units of the same name have the same factor.",
		Remedy: "compare the UnitDefinitions of the FMU with the unit's name; a wrong factor scales every connected value"}
	ruleSampled = &diag.Rule{ID: "CC12", Level: diag.Warning, Ref: "fmi2 19",
		Doc:    "Continuous outputs lead to continuous inputs. A discrete input samples its source at communication points and is not extrapolated.",
		Remedy: "check that the macro step is short enough for the sampling that is meant"}
	ruleHeld = &diag.Rule{ID: "CC12H", Level: diag.Info, Ref: "fmi2 19",
		Doc:    "Continuous inputs are fed by continuous outputs. What changes at communication points only is held over the macro step, whatever the extrapolation order.",
		Remedy: "nothing is to be done"}
	ruleItemValues = &diag.Rule{ID: "CC13", Level: diag.Error, Ref: "fmi2 17, 46",
		Doc:    "Items of the same name have the same number in two connected enumerations: what is exchanged is the number.",
		Remedy: "put an EnumerationMappingTransformation on the connection, or correct one of the enumerations"}
	ruleSourceRange = &diag.Rule{ID: "CC14", Level: diag.Warning, Ref: "fmi2 17, 45",
		Doc:    "The range of a source, where it has one, lies within that of the input that it feeds. Beyond it the FMU may refuse the value or clip it.",
		Remedy: "check the bounds of both variables, and the units"}
	ruleSourceStart = &diag.Rule{ID: "CC14S", Level: diag.Warning, Ref: "fmi2 17, 45",
		Doc:    "The start value of a source lies within the bounds of the input that it feeds.",
		Remedy: "check start value and bounds, and the units"}
	ruleNominals = &diag.Rule{ID: "CC15", Level: diag.Warning, Ref: "fmi2 17",
		Doc:    "Two connected variables have nominal values of one magnitude, in one unit. Where they differ by more than a thousand, errors are judged by the wrong scale, or a unit is wrong.",
		Remedy: "check the nominal values and the units of both variables"}

	// Power bonds.
	ruleBondUnits = &diag.Rule{ID: "CC17", Level: diag.Error, Ref: "sadjina",
		Doc:    "The product of the units of effort and flow of a power bond is a power, kg·m²·s⁻³ with rad counted as 1, and the effort is the factor with a mass in its unit.",
		Remedy: "correct the pair of the bond; macrostep bonds lists the pairs that units allow"}
	ruleBondCausality = &diag.Rule{ID: "CC18", Level: diag.Error, Ref: "sadjina",
		Doc:    "Of the two components at a power bond each gives one of the two variables and takes the other.",
		Remedy: "name the two outputs that are connected with the other component"}
	ruleBondShared = &diag.Rule{ID: "CC19", Level: diag.Error, Ref: "sadjina",
		Doc:    "No pair of effort and flow belongs to two power bonds, in either order: its power would count twice. One variable may, as where several forces act on one mass.",
		Remedy: "remove the pair from one of the bonds"}
	ruleBondLoop = &diag.Rule{ID: "CC20", Level: diag.Warning, Ref: "sadjina",
		Doc:    "At a power bond one side at most has declared feedthrough from what it takes to what it gives. With both the bond is an algebraic loop.",
		Remedy: "take an implicit algorithm, or cut the model where a mass or a spring is (force on one side, velocity on the other)"}

	// Time and steps.
	ruleVariableStep = &diag.Rule{ID: "CC21", Level: diag.Error, Ref: "fmi2 49",
		Doc:    "An algorithm that chooses the step size has FMUs that can vary it (canHandleVariableCommunicationStepSize).",
		Remedy: "choose an algorithm with fixed steps, or another export of the FMU"}
	ruleRateHint = &diag.Rule{ID: "CC22", Level: diag.Warning, Ref: "ssp 43, 45",
		Doc:    "The step of a component is a multiple or a part of the macro step. Another one that a document asks for is rounded.",
		Remedy: "choose a macro step that divides it"}
	ruleOwnStep = &diag.Rule{ID: "CC23", Level: diag.Warning, Ref: "fmi2 23, 49",
		Doc:    "The macro step is the step size that an FMU suggests which cannot vary its step, or a multiple of it.",
		Remedy: "choose such a macro step: the FMU may refuse others, or compute at its own step and hold its outputs in between"}
	ruleLastStep = &diag.Rule{ID: "CC24", Level: diag.Warning, Ref: "fmi2 40, 49",
		Doc:    "With FMUs that cannot vary their step the time span is a multiple of the macro step. Else the run ends before its stop time.",
		Remedy: "choose a stop time or a step size that fits"}
	ruleTimes = &diag.Rule{ID: "CC25", Level: diag.Error, Ref: "fmi2 48",
		Doc:    "The run starts before it stops, in steps greater than 0 that do not vanish beside the time.",
		Remedy: "correct start, stop or step size"}
	ruleTimeUnit = &diag.Rule{ID: "CC26", Level: diag.Warning, Ref: "fmi2 20",
		Doc:    "The independent variable of all FMUs is the time in s, or has no unit.",
		Remedy: "check what the FMU takes for the time: it is told seconds"}
	ruleStartTime = &diag.Rule{ID: "CC27", Level: diag.Warning, Ref: "fmi2 23",
		Doc:    "The run starts where the default experiments of the FMUs do. Models with tables or dates may have nothing before or after.",
		Remedy: "check that the start time is meant"}

	// Fitness of the algorithm.
	ruleRollback = &diag.Rule{ID: "CC28", Level: diag.Error, Ref: "fmi2 58, 59",
		Doc:    "An algorithm that repeats steps has FMUs that can go back (canGetAndSetFMUstate).",
		Remedy: "choose an algorithm that repeats nothing (explicit, gauss-seidel, predictor-corrector, ecco), or another export of the FMU"}
	ruleUnfit = &diag.Rule{ID: "CC28A", Level: diag.Error, Ref: "fmi2 14",
		Doc:    "The algorithm that the documents ask for exists, takes the parameters that they give, and can be used with this system.",
		Remedy: "correct the settings; macrostep algorithms lists what there is"}
	ruleDelivery = &diag.Rule{ID: "CC30", Level: diag.Info, Ref: "fmi2 56, 57",
		Doc:    "Extrapolated inputs reach FMUs by input derivatives (canInterpolateInputs). Others get them sampled in substeps, or held if their step cannot vary.",
		Remedy: "nothing is to be done; substeps cost time"}
	ruleOrder = &diag.Rule{ID: "CC31", Level: diag.Warning, Ref: "meyer",
		Doc:    "The extrapolation order is below 2. Higher orders are exact for smooth signals and amplify noise, jumps and the growth of errors.",
		Remedy: "compare with order 0 and 1, or let macrostep analyze tell which order is stable"}
	ruleJacobian = &diag.Rule{ID: "CC32", Level: diag.Info, Ref: "fmi2 60",
		Doc:    "Where an algorithm uses derivatives, FMUs give them (providesDirectionalDerivative). Others are measured by differences or identified, which costs steps and precision.",
		Remedy: "nothing is to be done"}
	ruleSequence = &diag.Rule{ID: "CC33", Level: diag.Warning, Ref: "fmi2 29",
		Doc:    "Gauss–Seidel steps each component after its sources, as far as loops allow. Connections against the order see values one macro step old.",
		Remedy: "leave the parameter sequence at graph"}
	ruleZeroStability = &diag.Rule{ID: "CC34", Level: diag.Warning, Ref: "schweizer",
		Doc:    "Of two components that feed each other, one at most has declared feedthrough between them. With both, explicit coupling can be unstable however small the step is.",
		Remedy: "take an implicit algorithm, or cut the model elsewhere; macrostep analyze tells"}
	ruleAsynchronous = &diag.Rule{ID: "CC35", Level: diag.Info, Ref: "fmi2 53",
		Doc:    "canRunAsynchronuously of an FMU is not made use of: steps that do not come back at once are waited for.",
		Remedy: "nothing is to be done"}

	// Deployment.
	ruleOnceIsolated = &diag.Rule{ID: "CC36I", Level: diag.Info, Ref: "fmi2 37",
		Doc:    "Components that cannot share a process with others run in processes of their own.",
		Remedy: "nothing is to be done; a step costs some microseconds more"}
	ruleSameLibrary = &diag.Rule{ID: "CC37", Level: diag.Warning, Ref: "fmi2 7, 73",
		Doc:    "Libraries that FMUs bring along have different names or the same content: in one process the first of a name serves all.",
		Remedy: "leave --isolate at auto, which puts the later one into a process of its own"}
	ruleSameGUID = &diag.Rule{ID: "CC38", Level: diag.Warning, Ref: "fmi2 3",
		Doc:    "FMUs of different content have different GUIDs.",
		Remedy: "check which export is the right one: one of the two is older, or was changed by hand"}
	ruleToolInRun = &diag.Rule{ID: "CC39", Level: diag.Warning, Ref: "fmi2 9",
		Doc:    "The FMUs of a system run by themselves. One that drives a tool needs it installed and licensed on every machine, and may be too slow for real time and batches.",
		Remedy: "have the FMU exported stand-alone"}
	rulePath = &diag.Rule{ID: "CC41", Level: diag.Warning, Ref: "fmi2 3, 4",
		Doc:    "FMUs with resources are unpacked below a short path of plain characters: many do not decode the URI that they are given.",
		Remedy: "let TMPDIR (on Windows TEMP) name a folder with a short path without blanks and accents"}
	ruleMemory = &diag.Rule{ID: "CC42", Level: diag.Info, Ref: "fmi2 47",
		Doc:    "How much a run records is known before it.",
		Remedy: "record less (--record, --output-interval) if it is too much"}
)

// CouplingRules lists the rules that Check checks.
func CouplingRules() []*diag.Rule {
	return []*diag.Rule{
		ruleLoop, ruleLoopSolved, ruleInitLoop, ruleInitLoopDiscrete, ruleLoopAssumed, ruleFeedback, ruleOpenInput, ruleOpenOutput, ruleIsland, ruleSelf,
		ruleUnitOneSided, ruleQuantity, ruleFactorDoubt, ruleSampled, ruleHeld, ruleItemValues, ruleSourceRange, ruleSourceStart, ruleNominals,
		ruleBondUnits, ruleBondCausality, ruleBondShared, ruleBondLoop,
		ruleVariableStep, ruleRateHint, ruleOwnStep, ruleLastStep, ruleTimes, ruleTimeUnit, ruleStartTime,
		ruleRollback, ruleUnfit, ruleDelivery, ruleOrder, ruleJacobian, ruleSequence, ruleZeroStability, ruleAsynchronous,
		ruleOnceIsolated, ruleSameLibrary, ruleSameGUID, ruleToolInRun, rulePath, ruleMemory,
	}
}
