package scenario

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
)

// lamp is a subsystem that repeats a whole number.
type lamp struct{ in, out, low, high int64 }

func (l *lamp) Info() *master.Info {
	return &master.Info{Name: "lamp", Caps: master.Caps{VariableStep: true},
		DiscreteIn: []master.Port{{Name: "set", Kind: master.Integer, Low: l.low, High: l.high}}, DiscreteOut: []master.Port{{Name: "colour", Kind: master.Integer}}}
}
func (l *lamp) SetInputs([]float64) error          { return nil }
func (l *lamp) Outputs([]float64) error            { return nil }
func (l *lamp) SetDiscrete(v *master.Values) error { l.in = v.Integer[0]; return nil }
func (l *lamp) Discrete(v *master.Values) error    { v.Integer[0] = l.out; return nil }
func (l *lamp) Step(_ context.Context, t, H float64) (float64, error) {
	l.out = l.in
	return t + H, nil
}

// Items of enumerations stand for their numbers, wherever there is a value; what is no
// item is refused with those that are.
func TestItems(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"colours.csv": "time,set\n0.5,green\n0.8,7\n", "wrong.csv": "time,set\n0,3\n"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	items := map[string]int64{"red": 1, "green": 2, "blue": 7}
	play := func(text string) (*Player, error) {
		t.Helper()
		s, err := parse(t.Context(), filepath.Join(dir, "x.yaml"), []byte(text))
		if err != nil {
			return nil, err
		}
		sys, err := master.NewSystem([]master.Subsystem{&lamp{}}, nil)
		must(t, err)
		c, err := algorithms.New("explicit", nil)
		must(t, err)
		p := s.Play()
		p.Items = func(name string) map[string]int64 {
			return map[string]map[string]int64{"lamp.set": items, "lamp.colour": items}[name]
		}
		run, err := master.NewRun(sys, c.Algorithm, master.Options{Stop: 1, Step: 0.1, Hooks: []master.Hook{p}})
		if err != nil {
			return nil, err
		}
		_, err = run.Run(t.Context())
		return p, err
	}
	p, err := play(`
events:
  - {at: 0, set: {lamp.set: red}}
  - {when: lamp.colour == red, from: 0.3, set: {lamp.set: 7}}
  - {when: lamp.colour == "blue", replay: {lamp.set: {file: colours.csv, column: set}}}
expect:
  - {variable: lamp.colour, at: 0.2, value: red}
  - {variable: lamp.colour, at: 0.4, value: blue}
  - {variable: lamp.colour, at: 0.7, value: green}
  - {variable: lamp.colour, at: 1, value: 7}
`)
	if err != nil || p.Err() != nil {
		t.Fatal(err, p.Err())
	}
	const others = "the name nor the number of an item; the items are red (1), green (2), blue (7)"
	for text, want := range map[string]string{
		"events:\n  - {at: 0, set: {lamp.set: 3}}":                                    `x.yaml:2: lamp.set: "3" is neither ` + others,
		"events:\n  - {when: lamp.colour == rot, stop: x}":                            `x.yaml:2: lamp.colour: "rot" is neither ` + others,
		"events:\n  - {at: 0, replay: {lamp.set: {file: wrong.csv, column: set}}}":    `wrong.csv:2: set: "3" is neither ` + others,
		"expect:\n  - {variable: lamp.colour, at: 0, value: 4}":                       `x.yaml:2: lamp.colour: "4" is neither ` + others,
		"events:\n  - {at: 0, replay: {lamp.set: {file: colours.csv, column: sett}}}": `has no column "sett"`,
	} {
		if _, err := play(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %s", text, err, want)
		}
	}
}

// Integers of 64 bits are set, compared and expected to the last digit, within the range of the variable.
func TestIntegers(t *testing.T) {
	play := func(text string, l *lamp) error {
		t.Helper()
		s, err := parse(t.Context(), "x.yaml", []byte(text))
		must(t, err)
		sys, err := master.NewSystem([]master.Subsystem{l}, nil)
		must(t, err)
		c, err := algorithms.New("explicit", nil)
		must(t, err)
		p := s.Play()
		run, err := master.NewRun(sys, c.Algorithm, master.Options{Stop: 1, Step: 0.1, Hooks: []master.Hook{p}})
		if err != nil {
			return err
		}
		_, err = run.Run(t.Context())
		must(t, err)
		return p.Err()
	}
	const events = `
events:
  - {at: 0, set: {lamp.set: 9007199254740992}}
  - {when: lamp.colour == 9007199254740993, set: {lamp.set: 2}}
  - {at: 0.3, set: {lamp.set: 9007199254740993}}
  - {when: lamp.colour > 9007199254740992, set: {lamp.set: -9223372036854775808}}
expect:
`
	if err := play(events+`
  - {variable: lamp.colour, at: 0.3, value: 9007199254740992}
  - {variable: lamp.colour, at: 0.4, value: 9007199254740993}
  - {variable: lamp.colour, at: 0.9, value: -9223372036854775808}
`, &lamp{}); err != nil {
		t.Error(err) // of two events at 0.4 s the last one counts
	}
	for text, want := range map[string]string{
		events + "  - {variable: lamp.colour, at: 0.2, value: 9007199254740993}":                "x.yaml:8: lamp.colour is 9007199254740992 at t = 0.2 s; expected is lamp.colour = 9007199254740993 at",
		events + "  - {variable: lamp.colour, at: 0.2, max: 9007199254740992}":                  "x.yaml:8: lamp.colour: limits of an Integer are exact only below 2^53; give a value without tolerance",
		events + "  - {variable: lamp.colour, at: 0.2, value: 9e15, tolerance: 1}":              `"9e15" is not a whole number from -9223372036854775808 to 9223372036854775807`,
		events + "  - {variable: lamp.colour, at: 0.2, value: 10000000000000000, tolerance: 1}": "exact only below 2^53",
		"events: [{at: 0.5, set: {lamp.set: 9223372036854775808}}]":                             `x.yaml:1: lamp.set: "9223372036854775808" is not a whole number from`,
	} {
		if err := play(text, &lamp{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	err := play("events: [{at: 0.5, set: {lamp.set: 200}}]", &lamp{low: -128, high: 127})
	if want := `x.yaml:1: lamp.set: "200" is not a whole number from -128 to 127`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
