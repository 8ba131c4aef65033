//go:build linux

// Command soak runs random systems with random algorithms, parameters and faults, and looks at what each run leaves
// behind:
//
//	go run ./test/soak --seed 7 --duration 10m
//
// A case is a system of our FMUs (package fmus), coupled at random, or one of our example systems; an algorithm with
// some of its parameters, from the catalogue of package algorithms; flags of macrostep run; and often something that
// goes wrong: an FMU that misbehaves or ends its process, a full disk, a pipe that nobody reads, a signal, the end of
// a worker. New FMUs, systems, faults, algorithms and parameters are drawn without being named here.
//
// However a run ends, this must hold, and judge has it in code: no panic; no process, temporary folder or stray file
// left; exit code 0 if and only if the manifest says complete (and, of a strict run, not unstable), 2 only if no FMU
// was called and no result touched; every row up to the last newline whole, times increasing, as many rows as the
// manifest counts steps; no NaN or infinity in complete results without a warning; bounded memory; an end.
//
// Cases follow from seed and number alone, but for the moments of signals. What is found is printed with its command,
// and its folder is kept; the exit code is 1 then. It needs Linux, a C compiler and Go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	s := &soak{counts: map[string]int{}, kit: newKit()}
	flag.Uint64Var(&s.seed, "seed", uint64(time.Now().UnixNano()), "what the cases follow from")
	flag.DurationVar(&s.duration, "duration", time.Minute, "no case begins after this time; 0: no bound")
	flag.IntVar(&s.first, "first", 0, "number of the first case")
	flag.IntVar(&s.cases, "cases", 0, "number of cases; 0: as many as the duration allows")
	flag.IntVar(&s.parallel, "parallel", runtime.NumCPU(), "cases at the same time")
	flag.StringVar(&s.program, "program", "", "binary of macrostep; none: it is built")
	flag.StringVar(&s.work, "work", "", "folder for what is built and found; none: a temporary one, kept if something is found")
	flag.Parse()
	if flag.NArg() > 0 || s.parallel < 1 || s.duration <= 0 && s.cases <= 0 {
		fmt.Fprintln(os.Stderr, "soak: there are flags only; --parallel is at least 1, and --duration or --cases above 0")
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	found, err := s.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || found > 0 {
		os.Exit(1)
	}
}

// soak is one soak, and what has come of it so far.
type soak struct {
	seed          uint64
	duration      time.Duration
	first, cases  int
	parallel      int
	program, work string
	remove        bool // the work folder is temporary

	kit *kit

	mu     sync.Mutex
	next   int
	found  int
	counts map[string]int
}

// run carries out the cases and gives the number of those with findings.
func (s *soak) run(ctx context.Context) (found int, err error) {
	if err := s.prepare(); err != nil {
		return 0, err
	}
	begun := time.Now()
	fmt.Printf("soak --seed %d, from case %d on, in %s\n", s.seed, s.first, s.work)
	var wg sync.WaitGroup
	errs := make([]error, s.parallel)
	for w := range s.parallel {
		wg.Go(func() {
			for errs[w] == nil && ctx.Err() == nil && (s.duration <= 0 || time.Since(begun) < s.duration) {
				number, ok := s.take()
				if !ok {
					return
				}
				errs[w] = s.one(ctx, number)
			}
		})
	}
	wg.Wait()
	s.report(time.Since(begun))
	err = errors.Join(errs...)
	if s.remove && s.found == 0 && err == nil {
		err = os.RemoveAll(s.work)
	}
	return s.found, err
}

// take returns the number of the next case.
func (s *soak) take() (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cases > 0 && s.next >= s.cases {
		return 0, false
	}
	s.next++
	return s.first + s.next - 1, true
}

func (s *soak) prepare() (err error) {
	if s.remove = s.work == ""; s.remove {
		s.work, err = os.MkdirTemp("", "soak-")
	} else if err = os.MkdirAll(s.work, 0o755); err == nil {
		s.work, err = filepath.Abs(s.work)
	}
	if err != nil {
		return err
	}
	s.kit.dir = filepath.Join(s.work, "fmus")
	if err := os.MkdirAll(s.kit.dir, 0o755); err != nil {
		return err
	}
	if s.program != "" {
		s.program, err = filepath.Abs(s.program)
		return err
	}
	s.program = filepath.Join(s.work, "macrostep")
	build := exec.Command("go", "build", "-o", s.program, "github.com/macrostep/macrostep/cmd/macrostep")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building macrostep: %w\n%s", err, out)
	}
	return nil
}

// one draws and runs a case and judges it.
func (s *soak) one(ctx context.Context, number int) error {
	dir := filepath.Join(s.work, fmt.Sprintf("case-%d", number))
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	c, err := s.kit.draw(s.seed, number, dir)
	if err != nil {
		return fmt.Errorf("case %d: %w", number, err)
	}
	var findings []string
	var labels []string
	for _, step := range c.steps {
		end, err := s.carryOut(ctx, c, step)
		if err != nil {
			return fmt.Errorf("case %d: %w", number, err)
		}
		if ctx.Err() != nil {
			return os.RemoveAll(dir)
		}
		for _, f := range judge(c, step, end) {
			findings = append(findings, f+"\n  "+quoted(c, s.program, step))
		}
		labels = append(labels, end.label)
		if len(findings) > 0 {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range append(slices.Clone(c.labels), labels...) {
		s.counts[l]++
	}
	if len(findings) == 0 {
		return os.RemoveAll(dir)
	}
	s.found++
	fmt.Printf("\nFOUND in case %d (%s)\n", number, strings.Join(c.labels, ", "))
	for _, f := range findings {
		fmt.Println("  " + f)
	}
	fmt.Printf("  kept in %s\n  again: go run ./test/soak --seed %d --first %d --cases 1\n", dir, s.seed, number)
	return nil
}

// quoted returns the command of a step for a shell.
func quoted(c *drawn, program string, st step) string {
	words := append(slices.Clone(c.environment()), program)
	words = append(words, st.args...)
	for i, w := range words {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+") != "" || w == "" {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	how := ""
	if st.files > 0 {
		how = fmt.Sprintf("ulimit -f %d; ", st.files)
	}
	if st.event.kind != "" {
		how += fmt.Sprintf("# %s after %v\n  ", st.event.kind, st.event.after)
	}
	return fmt.Sprintf("cd %s; %senv %s", c.dir, how, strings.Join(words, " "))
}

// report prints the numbers of cases by kind.
func (s *soak) report(took time.Duration) {
	groups := map[string][]string{}
	for _, l := range slices.Sorted(maps.Keys(s.counts)) {
		group, name, _ := strings.Cut(l, "=")
		groups[group] = append(groups[group], fmt.Sprintf("%s %d", name, s.counts[l]))
	}
	fmt.Printf("\n%d cases in %v, %d with findings\n", s.next, took.Round(time.Second), s.found)
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		fmt.Printf("  %s: %s\n", g, strings.Join(groups[g], ", "))
	}
}
