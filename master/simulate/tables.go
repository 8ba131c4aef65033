package simulate

import (
	"cmp"
	"context"
	"fmt"

	"github.com/macrostep/macrostep/master/record"
)

func readTables(ctx context.Context, r *Request) (signals, history *record.Signals, err error) {
	if r.Input != "" {
		if signals, err = record.ReadSignals(ctx, r.Input); err != nil {
			return nil, nil, fmt.Errorf("--input: %w", err)
		}
	}
	if r.History != "" {
		if history, err = record.ReadSignals(ctx, r.History); err != nil {
			return nil, nil, fmt.Errorf("--history: %w", err)
		}
	}
	return signals, history, nil
}

// laterTables reads the tables that the documents name, in addition to those already read.
func (r *Request) laterTables(ctx context.Context, signals, history *record.Signals) (_, _ *record.Signals, err error) {
	later := *r
	if signals != nil {
		later.Input = ""
	}
	if history != nil {
		later.History = ""
	}
	s, h, err := readTables(ctx, &later)
	return cmp.Or(signals, s), cmp.Or(history, h), err
}
