package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Who interrupts a run whose FMU does not return is told which it is and in what
// call; after a second interrupt results and manifest tell how far the run came.
func TestInterruptWhileHanging(t *testing.T) {
	t.Parallel()
	for _, isolate := range []string{"always", "never"} {
		t.Run(isolate, func(t *testing.T) {
			t.Parallel()
			cmd, dir := systemCommand(t, badPair(t, "misbehave"), "fault=EndlessSleep during=DoStep at=0.35", "--isolate", isolate)
			var out listener
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out.until(t, "EndlessSleep on purpose")
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			out.until(t, "--step-timeout")
			if isolate == "always" {
				out.until(t, "waiting for bad (misbehave.fmu) in fmi2")
				out.until(t, "fmi2DoStep")
			}
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code tells
			var m struct {
				Status, Reason string
				EndTime        float64 `json:"end_time"`
			}
			data, err := os.ReadFile(filepath.Join(dir, "results.json"))
			if err == nil {
				err = json.Unmarshal(data, &m)
			}
			if err != nil || cmd.ProcessState.ExitCode() != 1 || m.Status != "incomplete" || !strings.Contains(m.Reason, "interrupted") || m.EndTime < 0.39 || m.EndTime > 0.41 {
				t.Errorf("%v, exit code %d, manifest %+v\n%s", err, cmd.ProcessState.ExitCode(), m, out.String())
			}
		})
	}
}

// Who interrupts an analysis is told how far it came and that nothing of it is left.
func TestInterruptAnalysis(t *testing.T) {
	pictures := filepath.Join(t.TempDir(), "pictures")
	temp := t.TempDir()
	cmd := exec.Command(program, "analyze", system(t, "energy-star-5"), "--order", "5", "--plot", pictures)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	var out listener
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the analysis unpacks the system", func() bool {
		entries, err := os.ReadDir(temp)
		return err == nil && len(entries) > 0
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the exit code tells
	_, err := os.Stat(pictures)
	if text := out.String(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(text, "no report is written") || strings.Contains(text, "stable steps") || err == nil {
		t.Errorf("exit code %d, pictures %t\n%s", cmd.ProcessState.ExitCode(), err == nil, text)
	}
}
