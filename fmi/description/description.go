package description

import "github.com/macrostep/macrostep/fmi/unit"

// ModelDescription is modelDescription.xml of an FMU of FMI 2.0 or 3.0, read whole
// (checklist 13–28, fmi3 1–14). It has every attribute of the schema of FMI 2.0, and of
// that of FMI 3.0 what Co-Simulation needs. Absent attributes have the default of the
// standard, or are nil if the standard has no default.
type ModelDescription struct {
	FMIVersion               string // "2.0" or "3.0"
	ModelName                string
	GUID                     string // instantiationToken in FMI 3.0
	Description              string
	Author                   string
	Version                  string
	Copyright                string
	License                  string
	GenerationTool           string
	GenerationDateAndTime    string
	VariableNamingConvention string // "flat" or "structured"
	NumberOfEventIndicators  int

	ModelExchange *ModelExchange // nil if not offered
	CoSimulation  *CoSimulation  // nil if not offered

	Units             []unit.Definition
	Types             []SimpleType
	LogCategories     []LogCategory
	DefaultExperiment *DefaultExperiment // nil if absent
	VendorAnnotations []VendorAnnotation
	Variables         []ScalarVariable // document order; index i here is index i+1 of the standard
	Outputs           []Unknown
	Derivatives       []Unknown
	InitialUnknowns   []Unknown

	byName map[string]int
}

// CoSimulation is the element of the same name, or ModelExchange (checklist 14).
type CoSimulation struct {
	ModelIdentifier                        string
	NeedsExecutionTool                     bool
	CanHandleVariableCommunicationStepSize bool
	CanInterpolateInputs                   bool
	MaxOutputDerivativeOrder               int
	CanRunAsynchronously                   bool
	CanBeInstantiatedOnlyOncePerProcess    bool
	CanNotUseMemoryManagementFunctions     bool
	CanGetAndSetFMUState                   bool
	CanSerializeFMUState                   bool
	ProvidesDirectionalDerivative          bool
	SourceFiles                            []string
	CompletedIntegratorStepNotNeeded       bool // of ModelExchange only

	// Of FMI 3.0 only.
	HasEventMode                          bool
	CanReturnEarlyAfterIntermediateUpdate bool
	MightReturnEarlyFromDoStep            bool
	ProvidesIntermediateUpdate            bool
	ProvidesEvaluateDiscreteStates        bool
	FixedInternalStepSize                 *float64 // in s, nil if absent
}

// ModelExchange is the element of the same name. macrostep does not run Model Exchange.
type ModelExchange = CoSimulation

// BaseType is the kind of a variable, whatever its width. The functions of FMI 2.0 pass
// Enumeration as Integer. A Binary of FMI 3.0 is a String.
type BaseType uint8

// The base types.
const (
	Real BaseType = iota
	Integer
	Boolean
	String
	Enumeration
	Clock
)

// Storage is the type by which the FMI functions pass a variable. In FMI 2.0 it is
// StoreFloat64, StoreInt32 (also of Enumeration), StoreBool or StoreText.
type Storage uint8

// The storages.
const (
	StoreFloat64 Storage = iota
	StoreFloat32
	StoreInt8
	StoreUInt8
	StoreInt16
	StoreUInt16
	StoreInt32
	StoreUInt32
	StoreInt64
	StoreUInt64 // values up to 2^63-1
	StoreBool
	StoreText
	StoreBinary
	StoreEnum // 64 bits
	StoreClock
)

// ValueReference is the handle of a variable. The low 32 bits are the number in the
// document, the high 32 bits the row-major index of an element of an array, from 0.
// In FMI 2.0 it is unique per base type (Integer and Enumeration share one;
// checklist 21), in FMI 3.0 in the whole FMU.
type ValueReference uint64

// Causality, Variability and Initial are the attributes of the same names (checklist 19).
type (
	Causality   uint8
	Variability uint8
	Initial     uint8
)

// The causalities.
const (
	Local Causality = iota
	Parameter
	CalculatedParameter
	Input
	Output
	Independent
	StructuralParameter // of FMI 3.0: may be the size of arrays
)

// The variabilities.
const (
	Continuous Variability = iota
	Constant
	Fixed
	Tunable
	Discrete
)

// The kinds of initial value. Inputs, the independent variable and Clocks have InitialNone.
const (
	InitialNone Initial = iota
	Exact
	Approx
	Calculated
)

// RealAttributes are the attributes of a Real type or variable (checklist 17).
// Min, Max and Nominal are nil if absent.
type RealAttributes struct {
	Quantity, Unit, DisplayUnit string
	RelativeQuantity, Unbounded bool
	Min, Max, Nominal           *float64
}

// IntegerAttributes are the attributes of an Integer or Enumeration type or variable.
type IntegerAttributes struct {
	Quantity string
	Min, Max *int64
}

// EnumerationItem is one item of an enumeration type.
type EnumerationItem struct {
	Name        string
	Value       int64
	Description string
}

// SimpleType is a type definition (checklist 17).
type SimpleType struct {
	Name, Description string
	Type              BaseType
	Storage           Storage
	Real              RealAttributes
	Integer           IntegerAttributes // also of Enumeration
	Items             []EnumerationItem
	MediaType         string // of Binary

	clock clockAttributes
}

// LogCategory is one category that fmi2SetDebugLogging accepts (checklist 24).
type LogCategory struct{ Name, Description string }

// DefaultExperiment holds suggestions of the exporter, nil if absent; times in s (checklist 23).
type DefaultExperiment struct {
	StartTime, StopTime, Tolerance, StepSize *float64
}

// VendorAnnotation is the content of one Tool element, or in FMI 3.0 of one Annotation
// with its type as Tool, kept as raw XML (checklist 24).
type VendorAnnotation struct{ Tool, XML string }

// Array is an array of FMI 3.0. Its elements are variables, in row-major order.
type Array struct {
	Name  string
	Sizes []int // of each dimension
	First int   // index of its first element in Variables, from 0

	Resized bool // by ReadOptions.Structure, which voids the start value
}

// ClockInfo has the attributes of a Clock of FMI 3.0. Times are in s.
type ClockInfo struct {
	Causality        Causality // that of the variable is always Local
	Interval         string    // intervalVariability: constant, fixed, tunable, changing, countdown or triggered
	IntervalDecimal  float64   // interval, also if the document has it as a fraction; 0 = the FMU knows it
	ShiftDecimal     float64   // delay of the first tick
	SupportsFraction bool
	CanBeDeactivated bool

	given clockAttributes
}

// ScalarVariable is one variable, or one element of an array (checklist 18–22). It includes
// the attributes of its declared type that it does not set itself.
type ScalarVariable struct {
	Name           string
	ValueReference ValueReference
	Description    string
	Causality      Causality
	Variability    Variability
	Initial        Initial
	Type           BaseType
	Storage        Storage
	three          bool   // of FMI 3.0
	DeclaredType   string // "" if none

	CanHandleMultipleSetPerTimeInstant bool
	Reinit                             bool
	Derivative                         int // 1-based index of the differentiated variable; 0 = none

	Real    RealAttributes
	Integer IntegerAttributes

	HasStart     bool
	StartReal    float64
	StartInteger int64 // also of Enumeration
	StartBoolean bool
	StartString  string // of a Binary its bytes

	// AliasOf is the 1-based index of the first variable with the same base type
	// and value reference, 0 for that variable itself. Aliases are one quantity: at
	// most one of them may be set (fmi2 21, 67).
	AliasOf int

	Array     *Array     // nil for a scalar
	Clock     *ClockInfo // nil unless it is a Clock
	Clocks    []uint32   // references of the Clocks it belongs to
	MediaType string     // of a Binary: its mimeType

	Annotations []VendorAnnotation

	Line int // in modelDescription.xml, 1-based
}

// DependencyKind is an entry of dependenciesKind (checklist 28).
type DependencyKind uint8

// The kinds.
const (
	Dependent DependencyKind = iota
	ConstantFactor
	FixedFactor
	TunableFactor
	DiscreteFactor
)

// Unknown is an entry of Outputs, Derivatives or InitialUnknowns (checklist 26–28).
type Unknown struct {
	Index int // 1-based index into the variables
	// Declared is true if the attribute dependencies is present; otherwise the
	// unknown depends on all knowns (checklist 27).
	Declared     bool
	Dependencies []int // 1-based indices
	Kinds        []DependencyKind
}
