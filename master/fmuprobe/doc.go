// Package fmuprobe finds out what an FMU really can do, whatever its description says: whether
// it goes back to a saved state, on which inputs its outputs depend, whether its derivatives
// are right. A test knows its FMU as a [Subject], and needs an instance that it may lead
// astray. [Store] keeps what was found out for later runs.
package fmuprobe
