package workdir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master/workdir"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes files into a folder; names that end with a slash are folders.
func fill(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(path, 0o777))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must(t, os.WriteFile(path, []byte(name), 0o666))
	}
}

// tree lists what is below a folder.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(dir, path); name != "." {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}))
	return names
}

// The changes of FMUs are seen, those of the program and of macrostep's temporary files are not.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "kept", "written", "grown", "removed", "replaced", "sub/deep/written", "own", "empty/")
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"kept", "written", "grown", "replaced", "sub/deep/written"} {
		must(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	view, err := workdir.Folder{Path: dir, Own: []string{filepath.Join(dir, "own"), filepath.Join(dir, "later"), filepath.Join(dir, "study")}}.Watch()
	must(t, err)
	if names, err := view.Changed(); err != nil || names != nil {
		t.Errorf("nothing has changed: %v, %v", names, err)
	}
	fill(t, dir, "written", "made", ".hidden/made", "sub/deep/written", "folder/", "own", "later", "study/rows", ".macrostep-12345678.csv", ".git/index")
	f, err := os.OpenFile(filepath.Join(dir, "grown"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("x")
	must(t, errors.Join(err, f.Close(), os.Chtimes(filepath.Join(dir, "grown"), old, old)))
	must(t, os.Remove(filepath.Join(dir, "removed")))
	must(t, os.Rename(filepath.Join(dir, "replaced"), filepath.Join(dir, "moved")))
	must(t, os.WriteFile(filepath.Join(dir, "replaced"), []byte("REPLACED"), 0o666))
	must(t, os.Chtimes(filepath.Join(dir, "replaced"), old, old))
	names, err := view.Changed()
	must(t, err)
	want := []string{".hidden", filepath.Join(".hidden", "made"), "folder", "grown", "made", "moved", "removed", "replaced", filepath.Join("sub", "deep", "written"), "written"}
	if !slices.Equal(names, want) {
		t.Errorf("changed: %q, want %q", names, want)
	}
}

// A copy has the files with their contents, modes and times, those to which links lead, too, but no FMUs.
func TestCopy(t *testing.T) {
	dir, outside, into := t.TempDir(), t.TempDir(), t.TempDir()
	fill(t, dir, "a", "sub/b", "m.fmu", "s.SSP", "own", ".git/index", ".rc")
	fill(t, outside, "linked/c")
	must(t, os.Chmod(filepath.Join(dir, "a"), 0o400))
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	must(t, os.Chtimes(filepath.Join(dir, "sub", "b"), old, old))
	want := []string{".rc", "a", "sub", "sub/b"}
	if runtime.GOOS != "windows" {
		must(t, os.Symlink(filepath.Join(outside, "linked"), filepath.Join(dir, "link")))
		must(t, os.Symlink(dir, filepath.Join(dir, "sub", "loop")))
		must(t, os.Symlink("nowhere", filepath.Join(dir, "broken")))
		want = []string{".rc", "a", "link", "link/c", "sub", "sub/b"}
	}
	must(t, workdir.Folder{Path: dir, Own: []string{filepath.Join(dir, "own")}}.Copy(into, nil))
	got := tree(t, into)
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("there is no %s in %q", name, got)
		}
	}
	if slices.ContainsFunc(got, func(name string) bool {
		return strings.HasSuffix(name, ".fmu") || strings.HasSuffix(name, ".SSP") || strings.Contains(name, "own") || strings.Contains(name, ".git") ||
			strings.Contains(name, "loop") || strings.Contains(name, "broken")
	}) {
		t.Errorf("it has %q", got)
	}
	info, err := os.Stat(filepath.Join(into, "sub", "b"))
	must(t, err)
	text, err := os.ReadFile(filepath.Join(into, "sub", "b"))
	if must(t, err); string(text) != "sub/b" || !info.ModTime().Equal(old) {
		t.Errorf("%q of %v", text, info.ModTime())
	}
	must(t, os.WriteFile(filepath.Join(into, "a"), []byte("changed"), 0))
	if text, _ := os.ReadFile(filepath.Join(dir, "a")); string(text) != "a" {
		t.Error("the original has changed")
	}
}

// A folder beyond the limits is neither copied nor watched.
func TestTooLarge(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "large")
	must(t, os.Truncate(filepath.Join(dir, "large"), workdir.MostBytes+1<<20))
	var large *workdir.TooLargeError
	into := t.TempDir()
	if err := (workdir.Folder{Path: dir}).Copy(into, nil); !errors.As(err, &large) || len(tree(t, into)) > 0 {
		t.Errorf("%v, %v", err, tree(t, into))
	}
	if _, err := (workdir.Folder{Path: dir}).Watch(); err != nil {
		t.Error(err)
	}
	if err := (workdir.Folder{Path: dir, Own: []string{filepath.Join(dir, "large")}}).Copy(into, nil); err != nil {
		t.Error(err)
	}
	for k := range workdir.MostFiles {
		fill(t, dir, fmt.Sprint("f", k))
	}
	if _, err := (workdir.Folder{Path: dir}).Watch(); !errors.As(err, &large) {
		t.Error(err)
	}
}

// The copy of the working folder is made once, entered and left.
func TestEnter(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir, "a")
	t.Chdir(dir)
	var c workdir.Copy
	path, bare, err := c.Dir()
	if must(t, err); bare != "" || !slices.Equal(tree(t, path), []string{"a"}) {
		t.Errorf("%q, %v", bare, tree(t, path))
	}
	for range 2 {
		bare, err := c.Enter()
		if must(t, err); bare != "" {
			t.Error(bare)
		}
	}
	fill(t, ".", "b")
	must(t, c.Leave())
	if again, _, _ := c.Dir(); again != path || !slices.Equal(tree(t, path), []string{"a", "b"}) {
		t.Errorf("%s has %v", path, tree(t, path))
	}
	must(t, c.Leave())
	if !slices.Equal(tree(t, "."), []string{"a"}) {
		t.Errorf("the folder has %v", tree(t, "."))
	}
	must(t, c.Remove())
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
