package description

import (
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

const terminalsXML = `<fmiTerminalsAndIcons fmiVersion="2.0"><Terminals>
<Terminal name="a"><TerminalMemberVariable variableName="u" variableKind="signal"/><Terminal name="b"/></Terminal>
<Terminal name="b"><TerminalMemberVariable variableName="y" variableKind="signal"/><Terminal name="b"/></Terminal>
</Terminals></fmiTerminalsAndIcons>`

const buildXML = `<fmiBuildDescription fmiVersion="2.0"><BuildConfiguration modelIdentifier="base"><SourceFileSet><SourceFile name="a.c"/></SourceFileSet></BuildConfiguration>
<BuildConfiguration modelIdentifier="base_me"><SourceFileSet><SourceFile name="a.c"/></SourceFileSet></BuildConfiguration></fmiBuildDescription>`

// What no run uses is judged by itself and by the description, line by line.
func TestExtras(t *testing.T) {
	d, _, err := readText(baseXML, false)
	if err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool { return name == "a.c" }
	for _, c := range []struct{ text, old, new, want string }{
		{terminalsXML, "", "", ""},
		{terminalsXML, `<Terminal name="a">`, `<Terminal>`, "2: /fmiTerminalsAndIcons/Terminals/Terminal: the terminal has no name [MD43]"},
		{terminalsXML, `<Terminal name="a">`, `<Terminal name="b">`, `3: /fmiTerminalsAndIcons/Terminals/Terminal: another terminal is called "b" too [MD43]`},
		{terminalsXML, `variableName="y"`, `variableName="z"`, `3: /fmiTerminalsAndIcons/Terminals/Terminal/TerminalMemberVariable: the member "z" is no variable of the FMU [MD43]`},
		{terminalsXML, `variableName="y" `, ``, "the member has no variableName [MD43M]"},
		{terminalsXML, ` variableKind="signal"/><Terminal name="b"/></Terminal>` + "\n<", `/></Terminal>` + "\n<", `the member "u" has no variableKind [MD43M]`},
		{terminalsXML, `</Terminals>`, ``, "4: XML syntax error on line 4"},
		{terminalsXML, terminalsXML, ``, "the document has no element [MD43]"},
		{terminalsXML, terminalsXML, `<html/>`, "the root element is html and not fmiTerminalsAndIcons [MD43]"},
		{terminalsXML, `<Terminals>`, strings.Repeat("<Terminals>", 2*maxDepth), "nested deeper than 100 [MD43]"},
		{buildXML, "", "", ""},
		{buildXML, `modelIdentifier="base">`, `>`, "1: /fmiBuildDescription/BuildConfiguration: the configuration has no modelIdentifier [MD43B]"},
		{buildXML, `"base">`, `"other">`, `no interface with the modelIdentifier "other" [MD43B]`},
		{buildXML, `<SourceFile name="a.c"/></SourceFileSet></BuildConfiguration>` + "\n", `<SourceFile name="a.c"/><SourceFile name="a.c"/></SourceFileSet></BuildConfiguration>` + "\n", `"a.c" stands twice [MD43B]`},
		{buildXML, `"a.c"/></SourceFileSet></BuildConfiguration>` + "\n", `"b.c"/></SourceFileSet></BuildConfiguration>` + "\n", `there is no source file sources/b.c [MD43B]`},
		{buildXML, `<SourceFile name="a.c"/></SourceFileSet></BuildConfiguration>` + "\n", `<SourceFile/></SourceFileSet></BuildConfiguration>` + "\n", `the source file has no name [MD43B]`},
	} {
		l := &diag.List{}
		text := strings.Replace(c.text, c.old, c.new, 1)
		if c.text == terminalsXML {
			CheckTerminals(strings.NewReader(text), "x.xml", d, l)
		} else {
			CheckBuild(strings.NewReader(text), "x.xml", d, has, l)
		}
		switch {
		case c.want == "" && len(l.Findings) > 0:
			t.Errorf("%s: %v", text, l.Findings)
		case c.want != "" && (len(l.Findings) != 1 || !strings.Contains(l.Findings[0].String(), c.want)):
			t.Errorf("%s: %v, want %s", text, l.Findings, c.want)
		}
	}
}

func FuzzExtras(f *testing.F) {
	f.Add(terminalsXML)
	f.Add(buildXML)
	d, _, err := readText(baseXML, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := &diag.List{}
		CheckTerminals(strings.NewReader(text), "x.xml", d, l)
		CheckBuild(strings.NewReader(text), "x.xml", d, func(string) bool { return false }, l)
		for _, x := range l.Findings {
			if x.Message == "" || x.ID == "" {
				t.Errorf("finding %+v", x)
			}
		}
	})
}
