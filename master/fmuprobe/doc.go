// Package fmuprobe tests whether the description of an FMU is true: whether the FMU restores a saved state, on
// which inputs its outputs depend, and whether its derivatives are right. The FMU under test is a [Subject],
// usually on an instance of its own. [Store] stores results for later runs.
package fmuprobe
