package assemble

import (
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
)

// Model is a system whose documents and FMUs are opened, judged and unpacked once. Instantiate
// makes systems of it, with other parameters and start values each time. Its methods may be
// called by several goroutines at a time, and the systems may run side by side.
type Model struct {
	first *Assembly // with the values of Options.Set

	mu    sync.Mutex // of what follows
	users int        // assemblies that are not closed; the first one counts for the model
	// placed holds the FMUs, by their hashes, that can be instantiated once per process and
	// have their instance in a system of the model.
	placed map[string]bool
}

// OpenModel opens an .ssp, a folder with SystemStructure.ssd, an .ssd, or a single .fmu,
// whose component is called by the file name without .fmu. Systems that run side by side call
// the functions in the options side by side, too. The model is not nil also when there is an
// error: it has the findings.
func OpenModel(path string, o Options) (*Model, error) {
	a := &Assembly{Findings: diag.List{Strict: o.Strict}, opening: fmi.OpenOptions{Strict: o.Strict, Compile: o.Compile, Context: o.Context}}
	m := &Model{first: a, users: 1, placed: map[string]bool{}}
	a.model = m
	if err := a.openAt(path, o); err != nil {
		return m, errors.Join(err, m.Close())
	}
	return m, nil
}

// Open opens a model for one system, with the values of Options.Set. Closing that closes the
// model. The assembly is not nil also when there is an error: it has the findings.
func Open(path string, o Options) (*Assembly, error) {
	m, err := OpenModel(path, o)
	return m.first, err
}

// openAt opens the documents and makes the first system.
func (a *Assembly) openAt(path string, o Options) (err error) {
	a.options = o
	if IsFMU(path) {
		err = a.single(path)
	} else {
		err = a.fromSSP(path)
	}
	if err != nil {
		return err
	}
	if err := a.judge(o); err != nil {
		return err
	}
	return a.build()
}

// Findings lists what is to be said of documents and FMUs, and of the values in Options.Set.
func (m *Model) Findings() []diag.Finding { return m.first.Findings.Findings }

// Load brings the libraries of the FMUs into the process (see [Assembly.Load]), and adds to the
// findings. Without it, the first run does. Call it before Instantiate.
func (m *Model) Load() error { return m.first.Load() }

// Instantiate makes a system with values that beat those of Options.Set. It touches no FMU:
// the run makes the instances. Close the assembly after its run.
//
// An FMU that can be instantiated once per process has its instance in the first of the
// systems. In the others it runs in a process of its own, if there is a launcher and
// isolation is automatic; else their runs do not start.
func (m *Model) Instantiate(values ...Assignment) (*Assembly, error) {
	a := new(Assembly)
	*a = *m.first
	a.Findings, a.Held, a.Components, a.closed = diag.List{Strict: a.Findings.Strict}, nil, slices.Clone(a.Components), false
	a.options.Set = slices.Concat(a.options.Set, values)
	if err := m.enter(a); err != nil {
		return nil, err
	}
	var err error
	if slices.ContainsFunc(values, a.ofConnector) { // which goes on through the documents
		a.pkg = a.pkg.Clone()
		a.pkg.Name(a.files)
		err = a.flatten()
	}
	if err == nil {
		err = a.build()
	}
	a.Findings.Findings = slices.DeleteFunc(a.Findings.Findings, func(f diag.Finding) bool {
		return slices.Contains(m.first.Findings.Findings, f) // the model has it
	})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// enter counts a new system, and isolates the components that find no place in the process.
func (m *Model) enter(a *Assembly) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		return errors.New("the model is closed; make systems of it before")
	}
	for i := range a.Components {
		c := &a.Components[i]
		switch {
		case c.Isolated != "" || !c.FMU.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess:
		case !m.placed[c.FMU.Hash]:
			m.placed[c.FMU.Hash] = true
		case a.options.Launcher != nil && a.options.Isolate != IsolateNever:
			c.Isolated = "its FMU can be instantiated once per process, and another system of the model has that instance"
		}
	}
	if err := a.checkRestarts(); err != nil {
		return err
	}
	m.users++
	return nil
}

// Close removes what was unpacked, when the last system is closed, too.
func (m *Model) Close() error { return m.first.Close() }

// Close returns the system up. Call it after the run has been closed. The last one to be closed
// removes what was unpacked.
func (a *Assembly) Close() error {
	m := a.model
	m.mu.Lock()
	defer m.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	if m.users--; m.users > 0 {
		return nil
	}
	var errs []error
	for _, f := range m.first.fmus {
		errs = append(errs, f.Close())
	}
	if m.first.pkg != nil {
		errs = append(errs, m.first.pkg.Close())
	}
	return errors.Join(errs...)
}

// Real is the assignment of a Real, to the bit.
func Real(name string, value float64) Assignment {
	return Assignment{Name: name, Value: strconv.FormatFloat(value, 'g', -1, 64)}
}
