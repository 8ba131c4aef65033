package fmuslave

import (
	"context"
	"errors"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/fmuprobe"
)

// owner is a slave that closes its FMU.
type owner struct {
	*Slave
	fmu *fmi.FMU
}

// Unwrap returns the slave.
func (o *owner) Unwrap() master.Subsystem { return o.Slave }

// Close frees the instance and closes the FMU.
func (o *owner) Close() error { return errors.Join(o.Slave.Close(), o.fmu.Close()) }

// Open returns the FMU at path as a subsystem with this name, and all its inputs and outputs. A run closes
// it; without a run, call Close (io.Closer). For an open FMU use Of; for systems from documents,
// master/assemble.
func Open(name, path string, starts ...Value) (master.Subsystem, error) {
	f, _, err := fmi.Open(path, fmi.OpenOptions{})
	if err != nil {
		return nil, err
	}
	if _, err = f.Load(context.Background(), name); err == nil {
		var s *Slave
		if s, err = Of(name, f, starts...); err == nil {
			return &owner{Slave: s, fmu: f}, nil
		}
	}
	return nil, errors.Join(err, f.Close())
}

// Of returns an open FMU as a subsystem with this name, and all its inputs and outputs. It may be called any
// number of times. The FMU belongs to the caller and must stay open until the runs are closed.
func Of(name string, f *fmi.FMU, starts ...Value) (*Slave, error) {
	c := Config{Name: name, FMU: f, Starts: starts, Cache: &fmuprobe.Cache{Dir: CacheDir()}}
	for k := range f.Description.Variables {
		switch v := &f.Description.Variables[k]; v.Causality {
		case description.Input:
			c.Inputs = append(c.Inputs, v.Name)
		case description.Output:
			c.Outputs = append(c.Outputs, v.Name)
		}
	}
	return New(c)
}
