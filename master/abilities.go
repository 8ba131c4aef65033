package master

import (
	"errors"
	"fmt"
)

// abilities holds the optional interfaces of a subsystem, looked up once per run; nil = the subsystem
// does not implement the interface, or its Info does not declare the capability.
type abilities struct {
	saver       StateSaver            // claimed by Caps.SaveState
	derivatives InputDerivativeSetter // by Caps.InputDerivatives
	deriver     DirectionalDeriver    // by Caps.DirectionalDerivative
	restarter   Restarter             // by Caps.Restarts
	discrete    DiscreteIO            // by discrete ports
	watcher     Watcher               // by Info.Watch

	serializer   StateSerializer
	archiver     Archiver
	batcher      Batcher // with a key
	priced       Priced
	initializer  Initializer
	parameters   ParameterSetter
	notes        Noter
	rollbackTest RollbackVerifier
	leakTest     FeedthroughVerifier
	slopeTest    DerivativeVerifier
	stop         StopUser
	tunable      Tunable
	terminator   Terminator
	closer       interface{ Close() error }
	events       EventSource
}

// claimed returns an interface of a subsystem if Info declares it.
func claimed[T any](s Subsystem, promised bool) (t T) {
	if promised {
		t, _ = As[T](s)
	}
	return t
}

func abilitiesOf(s Subsystem, info *Info) (a abilities) {
	caps := &info.Caps
	a.saver = claimed[StateSaver](s, caps.SaveState)
	a.derivatives = claimed[InputDerivativeSetter](s, caps.InputDerivatives)
	a.deriver = claimed[DirectionalDeriver](s, caps.DirectionalDerivative)
	a.restarter = claimed[Restarter](s, caps.Restarts)
	a.discrete = claimed[DiscreteIO](s, len(info.DiscreteIn)+len(info.DiscreteOut) > 0)
	a.watcher = claimed[Watcher](s, len(info.Watch) > 0)
	a.serializer, _ = As[StateSerializer](s)
	a.archiver, _ = As[Archiver](s)
	a.priced, _ = As[Priced](s)
	if b, ok := s.(Batcher); ok && b.BatchKey() != nil { // a decorator hides it, or its methods would not be called
		a.batcher = b
	}
	a.initializer, _ = As[Initializer](s)
	a.parameters, _ = As[ParameterSetter](s)
	a.notes, _ = As[Noter](s)
	a.rollbackTest, _ = As[RollbackVerifier](s)
	a.leakTest, _ = As[FeedthroughVerifier](s)
	a.slopeTest, _ = As[DerivativeVerifier](s)
	a.stop, _ = As[StopUser](s)
	a.tunable, _ = As[Tunable](s)
	a.terminator, _ = As[Terminator](s)
	a.closer, _ = As[interface{ Close() error }](s)
	a.events, _ = As[EventSource](s)
	return a
}

// check returns an error that names the declared capabilities without methods.
func (a *abilities) check(info *Info) error {
	var errs []error
	missing := func(promised, have bool, what string) {
		if promised && !have {
			errs = append(errs, fmt.Errorf("%s: %w: it declares %s but has no method for it", info.Name, ErrCapability, what))
		}
	}
	missing(info.Caps.InputDerivatives, a.derivatives != nil, "input derivatives")
	missing(info.Caps.SaveState, a.saver != nil, "rollback")
	missing(info.Caps.Restarts, a.restarter != nil, "restarts")
	missing(info.Caps.DirectionalDerivative, a.deriver != nil, "directional derivatives")
	missing(len(info.DiscreteIn)+len(info.DiscreteOut) > 0, a.discrete != nil, "discrete signals")
	missing(len(info.Watch) > 0, a.watcher != nil, "watched variables")
	return errors.Join(errs...)
}

// services holds the optional interfaces of an algorithm, looked up once per run; nil = the algorithm
// does not implement the interface.
type services struct {
	archiver  Archiver
	waiver    Waiver
	disturbed Disturbed
	measuring Measuring
	reporter  Reporter
}

func servicesOf(alg Algorithm) (s services) {
	s.archiver, _ = alg.(Archiver)
	s.waiver, _ = alg.(Waiver)
	s.disturbed, _ = alg.(Disturbed)
	s.measuring, _ = alg.(Measuring)
	s.reporter, _ = alg.(Reporter)
	return s
}
