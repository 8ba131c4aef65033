package native

import (
	"testing"
	"time"
)

// Ticks are counted between two looks at the clock each, however far apart those are.
func TestTicks(t *testing.T) {
	StartTicker()
	rate := TickRate()
	if rate < 1e6 || rate > 1e11 {
		t.Fatalf("tick rate %g", rate)
	}
	before0 := time.Now()
	k0, _ := now()
	after0 := time.Now()
	time.Sleep(30 * time.Millisecond)
	before1 := time.Now()
	k1, _ := now()
	after1 := time.Now()
	ticked := float64(k1-k0) / rate
	if least, most := before1.Sub(after0).Seconds(), after1.Sub(before0).Seconds(); ticked < 0.97*least || ticked > 1.03*most {
		t.Errorf("ticks give %g s between %g and %g s by the clock", ticked, least, most)
	}
}
