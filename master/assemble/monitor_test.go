package assemble_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
)

// Monitored variables are found by their names and read with the outputs; the
// system is otherwise the same, and so are its results.
func TestMonitor(t *testing.T) {
	s := system{fmus: map[string]string{"f.fmu": probeFMU(t, "", ""), "w.fmu": exampleFMU(t, "quarter_wheel_a")},
		elements:    component("one", "f.fmu", "") + component("wheel", "w.fmu", ""),
		connections: connection("one.y", "wheel.v_c", "")}
	a := sound(t, s.write(t), assemble.Options{})
	ports := func() string {
		var out []string
		for k := range a.System.OutAt[len(a.System.Infos)] {
			name := a.System.OutName(k)
			for _, info := range a.System.Infos {
				for _, p := range info.Out {
					if name == info.Name+"."+p.Name && (p.Internal || p.Level != master.NoLevel) {
						out = append(out, fmt.Sprintf("%s %s %v", name, p.Level, p.Internal))
					}
				}
			}
		}
		return strings.Join(out, ", ")
	}
	table := func() string {
		c := columns(t, a, 0.1, 0.01)
		var out []any
		for _, name := range c.Names() {
			v, _ := c.Real(name)
			out = append(out, name, v)
		}
		return fmt.Sprint(out...)
	}
	const found = "wheel.z_w position false, wheel.v_w velocity false"
	if got := ports(); got != found {
		t.Errorf("%s, want %s", got, found)
	}
	plain := table()
	before, findings := a.System, len(a.Findings.Findings)
	for _, c := range []struct {
		list []assemble.Monitored
		want string
	}{
		{[]assemble.Monitored{{Name: "wheel.der(v_w)"}, {Name: "wheel.z_c", Level: master.Position}, {Name: "one.w", Level: master.Velocity}},
			"one.w velocity true, " + found + ", wheel.der(v_w) none true, wheel.z_c position true"},
		{[]assemble.Monitored{{Name: "wheel.z_c"}, {Name: "wheel.z_w"}}, found + ", wheel.z_c velocity true"},
		{nil, found},
	} {
		must(t, a.Monitor(c.list))
		if got := ports(); got != c.want {
			t.Errorf("%v: %s, want %s", c.list, got, c.want)
		}
		if got := table(); got != plain {
			t.Errorf("%v: results\n%s\nwant\n%s", c.list, got, plain)
		}
	}
	if a.System == before || !slices.Equal(a.System.InAt, before.InAt) || len(a.Findings.Findings) != findings {
		t.Errorf("findings %v", a.Findings.Findings)
	}
	before = a.System
	for name, want := range map[string]string{
		"wheel.v_ww":  `component wheel has no variable "v_ww"; did you mean "v_w"?`,
		"weel.v_w":    `"weel.v_w" names no component`,
		"wheel.m_w":   `wheel: variable "m_w" cannot be monitored: its causality is parameter`,
		"wheel.v_c":   `wheel: variable "v_c" cannot be monitored: its causality is input`,
		"one.count":   `one: variable "count" cannot be monitored: its type is Integer`,
		"one.echo_ud": "its variability is discrete",
	} {
		if err := a.Monitor([]assemble.Monitored{{Name: "one.w"}, {Name: name}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if a.System != before {
		t.Error("what is refused changes the system")
	}
}
