package app

import (
	"path/filepath"
	"strings"
	"testing"
)

// An old spelling does the same as the new one, and prints it once. Words of other commands are no spellings.
func TestOldSpellings(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir) // without hosts
	described(t, filepath.Join(dir, "a.fmu"), model("a", "input Real F N", "output Real v m/s"))
	described(t, filepath.Join(dir, "b.fmu"), model("b", "output Real F N", "input Real v m/s"))
	write(t, filepath.Join(dir, "s.yaml"), "events: [{at: 1, freeze: [a.v]}]\n")
	in(t, dir, "ssp", "new", "a.fmu", "b.fmu", "--connect-by-name", "-o", "s.ssp")
	for old, now := range map[string]string{
		"bonds|s.ssp":             "info|s.ssp|--bonds",
		"bonds|--json|s.ssp":      "info|s.ssp|--bonds|--json",
		"scenario|s.yaml|s.ssp":   "validate|s.yaml|s.ssp",
		"scenario|s.yaml|a.fmu|x": "validate|s.yaml|a.fmu|x",
		"hosts":                   "host|list",
		"help|bonds":              "info|--help",
	} {
		code, out, errs := in(t, dir, strings.Split(old, "|")...)
		wantCode, wantOut, wantErrs := in(t, dir, strings.Split(now, "|")...)
		note, rest, _ := strings.Cut(errs, "\n")
		if code != wantCode || out != wantOut || out == "" && wantErrs == "" || rest != wantErrs {
			t.Errorf("%s: exit code %d, not %d\n%s%s", old, code, wantCode, out, errs)
		}
		contains(t, old, note, "macrostep: `macrostep ", "` is now `macrostep ", "the next release")
	}
	for _, args := range []string{"help|scenario", "info|bonds", "ssp|hosts"} {
		if _, _, errs := in(t, dir, strings.Split(args, "|")...); strings.Contains(errs, "is now") {
			t.Errorf("%s: %s", args, errs)
		}
	}
}

// A scenario is checked alone or with its system, in any order, as text or JSON.
func TestValidateScenario(t *testing.T) {
	dir := t.TempDir()
	described(t, filepath.Join(dir, "a.fmu"), model("a", "input Real u", "output Real v m/s"))
	write(t, filepath.Join(dir, "s.yaml"), "events: [{at: 1, freeze: [a.v]}]\n")
	write(t, filepath.Join(dir, "bad.yml"), "events:\n- {at: 1, freeze: [a.w]}\n- {at: 2, freze: [a.v]}\n")
	write(t, filepath.Join(dir, "other.yaml"), "events: [{at: 1, freeze: [a.w]}]\n")
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"s.yaml":                         {exitDone, "s.yaml: 1 event and 0 expectations on a.v\n"},
		"a.fmu|s.yaml":                   {exitDone, "on a.v\n"},
		"s.yaml|--format|json":           {exitDone, `"kind": "scenario"`},
		"bad.yml":                        {exitFailed, `macrostep: bad.yml:3: an event has no key "freze"`},
		"bad.yml|--format|json":          {exitFailed, `"line": 3,` + "\n" + `          "message": "an event has no key`},
		"other.yaml|a.fmu":               {exitFailed, `other.yaml: component a has no variable "w"`},
		"other.yaml|a.fmu|--format=json": {exitFailed, `"errors": 1`},
		"no.yaml":                        {exitUsage, "no.yaml: no such file"},
		"s.yaml|no.fmu":                  {exitUsage, "no.fmu: no such file"},
		"s.yaml|other.yaml":              {exitUsage, "is a scenario; give one"},
		"s.yaml|a.fmu|--dynamic":         {exitUsage, "--dynamic: the flag is not for a scenario"},
		"s.yaml|--format|sarif":          {exitUsage, "as text, or with --json"},
	} {
		code, out, errs := in(t, dir, append([]string{"validate"}, strings.Split(args, "|")...)...)
		if code != want.code {
			t.Errorf("%s: exit code %d", args, code)
		}
		contains(t, args, out+errs, want.says)
	}
	_, out, _ := in(t, dir, "help", "scenario")
	contains(t, "the topic", out, "replay   {VARIABLE: FILE}", "macrostep validate fault.yaml")
}
