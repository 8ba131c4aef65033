package fmus

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/macrostep/macrostep/fmi/csrc"
)

var schemaDir = flag.String("schemas", "", "folder with the schemas of FMI 3.0; without it descriptions are not validated")

// functions3 are the functions of FMI 3.0, tagged like those of library.
type functions3 struct {
	Instantiate func(name, token string, resources uintptr, visible, logging, events, early bool, vr *uint32, n, environment,
		logger, update uintptr) uintptr `fmi3:"InstantiateCoSimulation"`

	ModelExchange func(name, token string, resources uintptr, visible, logging bool,
		environment, logger uintptr) uintptr `fmi3:"InstantiateModelExchange"`

	Enter func(c uintptr, tolDefined bool, tol, start float64, stopDefined bool, stop float64) int32 `fmi3:"EnterInitializationMode"`

	Directional func(c uintptr, unknown *uint32, n uintptr, known *uint32, m uintptr, dv *float64, k uintptr,
		out *float64, l uintptr) int32 `fmi3:"GetDirectionalDerivative"`

	GetVersion      func() string
	SetDebugLogging func(uintptr, bool, uintptr, unsafe.Pointer) int32
	Terminate       func(uintptr) int32
	Reset           func(uintptr) int32
	GetString       func(uintptr, *uint32, uintptr, *uintptr, uintptr) int32
	SetString       func(uintptr, *uint32, uintptr, *uintptr, uintptr) int32
	GetFloat64      func(uintptr, *uint32, uintptr, *float64, uintptr) int32
	SetFloat64      func(uintptr, *uint32, uintptr, *float64, uintptr) int32
	GetInt32        func(uintptr, *uint32, uintptr, *int32, uintptr) int32
	SetInt32        func(uintptr, *uint32, uintptr, *int32, uintptr) int32
	GetInt64        func(uintptr, *uint32, uintptr, *int64, uintptr) int32
	SetInt64        func(uintptr, *uint32, uintptr, *int64, uintptr) int32
	GetBoolean      func(uintptr, *uint32, uintptr, *bool, uintptr) int32
	DoStep          func(c uintptr, t, h float64, noPrior bool, events, terminate, early *bool, reached *float64) int32

	Free           func(uintptr)                                                                     `fmi3:"FreeInstance"`
	Exit           func(uintptr) int32                                                               `fmi3:"ExitInitializationMode"`
	GetState       func(uintptr, *uintptr) int32                                                     `fmi3:"GetFMUState"`
	SetState       func(uintptr, uintptr) int32                                                      `fmi3:"SetFMUState"`
	FreeState      func(uintptr, *uintptr) int32                                                     `fmi3:"FreeFMUState"`
	StateSize      func(uintptr, uintptr, *uintptr) int32                                            `fmi3:"SerializedFMUStateSize"`
	Serialize      func(uintptr, uintptr, *byte, uintptr) int32                                      `fmi3:"SerializeFMUState"`
	Deserialize    func(uintptr, *byte, uintptr, *uintptr) int32                                     `fmi3:"DeserializeFMUState"`
	GetDerivatives func(c uintptr, vr *uint32, n uintptr, order *int32, v *float64, m uintptr) int32 `fmi3:"GetOutputDerivatives"`
}

// variable3 is an element of ModelVariables of FMI 3.0.
type variable3 struct {
	XMLName     xml.Name
	Name        string `xml:"name,attr"`
	Reference   uint32 `xml:"valueReference,attr"`
	Causality   string `xml:"causality,attr"`
	Variability string `xml:"variability,attr"`
	Unit        string `xml:"unit,attr"`
	Start       string `xml:"start,attr"`
	Derivative  string `xml:"derivative,attr"`
}

type unknown3 struct {
	XMLName      xml.Name
	Reference    uint32  `xml:"valueReference,attr"`
	Dependencies *string `xml:"dependencies,attr"`
}

type description3 struct {
	Version   string `xml:"fmiVersion,attr"`
	Token     string `xml:"instantiationToken,attr"`
	Variables struct {
		All []variable3 `xml:",any"`
	} `xml:"ModelVariables"`
	Structure struct {
		All []unknown3 `xml:",any"`
	} `xml:"ModelStructure"`
}

var logger3 = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(_, status, category, message uintptr) uintptr {
		*messages = append(*messages, fmt.Sprintf("%d %s %s", int32(status), cString(category), cString(message)))
		return 0
	})
})

// load3 returns the FMI 3.0 build of one of our FMUs behind the functions of FMI 2.0, so that the helpers of instance
// serve both.
func load3(t testing.TB, name string) *library {
	t.Helper()
	return loadOnce("fmi3/"+name, func() *library { return open3(t, name) })
}

func open3(t testing.TB, name string) *library {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(work, "fmi3"), 0o755); err != nil {
		t.Fatal(err)
	}
	path, err := Build3(filepath.Join(work, "fmi3"), name)
	if err != nil {
		t.Fatal(err)
	}
	var md description3
	if err := xml.Unmarshal(entry(t, path, "modelDescription.xml"), &md); err != nil {
		t.Fatal(err)
	}
	f := &functions3{}
	register(t, f, path, platform3(), "fmi3")
	var experiment struct {
		tolerance, start, stop float64
		hasTolerance, hasStop  bool
	}
	l := &library{
		f: f, path: path, guid: md.Token, variables: map[string]scalar{},
		Instantiate: func(name string, _ int32, token, _ string, _ unsafe.Pointer, _, logging int32) uintptr {
			return f.Instantiate(name, token, 0, false, logging != 0, false, false, nil, 0, 0, logger3(), 0)
		},
		Free: f.Free, Exit: f.Exit, Terminate: f.Terminate, Reset: f.Reset,
		GetState: f.GetState, SetState: f.SetState, FreeState: f.FreeState,
		StateSize: f.StateSize, Serialize: f.Serialize, Deserialize: f.Deserialize,
		Setup: func(_ uintptr, hasTolerance int32, tolerance, start float64, hasStop int32, stop float64) int32 {
			experiment.tolerance, experiment.start, experiment.stop = tolerance, start, stop
			experiment.hasTolerance, experiment.hasStop = hasTolerance != 0, hasStop != 0
			return ok
		},
		Enter: func(c uintptr) int32 {
			e := experiment
			return f.Enter(c, e.hasTolerance, e.tolerance, e.start, e.hasStop, e.stop)
		},
		GetReal:    func(c uintptr, vr *uint32, n uintptr, v *float64) int32 { return f.GetFloat64(c, vr, n, v, n) },
		SetReal:    func(c uintptr, vr *uint32, n uintptr, v *float64) int32 { return f.SetFloat64(c, vr, n, v, n) },
		GetInteger: func(c uintptr, vr *uint32, n uintptr, v *int32) int32 { return f.GetInt32(c, vr, n, v, n) },
		SetInteger: func(c uintptr, vr *uint32, n uintptr, v *int32) int32 { return f.SetInt32(c, vr, n, v, n) },
		SetString:  func(c uintptr, vr *uint32, n uintptr, v *uintptr) int32 { return f.SetString(c, vr, n, v, n) },
		DoStep: func(c uintptr, t, h float64, noPrior int32) int32 {
			var flags [3]bool
			var reached float64
			return f.DoStep(c, t, h, noPrior != 0, &flags[0], &flags[1], &flags[2], &reached)
		},
		Directional: func(c uintptr, u *uint32, n uintptr, k *uint32, m uintptr, dv, out *float64) int32 {
			return f.Directional(c, u, n, k, m, dv, m, out, n)
		},
		GetDerivatives: func(c uintptr, vr *uint32, n uintptr, order *int32, v *float64) int32 {
			return f.GetDerivatives(c, vr, n, order, v, n)
		},
	}
	for _, v := range md.Variables.All {
		s := scalar{Name: v.Name, Reference: v.Reference, Causality: v.Causality}
		if v.XMLName.Local == "Float64" {
			s.Real = &realType{}
		}
		l.variables[v.Name] = s
		l.md.Variables = append(l.md.Variables, s)
	}
	return l
}

// The FMI 3.0 description has the variables of the FMI 2.0 one and time, under value references that differ, and
// follows the schemas.
func TestDescriptions3(t *testing.T) {
	kinds := map[string]string{"Real": "Float64", "Integer": "Int32", "String": "String", "Enumeration": "Enumeration"}
	for _, name := range append(Names(), Misbehaving()...) {
		data, err := Description3(name)
		if err != nil {
			t.Fatal(err)
		}
		two, err := Description(name)
		if err != nil {
			t.Fatal(err)
		}
		var d description3
		var d2 struct {
			Token     string `xml:"guid,attr"`
			Variables []struct {
				Name string `xml:"name,attr"`
				Type struct {
					XMLName xml.Name
					Unit    string `xml:"unit,attr"`
				} `xml:",any"`
			} `xml:"ModelVariables>ScalarVariable"`
		}
		if err := cmp.Or(xml.Unmarshal(data, &d), xml.Unmarshal(two, &d2)); err != nil {
			t.Fatal(err)
		}
		if d.Version != "3.0" || d.Token == "" || d.Token == d2.Token {
			t.Errorf("%s: version %q, token %q", name, d.Version, d.Token)
		}
		want, got := map[string]string{"time": "Float64 s"}, map[string]string{}
		for _, v := range d2.Variables {
			want[v.Name] = kinds[v.Type.XMLName.Local] + " " + v.Type.Unit
		}
		references, clock := map[uint32]variable3{}, 0
		for _, v := range d.Variables.All {
			got[v.Name] = v.XMLName.Local + " " + v.Unit
			if other, taken := references[v.Reference]; taken {
				t.Errorf("%s: %s and %s have the value reference %d", name, other.Name, v.Name, v.Reference)
			}
			references[v.Reference] = v
			if v.Causality == "independent" {
				clock++
			}
		}
		if !maps.Equal(got, want) || clock != 1 {
			t.Errorf("%s: variables %v, want %v; %d are independent", name, got, want, clock)
		}
		rates := 0
		for _, u := range d.Structure.All {
			v, there := references[u.Reference]
			if !there || (v.Causality == "output") != (u.XMLName.Local == "Output") && u.XMLName.Local == "Output" {
				t.Errorf("%s: %s is %+v", name, u.XMLName.Local, v)
			}
			if u.XMLName.Local == "ContinuousStateDerivative" {
				rates++
				if n, err := strconv.ParseUint(v.Derivative, 10, 32); err != nil || references[uint32(n)].XMLName.Local != "Float64" {
					t.Errorf("%s: %s is the derivative of %q", name, v.Name, v.Derivative)
				}
			}
			if u.Dependencies == nil {
				continue
			}
			for _, s := range strings.Fields(*u.Dependencies) {
				n, err := strconv.ParseUint(s, 10, 32)
				k := references[uint32(n)]
				if err != nil || k.Causality != "input" && k.Causality != "parameter" && k.Causality != "independent" &&
					!slices.ContainsFunc(d.Variables.All, func(v variable3) bool { return v.Derivative == s }) {
					t.Errorf("%s: %s depends on %s, which is no known", name, v.Name, s)
				}
			}
		}
		if n := bytes.Count(two, []byte("derivative=\"")); n != rates {
			t.Errorf("%s: %d derivatives, %d in FMI 2.0", name, rates, n)
		}
		m, err := find3(name)
		if err != nil {
			t.Fatal(err)
		}
		validate(t, "fmi3ModelDescription.xsd", data)
		validate(t, "fmi3BuildDescription.xsd", []byte(m.buildDescription()))
	}
	if _, err := Description3("no_such"); err == nil {
		t.Error("a description of an unknown FMU")
	}
}

// validate checks a document with xmllint, if the schemas are there.
func validate(t *testing.T, schema string, document []byte) {
	t.Helper()
	if *schemaDir == "" {
		return
	}
	c := exec.Command("xmllint", "--noout", "--nonet", "--schema", filepath.Join(*schemaDir, schema), "-")
	c.Stdin = bytes.NewReader(document)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v (xmllint is in libxml2-utils)\n%s", err, out)
	}
}

// The FMI 3.0 build computes the numbers of the FMI 2.0 build to the last bit; its library is complete, and refuses what
// it does not have.
func TestFMI3EqualsFMI2(t *testing.T) {
	for _, name := range []string{"quarter_wheel_a", "mass_force", "contact_mass", "chain", "blackbox"} {
		t.Run(name, func(t *testing.T) {
			set := map[string]float64{}
			switch name {
			case "quarter_wheel_a":
				set["micro_steps"], set["n_d"] = 7, 1
			case "blackbox":
				_, _, set = space(rand.New(rand.NewPCG(1, 1)), 4, 2, 2, 1)
			}
			three := load3(t, name)
			a, b := start(t, name, set), three.start(t, set)
			if v := three.f.GetVersion(); v != "3.0" {
				t.Errorf("version %q", v)
			}
			r := rand.New(rand.NewPCG(5, 6))
			const h = 1e-3
			for n := range 100 {
				for _, v := range a.md.Variables {
					if v.Causality == "input" {
						u := r.NormFloat64()
						a.set(v.Name, u)
						b.set(v.Name, u)
					}
				}
				a.step(float64(n)*h, h)
				b.step(float64(n)*h, h)
				for _, v := range a.md.Variables {
					if v.Real == nil {
						continue
					}
					if x, y := a.get(v.Name), b.get(v.Name); math.Float64bits(x) != math.Float64bits(y) {
						t.Fatalf("step %d: %s is %g, in FMI 3.0 %g", n, v.Name, x, y)
					}
					if v.Causality == "output" && name != "blackbox" {
						if x, y := a.derivative(v.Name, 1), b.derivative(v.Name, 1); x != y {
							t.Fatalf("step %d: the derivative of %s is %g, in FMI 3.0 %g", n, v.Name, x, y)
						}
					}
				}
			}
			b.near("time", 0.1, 1e-15)
			if name != "blackbox" {
				return
			}
			var state uintptr
			b.refused("GetFMUState", b.GetState(b.c, &state), failed, "fmi3GetFMUState: not offered")
		})
	}
}

// A saved state is restored to the last bit, in another instance from its serial form; directional derivatives are those
// of FMI 2.0, and those by time are slopes.
func TestFMI3StateAndDerivatives(t *testing.T) {
	l := load3(t, "contact_mass")
	f, g := l.start(t, map[string]float64{"x0": -1e-3, "v0": 1}), l.start(t, nil)
	f.step(0, 1e-3)
	f.set("F", 3)
	var state, copied, size uintptr
	f.must(f.GetState(f.c, &state))
	run := func(f *instance) []float64 {
		f.step(1e-3, 1e-3)
		f.step(2e-3, 2e-3)
		return f.all()
	}
	first := run(f)
	f.must(f.SetState(f.c, state))
	if again := run(f); !slices.Equal(first, again) {
		t.Error("the replay differs")
	}
	f.must(f.StateSize(f.c, state, &size))
	blob := make([]byte, size)
	f.must(f.Serialize(f.c, state, &blob[0], size))
	g.must(g.Deserialize(g.c, &blob[0], size, &copied))
	g.must(g.SetState(g.c, copied))
	if other := run(g); !slices.Equal(first, other) {
		t.Error("the run of the other instance differs")
	}
	g.refused("foreign state", g.SetState(g.c, state), failed, "fmi3SetFMUState: the state belongs to another instance")
	blob[size-1] ^= 1
	g.refused("broken bytes", g.Deserialize(g.c, &blob[0], size, &copied), failed, "not a state of this FMU")
	f.must(f.FreeState(f.c, &state))

	a, b := start(t, "mass_force", nil), load3(t, "mass_force").start(t, nil)
	for _, known := range []string{"F", "x", "v"} {
		if x, y := a.directional("der(v)", known), b.directional("der(v)", known); x != y || x == 0 {
			t.Errorf("der(v) by %s is %g, in FMI 3.0 %g", known, x, y)
		}
	}
	chain := load3(t, "chain").start(t, map[string]float64{"masses": 2, "c": 0, "d": 0, "C": 0, "D": 0, "contacts": 0, "impulses": 10,
		"impulse_first": 1e-3, "impulse_delta": 1e-3})
	slope := chain.directional("der(v_left)", "time")
	before := chain.get("der(v_left)")
	chain.step(0, 1e-8)
	near(t, "slope", slope/((chain.get("der(v_left)")-before)/1e-8), 1, 1e-4)
}

// Calls that are wrong are refused with a message that names function and reason, and a discarded step changes nothing.
func TestFMI3Refusals(t *testing.T) {
	l := load3(t, "mass_force")
	refused := func(c uintptr, text string) {
		t.Helper()
		if c != 0 || len(*messages) != 1 || !strings.Contains((*messages)[0], text) {
			t.Errorf("instance %v, messages %q, want %q", c, *messages, text)
		}
		*messages = nil
	}
	make3 := func(name, token string, events bool) uintptr {
		return l.f.Instantiate(name, token, 0, false, false, events, false, nil, 0, 0, logger3(), 0)
	}
	refused(make3("one", "{other}", false), "fmi3InstantiateCoSimulation: the instantiation token is not that of this library")
	refused(make3(" ", l.guid, false), "no name")
	refused(make3("one", l.guid, true), "no event mode")
	refused(l.f.ModelExchange("one", l.guid, 0, false, false, 0, logger3()), "only co-simulation")

	v, n, flag := 0.0, int32(0), false
	vr, vrs := l.variables["F"].Reference, []uint32{l.variables["F"].Reference, l.variables["x"].Reference}
	for what, c := range map[string]struct {
		call func(f *instance) int32
		text string
	}{
		"values": {func(f *instance) int32 { return l.f.GetFloat64(f.c, &vrs[0], 2, &v, 1) }, "fmi3GetFloat64: 1 values for 2 variables"},
		"seeds": {func(f *instance) int32 {
			return l.f.Directional(f.c, &vrs[1], 1, &vr, 1, &v, 2, &v, 1)
		}, "fmi3GetDirectionalDerivative: 2 values for 1 variables"},
		"sensitivities": {func(f *instance) int32 {
			return l.f.Directional(f.c, &vrs[1], 1, &vr, 1, &v, 1, &v, 0)
		}, "0 values for 1 variables"},
		"order":     {func(f *instance) int32 { n = 6; return f.GetDerivatives(f.c, &vrs[1], 1, &n, &v) }, "order 6 of #1# is not in 1..5"},
		"integer":   {func(f *instance) int32 { return f.GetInteger(f.c, &vr, 1, &n) }, "no integer variable with value reference 0"},
		"boolean":   {func(f *instance) int32 { return l.f.GetBoolean(f.c, &vr, 1, &flag, 1) }, "fmi3GetBoolean: there are no variables"},
		"output":    {func(f *instance) int32 { return f.SetReal(f.c, &vrs[1], 1, &v) }, "#1# is calculated"},
		"late":      {func(f *instance) int32 { return f.Enter(f.c) }, "fmi3EnterInitializationMode: not allowed between steps"},
		"no result": {func(f *instance) int32 { return l.f.DoStep(f.c, 0, 1, true, &flag, &flag, &flag, nil) }, "nowhere"},
		"elsewhere": {func(f *instance) int32 { return f.DoStep(f.c, 1, 1, 1) }, "fmi3DoStep: the step starts at t = 1"},
	} {
		f := l.start(t, nil)
		f.refused(what, c.call(f), failed, c.text)
	}

	// All functions are there; those that the FMU does not offer refuse.
	h, err := openLibrary(filepath.Join(work, "fmi3", "mass_force"+csrc.Extension()))
	if err != nil {
		t.Fatal(err)
	}
	offered := map[string]bool{}
	for f := range reflect.TypeFor[functions3]().Fields() {
		offered[cmp.Or(f.Tag.Get("fmi3"), f.Name)] = true
	}
	absent := 0
	declared := regexp.MustCompile(`(?m)^(?:FMI3_FUNCTION fmi3|FMI3_TYPE\(|FMI3_DERIVATIVE\(fmi3)(\w+)`)
	for _, m := range declared.FindAllStringSubmatch(string(csrc.Header3), -1) {
		if offered[m[1]] || offered["Get"+m[1]] {
			continue
		}
		names := []string{m[1]}
		if strings.HasPrefix(m[0], "FMI3_TYPE") {
			names = []string{"Get" + m[1], "Set" + m[1]}
		}
		for _, name := range names {
			absent++
			var call func(c uintptr, vr *uint32, n uintptr, v, w unsafe.Pointer) int32
			purego.RegisterLibFunc(&call, h, "fmi3"+name)
			f := l.start(t, nil)
			f.refused(name, call(f.c, &vr, 1, nil, nil), failed, "fmi3"+name+": ")
		}
	}
	if absent < 40 {
		t.Errorf("%d functions that are not offered", absent)
	}

	// A step that cannot be made leaves all as it was, the time too.
	contact := load3(t, "contact_mass")
	f := contact.start(t, map[string]float64{"x0": -1e-3, "v0": 1})
	f.step(0, 1e-4)
	before := f.all()
	f.set("F", 1e300)
	flags, reached := []bool{true, true, true}, 0.0
	*messages = nil
	if s := contact.f.DoStep(f.c, 1e-4, 1e3, true, &flags[0], &flags[1], &flags[2], &reached); s != discard {
		t.Errorf("status %d, %q", s, *messages)
	}
	if slices.Contains(flags, true) || reached != 1e-4 {
		t.Errorf("flags %v, reached %g", flags, reached)
	}
	if len(*messages) != 0 {
		t.Errorf("%q though logging is off", *messages)
	}
	name := []byte("logStatusDiscard\x00")
	names := []unsafe.Pointer{unsafe.Pointer(&name[0])}
	f.must(contact.f.SetDebugLogging(f.c, true, 1, unsafe.Pointer(&names[0])))
	f.refused("a force beyond all bounds", f.DoStep(f.c, 1e-4, 1e3, 1), discard, "fmi3DoStep: the step from")
	f.set("F", 0)
	if after := f.all(); !slices.Equal(before, after) {
		t.Errorf("%v after the refusal, %v before", after, before)
	}
	f.step(1e-4, 1e-4)
}

// misbehave fails in FMI 3.0 as in FMI 2.0, in a function of each kind; its enumerations are of 64 bits.
func TestFMI3Misbehaves(t *testing.T) {
	l := load3(t, "misbehave")
	choose := func(t *testing.T, fault, during string, at float64) *instance {
		t.Helper()
		f := l.instantiate(t)
		f.set("at", at)
		f.set("fraction", 0.5)
		for name, item := range map[string]int{"fault": slices.Index(Faults(), fault), "during": slices.Index(Places(), during)} {
			vr, v, got := l.variables[name].Reference, int64(item), int64(-1)
			f.must(l.f.SetInt64(f.c, &vr, 1, &v, 1))
			f.must(l.f.GetInt64(f.c, &vr, 1, &got, 1))
			if got != v {
				t.Fatalf("%s is %d, not %d", name, got, v)
			}
		}
		*messages = nil
		return f
	}
	var state, size uintptr
	vr, v := l.variables["u"].Reference, 0.0
	initialized := func(f *instance) *instance {
		f.enter()
		f.must(f.Exit(f.c))
		return f
	}
	saved := func(f *instance) *instance {
		initialized(f).must(f.GetState(f.c, &state))
		return f
	}
	for _, c := range []struct {
		during, function string
		before           func(*instance) *instance
		call             func(f *instance) int32
	}{
		{"SetupExperiment", "EnterInitializationMode", nil, func(f *instance) int32 { return f.Enter(f.c) }},
		{"EnterInitializationMode", "EnterInitializationMode", nil, func(f *instance) int32 { return f.Enter(f.c) }},
		{"ExitInitializationMode", "ExitInitializationMode", func(f *instance) *instance { f.enter(); return f },
			func(f *instance) int32 { return f.Exit(f.c) }},
		{"GetReal", "GetFloat64", initialized, func(f *instance) int32 { return f.GetReal(f.c, &vr, 1, &v) }},
		{"SetReal", "SetFloat64", initialized, func(f *instance) int32 { return f.SetReal(f.c, &vr, 1, &v) }},
		{"DoStep", "DoStep", initialized, func(f *instance) int32 { return f.DoStep(f.c, 0, 0.1, 1) }},
		{"GetFMUstate", "GetFMUState", initialized, func(f *instance) int32 { return f.GetState(f.c, &state) }},
		{"SetFMUstate", "SetFMUState", saved, func(f *instance) int32 { return f.SetState(f.c, state) }},
		{"SerializeFMUstate", "SerializeFMUState", saved, func(f *instance) int32 {
			f.must(f.StateSize(f.c, state, &size))
			return f.Serialize(f.c, state, &make([]byte, size)[0], size)
		}},
		{"Terminate", "Terminate", initialized, func(f *instance) int32 { return f.Terminate(f.c) }},
	} {
		for status, fault := range map[int32]string{1: "Warning", discard: "Discard", failed: "Error", 4: "Fatal", 17: "Undefined"} {
			state = 0
			f := choose(t, fault, c.during, 0)
			if c.before != nil {
				c.before(f)
			}
			if got := c.call(f); got != status {
				t.Errorf("%s in %s: status %d, %q", fault, c.function, got, *messages)
			}
			text := fmt.Sprintf("fmi3%s: ", c.function)
			if status < 5 && (len(*messages) != 1 || !strings.Contains((*messages)[0], text)) {
				t.Errorf("%s in %s: messages %q", fault, c.function, *messages)
			}
			if state != 0 {
				f.must(f.FreeState(f.c, &state))
			}
		}
	}

	// Discard leaves the time as it was; the end is asked for at its time; a step may silently stop short.
	flags := make([]bool, 3)
	for _, c := range []struct {
		fault     string
		status    int32
		reached   float64
		terminate bool
	}{{"Discard", discard, 0.1, false}, {"DiscardAndEnd", ok, 0.15, true}, {"StopShort", ok, 0.15, false}} {
		at := map[bool]float64{true: 0.15, false: 0.1}[c.terminate]
		f := initialized(choose(t, c.fault, "DoStep", at))
		f.step(0, 0.1)
		reached := 0.0
		status := l.f.DoStep(f.c, 0.1, 0.1, true, &flags[0], &flags[1], &flags[2], &reached)
		if status != c.status || math.Abs(reached-c.reached) > 1e-12 || flags[0] || flags[1] != c.terminate || flags[2] {
			t.Errorf("%s: status %d, flags %v, reached %g, %q", c.fault, status, flags, reached, *messages)
		}
	}

	// Wrong types and values.
	f := choose(t, "None", "DoStep", 0)
	kind, n, large := l.variables["fault"].Reference, int32(0), int64(1)<<40
	if status := l.f.SetInt64(f.c, &kind, 1, &large, 1); status != discard {
		t.Errorf("a value beyond 32 bits: status %d", status)
	}
	f.refused("an enumeration as Int32", l.f.GetInt32(f.c, &kind, 1, &n, 1), failed, "no integer variable")
	f.must(f.Reset(f.c))
	times := l.variables["times"].Reference
	f.refused("an integer as Int64", l.f.GetInt64(f.c, &times, 1, &large, 1), failed, "no enumeration variable")
	f.must(f.Reset(f.c))
	f.setText("marker", "here")
	marker, p := l.variables["marker"].Reference, uintptr(0)
	f.must(l.f.GetString(f.c, &marker, 1, &p, 1))
	if got := cString(p); got != "here" {
		t.Errorf("the string is %q", got)
	}

	// Faults at the beginning and the end of an instance.
	for during, count := range map[string]int{"Instantiate": 0, "FreeInstance": 1} {
		name := "early3_" + during
		starts := map[string]string{"fault": "Error", "during": during}
		path, err := BuildMisbehaving3(filepath.Join(work, "fmi3"), name, "misbehave", starts)
		if err != nil {
			t.Fatal(err)
		}
		e := &functions3{}
		register(t, e, path, platform3(), "fmi3")
		var md description3
		if err := xml.Unmarshal(entry(t, path, "modelDescription.xml"), &md); err != nil {
			t.Fatal(err)
		}
		*messages = nil
		i := e.Instantiate("one", md.Token, 0, false, false, false, false, nil, 0, 0, logger3(), 0)
		if (i != 0) != (count == 1) {
			t.Errorf("%s: instance %v", during, i)
		}
		e.Free(i)
		want := map[string]string{"Instantiate": "InstantiateCoSimulation", "FreeInstance": "FreeInstance"}[during]
		if len(*messages) != 1 || !strings.Contains((*messages)[0], "fmi3"+want+": failed on purpose") {
			t.Errorf("%s: messages %q", during, *messages)
		}
		*messages = nil
	}
	if _, err := BuildMisbehaving3(work, "a", "linear", nil); err == nil {
		t.Error("linear misbehaves")
	}
}
