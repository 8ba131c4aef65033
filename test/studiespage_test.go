package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"go.yaml.in/yaml/v3"

	"github.com/macrostep/macrostep/test/long"
)

func studiesPage(t *testing.T) string {
	t.Helper()
	return string(read(t, filepath.Join("..", "docs", "studies.md")))
}

// The files and commands of docs/studies.md run as they are, and print what the page shows. The commands for several
// machines have a test of their own, the study of thousands of runs is a long test.
func TestStudiesPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, compared := runPage(t, dir, studiesPage(t), func(command string) bool {
		return strings.Contains(command, "--serve") || strings.Contains(command, "--nats") || strings.HasPrefix(command, "macrostep worker") ||
			strings.Contains(command, "variance.yaml") && !long.On
	})
	if compared < 25 {
		t.Errorf("only %d lines of output are compared", compared)
	}
	// Sections of a file that is not shown whole.
	sections := 0
	for _, b := range blocksOf(studiesPage(t)) {
		if b.file == "" && isSection(b) {
			sections++
			write(t, filepath.Join(dir, "section.yaml"), "system: macrostep-demo/quarter-car-a.ssp\nvary: {wheel.d_c: [500]}\ncollect: final(chassis.v_c)\n"+b.text())
			code, output := macrostepIn(t, dir, "study", "section.yaml", "--force")
			(&outcome{args: b.lines, code: code, output: output}).is(t, 0, "1 run: 1 ok")
		}
	}
	if sections != 2 {
		t.Errorf("%d sections of files", sections)
	}
}

// isSection reports whether a block is a part of a file.
func isSection(b *block) bool {
	return strings.HasPrefix(b.lines[0], "run:") || strings.HasPrefix(b.lines[0], "max-instances:")
}

// The commands for several machines, the script for Slurm and the manifest for Kubernetes start workers that make runs
// of the study.
func TestStudiesPageMachines(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		return // processes cannot be interrupted from outside
	}
	dir := t.TempDir()
	runPage(t, dir, "    macrostep demo\n", func(string) bool { return false })
	commands := map[string][]string{} // by their flags
	for _, b := range blocksOf(studiesPage(t)) {
		if b.file != "" {
			write(t, filepath.Join(dir, b.file), b.text())
			continue
		}
		for _, line := range b.lines {
			if words := wordsOf(line); slices.Contains(words, "--serve") || slices.Contains(words, "--nats") || strings.HasPrefix(line, "macrostep worker") {
				commands[words[1]+strings.Join(words[len(words)-2:], " ")] = words[1:]
			}
		}
	}
	// The study goes on until all workers have made runs.
	tyres := strings.Replace(string(read(t, filepath.Join(dir, "tyres.yaml"))), ", 5)", ", 50000)", 1)
	write(t, filepath.Join(dir, "tyres.yaml"), tyres)
	begin := func(name string, args ...string) *process {
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "SLURM_CPUS_PER_TASK=1", "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
		p := started(t, cmd)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("%v:\n%s", args, p.out.String())
			}
		})
		return p
	}
	shared := func(name string) string { return filepath.Join(dir, "shared", name) }

	serve := commands["study--serve :4222"]
	all := []*process{begin(program, append(slices.Clone(serve[:len(serve)-1]), "127.0.0.1:0")...)}
	until(t, "join.json", func() bool { _, err := os.Stat(shared("join.json")); return err == nil })
	if info, err := os.Stat(shared("join.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "join.json"), read(t, shared("join.json")), 0o600); err != nil {
		t.Fatal(err)
	}
	all = append(all, begin(program, commands["worker--credentials join.json"]...), begin("sh", "workers.sbatch"), begin(program, commandOfJob(t, dir)...))
	makeRuns(t, dir, "shared", all)

	user := func(file string, rights func(public string) (publish, subscribe string)) *server.NkeyUser {
		key, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, _ := key.PublicKey()
		seed, _ := key.Seed()
		write(t, filepath.Join(dir, file), seed)
		publish, subscribe := rights(public)
		return &server.NkeyUser{Nkey: public, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: []string{publish}}, Subscribe: &server.SubjectPermission{Allow: []string{subscribe}}}}
	}
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, Nkeys: []*server.NkeyUser{
		user("study.creds", func(string) (string, string) { return "_INBOX.>", "macrostep.>" }),
		user("worker1.creds", func(public string) (string, string) { return "macrostep." + public + ".>", "_INBOX." + public + ".>" }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	nats.Start()
	defer nats.Shutdown()
	if !nats.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	here := func(words []string, id string) []string {
		out := slices.Clone(words)
		for i, w := range out {
			if strings.HasPrefix(w, "nats://") {
				out[i] = nats.ClientURL()
			} else if w == "ID" {
				out[i] = id
			}
		}
		return out
	}
	all = []*process{begin(program, here(commands["study--credentials study.creds"], "")...)}
	until(t, "the ID", func() bool { return strings.Contains(all[0].out.String(), "--study ") })
	_, id, _ := strings.Cut(all[0].out.String(), "--study ")
	all = append(all, begin(program, here(commands["worker--study ID"], strings.Fields(id)[0])...))
	makeRuns(t, dir, "clustered", all)
}

// commandOfJob returns the arguments of the command in the manifest for Kubernetes, with the files that pods see.
func commandOfJob(t *testing.T, dir string) []string {
	t.Helper()
	var job struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Command      []string
						VolumeMounts []struct {
							Name, MountPath string
							ReadOnly        bool
						} `yaml:"volumeMounts"`
					}
					Volumes []struct{ Name string }
				}
			}
		}
	}
	err := yaml.Unmarshal(read(t, filepath.Join(dir, "workers.yaml")), &job)
	if err != nil || len(job.Spec.Template.Spec.Containers) != 1 || len(job.Spec.Template.Spec.Volumes) != 2 {
		t.Fatalf("%v, %+v", err, job)
	}
	words := job.Spec.Template.Spec.Containers[0].Command
	if words[0] != "macrostep" {
		t.Fatal(words)
	}
	for i, w := range words {
		words[i] = strings.Replace(w, "/join/", dir+string(filepath.Separator), 1)
	}
	return words[1:]
}

// makeRuns waits until as many processes as there are have made runs of a study, and interrupts them.
func makeRuns(t *testing.T, dir, folder string, all []*process) {
	t.Helper()
	until(t, fmt.Sprint("runs of ", len(all), " processes"), func() bool {
		for _, p := range all {
			if out := p.out.String(); strings.HasPrefix(out, "macrostep: ") || strings.Contains(out, "\nmacrostep: ") {
				t.Fatalf("%v has ended:\n%s", p.Args, out)
			}
		}
		data, _ := os.ReadFile(filepath.Join(dir, folder, "results.csv"))
		processes := map[string]bool{}
		for line := range strings.Lines(string(data)) {
			engine := strings.TrimSpace(line[strings.LastIndex(line, ",")+1:])
			if at := strings.LastIndex(engine, ":"); at > 0 && strings.HasSuffix(line, "\n") {
				processes[engine[:at]] = true
			}
		}
		return len(processes) == len(all)
	})
	for _, p := range slices.Backward(all) {
		p.signal(t, os.Interrupt)
		if code := p.end(); code != 1 || !strings.Contains(p.out.String(), "interrupted") {
			t.Errorf("%v: exit code %d\n%s", p.Args, code, p.out.String())
		}
	}
}
