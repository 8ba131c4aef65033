// Package long says whether the long tests run: with the build tag long, as in `go test -tags long
// ./algorithms/analyze`. Without it a test takes a part of its cases, and files that carry the tag are not compiled.
package long

// Sample returns a function that reports whether a test takes its next case: all with the tag, else the first of
// every n.
func Sample(n int) func() bool {
	k := -1
	return func() bool {
		k++
		return On || k%n == 0
	}
}
