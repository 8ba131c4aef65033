package algorithms

// ImSLocal estimates by predicted against corrected inputs (meyer 4.5); the implicit scheme.
const ImSLocal Estimator = "im-slocal"

var imSLocal = estimate{implicit: true, byInputs: true} // (24)
