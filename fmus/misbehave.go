package fmus

// Misbehaving gives the names of the FMUs that do something wrong on purpose.
// They are for tests of what a master makes of it; Build builds them as it does
// those of Names.
//
//   - misbehave: declares and has every capability. Its parameters say what goes
//     wrong: fault what, during in which function, at from which time on, times
//     how often (0: always). See src/misbehave.c.
//   - misbehave_plain: the same without any optional capability.
//   - misbehave_lies: declares every capability and has none.
//   - misbehave_constant: no variable steps; refuses steps that differ.
//   - misbehave_once: once per process; refuses a second instance.
//   - misbehave_guid: the guid in modelDescription.xml is not the library's.
//   - misbehave_refuse: fmi2Instantiate gives null.
//   - misbehave_load: loading and fmi2Instantiate change locale, directory,
//     signal handlers and floating-point modes.
func Misbehaving() []string {
	var names []string
	for _, m := range misbehaving() {
		names = append(names, m.name)
	}
	return names
}

// Items of the enumerations. The C source gets them as Fault_None, … through
// guid.h.
var (
	faults = []string{
		"None", "Warning", "Discard", "DiscardMute", "DiscardAndEnd", "TooLong", "Error", "Fatal", "Undefined",
		"Pending", "NaN", "Infinity", "StopShort",
		"LogStorm", "LogFormats", "LogThread", "LogEnvironment", "LogName",
		"Rounding", "FlushToZero", "Exceptions", "Locale", "Directory", "Signals",
		"ForgetState", "WrongDerivatives", "RefuseOrders", "IgnoreOrders",
	}
	places = []string{
		"DoStep", "GetReal", "SetReal", "SetRealInputDerivatives", "GetDirectionalDerivative", "GetFMUstate", "SetFMUstate",
		"EnterInitializationMode", "ExitInitializationMode", "Terminate", "FreeInstance",
	}
	endings = []string{"OK", "Discard", "Error", "Fatal", "Uncancellable"}
)

func misbehaving() []*model {
	const (
		variable = ` canHandleVariableCommunicationStepSize="true"`
		async    = ` canRunAsynchronuously="true"`
		optional = async + ` canInterpolateInputs="true" maxOutputDerivativeOrder="5" canGetAndSetFMUstate="true"` +
			` canSerializeFMUstate="true" providesDirectionalDerivative="true"`
		once = ` canBeInstantiatedOnlyOncePerProcess="true"`
	)
	m := func(name, attributes string, defines ...string) *model {
		return &model{name: name, description: "Does one thing wrong, on purpose", wrapped: true,
			sources: []string{"lti.h", "lti.c", "wrap.h", "misbehave.c"}, defines: defines,
			stop: 1, step: 0.1, attributes: attributes, variables: misbehaviour()}
	}
	all := []*model{
		m("misbehave", variable+optional),
		m("misbehave_plain", variable),
		m("misbehave_lies", variable+optional, "FMU_PLAIN"),
		m("misbehave_constant", async, "MISBEHAVE_CONSTANT"),
		m("misbehave_once", variable+optional+once, "MISBEHAVE_ONCE"),
		m("misbehave_guid", variable),
		m("misbehave_refuse", variable, "MISBEHAVE_REFUSE"),
		m("misbehave_load", variable, "MISBEHAVE_LOAD"),
	}
	for _, m := range all {
		m.wrongGUID = m.name == "misbehave_guid"
	}
	return all
}

// misbehaviour lists the variables. That w does not depend on u is true only as
// long as d is 0: otherwise it is a feedthrough that is not declared.
func misbehaviour() []variable {
	integer := func(name string, start float64, description string, min float64) variable {
		v := variable{name: name, description: description, role: count, start: start, min: &min}
		return v
	}
	choice := func(name, kind, description string, items []string) variable {
		return variable{name: name, description: description, role: count, enumeration: kind, items: items}
	}
	return []variable{
		in("u", "", "input"),
		st("x", "", "x' = -x + u", "x0"),
		st("z", "", "z' = x"),
		der("x", "", "derivative of x", []string{"x0"}, fixed("u", "x")...),
		der("z", "", "derivative of z", []string{"x0"}, fixed("x")...),
		calc("w", "", "x + d u", []string{"x0"}, fixed("x")...),
		{name: "time", unit: "s", description: "time that the FMU has reached", role: independent},
		par("x0", "", 1, "x at the start"),
		par("d", "", 0, "feedthrough from u to w, which is not declared"),
		par("at", "s", 0, "from when on the fault happens"),
		par("above", "s", 0, "TooLong: steps above this size are discarded"),
		par("fraction", "", 0, "part of a step that is made before it is discarded or silently ended"),
		choice("fault", "Fault", "what goes wrong", faults),
		choice("during", "During", "in which function", places),
		choice("ending", "Ending", "how a pending step ends", endings),
		integer("times", 0, "how often it goes wrong; 0: always", 0),
		integer("polls", 0, "how often a step is found pending; -1: for ever", -1),
		integer("messages", 5, "how many messages of LogStorm, and at once of LogThread", 0),
		integer("variable", 1, "value reference of what is NaN or infinite in fmi2GetReal", 0),
	}
}
