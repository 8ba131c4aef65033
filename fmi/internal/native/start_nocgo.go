//go:build !cgo

package native

const startsInC = false
