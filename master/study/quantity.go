package study

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/results"
)

// Quantity is a number that is collected of each run. Between communication points, a variable is
// taken to be linear in time.
type Quantity struct {
	Name     string
	Text     string // as in the file
	Variable string // "component.variable"

	of            func(t, v []float64) float64 // not finite = the run has no such number
	from, until   float64                      // s, of a reference; NaN = there is none
	times, values []float64                    // of a reference
	given         string                       // its unit; "" = not given
}

// quantityForms lists the notations of a quantity, for help and messages.
const quantityForms = "final(VARIABLE), minimum(VARIABLE), maximum(VARIABLE), time-of-minimum(VARIABLE), " +
	"time-of-maximum(VARIABLE), mean(VARIABLE), rms(VARIABLE), integral(VARIABLE), value(VARIABLE, TIME), " +
	"crossing(VARIABLE, LEVEL[, up|down]), deviation(VARIABLE, FILE.csv[, COLUMN])"

// ParseQuantity reads a quantity from a text like "maximum(mass1.x)". resolve turns the name of a file
// into its path. The forms are
//
//	final minimum maximum time-of-minimum time-of-maximum mean rms integral   (VARIABLE)
//	value(VARIABLE, TIME)                       at a time in s
//	crossing(VARIABLE, LEVEL[, up|down])        time in s at which LEVEL is first crossed
//	deviation(VARIABLE, FILE.csv[, COLUMN])     root mean square of the difference from a table, at its times
//
// Times are in s, integrals in the unit of the variable times s.
func ParseQuantity(name, text string, resolve func(string) string) (Quantity, error) {
	q := Quantity{Name: cmp.Or(name, text), Text: text, from: math.NaN(), until: math.NaN()}
	kind, args, ok := splitCall(text)
	if err := openBracket(text); err != nil {
		return q, err
	}
	if !ok {
		return q, fmt.Errorf("%q is no quantity; give one of %s", text, quantityForms)
	}
	q.Variable = args[0]
	var err error
	if simple := reductions[kind]; simple != nil {
		q.of = simple
		if len(args) != 1 || q.Variable == "" {
			err = fmt.Errorf("%s takes one variable", kind)
		}
	} else {
		switch kind {
		case "value":
			err = q.readValue(args)
		case "crossing":
			err = q.readCrossing(args)
		case "deviation":
			err = q.readDeviation(args, resolve)
		default:
			err = fmt.Errorf("there is no quantity %q%s", kind, cmp.Or(diag.DidYouMean(kind, quantityKinds(), quantityWords), "; give one of "+quantityForms))
		}
	}
	if err != nil {
		return q, fmt.Errorf("%s: %w", text, err)
	}
	return q, nil
}

// unit returns the unit of the quantity of a variable with a unit; "" = unknown or none.
func (q *Quantity) unit(of string) string {
	switch kind, _, _ := splitCall(q.Text); {
	case kind == "crossing" || strings.HasPrefix(kind, "time-of-"):
		return "s"
	case kind == "integral" && of != "":
		return of + " s"
	}
	return of
}

// reductions are the quantities of a variable alone, over the whole run.
var reductions = map[string]func(t, v []float64) float64{
	"final":           func(_, v []float64) float64 { return v[len(v)-1] },
	"minimum":         func(_, v []float64) float64 { return slices.Min(v) },
	"maximum":         func(_, v []float64) float64 { return slices.Max(v) },
	"time-of-minimum": func(t, v []float64) float64 { return timeOf(t, v, slices.Min(v)) },
	"time-of-maximum": func(t, v []float64) float64 { return timeOf(t, v, slices.Max(v)) },
	"integral":        integral,
	"mean":            func(t, v []float64) float64 { return overSpan(t, v, integral(t, v)) },
	"rms": func(t, v []float64) float64 {
		sum := 0.0
		for i := 1; i < len(t); i++ {
			a, b := v[i-1], v[i]
			sum += (t[i] - t[i-1]) * (a*a + a*b + b*b) / 3 // exact between the points
		}
		return math.Sqrt(overSpan(t, []float64{v[0] * v[0]}, sum))
	},
}

// timeOf returns the time of the first point with a value, NaN if there is none, as for NaN.
func timeOf(t, v []float64, value float64) float64 {
	if i := slices.Index(v, value); i >= 0 {
		return t[i]
	}
	return math.NaN()
}

func integral(t, v []float64) float64 {
	sum := 0.0
	for i := 1; i < len(t); i++ {
		sum += (t[i] - t[i-1]) * (v[i-1] + v[i]) / 2
	}
	return sum
}

// overSpan returns an integral over the time of the run; of a run without steps, the value at its start.
func overSpan(t, v []float64, integral float64) float64 {
	if span := t[len(t)-1] - t[0]; span > 0 {
		return integral / span
	}
	return v[0]
}

// valueAt returns the value at a time, NaN outside of the run. At a time with several points, it is that of the last.
func valueAt(t, v []float64, at float64) float64 {
	i, _ := slices.BinarySearchFunc(t, at, func(e, at float64) int {
		if e <= at {
			return -1
		}
		return 1
	}) // the first point after
	// The end of a run may miss its stop time by rounding.
	if last := len(t) - 1; i > last && at-t[last] <= 1e-9*math.Max(math.Abs(at), t[last]-t[0]) {
		return v[last]
	}
	if i == 0 || i == len(t) {
		return math.NaN()
	}
	if at == t[i-1] {
		return v[i-1] // the next value may be infinite
	}
	return v[i-1] + (at-t[i-1])/(t[i]-t[i-1])*(v[i]-v[i-1])
}

func (q *Quantity) readValue(args []string) error {
	if len(args) != 2 {
		return errors.New("give value(VARIABLE, TIME)")
	}
	at, err := strconv.ParseFloat(args[1], 64)
	if err != nil || at-at != 0 {
		return fmt.Errorf("%q is no time in s", args[1])
	}
	q.of = func(t, v []float64) float64 { return valueAt(t, v, at) }
	return nil
}

func (q *Quantity) readCrossing(args []string) error {
	if len(args) < 2 || len(args) > 3 || len(args) == 3 && args[2] != "up" && args[2] != "down" {
		return errors.New("give crossing(VARIABLE, LEVEL), crossing(VARIABLE, LEVEL, up) or crossing(VARIABLE, LEVEL, down)")
	}
	level, err := strconv.ParseFloat(args[1], 64)
	if err != nil || level-level != 0 {
		return fmt.Errorf("%q is no number", args[1])
	}
	up, down := len(args) == 2 || args[2] == "up", len(args) == 2 || args[2] == "down"
	q.of = func(t, v []float64) float64 {
		for i := 1; i < len(t); i++ {
			a, b := v[i-1]-level, v[i]-level
			if up && a < 0 && b >= 0 || down && a > 0 && b <= 0 {
				if math.IsInf(a, 0) {
					return t[i]
				}
				return t[i-1] - (t[i]-t[i-1])*a/(b-a)
			}
		}
		return math.NaN()
	}
	return nil
}

func (q *Quantity) readDeviation(args []string, resolve func(string) string) error {
	if len(args) < 2 || len(args) > 3 {
		return errors.New("give deviation(VARIABLE, FILE.csv) or deviation(VARIABLE, FILE.csv, COLUMN)")
	}
	column := args[0]
	if len(args) == 3 {
		column = args[2]
	}
	times, values, unit, err := readReference(resolve(args[1]), column)
	if err != nil {
		return err
	}
	q.given = unit
	q.times, q.values = times, values
	q.from, q.until = times[0], times[len(times)-1]
	q.of = func(t, v []float64) float64 {
		sum := 0.0
		for i, at := range times {
			d := valueAt(t, v, at) - values[i]
			sum += d * d
		}
		return math.Sqrt(sum / float64(len(times)))
	}
	return nil
}

// readReference returns the times in s, the values and the unit of a column, which is named with or without its unit.
func readReference(path, column string) (times, values []float64, unit string, err error) {
	t, err := results.Read(path, results.ReadOptions{})
	if err != nil {
		return nil, nil, "", err
	}
	var names []string
	for _, c := range t.Columns {
		if c.Name == column || c.Bare == column {
			for i, at := range t.Times {
				if c.Values == nil {
					break
				}
				if v := c.Values[i]; v-v == 0 { // gaps are left out
					times, values = append(times, at), append(values, v)
				}
			}
			if times == nil {
				return nil, nil, "", fmt.Errorf("%s: column %s has no numbers", path, column)
			}
			return times, values, c.Unit, nil
		}
		names = append(names, c.Name)
	}
	return nil, nil, "", fmt.Errorf("%s has no column %q%s", path, column, diag.DidYouMeanOr(column, names, "; there are "))
}
