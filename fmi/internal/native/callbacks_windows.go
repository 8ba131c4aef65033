//go:build windows && (amd64 || arm64)

package native

import "syscall"

// newLogCallback makes the logger callback. C passes five fixed arguments and
// variadic ones, which Windows passes like integers in slots of eight bytes,
// including the bits of a double.
func newLogCallback() uintptr {
	return syscall.NewCallbackCDecl(func(env, instance, status, category, message,
		s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11,
		s12, s13, s14, s15, s16, s17, s18, s19, s20, s21, s22, s23 uintptr) uintptr {
		receiveLog(env, instance, int32(status), category, message, &slots{
			stack: []uintptr{s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11,
				s12, s13, s14, s15, s16, s17, s18, s19, s20, s21, s22, s23},
			longDouble: longDoubleDouble,
		})
		return 0
	})
}
