package test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Rows that go to a terminal are all there, and do nothing to it: names of FMUs stand in
// them.
func TestResultsToTerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmu := filepath.Join(t.TempDir(), "li\u009b31m\u202efe.fmu")
	if err := os.Rename(life(t, "", "PRINT"), fmu); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "run", "--compile", "--step-size", "0.01", "--stop-time", "0.02", "--output", "/dev/stdout", fmu)
	cmd.Dir = t.TempDir()
	var errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = terminal, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	shown, _ := io.ReadAll(master) // an error when nobody has the terminal any more
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	lines := strings.Split(strings.ReplaceAll(string(shown), "\r", ""), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], `time,li\u009b31m\u202efe.`) || !strings.HasPrefix(lines[3], "0.02,") {
		t.Errorf("%q", lines)
	}
	if text := errs.String(); !strings.Contains(text, "printed by the FMU") || !strings.Contains(text, "complete at") {
		t.Error(text)
	}
}
