package axis

import (
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestLabels(t *testing.T) {
	for _, tt := range []struct {
		low, high   float64
		log         bool
		title, want string
	}{
		{0, 4, false, "[m]", "0 1 2 3 4"}, {-0.06, 1.06, false, "[m]", "0 0.5 1.0"}, {-5e4, 7e4, false, "[m]", "-50000 0 50000"},
		{-1e-7, 3e-7, false, "×1e-9 [m]", "-100 0 100 200 300"}, {1e6, 5e6, false, "×1e6 [m]", "1 2 3 4 5"},
		{1e5, 1e5 + 1e-3, false, "100000 + …·1e-3 [m]", "0 0.5 1.0"}, {68.99999894, 69.00000106, false, "69 + …·1e-6 [m]", "-1 0 1"}, {68.9999995, 69.0000005, false, "69 + …·1e-9 [m]", "-500 0 500"},
		{101325.2, 101325.9, false, "101320 + … [m]", "5.2 5.4 5.6 5.8"}, {-101325.9, -101325.2, false, "-101320 + … [m]", "-5.8 -5.6 -5.4 -5.2"},
		{1e9 - 3, 1e9 + 3, false, "1e9 + … [m]", "-2 0 2"}, {293.1, 293.2, false, "293 + … [m]", "0.10 0.12 0.14 0.16 0.18 0.20"},
		{0, 5e-324, false, "[m]", "0 5e-324"}, {-math.MaxFloat64, math.MaxFloat64, false, "×1e306 [m]", "-100 0 100"},
		{-3.2, 1.1, true, "[m]", "1e-3 1e-2 1e-1 1e0 1e1"}, {-12.7, -0.9, true, "[m]", "1e-12 1e-10 1e-8 1e-6 1e-4 1e-2"},
		{-1, 3, true, "[m]", "0.1 1 10 100 1000"}, {-5.2, -2.9, true, "[m]", "1e-5 1e-4 1e-3"}, {-0.5, 0.7, true, "[m]", "0.5 1 2 5"}, {2, 2.1, true, "[m]", "100 110 120"},
		{-5.05, -5, true, "×1e-6 [m]", "9.0 9.5 10.0"}, {308.1, 308.4, true, "×1e306 [m]", "130 140 150 160 170"},
	} {
		a := New(tt.low, tt.high, 4, tt.log)
		var got []string
		for _, k := range a.Ticks {
			got = append(got, k.Text)
		}
		if s := strings.Join(got, " "); s != tt.want || a.Title("m") != tt.title {
			t.Errorf("%g to %g: %s, labels %s; want %s, %s", tt.low, tt.high, a.Title("m"), s, tt.title, tt.want)
		}
	}
}

// Title and label give the value; labels differ and are short.
func TestLabelsOfAnyRange(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	form := regexp.MustCompile(`^(?:(\S+) \+ …)?(?:[·×]1e(\S+))?$`)
	for range 20_000 {
		low := random.NormFloat64() * math.Pow(10, 30*random.Float64()-15)
		low, high := apart(low, low+math.Abs(low)*math.Pow(10, 12*random.Float64()-9))
		a := New(low, high, 4, false)
		m := form.FindStringSubmatch(a.Common)
		if m == nil {
			t.Fatalf("%g to %g: common part %q", low, high, a.Common)
		}
		offset, _ := strconv.ParseFloat(m[1], 64)
		exponent, _ := strconv.Atoi(m[2])
		if n := len(a.Ticks); n < 2 || n > 10 {
			t.Fatalf("%g to %g: %d labels", low, high, n)
		}
		step := a.Ticks[1].Value - a.Ticks[0].Value
		seen := map[string]bool{}
		for _, k := range a.Ticks {
			label, err := strconv.ParseFloat(k.Text, 64)
			value := offset + label*math.Pow(10, float64(exponent))
			if err != nil || seen[k.Text] || len(k.Text) > 9 || math.Abs(value-k.Value) > 1e-3*step+1e-14*math.Abs(k.Value) || a.At(k.Value) < -1e-9 || a.At(k.Value) > 1+1e-9 {
				t.Fatalf("%g to %g: %s, %+v", low, high, a.Common, a.Ticks)
			}
			seen[k.Text] = true
		}
	}
}

// The ends of a rounded axis are labels, most of it is used, and rounding it again changes nothing.
func TestRounded(t *testing.T) {
	for _, tt := range []struct {
		low, high  float64
		log, whole bool
		want       string
	}{
		{0, 1, false, false, "0 0.2 0.4 0.6 0.8 1.0"}, {-0.29, 0.53, false, false, "-0.4 -0.2 0 0.2 0.4 0.6"}, {-5.01, 3, false, false, "-6 -4 -2 0 2 4"},
		{3, 3, false, false, "2.7 2.8 2.9 3.0 3.1 3.2 3.3"}, {0, 0, false, false, "-1.0 -0.5 0 0.5 1.0"}, {0, 1, false, true, "0 1"}, {0, 3, false, true, "0 1 2 3"},
		{1, 1, false, true, "0 1 2"}, {0, 17, false, true, "0 5 10 15 20"}, {-3.2, 1.1, true, false, "1e-4 1e-3 1e-2 1e-1 1e0 1e1 1e2"},
		{-0.9, 0.2, true, false, "0.1 0.2 0.5 1 2"}, {-12.7, -0.9, true, false, "1e-14 1e-12 1e-10 1e-8 1e-6 1e-4 1e-2 1e0"},
		{1e9, 1e9 + 3, false, false, "0 1 2 3"}, {-math.MaxFloat64, math.MaxFloat64, false, false, "-100 0 100"}, {0, 5e-324, false, false, "-1.0 -0.5 0 0.5 1.0"},
	} {
		a := Rounded(tt.low, tt.high, 4, tt.log, tt.whole)
		var texts []string
		for _, k := range a.Ticks {
			texts = append(texts, k.Text)
		}
		if got := strings.Join(texts, " "); got != tt.want {
			t.Errorf("%g to %g: %s, want %s", tt.low, tt.high, got, tt.want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		low := random.NormFloat64() * math.Pow(10, 30*random.Float64()-15)
		high := low + math.Abs(low)*math.Pow(10, 6*random.Float64()-5)
		for _, most := range []int{4, 5, 8} {
			a := Rounded(low, high, most, false, false)
			size := high - low
			if n := len(a.Ticks); n < 3 || a.At(a.Ticks[0].Value) > 1e-9 || a.At(a.Ticks[n-1].Value) < 1-1e-9 || a.Low > low+1e-6*size || a.High < high-1e-6*size || a.High-a.Low > 2*size {
				t.Fatalf("%g to %g: %+v", low, high, a)
			}
			if b := Rounded(a.Low, a.High, most, false, false); !slices.Equal(a.Ticks, b.Ticks) || a.Low != b.Low || a.High != b.High {
				t.Fatalf("%g to %g: %+v, rounded again %+v", low, high, a, b)
			}
		}
		low = 20 * random.Float64()
		high = low + math.Pow(10, 3*random.Float64()-2)
		a := Rounded(low, high, 4, true, false)
		if b := Rounded(a.Low, a.High, 4, true, false); !slices.Equal(a.Ticks, b.Ticks) || a.Low != b.Low || a.High != b.High || a.Low > low+1e-6 || a.High < high-1e-6 {
			t.Fatalf("powers %g to %g: %+v, rounded again %+v", low, high, a, b)
		}
	}
}

// Between whole numbers, there are no labels.
func TestWhole(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		want      string
	}{{0, 1, "0 1"}, {0, 3.15, "0 1 2 3 4"}, {0, 10.6, "0 2 4 6 8 10 12"}, {0.9, 1.1, "0 1 2"}, {-2e5, 3e5, "-200 -100 0 100 200 300"}} {
		var texts []string
		for _, k := range Rounded(tt.low, tt.high, 4, false, true).Ticks {
			texts = append(texts, k.Text)
		}
		if got := strings.Join(texts, " "); got != tt.want {
			t.Errorf("%g to %g: %s, want %s", tt.low, tt.high, got, tt.want)
		}
	}
	if !Integral([]float64{1, math.NaN(), -2, math.Inf(1)}) || Integral([]float64{1, 1.5}) {
		t.Error("not all numbers are whole")
	}
}

func TestThin(t *testing.T) {
	a := New(293.1, 293.2, 4, false)
	a.Thin(21)
	if len(a.Ticks) != 3 || a.Ticks[2].Text != "0.18" {
		t.Errorf("%+v", a.Ticks)
	}
	if a.Thin(1); len(a.Ticks) != 2 {
		t.Errorf("%+v", a.Ticks)
	}
}

func TestLineStyles(t *testing.T) {
	for i := 1; i < 2*Colors; i++ {
		for k := range i {
			a, b := LineStyle(i), LineStyle(k)
			if a.Light == b.Light && len(a.Dash) == len(b.Dash) && (len(a.Dash) == 0 || a.Dash[0] == b.Dash[0]) {
				t.Errorf("lines %d and %d look alike", i, k)
			}
		}
	}
}
