package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// keepApart keeps standard output for what a run writes there, its results most of all:
// all else goes to standard error, also what FMUs in this process print. release is
// called after the run.
func (p *program) keepApart(r *runRequest) (release func(), err error) {
	release = func() {}
	f, ok := p.out.(*os.File)
	if !ok {
		return release, nil
	}
	out, err := f.Stat()
	if err != nil {
		return release, nil // it is closed
	}
	var here []writtenFile
	for _, w := range r.written() {
		if leadsTo(w.path, out) {
			here = append(here, w)
		}
	}
	switch {
	case len(here) == 0:
		return release, nil
	case len(here) > 1:
		return release, fmt.Errorf("%s and %s both go to standard output; name a file for one of them", here[0].flag, here[1].flag)
	case out.Mode().IsRegular() && out.Size() > 0:
		return release, fmt.Errorf("%s %s would replace what standard output already holds; append by a pipe: … | cat >> FILE", here[0].flag, here[0].path)
	}
	p.stdout = p.stderr
	if s, ok := p.stderr.(*screen); ok {
		s.beside = true
	}
	r.here = here[0].path
	if r.aside, release, err = setAside(f); err != nil {
		err = fmt.Errorf("%s %s: %w", here[0].flag, r.here, err)
	}
	return release, err
}

// leadsTo reports whether a path leads to a file that is no null device.
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

// at is where a file of a run is written.
func (r *runRequest) at(path string) string {
	if r.aside != "" && path == r.here {
		return r.aside
	}
	return path
}

// isDevice reports whether a path leads to something that is neither a file nor a folder,
// or names an open file, as /dev/stdout does also if it leads to a file.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false
	}
	if !info.Mode().IsRegular() {
		return true
	}
	for range 40 { // links
		abs, err := filepath.Abs(path)
		if err != nil {
			return false
		}
		dir := filepath.Dir(abs)
		if dir == "/dev" || dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") && filepath.Base(dir) == "fd" {
			return true
		}
		target, err := os.Readlink(abs)
		switch {
		case err != nil:
			return false
		case filepath.IsAbs(target):
			path = target
		default:
			path = filepath.Join(dir, target)
		}
	}
	return false
}
