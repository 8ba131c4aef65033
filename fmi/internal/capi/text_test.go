package capi

import (
	"fmt"
	"testing"
	"unsafe"
)

func FuzzReferences(f *testing.F) {
	f.Add("#r12# ## #x")
	f.Fuzz(func(t *testing.T, text string) {
		ExpandReferences(text, func(byte, uint32) (string, bool) { return "name", true })
	})
}

func TestReferences(t *testing.T) {
	names := map[string]string{"r0": "u", "i5": "count", "b7": "flag", "r4294967295": "last"}
	name := func(kind byte, vr uint32) (string, bool) {
		n, ok := names[fmt.Sprintf("%c%d", kind, vr)]
		return n, ok
	}
	for s, want := range map[string]string{
		"": "", "none": "none", "#r0#": "u", "a #i5# b #b7# c": "a count b flag c", "##": "#", "a##b": "a#b",
		"#r9#": "#r9#", "#x0#": "#x0#", "#r#": "#r#", "#r0": "#r0", "#": "#", "#r0##r0#": "uu",
		"#r4294967295#": "last", "#r4294967296#": "#r4294967296#", "#r-1#": "#r-1#", "###r0#": "#u",
	} {
		if got := ExpandReferences(s, name); got != want {
			t.Errorf("%q gives %q, want %q", s, got, want)
		}
	}
}

func TestCallbackStruct(t *testing.T) {
	if s := unsafe.Sizeof(callbackFunctions{}); s != 5*unsafe.Sizeof(uintptr(0)) {
		t.Errorf("fmi2CallbackFunctions has %d bytes", s)
	}
}

func TestValidUTF8(t *testing.T) {
	for in, want := range map[string]string{"schön": "schön", "sch\xf6n": "schön", "\x80\xff\xe4\xb6": "?ÿä¶"} {
		if got := ValidUTF8(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// Messages of an FMU in errors cannot control a terminal.
func TestEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"plain äö":         "plain äö",
		"\x1b[31mred\x00":  `\x1b[31mred\x00`,
		"two\nlines\t\r\n": "two lines",
		"\u0085next":       `\x85next`,
		"a    b":           "a b",
	} {
		if got := Escaped(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
