// Package axis chooses ranges and labels of axes, and the colours of lines, for pages and pictures.
//
//	a := axis.New(68.9999995, 69.0000005, 4, false)
//	a.Title("°C") // "69 + …·1e-6 [°C]"
//	a.Ticks       // -0.4, -0.2, 0, 0.2, 0.4
//
// Labels never repeat. What they have in common, an offset and a power of ten, is in the title.
// The script of package page follows the same rules; a test in test/browser compares them.
package axis

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Axis is an axis with labels.
type Axis struct {
	Low, High float64 // ends; of a logarithmic axis their decimal logarithms
	Ticks     []Tick
	Common    string // what the labels leave out, such as ×1e3 or 69 + …·1e-6
}

// Tick is a label of an axis.
type Tick struct {
	Value float64 // its decimal logarithm on a logarithmic axis
	Text  string
}

// New returns an axis with about most labels, and at least two. The ends of a logarithmic axis are decimal logarithms.
func New(low, high float64, most int, log bool) Axis {
	if !log {
		return linear(low, high, most, 0)
	}
	if t := powers(low, high, most, []float64{1}); len(t) >= 3 {
		return Axis{Low: low, High: high, Ticks: t}
	}
	if t := powers(low, high, most, []float64{1, 2, 5}); len(t) >= 2 {
		return Axis{Low: low, High: high, Ticks: t}
	}
	a := linear(math.Pow(10, low), min(math.Pow(10, high), math.MaxFloat64), most, 0)
	for i := range a.Ticks {
		a.Ticks[i].Value = math.Log10(a.Ticks[i].Value)
	}
	a.Low, a.High = low, high
	return a
}

// Integral reports whether all finite numbers are whole.
func Integral(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return v-v == 0 && v != math.Trunc(v) })
}

// Title returns the title of an axis: what the labels have in common, and the unit.
func (a *Axis) Title(unit string) string {
	if unit != "" {
		unit = "[" + unit + "]"
	}
	return strings.TrimSpace(a.Common + " " + unit)
}

// At returns the position of a value on the axis: 0 at its low end, 1 at its high end.
func (a *Axis) At(v float64) float64 {
	if span := a.High/2 - a.Low/2; span > 0 { // a difference of large numbers overflows
		return (v/2 - a.Low/2) / span
	}
	return (v - a.Low) / (a.High - a.Low)
}

// Fits reports whether the labels have at most so many characters.
func (a *Axis) Fits(characters int) bool {
	n := 0
	for _, t := range a.Ticks {
		n += len([]rune(t.Text)) + 1
	}
	return n <= characters
}

// Thin removes every second label until they have at most so many characters, or only two are left.
func (a *Axis) Thin(characters int) {
	for !a.Fits(characters) && len(a.Ticks) > 2 {
		var kept []Tick
		for i := 0; i < len(a.Ticks); i += 2 {
			kept = append(kept, a.Ticks[i])
		}
		a.Ticks = kept
	}
}

// Rounded returns an axis for values from low to high whose ends are labels, with about most labels. Of a logarithmic axis
// the ends are decimal logarithms; whole makes all labels whole
// numbers, for counts, items or Booleans. Rounding an axis again does not change it.
func Rounded(low, high float64, most int, log, whole bool) Axis {
	low, high = apart(low, high)
	if log {
		low, high = decades(low, high, most)
		return New(low, high, most, true)
	}
	smallest, fewest := 0.0, 2.0
	if whole {
		smallest, fewest = 1, 1
	}
	best, n, waste := step{}, 0.0, math.Inf(1)
	var ends [2]float64
	middle := int(math.Floor(math.Log10(high/float64(most) - low/float64(most))))
	for place := middle - 1; place <= middle+2; place++ {
		for i := range factors[:3] {
			s := step{i, place}
			size := s.size()
			if size < smallest || size == 0 || math.IsInf(size, 0) {
				continue
			}
			first, last := math.Floor(low/size+1e-9), math.Ceil(high/size-1e-9)
			steps := last - first
			if steps < fewest || steps > float64(most)+2 || max(-first, last) > 1e15 {
				continue
			}
			more := steps / (high/size - low/size)
			nearer := math.Abs(steps-float64(most)) < math.Abs(n-float64(most))
			if more < waste-1e-6 || more < waste+1e-6 && nearer {
				best, n, waste, ends = s, steps, more, [2]float64{first, last}
			}
		}
	}
	if n == 0 {
		return linear(low, high, most, smallest)
	}
	return labelled(max(best.times(ends[0]), -math.MaxFloat64), min(best.times(ends[1]), math.MaxFloat64), best)
}

// apart returns the ends of an axis for values from low to high, which are wider if these are equal but for rounding.
func apart(low, high float64) (float64, float64) {
	const constant, rounding = 0.1, 1e-9
	room := rounding * max(math.Abs(low), math.Abs(high))
	if high/2-low/2 > room/2 {
		return low, high
	}
	if low == high {
		room = constant * math.Abs(low)
	}
	if room == 0 {
		room = 1
	}
	return max(low-room, -math.MaxFloat64), min(high+room, math.MaxFloat64)
}

// decades rounds the ends of a logarithmic axis: to 1, 2 or 5 times powers of ten if there are few, else to those that have
// labels. Values that would fill little of the axis keep their ends.
func decades(low, high float64, most int) (float64, float64) {
	down, up := math.Floor(low+1e-9), math.Floor(high-1e-9)
	from, to := down, up+1
	for _, m := range factors[1:3] {
		if k := math.Log10(m); down+k <= low+1e-9 {
			from = down + k
		}
	}
	for _, m := range []float64{5, 2, 1} {
		if k := math.Log10(m); up+k >= high-1e-9 {
			to = up + k
		}
	}
	if to-from >= 1.5 {
		every := max(1, math.Ceil((up+1-down)/float64(2*most)))
		from, to = every*math.Floor(low/every+1e-9), every*math.Ceil(high/every-1e-9)
	}
	if high-low < 0.3*(to-from) || math.Pow(10, to) > math.MaxFloat64 || math.Pow(10, from) == 0 {
		return low, high
	}
	return from, to
}

// powers returns labels at powers of ten times the factors.
func powers(low, high float64, most int, factors []float64) (out []Tick) {
	every := max(1, math.Ceil((high-low)/float64(2*most)))
	plain := low >= -3 && high < 4
	for k := math.Floor(low/every) * every; k <= high; k += every {
		for _, m := range factors {
			v := k + math.Log10(m)
			if v < low || v > high {
				continue
			}
			text := strconv.FormatFloat(m, 'f', 0, 64) + "e" + strconv.Itoa(int(k))
			if plain {
				text = number(shifted(m, int(k)))
			}
			out = append(out, Tick{v, text})
		}
	}
	return out
}

const (
	// Labels have an offset if the largest is more steps from 0.
	mostSteps = 1e4
	// A power of ten replaces numbers outside these limits.
	least, limit = 1e-2, 1e5
)

// factors are those of the steps between labels.
var factors = [...]float64{1, 2, 5, 10}

// step is the distance between labels: a factor times a power of ten.
type step struct{ factor, place int }

func (s step) size() float64 { return s.times(1) }

// times returns n steps.
func (s step) times(n float64) float64 { return shifted(n*factors[s.factor], s.place) }

// linear returns an axis with labels at multiples of 1, 2 or 5 times a power of ten, which is not less than smallest.
func linear(low, high float64, most int, smallest float64) Axis {
	raw := high/float64(most) - low/float64(most)
	s := step{0, int(math.Floor(math.Log10(raw)))}
	for s.factor < len(factors)-1 && s.size() < raw*(1-1e-9) {
		s.factor++
	}
	count := func() float64 { return math.Floor(high/s.size()) - math.Ceil(low/s.size()) + 1 }
	if s.factor > 0 && count() < 3 {
		s.factor--
	}
	if s.size() < smallest {
		s = step{}
	}
	if n := count(); !(n >= 2 || n == 1 && smallest > 0) || !(math.Abs(math.Ceil(low/s.size())) < 1e15) {
		return Axis{Low: low, High: high, Ticks: []Tick{{low, number(low)}, {high, number(high)}}}
	}
	return labelled(low, high, s)
}

// labelled returns an axis with labels at the multiples of a step.
func labelled(low, high float64, s step) Axis {
	a := Axis{Low: low, High: high}
	step, place := s.size(), s.place
	first := math.Ceil(low/step - 1e-9)
	n := math.Floor(high/step+1e-9) - first + 1
	greatest := max(math.Abs(first), math.Abs(first+n-1)) * step
	offset := 0.0
	if greatest/step > mostSteps {
		offset = common(low, high)
		greatest = math.Round(max(math.Abs(first*step-offset), math.Abs((first+n-1)*step-offset))/step) * step
		a.Common = number(offset) + " + …"
	}
	exponent := 0
	if greatest >= limit || greatest < least {
		exponent = 3 * int(math.Floor(math.Log10(greatest*(1+1e-6))/3))
		sign := "×"
		if offset != 0 {
			sign = "·"
		}
		a.Common += sign + "1e" + strconv.Itoa(exponent)
	}
	if s.factor == len(factors)-1 {
		place++
	}
	for k := range int(n) {
		v := s.times(first + float64(k))
		text := strconv.FormatFloat(shifted(v-offset, -exponent), 'f', max(0, exponent-place), 64)
		if strings.Trim(text, "-0.") == "" {
			text = "0"
		}
		a.Ticks = append(a.Ticks, Tick{v, text})
	}
	return a
}

// common returns a short number near all values between two.
func common(low, high float64) float64 {
	middle, end := low/2+high/2, low
	if high < 0 {
		end = high
	}
	for k := int(math.Floor(math.Log10(math.Abs(middle)))); ; k-- {
		if v := shifted(math.Round(shifted(middle, -k)), k); low <= v && v <= high {
			return v
		}
		if v := shifted(math.Trunc(shifted(end, -k)), k); math.Abs(end-v) < 10*(high-low) {
			return v
		}
	}
}

// shifted returns v times a power of ten, rounded once.
func shifted(v float64, power int) float64 {
	if power < 0 {
		return v / math.Pow10(-power)
	}
	return v * math.Pow10(power)
}

// number formats a number with as few digits as identify it.
func number(v float64) string {
	if size := math.Abs(v); v == 0 || size >= 1e-4 && size < 1e6 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, 64), "e")
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	return mantissa + "e" + sign + strings.TrimLeft(exponent, "+-0")
}
