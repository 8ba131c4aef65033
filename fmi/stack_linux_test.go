package fmi

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Whatever threads there are already, and however many want one at a time, each
// gets a large stack; new threads have the usual one afterwards.
func TestOnLargeStack(t *testing.T) {
	usual := func() (size uintptr) {
		get, err := libcSymbol("pthread_getattr_default_np")
		if err != nil {
			t.Fatal(err)
		}
		withAttributes(func(attributes uintptr) {
			callInts(get, attributes)
			size = stackSize(attributes)
		})
		return size
	}
	before := usual()
	var small sync.WaitGroup // threads that are idle then
	for range 20 {
		small.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			runtime.Gosched()
		})
	}
	small.Wait()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			called := false
			OnLargeStack(func() {
				if !stackIsLarge() {
					t.Error("the stack is small")
				}
				runtime.Gosched()
				OnLargeStack(func() { called = stackIsLarge() })
			})
			if !called {
				t.Error("nothing was called in it")
			}
		})
	}
	wg.Wait()
	if now := usual(); now != before || now >= LargeStack {
		t.Errorf("new threads have %d bytes, before it were %d", now, before)
	}
}

// What becomes of the function becomes of the caller.
func TestOnLargeStackEndings(t *testing.T) {
	func() {
		defer func() {
			if text := fmt.Sprint(recover()); !strings.Contains(text, "on purpose") {
				t.Errorf("the panic gives %q", text)
			}
		}()
		OnLargeStack(func() { panic("on purpose") })
	}()
	var wg sync.WaitGroup
	beyond := false
	wg.Go(func() {
		OnLargeStack(runtime.Goexit)
		beyond = true
	})
	wg.Wait()
	if beyond {
		t.Error("the goroutine goes on")
	}
}
