package test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
)

// Of an FMU that runs alone every flag takes the names of variables with that of the
// component and without; inputs that a table or a scenario drives are recorded.
func TestNamesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, err := fmus.Build(dir, "quarter_chassis_a")
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		write(t, name, text)
		return name
	}
	const prefix = "quarter_chassis_a."
	results := map[string]string{}
	for _, before := range []string{"", prefix} {
		input := file("input.csv", "time,"+before+"F_c\n0,0\n0.1,-40\n")
		events := file("events.yaml", "events:\n  - {at: 0.05, set: {"+before+"F_c: -80}}\nexpect:\n  - {variable: "+before+"z_c, at: 0.1, min: 1e-9}\n")
		args := []string{path, "--stop-time", "0.1", "--step-size", "0.01", "--set", before + "m_c=200"}
		for name, more := range map[string][]string{
			"input":            {"--input", input},
			"input, scenario":  {"--input", input, "--scenario", file("judged.yaml", "expect:\n  - {variable: "+before+"v_c, at: 0.1, min: 1e-9}\n")},
			"scenario":         {"--scenario", events},
			"recorded":         {"--input", input, "--record", before + "z_c", "--record", before + "m_?"},
			"recorded pattern": {"--input", input, "--record", before + "?_c"},
		} {
			o := complete(t, append(slices.Clone(args), more...)...)
			data := string(read(t, o.results))
			if was, again := results[name]; again && was != data {
				t.Errorf("%s: with %q\n%s\nwithout\n%s", name, before, data, was)
			}
			results[name] = data
			if header, _, _ := strings.Cut(data, "\n"); !strings.HasPrefix(name, "recorded") && !strings.Contains(header, prefix+"F_c") {
				t.Errorf("%s: the input that is driven is not recorded: %s", name, header)
			}
		}
		if _, out := macrostep(t, "info", path, "--explain", before+"m_c"); !strings.Contains(out, prefix+"m_c") {
			t.Errorf("info --explain\n%s", out)
		}
		if code, out := macrostep(t, "plot", complete(t, append(slices.Clone(args), "--input", input)...).results, "--select", before+"z_c"); code != 0 || !strings.Contains(out, "1 variable of") {
			t.Errorf("plot: exit code %d\n%s", code, out)
		}
	}
	if header, _, _ := strings.Cut(results["recorded"], "\n"); header != "time,"+prefix+"z_c,"+prefix+"m_c" {
		t.Errorf("recorded %s", header)
	}
	for _, c := range []struct{ flag, value, says string }{
		{"--set", "m_d=1", `component quarter_chassis_a has no variable "m_d"; did you mean "m_c"?`},
		{"--record", "m_d", `no variable matches "m_d"`},
		{"--input", file("wrong.csv", "time,F_d\n0,1\n"), `component quarter_chassis_a has no variable "F_d"`},
		{"--input", file("both.csv", "time,F_c,quarter_chassis_a.F_c\n0,1,1\n"), `quarter_chassis_a.F_c is given twice`},
	} {
		if code, out := macrostep(t, "run", path, c.flag, c.value); code != 2 || !strings.Contains(out, c.says) {
			t.Errorf("%s %s: exit code %d\n%s\nwant %s", c.flag, c.value, code, out, c.says)
		}
	}
}

// A name that means two variables of an FMU is refused by every flag, with names of which
// each means one.
func TestNamesAmbiguous(t *testing.T) {
	dir := t.TempDir()
	built := withDescription(func(text string) string {
		return strings.NewReplacer(`name="v_c"`, `name="m.F_c"`, `name="der(v_c)"`, `name="m.m_c"`).Replace(text)
	})(t, dir)[0]
	path := filepath.Join(dir, "m.fmu")
	if err := os.Rename(built, path); err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		write(t, name, text)
		return name
	}
	const both = `"m.F_c" means 2`
	for _, c := range []struct{ flag, value, says string }{
		{"--set", "m.m_c=1", `"m.m_c" means 2 things: m_c and m.m.m_c; write the one that is meant so`},
		{"--record", "m.F_c", both + " variables: "},
		{"--input", file("input.csv", "time,m.F_c\n0,1\n"), both + " things: F_c and m.m.F_c"},
		{"--scenario", file("events.yaml", "events:\n  - {at: 0.05, set: {m.F_c: 1}}\n"), both + " things: F_c and m.m.F_c"},
	} {
		if code, out := macrostep(t, "run", path, "--stop-time", "0.1", c.flag, c.value); code != 2 || !strings.Contains(out, c.says) {
			t.Errorf("%s %s: exit code %d\n%s\nwant %s", c.flag, c.value, code, out, c.says)
		}
	}
	o := complete(t, path, "--stop-time", "0.1", "--set", "m_c=100", "--input", file("input.csv", "time,F_c\n0,-100\n"), "--record", "m.m.F_c", "--record", "F_c", "--record", "m.m.m_c")
	if v := last(o.column(t, "m.m.F_c")); v < 0.0999 || v > 0.1001 {
		t.Errorf("the velocity is %g", v)
	}
	if o.column(t, "m.F_c")[0] != -100 || o.column(t, "m.m.m_c")[0] != 1 {
		t.Errorf("force %v, acceleration %v", o.columns["m.F_c"], o.columns["m.m.m_c"])
	}
}

// Inputs that a table drives are recorded by default in a system, too.
func TestDrivenRecorded(t *testing.T) {
	dir := t.TempDir()
	input := filepath.Join(dir, "input.csv")
	write(t, input, "time,chassis.F_c\n0,0\n1,5\n")
	free := withSystem(func(text string) string {
		text = swap(`<ssd:Connection startElement="wheel" startConnector="F_c" endElement="chassis" endConnector="F_c"/>`, "")(text)
		before, rest, _ := strings.Cut(text, "<ms:Bond")
		_, after, _ := strings.Cut(rest, "</ms:Bond>")
		return before + after
	}, nil)(t, dir)
	o := complete(t, append(free, "--stop-time", "0.01", "--step-size", "0.001", "--input", input)...)
	if v := last(o.column(t, "chassis.F_c")); v < 0.0499 || v > 0.0501 {
		t.Errorf("the force ends at %g", v)
	}
}
