//go:build (linux || darwin || freebsd || netbsd) && amd64

package native

import "github.com/ebitengine/purego"

// newLogCallback makes the logger callback. C passes five fixed arguments and
// variadic ones. System V passes the latter in the remaining integer register and
// eight floating-point registers, and the rest of both kinds in order on the stack.
func newLogCallback() uintptr {
	return purego.NewCallback(func(env, instance, status, category, message, r9 uintptr,
		x0, x1, x2, x3, x4, x5, x6, x7 float64,
		s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15,
		s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31 uintptr) {
		receiveLog(env, instance, int32(status), category, message, &slots{
			ints:   []uintptr{r9},
			floats: []float64{x0, x1, x2, x3, x4, x5, x6, x7},
			stack: []uintptr{s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15,
				s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31},
			longDouble: longDoubleX87,
		})
	})
}
