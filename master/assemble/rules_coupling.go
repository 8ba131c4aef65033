package assemble

import "github.com/macrostep/macrostep/fmi/diag"

// The rules on the coupling of a system. A letter after the number marks a variant with a different
// level. Most systems violate some of the rules with level Info.
var (
	// Structure.
	ruleLoop = &diag.Rule{ID: "CC1", Level: diag.Warning, Ref: "fmi2 29, 44",
		Doc: "No outputs depend on themselves within a macro step, through declared feedthrough and connections. " +
			"Explicit coupling breaks such a loop by its extrapolated inputs, which adds an error of the order of " +
			"the extrapolation and can be unstable at any step size.",
		Remedy: "use an implicit algorithm (--algorithm implicit) if the FMUs on the loop support rollback, or check the " +
			"stability first: macrostep analyze"}
	ruleLoopSolved = &diag.Rule{ID: "CC1S", Level: diag.Info, Ref: "fmi2 29, 44",
		Doc:    "Algebraic loops within a macro step are solved by the chosen algorithm, at the cost of iterations.",
		Remedy: "no action needed"}
	ruleInitLoop = &diag.Rule{ID: "CC2", Level: diag.Info, Ref: "fmi2 43",
		Doc: "Outputs that depend on themselves in the initialisation, by InitialUnknowns, are made consistent by " +
			"iteration before the first step.",
		Remedy: "no action needed; if the initialisation does not converge, give better start values"}
	ruleInitLoopDiscrete = &diag.Rule{ID: "CC2D", Level: diag.Warning, Ref: "fmi2 43",
		Doc: "Loops of the initialisation contain only Reals. Other variables are iterated without Newton's method, " +
			"which may not converge.",
		Remedy: "check the values at the start, or remove a connection from the loop"}
	ruleLoopAssumed = &diag.Rule{ID: "CC3", Level: diag.Info, Ref: "fmi2 27, 29",
		Doc: "Loops follow from declared dependencies. An output without declared dependencies is assumed to depend " +
			"on all inputs, which may give loops that do not exist.",
		Remedy: "have the FMU exported with dependencies in ModelStructure/Outputs and InitialUnknowns"}
	ruleFeedback = &diag.Rule{ID: "CC5", Level: diag.Info, Ref: "schweizer",
		Doc: "Components that feed each other see each other's outputs one macro step late, or extrapolated. Whether " +
			"that is stable depends on the step size.",
		Remedy: "see the longest usable step with: macrostep analyze"}
	ruleOpenInput = &diag.Rule{ID: "CC6", Level: diag.Warning, Ref: "ssp 16, 37",
		Doc: "Inputs are connected or have a value in the documents. Others keep the start value of the FMU over the " +
			"whole run.",
		Remedy: "connect the input, or give it a value in a parameter binding or by --input"}
	ruleOpenOutput = &diag.Rule{ID: "CC7", Level: diag.Info, Ref: "ssp 16",
		Doc:    "Outputs are connected. Others are only recorded.",
		Remedy: "no action needed, unless a connection was forgotten"}
	ruleIsland = &diag.Rule{ID: "CC7C", Level: diag.Info, Ref: "ssp 24",
		Doc: "All components are connected with each other, directly or through others. Parts that are not connected " +
			"could be run separately, with their own steps.",
		Remedy: "no action needed, unless a connection was forgotten"}
	ruleSelf = &diag.Rule{ID: "CC9", Level: diag.Warning, Ref: "ssp 24",
		Doc: "No output of a component is connected with an input of the same component: such feedback is delayed by " +
			"a macro step.",
		Remedy: "close the feedback inside the model if it is meant"}

	// Signals.
	ruleUnitOneSided = &diag.Rule{ID: "CC10U", Level: diag.Warning, Ref: "fmi2 16, ssp 31",
		Doc: "Of two connected variables both have a unit with a dimension or neither. If one side is unknown, the " +
			"number is not converted.",
		Remedy: "declare the unit at the other side, or check by hand that the numbers mean the same"}
	ruleQuantity = &diag.Rule{ID: "CC10Q", Level: diag.Info, Ref: "fmi2 16",
		Doc:    "Connected variables are of the same quantity. Equal dimensions do not distinguish torque from energy.",
		Remedy: "check that the connection is meant"}
	ruleFactorDoubt = &diag.Rule{ID: "CC11", Level: diag.Warning, Ref: "fmi2 15",
		Doc: "The factor of a unit converts values to SI units: 0.001 for mm. The reciprocal is correct for a " +
			"DisplayUnit only. Units of the same name have the same factor.",
		Remedy: "compare the UnitDefinitions of the FMU with the unit's name; a wrong factor scales every connected value"}
	ruleSampled = &diag.Rule{ID: "CC12", Level: diag.Warning, Ref: "fmi2 19",
		Doc: "Continuous outputs lead to continuous inputs. A discrete input samples its source at communication " +
			"points and is not extrapolated.",
		Remedy: "check that the macro step is short enough for the sampling that is meant"}
	ruleHeld = &diag.Rule{ID: "CC12H", Level: diag.Info, Ref: "fmi2 19",
		Doc: "Continuous inputs are fed by continuous outputs. Values that change only at communication points are " +
			"held over the macro step, regardless of the extrapolation order.",
		Remedy: "no action needed"}
	ruleItemValues = &diag.Rule{ID: "CC13", Level: diag.Error, Ref: "fmi2 17, 46",
		Doc: "Items of the same name have the same number in two connected enumerations: numbers are exchanged, not " +
			"names.",
		Remedy: "put an EnumerationMappingTransformation on the connection, or correct one of the enumerations"}
	ruleSourceRange = &diag.Rule{ID: "CC14", Level: diag.Warning, Ref: "fmi2 17, 45",
		Doc: "The range of a source lies within the range of the input that it feeds. Outside it, the FMU may refuse " +
			"or clip the value.",
		Remedy: "check the bounds of both variables, and the units"}
	ruleSourceStart = &diag.Rule{ID: "CC14S", Level: diag.Warning, Ref: "fmi2 17, 45",
		Doc:    "The start value of a source lies within the bounds of the input that it feeds.",
		Remedy: "check start value and bounds, and the units"}
	ruleNominals = &diag.Rule{ID: "CC15", Level: diag.Warning, Ref: "fmi2 17",
		Doc: "Connected variables have similar nominal values, in the same unit. If they differ by more than a factor " +
			"of 1000, errors are scaled wrongly, or a unit is wrong.",
		Remedy: "check the nominal values and the units of both variables"}

	// Power bonds.
	ruleBondUnits = &diag.Rule{ID: "CC17", Level: diag.Error, Ref: "sadjina",
		Doc: "The product of the units of effort and flow of a power bond is a power, kg·m²·s⁻³ with rad counted as " +
			"1, and the effort is the factor with a mass in its unit.",
		Remedy: "correct the pair of the bond; macrostep info --bonds lists the pairs that units allow"}
	ruleBondCausality = &diag.Rule{ID: "CC18", Level: diag.Error, Ref: "sadjina",
		Doc:    "Each of the two components at a power bond has one variable as output and the other as input.",
		Remedy: "name the two outputs that are connected with the other component"}
	ruleBondShared = &diag.Rule{ID: "CC19", Level: diag.Error, Ref: "sadjina",
		Doc: "No pair of effort and flow belongs to two power bonds, in either order: its power would count twice. A " +
			"single variable may, for example if several forces act on one mass.",
		Remedy: "remove the pair from one of the bonds"}
	ruleBondLoop = &diag.Rule{ID: "CC20", Level: diag.Warning, Ref: "sadjina",
		Doc: "At most one side of a power bond has declared feedthrough from its input to its output. With both, the " +
			"bond is an algebraic loop.",
		Remedy: "take an implicit algorithm, or cut the model where a mass or a spring is (force on one side, velocity " +
			"on the other)"}

	// Time and steps.
	ruleVariableStep = &diag.Rule{ID: "CC21", Level: diag.Error, Ref: "fmi2 49",
		Doc: "Algorithms with variable steps need FMUs that can vary their step " +
			"(canHandleVariableCommunicationStepSize).",
		Remedy: "choose an algorithm with fixed steps, or another export of the FMU"}
	ruleRateHint = &diag.Rule{ID: "CC22", Level: diag.Warning, Ref: "ssp 43, 45",
		Doc: "The step of a component is a multiple or a fraction of the macro step. Other steps in documents are " +
			"rounded.",
		Remedy: "choose a macro step that divides it"}
	ruleOwnStep = &diag.Rule{ID: "CC23", Level: diag.Warning, Ref: "fmi2 23, 49",
		Doc: "The macro step is a multiple of the step size suggested by an FMU that cannot vary its step.",
		Remedy: "choose such a macro step: with others, the FMU may return an error, or compute at its own step and hold " +
			"its outputs"}
	ruleLastStep = &diag.Rule{ID: "CC24", Level: diag.Warning, Ref: "fmi2 40, 49",
		Doc: "With FMUs that cannot vary their step, the time span is a multiple of the macro step. Otherwise the run " +
			"ends before its stop time.",
		Remedy: "choose a stop time or a step size that fits"}
	ruleTimes = &diag.Rule{ID: "CC25", Level: diag.Error, Ref: "fmi2 48",
		Doc: "The start time is before the stop time, and steps are positive and not negligible compared with the " +
			"time.",
		Remedy: "correct start, stop or step size"}
	ruleTimeUnit = &diag.Rule{ID: "CC26", Level: diag.Warning, Ref: "fmi2 20",
		Doc:    "The independent variable of all FMUs is the time in s, or has no unit.",
		Remedy: "check the time unit of the FMU: it receives seconds"}
	ruleStartTime = &diag.Rule{ID: "CC27", Level: diag.Warning, Ref: "fmi2 23",
		Doc: "The run starts where the default experiments of the FMUs do. Models with tables or dates may be " +
			"undefined at other times.",
		Remedy: "check that the start time is meant"}

	// Fitness of the algorithm.
	ruleRollback = &diag.Rule{ID: "CC28", Level: diag.Error, Ref: "fmi2 58, 59",
		Doc: "Algorithms that repeat steps need FMUs that support rollback (canGetAndSetFMUstate).",
		Remedy: "choose an algorithm that repeats nothing (explicit, gauss-seidel, predictor-corrector, ecco), or " +
			"another export of the FMU"}
	ruleUnfit = &diag.Rule{ID: "CC28A", Level: diag.Error, Ref: "fmi2 14",
		Doc:    "The algorithm of the documents exists, accepts their parameters, and can be used with this system.",
		Remedy: "correct the settings; list algorithms and parameters with: macrostep algorithms"}
	ruleDelivery = &diag.Rule{ID: "CC30", Level: diag.Info, Ref: "fmi2 56, 57",
		Doc: "Extrapolated inputs reach FMUs by input derivatives (canInterpolateInputs). Other FMUs get them in " +
			"substeps, or held if their step cannot vary.",
		Remedy: "no action needed; substeps cost time"}
	ruleOrder = &diag.Rule{ID: "CC31", Level: diag.Warning, Ref: "meyer",
		Doc: "The extrapolation order is below 2. Higher orders are exact for smooth signals and amplify noise, jumps " +
			"and the growth of errors.",
		Remedy: "compare with order 0 and 1, or see which order is best with: macrostep analyze"}
	ruleJacobian = &diag.Rule{ID: "CC32", Level: diag.Info, Ref: "fmi2 60",
		Doc: "FMUs provide the derivatives that an algorithm uses (providesDirectionalDerivative). Otherwise they are " +
			"computed by differences or identified, which costs steps and precision.",
		Remedy: "no action needed"}
	ruleSequence = &diag.Rule{ID: "CC33", Level: diag.Warning, Ref: "fmi2 29",
		Doc: "Gauss–Seidel steps each component after its sources, as far as loops allow. Connections against the " +
			"order see values one macro step old.",
		Remedy: "leave the parameter sequence at graph"}
	ruleZeroStability = &diag.Rule{ID: "CC34", Level: diag.Warning, Ref: "schweizer",
		Doc: "Of two components that feed each other, at most one has declared feedthrough. With both, explicit " +
			"coupling can be unstable for any step size.",
		Remedy: "use an implicit algorithm, or cut the model elsewhere; check the stability with: macrostep analyze"}
	ruleAsynchronous = &diag.Rule{ID: "CC35", Level: diag.Info, Ref: "fmi2 53",
		Doc:    "canRunAsynchronuously is not used: the master waits for pending steps.",
		Remedy: "no action needed"}

	// Deployment.
	ruleOnceIsolated = &diag.Rule{ID: "CC36I", Level: diag.Info, Ref: "fmi2 37",
		Doc:    "Components that cannot share a process with others run in processes of their own.",
		Remedy: "no action needed; a step costs some microseconds more"}
	ruleSameLibrary = &diag.Rule{ID: "CC37", Level: diag.Warning, Ref: "fmi2 7, 73",
		Doc: "FMUs agree on what a process has once for each name: libraries that they bundle, variables that C++ shares " +
			"between libraries, the operator new. In one process, that of the first FMU is used for all.",
		Remedy: "leave --isolate at auto, which runs the later FMU in a separate process"}
	ruleSameGUID = &diag.Rule{ID: "CC38", Level: diag.Warning, Ref: "fmi2 3",
		Doc:    "FMUs of different content have different GUIDs.",
		Remedy: "check which export is the right one: one of the two is older, or was changed by hand"}
	ruleToolInRun = &diag.Rule{ID: "CC39", Level: diag.Warning, Ref: "fmi2 9",
		Doc: "The FMUs of a system run by themselves. One that drives a tool needs it installed and licensed on every " +
			"machine, and may be too slow for real time and batches.",
		Remedy: "have the FMU exported stand-alone"}
	rulePath = &diag.Rule{ID: "CC41", Level: diag.Warning, Ref: "fmi2 3, 4",
		Doc: "FMUs with resources are unpacked below a short path of plain characters: many FMUs do not decode the " +
			"URI of their resources.",
		Remedy: "set TMPDIR (on Windows TEMP) to a short path without blanks and accents"}
	ruleMemory = &diag.Rule{ID: "CC42", Level: diag.Info, Ref: "fmi2 47",
		Doc:    "The size of the results is estimated before the run.",
		Remedy: "record less (--record, --output-interval) if it is too much"}
)

// CouplingRules lists the rules that Check checks.
func CouplingRules() []*diag.Rule {
	return []*diag.Rule{
		ruleLoop, ruleLoopSolved, ruleInitLoop, ruleInitLoopDiscrete, ruleLoopAssumed, ruleFeedback,
		ruleOpenInput, ruleOpenOutput, ruleIsland, ruleSelf,
		ruleUnitOneSided, ruleQuantity, ruleFactorDoubt, ruleSampled, ruleHeld, ruleItemValues, ruleSourceRange, ruleSourceStart, ruleNominals,
		ruleBondUnits, ruleBondCausality, ruleBondShared, ruleBondLoop,
		ruleVariableStep, ruleRateHint, ruleOwnStep, ruleLastStep, ruleTimes, ruleTimeUnit, ruleStartTime,
		ruleRollback, ruleUnfit, ruleDelivery, ruleOrder, ruleJacobian, ruleSequence, ruleZeroStability, ruleAsynchronous,
		ruleOnceIsolated, ruleSameLibrary, ruleSameGUID, ruleToolInRun, rulePath, ruleMemory,
	}
}
