package fmi

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/internal/capi"
	"github.com/macrostep/macrostep/fmi/internal/native"
	"github.com/macrostep/macrostep/fmi/process"
)

// A process that reports is this program once more, in TestReporter.
const reporterRole, reporterPage, reporterLibrary = "MACROSTEP_REPORTER", "MACROSTEP_REPORTER_PAGE", "MACROSTEP_REPORTER_LIBRARY"

// reporters are the functions of such a process.
var reporters = map[string]func(t *testing.T, r *reporter){
	// Every call reports itself, however it is made.
	"calls": func(t *testing.T, r *reporter) {
		in := r.instance(t, "one")
		r.during = r.show
		warn := func(in *Instance, f capi.Function) { fail(t, in, f, StatusWarning, 1) }
		for _, f := range []capi.Function{capi.SetupExperiment, capi.EnterInitializationMode, capi.ExitInitializationMode} {
			warn(in, f)
			switch f {
			case capi.SetupExperiment:
				must(t, in.SetupExperiment(Experiment{Start: 2}))
			case capi.EnterInitializationMode:
				must(t, in.EnterInitializationMode())
			default:
				must(t, in.ExitInitializationMode())
			}
		}
		warn(in, capi.DoStep)
		_, err := in.DoStep(2, 0.5, false)
		must(t, err)
		state, err := in.GetFMUState(nil)
		must(t, err)
		warn(in, capi.GetString)
		must(t, in.GetString([]description.ValueReference{0}, make([]string, 1)))
		must(t, in.SetFMUState(state))
		all := StepPlan{RealIn: []description.ValueReference{0}, IntegerIn: []description.ValueReference{5}, BooleanIn: []description.ValueReference{5}, RealOut: []description.ValueReference{1}, IntegerOut: []description.ValueReference{5}, BooleanOut: []description.ValueReference{5}}
		r.line("# one crossing")
		first := stepper(t, in, all)
		calls := []capi.Function{capi.SetReal, capi.SetInteger, capi.SetBoolean, capi.DoStep, capi.GetReal, capi.GetInteger, capi.GetBoolean}
		for k, f := range calls {
			warn(in, f)
			_, err := first.Step(3+float64(k), 0.25, true)
			must(t, err)
		}
		warn(in, capi.GetReal)
		must(t, first.Read())
		warn(in, capi.SetReal)
		must(t, first.Write())
		r.line("# a batch")
		two := r.instance(t, "two")
		start(t, two)
		second := stepper(t, two, all)
		g, err := NewBatch([]*Stepper{first, second})
		must(t, err)
		for _, f := range []capi.Function{capi.SetReal, capi.GetBoolean} {
			warn(two, f)
			_, _, err := g.Step(0, 20, 0.5, true)
			must(t, err)
		}
		r.line("# afterwards")
		r.show()
	},
	// It dies in a step.
	"step": func(t *testing.T, r *reporter) {
		one, two := r.instance(t, "one"), r.instance(t, "two")
		start(t, one)
		start(t, two)
		r.during = die
		fail(t, two, capi.DoStep, StatusWarning, 1)
		_, _ = two.DoStep(0, 0.5, false)
	},
	// It dies while nothing is called; an instance is freed.
	"between": func(t *testing.T, r *reporter) {
		in, err := r.fmu.Instantiate("gone", InstanceOptions{})
		must(t, err)
		must(t, in.Free())
		r.instance(t, "one")
		in, err = copied(t, r.fmu.Library()).Instantiate("gone", InstanceOptions{})
		must(t, err)
		must(t, in.Free())
		die()
	},
	// It dies while it loads a library.
	"loading": func(t *testing.T, r *reporter) {
		_, _ = copied(t, os.Getenv(reporterLibrary)+".early").Load(context.Background(), "early")
	},
	// Instances come and go.
	"many": func(t *testing.T, r *reporter) {
		for k := range 500 {
			in, err := r.fmu.Instantiate(fmt.Sprint("c", k), InstanceOptions{Log: r.log})
			must(t, err)
			start(t, in)
			stepper(t, in, StepPlan{RealOut: []description.ValueReference{1}})
			must(t, in.Free())
		}
		die()
	},
	// Messages, more than are kept.
	"messages": func(t *testing.T, r *reporter) {
		in := r.instance(t, "one")
		for range 20 {
			fail(t, in, capi.SetupExperiment, StatusWarning, 1)
			must(t, in.SetupExperiment(Experiment{}))
		}
		report(native.Message{Instance: strings.Repeat("long", 100), Text: strings.Repeat("ä", 500)})
		report(native.Message{Instance: "odd", Status: int32(StatusErr), Text: "a\x1b[31m\xff\nb"})
		die()
	},
}

// die ends this process.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		_ = self.Kill()
	}
	select {}
}

type reporter struct {
	fmu    *FMU
	during func() // called in calls that give a warning
}

func (r *reporter) line(text string) { fmt.Println("- " + text) }

func (r *reporter) log(m LogMessage) {
	if m.Category == "status" && r.during != nil {
		r.during()
	}
}

// instance makes one of the probe.
func (r *reporter) instance(t *testing.T, name string) *Instance {
	return instance(t, r.fmu, name, InstanceOptions{Log: r.log})
}

// show prints the calls under way.
func (r *reporter) show() {
	for _, c := range Calls(process.Shared()) {
		r.line(written(c))
	}
}

func written(c Call) string {
	s := fmt.Sprintf("%s %s %s %s", c.Component, filepath.Base(c.FMU), c.Model, c.Function)
	if c.Timed {
		s += fmt.Sprint(" ", c.Time)
	}
	return s
}

// TestReporter is a process that reports; otherwise it does nothing.
func TestReporter(t *testing.T) {
	role := os.Getenv(reporterRole)
	if role == "" {
		return
	}
	n, err := strconv.ParseUint(os.Getenv(reporterPage), 10, 64)
	must(t, err)
	p, err := process.OpenPage(os.NewFile(uintptr(n), "page"))
	must(t, err)
	process.SetShared(p)
	f := copied(t, os.Getenv(reporterLibrary))
	f.Hash = "sha256:1234"
	reporters[role](t, &reporter{fmu: f})
}

// startReporter starts a process that reports into a page.
func startReporter(t *testing.T, role string) (p *process.Page, c *process.Child, lines *bufio.Scanner) {
	t.Helper()
	lib := filepath.Join(tempDir, "reporter"+native.LibrarySuffix)
	if _, err := os.Stat(lib); err != nil {
		build(t, lib, []string{"probe.c", "log.c"}, "-lpthread", "-lm")
		if native.LibrarySuffix == ".so" {
			build(t, lib+".early", []string{"early.c"})
		}
	}
	p, err := process.NewPage()
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	cmd := exec.Command(os.Args[0], "-test.run=^TestReporter$")
	cmd.Env = append(os.Environ(), reporterRole+"="+role, reporterLibrary+"="+lib, "GORACE=atexit_sleep_ms=0",
		fmt.Sprint(reporterPage, "=", process.Hand(cmd, p.File())[0]), "TMPDIR="+t.TempDir())
	outR, outW, err := os.Pipe()
	must(t, err)
	cmd.Stdout, cmd.Stderr = outW, outW
	c, err = process.Start(cmd, process.Options{Group: true})
	must(t, err)
	_ = outW.Close()
	t.Cleanup(func() {
		c.Kill()
		_ = outR.Close()
	})
	return p, c, bufio.NewScanner(outR)
}

// reported runs a process that reports to its end and returns the page and the lines that
// it printed.
func reported(t *testing.T, role string) (p *process.Page, lines []string) {
	t.Helper()
	p, c, out := startReporter(t, role)
	for out.Scan() {
		if line, ok := strings.CutPrefix(out.Text(), "- "); ok {
			lines = append(lines, line)
		} else if strings.Contains(out.Text(), "_test.go") && strings.Contains(out.Text(), "FAIL") {
			t.Error(out.Text())
		}
	}
	<-c.Done()
	return p, lines
}

func TestReportedCalls(t *testing.T) {
	p, lines := reported(t, "calls")
	want := `one archive1.fmu probe fmi2SetupExperiment 2
one archive1.fmu probe fmi2EnterInitializationMode 2
one archive1.fmu probe fmi2ExitInitializationMode 2
one archive1.fmu probe fmi2DoStep 2
one archive1.fmu probe fmi2GetString 2.5
# one crossing
one archive1.fmu probe fmi2SetReal 3
one archive1.fmu probe fmi2SetInteger 4
one archive1.fmu probe fmi2SetBoolean 5
one archive1.fmu probe fmi2DoStep 6
one archive1.fmu probe fmi2GetReal 7.25
one archive1.fmu probe fmi2GetInteger 8.25
one archive1.fmu probe fmi2GetBoolean 9.25
one archive1.fmu probe fmi2GetReal 9.25
one archive1.fmu probe fmi2SetReal 9.25
# a batch
two archive1.fmu probe fmi2SetReal 20
two archive1.fmu probe fmi2GetBoolean 20.5
`
	want += "# afterwards\n"
	if got := strings.Join(lines, "\n") + "\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if len(Calls(p)) > 0 {
		t.Errorf("under way at the end: %v", Calls(p))
	}
}

// The active calls of a process can be read after its end.
func TestReportOfTheDead(t *testing.T) {
	for role, want := range map[string]struct{ calls, loaded string }{
		"step":    {"two archive1.fmu probe fmi2DoStep 0", "one archive1.fmu probe , two archive1.fmu probe "},
		"between": {"", "one archive1.fmu probe ,  archive2.fmu probe "},
		"many":    {"", " archive1.fmu probe "},
		"loading": {"early archive2.fmu probe loading", "early archive2.fmu probe "},
	} {
		if role == "loading" && native.LibrarySuffix != ".so" {
			continue
		}
		p, _ := reported(t, role)
		texts := func(all []Call) string {
			var out []string
			for _, c := range all {
				out = append(out, written(c))
				if strings.Contains(c.FMU, "archive1") && c.Hash != "sha256:1234" {
					t.Errorf("%s: hash %q", role, c.Hash)
				}
			}
			return strings.Join(out, ", ")
		}
		if calls, loaded := texts(Calls(p)), texts(Loaded(p)); calls != want.calls || loaded != want.loaded {
			t.Errorf("%s: under way are %q, loaded %q; want %q, %q", role, calls, loaded, want.calls, want.loaded)
		}
		if p.Find("calls.0") == nil || p.Find("calls.1") != nil || p.Find("instances.1") != nil {
			t.Errorf("%s: there is not one region of each", role)
		}
	}
}

func TestReportedMessages(t *testing.T) {
	p, _ := reported(t, "messages")
	got := LastMessages(p)
	if len(got) != 8 {
		t.Fatalf("%d messages", len(got))
	}
	for k, m := range got {
		want := LogMessage{Instance: "one", Status: StatusWarning, Text: "function 5 returns 1 at 0 of time"}
		switch k {
		case 6:
			want = LogMessage{Instance: strings.Repeat("long", 24), Text: strings.Repeat("ä", 198) + "…"}
		case 7:
			want = LogMessage{Instance: "odd", Status: StatusErr, Text: `a\x1b[31mÿ b`}
		}
		if m != want {
			t.Errorf("message %d: %+v, want %+v", k, m, want)
		}
	}
}

// Any content of a page can be read without a crash.
func TestScribbledReport(t *testing.T) {
	if len(Calls(nil)) > 0 || len(Loaded(nil)) > 0 || len(LastMessages(nil)) > 0 {
		t.Error("a report without page")
	}
	p, _ := reported(t, "step")
	random := rand.New(rand.NewPCG(3, 4))
	names := []string{"calls.0", "instances.0", "messages"}
	var kept [][]byte
	for _, name := range names {
		kept = append(kept, slices.Clone(p.Find(name)))
	}
	whole := 0
	for round := range 2000 {
		k := random.IntN(len(names))
		r := p.Find(names[k])
		copy(r, kept[k])
		switch near := min(len(r), 1024); round % 3 {
		case 0:
			for range 50 {
				r[random.IntN(near)] = byte(random.Uint32())
			}
		case 1:
			at := random.IntN(near/8) * 8
			*(*uint64)(unsafe.Pointer(&r[at])) = []uint64{0, 1, 1 << 16, 1<<16 | 255, 1<<63 | 28, 1<<64 - 1}[random.IntN(6)]
		default:
			with := byte(random.Uint32())
			for j := range r {
				r[j] = with
			}
		}
		for _, c := range Calls(p) {
			if c.Function == "" || c.FMU == "" {
				t.Fatalf("%+v", c)
			}
			whole++
		}
		Loaded(p)
		LastMessages(p)
		copy(r, kept[k])
	}
	if whole < 500 {
		t.Errorf("the call was found %d times of 2000", whole)
	}
}
