//go:build unix

package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is another user than the one of the tests.
const nobody = 65534

// given makes a file or folder belong to another user, which only root can do.
func given(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away; run the tests as root")
	}
	must(t, os.Chown(path, nobody, nobody))
}

// refused fails the test unless an error is one line that names the file and a remedy.
func refused(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%q, not %q", err, part)
		}
	}
}

// Read takes a file to which only this user has rights, and says how to make it one.
func TestReadModes(t *testing.T) {
	path, link := filepath.Join(t.TempDir(), "key.json"), filepath.Join(t.TempDir(), "link.json")
	must(t, os.Symlink(path, link))
	for _, mode := range []fs.FileMode{0o600, 0o400, 0o700, 0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o644, 0o666} {
		must(t, Write(path, secretOf("x")))
		must(t, os.Chmod(path, mode))
		for _, name := range []string{path, link} {
			var got document
			err := Read(name, &got)
			if mode&0o077 == 0 {
				if err != nil || got != secretOf("x") {
					t.Errorf("%o: %v, %v", mode, got, err)
				}
				continue
			}
			refused(t, err, fmt.Sprintf("%s: other users have rights to this file (mode %04o); run: chmod 600 %s", name, mode, name))
			if got != (document{}) {
				t.Errorf("%o: %v", mode, got)
			}
		}
	}
	must(t, os.Chmod(path, 0o600))
	must(t, Read(link, &document{}))
}

// What is no file of the user is refused at once: a named pipe is not waited for.
func TestReadKinds(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe\n\x1b[2J.json")
	must(t, syscall.Mkfifo(pipe, 0o600))
	refused(t, Read(pipe, &document{}), `pipe\x0a\x1b[2J.json is not a regular file; copy its content`)
	refused(t, Read("/dev/zero", &document{}), "/dev/zero is not a regular file")
	refused(t, Read(dir, &document{}), dir+" is not a regular file")
	refused(t, Folder(pipe), `pipe\x0a\x1b[2J.json is a link or not a folder; remove it`)
}

func TestReadOwner(t *testing.T) {
	path, link := filepath.Join(t.TempDir(), "key.json"), filepath.Join(t.TempDir(), "link.json")
	must(t, Write(path, secretOf("x")))
	must(t, os.Symlink(path, link))
	given(t, path)
	for _, name := range []string{path, link} {
		refused(t, Read(name, &document{}), fmt.Sprintf("%s belongs to another user (%d)", name, nobody), fmt.Sprintf("chown %d %s", os.Geteuid(), name))
	}
	must(t, os.Chown(path, os.Geteuid(), -1))
	must(t, Read(path, &document{}))
}

// Write makes file and folder private, whatever was there before.
func TestWriteModes(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "a", "b")
	path := filepath.Join(dir, "key.json")
	for range 2 {
		must(t, Write(path, secretOf("x")))
		mode(t, path, 0o600)
		mode(t, dir, 0o700)
		must(t, errors.Join(os.Chmod(path, 0o666), os.WriteFile(path+".partial", nil, 0o666)))
	}
}

func mode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != want {
		t.Errorf("%s: mode %o, not %o", path, info.Mode().Perm(), want)
	}
}

// Folder makes a folder of the user private, and refuses one of another user, and a link, whose target another user may have chosen.
func TestFolder(t *testing.T) {
	dir, link := filepath.Join(t.TempDir(), "hosts"), filepath.Join(t.TempDir(), "link")
	must(t, Folder(dir))
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder was made")
	}
	must(t, errors.Join(os.Mkdir(dir, 0o700), os.Symlink(dir, link)))
	for _, had := range []fs.FileMode{0o700, 0o755, 0o770, 0o777} {
		must(t, os.Chmod(dir, had))
		must(t, Folder(dir))
		mode(t, dir, 0o700)
	}
	must(t, os.Chmod(dir, 0o755))
	refused(t, Folder(link), link+" is a link or not a folder; remove it")
	mode(t, dir, 0o755)
	given(t, dir)
	refused(t, Folder(dir), fmt.Sprintf("%s belongs to another user (%d)", dir, nobody), fmt.Sprintf("chown %d %s", os.Geteuid(), dir))
	refused(t, Folder(link), link+" is a link or not a folder; remove it")
	mode(t, dir, 0o755)
}
