package fmuslave

import (
	"context"
	"sync/atomic"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// probeInputDerivatives finds the highest order of input derivatives that the FMU accepts, up to the one
// wanted. FMI 2.0 has no attribute for it; many FMUs accept only the first order, some of these ignore
// the others with a mere warning, and some cannot be used any more after refusing one. So orders above the
// first are tested on a separate instance. For an FMU that can be instantiated only once the order is 1.
func (s *Slave) probeInputDerivatives(ctx context.Context, e master.Experiment) error {
	s.derivatives = 0
	if !s.info.Caps.InputDerivatives {
		return nil
	}
	if err := s.config.load(ctx); err != nil {
		return err
	}
	if !s.config.FMU.Exports("fmi2SetRealInputDerivatives") {
		return nil // the library does not have the function
	}
	s.derivatives = 1
	if e.InputDerivatives < 2 || len(s.in) == 0 || s.config.once() {
		return nil
	}
	var complaints atomic.Int32
	c, err := s.beside("probe")
	c.Options.Log = func(m fmi.LogMessage) {
		if m.Status != fmi.StatusOK {
			complaints.Add(1)
		}
	}
	var in *fmi.Instance
	if err == nil {
		in, err = c.FMU.Instantiate(c.Name, c.Options)
	}
	if err != nil {
		s.note("it gets input derivatives of the first order only, since no instance for a test of higher ones can be made: " + err.Error())
		return nil
	}
	defer in.Free() // the error does not matter
	if s.setUp(in, e) != nil || in.EnterInitializationMode() != nil || s.set(in, s.starts.inside) != nil ||
		in.ExitInitializationMode() != nil {
		return nil // the instance of the run will report the error
	}
	orders, zeros := make([]int32, len(s.in)), make([]float64, len(s.in))
	for order := 2; order <= e.InputDerivatives; order++ {
		for k := range orders {
			orders[k] = int32(order)
		}
		complaints.Store(0)
		if in.SetRealInputDerivatives(s.initPlan.RealIn, orders, zeros) != nil || complaints.Load() > 0 {
			return nil
		}
		s.derivatives = order
	}
	return nil
}
