package native

import (
	"math"
	"strings"
	"testing"
)

func TestFormatBounds(t *testing.T) {
	a := &slots{stack: []uintptr{1, 2, 3}}
	for format, want := range map[string]string{
		"": "", "%": "%", "50%": "50%", "%5": "%5", "%-": "%-", "%y": "%y", "%l": "%l", "%%": "%", "a%%b": "a%b",
		"%lld%lld": "12", "%d %d %d %d": "1 2 3 0", "%I64d": "1", "%I32u": "1",
		"%1$d": "%1$d", "%m": "%m",
	} {
		a.used = 0
		if got := cformat(format, a); got != want {
			t.Errorf("%q gives %q, want %q", format, got, want)
		}
	}
	if got := cformat(strings.Repeat("%9999d", 100), a); len(got) > maxMessage+maxField {
		t.Errorf("%d bytes", len(got))
	}
	if got := cformat("%3c|%lc", &slots{stack: []uintptr{'a', '€'}}); got != "  a|€" {
		t.Errorf("characters give %q", got)
	}
	if got := extended(0x8000000000000000, 0x3fff); got != 1 {
		t.Error(got)
	}
	if got := extended(0xa000000000000000, 0xc000); got != -2.5 {
		t.Error(got)
	}
	if !math.IsInf(extended(1<<63, 0x7fff), 1) || !math.IsNaN(extended(3<<62, 0x7fff)) {
		t.Error("not inf, nan")
	}
	q := &slots{floats: []float64{1, 2}, stack: []uintptr{7, 1, 2, 0x3fff4 << 44}, longDouble: longDoubleQuad}
	if got := cformat("%Lf|%g|%d|%Lg", q); got != "(long double)|2|7|1.25" {
		t.Errorf("quads give %q", got)
	}
	if quad(0xc000<<48|1<<47) != -3 || quad(0) != 0 || !math.IsInf(quad(0xffff<<48), -1) || !math.IsNaN(quad(0x7fff<<48|1)) {
		t.Error("quad is wrong")
	}
	d := &slots{stack: []uintptr{uintptr(math.Float64bits(1.5)), 7}, longDouble: longDoubleDouble}
	if got := cformat("%Lg %d", d); got != "1.5 7" {
		t.Errorf("long double as double gives %q", got)
	}
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{"%d", "%5.3f%%", "%*.*e", "%#o", "%ls", "%Lf %s", "#r12#", "%hhn", "%-+ #0123456789.99lld"} {
		f.Add(s, uint64(3))
	}
	var mem Memory
	text, err := Slice[byte](&mem, 16) // the last half stays 0, for wide characters too
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(mem.Release)
	copy(text, "a\xffé%s")
	f.Fuzz(func(t *testing.T, format string, bits uint64) {
		word := uintptr(bits)
		if strings.Contains(format, "s") {
			word = Address(text) // else %s would read anywhere
		}
		a := &slots{ints: []uintptr{word, word, word}, floats: []float64{math.Float64frombits(bits)}, stack: []uintptr{word}}
		if got := cformat(format, a); len(got) > maxMessage+2*maxField+len(format) {
			t.Errorf("%d bytes of %d", len(got), len(format))
		}
	})
}
