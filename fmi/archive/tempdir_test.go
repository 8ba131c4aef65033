package archive

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
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

// start runs a child and gives the path of its folder.
func start(t *testing.T, parent string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+parent)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestTempDir(t *testing.T) {
	parent := t.TempDir()
	d, err := NewTempDir(parent, "ms-")
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(d.Path)
	if err != nil || !info.IsDir() || filepath.Dir(d.Path) != parent {
		t.Fatalf("%s: %v, %v", d.Path, info, err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v", info.Mode())
	}
	deep := filepath.Join(d.Path, "a", "b")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(deep, "f"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(deep, 0o500); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if list, _ := os.ReadDir(parent); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

func TestTempDirNowhere(t *testing.T) {
	if _, err := NewTempDir(filepath.Join(t.TempDir(), "none"), "ms-"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestCleanup(t *testing.T) {
	parent := t.TempDir()
	for range 3 {
		if _, err := NewTempDir(parent, "ms-"); err != nil {
			t.Fatal(err)
		}
	}
	if err := Cleanup(); err != nil {
		t.Fatal(err)
	}
	if list, _ := os.ReadDir(parent); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

func TestSweepAfterKill(t *testing.T) {
	parent := t.TempDir()
	_, alive := start(t, parent)
	dead, left := start(t, parent)
	kill(dead)
	if !exists(left) {
		t.Fatal("the killed child left nothing: the test tests nothing")
	}
	own, err := NewTempDir(parent, "ms-") // the first in this place sweeps
	if err != nil {
		t.Fatal(err)
	}
	defer own.Remove()
	if exists(left) || exists(left+lockSuffix) {
		t.Error("the folder of the killed process stands")
	}
	for _, stays := range []string{alive, filepath.Join(alive, "x"), alive + lockSuffix, own.Path, own.Path + lockSuffix} {
		if !exists(stays) {
			t.Errorf("%s is gone", stays)
		}
	}
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	parent, outside := t.TempDir(), t.TempDir()
	for _, name := range []string{"ms-0123456g.lock", "ms-012345678.lock", "other-01234567.lock", "ms-01234567"} {
		if err := os.WriteFile(filepath.Join(parent, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := 4
	if runtime.GOOS != "windows" { // a lock file that is a link, and a folder that is one
		if err := os.Symlink(filepath.Join(outside, "f"), filepath.Join(parent, "ms-aaaaaaaa.lock")); err != nil {
			t.Fatal(err)
		}
		want++
	}
	removed, err := Sweep(parent, "ms-")
	if err != nil || len(removed) > 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
	if list, _ := os.ReadDir(parent); len(list) != want {
		t.Errorf("left: %v", list)
	}
	if runtime.GOOS == "windows" {
		return
	}
	if err := os.WriteFile(filepath.Join(outside, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(parent, "ms-bbbbbbbb")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(parent, "ms-bbbbbbbb.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Sweep(parent, "ms-"); err != nil {
		t.Fatal(err)
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
	if list, _ := os.ReadDir(parent); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

func TestSweepGivesNames(t *testing.T) {
	parent := t.TempDir()
	cmd, left := start(t, parent)
	kill(cmd)
	got, err := Sweep(parent, "ms-")
	if err != nil || !slices.Equal(got, []string{left}) {
		t.Errorf("removed %v, %v, want %s", got, err, left)
	}
}

func TestTempFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	for _, text := range []string{"one", "two"} {
		if err := WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := NewTempFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(f.Path) != dir || filepath.Ext(f.Path) != ".txt" {
		t.Errorf("%s is not beside %s", f.Path, path)
	}
	if _, err := f.WriteString("three"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(path); string(data) != "two" {
		t.Errorf("before: %q, %v", data, err)
	}
	if err := f.Place(path); err != nil {
		t.Fatal(err)
	}
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
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "folder"), []byte("x")); err == nil {
		t.Error("a folder is replaced")
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("left: %v", list)
	}
}

func TestSweepFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	alive, writing := start(t, path)
	dead, left := start(t, path)
	kill(dead)
	if !exists(left) {
		t.Fatal("the killed child left nothing: the test tests nothing")
	}
	if err := WriteFile(path, nil); err != nil { // the first in this place sweeps
		t.Fatal(err)
	}
	if exists(left) || !exists(writing) {
		t.Errorf("of the killed process: %v, of the living one: %v", exists(left), exists(writing))
	}
	kill(alive)
	if _, err := Sweep(dir, Hidden); err != nil {
		t.Error(err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("left: %v", list)
	}
}

// When the process ends while it unpacks, nothing is left, and nothing comes after.
func TestEnd(t *testing.T) {
	defer ending.Store(false)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range 3000 {
		if _, err := z.Create(fmt.Sprintf("%d/%d", i%10, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.zip")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		ending.Store(false)
		parent := t.TempDir()
		d, err := NewTempDir(parent, "ms-")
		if err != nil {
			t.Fatal(err)
		}
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
		if list, _ := os.ReadDir(parent); len(list) > 0 {
			t.Errorf("left: %v", list)
		}
	}
}
