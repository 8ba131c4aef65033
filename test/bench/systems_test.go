package bench

import (
	"archive/zip"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/probe"
)

//go:embed src/cell.c
var cellSource []byte

// system describes one system for macrostep and for the C program.
type system struct {
	name    string
	path    string
	args    []string // of macrostep run
	monitor []string // flags that monitor the energy at the bonds
	members []member
	wires   [][4]int // to member, its input, from member, its output
	bonds   []bond
	step    float64 // s, for the benchmarks
	coarse  float64 // s, for tests: large enough to show a wrong extrapolation
	// derivatives is the highest order of input derivatives that all FMUs take.
	derivatives int
	// factor is the highest allowed ratio of the times of macrostep and the C program; extra is added to
	// the time allowed, in ns for every macro step and stage.
	factor, extra float64
}

// member is an FMU of a system.
type member struct {
	file    string // library, GUID and resources
	set     map[description.ValueReference]float64
	in, out []description.ValueReference
	through []bool    // by input: an output depends directly on it
	start   []float64 // by input; nil = all 0
	read    []string  // variables that only some algorithms read at every step
	outputs []string  // names of out in the results

	refs map[string]description.ValueReference
}

// bond is a power bond: member a gives the effort at an output and takes the flow at an input; member b
// gives the flow and takes the effort.
type bond struct {
	name                     string
	a, effort, flowIn        int
	b, flow, effortIn, signs int
}

// plan returns the input of the C program.
func (s *system) plan(c inC, steps int, h float64) string {
	var p strings.Builder
	fmt.Fprintf(&p, "steps %d size %v scheme %s order %d substeps %d\ninstances %d\n", steps, h, c.scheme, c.order, c.substeps, len(s.members))
	list := func(refs []description.ValueReference) {
		fmt.Fprintf(&p, " %d", len(refs))
		for _, r := range refs {
			fmt.Fprintf(&p, " %d", r)
		}
	}
	for _, m := range s.members {
		fmt.Fprintf(&p, "%s %d", m.file, len(m.set))
		for r, v := range m.set {
			fmt.Fprintf(&p, " %d %v", r, v)
		}
		list(m.in)
		for _, t := range m.through {
			fmt.Fprintf(&p, " %d", map[bool]int{true: 1}[t])
		}
		for k := range m.in {
			start := 0.0
			if k < len(m.start) {
				start = m.start[k]
			}
			fmt.Fprintf(&p, " %v", start)
		}
		list(m.out)
		var read []description.ValueReference
		for _, name := range m.read {
			if c.reads {
				read = append(read, m.refs[name])
			}
		}
		list(read)
		p.WriteString("\n")
	}
	fmt.Fprintf(&p, "connections %d\n", len(s.wires))
	for _, w := range s.wires {
		fmt.Fprintln(&p, w[0], w[1], w[2], w[3])
	}
	bonds := s.bonds
	if !c.bonds {
		bonds = nil
	}
	fmt.Fprintf(&p, "bonds %d\n", len(bonds))
	for _, b := range bonds {
		fmt.Fprintln(&p, b.a, b.effort, b.flowIn, b.b, b.flow, b.effortIn, b.signs)
	}
	return p.String()
}

// Value references of cell.c.
const (
	cellForceIn = iota
	cellNextSpeed
	cellForce
	cellSpeed
	cellWork
	cellDrive
)

const cellDescription = `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="cell" guid="cell">
  <CoSimulation modelIdentifier="cell" canHandleVariableCommunicationStepSize="true" canInterpolateInputs="true" canGetAndSetFMUstate="true" canSerializeFMUstate="true"/>
  <ModelVariables>
    <ScalarVariable name="F_in" valueReference="0" causality="input" variability="continuous"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="v_next" valueReference="1" causality="input" variability="continuous"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="F" valueReference="2" causality="output" variability="continuous" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="v" valueReference="3" causality="output" variability="continuous" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="work" valueReference="4" causality="parameter" variability="fixed" initial="exact"><Real start="1"/></ScalarVariable>
    <ScalarVariable name="drive" valueReference="5" causality="parameter" variability="fixed" initial="exact"><Real start="1"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Outputs><Unknown index="3" dependencies=""/><Unknown index="4" dependencies=""/></Outputs></ModelStructure>
</fmiModelDescription>
`

// cellStep is the number of small steps with which a step of a cell takes about 0.2 µs.
const cellStep = 30

// chain makes a chain of n oscillators. Each passes its force to the next and takes the velocity of
// that one: neighbours form loops, with a power bond between them. An oscillator divides each macro step
// into work small steps.
func chain(tb testing.TB, t tools, n, work int) *system {
	tb.Helper()
	dir := tb.TempDir()
	lib := filepath.Join(dir, "cell"+csrc.Extension())
	compile(tb, t.dir, cellSource, "-shared", "-fPIC", "-o", lib)
	binary, err := os.ReadFile(lib)
	if err == nil {
		_, err = probe.Zip(filepath.Join(dir, "cell.fmu"), "modelDescription.xml", cellDescription,
			"binaries/"+platforms[runtime.GOARCH]+"/cell"+csrc.Extension(), string(binary))
	}
	if err != nil {
		tb.Fatal(err)
	}
	s := &system{name: fmt.Sprintf("chain-%d", n), step: 1e-3, coarse: 1e-3, derivatives: 2, factor: 1.3, extra: 100}
	var elements, wires strings.Builder
	for k := range n {
		name := fmt.Sprintf("m%d", k)
		drive := 1 + float64(k%7)/8 // neighbours move differently
		elements.WriteString(element(name, "cell.fmu", []string{"F_in", "v_next"}, []string{"F", "v"}))
		m := member{
			file: lib + " cell -", set: map[description.ValueReference]float64{cellWork: float64(work), cellDrive: drive},
			in: []description.ValueReference{cellForceIn, cellNextSpeed}, through: make([]bool, 2),
		}
		if k < n-1 { // macrostep also reads only connected outputs
			m.out, m.outputs = append(m.out, cellForce), append(m.outputs, name+".F")
		}
		if k > 0 {
			m.out, m.outputs = append(m.out, cellSpeed), append(m.outputs, name+".v")
		}
		s.members = append(s.members, m)
		s.args = append(s.args, "--set", fmt.Sprintf("%s.work=%d", name, work), "--set", fmt.Sprintf("%s.drive=%v", name, drive))
		if k == 0 {
			continue
		}
		before, speed := fmt.Sprintf("m%d", k-1), len(m.out)-1
		wires.WriteString(wire(before, "F", name, "F_in") + wire(name, "v", before, "v_next"))
		s.wires = append(s.wires, [4]int{k, 0, k - 1, 0}, [4]int{k - 1, 1, k, speed})
		b := bond{name: fmt.Sprintf("b%d", k), a: k - 1, effort: 0, flowIn: 1, b: k, flow: speed, effortIn: 0, signs: 1}
		s.bonds = append(s.bonds, b)
		s.monitor = append(s.monitor, "--bond", fmt.Sprintf("%s=%s.F:%s.v", b.name, before, name))
	}
	s.path = filepath.Join(dir, "chain.ssd")
	write(tb, dir, "chain.ssd", document(elements.String(), wires.String()))
	return s
}

// quarterCar is the quarter car of package fmus.
func quarterCar(tb testing.TB, _ tools) *system {
	tb.Helper()
	path, err := fmus.WriteSystem(tb.TempDir(), "quarter-car-a")
	if err != nil {
		tb.Fatal(err)
	}
	chassis := byHand(tb, path, "resources/quarter_chassis_a.fmu", nil, []string{"F_c"}, []string{"v_c"}, "chassis")
	chassis.read = []string{"z_c", "v_c", "v_c", "der(v_c)"} // states and their derivatives
	wheel := byHand(tb, path, "resources/quarter_wheel_a.fmu", nil, []string{"v_c"}, []string{"F_c"}, "wheel")
	wheel.through = []bool{true}
	wheel.read = []string{"z_w", "v_w", "z_c", "v_w", "der(v_w)", "der(z_c)"}
	return &system{
		name: "quarter-car", path: path, monitor: []string{"--record", "*", "--record", "bond.*"}, members: []member{chassis, wheel},
		wires:  [][4]int{{0, 0, 1, 0}, {1, 0, 0, 0}},
		bonds:  []bond{{name: "axle", a: 1, effort: 0, flowIn: 0, b: 0, flow: 0, effortIn: 0, signs: -1}},
		step:   1e-6, // a run of a million steps ends before the car has come to rest
		coarse: 1e-4, derivatives: 2, factor: 1.3, extra: 100,
	}
}

// drive is a speed control loop of two FMUs of Dymola.
func drive(tb testing.TB, _ tools) *system {
	tb.Helper()
	dir := tb.TempDir()
	for _, name := range []string{"Controller.fmu", "Drivetrain.fmu"} {
		data, err := os.ReadFile(filepath.Join(*thirdParty, "fmus", "dymola", name))
		if err != nil {
			tb.Fatal(err)
		}
		write(tb, dir, name, data)
	}
	write(tb, dir, "drive.ssd", document(
		element("controller", "Controller.fmu", []string{"u_m"}, []string{"y"})+element("drivetrain", "Drivetrain.fmu", []string{"tau"}, []string{"w"}),
		wire("controller", "y", "drivetrain", "tau")+wire("drivetrain", "w", "controller", "u_m")))
	path := filepath.Join(dir, "drive.ssd")
	controller := byHand(tb, path, "Controller.fmu", nil, []string{"u_s", "u_m"}, []string{"y"}, "controller")
	controller.through, controller.start = []bool{true, true}, []float64{10, 0}
	return &system{
		name: "drive", path: path, args: []string{"--set", "controller.u_s=10"},
		monitor: []string{"--bond", "shaft=controller.y:drivetrain.w"},
		members: []member{controller, byHand(tb, path, "Drivetrain.fmu", nil, []string{"tau"}, []string{"w"}, "drivetrain")},
		wires:   [][4]int{{0, 1, 1, 0}, {1, 0, 0, 0}},
		bonds:   []bond{{name: "shaft", a: 0, effort: 0, flowIn: 1, b: 1, flow: 0, effortIn: 0, signs: 1}},
		step:    1e-5, // a run ends before the speed has settled: at rest, both programs take shortcuts of their own
		coarse:  1e-3, derivatives: 1, factor: 1.1,
	}
}

// crane is a crane and its controller, two FMUs of 20-sim with nine connections.
func crane(tb testing.TB, _ tools) *system {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join(*thirdParty, "systems/libcosim/demo/demo.ssp"))
	if err != nil {
		tb.Fatal(err)
	}
	arm := []string{"p_Crane.e[1]", "p_Crane.e[2]", "p_Crane.e[3]"}
	back := []string{"p_Crane.f[1]", "p_Crane.f[2]", "p_Crane.f[3]", "Act_Limits[1]", "Act_Limits[2]", "Act_Limits[3]"}
	s := &system{name: "crane", path: path, step: 1e-4, coarse: 1e-4, factor: 1.15, members: []member{
		byHand(tb, path, "CraneController.fmu", nil, back, arm, "CraneController"),
		byHand(tb, path, "KnuckleBoomCrane.fmu", map[string]float64{"Spring_Joint.k": 0.005, "mt0_init": 69}, arm, back, "KnuckleBoomCrane"),
	}}
	for _, m := range s.members {
		for k := range m.through { // nothing else is declared
			m.through[k] = true
		}
	}
	for k := range back {
		s.wires = append(s.wires, [4]int{0, k, 1, k})
	}
	for k := range arm {
		s.wires = append(s.wires, [4]int{1, k, 0, k})
	}
	return s
}

// byHand unpacks an FMU of a package or folder for the C program.
func byHand(tb testing.TB, system, name string, values map[string]float64, in, out []string, component string) member {
	tb.Helper()
	path := filepath.Join(filepath.Dir(system), name)
	if filepath.Ext(system) == ".ssp" {
		z, err := zip.OpenReader(system)
		if err != nil {
			tb.Fatal(err)
		}
		defer z.Close()
		data, err := fs.ReadFile(z, name)
		if err != nil {
			tb.Fatal(err)
		}
		dir := tb.TempDir()
		write(tb, dir, filepath.Base(name), data)
		path = filepath.Join(dir, filepath.Base(name))
	}
	f, _, err := fmi.Open(path, fmi.OpenOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	m := member{refs: map[string]description.ValueReference{}, set: map[description.ValueReference]float64{}, through: make([]bool, len(in))}
	for k := range f.Description.Variables {
		m.refs[f.Description.Variables[k].Name] = f.Description.Variables[k].ValueReference
	}
	m.file = fmt.Sprintf("%s/binaries/%s/%s%s %s file://%s/resources", f.Dir, platforms[runtime.GOARCH],
		f.Description.CoSimulation.ModelIdentifier, csrc.Extension(), f.Description.GUID, f.Dir)
	for v, x := range values {
		m.set[m.refs[v]] = x
	}
	for _, v := range in {
		m.in = append(m.in, m.refs[v])
	}
	for _, v := range out {
		m.out, m.outputs = append(m.out, m.refs[v]), append(m.outputs, component+"."+v)
	}
	return m
}

func element(name, source string, in, out []string) string {
	var s strings.Builder
	fmt.Fprintf(&s, `<ssd:Component name="%s" source="%s"><ssd:Connectors>`, name, source)
	for _, v := range in {
		fmt.Fprintf(&s, `<ssd:Connector name="%s" kind="input"><ssc:Real/></ssd:Connector>`, v)
	}
	for _, v := range out {
		fmt.Fprintf(&s, `<ssd:Connector name="%s" kind="output"><ssc:Real/></ssd:Connector>`, v)
	}
	return s.String() + "</ssd:Connectors></ssd:Component>\n"
}

func wire(from, out, to, in string) string {
	return fmt.Sprintf(`<ssd:Connection startElement="%s" startConnector="%s" endElement="%s" endConnector="%s"/>`+"\n", from, out, to, in)
}

func document(elements, wires string) []byte {
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" name="bench" version="1.0">
<ssd:System name="bench"><ssd:Elements>
` + elements + "</ssd:Elements>\n<ssd:Connections>\n" + wires + `</ssd:Connections>
</ssd:System></ssd:SystemStructureDescription>
`)
}

func write(tb testing.TB, dir, name string, data []byte) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		tb.Fatal(err)
	}
}
