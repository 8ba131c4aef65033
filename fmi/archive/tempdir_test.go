package archive

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
)

const childEnv = "MACROSTEP_TEST_CHILD_PARENT"

func TestMain(m *testing.M) {
	if parent := os.Getenv(childEnv); parent != "" {
		child(parent)
	}
	os.Exit(m.Run())
}

// child makes a folder with something in it, or the file parent, prints its name and
// waits.
func child(parent string) {
	var path string
	var err error
	if filepath.Ext(parent) == "" {
		var d *Dir
		if d, err = NewTempDir(parent, "ms-"); err == nil {
			path, err = d.Path, os.WriteFile(filepath.Join(d.Path, "x"), []byte("x"), 0o600)
		}
	} else {
		var f *File
		if f, err = NewTempFile(parent); err == nil {
			path = f.Path
			_, err = f.WriteString("part")
		}
	}
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(path)
	time.Sleep(time.Minute) // until it is killed; a select without cases would count as a deadlock
}

// start runs a child and returns the path of its folder or file.
func start(t *testing.T, parent string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+parent)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { kill(cmd) })
	lines := bufio.NewScanner(out)
	if !lines.Scan() || !exists(lines.Text()) {
		t.Fatalf("the child says %q", lines.Text())
	}
	return cmd, lines.Text()
}

func kill(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}

// nothingIn checks that a folder is empty.
func nothingIn(t *testing.T, dir string) {
	t.Helper()
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestTempDir(t *testing.T) {
	parent := t.TempDir()
	d, err := NewTempDir(parent, "ms-")
	must(t, err)
	info, err := os.Stat(d.Path)
	if err != nil || !info.IsDir() || filepath.Dir(d.Path) != parent {
		t.Fatalf("%s: %v, %v", d.Path, info, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
	deep := filepath.Join(d.Path, "a", "b")
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.WriteFile(filepath.Join(deep, "f"), nil, 0o400))
	must(t, os.Chmod(deep, 0o500))
	must(t, d.Remove())
	must(t, d.Remove())
	nothingIn(t, parent)
	for range 3 {
		_, err = NewTempDir(parent, "ms-")
		must(t, err)
	}
	must(t, Cleanup())
	nothingIn(t, parent)
	if _, err := NewTempDir(filepath.Join(t.TempDir(), "none"), "ms-"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a missing folder: %v", err)
	}
}

// The first temporary folder or file in a place removes what killed processes left there, and nothing of living ones.
func TestSweepAfterKill(t *testing.T) {
	for _, prefix := range []string{"ms-", Hidden} {
		dir := t.TempDir()
		parent, first := dir, func() error {
			d, err := NewTempDir(dir, prefix)
			return errors.Join(err, d.Remove())
		}
		if prefix == Hidden { // of a file
			parent = filepath.Join(dir, "a.txt")
			first = func() error { return WriteFile(parent, nil) }
		}
		lock := func(path string) string { return strings.TrimSuffix(path, ".txt") + lockSuffix }
		living, alive := start(t, parent)
		dead, left := start(t, parent)
		kill(dead)
		if !exists(left) {
			t.Fatal("the killed child left nothing")
		}
		must(t, first())
		if exists(left) || exists(lock(left)) || !exists(alive) || !exists(lock(alive)) {
			t.Errorf("%s: of the killed process: %v, of the living one: %v", prefix, exists(left), exists(alive))
		}
		kill(living)
		if got, err := Sweep(dir, prefix); err != nil || !slices.Equal(got, []string{alive}) || exists(lock(alive)) {
			t.Errorf("removed %v, %v, want %s", got, err, alive)
		}
	}
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	names := []string{"ms-0123456g.lock", "ms-0123456789.lock", "other-01234567.lock", "ms-01234567"}
	links := map[string]string{"ms-aaaaaaaa.lock": filepath.Join(outside, "f"), "ms-bbbbbbbb": outside}
	must(t, os.WriteFile(filepath.Join(outside, "f"), nil, 0o600))
	for _, name := range append(names, "ms-bbbbbbbb.lock") {
		must(t, os.WriteFile(filepath.Join(parent, name), nil, 0o600))
	}
	if runtime.GOOS != "windows" {
		for name, target := range links {
			must(t, os.Symlink(target, filepath.Join(parent, name)))
		}
		names = append(names, "ms-aaaaaaaa.lock")
	}
	_, err := Sweep(parent, "ms-")
	must(t, err)
	for _, name := range names {
		if !exists(filepath.Join(parent, name)) {
			t.Errorf("%s was removed", name)
		}
	}
	if !exists(filepath.Join(outside, "f")) {
		t.Error("the sweep followed a link")
	}
}

// TestSweepRace lets sweepers run against makers: no maker may lose a folder.
func TestSweepRace(t *testing.T) {
	parent := t.TempDir()
	var makers, sweepers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		sweepers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					Sweep(parent, "ms-")
				}
			}
		})
		makers.Go(func() {
			for range 100 {
				d, err := NewTempDir(parent, "ms-")
				if err != nil {
					t.Error(err)
					return
				}
				if err := os.WriteFile(filepath.Join(d.Path, "x"), nil, 0o600); err != nil {
					t.Errorf("a living folder was swept: %v", err)
				}
				if err := d.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	makers.Wait()
	close(stop)
	sweepers.Wait()
	nothingIn(t, parent)
}

func TestTempFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	for _, text := range []string{"one", "two"} {
		must(t, WriteFile(path, []byte(text)))
	}
	f, err := NewTempFile(path)
	must(t, err)
	if filepath.Dir(f.Path) != dir || filepath.Ext(f.Path) != ".txt" {
		t.Errorf("%s is not beside %s", f.Path, path)
	}
	_, err = f.WriteString("three")
	must(t, err)
	if data, err := os.ReadFile(path); string(data) != "two" {
		t.Errorf("before: %q, %v", data, err)
	}
	must(t, f.Place(path))
	if err := f.Remove(); err != nil { // it is in its place
		t.Error(err)
	}
	if data, err := os.ReadFile(path); string(data) != "three" {
		t.Errorf("after: %q, %v", data, err)
	}
	if f, err = NewTempFile(path); err != nil {
		t.Fatal(err)
	}
	if err := Cleanup(); err != nil {
		t.Error(err)
	}
	if err := f.Place(path); err == nil {
		t.Error("a file that was removed is placed")
	}
	if err := WriteFile(filepath.Join(path, "b"), nil); err == nil {
		t.Error("a file is a folder")
	}
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	if err := WriteFile(filepath.Join(dir, "folder"), []byte("x")); err == nil {
		t.Error("a folder is replaced")
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("left: %v", list)
	}
}

// When the process ends while it unpacks, nothing is left, and nothing comes after.
func TestEnd(t *testing.T) {
	defer ending.Store(false)
	var items []item
	for i := range 3000 {
		items = append(items, file(fmt.Sprintf("%d/%d", i%10, i), ""))
	}
	path := save(t, pack(t, items...))
	for range 5 {
		ending.Store(false)
		parent := t.TempDir()
		d, err := NewTempDir(parent, "ms-")
		must(t, err)
		done := make(chan error)
		go func() { done <- Unpack(path, d.Path, &diag.List{}, Limits{}) }()
		for !exists(filepath.Join(d.Path, "0", "100")) {
			runtime.Gosched()
		}
		if err := End(); err != nil {
			t.Error(err)
		}
		<-done // it may have been at its end
		if _, err := NewTempDir(parent, "ms-"); !errors.Is(err, errEnding) {
			t.Error(err)
		}
		if err := WriteFile(filepath.Join(parent, "a"), nil); !errors.Is(err, errEnding) {
			t.Error(err)
		}
		nothingIn(t, parent)
	}
}
