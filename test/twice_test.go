package test

import (
	"strings"
	"testing"
)

// Where a parameter set has a name twice, run, validate and info --explain agree: it is an
// error where two values reach one variable, else a warning, by --strict an error.
func TestParameterTwice(t *testing.T) {
	set := func(values ...string) func(*testing.T, string) []string {
		text := `<ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" version="1.0" name="s"><ssv:Parameters>`
		for _, v := range values {
			name, value, _ := strings.Cut(v, "=")
			text += `<ssv:Parameter name="` + name + `"><ssv:Real value="` + value + `"/></ssv:Parameter>`
		}
		return withSystem(swap(`<ssd:Elements>`, text+`</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings><ssd:Elements>`), nil)
	}
	for _, c := range []struct {
		name   string
		values []string
		says   string
		fails  bool
	}{
		{"equal", []string{"chassis.m_c=300", "chassis.m_c=3e2"}, "in this set twice", false},
		{"of no variable", []string{"chassis.m_c=300", "engine.p=1", "engine.p=2"}, "in this set twice", false},
		{"different", []string{"chassis.m_c=300", "chassis.m_c=301"}, `"chassis.m_c" gets two values from one binding: 300 from line 7 and 301 from here [SD16D]`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			system := set(c.values...)(t, t.TempDir())[0]
			refused := 0
			if c.fails {
				refused = 2
			}
			o := run(t, system, "--stop-time", "0.01")
			if o.code != refused || c.fails && !strings.Contains(o.output, c.says) {
				t.Errorf("run: exit code %d\n%s", o.code, o.output)
			}
			if code, out := macrostep(t, "validate", system); code != refused/2 || !strings.Contains(out, "SD16T") || c.fails != strings.Contains(out, "SD16D") {
				t.Errorf("validate: exit code %d\n%s", code, out)
			}
			if code, out := macrostep(t, "info", system, "--explain", "chassis.m_c"); code != refused || c.fails && !strings.Contains(out, c.says) || !c.fails && !strings.Contains(out, "300") {
				t.Errorf("info --explain: exit code %d\n%s", code, out)
			}
			// A value of the user beats both.
			if w := strings.Join(complete(t, system, "--stop-time", "0.01", "--set", "chassis.m_c=310").manifest.Warnings, "\n"); !strings.Contains(w, "SD16T") || strings.Contains(w, "SD16D") {
				t.Errorf("run --set: warnings %s", w)
			}
			if o := run(t, system, "--stop-time", "0.01", "--strict"); o.code != 2 {
				t.Errorf("run --strict: exit code %d\n%s", o.code, o.output)
			}
		})
	}
}
