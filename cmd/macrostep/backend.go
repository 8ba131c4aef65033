package main

import (
	"context"
	"errors"
)

// noFMUs is the engine of a build without the packages that read FMUs.
type noFMUs struct{}

var errNoFMUs = errors.New("this build of macrostep reads no FMUs; build it from a complete source tree")

func newEngine() engine { return noFMUs{} }

func (noFMUs) Open(context.Context, string, openOptions) (*opened, error) { return nil, errNoFMUs }
func (noFMUs) Describe(string, bool) (*description, error)                { return nil, errNoFMUs }
func (noFMUs) Systems() []string                                          { return nil }
func (noFMUs) WriteSystem(string, string) (string, error)                 { return "", errNoFMUs }
func (noFMUs) Cleanup()                                                   {}
