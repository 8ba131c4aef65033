package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/worker"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/test/surroundings"
)

// embedding is the first argument of this program as one that embeds macrostep; the FMU and the mode of isolation follow.
const embedding = "-embeds"

// embeds makes a run in this process, without an engine, and does not return if the program was started for that.
func embeds() {
	worker.Main()
	if len(os.Args) != 4 || os.Args[1] != embedding {
		return
	}
	mode, err := assemble.ParseIsolation(os.Args[3])
	if err == nil {
		_, err = simulate.Run(context.Background(), simulate.Request{System: os.Args[2], Output: "results.csv", Options: assemble.Options{Isolate: mode}})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// An FMU finds the same surroundings in each way to run it: working folder, environment, file mode, locale, streams,
// signals and limits. What it prints appears where an FMU in this process prints.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	fmu, err := surroundings.Pack(t.TempDir(), "surroundings", "", surroundings.Reports)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	write(t, plan, fmt.Sprintf("system: %s\nvary: {u: [1]}\ncollect: [final(y)]\nkeep: all\n", fmu))
	marker := filepath.Join(t.TempDir(), "marker")
	// report returns the rows of a run, by its arguments, and what was printed to standard output and error.
	report := func(results string, command ...string) (rows [][]string, printed [2]string) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "table.txt"), "4.25\n")
		write(t, filepath.Join(dir, "input"), "not for the FMU")
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PWD="+dir)
		var out, complaints strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &complaints
		if command[0] == program {
			in, err := os.Open(filepath.Join(dir, "input"))
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			cmd.Stdin = in
		}
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %v\n%s%s", command, err, &out, &complaints)
		}
		lines := func(text, line string) string { return fmt.Sprint(strings.Count(text, line+"\n")) }
		return readCSV(t, filepath.Join(dir, results)),
			[2]string{lines(out.String(), "to stdout"), lines(complaints.String(), "to stderr")}
	}
	run := func(args ...string) []string { return append([]string{program, "run", fmu}, args...) }
	want, printed := report("results.csv", run("--isolate", "never")...)
	header := want[0]
	if got := want[1][slices.IndexFunc(header, func(name string) bool { return strings.HasSuffix(name, "table") })]; got != "4.25" || len(want) != 22 || printed[0] != "21" {
		t.Fatalf("%d rows, table %q, printed %v", len(want), got, printed)
	}
	for _, way := range []struct {
		name, results string
		command       []string
		other         []string // reports that differ
	}{
		{"isolated", "results.csv", run("--isolate", "always"), nil},
		{"with limits", "results.csv", run("--step-timeout", "60"), nil},
		{"restarted", "results.csv", run("--isolate", "always", "--on-crash", "restart", "--set", "crash=1.85", "--set", "marker="+marker), nil},
		{"in a study", "study/runs/0.csv", []string{program, "study", plan, "--output", "study"}, nil},
		{"embedded", "results.csv", []string{self, embedding, fmu, "never"}, []string{"crashes", "stack", "group"}},
		{"embedded and isolated", "results.csv", []string{self, embedding, fmu, "always"}, []string{"group"}},
		// docs/hosts.md: the folder is empty, and the rest is that of the host. FMUs print to the log.
		{"on a host", "results.csv", run(hostFlag(t)), []string{"y", "table", "environment", "locale", "group"}},
	} {
		t.Run(way.name, func(t *testing.T) {
			got, out := report(way.results, way.command...)
			if len(got) != len(want) {
				t.Fatalf("%d rows", len(got))
			}
			for k, name := range header {
				column := slices.Index(got[0], name)
				if column < 0 {
					t.Fatalf("no column %s", name)
				}
				for n := range want {
					if _, report, _ := strings.Cut(name, "."); got[n][column] != want[n][k] && !slices.Contains(way.other, report) {
						t.Errorf("row %d: %s is %q, and %q in the process of the run", n, name, got[n][column], want[n][k])
						break
					}
				}
			}
			want := printed
			switch way.name {
			case "in a study": // its engines print to standard error
				want[0] = "0"
			case "on a host":
				want = [2]string{"0", "0"}
			case "restarted": // the process that ended may have printed more
				want = out
			}
			if out != want {
				t.Errorf("printed %v, want %v", out, want)
			}
		})
	}
	if _, err := os.Stat(marker); err != nil {
		t.Error("nothing was restarted")
	}
}
