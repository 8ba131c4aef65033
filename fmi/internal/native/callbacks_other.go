//go:build !((linux || darwin || freebsd || netbsd || windows) && (amd64 || arm64))

package native

import "github.com/ebitengine/purego"

// newLogCallback makes the logger callback. The passing of variadic arguments on this
// platform is unknown, so conversions in messages yield zeros and "(null)".
func newLogCallback() uintptr {
	return purego.NewCallback(func(env, instance, status, category, message uintptr) {
		receiveLog(env, instance, int32(status), category, message, &slots{})
	})
}
