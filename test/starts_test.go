package test

import (
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/test/probe"
)

// An input that is set and nothing feeds is held: it is recorded, by default too, as what
// was set, also where the FMU does not give it back, and no warning says that the FMU lost it.
func TestSetInputsAreHeld(t *testing.T) {
	t.Parallel()
	source := strings.Replace(probe.LifeSource(), "vr[i] == 0 ? m->u :", "vr[i] == 0 ? 0 :", 1)
	path, err := fmus.Pack(t.TempDir(), "life", probe.LifeDescription(probe.LifeCapabilities, ""), strings.Replace(source, `"fmi2Functions.h"`, `"fmi2.h"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	args := []string{path, "--step-size", "0.25", "--stop-time", "1", "--set", "u=3"}
	for _, more := range [][]string{nil, {"--record", "*"}, {"--param", "discard=shorten"}} {
		o := complete(t, append(args, more...)...)
		if len(o.manifest.Warnings) > 0 {
			t.Errorf("%v: warnings %q", more, o.manifest.Warnings)
		}
		for _, u := range o.column(t, "life.u") {
			if u != 3 {
				t.Errorf("%v: u is recorded as %g", more, u)
			}
		}
		if y := o.column(t, "life.y"); y[1] != 0.25*2*3+0.25*3 {
			t.Errorf("%v: y is %v", more, y)
		}
	}
}

// lockedFMU packs an FMU whose parameters cannot be set, and which starts k with another
// value than it documents.
func lockedFMU(t *testing.T) string {
	t.Helper()
	description := strings.Replace(probe.LifeDescription(probe.LifeCapabilities, ""), `<Real start="2"/>`, `<Real start="5"/>`, 1)
	description = strings.Replace(description, `modelIdentifier="life"`, `modelIdentifier="locked"`, 1)
	path, err := fmus.Pack(t.TempDir(), "locked", description, "#define LOCKED\n"+
		strings.Replace(probe.LifeSource(), `"fmi2Functions.h"`, `"fmi2.h"`, 1))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Documented starts are left to the FMU: one that refuses them runs, in every way, and
// one line says which of them it does not have. What is asked for is set (fmi2 42).
func TestStartsAreLeft(t *testing.T) {
	t.Parallel()
	path := lockedFMU(t)
	args := []string{path, "--step-size", "0.25", "--stop-time", "1"}
	const says = "the FMU starts 1 with another value than modelDescription.xml documents: k is 2 (documented: 5)"
	for _, more := range [][]string{
		nil, {"--isolate", "always"}, {"--param", "discard=shorten"}, {"--set", "locked.u=1"},
	} {
		o := complete(t, append(args, more...)...)
		if n := strings.Count(o.warnings(), says); n != 1 {
			t.Errorf("%v: said %d times: %q", more, n, o.manifest.Warnings)
		}
		if y := o.column(t, "locked.y"); y[1] != 0.25*2+0.25 {
			t.Errorf("%v: y is %v", more, y)
		}
	}
	const quirk = "the quirk setStarts sets documented start values that nobody gave"
	for _, more := range [][]string{{"--quirk", "locked=setStarts"}, {"--set", "locked.k=5"}} {
		o := run(t, append(args, more...)...)
		if o.code != 1 || !strings.Contains(o.output, "fmi2SetReal returned Error; the FMU refuses k = 5") ||
			strings.Contains(o.output, quirk) != (more[0] == "--quirk") {
			t.Errorf("%v: exit code %d\n%s", more, o.code, o.output)
		}
	}
	if code, out := macrostep(t, "validate", path, "--dynamic"); code != 0 || !strings.Contains(out, "warning DY2: start values: k starts at 5 in the document and at 2 in the") {
		t.Errorf("validate --dynamic: exit code %d\n%s", code, out)
	}
	if code, out := macrostep(t, "info", path, "--explain", "locked.k"); code != 0 || !strings.Contains(out, "documented start value of the FMU") {
		t.Errorf("info --explain: exit code %d\n%s", code, out)
	}
}
