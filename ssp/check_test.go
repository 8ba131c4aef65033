package ssp_test

import (
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/ssp"
	. "github.com/macrostep/macrostep/ssp/internal/ssptest"
)

const dictionaryByItself = `<SignalDictionary version="1.0" xmlns="http://ssp-standard.org/SSP1/SystemStructureSignalDictionary" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"><DictionaryEntry name="x"><ssc:Real/></DictionaryEntry></SignalDictionary>`

// Documents that are no systems are judged by themselves.
func TestCheckPart(t *testing.T) {
	for _, c := range []struct {
		text, root string
		known      bool
		finding    string
	}{
		{BaseSet, "ParameterSet", true, ""},
		{baseMap, "ParameterMapping", true, ""},
		{dictionaryByItself, "SignalDictionary", true, ""},
		{strings.Replace(BaseSet, `name="height"`, `name="gain"`, 1), "ParameterSet", true, "SD16T"},
		{strings.Replace(baseMap, `target="level"`, `target="a.k"`, 1), "ParameterMapping", true, "SD16T"},
		{strings.Replace(dictionaryByItself, `<ssc:Real/>`, ``, 1), "SignalDictionary", true, "SD1"},
		{base, "SystemStructureDescription", false, "SD1"},
		{"hello", "", false, "SD1"},
		{"", "", false, "SD1"},
	} {
		l := &diag.List{}
		root, known := ssp.CheckPart([]byte(c.text), "x.xml", l)
		if root != c.root || known != c.known {
			t.Errorf("%.40q: %q, %t", c.text, root, known)
		}
		if c.finding == "" && len(l.Findings) > 0 || c.finding != "" && (len(l.Findings) != 1 || l.Findings[0].ID != c.finding) {
			t.Errorf("%.40q: %v, want %s", c.text, l.Findings, c.finding)
		}
	}
}
