package test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/test/probe"
)

// life returns the FMU of package probe that consists of sources.
func life(t *testing.T, capabilities string, macros ...string) string {
	t.Helper()
	path, err := probe.Sources(t.TempDir(), "life", capabilities, macros...)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// FMUs with sources only are compiled with --compile, else the message names that flag (fmi2 10); errors of the
// compiler are in the message.
func TestSourceOnly(t *testing.T) {
	path := life(t, probe.LifeCapabilities)
	o := run(t, path, "--step-size", "0.01", "--stop-time", "0.1")
	o.is(t, 2, "--compile")
	o = complete(t, path, "--step-size", "0.01", "--stop-time", "0.1", "--compile")
	want := 1 - math.Pow(1-0.01*2, 10) + 10*0.01
	if y := o.column(t, "life.y"); len(y) != 11 || math.Abs(y[10]-want) > 1e-12 {
		t.Errorf("y = %v, want %g at the end", y, want)
	}
	run(t, life(t, "", "WRONG=syntax error", "fmi2Real=)"), "--compile").is(t, 2, "the C compiler failed")
}

// A compiler that does not end is ended with an interrupt.
func TestCompileInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("a process cannot be sent an interrupt there")
		return
	}
	dir, path := t.TempDir(), life(t, "")
	begun, temp := filepath.Join(dir, "begun"), filepath.Join(dir, "tmp")
	script := filepath.Join(dir, "cc.sh")
	if err := errors.Join(os.Mkdir(temp, 0o700), os.WriteFile(script, []byte("echo > "+begun+"; sleep 1000\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CC", "sh "+script)
	t.Setenv("TMPDIR", temp)
	p := start(t, "run", "--compile", path)
	until(t, "it compiles", func() bool { _, err := os.Stat(begun); return err == nil })
	p.signal(t, syscall.SIGINT)
	if code := p.end(); code != 1 || !strings.Contains(p.out.String(),
		"compiling the sources of life.fmu: the C compiler was ended: interrupted") {
		t.Errorf("exit code %d\n%s", code, p.out.String())
	}
	if left := listed(t, temp); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// discard=shorten relies on rollback only after testing it; the result is in the manifest and known to the next run
// (fmi2 59).
func TestRollbackVerified(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // Linux
	t.Setenv("HOME", t.TempDir())           // macOS
	t.Setenv("LocalAppData", t.TempDir())   // Windows
	shorten := []string{"--param", "discard=shorten"}
	args := func(path string, more ...string) []string {
		return append([]string{path, "--compile", "--step-size", "0.01", "--stop-time", "0.1"}, more...)
	}
	path := life(t, probe.LifeCapabilities, "RESTART=1e-5")
	for _, known := range []bool{false, true} {
		r := complete(t, args(path, shorten...)...).manifest.Replay["life"]
		if r.Known != known || r.Step != 0.01 || r.Replays != 0 || r.FirstTry < 0.99e-5 || r.FirstTry > 1.01e-5 {
			t.Errorf("known = %v: %+v", known, r)
		}
	}
	if r := complete(t, args(path, "--record", "*")...).manifest.Replay; len(r) != 0 {
		t.Errorf("tested without need: %v", r)
	}
	// The run warns of an FMU whose first step differs after going back, but not if it saves states for a checkpoint only.
	opening := life(t, probe.LifeCapabilities+` canSerializeFMUstate="true"`, "OPENING=0.5")
	run(t, args(opening, append(shorten, "--strict")...)...).is(t, 1, "life (life.fmu): it goes another way once it has gone back to "+
		"its start: y after step 1 of 0.01 s from the start is 0.5", "and 0.03 after")
	kept := complete(t, args(opening, "--strict", "--checkpoint", "0.05", filepath.Join(t.TempDir(), "c"))...)
	if !strings.Contains(kept.notes(), "so its results are not affected") {
		t.Errorf("warnings %q, notes %q", kept.manifest.Warnings, kept.manifest.Notes)
	}
	o := run(t, args(life(t, probe.LifeCapabilities, "FORGET"), shorten...)...)
	o.is(t, 1, "life (life.fmu): rollback", "canGetAndSetFMUstate", "y is ", "relative difference")
	if o.manifest.Status != "failed" {
		t.Errorf("status %s: %s", o.manifest.Status, o.manifest.Reason)
	}
}

// Quirks come from the command line and from the annotation at a component, and are in the manifest (fmi2 74).
func TestQuirkSwitches(t *testing.T) {
	bad := life(t, probe.LifeCapabilities, "BAD_END", "STOP", "DIVIDE")
	base := []string{bad, "--compile", "--step-size", "0.01", "--stop-time", "0.1"}
	run(t, base...).is(t, 1)
	const names = "inputsBeforeInit noTerminate stopTime"
	flags := append(base, "--quirk", "life=stopTime", "--quirk", "noTerminate", "--quirk", "life=inputsBeforeInit")
	for _, args := range [][]string{flags, {twoLives(t, bad, names), "--compile"}} {
		for _, f := range complete(t, args...).manifest.FMUs {
			if strings.Join(f.Quirks, " ") != names {
				t.Errorf("%s: quirks %v", f.Component, f.Quirks)
			}
		}
	}
}

// twoLives writes an SSP with two components whose FMUs are copies of one, with these quirks.
func twoLives(t *testing.T, fmu, quirks string) string {
	t.Helper()
	component := func(name string) string {
		return `<ssd:Component name="` + name + `" source="resources/` + name + `.fmu"><ssd:Annotations>` +
			annotation(ownType, `<ms:Component quirks="`+quirks+`"/>`) + "</ssd:Annotations></ssd:Component>"
	}
	ssd := annotated(document("0.1", component("first")+component("second"), ""), `<ms:Settings version="1" stepSize="0.01"/>`)
	path := filepath.Join(t.TempDir(), "two.ssp")
	pack(t, path, file("SystemStructure.ssd", ssd), file("resources/first.fmu", read(t, fmu)), file("resources/second.fmu", read(t, fmu)))
	return path
}

// annotated puts settings of ours into a document.
func annotated(document, settings string) string {
	document = strings.Replace(document, "<ssd:SystemStructureDescription",
		`<ssd:SystemStructureDescription xmlns:ms="https://github.com/macrostep/macrostep/ssp/1"`, 1)
	before, after, _ := strings.Cut(document, "<ssd:DefaultExperiment ")
	times, after, _ := strings.Cut(after, "/>")
	return before + "<ssd:DefaultExperiment " + times + "><ssd:Annotations>" + annotation(ownType, settings) +
		"</ssd:Annotations></ssd:DefaultExperiment>" + after
}
