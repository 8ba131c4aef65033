//go:build race

package host_test

// Under the race detector a pool of crypto/tls drops a buffer in one of four steps, and makes four objects for the next.
func init() { dropped = 1 }
