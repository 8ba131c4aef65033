package master

// Point holds the values at one communication point. Its slices belong to the run and are valid only
// during the call.
type Point struct {
	T    float64
	Step int       // accepted macro steps so far; 0 at the start
	U    []float64 // all Real inputs, by subsystem (System.In)
	Y    []float64 // all Real outputs, by subsystem (System.Out)
	// Discrete inputs, discrete outputs and watched variables, one entry per subsystem.
	DiscreteIn, DiscreteOut, Watch []Values
	Measured                       []float64 // quantities of the algorithm (Measuring)
}

// Recorder records the accepted communication points of a run, in order.
type Recorder interface {
	// Begin is called with the system and the quantities that the algorithm measures.
	Begin(sys *System, measured []Port) error
	Record(*Point) error
	Flush() error // makes the points so far survive a crash of the process
	// End is called before the subsystems are ended, which may add to the warnings of the result only.
	End(Result) error
}
