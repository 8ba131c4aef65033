//go:build (linux || darwin || freebsd || netbsd) && arm64

package native

import (
	"runtime"

	"github.com/ebitengine/purego"
)

// newLogCallback makes the logger callback. C passes five fixed arguments and
// variadic ones. AAPCS64 passes the latter in the three remaining integer registers
// and eight floating-point registers, and the rest of both kinds in order on the
// stack. Apple passes all of them on the stack, in slots of eight bytes.
func newLogCallback() uintptr {
	return purego.NewCallback(func(env, instance, status, category, message, r5, r6, r7 uintptr,
		x0, x1, x2, x3, x4, x5, x6, x7 float64,
		s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15,
		s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31 uintptr) {
		args := &slots{longDouble: longDoubleDouble, stack: []uintptr{
			s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15,
			s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31}}
		if runtime.GOOS != "darwin" {
			args.longDouble = longDoubleQuad
			args.ints = []uintptr{r5, r6, r7}
			args.floats = []float64{x0, x1, x2, x3, x4, x5, x6, x7}
		}
		receiveLog(env, instance, int32(status), category, message, args)
	})
}
