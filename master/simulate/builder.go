package simulate

import (
	"context"
	"errors"

	"github.com/macrostep/macrostep/master"
)

// Builder creates a system in Go, of subsystems in Go or hardware, with or without FMUs.
// closing is called after the run; nil = not needed.
type Builder func(ctx context.Context, values map[string]string) (sys *master.System, closing func() error, err error)

// open builds the system of a request.
func (b Builder) open(ctx context.Context, r *Request) (*System, error) {
	if r.Start == nil || r.Stop == nil || r.Step == nil {
		return nil, &RequestError{errors.New("a system without documents needs start, stop and step size; set them")}
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
