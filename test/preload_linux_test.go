package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/test/probe"
)

// An FMU that lacks symbols of Python, like those of PythonFMU, is refused with the library of the Python that is found, and runs
// with it: by the quirk in a process of its own, beside FMUs that do not get it, or by LD_PRELOAD.
func TestPythonSymbols(t *testing.T) {
	dir := t.TempDir()
	path, err := probe.Pack(dir, "pythonic", probe.Description("pythonic", "", ""), "strcpy Py_Strcpy")
	if err != nil {
		t.Fatal(err)
	}
	copyFMUs(t, dir, "mass_force")
	// A Python with its library, as far as is looked for.
	home := filepath.Join(dir, "python")
	library := filepath.Join(home, "lib", "libpython3.99.so")
	mkdir(t, filepath.Join(home, "bin"))
	mkdir(t, filepath.Dir(library))
	if err := os.WriteFile(filepath.Join(home, "bin", "python3"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "python.c"), "char *Py_Strcpy(char *to, const char *from) { char *at = to; while ((*at++ = *from++)); return to; }\n")
	cc, err := csrc.Compiler()
	if err == nil {
		err = csrc.Library(t.Context(), cc, dir, library, "-fno-builtin", "python.c")
	}
	if err != nil {
		t.Fatal(err)
	}
	start := func(env string, args ...string) (string, error) {
		cmd := exec.Command(program, append([]string{"run"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "PATH="+filepath.Join(home, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"), env)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, isolate := range []string{"never", "always"} {
		out, err := start("", path, "--stop-time", "1", "--step-size", "0.5", "--isolate", isolate)
		for _, says := range []string{"undefined symbol: Py_Strcpy", "--quirk COMPONENT=preload:" + library, "LD_PRELOAD=" + library + " macrostep"} {
			if err == nil || !strings.Contains(out, says) {
				t.Errorf("isolate %s: %v, want %q\n%s", isolate, err, says, out)
			}
		}
	}
	if out, err := start("LD_PRELOAD="+library, path, "--stop-time", "1", "--step-size", "0.5"); err != nil {
		t.Errorf("LD_PRELOAD: %v\n%s", err, out)
	}
	write(t, filepath.Join(dir, "SystemStructure.ssd"), document("0.01", member{name: "p", fmu: "pythonic"}.component("")+
		member{name: "m", fmu: "mass_force", in: "F"}.component(""), ""))
	o := complete(t, filepath.Join(dir, "SystemStructure.ssd"), "--step-size", "0.01", "--quirk", "p=preload:"+library)
	if isolated := o.isolated(); len(isolated) != 1 || isolated["p"] != "the quirk preload loads a library before it" {
		t.Errorf("isolated: %v", isolated)
	}
	call(t, "run", path, "--quirk", "preload:"+library+".1").is(t, 2, "the quirk preload: stat "+library+".1: no such file or directory")
	call(t, "run", path, "--quirk", "preload:").is(t, 2, "needs the library, preload:FILE")
	call(t, "run", path, "--quirk", "preload:"+library, "--on", "*=nowhere:1").is(t, 2, "the quirk preload has no effect on host nowhere:1; start macrostep host there with LD_PRELOAD="+library)
}
