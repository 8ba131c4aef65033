package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/workdir"
)

// hasFolder returns an error if there is no working folder, where FMUs in this process and isolated ones would differ.
func hasFolder() error {
	if _, err := os.Getwd(); err != nil {
		return fmt.Errorf("the working folder was removed: change to another one: %w", err)
	}
	return nil
}

// inFolder returns the FMUs of a system that run in the working folder. harmless: all of them are known to leave it as it is.
func inFolder(s *master.System) (list []*fmuslave.Slave, harmless bool) {
	harmless = true
	for _, sub := range s.Subsystems {
		if fmu, ok := master.As[*fmuslave.Slave](sub); ok && fmu.InFolder() {
			writes, known := fmu.Writes()
			list, harmless = append(list, fmu), harmless && known && !writes
		}
	}
	return list, harmless
}

// own lists the files that the run itself writes.
func (r *run) own() (paths []string) {
	all := append(slices.Clone(r.Own), fmuslave.CacheDir())
	for _, w := range r.Written() {
		all = append(all, w.Path, r.At(w.Path))
	}
	for _, path := range all {
		if path == "" {
			continue
		}
		if abs, err := filepath.Abs(path); err == nil { // absolute, because an FMU may change the working folder
			paths = append(paths, abs)
		}
	}
	return paths
}

// watchFolder watches the working folder for files that FMUs write, unless they are known to write none. Copies of it are
// without files made since, such as locks. The returned function, to be called after the run, stores what was seen.
func (r *run) watchFolder() (end func(m *master.Result, failed error)) {
	nothing := func(*master.Result, error) {}
	fmus, harmless := inFolder(r.sys.System)
	here, err := os.Getwd()
	if harmless || r.sys.Shared || err != nil {
		return nothing
	}
	view, err := workdir.Folder{Path: here, Own: r.own()}.Watch()
	if err != nil { // nothing is known: instances for tests run elsewhere
		return nothing
	}
	r.copy.Before(view)
	return func(result *master.Result, failed error) {
		names, err := view.Changed()
		if err != nil || names == nil && (failed != nil || !result.Outcome().Regular()) {
			return
		}
		for _, f := range fmus {
			f.KeepWrites(names != nil)
		}
		if names != nil {
			const shown = 3
			more := ""
			if n := len(names) - shown; n > 0 {
				names, more = names[:shown], fmt.Sprintf(" and %d more", n)
			}
			result.Notes = append(result.Notes, fmt.Sprintf("files of the working folder changed during the run: %s%s; instances for tests of "+
				"its FMUs run elsewhere", strings.Join(names, ", "), more))
		}
	}
}

// moveAside lets this process, an engine, work in a copy of the working folder: for an analysis, and as one of several engines
// of a study, which run the same FMUs at the same time, unless these are known to leave the folder as it is.
func (m *Model) moveAside(s *System) error {
	if m.inside != nil {
		return nil
	}
	into := m.aside
	if into == nil && m.expendable {
		if _, harmless := inFolder(s.System); !harmless {
			into = &m.home
		}
	}
	if into == nil {
		return nil
	}
	bare, err := into.Enter()
	if err != nil {
		return err
	}
	if s.Shared = bare != ""; !s.Shared {
		m.inside = into
	}
	return nil
}
