package fmi

import "github.com/macrostep/macrostep/fmi/process"

type Call struct {
	Component, FMU, Hash, Model, Function string
	Time                                  float64
	Timed                                 bool
	Count                                 uint64
}

func (c Call) String() string { return c.Component }

func Calls(*process.Page) []Call          { return nil }
func Loaded(*process.Page) []Call         { return nil }
func LastMessages(*process.Page) []string { return nil }
