package native

import (
	"fmt"
	"math"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"unsafe"
)

// Bounds in bytes, because widths, precisions and strings come from FMUs.
const (
	maxField   = 4096
	maxMessage = 64 << 10
)

// conversion matches a conversion specification of printf: flags, width, precision, length, verb. Its ' (grouping by
// locale) has no effect in the C locale.
var conversion = regexp.MustCompile(`%([-+ #0']*)(\*|\d+)?(?:\.(\*|-?\d*))?((?:hh|ll|I64|I32|[hlLqjztI])?)([diouxXcspfFeEgGaAn%])`)

var exponent = regexp.MustCompile(`([pP][-+])0(\d)`)

// cformat formats like printf in C, with the arguments of a. It never writes through %n. It copies unknown conversions
// unchanged.
func cformat(format string, a *slots) string {
	var o strings.Builder
	for o.Len() < maxMessage {
		m := conversion.FindStringSubmatchIndex(format)
		if m == nil {
			o.WriteString(format)
			break
		}
		part := func(k int) string { return format[max(m[2*k], 0):max(m[2*k+1], 0)] }
		o.WriteString(format[:m[0]])
		convert(&o, a, part(1), part(2), part(3), m[6] >= 0, part(4), part(5)[0])
		format = format[m[1]:]
	}
	if o.Len() > maxMessage {
		return o.String()[:maxMessage] + "…"
	}
	return o.String()
}

// convert appends one conversion, by the same one of package fmt where there is one.
func convert(o *strings.Builder, a *slots, flags, wide, precise string, hasPrec bool, length string, verb byte) {
	number := func(s string, absent int) int {
		if s == "*" {
			return min(max(int(int32(a.Int())), -maxField), maxField)
		}
		if n, err := strconv.Atoi(s); err == nil {
			return min(n, maxField)
		}
		return absent
	}
	width := number(wide, 0)
	prec := -1
	if hasPrec {
		prec = number(precise, 0)
	}
	flags = strings.ReplaceAll(flags, "'", "")
	if width < 0 {
		flags, width = flags+"-", -width
	}
	print := func(flags string, verb byte, v any) {
		spec := "%" + flags
		if width > 0 {
			spec += strconv.Itoa(width)
		}
		if prec >= 0 {
			spec += "." + strconv.Itoa(prec)
		}
		s := fmt.Sprintf(spec+string(verb), v)
		if _, real := v.(float64); real {
			s = exponent.ReplaceAllString(s, "$1$2") // C writes p+0, Go p+00
		}
		o.WriteString(s)
	}
	text := strings.NewReplacer("0", "", "+", "", "#", "", " ", "").Replace(flags) // flags for texts
	switch verb {
	case '%':
		o.WriteByte('%')
	case 'n':
		a.Int()
	case 'd', 'i':
		print(flags, 'd', signed(a.Int(), length))
	case 'u':
		print(strings.NewReplacer("+", "", " ", "", "#", "").Replace(flags), 'd', unsigned(a.Int(), length))
	case 'o', 'x', 'X':
		u := unsigned(a.Int(), length)
		if u == 0 {
			flags = strings.ReplaceAll(flags, "#", "")
		}
		if verb != 'o' && strings.Contains(flags, "#") && strings.Contains(flags, "0") {
			width -= len("0x") // package fmt pads the digits alone
		}
		print(strings.NewReplacer("+", "", " ", "").Replace(flags), verb, u)
	case 'c', 's', 'p':
		limit := maxMessage
		if prec >= 0 && verb == 's' {
			limit = prec
		}
		prec = -1
		print(text, 's', pointed(a.Int(), verb, length, limit))
	default:
		v, ok := 0., true
		if length == "L" {
			v, ok = a.LongDouble()
		} else {
			v = a.Float()
		}
		switch special := math.IsInf(v, 0) || math.IsNaN(v); {
		case !ok:
			prec = -1
			print(text, 's', "(long double)")
			return
		case special:
			prec = -1
			s := strings.ToLower(fmt.Sprintf("%"+strings.Trim(flags, "-0#'")+"f", v))
			if s[0] == '+' && !strings.Contains(flags, "+") {
				s = s[1:]
			}
			if verb < 'a' {
				s = strings.ToUpper(s)
			}
			print(text, 's', s)
			return
		case prec < 0 && verb != 'a' && verb != 'A':
			prec = 6
		}
		if verb == 'a' || verb == 'A' {
			verb += 'x' - 'a'
		}
		print(flags, verb, v)
	}
}

// pointed returns the text of a pointer, character or string of at most limit bytes.
func pointed(v uint64, verb byte, length string, limit int) string {
	switch {
	case verb == 'p' && v == 0:
		return "(nil)"
	case verb == 'p':
		return "0x" + strconv.FormatUint(v, 16)
	case verb == 'c' && length == "l":
		return string(rune(int32(v)))
	case verb == 'c':
		return string([]byte{byte(v)})
	case v == 0:
		return "(null)"
	case length == "l":
		return wideString(uintptr(v), limit)
	}
	return String(uintptr(v), limit)
}

// On Windows C's long has 32 bits and wchar_t 16, elsewhere 64 and 32.
const (
	longIs32  = runtime.GOOS == "windows"
	wcharIs16 = runtime.GOOS == "windows"
)

// spare returns the number of bits of an argument that its type does not have, by the length modifier.
func spare(length string) int {
	switch {
	case length == "hh":
		return 64 - 8
	case length == "h":
		return 64 - 16
	case length == "", length == "I32", length == "l" && longIs32:
		return 64 - 32
	}
	return 0
}

func signed(u uint64, length string) int64 { return int64(u<<spare(length)) >> spare(length) }

func unsigned(u uint64, length string) uint64 { return u << spare(length) >> spare(length) }

// wideString copies a wchar_t string of at most limit bytes of UTF-8.
func wideString(p uintptr, limit int) string {
	var o strings.Builder
	for o.Len() < limit {
		var r rune
		if wcharIs16 {
			r = rune(*(*uint16)(Pointer(p)))
			p += unsafe.Sizeof(uint16(0))
		} else {
			r = *(*rune)(Pointer(p))
			p += unsafe.Sizeof(r)
		}
		if r == 0 {
			break
		}
		o.WriteRune(r)
	}
	return o.String()
}

// slots returns the arguments of a variadic C call in order: from the remaining
// integer registers, from the floating-point registers, then both kinds from the stack.
type slots struct {
	ints       []uintptr
	floats     []float64
	stack      []uintptr
	used       int
	longDouble longDouble // how long doubles are passed
}

type longDouble uint8

const (
	longDoubleX87    longDouble = iota // 80 bits in an aligned pair of stack slots
	longDoubleQuad                     // 128 bits, in a vector register (a callback sees half of it) or on the stack
	longDoubleDouble                   // the same as double
)

func (s *slots) next() uintptr {
	if s.used >= len(s.stack) {
		s.used++
		return 0
	}
	s.used++
	return s.stack[s.used-1]
}

// Int returns the next integer or pointer.
func (s *slots) Int() uint64 {
	if len(s.ints) > 0 {
		v := s.ints[0]
		s.ints = s.ints[1:]
		return uint64(v)
	}
	return uint64(s.next())
}

// Float returns the next double.
func (s *slots) Float() float64 {
	if len(s.floats) > 0 {
		v := s.floats[0]
		s.floats = s.floats[1:]
		return v
	}
	return math.Float64frombits(uint64(s.next()))
}

// LongDouble returns the next long double, rounded to double; not ok if it is unreadable.
func (s *slots) LongDouble() (float64, bool) {
	if s.longDouble == longDoubleDouble {
		return s.Float(), true
	}
	if s.longDouble == longDoubleQuad && len(s.floats) > 0 {
		s.floats = s.floats[1:]
		return 0, false
	}
	s.used += s.used & 1 // aligned to 16 bytes, as the stack area is
	lo, hi := uint64(s.next()), uint64(s.next())
	if s.longDouble == longDoubleQuad {
		return quad(hi), true
	}
	return extended(lo, uint16(hi)), true
}

// quad converts the upper half of an IEEE number of 128 bits: sign, 15 bits of
// exponent and 48 bits of the mantissa. That is accurate enough for a message.
func quad(hi uint64) float64 {
	e, m := int(hi>>48&0x7fff), hi&(1<<48-1)
	var v float64
	switch {
	case e == 0x7fff && m == 0:
		v = math.Inf(1)
	case e == 0x7fff:
		v = math.NaN()
	case e != 0:
		v = math.Ldexp(float64(m|1<<48), e-16383-48)
	}
	return math.Copysign(v, float64(int64(hi)))
}

// extended converts an x87 number: 64 bits of mantissa with explicit leading one,
// 15 bits of exponent and the sign.
func extended(mantissa uint64, se uint16) float64 {
	e := int(se & 0x7fff)
	var v float64
	switch {
	case e == 0x7fff && mantissa<<1 == 0:
		v = math.Inf(1)
	case e == 0x7fff:
		v = math.NaN()
	default:
		v = math.Ldexp(float64(mantissa), e-16383-63)
	}
	if se&0x8000 != 0 {
		v = math.Copysign(v, -1)
	}
	return v
}
