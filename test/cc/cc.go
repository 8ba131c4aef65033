// Package cc caches compiled C libraries for the tests of all packages.
package cc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi/csrc"
)

// mark is the first argument of a test program that runs as the compiler.
const mark = "-cached-compiler"

// Cache sets $CC to the test program itself, which calls the real compiler and keeps the library in the user's cache
// folder. TestMain must call it first: it does not return in a process that runs as the compiler. If $CC is set already,
// it changes nothing; a test that needs a real compilation sets CC to "".
func Cache() {
	if len(os.Args) > 3 && os.Args[1] == mark {
		os.Exit(call(os.Args[2], os.Args[3:]))
	}
	if os.Getenv("CC") != "" {
		return
	}
	compiler, err := csrc.Compiler()
	if err != nil {
		return // the tests that need one report it
	}
	self, err := os.Executable()
	if err != nil {
		return
	}
	user, err := os.UserCacheDir()
	if err != nil {
		return
	}
	dir := filepath.Join(user, "macrostep-test-libraries")
	words := append([]string{self, mark, dir}, compiler...)
	if strings.ContainsAny(strings.Join(words, ""), " \t") || os.MkdirAll(dir, 0o700) != nil {
		return // $CC is split at spaces
	}
	sweep(dir)
	if err := os.Setenv("CC", strings.Join(words, " ")); err != nil {
		panic(err) // the name is valid
	}
}

// sweep removes libraries that no test has used for a while.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 7*24*time.Hour {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// call compiles, or copies the library of an earlier equal call, and returns the exit code.
func call(dir string, command []string) int {
	cached, out := "", output(command)
	if key, err := key(command); err == nil && out != "" {
		cached = filepath.Join(dir, key)
		if data, err := os.ReadFile(cached); err == nil && os.WriteFile(out, data, 0o755) == nil {
			now := time.Now()
			_ = os.Chtimes(cached, now, now)
			return 0
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	text, err := cmd.CombinedOutput()
	_, _ = os.Stderr.Write(text)
	if err != nil {
		if cmd.ProcessState == nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return cmd.ProcessState.ExitCode()
	}
	if cached != "" && len(text) == 0 { // warnings must appear each time
		keep(cached, out)
	}
	return 0
}

// keep stores a library completely or not at all; it ignores errors.
func keep(cached, library string) {
	data, err := os.ReadFile(library)
	if err != nil {
		return
	}
	f, err := os.CreateTemp(filepath.Dir(cached), "new-*")
	if err != nil {
		return
	}
	_, err = f.Write(data)
	if errors.Join(err, f.Close()) != nil || os.Rename(f.Name(), cached) != nil {
		_ = os.Remove(f.Name())
	}
}

// output is the file that -o names.
func output(command []string) string {
	for i, a := range command {
		if a == "-o" && i+1 < len(command) {
			return command[i+1]
		}
	}
	return ""
}

// errUnknown marks a call whose result depends on more than the key covers.
var errUnknown = errors.New("not cached")

// key returns a hash of everything that a library depends on: the compiler, the arguments without the output and
// paths of folders, and all files in the working folder and the folders of headers.
func key(command []string) (string, error) {
	h := sha256.New()
	path, err := exec.LookPath(command[0])
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	compiler, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "%s %d %v\n", path, compiler.Size(), compiler.ModTime())
	folders := []string{"."}
	out := output(command)
	for _, a := range command[1:] {
		folder, include := strings.CutPrefix(a, "-I")
		switch {
		case a == out:
			a = ""
		case include:
			folders = append(folders, folder)
			a = "-I"
		case filepath.IsAbs(a), strings.HasPrefix(a, "-L"), strings.HasPrefix(a, "-Wl,-rpath"):
			return "", errUnknown
		}
		fmt.Fprintf(h, "%q\n", a)
	}
	for _, folder := range folders {
		fmt.Fprintln(h, "folder")
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || path == filepath.Clean(out) {
				return err
			}
			data, err := os.ReadFile(path)
			rel, _ := filepath.Rel(folder, path)
			fmt.Fprintf(h, "%q %x\n", rel, sha256.Sum256(data))
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
