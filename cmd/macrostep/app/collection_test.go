package app

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// The first collection ends the delay, but not what was set since, such as by a run in real time, which collects nothing.
func TestDelayCollection(t *testing.T) {
	t.Setenv("GOGC", "")
	const usual = 150
	defer debug.SetGCPercent(debug.SetGCPercent(usual))
	present := func() int {
		percent := debug.SetGCPercent(-1)
		debug.SetGCPercent(percent)
		return percent
	}
	collect := func() {
		runtime.GC()
		time.Sleep(time.Millisecond) // for the goroutine that cleans up
	}
	delayCollection()
	if present() <= usual {
		t.Errorf("a collection at %d %% is not delayed", present())
	}
	tries := 0
	for ; present() != usual && tries < 10000; tries++ {
		collect()
	}
	if present() != usual {
		t.Errorf("after a collection, the next is at %d %%", present())
	}
	delayCollection()
	debug.SetGCPercent(-1)
	for range 10 * (tries + 1) {
		collect()
	}
	if present() != -1 {
		t.Errorf("what another set has become %d %%", present())
	}
}
