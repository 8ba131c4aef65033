package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// --explain tells the whole chain of precedence: the FMU, the component, the system,
// a later binding through a mapping; and what feeds an input.
func TestExplain(t *testing.T) {
	t.Parallel()
	dir := car(t, "", "", "")
	path := filepath.Join(dir, "SystemStructure.ssd")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	binding := func(name, value, mapping string) string {
		return `<ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="1.0" name="p"><ssv:Parameters>
<ssv:Parameter name="` + name + `"><ssv:Real value="` + value + `"/></ssv:Parameter>
</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues>` + mapping + `</ssd:ParameterBinding>`
	}
	text := string(data)
	at := strings.Index(text, "<ssd:Elements>")
	text = text[:at] + "<ssd:ParameterBindings>" + binding("wheel.m_w", "42", "") +
		binding("heavy", "43", `<ssd:ParameterMapping><ssm:ParameterMapping version="1.0"><ssm:MappingEntry source="heavy" target="wheel.m_w"><ssc:LinearTransformation factor="2" offset="1"/></ssm:MappingEntry></ssm:ParameterMapping></ssd:ParameterMapping>`) +
		"</ssd:ParameterBindings>" + text[at:]
	at = strings.LastIndex(text, "</ssd:Component>")
	text = text[:at] + "<ssd:ParameterBindings>" + binding("m_w", "41", "") + "</ssd:ParameterBindings>" + text[at:]
	text = strings.Replace(text, "<ssd:SystemStructureDescription", `<ssd:SystemStructureDescription xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues" xmlns:ssm="http://ssp-standard.org/SSP1/SystemStructureParameterMapping"`, 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	explain := func(args ...string) string {
		t.Helper()
		code, out := macrostep(t, append([]string{"info", dir}, args...)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d\n%s", args, code, out)
		}
		return out
	}
	out := explain("--explain", "wheel.m_w")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	want := [][]string{
		{"wheel.m_w: parameter, fixed Real in kg, initial exact"},
		{"start value of the FMU", "= 40", "overridden", "quarter_wheel_a.fmu!modelDescription.xml:"},
		{`bound at wheel as "m_w"`, "= 41", "overridden", "SystemStructure.ssd:"},
		{`bound at the outermost system as "wheel.m_w"`, "= 42", "overridden", "SystemStructure.ssd:"},
		{`bound at the outermost system as "wheel.m_w"`, "= 87", "in force", "SystemStructure.ssd:"},
		{`    parameter "heavy"`, "= 43", "SystemStructure.ssd:"},
		{`    mapping of "heavy" to "wheel.m_w"`, "SystemStructure.ssd:"},
		{"    × 2 + 1", "= 87 kg", "SystemStructure.ssd:"},
	}
	if len(lines) != len(want) {
		t.Fatalf("explained\n%s", out)
	}
	for i, parts := range want {
		for _, part := range parts {
			if !strings.Contains(lines[i], part) {
				t.Errorf("line %d is %q, want %q in it", i, lines[i], part)
			}
		}
	}
	if out := explain("--explain", "chassis.F_c"); !strings.Contains(out, "connected to wheel.F_c [N]") || !strings.Contains(out, "until the first exchange") && !strings.Contains(out, "in force") {
		t.Errorf("explained\n%s", out)
	}
	if out := explain("--explain", "chassis.v_c"); !strings.Contains(out, "the FMU computes it") {
		t.Errorf("explained\n%s", out)
	}
	var e struct {
		Name, Unit string
		Chain      []struct {
			Value, Place, How string
			Steps             []struct{ What, Value, Unit, Place string }
		}
	}
	if err := json.Unmarshal([]byte(explain("--explain", "wheel.m_w", "--json")), &e); err != nil || e.Name != "wheel.m_w" || e.Unit != "kg" || len(e.Chain) != 4 || e.Chain[3].Value != "87" || len(e.Chain[3].Steps) != 3 || e.Chain[3].Steps[2].Value != "87" {
		t.Errorf("%v, %+v", err, e)
	}
	if out := explain(); !strings.Contains(out, "wheel.m_w  = 87") || !strings.Contains(out, `from parameter "heavy" in `) || !strings.Contains(out, "× 2 + 1 = 87 kg, overrides 2 other values") || !strings.Contains(out, "wheel.F_c [N]      → chassis.F_c [N]") {
		t.Errorf("info\n%s", out)
	}
	for name, says := range map[string]string{"wheel.mass": `component wheel has no variable "mass"`, "whel.m_w": "names no component", "wheel": `"wheel" is a component`, "": "names no component"} {
		if code, out := macrostep(t, "info", dir, "--explain", name); code != 2 || !strings.Contains(out, says) {
			t.Errorf("%q: exit code %d\n%s", name, code, out)
		}
	}
}
