package app

import (
	"fmt"
	"os"

	"github.com/macrostep/macrostep/master/simulate"
)

// keepApart reserves standard output for a file of the run, usually its results. All other output goes to
// standard error, also that of FMUs in this process. The caller calls release after the run.
func (p *program) keepApart(r *runRequest) (release func(), err error) {
	release = func() {}
	f, out, here := p.toStdout(r)
	switch {
	case len(here) == 0:
		return release, nil
	case len(here) > 1:
		return release, fmt.Errorf("%s and %s both go to standard output; name a file for one of them", here[0].Flag, here[1].Flag)
	case out.Mode().IsRegular() && out.Size() > 0:
		return release, fmt.Errorf("%s %s would replace what standard output already holds; append by a pipe: … | cat >> FILE",
			here[0].Flag, here[0].Path)
	}
	p.printAside()
	r.here = here[0].Path
	if r.aside, release, err = setAside(f); err != nil {
		err = fmt.Errorf("%s %s: %w", here[0].Flag, r.here, err)
	}
	return release, err
}

// toStdout returns standard output and the files of a run that lead there.
func (p *program) toStdout(r *runRequest) (f *os.File, out os.FileInfo, here []simulate.WrittenFile) {
	f, ok := p.out.(*os.File)
	if !ok {
		return nil, nil, nil
	}
	out, err := f.Stat()
	if err != nil {
		return nil, nil, nil // it is closed
	}
	for _, w := range r.Written() {
		if leadsTo(w.Path, out) {
			here = append(here, w)
		}
	}
	return f, out, here
}

// printAside sends all text for people to standard error.
func (p *program) printAside() {
	p.stdout = p.stderr
	p.stderr.beside = true
}

// leadsTo reports whether a path leads to a file, unless that is the null device.
func leadsTo(path string, file os.FileInfo) bool {
	if path == "" {
		return false
	}
	info, err := os.Stat(path)
	if err != nil || !os.SameFile(info, file) {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(null, file)
}

// at returns the path by which a file of a run is written.
func (r *runRequest) at(path string) string {
	if r.aside != "" && path == r.here {
		return r.aside
	}
	return path
}
