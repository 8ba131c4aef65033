package test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The example of docs/ssp-settings.md runs, and each of its settings is in force. The page
// names every element and attribute that is read, and its example has all of them: an
// unknown one is refused with the list of those that are known.
func TestSettingsPage(t *testing.T) {
	page := string(read(t, filepath.Join("..", "docs", "ssp-settings.md")))
	_, rest, _ := strings.Cut(page, "```xml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("docs/ssp-settings.md has no example")
	}
	dir := t.TempDir()
	copyFMUs(t, filepath.Join(dir, "resources"), "mass_force", "coupling")
	write := func(name, text string) {
		write(t, filepath.Join(dir, name), text)
	}
	write("SystemStructure.ssd", example)
	write("push.csv", "time,right.F\n0,0\n1,100\n")
	write("before.csv", "time,left.x,left.v,right.x,right.v,spring.F\n-0.002,0,0,0,0,0\n-0.001,0,0,0,0,0\n")
	o := complete(t, dir)
	m := o.manifest
	if m.Algorithm != "gauss-seidel" || m.StepSize.Value != 1e-3 || m.Parameters["order"] != "1" || m.FMUSteps["right"] != 2*m.FMUSteps["left"] || o.rows != 21 {
		t.Errorf("%s, %v, %v, %v, %d rows", m.Algorithm, m.StepSize, m.Parameters, m.FMUSteps, o.rows)
	}
	want := map[string]string{}
	for _, name := range []string{"algorithm", "param order", "stateless spring", "bond rod", "rate right", "record", "monitor-energy", "energy-spike", "workers", "isolate",
		"on-crash", "step-timeout", "memory-limit", "output-interval", "input", "history", "isolate-component left", "quirk left noTerminate"} {
		want[name] = ownText
	}
	expectSources(t, o, want)

	known := regexp.MustCompile(`"unheard-of" is not known; (\w+) has (\w+(?:, \w+)*)`)
	element := regexp.MustCompile(`"ms:Unheard" is not known; Settings has (\w+(?:, \w+)*)`)
	changes := []string{"</ms:Settings>", "<ms:Unheard/></ms:Settings>"}
	for _, name := range []string{"Settings", "Component", "Param", "Stateless", "Bond", "Pair", "Rate", "Record"} {
		changes = append(changes, "<ms:"+name+" ", "<ms:"+name+` unheard-of="1" `)
	}
	write("SystemStructure.ssd", strings.NewReplacer(changes...).Replace(example))
	o = run(t, dir)
	output := strings.Join(strings.Fields(o.output), " ")
	if o.code != 2 {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
	check := func(name, pattern string) {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not tell of %s", name)
		}
		if !regexp.MustCompile(pattern).MatchString(example) {
			t.Errorf("the example of the page has no %s", name)
		}
	}
	seen := map[string]bool{}
	for _, found := range known.FindAllStringSubmatch(output, -1) {
		seen[found[1]] = true
		check(found[1], "<ms:"+found[1]+" ")
		for name := range strings.SplitSeq(found[2], ", ") {
			check(name, `<ms:`+found[1]+`\s[^>]*\b`+name+"=")
		}
	}
	if len(seen) != 8 {
		t.Errorf("attributes are known of %v only:\n%s", seen, o.output)
	}
	elements := element.FindStringSubmatch(output)
	if elements == nil {
		t.Fatalf("the elements are not listed:\n%s", o.output)
	}
	for name := range strings.SplitSeq(elements[1], ", ") {
		check(name, "<ms:"+name+" ")
	}
}
