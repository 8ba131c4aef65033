package secret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type document struct{ Token, Name string }

func secretOf(token string) document { return document{Token: token, Name: "lab"} }

// Read returns what Write wrote, and bounds what it reads.
func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "key.json")
	if err := Read(path, &document{}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	var got document
	must(t, Write(path, secretOf("first")))
	must(t, Write(path, secretOf("second")))
	must(t, Read(path, &got))
	if got != secretOf("second") {
		t.Error(got)
	}
	for _, text := range []string{"", "{", "no JSON", `["Token"]`, `{"Token":1}`, `{"Token":"` + strings.Repeat("x", mostBytes) + `"}`} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		if err := Read(path, &document{}); !errors.Is(err, ErrDamaged) || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%.20s: %v", text, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestPlain(t *testing.T) {
	for address, want := range map[string]string{
		"nats://u:p@h:4222":                       "nats://h:4222",
		"u:p@h:4222":                              "h:4222",
		"nats://u:p@h, tls://token@i":             "nats://h, tls://i",
		"nats://u:p,q@h":                          "nats://h",
		"nats://u:p%40%2C@h":                      "nats://h",
		"nats://u:p@q@h":                          "nats://h",
		"nats://u:p%zz@[::1]:4222":                "nats://[::1]:4222",
		"h1:4222,h2:4222":                         "h1:4222,h2:4222",
		"nats://h?token=x":                        "nats://h",
		"nats://h?token=x@y":                      "nats://…",
		"nats://u:p?@h":                           "nats://…",
		"nats://a:b@h1,nats://c:d@h2,nats://e@h3": "nats://h1,nats://h2,nats://h3",
		"": "",
	} {
		if got := Plain(address); got != want {
			t.Errorf("%s: %s, not %s", address, got, want)
		}
	}
}
