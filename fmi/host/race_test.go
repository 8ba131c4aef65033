//go:build race

package host_test

// The race detector has pools of the standard library drop buffers at random, of which crypto/tls makes four objects.
func init() { dropped = 4 }
