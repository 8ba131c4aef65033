package description

import "strings"

// structured reports whether a name follows the grammar of structured names
// (FMI 2.0.5, section 2.2.9):
//
//	name         = identifier | "der(" identifier [ "," digits ] ")"
//	identifier   = B-name [ arrayIndices ] { "." B-name [ arrayIndices ] }
//	B-name       = nondigit { digit | nondigit } | Q-name
//	arrayIndices = "[" digits { "," digits } "]"
//	Q-name       = "'" ( Q-char | escape ) { Q-char | escape } "'"
func structured(name string) bool {
	if inner, ok := strings.CutPrefix(name, "der("); ok {
		rest, ok := identifier(inner)
		if !ok {
			return false
		}
		if after, ok := strings.CutPrefix(rest, ","); ok {
			if rest = strings.TrimLeft(after, "0123456789"); rest == after {
				return false
			}
		}
		return rest == ")"
	}
	rest, ok := identifier(name)
	return ok && rest == ""
}

// identifier cuts an identifier off the front.
func identifier(s string) (rest string, ok bool) {
	for {
		if s, ok = baseName(s); !ok {
			return s, false
		}
		if strings.HasPrefix(s, "[") {
			if s, ok = arrayIndices(s); !ok {
				return s, false
			}
		}
		if !strings.HasPrefix(s, ".") {
			return s, true
		}
		s = s[1:]
	}
}

func baseName(s string) (rest string, ok bool) {
	if s == "" {
		return s, false
	}
	if s[0] == '\'' {
		return quotedName(s)
	}
	if !isNondigit(s[0]) {
		return s, false
	}
	n := 1
	for n < len(s) && (isNondigit(s[n]) || isDigit(s[n])) {
		n++
	}
	return s[n:], true
}

func quotedName(s string) (rest string, ok bool) {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\'':
			return s[i+1:], i > 1
		case c == '\\':
			if i++; i == len(s) || strings.IndexByte(`'"?\abfnrtv`, s[i]) < 0 {
				return s, false
			}
		case isNondigit(c), isDigit(c), strings.IndexByte("!#$%&()*+,-./:;<>=?@[]^{}|~ ", c) >= 0:
		default:
			return s, false
		}
	}
	return s, false
}

func arrayIndices(s string) (rest string, ok bool) {
	for {
		digits := strings.TrimLeft(s[1:], "0123456789")
		if len(digits) == len(s)-1 || digits == "" {
			return s, false
		}
		switch digits[0] {
		case ']':
			return digits[1:], true
		case ',':
			s = digits
		default:
			return s, false
		}
	}
}

func isNondigit(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
