package simulate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/macrostep/macrostep/master/record"
)

// callLog is the file of --log-fmi-calls. The run does not end with what it can
// take, and is told at its end.
type callLog struct {
	file *os.File
	mu   sync.Mutex
	err  error
}

func (l *callLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		_, l.err = l.file.Write(line)
	}
	return len(line), nil
}

// failed gives the error of the first failed write.
func (l *callLog) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return fmt.Errorf("--log-fmi-calls: the log ends early: %w; the results are whole; free space, choose another file, or leave the log out", l.err)
}

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

// laterTables reads the tables that documents name.
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
