//go:build macrostep_portable || !(linux || darwin || freebsd || netbsd) || !(amd64 || arm64)

package fmi

// runRounds is nil: here calls cross into C one by one.
var runRounds func(r *rounds)
