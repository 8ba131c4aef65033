package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/fmi/process"
	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/workdir"
)

// Model is a system that is opened once for many runs. Its methods may be called by several
// goroutines at a time.
type Model struct {
	model    *assemble.Model
	launcher *worker.Launcher
	hosts    map[string]*host.Client
	mu       sync.Mutex
	users    int        // systems, and the model itself
	trace    *fmi.Trace // nil = none
	// For the working folder: this process is an engine of a study, its own copy, that for an analysis (nil = none is needed), and
	// the copy in which the process works (nil = none).
	expendable    bool
	home          workdir.Copy
	aside, inside *workdir.Copy
	seen          notices
}

// OpenModel opens a system for many runs: set Runner.Open to a function that calls Instantiate.
func OpenModel(ctx context.Context, path string, o OpenOptions) (*Model, error) {
	m, options, err := opening(ctx, path, &o)
	if err != nil {
		return nil, err
	}
	if m.model, err = assemble.OpenModel(path, options); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if err := m.model.Load(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Instantiate makes a system for one run. Of the options, Set is added to that of OpenModel, and
// Start, Stop, Step and Tolerance apply; the others are those of OpenModel.
func (m *Model) Instantiate(o OpenOptions) (*System, error) {
	a, err := m.model.Instantiate(o.Set...)
	if err != nil {
		return nil, err
	}
	out, err := m.system(a, &o, func() error { return nil })
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return out, nil
}

// Close removes unpacked files, and closes connections to hosts, once the last system is closed, too.
func (m *Model) Close() error { return errors.Join(m.model.Close(), m.leave()) }

// opening returns the options with which assemble opens a system, and a model without it.
func opening(ctx context.Context, path string, o *OpenOptions) (*Model, assemble.Options, error) {
	if err := errors.Join(CheckLimits(), hasFolder(), There(path)); err != nil {
		return nil, assemble.Options{}, err
	}
	crashes := &worker.Record{Dir: fmuslave.CacheDir()}
	m := &Model{launcher: &worker.Launcher{Timeout: o.StepTimeout, Memory: o.MemoryLimit, Lost: crashes.Lost},
		hosts: map[string]*host.Client{}, users: 1, expendable: o.Expendable}
	if o.Copy != nil {
		m.home.Own = o.Copy.Own
	}
	options := o.assemble(ctx, &m.seen)
	options.Settle = settle(ctx, o.Request, func(r *Request) error {
		m.launcher.Timeout, m.launcher.Memory = r.StepTimeout, r.MemoryLimit
		return nil
	})
	options.Launcher = m.launcher
	options.Host = func(address string, apart bool) (fmi.Launcher, error) { return m.onHost(address, apart, &o.Request) }
	if !o.Expendable {
		options.Crashed = crashes.Crashed
	}
	m.trace = options.Instance.Trace
	if o.Sandboxed && o.Copy != nil && process.Shared() != nil {
		_, bare, err := o.Copy.Dir()
		if err != nil {
			return nil, assemble.Options{}, err
		}
		if bare == "" { // the copy for the whole process, which is faster than a process for each FMU
			options.Sandboxed, m.aside = false, o.Copy
		}
	}
	return m, options, nil
}

// onHost returns the launcher for components on a host. Those of all systems of the model share a connection.
func (m *Model) onHost(address string, apart bool, r *Request) (fmi.Launcher, error) {
	c := m.hosts[address]
	if c == nil {
		var err error
		if c, err = r.Client(address); err != nil {
			return nil, err
		}
		m.hosts[address] = c
	}
	return c.Launcher(host.Place{Apart: apart, Limits: m.launcher}), nil
}

// leave closes the connections to hosts after the last user.
func (m *Model) leave() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.users--; m.users > 0 {
		return nil
	}
	var errs []error
	if m.inside != nil {
		errs = append(errs, m.inside.Leave())
	}
	errs = append(errs, m.home.Remove())
	for _, c := range m.hosts {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// system checks an assembly, loads its libraries, and describes it for a run. With an error, the
// caller closes the assembly.
func (m *Model) system(a *assemble.Assembly, o *OpenOptions, load func() error) (*System, error) {
	if err := a.CheckErrors(); err != nil {
		return nil, err
	}
	if err := load(); err != nil {
		return nil, err
	}
	out, err := newSystem(a, o)
	if err != nil {
		return nil, err
	}
	if err := m.moveAside(out); err != nil {
		return nil, err
	}
	out.Notices = m.seen.list
	m.mu.Lock()
	m.users++
	m.mu.Unlock()
	out.Close = func() error {
		err := errors.Join(a.Close(), m.leave())
		if process.Shared() != nil {
			err = nil // the supervisor removes what is left
		}
		if m.trace != nil && m.trace.Err() != nil {
			err = errors.Join(err, fmt.Errorf("the log of FMI calls ends early: %w", m.trace.Err()))
		}
		return err
	}
	var here []*fmi.FMU // in this process
	for _, c := range a.Components {
		if c.Isolated == "" {
			here = append(here, c.FMU)
		}
	}
	out.Tidy = fmi.WatchProcess(here).Restore
	if len(here) > 0 {
		out.StepTimeout, out.MemoryLimit = m.launcher.Timeout, m.launcher.Memory
	}
	return out, nil
}

// Inspection is the content of the documents of a system, without its FMUs.
type Inspection struct {
	Components  []string
	Files       []string // on disk, from which the system is read
	Start, Stop Setting  // s
	Step        Setting  // macro step in s
	Algorithm   string   // of the documents; "" = none
	Warnings    []string
	Alone       string   // component of a single FMU; "" for a system
	Variables   []string // "component.variable", of all components
	// Units has the units of the variables that Inspect was asked for and of those that are set, Starts the values
	// of the latter in the documents; what is unknown is missing.
	Units, Starts map[string]string
}

// Inspect reads the documents of a system and of its FMUs, and checks that the system has some
// variables and takes the values of a run. It runs no code of FMUs.
func Inspect(ctx context.Context, path string, o OpenOptions, variables []string,
	run ...assemble.Assignment) (_ *Inspection, err error) {
	m, options, err := opening(ctx, path, &o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.leave()) }()
	options.Host = Reading(ctx).Host // no connection is made
	model, err := assemble.OpenModel(path, options)
	defer func() { err = errors.Join(err, model.Close()) }()
	if err != nil {
		return nil, err
	}
	if err := model.Varies(run); err != nil {
		return nil, err
	}
	a, err := model.Instantiate(run...)
	if err != nil {
		return nil, err
	}
	own, err := AskedBy(a.Asked)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	i := &Inspection{Algorithm: own.Algorithm, Alone: a.Alone(), Variables: a.VariableNames(), Units: map[string]string{}, Starts: map[string]string{}}
	for _, name := range variables {
		i.describe(a, name)
	}
	for _, set := range slices.Concat(o.Set, run) {
		i.Starts[set.Name] = i.describe(a, set.Name)
	}
	i.Warnings, _ = judgeFindings(path, slices.Concat(model.Findings(), a.Findings.Findings))
	guessed, _ := a.Override(value(o.Start), value(o.Stop), value(o.Step), value(o.Tolerance))
	i.Warnings = append(i.Warnings, guessed...)
	i.Start, i.Stop, i.Step = toSetting(a.Start, o.Start), toSetting(a.Stop, o.Stop), toSetting(a.Step, o.Step)
	for _, c := range a.Components {
		i.Components = append(i.Components, c.Name)
	}
	files := a.Files()
	if err := errors.Join(known(a, variables), a.Close(), model.Close()); err != nil {
		return nil, err
	}
	for _, f := range files { // unpacked ones are gone now
		if info, err := os.Stat(f); err == nil && info.Mode().IsRegular() {
			i.Files = append(i.Files, f)
		}
	}
	return i, nil
}

// describe adds the unit of a variable, and returns its value in the documents.
func (i *Inspection) describe(a *assemble.Assembly, name string) (start string) {
	e, err := a.Explain(name)
	if err != nil { // a connector of a system, or a function
		return ""
	}
	if e.Unit != "" {
		i.Units[name] = e.Unit
	}
	for _, o := range e.Chain {
		if o.Place != "" { // not from the user
			start = o.Value
		}
	}
	return start
}

// known returns an error for the variables that a system does not have.
func known(a *assemble.Assembly, variables []string) error {
	var errs []error
	for _, v := range variables {
		name, err := a.Resolve(v)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		_, isOutput := a.System.FindOut(name) // of a function, for example
		if isOutput || a.Variable(name) != nil {
			continue
		}
		errs = append(errs, fmt.Errorf("the system has no variable %q%s", v, diag.DidYouMean(v, a.VariableNames())))
	}
	return errors.Join(errs...)
}
