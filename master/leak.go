package master

import (
	"fmt"
	"math"
	"slices"
)

// evaluation holds inputs and outputs of a subsystem in the initialisation.
type evaluation struct {
	u, y     []float64
	discrete string
}

// leak is a dependency of an output on an input in the initialisation that the description denies.
type leak struct {
	sub, in, out int
	slope        float64
}

// observe compares an evaluation with the previous one. If an output moves although none of the inputs
// it is declared to depend on moves, it may have been read too early; otherwise everything read so far is
// right. Only in the first case does the check make calls.
func (n *initializer) observe(i int) error {
	before := n.seen[i]
	now := &evaluation{slices.Clone(n.x.In(i)), slices.Clone(n.x.Out(i)), fmt.Sprint(n.x.discreteIn[i])}
	n.seen[i] = now
	if before == nil || before.discrete != now.discrete {
		return nil
	}
	var ins, outs []int
	for k := range now.u {
		if now.u[k] != before.u[k] {
			ins = append(ins, k)
		}
	}
	f := &n.x.Sys.Infos[i].Init
	for o := range now.y {
		denied := func(k int) bool { return f.denies(o, k) && !n.leaks.has(i, k, o) }
		if n.moves(i, o, before.y[o], now.y[o]) && !n.freed[n.x.Sys.OutAt[i]+o] &&
			!slices.ContainsFunc(ins, func(k int) bool { return !denied(k) }) {
			outs = append(outs, o)
		}
	}
	if len(outs) == 0 {
		return nil
	}
	return n.blame(i, before, now, ins, outs)
}

// moves reports whether an output has changed by more than noise.
func (n *initializer) moves(i, o int, y, z float64) bool {
	d := math.Abs(z - y)
	return d > SmallSlope*max(n.x.Sys.Infos[i].Out[o].Magnitude(), math.Abs(y), math.Abs(z)) && !math.IsInf(d, 0)
}

// blame finds the inputs that move outputs between two evaluations. It uses only the input values of
// these two, because the subsystem might refuse others. An output that does not return to its old value
// with its inputs is not a function of them.
func (n *initializer) blame(i int, before, now *evaluation, ins, outs []int) error {
	u, y := n.x.In(i), n.x.Out(i)
	at := func(values []float64, k int, v float64) error {
		copy(u, values)
		if k >= 0 {
			u[k] = v
		}
		return n.call(i)
	}
	if err := at(before.u, -1, 0); err != nil {
		return err
	}
	back := slices.Clone(y)
	found := len(n.leaks)
	for _, k := range ins {
		if err := at(before.u, k, now.u[k]); err != nil {
			return err
		}
		for _, o := range outs {
			if !n.moves(i, o, before.y[o], back[o]) && n.moves(i, o, back[o], y[o]) {
				n.leaks = append(n.leaks, leak{i, k, o, (y[o] - back[o]) / (now.u[k] - before.u[k])})
			}
		}
	}
	for _, o := range outs {
		if !slices.ContainsFunc(n.leaks[found:], func(l leak) bool { return l.out == o }) {
			n.freed[n.x.Sys.OutAt[i]+o] = true
		}
	}
	return at(now.u, -1, 0)
}

// leaks lists the undeclared dependencies that were found.
type leaks []leak

func (l leaks) has(sub, in, out int) bool {
	return slices.ContainsFunc(l, func(e leak) bool { return e.sub == sub && e.in == in && e.out == out })
}
