package app

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/test/probe"
)

// evil has control characters for a terminal, and characters that change the order of text.
const evil = "\u009b31m\u202eb\u2066"

// harmless checks that a text has no control characters.
func harmless(t *testing.T, what, text string) {
	t.Helper()
	for _, r := range text {
		if r == utf8.RuneError || r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			t.Errorf("%s prints %q", what, text)
			return
		}
	}
}

func TestScreen(t *testing.T) {
	for text, want := range map[string]string{
		"plain: äß→…𝄞\n\tx":         "plain: äß→…𝄞\n\tx",
		"\x1b[31mred\x00\x07\x7f\r": `\x1b[31mred\x00\x07\x7f\x0d`,
		"\x9b31m\xff\xc3(\xe2\x82":  `\x9b31m\xff\xc3(\xe2\x82`,
		evil + "\u200e\u2028":       `\u009b31m\u202eb\u2066\u200e\u2028`,
	} {
		for cut := range len(text) + 1 {
			var b bytes.Buffer
			s := &screen{to: &b}
			for _, part := range []string{text[:cut], text[cut:]} {
				if n, err := s.Write([]byte(part)); n != len(part) || err != nil {
					t.Error(n, err)
				}
			}
			s.flush()
			if b.String() != want || diag.Visible(text) != want {
				t.Errorf("%q cut at %d: %q and %q, want %q", text, cut, b.String(), diag.Visible(text), want)
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1<<16)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	harmless(t, "noise", diag.Visible(string(noise)))
}

// The line of progress is overwritten, and it and the messages above it are escaped.
func TestScreenOfProgress(t *testing.T) {
	var b bytes.Buffer
	con := newConsole(&b)
	con.terminal = func() (int, bool) { return 80, true }
	con.status("t\r" + evil)
	con.log(simulate.Event{Level: slog.LevelWarn, Text: "says " + evil, Facts: " (category=\x1b]0;title\a)"})
	con.clear()
	lines := strings.Split(b.String(), "\r")
	if len(lines) != 6 || lines[1] != `t\x0d`+diag.Visible(evil) || lines[5] != "" {
		t.Errorf("%q", lines)
	}
	harmless(t, "the console", strings.Join(lines, ""))
}

// Names in documents, archives, tables and scenarios are escaped on the screen, and unchanged for
// programs.
func TestScreenOfDocuments(t *testing.T) {
	dir := t.TempDir()
	described(t, filepath.Join(dir, "a.fmu"), model("a", "output Real v"+evil+" m/s", "parameter Real k N 2"))
	described(t, filepath.Join(dir, "b"+evil+".fmu"), model("b", "input Real v"+evil+" m/s"))
	write(t, filepath.Join(dir, "one.csv"), "time,x"+evil+",y\x1b[31m\x9b\n0,1,2\n1,2,3\n")
	write(t, filepath.Join(dir, "two.csv"), "time,x"+evil+",z\x1b[31m\x9b\n0,1,2\n1,5,3\n")
	write(t, filepath.Join(dir, "s.yaml"), "at: [{t: 1, set: {\"v"+evil+"\\e[31m\": 3}}]\n\"no"+evil+"\": \"\\e\"\n")
	if _, err := probe.Zip(filepath.Join(dir, "evil.ssp"), "../"+evil, "", "\x1b[31m", "", "x\x9b", ""); err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, args := range [][]string{
		{"ssp", "new", "a.fmu", "b" + evil + ".fmu", "--connect-by-name", "-o", "s.ssp"},
		{"info", "s.ssp"}, {"info", "s.ssp", "--explain", "nothing" + evil}, {"info", "s.ssp", "--bonds"}, {"ssp", "graph", "s.ssp", "-o", "g" + evil + ".svg"},
		{"validate", "s.ssp", "b" + evil + ".fmu", "evil.ssp"}, {"run", "s.ssp"}, {"run", "a.fmu", "--scenario", "s.yaml"}, {"validate", "s.yaml"},
		{"run", "a.fmu", "--input", "one.csv"}, {"run", "a.fmu", "--set", "x\x1b\x9b=1"},
		{"ssp", "set", "s.ssp", "a.k=5", "-o", "t" + evil + ".ssp"}, {"ssp", "set", "s.ssp", "a.k" + evil + "=5"},
		{"info", "evil.ssp"}, {"ssp", "unpack", "evil.ssp", "-o", "folder"}, {"info", "no\x1b" + evil}, {"no" + evil}, {"run", "--no" + evil},
		{"compare", "one.csv", "two.csv"}, {"plot", "one.csv", "--select", "no\x1b", "-o", "p.svg"}, {"plot", "one.csv", "-o", "p.svg"}, {"report", "one.csv", "-o", "r.html"},
	} {
		_, out, errs := in(t, dir, args...)
		harmless(t, strings.Join(args, " "), out)
		harmless(t, strings.Join(args, " "), errs)
		said += out + errs
	}
	if n := strings.Count(said, diag.Visible(evil)); n < 20 {
		t.Errorf("only %d names are shown: %s", n, said)
	}
	// For programs.
	_, out, _ := in(t, dir, "info", "s.ssp", "--json")
	var d struct {
		System struct{ Components []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || !strings.Contains(out, "b"+evil) {
		t.Errorf("%v: %s", err, out)
	}
	if _, out, _ = in(t, dir, "ssp", "graph", "s.ssp", "-o", "-"); !strings.Contains(out, evil) {
		t.Error(out)
	}
	if _, out, _ = in(t, dir, completeCommand, "run", "s.ssp", "--record", ""); !strings.Contains(out, evil) {
		t.Error(out)
	}
}

// No other file of the program writes to a terminal.
func TestScreenAlone(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") || e.Name() == "screen.go" {
			continue
		}
		source := read(t, e.Name())
		for _, name := range []string{"os.Stdout", "os.Stderr"} {
			if e.Name() == "main.go" {
				source = strings.NewReplacer("os.Stdin, os.Stdout, os.Stderr)", "", "supervise.Options{Stdout: os.Stderr}", "").Replace(source)
			}
			if strings.Contains(source, name) {
				t.Errorf("%s uses %s", e.Name(), name)
			}
		}
	}
}
