//go:build darwin && arm64

package native

import "github.com/ebitengine/purego"

// newLogCallback makes the logger callback. C calls it with five fixed
// arguments and variadic ones. Apple passes all of those on the
// stack, in slots of eight bytes, and leaves the remaining registers unused.
func newLogCallback() uintptr {
	return purego.NewCallback(func(env, instance, status, category, message, _, _, _ uintptr,
		s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15,
		s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31 uintptr) {
		receiveLog(env, instance, int32(status), category, message, &slots{
			ints:   nil,
			floats: nil,
			stack: []uintptr{s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15,
				s16, s17, s18, s19, s20, s21, s22, s23, s24, s25, s26, s27, s28, s29, s30, s31},
			longDouble: longDoubleDouble,
		})
	})
}
