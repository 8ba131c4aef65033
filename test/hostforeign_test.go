package test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// An FMU with a library for another operating system only runs on a host, and messages without one propose that. The host
// of this test compiles the sources, which the other platform would not need.
func TestHostForeign(t *testing.T) {
	dir, offered := t.TempDir(), t.TempDir()
	local := fmu(t, "mass_force")
	write(t, filepath.Join(dir, "local.fmu"), read(t, local))
	for _, to := range []string{dir, offered} {
		pack(t, filepath.Join(to, "mass_force.fmu"), edited("binaries/", func(p *part) {
			p.Name = "binaries/aarch64-windows/" + strings.TrimSuffix(path.Base(p.Name), path.Ext(p.Name)) + ".dll"
		})(entries(t, local))...)
	}
	const lacks = "the FMU has libraries for aarch64-windows"
	foreign := filepath.Join(dir, "mass_force.fmu")
	call(t, "run", foreign).is(t, 2, "mass_force.fmu", lacks, "macrostep host", "--on HOST")
	call(t, "info", foreign).is(t, 0, lacks, "--on HOST")
	call(t, "validate", foreign).is(t, 1, "FA5", "aarch64-windows", "--on HOST")

	foreigners := member{name: "one", fmu: "mass_force"}.component("") + member{name: "two", fmu: "mass_force"}.component("")
	three := member{name: "three", fmu: "local"}.component("")
	system := filepath.Join(dir, "SystemStructure.ssd")
	write(t, system, []byte(document("1", foreigners+three, "")))
	for _, command := range []string{"run", "info", "validate"} {
		code := map[string]int{"run": 2, "info": 0, "validate": 1}[command]
		call(t, command, system).is(t, code, "mass_force.fmu", "one, two: no library", "--on one=HOST --on two=HOST")
	}

	_, address := offering(t, "--compile", offered)
	want := complete(t, filepath.Join(dir, "local.fmu"), "--stop-time", "1")
	got := complete(t, foreign, "--stop-time", "1", "--on", address)
	table := func(o *outcome) string {
		_, rows, _ := strings.Cut(string(read(t, o.results)), "\n") // the header names the files
		return rows
	}
	if table(got) != table(want) {
		t.Error("the results on the host are not those here")
	}
	o := call(t, "run", system, "--on", "one="+address)
	o.is(t, 2, "two: no library", "--on two=HOST")
	complete(t, system, "--on", "one="+address, "--on", "two="+address)

	write(t, system, []byte(document("1", placed(foreigners, address)+three, "")))
	for _, command := range []string{"info", "validate", "run"} {
		if o := call(t, command, system); o.code != 0 || strings.Contains(o.output, "no library") {
			t.Errorf("macrostep %s: exit code %d\n%s", command, o.code, o.output)
		}
	}
}
