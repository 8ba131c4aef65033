package fmuslave

import (
	"errors"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
)

// owner is a slave that closes its FMU.
type owner struct {
	*Slave
	fmu *fmi.FMU
}

// Unwrap gives the slave.
func (o *owner) Unwrap() master.Subsystem { return o.Slave }

// Close frees the instance and closes the FMU.
func (o *owner) Close() error { return errors.Join(o.Slave.Close(), o.fmu.Close()) }

// Open gives the FMU at path as a subsystem of a name, with all its inputs and
// outputs. A run closes it; without one, Close does (io.Closer). For more, such as start
// values, there are fmi.Open and New, and for systems of documents master/assemble.
func Open(name, path string, starts ...Value) (master.Subsystem, error) {
	f, _, err := fmi.Open(path, fmi.OpenOptions{})
	if err != nil {
		return nil, err
	}
	c := Config{Name: name, FMU: f, Starts: starts, Cache: CacheDir()}
	for k := range f.Description.Variables {
		switch v := &f.Description.Variables[k]; v.Causality {
		case description.Input:
			c.Inputs = append(c.Inputs, v.Name)
		case description.Output:
			c.Outputs = append(c.Outputs, v.Name)
		}
	}
	if _, err = f.Load(name); err == nil {
		var s *Slave
		if s, err = New(c); err == nil {
			return &owner{Slave: s, fmu: f}, nil
		}
	}
	return nil, errors.Join(err, f.Close())
}
