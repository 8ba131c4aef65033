package ssp_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

// everything is a system of four kinds of file: document, set, mapping, dictionary.
func everything() (document string, files map[string]string, vars Fakes) {
	bus := reference("bus", "d", Con("n", "inout", "")) + `<ssd:Component name="b2" source="b.fmu">` + Conns(Con("m", "input", "")) + "</ssd:Component>"
	document = strings.Replace(Base, `<ssd:System name="inner">`, bus+"\n"+`<ssd:System name="inner">`, 1)
	ends := "  </ssd:Connections>\n</ssd:System>\n<ssd:Enum"
	document = strings.Replace(document, ends, Link("a/n", "bus/n", Mapping("Integer", 1, 2))+Link("bus/n", "b2/m", "")+
		strings.Replace(ends, "</ssd:System>", `<ssd:SignalDictionaries><ssd:SignalDictionary name="d" source="d.ssb"/></ssd:SignalDictionaries></ssd:System>`, 1), 1)
	vars = baseFakes()
	vars["b2"] = vars["inner.b"]
	declared := `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	return document, map[string]string{"set.ssv": BaseSet, "map.ssm": BaseMap, "d.ssb": declared + dictionary(entry("n", "<ssc:Integer/>"))}, vars
}

// summary is a network in words, without places.
func summary(n *ssp.Network) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(Links(n))) {
		c := Links(n)[name]
		fmt.Fprintln(&b, name, c.Type, c.Gain, c.Offset, c.Map)
	}
	for _, s := range n.Settings {
		fmt.Fprintln(&b, n.Components[s.Component].Path, s.Variable, s.Value, s.From.Level, len(s.Overrides))
	}
	for _, o := range n.Outputs {
		fmt.Fprintln(&b, o)
	}
	return b.String()
}

// The same system in the dialects that people have is the same network: whatever the
// prefixes are called, without them, with known ones that nobody declares, with a byte
// order mark, in Latin-1, and with every connection turned around.
func TestDialects(t *testing.T) {
	document, files, vars := everything()
	n, l := Sound(t, document, files, vars)
	want := summary(n)
	if len(l.Findings) != 0 || strings.Count(want, "→") != 2 {
		t.Fatalf("findings %v\n%s", l.Findings, want)
	}
	renamed := func(text string) string {
		for _, p := range []string{"ssd", "ssc", "ssv", "ssm", "ssb", "ms"} {
			text = regexp.MustCompile(`(</?|xmlns:)`+p+`([:=])`).ReplaceAllString(text, "${1}q-"+p+".1${2}")
		}
		return text
	}
	// The namespace of the root element, which it declares, becomes the default.
	plain := func(text string) string {
		root := regexp.MustCompile(`<(ss[dvmb]):`).FindStringSubmatch(text)[1]
		text = strings.Replace(text, "xmlns:"+root+"=", "xmlns=", 1)
		return regexp.MustCompile(`(</?)`+root+`:`).ReplaceAllString(text, "$1")
	}
	undeclared := func(text string) string {
		return regexp.MustCompile(`\sxmlns:(ss[dcvmb])="[^"]*"`).ReplaceAllString(text, "")
	}
	mark := func(text string) string { return "\xef\xbb\xbf" + text }
	latin := func(text string) string {
		text = strings.Replace(text, "<?xml version=\"1.0\"?>", `<?xml version="1.0" encoding="UTF-8"?>`, 1)
		text = strings.ReplaceAll(strings.Replace(text, "UTF-8", "ISO-8859-1", 1), `"gain"`, "\"gr\xf6\xdfe\"")
		return strings.ReplaceAll(text, `"hidden"`, "\"\xfc\"")
	}
	left := func(text string) string { return strings.Replace(text, "UTF-8", "ISO-8859-1", 1) }
	turned := func(text string) string {
		return strings.NewReplacer("startElement", "endElement", "endElement", "startElement", "startConnector", "endConnector", "endConnector", "startConnector").Replace(text)
	}
	windows := func(text string) string { return strings.ReplaceAll(text, "\n", "\r\n") }
	single := func(text string) string { return regexp.MustCompile(`="([^"']*)"`).ReplaceAllString(text, `='$1'`) }
	for _, c := range []struct {
		name string
		how  []func(string) string
		told string // ids of what is told, in the tolerant reading
	}{
		{"other prefixes", []func(string) string{renamed}, ""},
		{"default namespaces", []func(string) string{plain}, ""},
		{"undeclared prefixes", []func(string) string{undeclared}, "SD1T"},
		{"byte order mark", []func(string) string{mark}, ""},
		{"byte order mark before a declaration that was left behind", []func(string) string{left, mark}, ""},
		{"Latin-1", []func(string) string{latin}, ""},
		{"turned connections", []func(string) string{turned}, ""},
		{"line ends of Windows", []func(string) string{windows}, ""},
		{"single quotes", []func(string) string{single}, ""},
		{"all at once", []func(string) string{turned, plain, latin, windows, mark}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			apply := func(text string) string {
				for _, f := range c.how {
					text = f(text)
				}
				return text
			}
			changed := map[string]string{}
			for name, text := range files {
				changed[name] = apply(text)
			}
			if apply(document) == document {
				t.Fatal("the document is as before")
			}
			n, l := Sound(t, apply(document), changed, vars)
			if got := summary(n); got != want {
				t.Errorf("the network is\n%s\nand not\n%s", got, want)
			}
			for _, f := range l.Findings {
				if f.ID != c.told {
					t.Errorf("finding %s", f)
				}
			}
			if len(l.Findings) == 0 && c.told != "" {
				t.Errorf("nothing is told, want %s", c.told)
			}
			if _, _, err := Flatten(t, apply(document), changed, vars, true); err != nil {
				t.Errorf("strict: %v", err)
			}
		})
	}
}
