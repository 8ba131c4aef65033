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

// corner is a connector of this kind in the system around (S) or in an element of it (E).
type corner struct {
	owner string
	kind  ssp.Kind
}

// connected is a document that connects two corners twice, with different transformations.
func connected(a, b corner) string {
	var own, elements string
	end := func(name string, c corner) string {
		connector := Con(name, string(c.kind), "<ssc:Real/>")
		switch {
		case c.owner == "S":
			own += connector
			return name
		case c.kind == ssp.Inout: // only entries of dictionaries have this kind
			elements += reference(name, "d", connector)
		default: // a system, since FMUs do not have all kinds
			elements += Sys(name, Conns(connector), "")
		}
		return name + "/" + name
	}
	from, to := end("a", a), end("b", b)
	if own != "" {
		own = Conns(own)
	}
	around := Sys("S", own, elements+Sys("pad", "", ""), Link(from, to, ""), Link(from, to, LinearTransform(2, 0)))
	signals := dictionaries("d", dictionary(entry("a", "<ssc:Real/>"), entry("b", "<ssc:Real/>")))
	return Head2 + Sys("top", signals, around) + Tail
}

// Every kind of connector at every place is connected to every other, in both directions of
// writing: a pair that the standard allows is connected in its direction, and all others are
// errors (ssp 24, 25).
func TestDirections(t *testing.T) {
	legal := map[string]bool{}
	for line := range strings.Lines(strings.TrimSpace(allowedByStandard)) {
		source, targets, _ := strings.Cut(strings.TrimSpace(line), " → ")
		for target := range strings.SplitSeq(targets, ", ") {
			legal[source+" → "+target] = true
		}
	}
	var corners []corner
	for _, owner := range []string{"S", "E"} {
		for _, kind := range []ssp.Kind{ssp.Input, ssp.Output, ssp.Parameter, ssp.CalculatedParameter, ssp.Inout,
			ssp.StructuralParameter, ssp.Constant, ssp.Local} {
			corners = append(corners, corner{owner, kind})
		}
	}
	for _, a := range corners {
		for _, b := range corners {
			_, l, err := Flatten(t, connected(a, b), nil, Fakes{}, false)
			// The second connection is refused, and the message names the source of the first.
			var from string
			for _, f := range l.Findings {
				if m := twoSources.FindStringSubmatch(f.Message); m != nil {
					from = m[1]
				}
			}
			want := ""
			switch {
			case legal[fmt.Sprintf("%s %s → %s %s", a.owner, a.kind, b.owner, b.kind)]:
				want = "a"
			case legal[fmt.Sprintf("%s %s → %s %s", b.owner, b.kind, a.owner, a.kind)]:
				want = "b"
			}
			if diag.Has(err, "SD8") != (want == "") || from != want {
				t.Errorf("%v and %v: the source is %q, want %q; %v", a, b, from, want, l.Findings)
			}
		}
	}
}
