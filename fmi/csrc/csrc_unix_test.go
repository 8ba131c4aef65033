//go:build unix

package csrc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// must fails the test if an error is not nil.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hanging is a compiler that starts a process, which holds a pipe, and does not end.
func hanging(t *testing.T) (cc []string, pipe string) {
	t.Helper()
	dir := t.TempDir()
	pipe = filepath.Join(dir, "pipe")
	must(t, syscall.Mkfifo(pipe, 0o600))
	return []string{"sh", "-c", `(echo begun; exec sleep 1000) > "$0" & sleep 1000`, pipe}, pipe
}

// gone waits until nobody holds the pipe, which was begun.
func gone(t *testing.T, pipe *os.File) {
	t.Helper()
	if _, err := pipe.Read(make([]byte, 10)); err == nil {
		t.Error("nothing ended the process that the compiler has started")
	}
}

// open opens the pipe, once the process is there.
func open(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	if n, err := f.Read(make([]byte, 10)); n != len("begun\n") {
		t.Fatal(n, err)
	}
	return f
}

func TestLibraryInterrupted(t *testing.T) {
	cc, path := hanging(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted")
	done := make(chan error, 1)
	go func() { done <- Library(ctx, cc, t.TempDir(), "a.so") }()
	pipe := open(t, path)
	cancel(reason)
	if err := <-done; !errors.Is(err, reason) {
		t.Error(err)
	}
	gone(t, pipe)
}

func TestLibraryLimit(t *testing.T) {
	defer func(old time.Duration) { limit = old }(limit)
	limit = 50 * time.Millisecond
	if err := Library(t.Context(), []string{"sh", "-c", "sleep 1000"}, t.TempDir(), "a.so"); err == nil || !strings.Contains(err.Error(), "the C compiler was ended: it did not end within 50ms") {
		t.Error(err)
	}
}
