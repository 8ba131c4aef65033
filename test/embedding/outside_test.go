package embedding

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/record"
)

// outside builds an example in a module of its own outside the repository, like the program of a user,
// and returns its path.
func outside(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// The requirements are those of this module, so that nothing is looked up.
	own := read(filepath.Join(root, "go.mod"))
	module := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(own, "module example.com/"+name)
	write("go.mod", module+"\nrequire github.com/macrostep/macrostep v0.0.0\n\nreplace github.com/macrostep/macrostep => "+strconv.Quote(root)+"\n")
	write("go.sum", read(filepath.Join(root, "go.sum")))
	write("main.go", read(filepath.Join(root, "docs", "examples", name, "main.go")))
	program := filepath.Join(dir, name)
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", program, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building %s outside: %v\n%s", name, err, out)
	}
	return program
}

func call(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	c := exec.Command(program, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, out)
	}
	return string(out)
}

// car builds the FMUs of the quarter car and returns their paths.
func car(t *testing.T, dir string) (chassis, wheel string) {
	t.Helper()
	chassis, err := fmus.Build(dir, "quarter_chassis_a")
	if err == nil {
		wheel, err = fmus.Build(dir, "quarter_wheel_a")
	}
	if err != nil {
		t.Fatal(err)
	}
	return chassis, wheel
}

// Two FMUs are coupled with a controller in Go.
func TestController(t *testing.T) {
	dir := t.TempDir()
	chassis, wheel := car(t, dir)
	out := call(t, dir, outside(t, "controller"), chassis, wheel)
	if !strings.HasPrefix(out, "complete after 4000 steps: chassis.z_c = 0.1") {
		t.Errorf("output %s", out)
	}
	s, err := record.ReadSignals(t.Context(), filepath.Join(dir, "controller.csv"))
	if err != nil {
		t.Fatal(err)
	}
	column := func(name string) int {
		k, ok := s.Column(name)
		if !ok {
			t.Fatalf("no column %s among %v", name, s.Names)
		}
		return k
	}
	force, velocity, total, taken := column("wheel.F_c"), column("chassis.v_c"), column("skyhook.F_c"), column("chassis.F_c")
	damped := 0.0
	for _, at := range s.Times {
		// The function takes the coupled inputs and is evaluated after its sources.
		want := s.At(force, at) + 500*s.At(velocity, at)
		if math.Abs(s.At(total, at)-want) > 1e-9 || s.At(taken, at) != s.At(total, at) {
			t.Fatalf("at %g s the controller gives %g, not %g, and the chassis gets %g", at, s.At(total, at), want, s.At(taken, at))
		}
		damped = max(damped, math.Abs(500*s.At(velocity, at)))
	}
	if damped < 50 {
		t.Errorf("the controller gives %g N at most", damped)
	}
}

// Runs in an engine, with a system that the program builds.
func TestSupervised(t *testing.T) {
	dir := t.TempDir()
	chassis, wheel := car(t, dir)
	out := call(t, dir, outside(t, "supervised"), chassis, wheel)
	if want := "damping 0: complete, 4001 rows\ndamping 500: complete, 4001 rows\ndamping 1000: complete, 4001 rows\n"; out != want {
		t.Errorf("output %s", out)
	}
}

// A program with its own algorithm and the command line of macrostep: the algorithm, with late
// subsystems, substeps and rollback, converges with order 2.
func TestOwnAlgorithm(t *testing.T) {
	dir := t.TempDir()
	program := outside(t, "algorithm")
	if out := call(t, dir, program, "algorithms"); !strings.Contains(out, "\ntwo-sweeps\n") || !strings.Contains(out, "\nmodel-based-corrector\n") {
		t.Errorf("it lists %s", out)
	}
	system, err := fmus.WriteSystem(dir, "two-mass-dd")
	if err != nil {
		t.Fatal(err)
	}
	var at []float64 // by step size, halved each time
	for _, h := range []string{"0.004", "0.002", "0.001"} {
		call(t, dir, program, "run", system, "--algorithm", "two-sweeps", "--param", "substeps=4", "--step-size", h, "--stop-time", "0.8", "-o", "r.csv")
		s, err := record.ReadSignals(t.Context(), filepath.Join(dir, "r.csv"))
		if err != nil {
			t.Fatal(err)
		}
		k, ok := s.Column("mass1.x")
		if !ok {
			t.Fatalf("no column mass1.x among %v", s.Names)
		}
		at = append(at, s.At(k, 0.8))
	}
	if ratio := (at[1] - at[0]) / (at[2] - at[1]); math.Abs(ratio-4) > 0.2 {
		t.Errorf("halving the step makes the changes smaller by %.3g, not by 4: %v", ratio, at)
	}
}

// A device in the loop over UDP, in real time, reaches its speed, and lost answers are reported. How late
// steps are depends on the load of the machine and is not judged.
func TestDevice(t *testing.T) {
	out := call(t, t.TempDir(), outside(t, "hil"))
	m := regexp.MustCompile(`^speed ([\d.]+) rad/s after 500 steps, (\d+) answers lost\nlate by \d+ µs .* (\d+) of 500 deadlines missed\n$`).FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("output %s", out)
	}
	t.Log(out)
	speed, _ := strconv.ParseFloat(m[1], 64)
	if lost, _ := strconv.Atoi(m[2]); lost < 250 && math.Abs(speed-20) > 2 {
		t.Errorf("the motor turns at %g rad/s", speed)
	}
}
