package assemble

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/record"
)

// Isolation sets which components run in separate processes.
type Isolation int

// The modes of isolation.
const (
	// IsolateAuto isolates components if necessary: further components of an FMU that can be
	// instantiated only once per process, also after an instance in an earlier run; FMUs that need
	// different versions of what a process has once (fmi.FMU.Shared); FMUs that drive a tool; FMUs
	// with a recorded crash.
	IsolateAuto Isolation = iota
	IsolateAlways
	IsolateNever
)

// IsolationNames are the names of the modes, in order.
var IsolationNames = []string{"auto", "always", "never"}

// ParseIsolation returns the mode with a name.
func ParseIsolation(name string) (Isolation, error) {
	k := slices.Index(IsolationNames, name)
	if k < 0 {
		return 0, fmt.Errorf("%q is not one of %s%s", name, strings.Join(IsolationNames, ", "), diag.DidYouMean(name, IsolationNames))
	}
	return Isolation(k), nil
}

// String returns the name.
func (i Isolation) String() string { return IsolationNames[i] }

// planIsolation chooses the components that run in separate processes.
func (a *Assembly) planIsolation(o Options) error {
	errs := []error{a.planHosts(o)}
	for _, name := range o.IsolateComponents {
		i := slices.IndexFunc(a.Components, func(c Component) bool { return c.Name == name })
		if i < 0 {
			errs = append(errs, a.noComponent(name, "be isolated", IsolationNames...))
			continue
		}
		a.Components[i].Isolated = cmp.Or(a.Components[i].Isolated, "it is asked for")
	}
	if len(o.IsolateComponents) > 0 && o.Launcher == nil {
		errs = append(errs, errors.New("components cannot be isolated: there is no launcher of processes"))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, c := range a.network.Components {
		if c.Isolate && a.Components[i].Isolated == "" && o.Launcher != nil && o.Isolate != IsolateNever {
			a.Components[i].Isolated = "its source asks for it"
		}
	}
	here := newSharing()
	for i := range a.Components {
		c := &a.Components[i]
		switch {
		case c.Isolated != "":
		case len(c.Preload) > 0 && o.Launcher != nil:
			c.Isolated = "the quirk preload loads a library before it"
		case len(c.Preload) > 0:
			errs = append(errs, fmt.Errorf("component %s: the quirk preload needs a process of its own, and there is no launcher of processes", c.Name))
		case o.Launcher == nil || o.Isolate == IsolateNever:
		case o.Isolate == IsolateAlways:
			c.Isolated = "all components are"
		default:
			c.Isolated = here.mustIsolate(c, o)
			c.Unasked = c.Isolated != ""
		}
		if c.Isolated == "" && o.Launcher != nil && o.Isolate != IsolateNever {
			here.add(c)
		}
	}
	if o.Isolate == IsolateNever && o.Launcher != nil {
		a.warnOfClashes()
	}
	for _, c := range a.Components {
		if len(c.Preload) > 0 && c.Host != "" {
			errs = append(errs, fmt.Errorf("component %s: the quirk preload has no effect on host %s; start macrostep host there with LD_PRELOAD=%s",
				c.Name, c.Host, strings.Join(c.Preload, ":")))
		}
	}
	return errors.Join(errors.Join(errs...), a.launchers(o), a.checkOnce())
}

// planHosts chooses the components that run on other machines.
func (a *Assembly) planHosts(o Options) error {
	var errs []error
	for _, on := range slices.Backward(o.On) { // the first one has the last word
		match, err := record.ParseSelection([]string{on.Pattern})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		some := false
		for i := range a.Components {
			if c := &a.Components[i]; match.Match(c.Name) || c.Name == on.Pattern {
				c.Host, some = on.Host, true
			}
		}
		if !some {
			errs = append(errs, a.noComponent(on.Pattern, "run on host "+on.Host))
		}
	}
	for i := range a.Components {
		if c := &a.Components[i]; c.Host != "" {
			c.Isolated = "it runs on host " + c.Host
		}
	}
	return errors.Join(errs...)
}

// launchers sets the launchers of isolated components. On a host a component shares a process with others unless it is to
// be isolated.
func (a *Assembly) launchers(o Options) error {
	var errs []error
	for i := range a.Components {
		c := &a.Components[i]
		asked := slices.Contains(o.IsolateComponents, c.Name) || i < len(a.network.Components) && a.network.Components[i].Isolate
		switch {
		case c.Host != "" && o.Host == nil:
			errs = append(errs, fmt.Errorf("component %s cannot run on host %s: this program knows no hosts", c.Name, c.Host))
		case c.Host != "":
			var err error
			c.launcher, err = o.Host(c.Host, o.Isolate == IsolateAlways || asked)
			if err != nil {
				errs = append(errs, fmt.Errorf("component %s: %w", c.Name, err))
			}
		case c.Isolated != "":
			c.launcher = o.Launcher
		}
	}
	return errors.Join(errs...)
}

// warnOfClashes reports FMUs that need different versions of something that the process has once.
func (a *Assembly) warnOfClashes() {
	here := newSharing()
	for i := range a.Components {
		c := &a.Components[i]
		if c.Isolated != "" {
			continue
		}
		if name, other := here.clash(c); name != "" {
			a.Findings.Add(ruleSameLibrary, cmp.Or(a.shown[c.FMU], c.FMU.Path), "", 0,
				"the FMUs of %s and %s have different versions of %s; in one process one of the two is used for both", other, c.Name, name)
		}
		here.add(c)
	}
}

// sharing lists the FMUs of a process and what they share by name.
type sharing struct {
	once    map[string]string   // first component of an FMU, by hash
	names   map[string]version  // see fmi.FMU.Shared
	crashed map[*fmi.FMU]string // cached results of Options.Crashed
}

type version struct{ version, component string }

func newSharing() sharing {
	return sharing{once: map[string]string{}, names: map[string]version{}, crashed: map[*fmi.FMU]string{}}
}

func (s *sharing) add(c *Component) {
	if _, known := s.once[c.FMU.Hash]; known {
		return
	}
	s.once[c.FMU.Hash] = c.Name
	for name, v := range c.FMU.Shared() {
		if _, known := s.names[name]; !known {
			s.names[name] = version{v, c.Name}
		}
	}
}

// clash returns a name for which a component needs another version than the other one; "" for none
// and for a further component of an FMU.
func (s *sharing) clash(c *Component) (name, other string) {
	if _, known := s.once[c.FMU.Hash]; known {
		return "", ""
	}
	shared := c.FMU.Shared()
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		if first, known := s.names[name]; known && first.version != shared[name] {
			return name, first.component
		}
	}
	return "", ""
}

// mustIsolate returns why a component cannot run in this process, "" if it can.
func (s *sharing) mustIsolate(c *Component, o Options) string {
	d := c.FMU.Description.CoSimulation
	if d.NeedsExecutionTool {
		return "its FMU drives a tool"
	}
	if by := c.FMU.TakenBy(); by != "" {
		return fmt.Sprintf("its FMU can be instantiated once per process, and this one has had its instance %q", by)
	}
	if name := c.FMU.Clash(); name != "" {
		return fmt.Sprintf("its FMU has another version of %s than this process", name)
	}
	if other, used := s.once[c.FMU.Hash]; used {
		if d.CanBeInstantiatedOnlyOncePerProcess {
			return fmt.Sprintf("its FMU can be instantiated once per process, and component %s uses it", other)
		}
	} else if name, other := s.clash(c); name != "" {
		return fmt.Sprintf("its FMU has another version of %s than the FMU of component %s", name, other)
	}
	if o.Crashed != nil {
		how, known := s.crashed[c.FMU]
		if !known {
			how = o.Crashed(c.FMU)
			s.crashed[c.FMU] = how
		}
		if how != "" {
			return "its FMU has ended a process before: " + how
		}
	}
	return ""
}

// checkRestarts returns an error if isolated components cannot be restarted.
func (a *Assembly) checkRestarts() error {
	if a.options.Restarts <= 0 {
		return nil
	}
	var unable []string
	for _, c := range a.Components {
		d := c.FMU.Description.CoSimulation
		if c.Isolated != "" && (!d.CanGetAndSetFMUState || !d.CanSerializeFMUState || c.Quirks.Has(fmuslave.NoRollback)) {
			unable = append(unable, fmt.Sprintf("%s (%s)", c.Name, filepath.Base(c.FMU.Path)))
		}
	}
	if unable == nil {
		return nil
	}
	return fmt.Errorf("%w: after a crash a component continues from its serialised state, but %s cannot serialise it "+
		"(canGetAndSetFMUstate and canSerializeFMUstate): isolate only components that can "+
		"(--isolate never --isolate COMPONENT), let a crash end the run (--on-crash stop), "+
		"or use another export of the FMU", master.ErrCapability, strings.Join(unable, ", "))
}

// checkOnce reports FMUs that cannot be instantiated more than once in this process but would be.
func (a *Assembly) checkOnce() error {
	users := map[string][]string{} // by content: copies of a file are one FMU
	for _, c := range a.Components {
		if c.Isolated == "" && c.FMU.Description.CoSimulation.CanBeInstantiatedOnlyOncePerProcess {
			users[c.FMU.Hash] = append(users[c.FMU.Hash], c.Name)
		}
	}
	for _, c := range a.Components {
		if names := users[c.FMU.Hash]; len(names) > 1 {
			a.Findings.Add(ruleOnce, cmp.Or(a.shown[c.FMU], c.FMU.Path), "", 0,
				"the FMU can be instantiated only once per process, and the components %s use it", strings.Join(names, ", "))
			delete(users, c.FMU.Hash)
		}
	}
	return a.Findings.Err()
}
