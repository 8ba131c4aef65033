//go:build !long

package long

// On means that tests take all of their cases.
const On = false
