package results

import (
	"math"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/unit"
)

// symbols are units with unambiguous names and without prefixes; prefixed are those that take
// prefixes.
var symbols = map[string]unit.Base{
	"kg": {Kg: 1, Factor: 1}, "t": {Kg: 1, Factor: 1e3}, "lb": {Kg: 1, Factor: 0.45359237},
	"in": {M: 1, Factor: 0.0254}, "ft": {M: 1, Factor: 0.3048}, "mi": {M: 1, Factor: 1609.344},
	"min": {S: 1, Factor: 60}, "h": {S: 1, Factor: 3600}, "d": {S: 1, Factor: 86400},
	"degC": {K: 1, Factor: 1, Offset: 273.15}, "°C": {K: 1, Factor: 1, Offset: 273.15},
	"degF": {K: 1, Factor: 5.0 / 9, Offset: 459.67 * 5 / 9}, "°F": {K: 1, Factor: 5.0 / 9, Offset: 459.67 * 5 / 9},
	"rad": {Rad: 1, Factor: 1}, "mrad": {Rad: 1, Factor: 1e-3}, "rev": {Rad: 1, Factor: 2 * math.Pi},
	"deg": {Rad: 1, Factor: math.Pi / 180}, "°": {Rad: 1, Factor: math.Pi / 180},
	"rpm": {Rad: 1, S: -1, Factor: math.Pi / 30}, "psi": {Kg: 1, M: -1, S: -2, Factor: 6894.757293168},
	"l": {M: 3, Factor: 1e-3}, "L": {M: 3, Factor: 1e-3}, "1": unit.One, "%": {Factor: 0.01},
}

var prefixed = map[string]unit.Base{
	"m": {M: 1, Factor: 1}, "s": {S: 1, Factor: 1}, "A": {A: 1, Factor: 1}, "K": {K: 1, Factor: 1},
	"g": {Kg: 1, Factor: 1e-3}, "mol": {Mol: 1, Factor: 1}, "cd": {Cd: 1, Factor: 1},
	"N": {Kg: 1, M: 1, S: -2, Factor: 1}, "Pa": {Kg: 1, M: -1, S: -2, Factor: 1}, "bar": {Kg: 1, M: -1, S: -2, Factor: 1e5},
	"J": {Kg: 1, M: 2, S: -2, Factor: 1}, "W": {Kg: 1, M: 2, S: -3, Factor: 1}, "Wh": {Kg: 1, M: 2, S: -2, Factor: 3600},
	"V": {Kg: 1, M: 2, S: -3, A: -1, Factor: 1}, "Ohm": {Kg: 1, M: 2, S: -3, A: -2, Factor: 1},
	"C": {A: 1, S: 1, Factor: 1}, "F": {Kg: -1, M: -2, S: 4, A: 2, Factor: 1},
	"H": {Kg: 1, M: 2, S: -2, A: -2, Factor: 1}, "T": {Kg: 1, S: -2, A: -1, Factor: 1},
	"Wb": {Kg: 1, M: 2, S: -2, A: -1, Factor: 1}, "Hz": {S: -1, Factor: 1},
}

var prefixes = map[string]float64{
	"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "h": 1e2, "d": 1e-1, "c": 1e-2, "m": 1e-3,
	"u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9, "p": 1e-12,
}

// symbol returns the unit of one symbol.
func symbol(name string) (unit.Base, bool) {
	if b, ok := symbols[name]; ok {
		return b, true
	}
	if b, ok := prefixed[name]; ok {
		return b, true
	}
	for prefix, factor := range prefixes {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if b, ok := prefixed[rest]; ok {
				b.Factor *= factor
				return b, true
			}
		}
	}
	return unit.Base{}, false
}

// Unit parses a unit like m/s, km/h, N.m, kg.m2/s2, rad/s^2, W/(m2.K); nil = unknown or
// ambiguous.
func Unit(text string) *unit.Base {
	text = strings.NewReplacer("·", ".", "*", ".", "²", "2", "³", "3", "^", "").Replace(strings.TrimSpace(text))
	if b, ok := symbol(text); ok {
		return &b // with its offset
	}
	total := unit.One
	for k, part := range strings.Split(text, "/") {
		bracketed := strings.HasPrefix(part, "(") && strings.HasSuffix(part, ")")
		if bracketed {
			part = part[1 : len(part)-1]
		}
		for i, factor := range strings.Split(part, ".") {
			name := strings.TrimRight(factor, "-0123456789")
			exponent := 1
			if name == "" && factor == "1" {
				name = "1"
			} else if digits := factor[len(name):]; digits != "" {
				n, err := strconv.Atoi(digits)
				if err != nil || n < -9 || n > 9 {
					return nil
				}
				exponent = n
			}
			b, ok := symbol(name)
			if !ok || b.Offset != 0 {
				return nil
			}
			if k > 0 && i > 0 && !bracketed {
				return nil // a/b.c means a/(b.c) or (a/b).c, depending on the program
			}
			if k > 0 {
				exponent = -exponent
			}
			if exponent < 0 {
				b = unit.Base{Kg: -b.Kg, M: -b.M, S: -b.S, A: -b.A, K: -b.K, Mol: -b.Mol, Cd: -b.Cd, Rad: -b.Rad, Factor: 1 / b.Factor}
				exponent = -exponent
			}
			for range exponent {
				total = total.Times(b)
			}
		}
	}
	return &total
}

// In returns the column in another unit; ok is false if a unit is unknown or the dimensions differ.
func (c *Column) In(other string) (in *Column, ok bool) {
	from, to := Unit(c.Unit), Unit(other)
	if from == nil || to == nil {
		return c, false
	}
	gain, offset, err := unit.Convert(from, to, false)
	if err != nil {
		return c, false
	}
	out := *c
	out.Unit, out.Values = other, make([]float64, len(c.Values))
	for i, v := range c.Values {
		out.Values[i] = float64(gain*v) + offset
	}
	return &out, true
}
