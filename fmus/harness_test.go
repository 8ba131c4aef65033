package fmus

import (
	"archive/zip"
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/test/cc"
)

// The tests load the libraries by purego alone, because calls that a master must not make have to reach the C code.

const (
	ok      int32 = 0
	discard int32 = 2
	failed  int32 = 3
)

// library is one loaded FMU. The fields of functions are tagged with the name in FMI, without fmi2, where it differs.
type library struct {
	path, guid string
	variables  map[string]scalar
	md         description
	f          *functions3 // of FMI 3.0; nil: FMI 2.0

	Instantiate     func(name string, kind int32, guid, resources string, callbacks unsafe.Pointer, visible, logging int32) uintptr
	Free            func(uintptr) `fmi2:"FreeInstance"`
	GetVersion      func() string
	GetTypes        func() string `fmi2:"GetTypesPlatform"`
	SetDebugLogging func(uintptr, int32, uintptr, unsafe.Pointer) int32
	Setup           func(c uintptr, tolDefined int32, tol, start float64, stopDefined int32, stop float64) int32 `fmi2:"SetupExperiment"`
	Enter           func(uintptr) int32                                                                          `fmi2:"EnterInitializationMode"`
	Exit            func(uintptr) int32                                                                          `fmi2:"ExitInitializationMode"`
	Terminate       func(uintptr) int32
	Reset           func(uintptr) int32
	GetString       func(uintptr, *uint32, uintptr, *uintptr) int32
	SetString       func(uintptr, *uint32, uintptr, *uintptr) int32
	GetReal         func(uintptr, *uint32, uintptr, *float64) int32
	SetReal         func(uintptr, *uint32, uintptr, *float64) int32
	GetInteger      func(uintptr, *uint32, uintptr, *int32) int32
	SetInteger      func(uintptr, *uint32, uintptr, *int32) int32
	DoStep          func(c uintptr, t, h float64, noPrior int32) int32
	Cancel          func(uintptr) int32                                                                           `fmi2:"CancelStep"`
	GetState        func(uintptr, *uintptr) int32                                                                 `fmi2:"GetFMUstate"`
	SetState        func(uintptr, uintptr) int32                                                                  `fmi2:"SetFMUstate"`
	FreeState       func(uintptr, *uintptr) int32                                                                 `fmi2:"FreeFMUstate"`
	StateSize       func(uintptr, uintptr, *uintptr) int32                                                        `fmi2:"SerializedFMUstateSize"`
	Serialize       func(uintptr, uintptr, *byte, uintptr) int32                                                  `fmi2:"SerializeFMUstate"`
	Deserialize     func(uintptr, *byte, uintptr, *uintptr) int32                                                 `fmi2:"DeSerializeFMUstate"`
	Directional     func(c uintptr, unknown *uint32, n uintptr, known *uint32, m uintptr, dv, out *float64) int32 `fmi2:"GetDirectionalDerivative"`
	SetDerivatives  func(c uintptr, vr *uint32, n uintptr, order *int32, v *float64) int32                        `fmi2:"SetRealInputDerivatives"`
	GetDerivatives  func(c uintptr, vr *uint32, n uintptr, order *int32, v *float64) int32                        `fmi2:"GetRealOutputDerivatives"`
	RealStatus      func(uintptr, int32, *float64) int32                                                          `fmi2:"GetRealStatus"`
	BooleanStatus   func(uintptr, int32, *int32) int32                                                            `fmi2:"GetBooleanStatus"`
	IntegerStatus   func(uintptr, int32, *int32) int32                                                            `fmi2:"GetIntegerStatus"`
	Status          func(uintptr, int32, *int32) int32                                                            `fmi2:"GetStatus"`
}

// description is the part of modelDescription.xml that tests look at.
type description struct {
	GUID         string `xml:"guid,attr"`
	CoSimulation struct {
		Attrs []xml.Attr `xml:",any,attr"`
	}
	Variables []scalar  `xml:"ModelVariables>ScalarVariable"`
	Outputs   []unknown `xml:"ModelStructure>Outputs>Unknown"`
	Rates     []unknown `xml:"ModelStructure>Derivatives>Unknown"`
	Initial   []unknown `xml:"ModelStructure>InitialUnknowns>Unknown"`
	Units     []struct {
		Name string `xml:"name,attr"`
	} `xml:"UnitDefinitions>Unit"`
}

type scalar struct {
	Name      string `xml:"name,attr"`
	Reference uint32 `xml:"valueReference,attr"`
	Causality string `xml:"causality,attr"`
	Real      *realType
	Integer   *struct {
		Start *int32 `xml:"start,attr"`
	}
	String *struct {
		Start string `xml:"start,attr"`
	}
}

type realType struct {
	Unit       string   `xml:"unit,attr"`
	Start      *float64 `xml:"start,attr"`
	Derivative int      `xml:"derivative,attr"`
}

type unknown struct {
	Index        int     `xml:"index,attr"`
	Dependencies *string `xml:"dependencies,attr"`
	Kinds        *string `xml:"dependenciesKind,attr"`
}

var (
	work   string
	loaded struct {
		sync.Mutex
		m map[string]*library
	}
)

func TestMain(m *testing.M) {
	cc.Cache()
	os.Exit(func() int {
		var err error
		if work, err = os.MkdirTemp("", "macrostep-fmus-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(work)
		if _, err := BuildAll(work); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if *live != 0 {
			fmt.Fprintf(os.Stderr, "%d blocks of memory were allocated and not freed\n", *live)
			code = 1
		}
		return code
	}())
}

// entry reads one file of an archive.
func entry(t testing.TB, path, name string) []byte {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// load returns one of our FMUs as a library.
func load(t testing.TB, name string) *library {
	t.Helper()
	return loadOnce(name, func() *library {
		l := &library{path: filepath.Join(work, name+".fmu"), variables: map[string]scalar{}}
		if err := xml.Unmarshal(entry(t, l.path, "modelDescription.xml"), &l.md); err != nil {
			t.Fatal(err)
		}
		l.guid = l.md.GUID
		for _, v := range l.md.Variables {
			l.variables[v.Name] = v
		}
		register(t, l, l.path, platform(), "fmi2")
		return l
	})
}

// loadOnce returns a library that is already loaded, or loads it.
func loadOnce(key string, load func() *library) *library {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.m[key] == nil {
		if loaded.m == nil {
			loaded.m = map[string]*library{}
		}
		loaded.m[key] = load()
	}
	return loaded.m[key]
}

// register fills in the functions of a struct from the library in an FMU.
func register(t testing.TB, to any, path, platform, prefix string) {
	t.Helper()
	name := strings.TrimSuffix(filepath.Base(path), ".fmu")
	so := filepath.Join(filepath.Dir(path), name+csrc.Extension())
	if err := os.WriteFile(so, entry(t, path, "binaries/"+platform+"/"+name+csrc.Extension()), 0o755); err != nil {
		t.Fatal(err)
	}
	h, err := openLibrary(so)
	if err != nil {
		t.Fatal(err)
	}
	for f, to := range reflect.ValueOf(to).Elem().Fields() {
		if f.Type.Kind() == reflect.Func {
			purego.RegisterLibFunc(to.Addr().Interface(), h, prefix+cmp.Or(f.Tag.Get(prefix), f.Name))
		}
	}
}

// messages are those of the logger, until a test clears them; live is the number of allocated blocks.
var messages, live, callbacks = func() (*[]string, *int, func() [5]uintptr) {
	var got []string
	var blocks int
	set := sync.OnceValue(func() [5]uintptr {
		calloc, free, err := heap()
		if err != nil {
			panic(err)
		}
		return [5]uintptr{
			purego.NewCallback(func(_, _, status, category, message uintptr) uintptr {
				got = append(got, fmt.Sprintf("%d %s %s", int32(status), cString(category), cString(message)))
				return 0
			}),
			purego.NewCallback(func(n, size uintptr) uintptr {
				blocks++
				return calloc(n, size)
			}),
			purego.NewCallback(func(p uintptr) uintptr {
				blocks--
				free(p)
				return 0
			}),
		}
	})
	return &got, &blocks, set
}()

func cString(p uintptr) string {
	var b []byte
	base := *(*unsafe.Pointer)(unsafe.Pointer(&p)) // memory of C, which does not move
	for i := 0; base != nil; i++ {
		c := *(*byte)(unsafe.Add(base, i))
		if c == 0 {
			break
		}
		b = append(b, c)
	}
	return string(b)
}

// instance is one instance, with helpers that fail the test on an error.
type instance struct {
	*library
	t testing.TB
	c uintptr
}

// instantiate returns an instance that is freed at the end of the test.
func instantiate(t testing.TB, name string) *instance {
	t.Helper()
	return load(t, name).instantiate(t)
}

func (l *library) instantiate(t testing.TB) *instance {
	t.Helper()
	cb := callbacks()
	c := l.Instantiate("one", 1, l.guid, "file:///tmp", unsafe.Pointer(&cb), 0, 0)
	if c == 0 {
		t.Fatalf("not instantiated: %v", *messages)
	}
	t.Cleanup(func() { l.Free(c) })
	return &instance{l, t, c}
}

// start instantiates, sets parameters and inputs, and initializes at time 0.
func start(t testing.TB, name string, set map[string]float64) *instance {
	t.Helper()
	return load(t, name).start(t, set)
}

func (l *library) start(t testing.TB, set map[string]float64) *instance {
	t.Helper()
	i := l.instantiate(t)
	for name, v := range set {
		i.set(name, v)
	}
	i.enter()
	i.must(i.Exit(i.c))
	return i
}

// enter sets the experiment up from time 0 and enters the initialization.
func (i *instance) enter() {
	i.t.Helper()
	i.must(i.Setup(i.c, 0, 0, 0, 0, 0))
	i.must(i.Enter(i.c))
}

func (i *instance) must(status int32) {
	i.t.Helper()
	if status != ok {
		i.t.Fatalf("status %d: %v", status, *messages)
	}
}

// refused checks a status and that the last message contains text.
func (i *instance) refused(what string, status, want int32, text string) {
	i.t.Helper()
	if status != want {
		i.t.Errorf("%s: status %d, want %d", what, status, want)
	}
	n := len(*messages)
	if n == 0 || !strings.Contains((*messages)[n-1], text) {
		i.t.Errorf("%s: messages %q, want %q in the last", what, *messages, text)
	}
	*messages = nil
}

func (i *instance) vr(name string) uint32 {
	i.t.Helper()
	v, there := i.variables[name]
	if !there {
		i.t.Fatalf("no variable %s", name)
	}
	return v.Reference
}

func (i *instance) set(name string, v float64) {
	i.t.Helper()
	vr := i.vr(name)
	if i.variables[name].Real == nil {
		n := int32(v)
		i.must(i.SetInteger(i.c, &vr, 1, &n))
		return
	}
	i.must(i.SetReal(i.c, &vr, 1, &v))
}

func (i *instance) setText(name, v string) {
	i.t.Helper()
	b := append([]byte(v), 0)
	vr, p := i.vr(name), uintptr(unsafe.Pointer(&b[0]))
	i.must(i.SetString(i.c, &vr, 1, &p))
	runtime.KeepAlive(b)
}

func (i *instance) get(name string) float64 {
	i.t.Helper()
	vr, v := i.vr(name), 0.0
	i.must(i.GetReal(i.c, &vr, 1, &v))
	return v
}

// near compares a variable with a value.
func (i *instance) near(name string, want, tolerance float64) {
	i.t.Helper()
	near(i.t, name, i.get(name), want, tolerance)
}

func (i *instance) gets(names ...string) []float64 {
	i.t.Helper()
	v := make([]float64, len(names))
	for k, n := range names {
		v[k] = i.get(n)
	}
	return v
}

func (i *instance) setDerivative(name string, order int, v float64) {
	i.t.Helper()
	vr, o := i.vr(name), int32(order)
	i.must(i.SetDerivatives(i.c, &vr, 1, &o, &v))
}

func (i *instance) derivative(name string, order int) float64 {
	i.t.Helper()
	vr, o, v := i.vr(name), int32(order), 0.0
	i.must(i.GetDerivatives(i.c, &vr, 1, &o, &v))
	return v
}

func (i *instance) directional(unknown, known string) float64 {
	i.t.Helper()
	u, k, seed, v := i.vr(unknown), i.vr(known), 1.0, 0.0
	i.must(i.Directional(i.c, &u, 1, &k, 1, &seed, &v))
	return v
}

func (i *instance) step(t, h float64) {
	i.t.Helper()
	i.must(i.DoStep(i.c, t, h, 1))
}

// all returns every real variable, to compare bit by bit.
func (i *instance) all() []float64 {
	i.t.Helper()
	var v []float64
	for _, s := range i.md.Variables {
		if s.Real != nil {
			v = append(v, i.get(s.Name))
		}
	}
	return v
}
