package process_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/fmi/process"
)

const role = "MACROSTEP_PROCESS_ROLE"

func TestMain(m *testing.M) {
	if name := os.Getenv(role); name != "" {
		if err := roles[name](); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// must fails the test if an error is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// roles are the functions of this program as a child.
var roles = map[string]func() error{
	"exit7": func() error { os.Exit(7); return nil },
	"wait":  wait,
	"report": func() error {
		p, err := openPage()
		if err != nil {
			return err
		}
		copy(p.Region("last words", 1000), "it is done")
		copy(p.Region("other", 200_000)[150_000:], "far")
		fmt.Println("ready")
		return wait()
	},
}

// wait waits for ever.
func wait() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// openPage opens the page that the parent has handed over.
func openPage() (*process.Page, error) {
	n, err := strconv.ParseUint(os.Getenv("PAGE"), 10, 64)
	if err != nil {
		return nil, err
	}
	return process.OpenPage(os.NewFile(uintptr(n), "page"))
}

// newPage makes a page that is closed at the end of the test.
func newPage(t *testing.T) *process.Page {
	t.Helper()
	page, err := process.NewPage()
	must(t, err)
	t.Cleanup(func() { must(t, page.Close()) })
	return page
}

// command is this program in a role. Its input ends when stdin is closed; lines reads its
// output.
func command(t *testing.T, name string, page *process.Page) (cmd *exec.Cmd, stdin *os.File, lines *bufio.Reader) {
	t.Helper()
	inR, inW, err := os.Pipe()
	must(t, err)
	outR, outW, err := os.Pipe()
	must(t, err)
	_, path, err := process.Image()
	must(t, err)
	cmd = exec.Command(path)
	cmd.Env = append(os.Environ(), role+"="+name, "GORACE=atexit_sleep_ms=0")
	if page != nil {
		cmd.Env = append(cmd.Env, fmt.Sprint("PAGE=", process.Hand(cmd, page.File())[0]))
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, outW
	t.Cleanup(func() {
		for _, f := range []*os.File{inR, inW, outR, outW} {
			_ = f.Close()
		}
	})
	return cmd, inW, bufio.NewReader(outR)
}

// start starts this program in a role and waits until it is ready.
func start(t *testing.T, name string, page *process.Page, o process.Options) (c *process.Child, stdin *os.File, lines *bufio.Reader) {
	t.Helper()
	cmd, stdin, lines := command(t, name, page)
	c, err := process.Start(cmd, o)
	must(t, err)
	t.Cleanup(c.Kill)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		rest, _ := lines.Peek(lines.Buffered())
		t.Fatalf("%s: %q, %v, %s", name, line, err, rest)
	}
	return c, stdin, lines
}

// The regions of a child are found after its end.
func TestPageOfTheDead(t *testing.T) {
	page := newPage(t)
	c, _, _ := start(t, "report", page, process.Options{Group: true})
	if c.Gone() || c.Within(0) {
		t.Error("it is gone already")
	}
	c.Kill()
	<-c.Done()
	c.Kill()
	if err := c.Signal(os.Interrupt); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to the dead: %v", err)
	}
	if !c.Gone() || !c.Within(time.Nanosecond) {
		t.Error("it is not gone")
	}
	if r := page.Find("last words"); len(r) != 1000 || !strings.HasPrefix(string(r), "it is done\x00") {
		t.Errorf("found %.20q", r)
	}
	if r := page.Find("other"); len(r) != 200_000 || string(r[150_000:150_003]) != "far" {
		t.Errorf("found %d bytes", len(r))
	}
}

func TestReason(t *testing.T) {
	cmd, _, _ := command(t, "exit7", nil)
	c, err := process.Start(cmd, process.Options{})
	must(t, err)
	<-c.Done()
	if text, outside := process.Reason(c.State()); text != "it exited with code 7" || outside {
		t.Errorf("%s, %v", text, outside)
	}
	if _, err := process.Start(exec.Command("no-such-program"), process.Options{}); err == nil {
		t.Error("what is not there was started")
	}
}
