package host_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/host"
	"github.com/macrostep/macrostep/fmi/secret"
)

// valid is the ticket of a host with new secrets.
func valid(t *testing.T) host.Ticket {
	t.Helper()
	certificate, _, err := secret.Certify("host.macrostep")
	must(t, err)
	return host.Ticket{Address: "lab7:7447", Token: "token", Certificate: certificate}
}

// refusedWith fails the test unless an error is one line with all parts.
func refusedWith(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q, not %q", err, part)
		}
	}
}

// Without a folder of the user, nothing is taken from the temporary folder, where another user can have put it. A ticket
// that is given by its path needs no folder.
func TestNoFolderOfTheUser(t *testing.T) {
	shared := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, "")
	}
	t.Setenv("TMPDIR", shared)
	t.Setenv("TMP", shared)
	path := filepath.Join(shared, "macrostep", "hosts", "lab7_7447.json")
	must(t, secret.Write(path, valid(t)))
	dir, err := host.TicketDir()
	refusedWith(t, err, "no folder for the tickets", "set HOME or XDG_CONFIG_HOME")
	if dir != "" {
		t.Error(dir)
	}
	_, err = host.NewClient("lab7:7447", "", host.ClientOptions{})
	refusedWith(t, err, "set HOME or XDG_CONFIG_HOME", "or give the ticket of host lab7:7447 in place of its address")
	c, err := host.NewClient(path, "", host.ClientOptions{})
	must(t, err)
	must(t, c.Close())
}

// The folder of the user is used, and is made private.
func TestFolderOfTheUser(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, home)
	}
	dir, err := host.TicketDir()
	must(t, err)
	if rest, err := filepath.Rel(home, dir); err != nil || !filepath.IsLocal(rest) {
		t.Errorf("%s is not in %s", dir, home)
	}
	_, err = host.NewClient("lab7:7447", "", host.ClientOptions{})
	refusedWith(t, err, "there is no ticket for host lab7:7447 ("+dir)
	must(t, secret.Write(filepath.Join(dir, "lab7_7447.json"), valid(t)))
	must(t, os.Chmod(dir, 0o755))
	c, err := host.NewClient("lab7:7447", "", host.ClientOptions{})
	must(t, err)
	must(t, c.Close())
	if runtime.GOOS == "windows" {
		return
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give the folder away; run the tests as root")
	}
	must(t, os.Chown(dir, 65534, -1))
	_, err = host.TicketDir()
	refusedWith(t, err, dir+" belongs to another user (65534)")
	_, err = host.NewClient("lab7:7447", "", host.ClientOptions{})
	refusedWith(t, err, dir+" belongs to another user (65534)", "or give the ticket")
	_, _, _, _, err = host.Listen("127.0.0.1:0", dir)
	refusedWith(t, err, dir+" belongs to another user (65534)")
}

// A ticket is refused if others can have read or written it, if its address is none, and if it is damaged.
func TestTicketsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab7.json")
	open := func() error {
		c, err := host.NewClient(path, "", host.ClientOptions{})
		if err == nil {
			err = c.Close()
		}
		return err
	}
	ticket := valid(t)
	for _, address := range []string{"lab7:7447", "10.0.0.1:1", "[::1]:7447", "[fe80::1%eth0]:65535"} {
		ticket.Address = address
		must(t, secret.Write(path, ticket))
		if err := open(); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"", "lab7", ":7447", "lab7:", "lab7:https", "lab7:-1", "lab7:65536", "::1:7447", "lab7:1:2",
		"lab7\nready:7447", "lab7\x1b[2J:7447", "lab7\u202e:7447", "lab7\t:7447"} {
		ticket.Address = address
		must(t, secret.Write(path, ticket))
		refusedWith(t, open(), path+" is not the ticket of a host")
	}
	ticket.Address, ticket.Certificate = "lab7:7447", "no PEM"
	must(t, secret.Write(path, ticket))
	refusedWith(t, open(), path+" is not the ticket of a host")
	must(t, os.WriteFile(path, []byte("no JSON"), 0o600))
	refusedWith(t, open(), path+" is not the ticket of a host")
	_, err := host.NewClient("lab\nforged:7447", t.TempDir(), host.ClientOptions{})
	refusedWith(t, err, `there is no ticket for host lab\x0aforged:7447`)
	if runtime.GOOS == "windows" {
		return
	}
	must(t, secret.Write(path, valid(t)))
	must(t, os.Chmod(path, 0o644))
	refusedWith(t, open(), "chmod 600 "+path)
	must(t, os.Chmod(path, 0o600))
	must(t, open())
}

// A host does not start with damaged secrets, or those that others can have written. Without the file it makes new ones.
func TestSecretsRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, host.SecretsFile)
	start := func() error {
		l, _, token, _, err := host.Listen("127.0.0.1:0", dir)
		if err != nil {
			return err
		}
		if len(token) < 16 {
			t.Errorf("token %q", token)
		}
		return l.Close()
	}
	must(t, start())
	first, err := os.ReadFile(path)
	must(t, err)
	must(t, start())
	if again, err := os.ReadFile(path); err != nil || string(again) != string(first) {
		t.Errorf("the secrets have changed, %v", err)
	}
	_, other, err := secret.Certify("host.macrostep")
	must(t, err)
	for what, change := range map[string]func(s map[string]string){
		"nothing":         func(s map[string]string) { clear(s) },
		"a short token":   func(s map[string]string) { s["token"] = "x" },
		"no certificate":  func(s map[string]string) { s["certificate"] = strings.Replace(s["certificate"], "M", "*", 1) },
		"no key":          func(s map[string]string) { s["key"] = "" },
		"another key":     func(s map[string]string) { s["key"] = other },
		"a key, cut":      func(s map[string]string) { s["key"] = s["key"][:len(s["key"])/2] },
		"control letters": func(s map[string]string) { s["key"] = "\x1b[2J\n" },
	} {
		must(t, errors.Join(os.Remove(path), start()))
		s := map[string]string{}
		must(t, secret.Read(path, &s))
		change(s)
		must(t, secret.Write(path, s))
		t.Log(what)
		refusedWith(t, start(), path+" is damaged; remove it, and copy the new ticket")
	}
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	refusedWith(t, start(), path+" is damaged; remove it, and copy the new ticket")
	must(t, errors.Join(os.Remove(path), start()))
	if runtime.GOOS == "windows" {
		return
	}
	must(t, os.Chmod(path, 0o604))
	refusedWith(t, start(), "chmod 600 "+path)
	must(t, errors.Join(os.Chmod(path, 0o600), os.Chmod(dir, 0o755)))
	must(t, start())
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give the file away; run the tests as root")
	}
	must(t, os.Chown(path, 65534, -1))
	refusedWith(t, start(), path+" belongs to another user (65534)")
}
