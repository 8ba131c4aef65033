package study

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
)

// Plan is what a study consists of. Read reads it from a file; a program may fill it in itself.
type Plan struct {
	Path   string // of the file; "" = there is none
	System string // .ssp, folder, .ssd or .fmu
	// Run has the settings of every run by the names of the flags of macrostep run. A flag that
	// repeats has several entries.
	Run        []Setting
	Factors    []Factor
	Quantities []Quantity
	Design     Design
	Keep       Keep
	// TimeLimit bounds a run; 0 = there is no limit.
	TimeLimit time.Duration
	// MaxInstances bounds the runs that have an instance of an FMU at the same time, by the name of a
	// component.
	MaxInstances map[string]int
	Checks       int           // runs whose coupling error is measured: the best, the worst, and others at random
	Optimise     *Optimisation // nil = none
	Convergence  *Convergence  // nil = none
	// Units and Starts are those of Inspection, in the plan of a Folder.
	Units, Starts map[string]string

	files []string                 // that the plan names, beside its system
	moved func(path string) string // nil = files are where the plan says
}

// Setting is a setting of macrostep run: "step-size" = "1e-3", "param" = "order=1".
type Setting struct{ Name, Value string }

// Keep chooses the runs whose tables of results are kept.
type Keep string

// The choices of Keep.
const (
	KeepNone   Keep = "none"
	KeepFailed Keep = "failed" // all but those with the status OK
	KeepAll    Keep = "all"
)

// Optimisation varies the factors, within their bounds, until a quantity is at its least.
type Optimisation struct {
	Goal string // name of a quantity; "" with Fit
	// Maximise looks for the greatest value.
	Maximise bool
	// Fit has the quantities whose deviations add up to the goal: each squared, over the square
	// of its scale.
	Fit    []Fit
	Method string // "nelder-mead", "cma-es" or "l-bfgs"
	// Evaluations bounds the number of runs.
	Evaluations int
	Seed        uint64
}

// fits reports whether a quantity is a deviation that a fit reduces.
func (p *Plan) fits(quantity string) bool {
	return p.Optimise != nil && slices.ContainsFunc(p.Optimise.Fit, func(f Fit) bool { return f.Quantity == quantity })
}

// Fit is a deviation that a calibration reduces.
type Fit struct {
	Quantity string
	Scale    float64 // range of the reference
}

// Convergence repeats a run with a smaller and smaller step, or tolerance, until a quantity settles.
type Convergence struct {
	Setting string  // "step-size" or a parameter "param.NAME" of the algorithm
	From    float64 // first value
	Divide  float64 // by which the value is divided from run to run
	Most    int     // runs
	// Quantities that must settle: their change is at most Tolerance times their value.
	Quantities []string
	Tolerance  float64
}

// Read reads a study from a YAML file. Paths in it are relative to its folder. The error has a line for
// each mistake: file, line and remedy.
func Read(path string) (*Plan, error) {
	file, err := diag.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, longestPlan+1))
	if err != nil {
		return nil, err
	}
	if len(data) > longestPlan {
		return nil, fmt.Errorf("%s: the file is larger than %d bytes; it is no description of a study", path, longestPlan)
	}
	return Parse(path, data, nil)
}

const longestPlan = 1 << 20

// document is the file as YAML has it.
type document struct {
	System       text      `yaml:"system"`
	Scenario     text      `yaml:"scenario"`
	Run          yaml.Node `yaml:"run"`
	Vary         yaml.Node `yaml:"vary"`
	Collect      yaml.Node `yaml:"collect"`
	Design       text      `yaml:"design"`
	Samples      count     `yaml:"samples"`
	Seed         count     `yaml:"seed"`
	Levels       count     `yaml:"levels"`
	Table        text      `yaml:"table"`
	Keep         text      `yaml:"keep"`
	TimeLimit    text      `yaml:"time-limit"`
	MaxInstances yaml.Node `yaml:"max-instances"`
	Checks       count     `yaml:"check"`
	Optimise     *optimise `yaml:"optimise"`
	Convergence  *converge `yaml:"convergence"`
}

type optimise struct {
	Minimise    text  `yaml:"minimise"`
	Maximise    text  `yaml:"maximise"`
	Fit         text  `yaml:"fit"`
	Method      text  `yaml:"method"`
	Evaluations count `yaml:"evaluations"`
}

type converge struct {
	Setting   text   `yaml:"setting"`
	From      number `yaml:"from"`
	Divide    number `yaml:"divide"`
	Most      count  `yaml:"most"`
	Of        texts  `yaml:"of"`
	Tolerance number `yaml:"tolerance"`
}

// text is a scalar with its line.
type text struct {
	value string
	line  int
}

// texts is a scalar or a list of them.
type texts []text

// number and count are numbers with their lines; given is false if they are missing.
type (
	number struct {
		value float64
		line  int
		given bool
	}
	count struct {
		value int
		line  int
		given bool
	}
)

func (t *text) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || strings.TrimSpace(n.Value) == "" {
		return fmt.Errorf("line %d: a text is missing here", n.Line)
	}
	t.value, t.line = n.Value, n.Line
	return nil
}

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode {
		n = &yaml.Node{Content: []*yaml.Node{n}}
	}
	for _, e := range n.Content {
		var one text
		if err := one.UnmarshalYAML(e); err != nil {
			return err
		}
		*t = append(*t, one)
	}
	return nil
}

func (v *number) UnmarshalYAML(n *yaml.Node) error {
	x, err := strconv.ParseFloat(n.Value, 64)
	if n.Kind != yaml.ScalarNode || err != nil || x-x != 0 {
		return fmt.Errorf("line %d: %q is not a number%s", n.Line, n.Value, diag.DecimalComma(n.Value))
	}
	v.value, v.line, v.given = x, n.Line, true
	return nil
}

func (v *count) UnmarshalYAML(n *yaml.Node) error {
	x, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || err != nil || x < 0 {
		return fmt.Errorf("line %d: %q is not a whole number from 0 up", n.Line, n.Value)
	}
	v.value, v.line, v.given = x, n.Line, true
	return nil
}

// Parse reads a study from the content of a file with this path. moved returns where a file with an absolute
// path is now; nil = there.
func Parse(path string, data []byte, moved func(path string) string) (*Plan, error) {
	p := &planReader{Plan: Plan{Path: path, moved: moved}, dir: filepath.Dir(path)}
	if what := diag.Pointer(data); what != "" {
		return nil, fmt.Errorf("%s: %s; %s", path, what, diag.FetchPointer)
	}
	var doc document
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&doc); err != nil {
		var wrong *yaml.TypeError
		if errors.As(err, &wrong) {
			for _, e := range wrong.Errors {
				p.errs = append(p.errs, fmt.Errorf("%s: %s", path, readable(e)))
			}
			return nil, errors.Join(p.errs...)
		}
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: the file is empty", path)
		}
		return nil, fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	p.read(&doc)
	if err := errors.Join(p.errs...); err != nil {
		return nil, err
	}
	return &p.Plan, nil
}

// readable rewords the decoder's message about an unknown key.
func readable(message string) string {
	line, rest, _ := strings.Cut(message, ": field ")
	name, _, found := strings.Cut(rest, " not found")
	if !found {
		return message
	}
	return fmt.Sprintf("%s: there is no key %q%s", line, name, diag.DidYouMeanOr(name, planKeys, "; the keys are ", planWords))
}

var planKeys = []string{"system", "scenario", "run", "vary", "collect", "design", "samples", "seed", "levels", "table", "keep",
	"time-limit", "max-instances", "check", "optimise", "convergence", "minimise", "maximise", "fit", "method", "evaluations", "setting",
	"from", "divide", "most", "of", "tolerance"}

// planReader makes a plan of a document.
type planReader struct {
	Plan
	dir  string
	errs []error
}

func (p *planReader) fail(line int, err error) {
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("%s:%d: %w", p.Path, line, err))
	}
}

// resolve returns the path of a file that the document names.
func (p *planReader) resolve(name string) string {
	path := name
	switch {
	case name == "":
		return ""
	case !filepath.IsAbs(name):
		path = filepath.Join(p.dir, filepath.FromSlash(name))
	case p.moved != nil:
		path = p.moved(name)
	}
	return path
}

// table returns the path of a table that the document names, and keeps that it is read.
func (p *planReader) table(name string) string {
	path := p.resolve(name)
	p.files = append(p.files, path)
	return path
}

func (p *planReader) read(doc *document) {
	if doc.System.value == "" {
		p.fail(1, errors.New("system is missing: an .ssp, a folder, an .ssd or an .fmu"))
	}
	p.System = p.resolve(doc.System.value)
	p.settings(&doc.Run)
	if doc.Scenario.value != "" {
		p.Run = append(p.Run, Setting{"scenario", p.resolve(doc.Scenario.value)})
	}
	p.pairs(&doc.Vary, func(key, value *yaml.Node) error {
		f, err := p.factor(key.Value, value)
		p.Factors = append(p.Factors, f)
		return err
	})
	p.quantities(&doc.Collect)
	p.Design = Design{Kind: cmp.Or(doc.Design.value, defaultDesign(doc)), Samples: doc.Samples.value, Seed: uint64(doc.Seed.value), Levels: doc.Levels.value}
	if doc.Table.value != "" {
		t, err := readTable(p.table(doc.Table.value))
		p.fail(doc.Table.line, err)
		p.Design.Table = t
	}
	p.Keep = Keep(cmp.Or(doc.Keep.value, string(KeepNone)))
	if doc.TimeLimit.value != "" {
		var err error
		if p.TimeLimit, err = time.ParseDuration(doc.TimeLimit.value); err != nil || p.TimeLimit <= 0 {
			p.fail(doc.TimeLimit.line, fmt.Errorf("time-limit: %q is no time; write for example 30s or 5m", doc.TimeLimit.value))
		}
	}
	p.pairs(&doc.MaxInstances, func(key, value *yaml.Node) error {
		n, err := strconv.Atoi(value.Value)
		if err != nil || n < 1 {
			return fmt.Errorf("max-instances: %s: %q is not a whole number from 1 up", key.Value, value.Value)
		}
		if p.MaxInstances == nil {
			p.MaxInstances = map[string]int{}
		}
		p.MaxInstances[key.Value] = n
		return nil
	})
	p.Checks = doc.Checks.value
	if o := doc.Optimise; o != nil {
		p.optimise(o, uint64(doc.Seed.value))
	}
	if c := doc.Convergence; c != nil {
		p.convergence(c)
	}
	if len(p.errs) == 0 {
		if err := p.Check(); err != nil {
			p.errs = append(p.errs, fmt.Errorf("%s: %w", p.Path, err))
		}
	}
}

// defaultDesign is that of a file which names none.
func defaultDesign(doc *document) string {
	switch {
	case doc.Table.value != "":
		return DesignTable
	case doc.Samples.given:
		return DesignLatinHypercube
	}
	return DesignGrid
}

// pairs visits the entries of a mapping; a missing one has none.
func (p *planReader) pairs(n *yaml.Node, visit func(key, value *yaml.Node) error) {
	if n.Kind == 0 {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n.Line, errors.New("names with values are expected here, as in NAME: VALUE"))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			p.fail(key.Line, fmt.Errorf("%s is given twice", key.Value))
			continue
		}
		seen[key.Value] = true
		p.fail(key.Line, visit(key, n.Content[i+1]))
	}
}

// factor reads a factor from a text or a list; the values of a list may have commas.
func (p *planReader) factor(name string, n *yaml.Node) (Factor, error) {
	if n.Kind == yaml.ScalarNode {
		return ParseFactor(name, n.Value, p.table)
	}
	var levels []string
	for _, e := range n.Content {
		if n.Kind != yaml.SequenceNode || e.Kind != yaml.ScalarNode {
			return Factor{Name: name}, fmt.Errorf("%s: a list has single values; give %s", name, factorForms)
		}
		levels = append(levels, e.Value)
	}
	return List(name, levels...)
}

func (p *planReader) settings(n *yaml.Node) {
	add := func(name, value string) {
		if e := simulate.Find(name); e != nil && e.Path {
			value = p.resolve(value)
		}
		p.Run = append(p.Run, Setting{name, value})
	}
	p.pairs(n, func(key, value *yaml.Node) error {
		switch value.Kind {
		case yaml.SequenceNode:
			for _, e := range value.Content {
				add(key.Value, e.Value)
			}
		case yaml.MappingNode: // param: {order: 1}
			for i := 0; i+1 < len(value.Content); i += 2 {
				add(key.Value, value.Content[i].Value+"="+value.Content[i+1].Value)
			}
		default:
			add(key.Value, value.Value)
		}
		return nil
	})
}

func (p *planReader) quantities(n *yaml.Node) {
	add := func(name string, value *yaml.Node) error {
		q, err := ParseQuantity(name, value.Value, p.table)
		p.Quantities = append(p.Quantities, q)
		return err
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for _, e := range n.Content {
			p.fail(e.Line, add("", e))
		}
	case yaml.ScalarNode:
		p.fail(n.Line, add("", n))
	default:
		p.pairs(n, func(key, value *yaml.Node) error { return add(key.Value, value) })
	}
}

func (p *planReader) optimise(o *optimise, seed uint64) {
	out := &Optimisation{Method: cmp.Or(o.Method.value, MethodNelderMead), Evaluations: o.Evaluations.value, Seed: seed}
	given := 0
	for _, goal := range []text{o.Minimise, o.Maximise, o.Fit} {
		if goal.value != "" {
			given++
		}
	}
	if given != 1 {
		p.fail(max(o.Minimise.line, o.Maximise.line, o.Fit.line, 1), errors.New("optimise: give one of minimise, maximise and fit"))
	}
	if o.Evaluations.given && o.Evaluations.value == 0 {
		p.fail(o.Evaluations.line, errors.New("evaluations: give 1 or more"))
	}
	out.Goal, out.Maximise = cmp.Or(o.Minimise.value, o.Maximise.value), o.Maximise.value != ""
	if o.Fit.value != "" {
		p.fail(o.Fit.line, p.AddFit(out, p.table(o.Fit.value)))
	}
	p.Optimise = out
}

func (p *planReader) convergence(c *converge) {
	out := &Convergence{Setting: cmp.Or(c.Setting.value, settingStep), From: c.From.value, Divide: c.Divide.value, Most: c.Most.value, Tolerance: c.Tolerance.value}
	for _, q := range c.Of {
		out.Quantities = append(out.Quantities, q.value)
	}
	p.Convergence = out
}

// Check completes what a plan leaves open, and returns what is wrong with it.
func (p *Plan) Check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if p.System == "" {
		fail("there is no system")
	}
	if keeps := []string{string(KeepNone), string(KeepFailed), string(KeepAll)}; !slices.Contains(keeps, string(p.Keep)) {
		fail("keep: there is no choice %q%s", p.Keep, diag.DidYouMeanOr(string(p.Keep), keeps, "; give one of "))
	}
	if len(p.Quantities) == 0 {
		fail("collect: nothing is collected; give %s", quantityForms)
	}
	samples := !slices.Contains([]string{DesignGrid, DesignOneAtATime, DesignTable}, p.Design.Kind)
	if p.Design.Samples > 0 && !samples && p.Optimise == nil && p.Convergence == nil {
		fail("samples: the design %s has none; leave it out, or choose a design that samples, such as %s", p.Design.Kind, DesignLatinHypercube)
	}
	if p.Design.Levels > 0 && p.Design.Kind != DesignMorris {
		fail("levels: only the design %s has levels", DesignMorris)
	}
	names := map[string]bool{}
	for i := range p.Quantities {
		name := p.Quantities[i].Name
		if names[name] || slices.Contains(fixedColumns, name) {
			fail("collect: the name %s is used twice, or is that of a column which every table has", name)
		}
		names[name] = true
	}
	for _, s := range p.Run {
		switch e := simulate.Find(s.Name); {
		case e == nil:
			fail("run: there is no setting %q%s", s.Name, diag.DidYouMean(s.Name, settingNames(func(e *simulate.Entry) bool { return e.Scope != simulate.OfCall })))
		case e.Scope == simulate.OfCall:
			fail("run: --%s does not apply to studies; keep, collect and check choose what is kept and measured", s.Name)
		}
	}
	if p.Optimise != nil && p.Convergence != nil {
		fail("a study either optimises or converges; make two of them")
	}
	if p.Checks > 0 && p.Convergence != nil {
		fail("check: convergence compares runs by itself; macrostep run --check measures the error of one run")
	}
	errs = append(errs, p.checkFactors())
	if p.Optimise != nil {
		errs = append(errs, p.checkOptimise())
	}
	if p.Convergence != nil {
		errs = append(errs, p.checkConvergence())
	}
	return errors.Join(errs...)
}

// settingNames returns the names of some settings.
func settingNames(of func(*simulate.Entry) bool) (list []string) {
	for _, e := range simulate.Settings {
		if of(e) {
			list = append(list, e.Name)
		}
	}
	return list
}

// VariedSettings names the settings that may vary from run to run; the others belong to the system, which
// is opened once.
func VariedSettings() []string {
	return settingNames(func(e *simulate.Entry) bool { return e.Scope == simulate.Varies })
}

func (p *Plan) checkFactors() error {
	var errs []error
	seen, varied := map[string]bool{}, VariedSettings()
	for _, name := range p.FactorNames() {
		if seen[name] {
			errs = append(errs, fmt.Errorf("vary: %s is given twice", name))
		}
		seen[name] = true
		if slices.Contains(varied, name) && filepath.Ext(p.System) != ".fmu" {
			errs = append(errs, fmt.Errorf("vary: %s is a setting of the run; write %s%s", name, SettingPrefix, name))
		}
		if setting, ok := strings.CutPrefix(name, SettingPrefix); ok {
			setting, _, _ = strings.Cut(setting, ".")
			if !slices.Contains(varied, setting) {
				errs = append(errs, fmt.Errorf("vary: the setting %q cannot vary%s", setting,
					cmp.Or(diag.DidYouMean(setting, varied), "; run.… takes "+strings.Join(varied, ", ")+", others belong into run")))
			}
		}
	}
	if p.Optimise == nil && p.Convergence == nil {
		_, err := p.Variants()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// FactorNames returns the names of the values of a variant.
func (p *Plan) FactorNames() []string {
	var names []string
	if t := p.Design.Table; t != nil {
		names = append(names, t.Names...)
	}
	for i := range p.Factors {
		names = append(names, p.Factors[i].Name)
	}
	if c := p.Convergence; c != nil {
		if names = append(names, SettingPrefix+c.Setting); c.Setting == settingStep {
			names = append(names, SettingPrefix+"algorithm")
		}
	}
	return names
}

// quantity returns the index of a quantity.
func (p *Plan) quantity(name string) (int, error) {
	var names []string
	for i := range p.Quantities {
		if p.Quantities[i].Name == name {
			return i, nil
		}
		names = append(names, p.Quantities[i].Name)
	}
	return 0, fmt.Errorf("%q is not collected%s", name, cmp.Or(diag.DidYouMean(name, names), "; add it to collect"))
}

// finite reports whether a range has two ends.
func (f *Factor) finite() bool { return !math.IsInf(f.Low, 0) && !math.IsInf(f.High, 0) }
