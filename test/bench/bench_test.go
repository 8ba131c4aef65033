// Package bench measures the cost of the master beside a program in C that makes the same FMI calls with
// the same arithmetic (src/floor.c). TestFloor shows that both compute the same results.
//
//	go test ./test/bench -run '^$' -bench Row -benchtime 15x -timeout 0 -real ../shared/real
//
// One operation of a benchmark measures both programs, one directly after the other. Times are processor
// times (user and system). They are slopes between two numbers of steps, without loading and parsing;
// -seconds sets the length of the longer run. Metrics are medians over the operations.
//
// The FMUs are: chains of driven oscillators (src/cell.c), each of which takes about 0.2 µs a step and
// never decays to denormal numbers; the quarter car of package fmus, with steps so small that it does not
// come to rest; and third-party FMUs.
package bench

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/csrc"
)

var (
	thirdParty = flag.String("real", "", "folder with third-party FMUs, for the benchmarks that need them")
	workers    = flag.String("workers", "", "--workers of macrostep; empty = its own choice")
	seconds    = flag.Float64("seconds", 2, "processor time of the measured part of each run, at least")
)

//go:embed src/floor.c
var floorSource []byte

// platforms are the folders of an FMU's library on Linux.
var platforms = map[string]string{"amd64": "linux64", "arm64": "aarch64-linux"}

// tools are the two programs that are compared.
type tools struct{ dir, macrostep, floor string }

func build(tb testing.TB) tools {
	tb.Helper()
	dir := tb.TempDir()
	t := tools{dir, filepath.Join(dir, "macrostep"), filepath.Join(dir, "floor")}
	if err := csrc.WriteHeaders(dir); err != nil {
		tb.Fatal(err)
	}
	compile(tb, dir, floorSource, "-o", t.floor, "-ldl", "-lm", "-pthread")
	cmd := exec.Command("go", "build", "-o", t.macrostep, "github.com/macrostep/macrostep/cmd/macrostep")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	return t
}

func compile(tb testing.TB, dir string, source []byte, flags ...string) {
	tb.Helper()
	cc, err := csrc.Compiler()
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(dir, "source.c")
	if err := os.WriteFile(path, source, 0o600); err != nil {
		tb.Fatal(err)
	}
	args := append(slices.Clone(cc[1:]), "-O2", "-ffp-contract=off", "-I", dir, path)
	if out, err := exec.Command(cc[0], append(args, flags...)...).CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
}

// inC describes the work of the C program.
type inC struct {
	scheme          string
	order, substeps int
	bonds           bool // monitor the energy at the bonds
	reads           bool // also read the states after each step
}

// row is an algorithm and its counterpart in C.
type row struct {
	name string
	args []string
	c    inC
	// stages returns the number of consecutive stages in a macro step of n FMUs, each of which waits
	// for the one before.
	stages func(n int) int
}

func once(int) int { return 1 }

func flags(algorithm string, params ...string) []string {
	args := []string{"--algorithm", algorithm}
	for _, p := range params {
		args = append(args, "--param", p)
	}
	return args
}

// rows are the algorithms that the C program implements completely.
var rows = []row{
	{"order-0", flags("explicit"), inC{scheme: "jacobi"}, once},
	{"order-1", flags("explicit", "order=1"), inC{scheme: "jacobi", order: 1}, once},
	{"order-2", flags("explicit", "order=2"), inC{scheme: "jacobi", order: 2}, once},
	{"substeps", flags("explicit", "order=1", "delivery=substeps", "substeps=10"), inC{scheme: "jacobi", order: 1, substeps: 10},
		func(int) int { return 10 }},
	{"gauss-seidel", flags("gauss-seidel", "order=1"), inC{scheme: "sequence", order: 1}, func(n int) int { return n }},
	fixedPoint,
	{"energy", flags("explicit"), inC{scheme: "jacobi", bonds: true}, once},
}

// fixedPoint takes two sweeps in every macro step. Its tolerance is never met, so that the iteration makes
// the one correction it may make; the large tolerances of the control accept any result.
var fixedPoint = row{"fixed-point", flags("implicit", "order=1", "solver.kind=fixed-point", "solver.relaxation=1", "solver.tolerance=1e-300",
	"solver.max-iterations=1", "control.rtol=1e9", "control.atol=1e9"), inC{scheme: "fixed-point", order: 1}, func(int) int { return 2 }}

// of returns the arguments of macrostep for the row.
func (r row) of(s *system) []string {
	if r.c.bonds {
		return append(slices.Clone(r.args), s.monitor...)
	}
	return r.args
}

// runs reports whether the FMUs of a system support the row.
func (r row) runs(s *system) bool {
	return (r.c.order <= s.derivatives || r.c.substeps > 0) && (!r.c.bonds || len(s.bonds) > 0)
}

// systems are made when a benchmark uses them.
var systems = []struct {
	name  string
	real  bool // needs third-party FMUs
	small bool // for tests
	make  func(testing.TB, tools) *system
}{
	{"chain-2", false, true, func(tb testing.TB, t tools) *system { return chain(tb, t, 2, cellStep) }},
	{"chain-10", false, true, func(tb testing.TB, t tools) *system { return chain(tb, t, 10, cellStep) }},
	{"chain-100", false, false, func(tb testing.TB, t tools) *system { return chain(tb, t, 100, cellStep) }},
	{"quarter-car", false, true, quarterCar},
	{"drive", true, true, drive},
	{"crane", true, true, crane},
}

// cost is the time of a run in seconds.
type cost struct{ cpu, wall float64 }

// run runs a program.
func run(tb testing.TB, stdin, name string, args ...string) (cost, []byte) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	took := time.Since(begin).Seconds()
	if err != nil {
		tb.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return cost{(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), took}, out
}

// master runs macrostep without recording.
func (t tools) master(tb testing.TB, s *system, args []string, steps int, h float64) cost {
	tb.Helper()
	all := slices.Concat([]string{"run", s.path, "--record", "none", "--quiet", "--output", filepath.Join(t.dir, "r.csv"),
		"--step-size", fmt.Sprint(h), "--stop-time", fmt.Sprint(float64(steps) * h)}, s.args, args)
	if *workers != "" && !slices.Contains(args, "--workers") {
		all = append(all, "--workers", *workers)
	}
	took, _ := run(tb, "", t.macrostep, all...)
	return took
}

// hand runs the C program.
func (t tools) hand(tb testing.TB, s *system, c inC, steps int, h float64) cost {
	tb.Helper()
	took, _ := run(tb, s.plan(c, steps, h), t.floor)
	return took
}

// slopes are the numbers of steps of two runs, between which the time per macro step is measured in ns.
type slopes struct{ short, long int }

func (l slopes) of(run func(steps int) cost) cost {
	short, long := run(l.short), run(l.long)
	each := 1e9 / float64(l.long-l.short)
	return cost{(long.cpu - short.cpu) * each, (long.wall - short.wall) * each}
}

// lengths returns two numbers of steps whose runs in C differ by -seconds.
func lengths(run func(steps int) cost) slopes {
	run(1)
	start, n := run(1).cpu, 1000
	took := run(n).cpu - start
	for took < *seconds/2 {
		n *= 2
		took = run(n).cpu - start
	}
	measured := int(1.1 * float64(n) * *seconds / took)
	// A run that ends while the motion still builds up would be analysed for growth.
	return slopes{measured / 10, measured/10 + measured}
}

// quantile returns the value below which the part q of the values lie, interpolated linearly.
func quantile(v []float64, q float64) float64 {
	v = slices.Sorted(slices.Values(v))
	at := q * float64(len(v)-1)
	k := int(at)
	return v[k] + (at-float64(k))*(v[min(k+1, len(v)-1)]-v[k])
}

func median(v []float64) float64 { return quantile(v, 0.5) }

// paired measures two programs in turn. It reports the medians of both, and the median and quartiles of
// compare over the pairs. It returns the median of the second.
func paired(b *testing.B, names [2]string, unit string, compare func(first, second float64) float64, one, other func() float64) (base float64) {
	b.Helper()
	var first, second, compared []float64
	for b.Loop() {
		f, s := one(), other()
		first, second, compared = append(first, f), append(second, s), append(compared, compare(f, s))
	}
	b.ReportMetric(median(first), names[0])
	b.ReportMetric(median(second), names[1])
	b.ReportMetric(median(compared), unit)
	b.ReportMetric(quantile(compared, 0.25), unit+"-iqr-low")
	b.ReportMetric(quantile(compared, 0.75), unit+"-iqr-high")
	b.ReportMetric(0, "ns/op")
	return median(second)
}

// ratios is paired with the ratio of the times per FMU and macro step, and returns the time of other in ns.
func ratios(b *testing.B, instances int, of func(cost) float64, one, other func() cost, names [2]string) (base float64) {
	b.Helper()
	each := func(run func() cost) func() float64 {
		return func() float64 { return of(run()) / float64(instances) }
	}
	return paired(b, names, "ratio", func(m, f float64) float64 { return m / f }, each(one), each(other))
}

func processor(c cost) float64 { return c.cpu }
func clock(c cost) float64     { return c.wall }

var besideC = [2]string{"ns/FMUstep", "ns/FMUstep-in-C"}

// forSystems runs a benchmark for all systems.
func forSystems(b *testing.B, t tools, f func(b *testing.B, s *system)) {
	for _, sys := range systems {
		b.Run(sys.name, func(b *testing.B) {
			if sys.real && *thirdParty == "" {
				b.Skip("-real names the folder with third-party FMUs")
			}
			f(b, sys.make(b, t))
		})
	}
}

// BenchmarkRow compares each algorithm on each system with the C program: Row/algorithm/system. An FMU
// step is a whole macro step with all its substeps and sweeps. bound is the highest allowed ratio: the
// factor of the system, and on our own systems 0.1 µs more for every macro step and stage.
func BenchmarkRow(b *testing.B) {
	t := build(b)
	for _, r := range rows {
		b.Run(r.name, func(b *testing.B) {
			forSystems(b, t, func(b *testing.B, s *system) {
				if !r.runs(s) {
					b.Skip("the FMUs cannot do that")
				}
				inC := func(steps int) cost { return t.hand(b, s, r.c, steps, s.step) }
				l := lengths(inC)
				n := len(s.members)
				c := ratios(b, n, processor, func() cost {
					return l.of(func(steps int) cost { return t.master(b, s, r.of(s), steps, s.step) })
				}, func() cost { return l.of(inC) }, besideC)
				b.ReportMetric(s.factor+s.extra*float64(r.stages(n))/(c*float64(n)), "bound")
			})
		})
	}
}

// BenchmarkBeyond measures algorithms without a counterpart in C on the quarter car: their cost beyond the
// calls into the FMUs. The C program makes as many calls by explicit coupling, and reads the states for
// the corrector. An algorithm that chooses step sizes gets equal bounds. Occasional calls for derivatives
// count as cost of the corrector. bound is 400 ns.
func BenchmarkBeyond(b *testing.B) {
	t := build(b)
	const h = 1e-5
	held := inC{scheme: "jacobi"}
	states := inC{scheme: "jacobi", reads: true}
	oneSize := []string{"control.h0=1e-5", "control.h-min=1e-5", "control.h-max=1e-5"}
	for _, r := range []row{
		{name: "corrector-0", args: flags("model-based-corrector"), c: states},
		{name: "corrector-1", args: flags("model-based-corrector", "order=1"), c: inC{scheme: "jacobi", order: 1, reads: true}},
		{name: "energy-correction", args: flags("energy-correction"), c: held},
		{name: "ecco", args: flags("ecco", oneSize...), c: held},
		{name: "predictor-corrector", args: flags("predictor-corrector", oneSize...), c: held},
	} {
		b.Run(r.name, func(b *testing.B) {
			s := quarterCar(b, t)
			inC := func(steps int) cost { return t.hand(b, s, r.c, steps, h) }
			l := lengths(inC)
			paired(b, besideC, "ns-beyond", func(m, c float64) float64 { return m - c },
				func() float64 {
					return l.of(func(steps int) cost { return t.master(b, s, r.args, steps, h) }).cpu / 2
				}, func() float64 { return l.of(inC).cpu / 2 })
			b.ReportMetric(400, "bound")
		})
	}
}

// BenchmarkWith compares runs with an additional feature to the same runs without it, at order 0. bound is
// the highest allowed ratio: 1.2, or 0.1 µs more for a macro step.
func BenchmarkWith(b *testing.B) {
	t := build(b)
	write(b, t.dir, "input.csv", []byte("time,m0.F_in\n0,0.5\n1e9,0.5\n"))
	for _, with := range []struct {
		name string
		args []string
	}{
		{name: "input", args: []string{"--input", filepath.Join(t.dir, "input.csv")}},
		{name: "monitor-energy"},
		{name: "scenario", args: []string{"--scenario", filepath.Join(t.dir, "scenario.yaml")}},
		{name: "checkpoint", args: []string{"--checkpoint", "1e9", filepath.Join(t.dir, "checkpoint")}},
		{name: "live", args: []string{"--live", "0"}},
	} {
		b.Run(with.name, func(b *testing.B) {
			for _, sys := range systems {
				if sys.name != "quarter-car" && sys.name != "chain-10" {
					continue
				}
				b.Run(sys.name, func(b *testing.B) {
					output := "m0.F"
					if sys.name == "quarter-car" {
						if with.name == "input" {
							b.Skip("all its inputs are connected")
						}
						output = "wheel.F_c"
					}
					write(b, t.dir, "scenario.yaml", fmt.Appendf(nil, "name: never\nevents:\n  - when: %s > 1e30\n    scale: {%s: 2}\n", output, output))
					s := sys.make(b, t)
					args := append(flags("explicit"), with.args...)
					if with.name == "monitor-energy" {
						args = append(args, s.monitor...)
					}
					without := func(steps int) cost { return t.master(b, s, flags("explicit"), steps, s.step) }
					l := lengths(func(steps int) cost { return t.hand(b, s, inC{scheme: "jacobi"}, steps, s.step) })
					base := ratios(b, len(s.members), processor, func() cost {
						return l.of(func(steps int) cost { return t.master(b, s, args, steps, s.step) })
					}, func() cost { return l.of(without) }, [2]string{"ns/FMUstep", "ns/FMUstep-without"})
					b.ReportMetric(max(1.2, 1+100/(base*float64(len(s.members)))), "bound")
				})
			}
		})
	}
}

// BenchmarkIsolated compares the wall time of a chain of ten FMUs, of which one or all have separate
// processes, with a C program that has as many processes and waits for them in the same way.
func BenchmarkIsolated(b *testing.B) {
	t := build(b)
	for _, c := range []struct {
		name  string
		args  []string
		count int
	}{{"1", []string{"--isolate", "m0"}, 1}, {"10", []string{"--isolate", "always"}, 10}} {
		b.Run(c.name, func(b *testing.B) {
			s := chain(b, t, 10, cellStep)
			inC := func(steps int) cost {
				took := t.hand(b, s, inC{scheme: "processes", substeps: c.count}, steps, s.step)
				return cost{took.wall, took.wall}
			}
			l := lengths(inC)
			ratios(b, 10, clock, func() cost {
				return l.of(func(steps int) cost { return t.master(b, s, append(flags("explicit"), c.args...), steps, s.step) })
			}, func() cost { return l.of(inC) }, besideC)
			b.ReportMetric(1.5, "bound")
		})
	}
}

// BenchmarkParallel measures the speedup in wall time of eight FMUs with two threads instead of one
// (2: requested; auto: chosen by macrostep), for steps of about 100 µs and 10 µs, and for cheap steps,
// where threads do not pay off. The speedup of the C program shows what the machine can give.
func BenchmarkParallel(b *testing.B) {
	t := build(b)
	const h = 1e-3
	for _, c := range []struct {
		name  string
		work  int // a small step takes about 5 ns
		steps int
	}{{"100us", 20_000, 2000}, {"10us", 2000, 20_000}, {"cheap", 1, 10_000_000}} {
		for _, workers := range []string{"2", "auto"} {
			if workers == "2" && c.work == 1 {
				continue // two threads are no sensible choice
			}
			b.Run(c.name+"/"+workers, func(b *testing.B) {
				s := chain(b, t, 8, c.work)
				asked := workers
				if workers == "auto" {
					asked = "0"
				}
				l := slopes{c.steps / 10, c.steps}
				master := func(workers string) float64 {
					return l.of(func(steps int) cost {
						return t.master(b, s, append(flags("explicit"), "--workers", workers), steps, h)
					}).wall
				}
				hand := func(scheme string) float64 {
					return l.of(func(steps int) cost { return t.hand(b, s, inC{scheme: scheme}, steps, h) }).wall
				}
				t.master(b, s, append(flags("explicit"), "--workers", "1"), c.steps/10, h) // macrostep knows the cost of steps from here on
				var speedup, inC []float64
				for b.Loop() {
					one := master("1")
					speedup = append(speedup, one/master(asked))
					if c.work > 1 {
						one := hand("jacobi")
						inC = append(inC, one/hand("threads"))
					}
				}
				b.ReportMetric(median(speedup), "speedup")
				if inC != nil {
					b.ReportMetric(median(inC), "speedup-in-C")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
