package native

import (
	"math"
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

// conversion is one conversion specification of printf.
type conversion struct {
	minus, plus, space, alt, zero bool
	width, prec                   int // prec -1 = none
	length                        string
	verb                          byte
}

// cformat formats like printf in C, with the arguments of a. It never writes through
// %n. It copies unknown conversions unchanged.
func cformat(format string, a *slots) string {
	var o strings.Builder
	for i := 0; i < len(format) && o.Len() < maxMessage; {
		k := strings.IndexByte(format[i:], '%')
		if k < 0 {
			o.WriteString(format[i:])
			break
		}
		o.WriteString(format[i : i+k])
		i += k
		c, n := parseConversion(format[i:], a)
		if n == 0 {
			o.WriteString(format[i:])
			break
		}
		s, known := c.format(a)
		if !known {
			s = format[i : i+n]
		}
		o.WriteString(s)
		i += n
	}
	s := o.String()
	if len(s) > maxMessage {
		s = s[:maxMessage] + "…"
	}
	return s
}

// parseConversion parses the specification at the start of s, which begins with %,
// and returns its length, 0 if it is incomplete. It takes arguments for * from a.
func parseConversion(s string, a *slots) (c conversion, n int) {
	c.prec = -1
	i := 1
flags:
	for ; i < len(s); i++ {
		switch s[i] {
		case '-':
			c.minus = true
		case '+':
			c.plus = true
		case ' ':
			c.space = true
		case '#':
			c.alt = true
		case '0':
			c.zero = true
		case '\'': // grouping by locale, none in the C locale
		default:
			break flags
		}
	}
	number := func() int {
		if i < len(s) && s[i] == '*' {
			i++
			return int(int32(a.Int()))
		}
		v := 0
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			v = min(v*10+int(s[i]-'0'), maxField)
		}
		return v
	}
	c.width = number()
	if c.width < 0 {
		c.minus, c.width = true, -c.width
	}
	c.width = min(c.width, maxField)
	if i < len(s) && s[i] == '.' {
		i++
		c.prec = min(max(number(), -1), maxField)
	}
	start := i
	for i < len(s) && strings.IndexByte("hlLqjztI", s[i]) >= 0 {
		i++
		if s[i-1] == 'I' && (strings.HasPrefix(s[i:], "64") || strings.HasPrefix(s[i:], "32")) {
			i += 2 // Microsoft's I64 and I32
		}
	}
	if i >= len(s) {
		return c, 0
	}
	c.length, c.verb = s[start:i], s[i]
	return c, i + 1
}

// format returns the text of one conversion, and whether the verb is known.
func (c *conversion) format(a *slots) (string, bool) {
	switch c.verb {
	case '%':
		return "%", true
	case 'd', 'i':
		v := signed(a.Int(), c.length)
		u, sign := uint64(v), c.sign(v < 0)
		if v < 0 {
			u = -u
		}
		return c.integer(sign, u, 10), true
	case 'u':
		return c.integer("", unsigned(a.Int(), c.length), 10), true
	case 'o':
		u, prefix := unsigned(a.Int(), c.length), ""
		if c.alt && u == 0 && c.prec == 0 {
			c.prec = 1
		}
		if c.alt && u != 0 && c.prec <= len(strconv.FormatUint(u, 8)) {
			prefix = "0"
		}
		return c.integer(prefix, u, 8), true
	case 'x', 'X':
		u, prefix := unsigned(a.Int(), c.length), ""
		if c.alt && u != 0 {
			prefix = "0x"
		}
		s := c.integer(prefix, u, 16)
		if c.verb == 'X' {
			s = strings.ToUpper(s)
		}
		return s, true
	case 'p', 'c', 's':
		return c.pad("", c.text(a.Int()), false), true
	case 'f', 'F', 'e', 'E', 'g', 'G', 'a', 'A':
		if c.length != "L" {
			return c.float(a.Float()), true
		}
		x, ok := a.LongDouble()
		if !ok {
			return c.pad("", "(long double)", false), true
		}
		return c.float(x), true
	case 'n':
		a.Int()
		return "", true
	}
	return "", false
}

// text returns the text of a pointer, character or string.
func (c *conversion) text(v uint64) string {
	limit := maxMessage
	if c.prec >= 0 {
		limit = c.prec
	}
	switch {
	case c.verb == 'p' && v == 0:
		return "(nil)"
	case c.verb == 'p':
		return "0x" + strconv.FormatUint(v, 16)
	case c.verb == 'c' && c.length == "l":
		return string(rune(int32(v)))
	case c.verb == 'c':
		return string([]byte{byte(v)})
	case v == 0:
		return "(null)"
	case c.length == "l":
		return wideString(uintptr(v), limit)
	}
	return String(uintptr(v), limit)
}

// On Windows C's long has 32 bits and wchar_t 16, elsewhere 64 and 32.
const (
	longIs32  = runtime.GOOS == "windows"
	wcharIs16 = runtime.GOOS == "windows"
)

// signed truncates an argument to the type of the length modifier.
func signed(u uint64, length string) int64 {
	switch length {
	case "hh":
		return int64(int8(u))
	case "h":
		return int64(int16(u))
	case "", "I32":
		return int64(int32(u))
	case "l":
		if longIs32 {
			return int64(int32(u))
		}
	}
	return int64(u)
}

func unsigned(u uint64, length string) uint64 {
	switch length {
	case "hh":
		return uint64(uint8(u))
	case "h":
		return uint64(uint16(u))
	case "", "I32":
		return uint64(uint32(u))
	case "l":
		if longIs32 {
			return uint64(uint32(u))
		}
	}
	return u
}

// sign returns the sign of a number, or the space for it.
func (c *conversion) sign(negative bool) string {
	switch {
	case negative:
		return "-"
	case c.plus:
		return "+"
	case c.space:
		return " "
	}
	return ""
}

// integer formats digits with precision, prefix and width.
func (c *conversion) integer(prefix string, u uint64, base int) string {
	s := strconv.FormatUint(u, base)
	if u == 0 && c.prec == 0 {
		s = ""
	}
	if n := c.prec - len(s); n > 0 {
		s = strings.Repeat("0", n) + s
	}
	return c.pad(prefix, s, c.prec < 0) // a precision disables the flag 0
}

// pad pads prefix and s to the width; zero allows the flag 0.
func (c *conversion) pad(prefix, s string, zero bool) string {
	n := c.width - len(prefix) - len(s)
	switch {
	case n <= 0:
		return prefix + s
	case c.minus:
		return prefix + s + strings.Repeat(" ", n)
	case zero && c.zero:
		return prefix + strings.Repeat("0", n) + s
	}
	return strings.Repeat(" ", n) + prefix + s
}

// float formats a floating-point number.
func (c *conversion) float(x float64) string {
	sign := c.sign(math.Signbit(x))
	x = math.Abs(x)
	verb := c.verb | 0x20
	var s string
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		s = "inf"
		if math.IsNaN(x) {
			s = "nan"
		}
	case verb == 'a':
		s = c.hex(x)
		sign += "0x"
	case verb == 'g':
		s = c.general(x)
	default:
		prec := c.prec
		if prec < 0 {
			prec = 6
		}
		s = strconv.FormatFloat(x, verb, prec, 64)
		if prec == 0 && c.alt {
			mantissa, exponent, hasExp := strings.Cut(s, "e")
			if s = mantissa + "."; hasExp {
				s += "e" + exponent
			}
		}
	}
	if c.verb < 'a' {
		s, sign = strings.ToUpper(s), strings.ToUpper(sign)
	}
	return c.pad(sign, s, !math.IsNaN(x) && !math.IsInf(x, 0))
}

// hex returns the digits of %a after 0x; like in C the exponent has no leading zeros.
func (c *conversion) hex(x float64) string {
	s := strconv.FormatFloat(x, 'x', c.prec, 64)[len("0x"):]
	mantissa, exponent, _ := strings.Cut(s, "p")
	if c.alt && !strings.Contains(mantissa, ".") {
		mantissa += "."
	}
	digits := strings.TrimLeft(exponent[1:], "0")
	if digits == "" {
		digits = "0"
	}
	return mantissa + "p" + exponent[:1] + digits
}

// general returns %g of a non-negative number: P significant digits, like %e if the
// exponent X is < -4 or ≥ P, without trailing zeros unless the flag # is set
// (C11 7.21.6.1).
func (c *conversion) general(x float64) string {
	p := c.prec
	if p < 0 {
		p = 6
	}
	p = max(p, 1)
	s := strconv.FormatFloat(x, 'e', p-1, 64)
	mantissa, exponent, _ := strings.Cut(s, "e")
	e, _ := strconv.Atoi(exponent) // FormatFloat always writes one
	suffix := "e" + exponent
	if e >= -4 && e < p {
		mantissa, suffix = strconv.FormatFloat(x, 'f', p-1-e, 64), ""
	}
	if !c.alt {
		if strings.Contains(mantissa, ".") {
			mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
		}
	} else if !strings.Contains(mantissa, ".") {
		mantissa += "."
	}
	return mantissa + suffix
}

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
