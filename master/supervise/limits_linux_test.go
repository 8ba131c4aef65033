package supervise_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master/supervise"
)

// Limits hold for later works, too, until others are set or the engine is another one. What an earlier work took does not count.
func TestLimitsStay(t *testing.T) {
	e := supervise.New(supervise.Options{})
	defer e.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a fill that nobody ends
	defer cancel()
	for range 2 {
		for range 2 {
			if _, err := e.Do(t.Context(), "limit", 100, nil); err != nil {
				t.Fatal(err)
			}
		}
		var death *supervise.Death
		if _, err := e.Do(ctx, "fill", nil, nil); !errors.As(err, &death) || !strings.Contains(err.Error(), "over the limit of 100 MiB") {
			t.Errorf("an engine beyond the limit of an earlier work: %v", err)
		}
	}
}
