package assemble

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/fmuprobe"
	"github.com/macrostep/macrostep/master/workdir"
)

// Model is a system whose documents and FMUs are opened, checked and unpacked once. Instantiate
// creates systems from it, each with its own parameters and start values. The methods may be
// called concurrently, and the systems may run concurrently.
type Model struct {
	first *Assembly // with the values of Options.Set
	copy  workdir.Copy
	cache fmuprobe.Cache

	mu    sync.Mutex // for all below
	users int        // open assemblies; the first one belongs to the model
	// placed contains the hashes of FMUs that can be instantiated only once per process and
	// have their instance in a system of the model.
	placed map[string]bool
}

// OpenModel opens an .ssp, a folder with SystemStructure.ssd, an .ssd, or a single .fmu, whose
// component has the name of the file without .fmu. Concurrent runs call the functions in the
// options concurrently. The model is never nil: with an error, it has the findings, and the FMUs that could be opened until Close.
func OpenModel(path string, o Options) (*Model, error) {
	a := &Assembly{Findings: diag.List{Strict: o.Strict}, opening: fmi.OpenOptions{Strict: o.Strict, Compile: o.Compile}}
	m := &Model{first: a, users: 1, placed: map[string]bool{}, cache: fmuprobe.Cache{Dir: o.Cache}}
	a.model = m
	return m, a.openAt(path, o)
}

// Open opens a model for one system with the values of Options.Set. Closing the assembly closes
// the model. The assembly is never nil, and needs Close after an error, too.
func Open(path string, o Options) (*Assembly, error) {
	m, err := OpenModel(path, o)
	return m.first, err
}

// openAt opens the documents and creates the first system.
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

// Findings returns the findings on documents, FMUs and the values in Options.Set.
func (m *Model) Findings() []diag.Finding { return m.first.Findings.Findings }

// Load loads the libraries of the FMUs (see [Assembly.Load]) and adds to the findings. Call it
// before Instantiate; otherwise the first run loads them.
func (m *Model) Load(ctx context.Context) error { return m.first.Load(ctx) }

// Instantiate creates a system with values that override those of Options.Set. FMUs are
// instantiated by the run. Close the assembly after its run.
//
// An FMU that can be instantiated only once per process has its instance in the first system.
// In other systems it runs in a separate process, if there is a launcher and isolation is not
// IsolateNever; otherwise their runs fail to start.
func (m *Model) Instantiate(values ...Assignment) (*Assembly, error) {
	a := new(Assembly)
	*a = *m.first
	a.Findings, a.Held = diag.List{Strict: a.Findings.Strict}, nil
	a.Components, a.closed = slices.Clone(a.Components), false
	a.options.Set = slices.Concat(a.options.Set, values)
	if err := m.enter(a); err != nil {
		return nil, err
	}
	var err error
	if slices.ContainsFunc(values, a.ofConnector) { // the documents pass it on
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

// enter counts a new system and isolates components whose FMU already has its only instance.
func (m *Model) enter(a *Assembly) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users == 0 {
		return errors.New("the model is closed; instantiate systems before closing it")
	}
	for i := range a.Components {
		c := &a.Components[i]
		switch {
		case c.Isolated != "" || !c.FMU.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess:
		case !m.placed[c.FMU.Hash]:
			m.placed[c.FMU.Hash] = true
		case a.options.Launcher != nil && a.options.Isolate != IsolateNever:
			c.Isolated = "its FMU can be instantiated once per process, and another system of the model has that instance"
			c.Unasked, c.launcher = true, a.options.Launcher
		}
	}
	if err := a.checkRestarts(); err != nil {
		return err
	}
	m.users++
	return nil
}

// Close closes the model. The unpacked files are removed when all its systems are closed, too.
func (m *Model) Close() error { return m.first.Close() }

// Close closes the system; call it after its run has been closed. The last call for a model
// removes the unpacked files.
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
	errs := []error{m.copy.Remove()}
	for _, f := range m.first.fmus {
		errs = append(errs, f.Close())
	}
	if m.first.pkg != nil {
		errs = append(errs, m.first.pkg.Close())
	}
	return errors.Join(errs...)
}

// Real returns the assignment of a Real, exact to the bit.
func Real(name string, value float64) Assignment {
	return Assignment{Name: name, Value: strconv.FormatFloat(value, 'g', -1, 64)}
}
