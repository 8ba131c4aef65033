package study

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/macrostep/macrostep/fmi/diag"
)

// SettingPrefix begins the names of factors that are settings of the run: "run.step-size".
const SettingPrefix = "run."

// Factor is what varies from run to run: a parameter or start value "component.variable", or a setting
// of the run "run.SETTING". Its values are Levels, or come from a distribution.
type Factor struct {
	Name   string
	Text   string   // as in the file
	Levels []string // nil = a distribution
	// Points is the number of points of a range in a grid; 0 = it has none.
	Points int
	// Low and High bound the values, ±Inf = there is no bound.
	Low, High float64
	Log       bool // the values are even on a logarithmic scale

	quantile func(p float64) float64
}

// IsSetting reports whether the factor is a setting of the run, and not a variable.
func (f *Factor) IsSetting() bool { return strings.HasPrefix(f.Name, SettingPrefix) }

// Quantile returns the value below which the factor is with the probability 0 < p < 1. Levels are
// equally probable.
func (f *Factor) Quantile(p float64) string {
	if f.Levels != nil {
		return f.Levels[min(int(p*float64(len(f.Levels))), len(f.Levels)-1)]
	}
	return formatNumber(f.quantile(p))
}

// grid returns the levels of the factor in a grid.
func (f *Factor) grid() ([]string, error) {
	if f.Levels != nil {
		return f.Levels, nil
	}
	if f.Points == 0 {
		return nil, fmt.Errorf("%s: %s has no number of points; write a list, linear(FROM, TO, N) or log(FROM, TO, N), or choose a design that samples", f.Name, f.Text)
	}
	levels := make([]string, f.Points)
	for i := range levels {
		levels[i] = formatNumber(f.at(float64(i) / float64(max(f.Points-1, 1))))
	}
	return levels, nil
}

// at returns the value at the share s of a range, 0 ≤ s ≤ 1; its ends are exact.
func (f *Factor) at(s float64) float64 {
	switch {
	case s == 0:
		return f.Low
	case s == 1:
		return f.High
	case f.Log:
		return math.Exp(math.Log(f.Low) + s*(math.Log(f.High)-math.Log(f.Low)))
	}
	return f.Low + s*(f.High-f.Low)
}

func formatNumber(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

var call = regexp.MustCompile(`^\s*([a-z][a-z-]*)\s*\((.*)\)\s*$`)

// splitCall returns the parts of "name(a, b)"; ok is false for anything else.
func splitCall(text string) (name string, args []string, ok bool) {
	m := call.FindStringSubmatch(text)
	if m == nil {
		return "", nil, false
	}
	return m[1], splitArguments(m[2]), true
}

// splitArguments splits a text at its commas, but not at those in brackets: "a[1,2], 3" has two parts.
func splitArguments(text string) (args []string) {
	depth, from := 0, 0
	for i, c := range text {
		switch c {
		case '[', '(':
			depth++
		case ']', ')':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	return append(args, strings.TrimSpace(text[from:]))
}

var cutCall = regexp.MustCompile(`^\s*[a-z][a-z-]*\s*\([^)]*$`)

// openBracket refuses a call that ends before its closing bracket.
func openBracket(text string) error {
	if !cutCall.MatchString(text) {
		return nil
	}
	return fmt.Errorf("%q has no closing bracket; between { } or [ ], put a text with commas into quotes", strings.TrimSpace(text))
}

// factorForms lists the notations of a factor, for help and messages.
const factorForms = "a list 1, 2, 5; linear(FROM, TO, N); log(FROM, TO, N); uniform(FROM, TO); normal(MEAN, SIGMA); " +
	"lognormal(MU, SIGMA) of the logarithm; triangular(FROM, MODE, TO); column(FILE.csv, NAME)"

// ParseFactor reads a factor from a text in one of these forms: a list "1, 2, 5";
// linear(FROM, TO[, N]) and log(FROM, TO[, N]), N points in a grid; uniform(FROM, TO);
// normal(MEAN, SIGMA); lognormal(MU, SIGMA) with mean and standard deviation of the logarithm;
// triangular(FROM, MODE, TO); column(FILE, NAME) of a CSV. resolve turns the name of a file into its path.
func ParseFactor(name, text string, resolve func(string) string) (Factor, error) {
	f := Factor{Name: name, Text: text, Low: math.Inf(-1), High: math.Inf(1)}
	kind, args, ok := splitCall(text)
	if !ok {
		if err := openBracket(text); err != nil {
			return f, fmt.Errorf("%s: %w", name, err)
		}
		levels := strings.Split(text, ",")
		for i := range levels {
			levels[i] = strings.TrimSpace(levels[i])
		}
		return List(name, levels...)
	}
	if kind == "column" {
		err := f.readColumn(args, resolve)
		return f, err
	}
	numbers := make([]float64, len(args))
	for i, a := range args {
		v, err := strconv.ParseFloat(a, 64)
		if err != nil || v-v != 0 {
			return f, fmt.Errorf("%s: %s: %q is not a number", name, text, a)
		}
		numbers[i] = v
	}
	d, known := distributions[kind]
	switch {
	case !known:
		return f, fmt.Errorf("%s: there is no %q%s", name, kind, cmp.Or(diag.DidYouMean(kind, factorKinds(), factorWords), "; give "+factorForms))
	case len(numbers) == d.args+1 && d.points:
		if n := numbers[d.args]; n != math.Trunc(n) || n < 2 || n > 1e6 {
			return f, fmt.Errorf("%s: %s: %g is no number of points; give 2 to 1000000", name, text, n)
		}
		f.Points = int(numbers[d.args])
	case len(numbers) != d.args:
		return f, fmt.Errorf("%s: %s: %s takes %d numbers", name, text, kind, d.args)
	}
	if err := d.make(&f, numbers); err != nil {
		return f, fmt.Errorf("%s: %s: %w", name, text, err)
	}
	return f, nil
}

// distributions are the forms that are not lists.
var distributions = map[string]struct {
	args   int
	points bool // a number of points may follow
	make   func(f *Factor, a []float64) error
}{
	"linear":  {2, true, func(f *Factor, a []float64) error { return f.between(a[0], a[1]) }},
	"uniform": {2, false, func(f *Factor, a []float64) error { return f.between(a[0], a[1]) }},
	"log": {2, true, func(f *Factor, a []float64) error {
		f.Log = true
		if a[0] <= 0 {
			return errors.New("a logarithmic range is above 0")
		}
		return f.between(a[0], a[1])
	}},
	"normal": {2, false, func(f *Factor, a []float64) error {
		f.quantile = distuv.Normal{Mu: a[0], Sigma: a[1]}.Quantile
		return spread(a[1])
	}},
	"lognormal": {2, false, func(f *Factor, a []float64) error {
		f.quantile = distuv.LogNormal{Mu: a[0], Sigma: a[1]}.Quantile
		f.Low = 0
		return spread(a[1])
	}},
	"triangular": {3, false, func(f *Factor, a []float64) error {
		if a[1] < a[0] || a[2] < a[1] {
			return errors.New("FROM, MODE, TO do not ascend")
		}
		if err := f.between(a[0], a[2]); err != nil {
			return err
		}
		f.quantile = distuv.NewTriangle(a[0], a[2], a[1], nil).Quantile
		return nil
	}},
}

func spread(sigma float64) error {
	if sigma <= 0 {
		return errors.New("SIGMA is not above 0")
	}
	return nil
}

func (f *Factor) between(low, high float64) error {
	if high <= low {
		return fmt.Errorf("TO = %g is not above FROM = %g", high, low)
	}
	f.Low, f.High, f.quantile = low, high, f.at
	return nil
}

// List returns a factor with these levels, none of which is empty.
func List(name string, levels ...string) (Factor, error) {
	f := Factor{Name: name, Text: strings.Join(levels, ", "), Levels: levels, Low: math.Inf(-1), High: math.Inf(1)}
	if len(levels) == 0 {
		return f, fmt.Errorf("%s: the list is empty; give %s", name, factorForms)
	}
	if slices.Contains(levels, "") {
		return f, fmt.Errorf("%s: %q has an empty value; give %s", name, f.Text, factorForms)
	}
	return f, nil
}

func (f *Factor) readColumn(args []string, resolve func(string) string) error {
	if len(args) != 2 {
		return fmt.Errorf("%s: %s: give column(FILE.csv, NAME)", f.Name, f.Text)
	}
	t, err := readTable(resolve(args[0]))
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	i, err := t.column(args[1])
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.Name, args[0], err)
	}
	var levels []string
	for _, row := range t.Rows {
		levels = append(levels, row[i])
	}
	*f, err = List(f.Name, levels...)
	return err
}
