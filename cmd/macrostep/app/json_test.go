package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/plainjson"
)

var (
	// nullable are the keys of numbers and objects that may be null: lists are [], others are left out.
	nullable = []string{"co_simulation", "start_time", "stop_time", "tolerance", "step_size", "start", "fed", "recommended", "motion", "slowest_mode", "step_gain", "doubt", "error", "error_at_most", "change",
		"nrmse", "rmse", "max", "at", "a", "b", "limit", "nrmse_limit", "scale"}
	// named are the keys of objects whose keys are names of the user or of parameters.
	named    = []string{"parameters", "params", "sources", "delay"}
	snakeKey = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// The JSON of every command is UTF-8, a single document with one newline at its end, with keys in snake case and without
// null lists, also if there is nothing to list or a number is not finite.
func TestJSON(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir) // without hosts
	described(t, filepath.Join(dir, "empty.fmu"), model("empty"))
	described(t, filepath.Join(dir, "other.fmu"), model("other", "parameter Real kä&lt;&amp; m 1", "output Real n"))
	described(t, filepath.Join(dir, "three.fmu"), `<fmiModelDescription fmiVersion="3.0" modelName="three" instantiationToken="t"><ModelExchange modelIdentifier="m"/>
		<ModelVariables><Float64 name="k" valueReference="1"/></ModelVariables></fmiModelDescription>`)
	in(t, dir, "ssp", "new", "empty.fmu", "-o", "s.ssp")
	in(t, dir, "ssp", "new", "other.fmu", "empty.fmu", "-o", "other.ssp")
	if _, err := fmus.Build(dir, "mass_force"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "s.yaml"), "events: []\nexpect: [{variable: a.b, at: 1, min: 0}]\n")
	write(t, filepath.Join(dir, "a.csv"), "time,x\n0,NaN\n1,Inf\n")
	write(t, filepath.Join(dir, "b.csv"), "time,x\n0,NaN\n1,2\n")
	tried := map[string]bool{}
	for _, args := range []string{
		"info|--json|empty.fmu", "info|--json|other.fmu", "info|--json|three.fmu", "info|--json|s.ssp", "info|--json|other.ssp", "info|--json|s.ssp|--bonds",
		"info|--json|other.ssp|--explain|other.n", "info|--json|other.ssp|--explain|other.n|--explain|other.n",
		"validate|--json|empty.fmu", "validate|--json|s.ssp", "validate|--json|s.yaml", "validate|--sarif|empty.fmu",
		"validate|--json|--list", "validate|--json|--explain|MD1",
		"compare|--json|a.csv|b.csv", "compare|--json|a.csv|a.csv", "compare|--json|b.csv|a.csv",
		"analyze|--json|mass_force.fmu|--step-size|0.1|--stop-time|1", "algorithms|--json", "algorithms|--json|explicit", "host|list|--json",
	} {
		words := strings.Split(args, "|")
		code, out, errs := in(t, dir, words...)
		tried[words[0]] = true
		if !utf8.ValidString(out) || strings.TrimSpace(out)+"\n" != out || code == exitUsage {
			t.Errorf("%s: exit code %d\n%s%s", args, code, errs, out)
		}
		var document any
		if err := json.Unmarshal([]byte(out), &document); err != nil { // also if there are several
			t.Errorf("%s: %v\n%s", args, err, out)
		}
		checkJSON(t, args, "", document)
	}
	host, err := plainjson.Marshal([]hostLine{{}}) // no host is running here
	var list any
	if err != nil || json.Unmarshal(host, &list) != nil {
		t.Error(err)
	}
	checkJSON(t, "host list", "", list)
	for _, c := range (&program{}).app().Commands {
		name, _, _ := strings.Cut(c.Name, " ")
		if slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == "json" }) && !tried[name] {
			t.Errorf("the JSON of %s is not tested", c.Name)
		}
	}
}

// checkJSON checks a value under a key.
func checkJSON(t *testing.T, what, key string, value any) {
	t.Helper()
	switch value := value.(type) {
	case nil:
		if !slices.Contains(nullable, key) {
			t.Errorf("%s: %q is null", what, key)
		}
	case []any:
		for _, element := range value {
			checkJSON(t, what, key, element)
		}
	case map[string]any:
		for k, v := range value {
			if !snakeKey.MatchString(k) && !slices.Contains(named, key) && !strings.Contains(what, "sarif") {
				t.Errorf("%s: the key %q", what, k)
			}
			checkJSON(t, what, k, v)
		}
	}
}

// --output - writes the file to standard output, and nothing else.
func TestOutputToStdout(t *testing.T) {
	dir := t.TempDir()
	described(t, filepath.Join(dir, "a.fmu"), model("a", "parameter Real k 1 2", "output Real y"))
	in(t, dir, "ssp", "new", "a.fmu", "-o", "s.ssp")
	in(t, dir, "ssp", "unpack", "s.ssp", "-o", "folder")
	write(t, filepath.Join(dir, "r.csv"), "time,x\n0,1\n1,2\n")
	for args, begin := range map[string]string{
		"plot|r.csv": "<?xml", "report|r.csv": "<!DOCTYPE html>", "ssp|graph|s.ssp": "<svg ", "ssp|new|a.fmu": "PK", "ssp|pack|folder": "PK",
		"ssp|set|s.ssp|a.k=3": "PK",
	} {
		code, out, errs := in(t, dir, append(strings.Split(args, "|"), "-o", "-")...)
		if code != exitDone || !strings.HasPrefix(out, begin) || strings.Contains(errs, "wrote") {
			t.Errorf("%s: exit code %d, %.20q\n%s", args, code, out, errs)
		}
		if begin != "PK" {
			continue
		}
		write(t, filepath.Join(dir, "copy.ssp"), out)
		if code, out, errs := in(t, dir, "info", "copy.ssp"); code != exitDone || !strings.Contains(out, "a.fmu") {
			t.Errorf("%s: %s", args, errs)
		}
	}
	refuses(t, dir, nil, map[string]string{"ssp|unpack|s.ssp|-o|-": "a folder cannot be written to standard output",
		"ssp|set|s.ssp|a.k=three|-o|-": "give a finite number"})
	if _, err := os.Stat(filepath.Join(dir, "-")); err == nil {
		t.Error("there is a file called -")
	}
}
