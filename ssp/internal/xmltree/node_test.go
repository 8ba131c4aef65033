package xmltree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Lines and columns are those of the start tags; columns count bytes of UTF-8.
func TestPlaces(t *testing.T) {
	text := "\xef\xbb\xbf<?xml version=\"1.0\"?>\r\n<!-- a\nb --><a:r xmlns:a=\"urn:a\" name=\"r\"><a:k name=\"é\"\n x='1'/><a:k/>\n\t<a:k>\n <a:l/></a:k></a:r>\n"
	r := &Reader{List: &diag.List{}, File: "f.xml"}
	root := r.Parse([]byte(text))
	if root == nil {
		t.Fatal(r.List.Err())
	}
	var got []string
	var walk func(n *Node)
	walk = func(n *Node) {
		p := r.Place(n)
		got = append(got, fmt.Sprintf("%s %d:%d", p.Path, p.Line, p.Column))
		for _, k := range n.Kids {
			walk(k)
		}
	}
	walk(root)
	if want := "/r 3:6, /r/k[@name='é'] 3:36, /r/k[1] 4:9, /r/k[2] 5:2, /r/k[2]/l 6:2"; strings.Join(got, ", ") != want {
		t.Errorf("%s\nwant\n%s", strings.Join(got, ", "), want)
	}
}

// What is not well-formed is refused with its line.
func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		"<a>\n<b></a>":                    `f.xml:2: the file is not well-formed XML: XML syntax error on line 2: element <b> closed by </a>`,
		"<a>\n<x:b></y:b>":                `f.xml:2: the file is not well-formed XML: XML syntax error on line 2: element <x:b> closed by </y:b>`,
		"<a/>\n</b>":                      `unexpected end element </b>`,
		"<a>\n":                           `unexpected EOF`,
		" \n":                             `it is empty`,
		"<a/><b/>":                        `it has 2 root elements instead of one`,
		"<a/>text":                        `there is text outside of the root element`,
		strings.Repeat("<a>", maxDepth+1): `line 1: elements are nested deeper than 500`,
		"<?xml version='1.0' encoding='EBCDIC'?><a/>": `the file is encoded in "EBCDIC"; save it as UTF-8`,
		"\xff\xfe<\x00a\x00":                          `the file is encoded in UTF-16; save it as UTF-8`,
		"<a b='\xe4'/>":                               `if it is in ISO-8859-1, begin it with <?xml`,
	} {
		r := &Reader{List: &diag.List{}, File: "f.xml"}
		if n := r.Parse([]byte(text)); n != nil || len(r.List.Findings) != 1 || !strings.Contains(r.List.Findings[0].String(), want) {
			t.Errorf("%.30q: %v", text, r.List.Findings)
		}
	}
}
