//go:build unix

package worker

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/macrostep/macrostep/fmi/process"
)

// The end of a worker is noticed while another program keeps its output open, also if the pipe has no deadline, as on
// Windows.
func TestOutputKeptOpen(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	output, kept := os.NewFile(uintptr(ends[0]), "output"), os.NewFile(uintptr(ends[1]), "kept")
	cmd := exec.Command("true")
	cmd.Stdout = kept
	child, err := process.Start(cmd, process.Options{})
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	<-newProcess(child, output, null, nil, func() {}).done
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
}
