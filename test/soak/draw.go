//go:build linux

package main

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmus"
)

// drawn is one case.
type drawn struct {
	dir    string // everything is in there
	steps  []step
	labels []string // for the report: group=name
	old    bool     // there are results of an earlier run
	killed bool     // the last step was ended by force
	once   bool     // one before it was
}

// step is one call of the program.
type step struct {
	args    []string
	event   event
	files   int    // largest file in KiB that the run may write; 0: no bound
	closed  string // "stdout" or "stderr" if it is a pipe that nobody reads
	judged  bool   // it is a run; else only what it leaves is looked at
	resume  bool   // only if there is a checkpoint of a run that did not complete
	after   bool   // only if the step before was ended from outside
	mayDie  bool   // an FMU in the same process may end it
	deaf    bool   // an FMU in the same process takes the signals that are to end it
	thinned bool   // rows are not those of all communication points
	cheated bool   // something beside the FMUs makes the run fail: files, pipes
	spoilt  bool   // the table is no regular file
	calls   string // log of calls, "" if none
	faulty  bool   // an FMU misbehaves
	hogs    bool   // an FMU takes memory
}

// event is what happens to the run from outside.
type event struct {
	kind  string // "" none, or one of events
	after time.Duration
}

// The events: signals to the program, and to one of its workers.
const (
	interrupt  = "SIGINT"
	twice      = "SIGINT twice"
	terminate  = "SIGTERM"
	hangUp     = "SIGHUP"
	kill       = "SIGKILL"
	killWorker = "SIGKILL to a worker"
	stopWorker = "SIGSTOP to a worker"
)

// kit builds FMUs and systems at their first use.
type kit struct {
	dir        string
	fmu, write func(dir, name string) (path string, err error) // an FMU, an example system

	built        sync.Map // func() (path string, err error) by name
	descriptions sync.Map // *description.ModelDescription by the name of the FMU
}

func newKit() *kit { return &kit{fmu: fmus.Build, write: fmus.WriteSystem} }

// get returns the path of what is built by a name.
func (k *kit) get(build func(dir, name string) (string, error), name string) (string, error) {
	made, _ := k.built.LoadOrStore(name, sync.OnceValues(func() (string, error) { return build(k.dir, name) }))
	return made.(func() (string, error))()
}

// component is one of a system made at random.
type component struct {
	name, fmu       string
	d               *description.ModelDescription
	inputs, outputs []string          // Reals
	units           map[string]string // of these
	driven          map[string]bool   // inputs that are connected
}

// description reads that of one of our FMUs, once.
func (k *kit) description(fmu string) (*description.ModelDescription, error) {
	if d, ok := k.descriptions.Load(fmu); ok {
		return d.(*description.ModelDescription), nil
	}
	text, err := fmus.Description(fmu)
	if err != nil {
		return nil, err
	}
	d, err := description.Read(bytes.NewReader(text), fmu, nil)
	if err == nil {
		k.descriptions.Store(fmu, d)
	}
	return d, err
}

func (k *kit) describe(name, fmu string) (*component, error) {
	d, err := k.description(fmu)
	if err != nil {
		return nil, err
	}
	c := &component{name: name, fmu: fmu, d: d, units: map[string]string{}, driven: map[string]bool{}}
	for _, v := range d.Variables {
		switch {
		case v.Type != description.Real:
		case v.Causality == description.Input:
			c.inputs = append(c.inputs, v.Name)
		case v.Causality == description.Output:
			c.outputs = append(c.outputs, v.Name)
		}
		c.units[v.Name] = v.Real.Unit
	}
	return c, nil
}

// dice draws one case.
type dice struct {
	*rand.Rand
	kit        *kit
	c          *drawn
	components []*component
	args       []string
	isolation  string
	bad        *component // that misbehaves; nil: none
	timeout    bool
	memory     bool
	hangs      bool // it may hang in the process of the run
	explicit   bool // the algorithm is
	links      []link
	example    string // one of our systems, "" = another one
}

// link is a connection.
type link struct{ from, output, to string }

func pick[T any](r *dice, list []T) T { return list[r.IntN(len(list))] }

// chance is true with a probability.
func (r *dice) chance(p float64) bool { return r.Float64() < p }

// between is spread evenly over the orders of magnitude from low to high, both above 0.
func (r *dice) between(low, high float64) float64 {
	return low * math.Exp(r.Float64()*math.Log(high/low))
}

func (r *dice) label(group, name string) { r.c.labels = append(r.c.labels, group+"="+name) }

func (r *dice) arg(words ...string) { r.args = append(r.args, words...) }

func short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// draw makes a case and its folder.
func (k *kit) draw(seed uint64, number int, dir string) (*drawn, error) {
	r := &dice{Rand: rand.New(rand.NewPCG(seed, uint64(number))), kit: k, c: &drawn{dir: dir}}
	if err := os.MkdirAll(filepath.Join(dir, "tmp"), 0o755); err != nil {
		return nil, err
	}
	system, err := r.system()
	if err != nil {
		return nil, err
	}
	st := step{judged: true}
	r.fault(&st)
	r.times(&st)
	r.algorithm()
	if err := r.flags(&st); err != nil {
		return nil, err
	}
	r.outside(&st)
	if r.c.old = r.chance(0.3); r.c.old {
		for _, name := range []string{"results.csv", "results.json"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(oldResult), 0o644); err != nil {
				return nil, err
			}
		}
	}
	st.args = append([]string{"run", system}, r.args...)
	r.c.steps = append(r.c.steps, st)
	if slices.Contains(st.args, "--checkpoint") {
		again := st.event
		if again.kind != "" {
			again.kind = interrupt // it has no end of its own
		}
		r.c.steps = append(r.c.steps, step{args: []string{"run", "--resume", "run.checkpoint"}, event: again, judged: true, resume: true,
			mayDie: st.mayDie, deaf: st.deaf, thinned: st.thinned, faulty: st.faulty, calls: st.calls, hogs: st.hogs})
	}
	// What a killed run has left is gone after the next one.
	r.c.steps = append(r.c.steps, step{args: []string{"run", system, "--stop-time", "1e-9", "--step-size", "1e-9",
		"--record", "none", "--output", "after.csv", "--quiet",
		"--isolate", "never"}, after: true})
	return r.c, nil
}

// oldResult is the content of the results of an earlier run.
const oldResult = "results of an earlier run\n"

// system returns the path of a system: an example, one FMU alone, or FMUs coupled at random.
func (r *dice) system() (string, error) {
	switch x := r.Float64(); {
	case x < 0.3:
		name := pick(r, fmus.Systems())
		r.label("system", "example")
		r.example = name
		document, err := fmus.SystemDocument(name)
		if err != nil {
			return "", err
		}
		r.components, err = r.kit.exampleComponents(document) // all inputs are connected there
		if err != nil {
			return "", err
		}
		return r.kit.get(r.kit.write, name)
	case x < 0.35:
		name := pick(r, append(fmus.Names(), fmus.Misbehaving()...))
		r.label("system", "single")
		path, err := r.kit.get(r.kit.fmu, name)
		if err != nil {
			return "", err
		}
		c, err := r.kit.describe(name, name)
		if err != nil {
			return "", err
		}
		r.components = []*component{c}
		if strings.HasPrefix(name, "misbehave") {
			r.bad = c
		}
		return path, nil
	}
	return r.coupled()
}

// exampleComponents reads names and FMUs of the components of our own documents.
func (k *kit) exampleComponents(document []byte) ([]*component, error) {
	var all []*component
	for part := range strings.SplitSeq(string(document), "<ssd:Component ") {
		name, rest, ok := attribute(part, "name")
		source, _, found := attribute(rest, "source")
		if !ok || !found || !strings.HasSuffix(source, ".fmu") {
			continue // what stands before the first component
		}
		c, err := k.describe(name, strings.TrimSuffix(filepath.Base(source), ".fmu"))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	for _, c := range all {
		for _, u := range c.inputs {
			c.driven[u] = true
		}
	}
	return all, nil
}

func attribute(text, name string) (value, rest string, ok bool) {
	_, rest, ok = strings.Cut(text, name+`="`)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, `"`)
}

// coupled couples FMUs at random: as a chain, a ring, a star that fans out, or anyhow.
func (r *dice) coupled() (string, error) {
	if err := r.members(); err != nil {
		return "", err
	}
	shape := pick(r, []string{"chain", "ring", "star", "any", "any"})
	r.label("system", shape)
	lines := r.connections(shape)
	folder := filepath.Join(r.c.dir, "system")
	if err := os.MkdirAll(filepath.Join(folder, "resources"), 0o755); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="soak" xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
<ssd:System name="soak"><ssd:Elements>
`)
	for _, c := range r.components {
		fmt.Fprintf(&b, `<ssd:Component name="%s" type="application/x-fmu-sharedlibrary" source="resources/%s.fmu"><ssd:Connectors>`,
			c.name, c.fmu)
		for _, v := range c.d.Variables {
			if v.Type == description.Real && (v.Causality == description.Input || v.Causality == description.Output) {
				fmt.Fprintf(&b, `<ssd:Connector name="%s" kind="%s"><ssc:Real/></ssd:Connector>`, v.Name, v.Causality)
			}
		}
		b.WriteString("</ssd:Connectors></ssd:Component>\n")
		path, err := r.kit.get(r.kit.fmu, c.fmu)
		if err != nil {
			return "", err
		}
		if err := os.Link(path, filepath.Join(folder, "resources", c.fmu+".fmu")); err != nil && !os.IsExist(err) {
			return "", err
		}
	}
	b.WriteString("</ssd:Elements>")
	if lines != "" {
		b.WriteString("<ssd:Connections>\n" + lines + "</ssd:Connections>")
	}
	b.WriteString("</ssd:System><ssd:DefaultExperiment startTime=\"0\" stopTime=\"1\"/></ssd:SystemStructureDescription>\n")
	return folder, os.WriteFile(filepath.Join(folder, "SystemStructure.ssd"), []byte(b.String()), 0o644)
}

// members draws the components: few FMUs, so that several of one FMU are likely, and often one that misbehaves.
func (r *dice) members() error {
	n := 1 + r.IntN(6)
	if r.chance(0.05) {
		n = 20
	}
	names := fmus.Names()
	few := []string{pick(r, names), pick(r, names), pick(r, names)}
	plain := r.chance(0.3)
	for len(r.components) < n {
		c, err := r.kit.describe(fmt.Sprintf("c%d", len(r.components)), pick(r, few))
		if err != nil {
			return err
		}
		if !plain && !c.d.CoSimulation.CanGetAndSetFMUState {
			few = append(few, pick(r, names))
			continue
		}
		r.components = append(r.components, c)
	}
	if !r.chance(0.5) {
		return nil
	}
	bad := fmus.Misbehaving()[0] // the one with every capability
	if r.chance(0.4) {
		bad = pick(r, fmus.Misbehaving())
	}
	c, err := r.kit.describe("bad", bad)
	r.bad = c
	r.components = slices.Insert(r.components, r.IntN(len(r.components)+1), c)
	return err
}

// connections draws those of a shape.
func (r *dice) connections(shape string) string {
	n := len(r.components)
	var lines strings.Builder
	for i, to := range r.components {
		for _, input := range to.inputs {
			if r.chance(0.15) {
				continue // it stays at its start value
			}
			j := r.IntN(n)
			switch {
			case shape == "chain":
				j = max(i-1, 0)
			case shape == "ring":
				j = (i + n - 1) % n
			case shape == "star" && i > 0:
				j = 0
			}
			from := r.components[j]
			if i == j || len(from.outputs) == 0 {
				continue
			}
			output := pick(r, from.outputs)
			if fits := slices.DeleteFunc(slices.Clone(from.outputs),
				func(y string) bool { return from.units[y] != to.units[input] }); len(fits) > 0 && r.chance(0.7) {
				output = pick(r, fits)
			}
			to.driven[input] = true
			r.links = append(r.links, link{from.name, output, to.name})
			as, scale := "", ""
			if from.units[output] != to.units[input] && !r.chance(0.005) {
				as = ` suppressUnitConversion="true"`
			}
			if r.chance(0.5) {
				scale = fmt.Sprintf(`<ssc:LinearTransformation factor="%s" offset="%s"/>`,
					short(pick(r, []float64{-1, 1, 0.1, -0.01, r.NormFloat64()})), short(r.NormFloat64()*0.1))
			}
			fmt.Fprintf(&lines, `<ssd:Connection startElement="%s" startConnector="%s" endElement="%s" endConnector="%s"%s>%s</ssd:Connection>`+"\n",
				from.name, output, to.name, input, as, scale)
		}
	}
	return lines.String()
}

// judged are the faults that are drawn: what harms a process without ending it has a table of its own (TestFaults of
// package test).
func judged() []string {
	return slices.DeleteFunc(fmus.Faults(), func(f string) bool { return slices.Contains(fmus.Harms(), f) })
}

// fault chooses what the FMU that misbehaves does, and how FMUs are isolated.
func (r *dice) fault(st *step) {
	r.isolation = pick(r, []string{"auto", "auto", "auto", "always", "always", "never"})
	if r.bad == nil {
		r.isolate()
		return
	}
	st.faulty = true
	if strings.HasPrefix(r.bad.fmu, "misbehave_l") || r.chance(0.1) {
		r.isolate() // the FMU itself is the fault
		return
	}
	name := r.bad.name
	kills := fmus.Kills()
	fault := pick(r, judged())
	if r.chance(0.4) {
		fault = pick(r, kills).Fault
	}
	place := "DoStep"
	if r.chance(0.5) {
		place = pick(r, fmus.Places())
	}
	k := slices.IndexFunc(kills, func(k fmus.Kill) bool { return k.Fault == fault })
	if k >= 0 {
		ending := kills[k].Ending
		if r.chance(0.85) {
			r.isolation = "always"
		}
		switch {
		case ending == fmus.Exhausts:
			st.hogs = true
			r.set(name, "megabytes", "256")
			if r.isolation == "always" {
				r.arg("--memory-limit", "64")
				r.memory = true
			} else {
				r.set(name, "times", "1") // it keeps what it takes
			}
		case r.isolation == "always" && (ending == fmus.Hangs || r.chance(0.2)):
			r.arg("--step-timeout", short(r.between(0.2, 0.6)))
			r.timeout = true
		}
		if ending != fmus.Exhausts && r.isolation != "always" {
			st.mayDie, r.hangs = true, ending == fmus.Hangs
		}
	}
	st.deaf = fault == "Signals" && r.isolation != "always"
	r.label("fault", fault)
	r.label("place", place)
	r.set(name, "fault", fault)
	r.set(name, "during", place)
	if r.chance(0.8) {
		r.set(name, "at", short(r.Float64()))
	}
	if !st.hogs && r.isolation != "always" && r.chance(0.3) {
		r.set(name, "times", strconv.Itoa(r.IntN(4)))
	}
	if r.chance(0.3) {
		r.set(name, "fraction", short(r.Float64()))
	}
	if fault == "Pending" {
		r.set(name, "polls", strconv.Itoa(r.IntN(4)-1))
		r.set(name, "ending", pick(r, []string{"OK", "Discard", "Error", "Fatal", "Uncancellable"}))
	}
	if fault == "TooLong" {
		r.set(name, "above", short(r.between(1e-3, 1)))
	}
	r.isolate()
}

// isolate writes the choice down, with limits that only processes can hold.
func (r *dice) isolate() {
	r.label("isolation", r.isolation)
	if r.isolation != "auto" || r.chance(0.2) {
		r.arg("--isolate", r.isolation)
	}
	if r.isolation != "always" {
		return
	}
	if !r.timeout && r.chance(0.2) {
		r.arg("--step-timeout", "5")
	}
	if !r.memory && r.chance(0.1) {
		r.arg("--memory-limit", "512")
	}
	if r.chance(0.25) {
		r.arg("--on-crash", "restart:"+strconv.Itoa(1+r.IntN(4)))
		r.label("restart", "asked for")
		if r.bad != nil && strings.HasPrefix(r.bad.fmu, "misbehave") && r.chance(0.7) {
			// All processes together go wrong so often.
			r.set(r.bad.name, "marker", filepath.Join(r.c.dir, "marker"))
			r.set(r.bad.name, "times", strconv.Itoa(1+r.IntN(4)))
		}
	}
}

func (r *dice) set(component, variable, value string) {
	r.arg("--set", component+"."+variable+"="+value)
}

// times chooses step size and stop time, so that a run has up to some thousand macro steps; those that a signal ends
// have no end of their own.
func (r *dice) times(st *step) {
	size := r.between(1e-4, 0.1)
	if r.bad != nil && r.chance(0.7) {
		size = r.between(5e-3, 0.1)
	}
	steps := r.between(3, 3000)
	st.event = event{}
	if r.chance(0.3) {
		steps = 1e8
		st.event.kind = pick(r, []string{interrupt, interrupt, twice, terminate, hangUp, kill, kill, kill})
		st.event.after = time.Duration(r.between(float64(time.Millisecond), float64(time.Second)))
		if r.isolation == "always" && r.chance(0.4) {
			st.event.kind = killWorker
			if r.timeout {
				st.event.kind = stopWorker
			}
		}
	}
	if r.hangs {
		st.event = event{twice, time.Duration(r.between(float64(10*time.Millisecond), float64(time.Second)))}
	}
	r.arg("--step-size", short(size), "--stop-time", short(size*steps))
	if r.chance(0.1) {
		r.arg("--start-time", short(r.Float64()*size))
	}
	if r.chance(0.2) {
		r.arg("--tolerance", short(r.between(1e-8, 1e-2)))
	}
}

// algorithm chooses a preset and some of its parameters.
func (r *dice) algorithm() {
	p := pick(r, algorithms.Presets())
	// Those with these need rollback; what an algorithm cannot do without is there, mostly.
	repeats := []string{"solver.kind", "control.rtol"}
	back := !slices.ContainsFunc(r.components, func(c *component) bool { return !c.d.CoSimulation.CanGetAndSetFMUState })
	for range 10 {
		energy := algorithms.UsesEnergy(p.Name) && r.example == "" && len(r.mutual()) == 0
		if !energy && (back || !slices.ContainsFunc(p.Params,
			func(q algorithms.Param) bool { return slices.Contains(repeats, q.Name) })) || r.chance(0.1) {
			break
		}
		p = pick(r, algorithms.Presets())
	}
	r.label("algorithm", p.Name)
	r.arg("--algorithm", p.Name)
	r.explicit = !slices.ContainsFunc(p.Params, func(q algorithms.Param) bool { return q.Name == "solver.kind" })
	few := r.Float64() * 0.4
	for _, q := range p.Params {
		if r.chance(few) {
			r.arg("--param", q.Name+"="+r.value(q))
		}
	}
}

// nasty are values that most parameters refuse.
var nasty = []string{"", "nan", "inf", "-1", "1e308", "x", "0", "1e-300", "2,3", "…"}

// value draws a value of a parameter from its range.
func (r *dice) value(q algorithms.Param) string {
	if r.chance(0.005) {
		return pick(r, nasty)
	}
	alternatives := strings.FieldsFunc(q.Range, func(c rune) bool { return c == ',' || c == ';' })
	a := strings.TrimSpace(pick(r, alternatives))
	numbers := numbersIn(a)
	switch {
	case strings.Contains(a, ":position"), strings.Contains(a, ":velocity"):
		return r.variable() + ":" + pick(r, []string{"position", "velocity"})
	case strings.Contains(a, "component.variable"):
		if strings.HasSuffix(q.Range, " with a general one") {
			return "1e-3," + r.variable() + ":" + short(r.between(1e-8, 1e-1))
		}
		return r.variable() + ":" + short(r.between(1e-8, 1e-1))
	case strings.Contains(a, "components"):
		var names []string
		for _, i := range r.Perm(len(r.components)) {
			names = append(names, r.components[i].name)
		}
		return strings.Join(names, ",")
	case strings.Contains(a, "seconds") && strings.HasSuffix(q.Name, "min"):
		return short(r.between(1e-12, 1e-6)) // below the others, which ascend
	case strings.Contains(a, "seconds") && strings.HasSuffix(q.Name, "max"):
		return short(r.between(1e-2, 10))
	case strings.Contains(a, "seconds"):
		return short(r.between(1e-6, 1e-2))
	case strings.Contains(a, "joules"), strings.Contains(a, "greater"), strings.HasSuffix(a, "above 0"):
		return short(r.between(1e-6, 1))
	case len(numbers) == 2 && strings.Contains(a, "…") && numbers[1] > 2:
		return strconv.Itoa(int(numbers[0]) + r.IntN(int(numbers[1]-numbers[0])+1))
	case len(numbers) == 2:
		return short(numbers[0] + (numbers[1]-numbers[0])*r.Float64())
	case len(numbers) == 1 && strings.Contains(a, "at least"):
		return short(numbers[0] * r.between(1, 10))
	case len(numbers) == 1 || a == "…":
		return strconv.Itoa(1 + r.IntN(20))
	case strings.Contains(a, " "):
		return q.Default
	}
	return a
}

func numbersIn(text string) (all []float64) {
	for word := range strings.FieldsSeq(text) {
		if x, err := strconv.ParseFloat(word, 64); err == nil {
			all = append(all, x)
		}
	}
	return all
}

// variable names an output of some component.
func (r *dice) variable() string {
	for range 10 {
		if c := pick(r, r.components); len(c.outputs) > 0 {
			return c.name + "." + pick(r, c.outputs)
		}
	}
	return r.components[0].name + ".nothing"
}

// flags adds others of the flags of macrostep run.
func (r *dice) flags(st *step) error {
	maybe := func(p float64, words ...string) bool {
		if !r.chance(p) {
			return false
		}
		r.arg(words...)
		return true
	}
	for _, c := range r.components {
		if c != r.bad && r.chance(0.7) {
			r.parameters(c)
		}
		if r.chance(0.08) && (r.explicit || r.chance(0.02)) {
			rate := strconv.Itoa(1 + r.IntN(5))
			if r.chance(0.4) {
				rate = "1/" + rate
			}
			r.arg("--rate", c.name+"="+rate)
		}
		maybe(0.04, "--quirk", c.name+"=stateless")
		if !st.mayDie || c != r.bad {
			maybe(0.06, "--isolate", c.name)
		}
		maybe(0.03, "--quirk", c.name+"="+pick(r, []string{"inputsBeforeInit", "noTerminate", "ignoreInitialUnknowns",
			"stopTime", "constantH", "noRollback",
			"noInputDerivatives", "noDirectionalDerivatives", "chdirOnLoad"}))
	}
	r.bonds()
	maybe(0.2, "--workers", strconv.Itoa(1+r.IntN(4)))
	maybe(0.05, "--strict")
	maybe(0.1, "--compile")
	maybe(0.3, "--quiet")
	maybe(0.1, pick(r, []string{"-vv", "--verbose"}))
	if maybe(0.2, "--output-interval", short(r.between(1e-3, 1))) {
		st.thinned = true
	}
	switch r.IntN(10) {
	case 0:
		r.arg("--record", "none")
	case 1:
		r.arg("--record", "*")
	case 2:
		r.arg("--record", pick(r, r.components).name+".*")
	case 3, 4:
		r.arg("--record", "bond.*")
	}
	maybe(0.15, "--trace", "trace.csv")
	if st.calls = ""; maybe(0.3, "--debug", "calls=calls.txt") {
		st.calls = "calls.txt"
	}
	if r.chance(0.15) {
		every := short(r.between(1e-3, 1))
		if r.chance(0.2) {
			every = "0"
		}
		r.arg("--checkpoint", every, "run.checkpoint")
	}
	if r.chance(0.1) {
		return r.input()
	}
	return nil
}

// mutual lists pairs of connections in opposite directions whose product may be a power by its units.
func (r *dice) mutual() (pairs [][2]link) {
	units := map[string]string{}
	for _, c := range r.components {
		for name, unit := range c.units {
			units[c.name+"."+name] = unit
		}
	}
	powers := []string{"N*m/s", "m/s*N", "*"}
	for _, a := range r.links {
		for _, b := range r.links {
			if a.from == b.to && a.to == b.from && slices.Contains(powers, units[a.from+"."+a.output]+"*"+units[b.from+"."+b.output]) {
				pairs = append(pairs, [2]link{a, b})
			}
		}
	}
	return pairs
}

// bonds declares power bonds, mostly where there may be some.
func (r *dice) bonds() {
	pairs := r.mutual()
	for i := range r.IntN(3) {
		sign := pick(r, []string{"", "-"})
		switch {
		case len(pairs) > 0:
			p := pick(r, pairs)
			r.arg("--bond", fmt.Sprintf("b%d=%s%s.%s:%s.%s", i, sign, p[0].from, p[0].output, p[1].from, p[1].output))
		case r.chance(0.01):
			r.arg("--bond", fmt.Sprintf("b%d=%s%s:%s", i, sign, r.variable(), r.variable()))
		}
	}
}

// parameters changes some parameters of a component.
func (r *dice) parameters(c *component) {
	var can []description.ScalarVariable
	for _, v := range c.d.Variables {
		if v.Causality == description.Parameter && (v.Type == description.Real || v.Type == description.Integer) {
			can = append(can, v)
		}
	}
	if len(can) == 0 {
		return
	}
	n := r.IntN(4)
	if len(can) > 30 {
		n = 12 // most are 0: the matrices of linear
	}
	chosen := map[string]string{}
	for range n {
		v := pick(r, can)
		switch {
		case r.chance(0.01):
			chosen[v.Name] = pick(r, nasty)
		case v.Type == description.Integer:
			chosen[v.Name] = strconv.Itoa(int(v.StartInteger) + r.IntN(4))
		case v.StartReal == 0:
			chosen[v.Name] = short(r.NormFloat64())
		default:
			chosen[v.Name] = short(v.StartReal * (0.5 + r.Float64()))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		r.set(c.name, name, chosen[name])
	}
}

// input drives inputs that are free by a table.
func (r *dice) input() error {
	var names []string
	for _, c := range r.components {
		for _, u := range c.inputs {
			if !c.driven[u] && r.chance(0.3) {
				names = append(names, c.name+"."+u)
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("time")
	for _, name := range names {
		b.WriteString(`,"` + name + `"`)
	}
	t := 0.0
	for range 2 + r.IntN(5) {
		fmt.Fprintf(&b, "\n%s", short(t))
		for range names {
			b.WriteString("," + short(r.NormFloat64()))
		}
		t += r.between(1e-3, 1)
	}
	r.arg("--input", "input.csv")
	return os.WriteFile(filepath.Join(r.c.dir, "input.csv"), []byte(b.String()+"\n"), 0o644)
}

// outside chooses what is wrong with files and pipes, and what keeps an FMU that hangs from hanging for ever.
func (r *dice) outside(st *step) {
	switch x := r.Float64(); {
	case x < 0.05:
		st.files, st.cheated = int(r.between(20, 2000)), true
		r.label("files", "bounded")
	case x < 0.08:
		r.arg("--output", "/dev/full", "--manifest", "results.json")
		st.cheated, st.spoilt = true, true
		r.label("files", "full device")
	case x < 0.14:
		st.closed = pick(r, []string{"stdout", "stderr"})
		r.label("files", st.closed+" closed")
	}
	if st.event.kind != "" {
		r.label("event", st.event.kind)
	}
}
