package algorithms

// ImSLocal compares predicted with corrected inputs (meyer 4.5). It needs the implicit scheme.
const ImSLocal Estimator = "im-slocal"

var imSLocal = estimate{implicit: true, byInputs: true} // (24)
