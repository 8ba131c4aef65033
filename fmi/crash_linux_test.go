//go:build !macrostep_portable && (amd64 || arm64)

package fmi

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ebitengine/purego"
)

// crashCases are carried out in processes of their own, since nothing is called in
// one after a crash.
var crashCases = []struct {
	name string
	do   func(call func(name string, args ...uintptr) (uintptr, error)) error
	says string // what it gives
	end  string // how the process ends, if it does
}{
	{name: "nothing", do: crashes1("well"), says: "ret 42"},
	{name: "write", do: crashes1("writes", 8), says: "signal SIGSEGV (segmentation fault) at address 0x8"},
	{name: "division", do: crashes1("divides"), says: "signal SIGFPE"},
	{name: "division, x87", do: crashes1("divides87"), says: "signal SIGFPE"},
	{name: "abort", do: crashes1("aborts"), says: "signal SIGABRT"},
	{name: "heap", do: func(call func(string, ...uintptr) (uintptr, error)) error {
		// On a thread of its own, as in a run: other threads make new ones, with heaps whose
		// locks are free.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		_, err := call("spoilsHeap")
		var threads sync.WaitGroup
		for range 20 {
			threads.Go(func() {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				time.Sleep(time.Millisecond)
			})
		}
		threads.Wait()
		return err
	}, says: "signal SIG"},
	{name: "stack overflow", do: func(call func(string, ...uintptr) (uintptr, error)) (err error) {
		OnLargeStack(func() { _, err = call("overflows") })
		return err
	}, says: "by a stack overflow: its stack has 6"},
	{name: "registers", do: crashes1("spoils"), says: "signal SIG"},
	{name: "child", do: crashes1("forks"), says: "ret 1"},
	{name: "own handler", do: crashes1("handles"), says: "ret 11"},
	{name: "own handler, then a crash", do: func(call func(string, ...uintptr) (uintptr, error)) error {
		if ret, err := call("handles"); ret != 11 {
			return err
		}
		_, err := call("writes", 0)
		return err
	}, says: "signal SIGSEGV"},
	{name: "after a callback", do: func(call func(string, ...uintptr) (uintptr, error)) error {
		_, err := call("callsBack", purego.NewCallback(func() uintptr {
			if ret, err := call("well"); ret != 42 {
				panic(err)
			}
			growStack(2000)
			runtime.GC()
			return 1
		}))
		return err
	}, says: "signal SIGSEGV (segmentation fault) at address 0x0"},
	{name: "in a callback", do: func(call func(string, ...uintptr) (uintptr, error)) error {
		var inner error
		_, err := call("callsBack", purego.NewCallback(func() uintptr {
			_, inner = call("writes", 16)
			return 1
		}))
		return fmt.Errorf("inner %w, outer %w", inner, err)
	}, says: "inner an FMU crashed in loading: signal SIGSEGV (segmentation fault) at address 0x10, outer an FMU crashed in loading: signal SIGSEGV (segmentation fault) at address 0x0"},
	{name: "loading", do: func(func(string, ...uintptr) (uintptr, error)) error {
		f, lib := place(nil)
		data, err := os.ReadFile(os.Getenv(crashLibrary) + ".early")
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(lib), 0o755), os.WriteFile(lib, data, 0o755)); err != nil {
			return err
		}
		_, first := f.Instantiate("first", InstanceOptions{})
		other, _ := place(nil)
		other.Dir = f.Dir
		_, second := other.Instantiate("second", InstanceOptions{})
		return fmt.Errorf("%w, %w", first, second)
	}, says: "archive1.fmu crashed in loading: signal SIGSEGV (segmentation fault) at address 0x0, archive2.fmu: refused, because an FMU has crashed in this process: archive1.fmu"},
	{name: "thread of its own", do: crashes1("crashesAside"), says: "lost: an FMU crashed in a thread of its own: signal SIGSEGV (segmentation fault) at address 0x0"},
	{name: "from outside", do: func(func(string, ...uintptr) (uintptr, error)) error {
		_ = syscall.Kill(syscall.Getpid(), syscall.SIGSEGV) // of the process: sent, not raised
		time.Sleep(10 * time.Second)
		return nil
	}, says: "SIGSEGV", end: "goroutine "},
	{name: "taken back", do: func(call func(string, ...uintptr) (uintptr, error)) error {
		_ = CatchCrashes(nil) // gives none
		return crashes1("writes", 8)(call)
	}, says: "SIGSEGV", end: "goroutine "},
}

func crashes1(name string, args ...uintptr) func(func(string, ...uintptr) (uintptr, error)) error {
	return func(call func(string, ...uintptr) (uintptr, error)) error {
		ret, err := call(name, args...)
		if err == nil {
			err = fmt.Errorf("ret %d", ret)
		}
		return err
	}
}

func growStack(n int) byte {
	var room [512]byte
	if n > 0 {
		room[n%len(room)] = growStack(n - 1)
	}
	return room[0]
}

const crashCase, crashLibrary = "MACROSTEP_CRASH_CASE", "MACROSTEP_CRASH_LIBRARY"

// What goes wrong in C code becomes an error of the call, what goes wrong in Go code
// is as ever, before and after.
func TestCatchCrashes(t *testing.T) {
	lib := filepath.Join(tempDir, "crash.so")
	build(t, lib, []string{"crash.c"}, "-lm", "-lpthread")
	build(t, lib+".early", []string{"crash.c"}, "-DIN_LOADING", "-lm", "-lpthread")
	for _, c := range crashCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
			cmd.Env = append(os.Environ(), crashCase+"="+c.name, crashLibrary+"="+lib, "GORACE=atexit_sleep_ms=0")
			out, _ := cmd.CombinedOutput()
			text := string(out)
			if !strings.Contains(text, c.says) || c.end == "" && (cmd.ProcessState.ExitCode() != 0 || strings.Contains(text, "goroutine ")) || !strings.Contains(text, c.end) {
				t.Errorf("%v\n%s", cmd.ProcessState, text)
			}
		})
	}
}

// TestCrashChild is the process of a case; otherwise it does nothing.
func TestCrashChild(t *testing.T) {
	name := os.Getenv(crashCase)
	if name == "" {
		return
	}
	if err := CatchCrashes(func(e *CrashError) {
		fmt.Println("lost:", e)
		os.Exit(0)
	}); err != nil {
		t.Fatal(err)
	}
	lib, _, err := openLibrary(os.Getenv(crashLibrary), 0)
	if err != nil {
		t.Fatal(err)
	}
	goFaults(t)
	for _, c := range crashCases {
		if c.name != name {
			continue
		}
		fmt.Println(c.do(func(name string, args ...uintptr) (uintptr, error) {
			p := symbol(lib, name)
			if p == 0 {
				return 0, fmt.Errorf("there is no %s", name)
			}
			ret, _, err := callForeign(0, p, args...)
			return ret, err
		}))
	}
	if name == "loading" {
		// The loader's lock is held for ever. New threads may wait for it, and the race
		// detector does at the end.
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
	goFaults(t)
	var x, zero float64 = 1, 0
	if y := x / zero; !math.IsInf(y, 1) { // not trapped
		t.Errorf("1/0 = %g", y)
	}
	runtime.GC()
	done := make(chan bool)
	for range 10 {
		go func() { done <- growStack(100) == 0 }()
	}
	for range 10 {
		<-done
	}
}

// goFaults goes wrong in Go code, and recovers.
func goFaults(t *testing.T) {
	t.Helper()
	defer func() {
		if err, ok := recover().(runtime.Error); !ok || !strings.Contains(err.Error(), "nil pointer") {
			t.Errorf("a nil pointer gives %v", err)
		}
	}()
	var nothing *[]byte
	t.Log(bytes.Clone(*nothing))
}
