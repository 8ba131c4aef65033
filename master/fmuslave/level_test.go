package fmuslave_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
)

// described makes an FMU of a short description. Each variable is
//
//	name[=derivative of][@value reference][:dependencies]
//
// where inputs are called u…, locals _…, and all others are outputs; dependencies
// are names separated by +, "-" for none. ModelStructure/Derivatives lists the
// derivatives that are local.
func described(text string) *fmi.FMU {
	d := &description.ModelDescription{CoSimulation: &description.CoSimulation{ProvidesDirectionalDerivative: true}}
	index := map[string]int{}
	fields := strings.Fields(text)
	for i, f := range fields {
		f, _, _ = strings.Cut(f, ":")
		f, _, _ = strings.Cut(f, "@")
		f, _, _ = strings.Cut(f, "=")
		index[f] = i + 1
	}
	for i, f := range fields {
		f, depends, declared := strings.Cut(f, ":")
		f, reference, alias := strings.Cut(f, "@")
		name, of, _ := strings.Cut(f, "=")
		v := description.ScalarVariable{Name: name, Type: description.Real, ValueReference: description.ValueReference(100 + i), Derivative: index[of], Causality: description.Output}
		if alias {
			v.ValueReference = d.Variables[index[reference]-1].ValueReference
		}
		entry := description.Unknown{Index: i + 1, Declared: declared}
		for x := range strings.SplitSeq(depends, "+") {
			if index[x] > 0 {
				entry.Dependencies = append(entry.Dependencies, index[x])
			}
		}
		switch {
		case name[0] == 'u':
			v.Causality = description.Input
		case name[0] == '_':
			v.Causality = description.Local
			if of != "" {
				d.Derivatives = append(d.Derivatives, entry)
			}
		default:
			d.Outputs = append(d.Outputs, entry)
		}
		d.Variables = append(d.Variables, v)
	}
	return &fmi.FMU{Path: "hand.fmu", Description: d}
}

// Levels of outputs from the attribute derivative: n none, p position, v velocity.
func TestLevels(t *testing.T) {
	for _, c := range []struct{ what, description, want string }{
		{"no derivative", "u y:u w:-", "y n w n"},
		{"mechanics, the acceleration is local", "u x v=x:- _a=v:u", "x p v v"},
		{"mechanics, the acceleration is an output", "u x v=x:- a=v:u+x", "x p v v a n"},
		{"the acceleration declares nothing", "u x v=x:- _a=v", "x p v v"},
		{"the velocity is differentiated and declares nothing", "u x v=x _a=v", "x p v v"},
		{"the velocity is no state: declared free of inputs", "u x v=x:x", "x p v v"},
		{"declared free of everything", "u x v=x:-", "x p v v"},
		{"the rate feels the input", "u T _dT=T:u+T", "T v"},
		{"the rate is an output and feels the input", "u T q=T:u", "T v q n"},
		{"the rate declares nothing", "u T q=T", "T v q n"},
		{"the rate is local and declares no input", "u T _q=T:T", "T p"},
		{"the rate is in no list", "u T _q", "T n"},
		{"inputs by any name", "u1 u2 x v=x:x+u2", "x v v n"},
		{"a chain of three above the input", "u x v=x a=v j=a:u", "x p v p a v j n"},
		{"a chain that ends in states", "u x v=x a=v:x", "x p v p a v"},
		{"two derivatives, one of them differentiated", "u x _dx=x:v v=x:- _a=v:u", "x p v v"},
		{"the one that is not is no acceleration", "u x d=x v=x _a=v:u", "x p d v v v"},
		{"an alias of a state", "u _x y@_x v=_x:- _a=v:u", "y p v v"},
		{"an alias of a derivative", "u _x y@_x _v=_x w@_v:- _a=_v:u", "y p w v"},
		{"of two names one declares", "u x _v=x w@_v:x", "x p w v"},
		{"derivatives in a circle", "u x=v v=x:u", "x n v n"},
	} {
		f := described(c.description)
		var outs []string
		for _, v := range f.Description.OutputVariables() {
			outs = append(outs, v.Name)
		}
		s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: f, Inputs: named(f, description.Input), Outputs: outs})
		must(t, err)
		var got []string
		for _, p := range s.Info().Out {
			got = append(got, p.Name, p.Level.String()[:1])
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s (%s): %s, want %s", c.what, c.description, g, c.want)
		}
	}
}

// Levels that the user gives beat those found, those of internal ports are found too.
func TestMonitoredLevels(t *testing.T) {
	f := described("u _x _v=_x _a=_v:u y:u")
	for _, c := range []struct {
		monitor []fmuslave.Monitored
		want    string
	}{
		{nil, "y none false"},
		{[]fmuslave.Monitored{{Variable: "_v"}, {Variable: "_x"}}, "y none false, _v velocity true, _x position true"},
		{[]fmuslave.Monitored{{Variable: "_v", Level: master.Position}, {Variable: "y", Level: master.Velocity}, {Variable: "_v"}}, "y velocity false, _v position true"},
		{[]fmuslave.Monitored{{Variable: "_a"}}, "y none false, _a none true"},
	} {
		s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: f, Inputs: []string{"u"}, Outputs: []string{"y"}, Monitor: c.monitor})
		must(t, err)
		var got []string
		for _, p := range s.Info().Out {
			got = append(got, fmt.Sprintf("%s %s %v", p.Name, p.Level, p.Internal))
		}
		if g := strings.Join(got, ", "); g != c.want {
			t.Errorf("%v: %s, want %s", c.monitor, g, c.want)
		}
	}
}

// A malformed description makes no trouble.
func FuzzLevels(f *testing.F) {
	f.Add("u x v=x:- _a=v:u")
	f.Add("u x=v v=x:u y@x")
	f.Add("a=b b=c c=a:a+b _d=a@a")
	f.Fuzz(func(t *testing.T, text string) {
		for field := range strings.FieldsSeq(text) {
			if name, _, _ := strings.Cut(field, ":"); strings.ContainsAny(field[:1], "=@:") || strings.Contains(name, "@") {
				return // no description
			}
		}
		d := described(text)
		s, err := fmuslave.New(fmuslave.Config{Name: "c", FMU: d, Outputs: named(d, description.Output)})
		if err != nil {
			return
		}
		for _, p := range s.Info().Out {
			v, _ := d.Description.Variable(p.Name)
			if p.Level != master.NoLevel && v.Derivative == 0 && !strings.Contains(text, "="+p.Name) {
				t.Errorf("%s: %s has no derivative and is none, and is a %s", text, p.Name, p.Level)
			}
		}
	})
}
