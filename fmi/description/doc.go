// Package description reads and checks modelDescription.xml of FMI 2.0 and 3.0
// into one ModelDescription. Elements of arrays and aliases are variables of their
// own, and references are indices, so that users need not know the version.
//
// Read repairs deviations from the standard if their meaning is clear, and
// reports them as findings; in strict mode most of these are errors. A
// ModelDescription that Read returns is consistent: every index is in range,
// causality, variability and initial fit together, names are unique, and
// invalid lists of dependencies count as not declared.
//
// Numbers such as "fmi2 39" in the documentation refer to the items of
// docs/fmi2.md, "fmi3 4" to those of docs/fmi3.md; ids such as MD17 are rules (see Rules).
package description
