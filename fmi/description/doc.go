// Package description reads and judges modelDescription.xml of FMI 2.0.
//
// Reading is tolerant: what deviates from the standard and can be understood
// nevertheless is repaired and reported as a finding; in strict mode most of
// these are errors. What is in a ModelDescription afterwards is consistent:
// every index is in range, causality, variability and initial fit together,
// names are unique, and a list of dependencies that cannot be trusted counts as
// not declared.
//
// Numbers such as "fmi2 39" in the documentation refer to the items of
// docs/fmi2.md; ids such as MD17 name rules (see Rules).
package description
