package test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/long"
	"github.com/macrostep/macrostep/test/surroundings"
)

// writers writes a system of two FMUs of which the first, one, does something to files, and returns its folder.
func writers(t *testing.T, files int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "system")
	mkdir(t, filepath.Join(dir, "resources"))
	for name, files := range map[string]int{"one": files, "two": surroundings.Nothing} {
		if _, err := surroundings.Pack(filepath.Join(dir, "resources"), name, "", files); err != nil {
			t.Fatal(err)
		}
	}
	const connectors = `<ssd:Connectors><ssd:Connector name="u" kind="input"/><ssd:Connector name="y" kind="output"/></ssd:Connectors>`
	element := func(name string) string {
		return fmt.Sprintf(`<ssd:Component name=%q source="resources/%s.fmu">%s</ssd:Component>`, name, name, connectors)
	}
	write(t, filepath.Join(dir, "SystemStructure.ssd"), document("2", element("one")+element("two"),
		"one.y → two.u\ntwo.y → one.u"))
	return dir
}

// contents returns the files below a folder, by relative name, without those that the program writes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case e.IsDir() && (name == "study" || name == "cache"):
			return fs.SkipDir
		case e.IsDir(), name == "results.csv", name == "results.json", name == "calls.txt", name == "run.checkpoint":
		case strings.HasPrefix(name, "own-"):
			out["own"] += "x"
		default:
			out[name] = string(read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A command leaves the working folder as the instances of a run alone would, whatever an FMU does to files there, and whether
// that is known from an earlier run or not.
func TestFilesOfFMUs(t *testing.T) {
	take := long.Sample(31)
	for _, kind := range []struct {
		name  string
		files int
		after func(steps string) map[string]string // a run; the steps are those of the call log
	}{
		{"writes", surroundings.Writes, func(steps string) map[string]string {
			return map[string]string{"written.txt": "start\n" + steps, "removed.txt": "r"}
		}},
		{"appends", surroundings.Appends, func(steps string) map[string]string {
			return map[string]string{"appended.txt": "before\nstart\n" + steps, "removed.txt": "r"}
		}},
		{"makes", surroundings.Makes, func(string) map[string]string { return map[string]string{"own": "x", "removed.txt": "r"} }},
		{"removes", surroundings.Removes, func(string) map[string]string { return map[string]string{} }},
		{"writes below", surroundings.WritesBelow, func(steps string) map[string]string {
			return map[string]string{filepath.Join("made", "written.txt"): "start\n" + steps, "removed.txt": "r"}
		}},
	} {
		for _, command := range [][]string{
			{"run", "--algorithm", "explicit", "--param", "order=2", "--checkpoint", "1", "run.checkpoint"},
			{"run", "--algorithm", "implicit", "--param", "solver.kind=newton-los"},
			{"run", "--algorithm", "implicit", "--isolate", "always"},
			{"run", "--algorithm", "ex-milne", "--isolate", "never"},
			{"run", "--algorithm", "implicit", onHost},
			{"analyze", "--order", "0", "--stop-time", "0.3", "--from", "0.09", "--to", "0.1"},
			{"validate", "--dynamic"},
			{"study", "--vary", "one.crash=1e8,1e9", "--collect", "final(one.y)", "--run", "algorithm=implicit", "--output", "study"},
			{"study", "--check", "1", "--vary", "one.crash=1e8,1e9", "--collect", "final(one.y)", "--output", "study"},
		} {
			for _, known := range []bool{false, true} {
				if take() {
					t.Run(fmt.Sprintf("%s/%s/known %v", kind.name, strings.Join(command[:min(len(command), 3)], " "), known), func(t *testing.T) {
						t.Parallel()
						leaves(t, kind.files, kind.after, slices.Clone(command), known)
					})
				}
			}
		}
	}
}

// onHost stands for the flag that runs all components on a host.
const onHost = "host"

// leaves tests the files that a command leaves.
func leaves(t *testing.T, files int, after func(steps string) map[string]string, command []string, known bool) {
	system, dir, cache := writers(t, files), t.TempDir(), t.TempDir()
	call := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, append([]string{args[0], system}, args[1:]...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "LocalAppData="+cache)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	fill := func() map[string]string {
		for _, name := range listed(t, dir) {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range map[string]string{"table.txt": "1", "removed.txt": "r", "appended.txt": "before\n"} {
			if name != "appended.txt" || files == surroundings.Appends {
				write(t, filepath.Join(dir, name), text)
			}
		}
		return contents(t, dir)
	}
	if fill(); known {
		call("run")
	}
	want := fill()
	if i := slices.Index(command, onHost); i >= 0 || command[0] != "run" {
		if i >= 0 {
			command[i] = hostFlag(t)
		}
		call(command...)
		sameContents(t, contents(t, dir), want)
		return
	}
	said := call(append(command, "--debug", "calls=calls.txt", "--verbose")...)
	steps, tests := "", 0
	for line := range strings.Lines(string(read(t, filepath.Join(dir, "calls.txt")))) {
		words := strings.Fields(line) // "0.001 one fmi2DoStep t=0 h=0.1 … -> OK 0.4µs"
		var at, h float64
		if len(words) > 4 && words[1] == "one" && words[2] == "fmi2DoStep" {
			if _, err := fmt.Sscanf(words[3]+" "+words[4], "t=%g h=%g", &at, &h); err != nil {
				t.Fatal(line, err)
			}
			steps += fmt.Sprintf("%.6g\n", at+h)
		}
		if strings.Contains(line, ` "one (`) && strings.Contains(line, "fmi2Instantiate") {
			tests++
		}
	}
	want = after(steps)
	want["table.txt"] = "1"
	sameContents(t, contents(t, dir), want)
	if tests == 0 || steps == "" {
		t.Errorf("%d instances for tests, %d bytes of steps\n%s", tests, len(steps), said)
	}
	if !strings.Contains(said, "changed during the run") {
		t.Errorf("it is not told that files changed\n%s", said)
	}
}

// In a large folder instances for tests run in an empty one, and the run says so. A test that fails there proves nothing.
func TestFilesInLargeFolder(t *testing.T) {
	t.Parallel()
	for files, parts := range map[int][]string{
		surroundings.Writes: {"ran in an empty folder", "has 200 MB, more than 100"},
		surroundings.Needs:  {"its rollback is not fully tested: the test fails in an empty folder", "table.txt is missing"},
	} {
		system, dir := writers(t, files), t.TempDir()
		write(t, filepath.Join(dir, "table.txt"), "1")
		large := filepath.Join(dir, "large.bin")
		write(t, large, "")
		if err := os.Truncate(large, 200<<20); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "run", system, "--algorithm", "explicit", "--checkpoint", "1", "run.checkpoint", "--verbose")
		cmd.Dir = dir
		ownCache(t, cmd)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, part := range parts {
			if !strings.Contains(string(out), part) {
				t.Errorf("%d: it does not say %q:\n%s", files, part, out)
			}
		}
		if files == surroundings.Writes && strings.Count(string(read(t, filepath.Join(dir, "written.txt"))), "\n") != 21 {
			t.Errorf("the FMU has written %q", read(t, filepath.Join(dir, "written.txt")))
		}
	}
}

// sameContents compares the contents of folders.
func sameContents(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s contains %q, not %q", name, got[name], want[name])
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("there is %s", name)
		}
	}
}
