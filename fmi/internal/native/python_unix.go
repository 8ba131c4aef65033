//go:build linux || darwin || freebsd || netbsd

package native

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// pythonSymbol finds functions and variables of Python that a library lacks.
var pythonSymbol = regexp.MustCompile(`(undefined symbol|symbol not found)[^\n]*\b_?_?Py[A-Z_]`)

// pythonRemedy returns the remedy for a library that lacks symbols of Python, as PythonFMU makes them: it is not linked with the
// library of Python, which the process must have loaded before.
func pythonRemedy() string {
	name, file, found := "LD_PRELOAD", pythonLibrary(), "such as the one found here"
	if runtime.GOOS == "darwin" {
		name = "DYLD_INSERT_LIBRARIES"
	}
	if file == "" {
		file, found = "/path/to/libpython3.so", "which was not found here (Debian, Ubuntu: apt install libpython3-dev)"
	}
	return "; the FMU needs the library of Python without naming it, like FMUs of PythonFMU. Load the library of the Python for which the FMU was made, " + found +
		": --quirk COMPONENT=preload:" + file + ", or for the whole run " + name + "=" + file + " macrostep …"
}

// pythonFolders are the folders of libraries of Python, beside those of the interpreters.
var pythonFolders = []string{
	"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib", "/usr/local/lib64", "/opt/*/lib", "/opt/homebrew/lib", "/opt/homebrew/opt/python*/lib",
}

// pythonLibrary returns a library of Python 3, "" if there is none: that of python3 on the path, else the newest in the usual folders.
func pythonLibrary() string {
	suffix := ".so"
	if runtime.GOOS == "darwin" {
		suffix = ".dylib"
	}
	in := func(folders ...string) string {
		var all []string
		for _, dir := range folders {
			for _, ending := range []string{suffix, suffix + ".1.0"} {
				list, _ := filepath.Glob(filepath.Join(dir, "libpython3.*"+ending)) // the pattern is well-formed
				all = append(all, list...)
			}
		}
		slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(pythonMinor(b), pythonMinor(a)) })
		if len(all) == 0 {
			return ""
		}
		return all[0]
	}
	if program, err := exec.LookPath("python3"); err == nil {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			if file := in(filepath.Join(filepath.Dir(filepath.Dir(real)), "lib")); file != "" {
				return file
			}
		}
	}
	folders := pythonFolders
	for _, variable := range []string{"CONDA_PREFIX", "PYTHONHOME"} {
		if dir := os.Getenv(variable); dir != "" {
			folders = append([]string{filepath.Join(dir, "lib")}, folders...)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(slices.Clip(folders), filepath.Join(home, ".pyenv", "versions", "*", "lib"))
	}
	return in(folders...)
}

// pythonMinor returns the minor version in the name of a library: 12 for libpython3.12.so, 0 if there is none.
func pythonMinor(path string) int {
	rest := strings.TrimPrefix(filepath.Base(path), "libpython3.")
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	n, _ := strconv.Atoi(rest[:max(end, 0)]) // "" is 0
	return n
}
