//go:build cgo

package native

// startsInC: the start-up code of C is in the program.
const startsInC = true
