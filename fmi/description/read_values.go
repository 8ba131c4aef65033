package description

import (
	"encoding/xml"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The methods below parse the lexical forms of XML Schema. Each reports an
// invalid value and returns false; the caller then ignores the value.

const xmlSpace = " \t\r\n"

func (p *reader) badValue(a *xml.Attr, what string) {
	p.add(ruleSchema, p.path(a.Name.Local), p.line, "", "%q is not %s", clip(a.Value), what)
}

// double reads an xs:double, which must be finite (fmi2 12).
func (p *reader) double(a *xml.Attr) (float64, bool) {
	s := strings.Trim(a.Value, xmlSpace)
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '.', c == '-', c == '+', c == 'e', c == 'E':
		default: // Go would also parse 0x1p-2, 1_000 and NaN
			switch strings.ToLower(strings.TrimLeft(s, "+-")) {
			case "nan", "inf", "infinity":
				p.add(ruleNotANumber, p.path(a.Name.Local), p.line, "", "the value is %s", s)
			default:
				p.badValue(a, "a number")
			}
			return 0, false
		}
	}
	bits := 64
	if p.single {
		bits = 32
	}
	f, err := strconv.ParseFloat(s, bits)
	switch {
	case errors.Is(err, strconv.ErrRange) && math.IsInf(f, 0) && p.single:
		p.tooWide(a, "Float32 (-%g to %g)", math.MaxFloat32, math.MaxFloat32)
		return 0, false
	case errors.Is(err, strconv.ErrRange) && math.IsInf(f, 0):
		p.add(ruleNotANumber, p.path(a.Name.Local), p.line, "", "the value %s is too large for a double", clip(s))
		return 0, false
	case err != nil && !errors.Is(err, strconv.ErrRange):
		p.badValue(a, "a number")
		return 0, false
	}
	return f, true
}

// doublePointer reads an optional xs:double.
func (p *reader) doublePointer(a *xml.Attr) *float64 {
	f, ok := p.double(a)
	if !ok {
		return nil
	}
	if len(p.numbers) == cap(p.numbers) {
		p.numbers = make([]float64, 0, min(1024, 16+2*cap(p.numbers)))
	}
	p.numbers = append(p.numbers, f)
	return &p.numbers[len(p.numbers)-1]
}

// integer reads an integer of a storage.
func (p *reader) integer(a *xml.Attr, s Storage) (int64, bool) {
	of := &storages[s]
	n, err := strconv.ParseInt(strings.Trim(a.Value, xmlSpace), 10, 64)
	switch {
	case err == nil && n >= of.min && n <= of.max:
		return n, true
	case !p.three:
		p.badValue(a, "an integer of 32 bits")
	case errors.Is(err, strconv.ErrSyntax):
		p.badValue(a, "an integer")
	default:
		text := ""
		if s == StoreUInt64 {
			text = "; macrostep represents integers as Int64"
		}
		p.tooWide(a, "%s (%d to %d)%s", s, of.min, of.max, text)
	}
	return 0, false
}

// tooWide reports a value outside of the range of the type.
func (p *reader) tooWide(a *xml.Attr, format string, args ...any) {
	name := ""
	for i := range p.start.Attr {
		if local(&p.start.Attr[i]) == "name" {
			name = p.start.Attr[i].Value
		}
	}
	p.add(ruleWidth, p.path(a.Name.Local), p.line, name, "%s of %q is %s, outside of "+format,
		append([]any{a.Name.Local, clip(name), clip(strings.Trim(a.Value, xmlSpace))}, args...)...)
}

// integerPointer reads a bound. An upper bound of UInt64 that int64 cannot hold bounds nothing.
func (p *reader) integerPointer(a *xml.Attr, s Storage) *int64 {
	if s == StoreUInt64 && a.Name.Local == "max" {
		if n, err := strconv.ParseUint(strings.Trim(a.Value, xmlSpace), 10, 64); err == nil && n > math.MaxInt64 {
			return nil
		}
	}
	n, ok := p.integer(a, s)
	if !ok {
		return nil
	}
	return &n
}

// unsigned reads an xs:unsignedInt.
func (p *reader) unsigned(a *xml.Attr) (uint32, bool) {
	n, ok := parseUnsigned(strings.Trim(a.Value, xmlSpace))
	if !ok {
		p.badValue(a, "a number from 0 to 4294967295")
	}
	return n, ok
}

func parseUnsigned(s string) (uint32, bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 32)
	return uint32(n), err == nil
}

// boolean reads an xs:boolean.
func (p *reader) boolean(a *xml.Attr) (value, ok bool) {
	switch strings.Trim(a.Value, xmlSpace) {
	case "true", "1":
		return true, true
	case "false", "0":
		return false, true
	}
	p.badValue(a, "true, false, 1 or 0")
	return false, false
}

// flag reads an xs:boolean whose default is false.
func (p *reader) flag(a *xml.Attr) bool {
	v, _ := p.boolean(a)
	return v
}

// word returns the index of a value in the list of allowed ones.
func (p *reader) word(a *xml.Attr, words []string) (int, bool) {
	if i := slices.Index(words, a.Value); i >= 0 && a.Value != "" {
		return i, true
	}
	p.badValue(a, "one of "+strings.TrimPrefix(strings.Join(words, ", "), ", "))
	return 0, false
}

// indices parses a list of xs:unsignedInt; false means that it is invalid.
func indices(s string) ([]int, bool) {
	n, inside := 0, false
	for i := range len(s) {
		space := s[i] <= ' '
		if !space && !inside {
			n++
		}
		inside = !space
	}
	list := make([]int, 0, n)
	for part := range strings.FieldsSeq(s) {
		u, ok := parseUnsigned(part)
		if !ok {
			return nil, false
		}
		list = append(list, int(u))
	}
	return list, true
}

// kinds reads dependenciesKind into u, whose Dependencies have been read. It
// reports an invalid list and returns false.
func (p *reader) kinds(a *xml.Attr, u *Unknown) bool {
	bad := func(format string, args ...any) bool {
		p.add(ruleKinds, p.path(a.Name.Local), p.line, "", format, args...)
		return false
	}
	var kinds []DependencyKind
	if n := len(u.Dependencies); n > 0 {
		kinds = make([]DependencyKind, 0, n)
	}
	for word := range strings.FieldsSeq(a.Value) {
		k := slices.Index(kindWords, word)
		if k < 0 {
			return bad("%q is not one of %s", clip(word), strings.Join(kindWords, ", "))
		}
		kinds = append(kinds, DependencyKind(k))
	}
	if !u.Declared {
		if len(kinds) > 0 {
			return bad("dependenciesKind is present without dependencies")
		}
		return true
	}
	if len(kinds) != len(u.Dependencies) {
		return bad("dependenciesKind has %d entries, dependencies has %d", len(kinds), len(u.Dependencies))
	}
	u.Kinds = kinds
	return true
}
