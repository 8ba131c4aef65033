package unit

import (
	"errors"
	"math"
	"testing"
)

var (
	kelvin     = Base{K: 1, Factor: 1}
	celsius    = Base{K: 1, Factor: 1, Offset: 273.15}
	fahrenheit = Base{K: 1, Factor: 5. / 9, Offset: 459.67 * 5 / 9}
	newton     = Base{Kg: 1, M: 1, S: -2, Factor: 1}
	metreASec  = Base{M: 1, S: -1, Factor: 1}
	kmh        = Base{M: 1, S: -1, Factor: 1 / 3.6}
	torque     = Base{Kg: 1, M: 2, S: -2, Factor: 1}
	radASec    = Base{S: -1, Rad: 1, Factor: 1}
	hertz      = Base{S: -1, Factor: 1}
	volt       = Base{Kg: 1, M: 2, S: -3, A: -1, Factor: 1}
	ampere     = Base{A: 1, Factor: 1}
)

func TestConvert(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to *Base
		relative bool
		in, want float64
	}{
		{"the same", &newton, &newton, false, 3, 3},
		{"factor", &kmh, &metreASec, false, 36, 10},
		{"factor back", &metreASec, &kmh, false, 10, 36},
		{"offset", &celsius, &kelvin, false, 20, 293.15},
		{"offset back", &kelvin, &celsius, false, 293.15, 20},
		{"both offsets", &celsius, &fahrenheit, false, 100, 212},
		{"difference", &celsius, &kelvin, true, 20, 20},
		{"difference with factor", &celsius, &fahrenheit, true, 100, 180},
		{"unknown source", nil, &celsius, false, 20, 20},
		{"unknown target", &celsius, nil, false, 20, 20},
		{"dimensionless", &One, &Base{Factor: 0.01}, false, 0.5, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			gain, offset, err := Convert(c.from, c.to, c.relative)
			if err != nil {
				t.Fatal(err)
			}
			if got := gain*c.in + offset; math.Abs(got-c.want) > 1e-12*math.Abs(c.want) {
				t.Errorf("%g becomes %g, want %g", c.in, got, c.want)
			}
		})
	}
}

func TestConvertIsExactForEqualUnits(t *testing.T) {
	if gain, offset, _ := Convert(&fahrenheit, &fahrenheit, false); gain != 1 || offset != 0 {
		t.Errorf("gain %v, offset %v, want 1, 0", gain, offset)
	}
}

func TestConvertFails(t *testing.T) {
	_, _, err := Convert(&hertz, &radASec, false)
	var d *DimensionError
	if !errors.As(err, &d) {
		t.Fatalf("rad must count: got %v", err)
	}
	if want := "the dimensions differ: s^-1 and s^-1·rad"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if _, _, err := Convert(&Base{M: 1}, &Base{M: 1, Factor: 1}, false); err == nil {
		t.Error("a factor of 0 was accepted")
	}
	if _, _, err := Convert(&Base{M: 1, Factor: 1}, &Base{M: 1}, false); err == nil {
		t.Error("a factor of 0 was accepted")
	}
}

func TestPower(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Base
		want bool
	}{
		{"force and velocity", newton, metreASec, true},
		{"torque and angular velocity", torque, radASec, true},
		{"torque and frequency", torque, hertz, true},
		{"voltage and current", volt, ampere, true},
		{"force and current", newton, ampere, false},
		{"two forces", newton, newton, false},
	} {
		if got := c.a.Times(c.b).IsPower(); got != c.want {
			t.Errorf("%s: power %v, want %v", c.name, got, c.want)
		}
	}
	if p := kmh.Times(Base{Factor: 1000, Offset: 7}); p.Factor != 1000/3.6 || p.Offset != 0 {
		t.Errorf("product %+v", p)
	}
}

func TestDimension(t *testing.T) {
	for want, b := range map[string]Base{
		"1":          One,
		"kg·m·s^-2":  newton,
		"s^-1·rad":   radASec,
		"K":          celsius,
		"A·mol^2·cd": {A: 1, Mol: 2, Cd: 1},
	} {
		if got := b.Dimension(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
