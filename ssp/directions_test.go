package ssp_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

var twoSources = regexp.MustCompile(`has two sources: "[^"]*([ab])" and`)

// allowedByStandard is the table of connections of SSP 2.0, by owner (S = the system
// around, E = an element in it) and kind.
const allowedByStandard = `
S parameter → S calculatedParameter, S output, E parameter, E input, E inout, S local
S input → S output, E input, E inout, S local
S structuralParameter → S calculatedParameter, S output, S local, E structuralParameter, E parameter, E input, E inout
E calculatedParameter → E parameter, E input, E inout, S calculatedParameter, S output, S local
E output → E input, E inout, S output, S local
E constant → E structuralParameter, E parameter, E input, E inout, S constant, S calculatedParameter, S output, S local
E local → E input, E inout, S output, S local
E inout → E input, S output, S local
`

// Every kind of connector at every place against every other, written in both
// directions: what the standard allows is a connection in its direction, all else is
// an error (ssp 24, 25). An element is a system here, since FMUs do not have all kinds.
func TestDirections(t *testing.T) {
	kinds := []ssp.Kind{ssp.Input, ssp.Output, ssp.Parameter, ssp.CalculatedParameter, ssp.Inout, ssp.StructuralParameter, ssp.Constant, ssp.Local}
	legal := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(allowedByStandard)) {
		source, targets, _ := strings.Cut(strings.TrimSpace(line), " → ")
		for target := range strings.SplitSeq(targets, ", ") {
			legal[source+" → "+target] = true
		}
	}
	connector := func(name string, k ssp.Kind) string {
		return fmt.Sprintf(`<ssd:Connector name="%s" kind="%s"><ssc:Real/></ssd:Connector>`, name, k)
	}
	count := 0
	for _, a := range []string{"S", "E"} {
		for _, b := range []string{"S", "E"} {
			for _, ka := range kinds {
				for _, kb := range kinds {
					// Each end is an element or the system around; entries of dictionaries are inout.
					var own, elements string
					ends := [2]string{}
					for i, end := range []struct {
						owner string
						kind  ssp.Kind
					}{{a, ka}, {b, kb}} {
						name := string(rune('a' + i))
						switch {
						case end.owner == "S":
							own += connector(name, end.kind)
							ends[i] = fmt.Sprintf(`%%sConnector="%s"`, name)
							continue
						case end.kind == ssp.Inout:
							elements += fmt.Sprintf(`<ssd:SignalDictionaryReference name="%s" dictionary="d"><ssd:Connectors>%s</ssd:Connectors></ssd:SignalDictionaryReference>`, name, connector(name, end.kind))
						default:
							elements += fmt.Sprintf(`<ssd:System name="%s"><ssd:Connectors>%s</ssd:Connectors></ssd:System>`, name, connector(name, end.kind))
						}
						ends[i] = fmt.Sprintf(`%%sElement="%s" %%[1]sConnector="%s"`, name, name)
					}
					elements += `<ssd:System name="pad"/>`
					if own != "" {
						own = "<ssd:Connectors>" + own + "</ssd:Connectors>"
					}
					connection := "<ssd:Connection " + fmt.Sprintf(ends[0], "start") + " " + fmt.Sprintf(ends[1], "end")
					document := strings.Replace(Head, `version="1.0" name`, `version="2.0" name`, 1) + `<ssd:System name="top"><ssd:Elements><ssd:System name="S">` + own + "<ssd:Elements>" + elements + "</ssd:Elements><ssd:Connections>" +
						connection + "/>" + connection + ">" + LinearTransform(2, 0) + `</ssd:Connection></ssd:Connections><ssd:SignalDictionaries><ssd:SignalDictionary name="d">` +
						dictionary(entry("a", "<ssc:Real/>"), entry("b", "<ssc:Real/>")) + `</ssd:SignalDictionary></ssd:SignalDictionaries></ssd:System></ssd:Elements></ssd:System>` + Tail
					ab := legal[fmt.Sprintf("%s %s → %s %s", a, ka, b, kb)]
					ba := legal[fmt.Sprintf("%s %s → %s %s", b, kb, a, ka)]
					if ab && ba {
						t.Fatal("the table goes both ways")
					}
					_, l, err := Flatten(t, document, nil, Fakes{}, false)
					// The second connection is refused, and the message names the source of the first.
					var from string
					for _, f := range l.Findings {
						if m := twoSources.FindStringSubmatch(f.Message); m != nil {
							from = m[1]
						}
					}
					want := map[bool]string{ab: "a", ba: "b"}[true]
					if diag.Has(err, "SD8") != (want == "") || from != want {
						t.Errorf("%s %s and %s %s: the source is %q, want %q; %v", a, ka, b, kb, from, want, l.Findings)
					}
					count++
				}
			}
		}
	}
	if count != 4*8*8 {
		t.Errorf("%d combinations", count)
	}
}
