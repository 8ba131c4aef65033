package simulate

import (
	"context"
	"errors"

	"github.com/macrostep/macrostep/master"
)

// Builder makes a system in Go: of subsystems that are Go code or hardware, with FMUs or
// without. closing is called after the run; nil = nothing is to be closed.
type Builder func(ctx context.Context, values map[string]string) (sys *master.System, closing func() error, err error)

// open builds the system of a request.
func (b Builder) open(ctx context.Context, r *Request) (*System, error) {
	if r.Start == nil || r.Stop == nil || r.Step == nil {
		return nil, &RequestError{errors.New("start, stop and step size must be given for a system that is built, since no document has them")}
	}
	sys, closing, err := b(ctx, r.Values)
	if err != nil {
		return nil, err
	}
	if closing == nil {
		closing = func() error { return nil }
	}
	return &System{System: sys, Start: *r.Start, Stop: *r.Stop, Step: *r.Step, Tolerance: r.Tolerance, Close: closing}, nil
}
