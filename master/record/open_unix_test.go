//go:build unix

package record

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A named pipe without a reader is an error after a while; one whose reader comes
// later gets all that is written, also more than the pipe holds.
func TestNamedPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	must(t, syscall.Mkfifo(path, 0o600))
	if f, err := create(path, os.O_TRUNC, 50*time.Millisecond); err == nil || !strings.Contains(err.Error(), "named pipe") {
		t.Fatalf("file %v, error %v", f, err)
	}
	got := make(chan string)
	go func() {
		time.Sleep(50 * time.Millisecond)
		f, err := os.Open(path)
		if err != nil {
			got <- err.Error()
			return
		}
		defer f.Close()
		time.Sleep(50 * time.Millisecond)
		data, err := io.ReadAll(f)
		if err != nil {
			data = []byte(err.Error())
		}
		got <- string(data)
	}()
	f, err := create(path, 0, 5*time.Minute)
	must(t, err)
	long := strings.Repeat("0123456789", 50_000)
	if _, err := io.WriteString(f, long); err != nil {
		t.Error(err)
	}
	must(t, f.Close())
	if text := <-got; text != long {
		t.Errorf("%d bytes have come, of %d", len(text), len(long))
	}
}
