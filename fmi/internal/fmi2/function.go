package fmi2

// Function is the number of an FMI function, the index into the symbol table of a library.
type Function uint8

const (
	GetTypesPlatform Function = iota
	GetVersion
	SetDebugLogging
	Instantiate
	FreeInstance
	SetupExperiment
	EnterInitializationMode
	ExitInitializationMode
	Terminate
	Reset
	GetReal
	GetInteger
	GetBoolean
	GetString
	SetReal
	SetInteger
	SetBoolean
	SetString
	GetFMUState
	SetFMUState
	FreeFMUState
	SerializedFMUStateSize
	SerializeFMUState
	DeSerializeFMUState
	GetDirectionalDerivative
	SetRealInputDerivatives
	GetRealOutputDerivatives
	DoStep
	CancelStep
	GetStatus
	GetRealStatus
	GetIntegerStatus
	GetBooleanStatus
	GetStringStatus
	NumFunctions
)

var Names = [NumFunctions]string{
	GetTypesPlatform:         "fmi2GetTypesPlatform",
	GetVersion:               "fmi2GetVersion",
	SetDebugLogging:          "fmi2SetDebugLogging",
	Instantiate:              "fmi2Instantiate",
	FreeInstance:             "fmi2FreeInstance",
	SetupExperiment:          "fmi2SetupExperiment",
	EnterInitializationMode:  "fmi2EnterInitializationMode",
	ExitInitializationMode:   "fmi2ExitInitializationMode",
	Terminate:                "fmi2Terminate",
	Reset:                    "fmi2Reset",
	GetReal:                  "fmi2GetReal",
	GetInteger:               "fmi2GetInteger",
	GetBoolean:               "fmi2GetBoolean",
	GetString:                "fmi2GetString",
	SetReal:                  "fmi2SetReal",
	SetInteger:               "fmi2SetInteger",
	SetBoolean:               "fmi2SetBoolean",
	SetString:                "fmi2SetString",
	GetFMUState:              "fmi2GetFMUstate",
	SetFMUState:              "fmi2SetFMUstate",
	FreeFMUState:             "fmi2FreeFMUstate",
	SerializedFMUStateSize:   "fmi2SerializedFMUstateSize",
	SerializeFMUState:        "fmi2SerializeFMUstate",
	DeSerializeFMUState:      "fmi2DeSerializeFMUstate",
	GetDirectionalDerivative: "fmi2GetDirectionalDerivative",
	SetRealInputDerivatives:  "fmi2SetRealInputDerivatives",
	GetRealOutputDerivatives: "fmi2GetRealOutputDerivatives",
	DoStep:                   "fmi2DoStep",
	CancelStep:               "fmi2CancelStep",
	GetStatus:                "fmi2GetStatus",
	GetRealStatus:            "fmi2GetRealStatus",
	GetIntegerStatus:         "fmi2GetIntegerStatus",
	GetBooleanStatus:         "fmi2GetBooleanStatus",
	GetStringStatus:          "fmi2GetStringStatus",
}

func (f Function) String() string { return Names[f] }

// Statuses, as functions return them.
const (
	StatusOK      = 0
	StatusWarning = 1
	StatusFatal   = 4
	StatusPending = 5
)

// MaxState bounds the size of a serialised state, in bytes.
const MaxState = 1 << 32

// FunctionSet is a set of functions, one bit each.
type FunctionSet uint64

func (s FunctionSet) Has(f Function) bool { return s>>f&1 != 0 }
