package page

// liveState is what the page of a run that goes on has beside.
type liveState struct {
	Token    string
	Done     float64 // part of the run
	from, to float64 // s; what the plots cover
}
