package master

// Point is what holds at one communication point. Its slices belong to the
// run and are valid during the call only.
type Point struct {
	T    float64
	Step int       // accepted macro steps so far; 0 at the start
	U    []float64 // all Real inputs, by subsystem (System.In)
	Y    []float64 // all Real outputs, by subsystem (System.Out)
	// Discrete inputs and outputs and watched variables, one entry a subsystem.
	DiscreteIn, DiscreteOut, Watch []Values
	Measured                       []float64 // quantities of the algorithm (Measuring)
}

// Recorder takes the accepted communication points of a run, in order.
type Recorder interface {
	// Begin passes the system, and the quantities that the algorithm measures.
	Begin(sys *System, measured []Port) error
	Record(*Point) error
	Flush() error // what was recorded so far survives a crash of the process
	End(Result) error
}
