package simulate

import (
	"slices"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Only findings that may change a result are warnings, those of one file in one line, with the command that lists them.
// Those of settings of the user name what is set.
func TestJudgeFindings(t *testing.T) {
	finding := func(id, file string, level diag.Level) diag.Finding {
		return diag.Finding{ID: id, File: file, Path: "/p", Line: 4, Level: level, Message: "odd", Remedy: "mend it"}
	}
	warnings, notes := judgeFindings("s.ssp", []diag.Finding{
		finding("A1", "s.ssp/a.fmu!modelDescription.xml", diag.Warning),
		finding("B1", "s.ssp/b.fmu!modelDescription.xml", diag.Warning),
		finding("A3", "s.ssp/a.fmu!modelDescription.xml", diag.Info),
		finding("A4", "s.ssp/a.fmu", diag.Warning),
		finding("A1", "s.ssp/a.fmu!modelDescription.xml", diag.Warning),
		{ID: "C1", Path: "wheel.k_w", Level: diag.Warning, Message: "the value has no effect", Remedy: "remove it"},
		{ID: "C1", Path: "wheel.m_w", Level: diag.Warning, Message: "the value has no effect", Remedy: "remove it"},
	})
	if want := []string{
		"wheel.k_w: the value has no effect; remove it [C1]",
		"wheel.m_w: the value has no effect; remove it [C1]",
		"s.ssp/a.fmu: 3 findings (A1, A4) may affect the results, the first: odd; to see all: macrostep validate s.ssp",
		"s.ssp/b.fmu!modelDescription.xml:4: odd; mend it [B1]",
	}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q", warnings)
	}
	const place = "s.ssp/a.fmu!modelDescription.xml:4: /p: odd "
	if want := []string{place + "[A3]; mend it", place + "[A1]; mend it", "s.ssp/a.fmu:4: /p: odd [A4]; mend it",
		place + "[A1]; mend it"}; !slices.Equal(notes, want) {
		t.Errorf("notes %q", notes)
	}
}
