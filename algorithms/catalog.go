package algorithms

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/master"
)

// Param is one parameter of a preset.
type Param struct {
	Name    string
	Default string
	Range   string // what it may be
	Doc     string
	set     func(*settings, string) error
}

// Preset is a named combination of parts.
type Preset struct {
	Name   string
	Doc    string
	Source string // papers and equations
	Params []Param
}

// settings are the parts and parameters in force.
type settings struct {
	explicit      ExplicitConfig
	substepsGiven bool
	deliveryGiven bool
	discard       master.DiscardPolicy
}

// Choice is an algorithm with everything that was chosen with it.
type Choice struct {
	Preset    string
	Algorithm master.Algorithm
	Values    map[string]string // every parameter in force, defaults included
	Discard   master.DiscardPolicy
	Notes     []string // what was asked for and has no effect
}

// DefaultPreset is the preset of a run that names none.
const DefaultPreset = "explicit"

// The parameters, each described once.
var (
	orderParam = Param{
		Name: "order", Default: "0", Range: "0 … 5",
		Doc: "extrapolation order k of the coupling inputs: polynomials through the last k+1 communication points",
		set: func(s *settings, v string) error {
			k, err := wholeNumber(v, 0, MaxOrder)
			s.explicit.Order = k
			return err
		},
	}
	substepsParam = Param{
		Name: "substeps", Default: "auto", Range: "auto, 1, 2, …",
		Doc: "number of substeps per macro step at whose midpoints the polynomial is sampled (order min(k+1, 2) in H at fixed n); " +
			"a number chooses this delivery, auto is 10 where inputs cannot be interpolated",
		set: func(s *settings, v string) error {
			if v == "auto" {
				return nil
			}
			n, err := wholeNumber(v, 1, 1_000_000)
			s.explicit.Substeps, s.substepsGiven = n, true
			return err
		},
	}
	deliveryParam = Param{
		Name: "delivery", Default: "auto", Range: "auto, derivatives, substeps, held",
		Doc: "how the polynomials reach the subsystems: by input derivatives, by substeps, or held (order 0); " +
			"a subsystem that cannot takes the next one, and the run reports which",
		set: func(s *settings, v string) error {
			i := slices.Index([]string{"auto", "derivatives", "substeps", "held"}, v)
			if i < 0 {
				return errors.New("it is auto, derivatives, substeps or held")
			}
			s.explicit.Delivery, s.deliveryGiven = Delivery(i), v != "auto"
			return nil
		},
	}
	sequenceParam = Param{
		Name: "sequence", Default: "graph", Range: "graph, or all components separated by commas",
		Doc: "order in which Gauss–Seidel steps the subsystems; graph puts each after its sources as far as loops allow",
		set: func(s *settings, v string) error {
			if v != "graph" {
				for name := range strings.SplitSeq(v, ",") {
					s.explicit.Sequence = append(s.explicit.Sequence, strings.TrimSpace(name))
				}
			}
			return nil
		},
	}
	discardParam = Param{
		Name: "discard", Default: "stop", Range: "stop, shorten",
		Doc: "what happens when a subsystem discards a step: stop ends the run; shorten goes back and takes the step in pieces " +
			"(all subsystems must roll back; states are saved at every step)",
		set: func(s *settings, v string) error {
			switch v {
			case "stop":
				s.discard = master.StopOnDiscard
			case "shorten":
				s.discard = master.ShortenOnDiscard
			default:
				return errors.New("it is stop or shorten")
			}
			return nil
		},
	}
)

func schemeParam(def string) Param {
	return Param{
		Name: "scheme", Default: def, Range: "jacobi, gauss-seidel",
		Doc: "jacobi steps all subsystems from the old values; gauss-seidel one after the other, with the new values of those already stepped",
		set: func(s *settings, v string) error {
			switch v {
			case "jacobi":
				s.explicit.Scheme = Jacobi
			case "gauss-seidel":
				s.explicit.Scheme = GaussSeidel
			default:
				return errors.New("it is jacobi or gauss-seidel")
			}
			return nil
		},
	}
}

// Presets gives the table of presets.
func Presets() []Preset {
	explicit := func(scheme string) []Param {
		return []Param{schemeParam(scheme), orderParam, substepsParam, deliveryParam, sequenceParam, discardParam}
	}
	return []Preset{
		{
			Name:   "explicit",
			Doc:    "Explicit coupling, all subsystems in parallel (Jacobi): inputs are extrapolated over the macro step, no step is repeated.",
			Source: "schweizer 2.1.2, 2.2.2, 2.3.2; meyer 3.1",
			Params: explicit("jacobi"),
		},
		{
			Name:   "gauss-seidel",
			Doc:    "Explicit coupling, one subsystem after the other (Gauss–Seidel): a source already stepped gives its new value as the newest point.",
			Source: "schweizer 2.1; design of macrostep",
			Params: explicit("gauss-seidel"),
		},
	}
}

// New gives the algorithm of a preset with parameters. Unknown presets and
// parameters, and values out of range, are errors that tell what there is.
func New(preset string, params map[string]string) (*Choice, error) {
	table := Presets()
	at := slices.IndexFunc(table, func(p Preset) bool { return p.Name == preset })
	if at < 0 {
		return nil, fmt.Errorf("no algorithm is called %q; there are %s", preset, names(table, func(p Preset) string { return p.Name }))
	}
	p := &table[at]
	for _, key := range slices.Sorted(maps.Keys(params)) {
		if !slices.ContainsFunc(p.Params, func(q Param) bool { return q.Name == key }) {
			return nil, fmt.Errorf("algorithm %s has no parameter %q; it has %s", preset, key, names(p.Params, func(q Param) string { return q.Name }))
		}
	}
	var s settings
	c := &Choice{Preset: preset, Values: map[string]string{}}
	for _, q := range p.Params {
		v, given := params[q.Name]
		if !given {
			v = q.Default
		}
		if err := q.set(&s, v); err != nil {
			return nil, fmt.Errorf("parameter %s=%s: %w", q.Name, v, err)
		}
		c.Values[q.Name] = v
	}
	if s.substepsGiven && !s.deliveryGiven {
		s.explicit.Delivery = Substeps
	}
	if s.explicit.Order == 0 && (s.substepsGiven || s.deliveryGiven) {
		c.Notes = append(c.Notes, "at extrapolation order 0 inputs are held: the parameters substeps and delivery have no effect")
	}
	if s.explicit.Scheme == Jacobi && s.explicit.Sequence != nil {
		c.Notes = append(c.Notes, "the Jacobi scheme steps all subsystems from the same values: the parameter sequence has no effect")
	}
	alg, err := NewExplicit(s.explicit)
	if err != nil {
		return nil, err
	}
	c.Algorithm, c.Discard = alg, s.discard
	return c, nil
}

func wholeNumber(v string, lowest, highest int) (int, error) {
	n, err := strconv.Atoi(v)
	if err != nil || n < lowest || n > highest {
		return 0, fmt.Errorf("it is a whole number from %d to %d", lowest, highest)
	}
	return n, nil
}

func names[T any](list []T, name func(T) string) string {
	var s []string
	for _, e := range list {
		s = append(s, name(e))
	}
	return strings.Join(s, ", ")
}
