// Package bench measures what the master costs beside a program in C that takes the
// same steps by hand: both run in turn, on the same machine, in one benchmark, and
// what counts is the ratio of their times.
//
//	go test ./test/bench -bench . -run '^$' -benchtime 5x -real ../shared/real
//
// An operation is one measurement of both; the metrics are medians over them. The
// time is that of the processors (user and system), as a slope between two numbers of
// steps, so that loading and parsing are not in it.
package bench

import (
	"archive/zip"
	"bytes"
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmi/description"
)

var others = flag.String("real", "", "folder with FMUs of others, for the benchmarks that need them")

//go:embed src/floor.c
var floorSource []byte

//go:embed src/trivial.c
var trivialSource []byte

// platforms are the folders of an FMU's library on Linux.
var platforms = map[string]string{"amd64": "linux64", "arm64": "aarch64-linux"}

// tools are the two programs that are compared.
type tools struct{ dir, macrostep, floor string }

func build(b *testing.B) tools {
	b.Helper()
	dir := b.TempDir()
	t := tools{dir, filepath.Join(dir, "macrostep"), filepath.Join(dir, "floor")}
	if err := csrc.WriteHeaders(dir); err != nil {
		b.Fatal(err)
	}
	compile(b, dir, floorSource, "-o", t.floor, "-ldl", "-pthread")
	cmd := exec.Command("go", "build", "-o", t.macrostep, "github.com/macrostep/macrostep/cmd/macrostep")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return t
}

func compile(b *testing.B, dir string, source []byte, flags ...string) {
	b.Helper()
	cc, err := csrc.Compiler()
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "source.c")
	if err := os.WriteFile(path, source, 0o600); err != nil {
		b.Fatal(err)
	}
	args := append(slices.Clone(cc[1:]), "-O2", "-I", dir, path)
	if out, err := exec.Command(cc[0], append(args, flags...)...).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
}

const trivialDescription = `<?xml version="1.0" encoding="UTF-8"?>
<fmiModelDescription fmiVersion="2.0" modelName="trivial" guid="trivial">
  <CoSimulation modelIdentifier="trivial" canHandleVariableCommunicationStepSize="true"/>
  <ModelVariables>
    <ScalarVariable name="u" valueReference="0" causality="input" variability="continuous"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="work" valueReference="2" causality="parameter" variability="fixed" initial="exact"><Real start="0"/></ScalarVariable>
    <ScalarVariable name="y" valueReference="1" causality="output" variability="continuous" initial="exact"><Real start="0"/></ScalarVariable>
  </ModelVariables>
  <ModelStructure><Outputs><Unknown index="3" dependencies=""/></Outputs></ModelStructure>
</fmiModelDescription>
`

// chain writes a system of n trivial FMUs, the input of each at the output of the one
// before, and what the floor reads for it, but for the head. work is for the latter.
func chain(b *testing.B, t tools, n, work int) (system, plan string) {
	b.Helper()
	dir := b.TempDir()
	lib := filepath.Join(dir, "trivial"+csrc.Extension())
	compile(b, t.dir, trivialSource, "-shared", "-fPIC", "-o", lib)
	binary, err := os.ReadFile(lib)
	if err != nil {
		b.Fatal(err)
	}
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, data := range map[string][]byte{"modelDescription.xml": []byte(trivialDescription), "binaries/" + platforms[runtime.GOARCH] + "/trivial" + csrc.Extension(): binary} {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "trivial.fmu"), archive.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	var ssd, wires, p strings.Builder
	fmt.Fprintf(&p, "instances %d\n", n)
	for k := range n {
		fmt.Fprintf(&ssd, `<ssd:Component name="m%d" source="trivial.fmu"><ssd:Connectors><ssd:Connector name="u" kind="input"><ssc:Real/></ssd:Connector><ssd:Connector name="y" kind="output"><ssc:Real/></ssd:Connector></ssd:Connectors></ssd:Component>`+"\n", k)
		fmt.Fprintf(&p, "%s trivial - 1 2 %d 1 0 1 1\n", lib, work)
		if k > 0 {
			fmt.Fprintf(&wires, `<ssd:Connection startElement="m%d" startConnector="y" endElement="m%d" endConnector="u"/>`+"\n", k-1, k)
		}
	}
	fmt.Fprintf(&p, "connections %d\n", n-1)
	for k := 1; k < n; k++ {
		fmt.Fprintf(&p, "%d 0 %d 0\n", k, k-1)
	}
	system = filepath.Join(dir, "chain.ssd")
	document := `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon" name="chain" version="1.0">
<ssd:System name="chain"><ssd:Elements>
` + ssd.String() + "</ssd:Elements>\n"
	if n > 1 {
		document += "<ssd:Connections>\n" + wires.String() + "</ssd:Connections>\n"
	}
	document += "</ssd:System></ssd:SystemStructureDescription>\n"
	if err := os.WriteFile(system, []byte(document), 0o600); err != nil {
		b.Fatal(err)
	}
	return system, p.String()
}

// cpu runs a program and gives its processor time in seconds.
func cpu(b *testing.B, stdin string, name string, args ...string) float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// compare measures the processor time of a step by both programs, in turn, as slopes
// between two numbers of steps, and reports the medians.
func compare(b *testing.B, short, long int, instances int, macrostep, floor func(steps int) float64) {
	b.Helper()
	slope := func(run func(int) float64) float64 {
		return (run(long) - run(short)) / float64(long-short) / float64(instances) * 1e9
	}
	var master, hand, ratios []float64
	for b.Loop() {
		m, f := slope(macrostep), slope(floor)
		master, hand, ratios = append(master, m), append(hand, f), append(ratios, m/f)
	}
	b.ReportMetric(median(master), "ns/FMUstep")
	b.ReportMetric(median(hand), "ns/FMUstep-in-C")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(0, "ns/op")
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// BenchmarkTrivial is the master alone: FMUs that compute nothing, in a chain, all at
// once (Jacobi) and one after another (Gauss–Seidel, as the C program in a sequence).
func BenchmarkTrivial(b *testing.B) {
	t := build(b)
	for _, order := range []struct{ name, algorithm string }{{"jacobi", "explicit"}, {"sequence", "gauss-seidel"}} {
		for _, n := range []int{1, 2, 10, 100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", order.name, n), func(b *testing.B) {
				system, plan := chain(b, t, n, 0)
				const h = 1e-3
				short, long := 1_000_000/n, 11_000_000/n
				compare(b, short, long, n, func(steps int) float64 {
					return cpu(b, "", t.macrostep, "run", system, "--algorithm", order.algorithm, "--record", "none", "--quiet",
						"--output", filepath.Join(t.dir, "r.csv"), "--step-size", fmt.Sprint(h), "--stop-time", fmt.Sprint(float64(steps)*h))
				}, func(steps int) float64 {
					return cpu(b, fmt.Sprintf("steps %d size %g order %s\n%s", steps, h, order.name, plan), t.floor)
				})
			})
		}
	}
}

// BenchmarkParallel is how much faster eight FMUs are stepped by two threads than by one,
// by the time on the wall, when their steps take about 100 µs (2: asked for; auto:
// chosen), and the same of the program in C, which tells what the machine gives at the
// time; and how much cheap ones lose by the choice.
func BenchmarkParallel(b *testing.B) {
	t := build(b)
	for _, c := range []struct {
		name  string
		work  int // about a nanosecond each
		steps int
	}{{"100us", 100_000, 2000}, {"10us", 10_000, 20_000}, {"cheap", 0, 10_000_000}} {
		for _, workers := range []string{"2", "auto"} {
			if workers == "2" && c.work == 0 {
				continue // nobody would ask for it
			}
			b.Run(c.name+"/"+workers, func(b *testing.B) {
				const n = 8
				system, plan := chain(b, t, n, c.work)
				asked := workers
				if workers == "auto" {
					asked = "0"
				}
				run := func(steps int, workers string) float64 {
					args := []string{"run", system, "--algorithm", "explicit", "--record", "none", "--quiet", "--workers", workers,
						"--output", filepath.Join(t.dir, "r.csv"), "--step-size", "1e-3", "--stop-time", fmt.Sprint(float64(steps) * 1e-3)}
					for k := range n {
						args = append(args, "--set", fmt.Sprintf("m%d.work=%d", k, c.work))
					}
					begin := time.Now()
					cpu(b, "", t.macrostep, args...)
					return time.Since(begin).Seconds()
				}
				floor := func(steps int, order string) float64 {
					begin := time.Now()
					cpu(b, fmt.Sprintf("steps %d size 1e-3 order %s\n%s", steps, order, plan), t.floor)
					return time.Since(begin).Seconds()
				}
				run(c.steps/10, "1") // what the steps cost is known from now on
				var ratios, inC []float64
				for b.Loop() {
					one := run(c.steps, "1") - run(c.steps/10, "1")
					many := run(c.steps, asked) - run(c.steps/10, asked)
					ratios = append(ratios, one/many)
					if c.work > 0 {
						one := floor(c.steps, "jacobi") - floor(c.steps/10, "jacobi")
						many := floor(c.steps, "threads") - floor(c.steps/10, "threads")
						inC = append(inC, one/many)
					}
				}
				b.ReportMetric(median(ratios), "speedup")
				if inC != nil {
					b.ReportMetric(median(inC), "speedup-in-C")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkCrane is a crane and its controller, two FMUs of others with nine
// connections, in steps of 0.1 ms without output.
func BenchmarkCrane(b *testing.B) {
	if *others == "" {
		b.Fatal("the crane is an FMU of others: -real names the folder with them")
	}
	t := build(b)
	system, err := filepath.Abs(filepath.Join(*others, "systems/libcosim/demo/demo.ssp"))
	if err != nil {
		b.Fatal(err)
	}
	arm := []string{"p_Crane.e[1]", "p_Crane.e[2]", "p_Crane.e[3]"}
	back := []string{"p_Crane.f[1]", "p_Crane.f[2]", "p_Crane.f[3]", "Act_Limits[1]", "Act_Limits[2]", "Act_Limits[3]"}
	plan := "instances 2\n" +
		byHand(b, system, "CraneController.fmu", nil, back, arm) +
		byHand(b, system, "KnuckleBoomCrane.fmu", map[string]float64{"Spring_Joint.k": 0.005, "mt0_init": 69}, arm, back) +
		"connections 9\n"
	for k := range back {
		plan += fmt.Sprintf("0 %d 1 %d\n", k, k)
	}
	for k := range arm {
		plan += fmt.Sprintf("1 %d 0 %d\n", k, k)
	}
	const h = 1e-4
	compare(b, 100_000, 1_100_000, 2, func(steps int) float64 {
		return cpu(b, "", t.macrostep, "run", system, "--algorithm", "explicit", "--record", "none", "--quiet",
			"--output", filepath.Join(t.dir, "r.csv"), "--step-size", fmt.Sprint(h), "--stop-time", fmt.Sprint(float64(steps)*h))
	}, func(steps int) float64 {
		return cpu(b, fmt.Sprintf("steps %d size %g order jacobi\n%s", steps, h, plan), t.floor)
	})
}

// byHand unpacks an FMU of a package and gives its line of what the floor reads.
func byHand(b *testing.B, system, name string, values map[string]float64, in, out []string) string {
	b.Helper()
	z, err := zip.OpenReader(system)
	if err != nil {
		b.Fatal(err)
	}
	defer z.Close()
	data, err := fs.ReadFile(z, name)
	path := filepath.Join(b.TempDir(), name)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	f, _, err := fmi.Open(path, fmi.OpenOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	refs := map[string]description.ValueReference{}
	for k := range f.Description.Variables {
		refs[f.Description.Variables[k].Name] = f.Description.Variables[k].ValueReference
	}
	line := fmt.Sprintf("%s/binaries/%s/%s%s %s file://%s/resources %d", f.Dir, platforms[runtime.GOARCH],
		f.Description.CoSimulation.ModelIdentifier, csrc.Extension(), f.Description.GUID, f.Dir, len(values))
	for v, x := range values {
		line += fmt.Sprintf(" %d %g", refs[v], x)
	}
	for _, names := range [][]string{in, out} {
		line += fmt.Sprintf(" %d", len(names))
		for _, v := range names {
			line += fmt.Sprintf(" %d", refs[v])
		}
	}
	return line + "\n"
}
