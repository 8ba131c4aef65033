package algorithms

import (
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// coupledInputs returns the extrapolated and the held ones of the connected inputs of all
// subsystems that are not stepped late.
func coupledInputs(sys *master.System) (extrapolated, held []int) {
	holds := sys.Holds()
	for _, i := range sys.Stepped {
		for k := sys.InAt[i]; k < sys.InAt[i+1]; k++ {
			if _, connected := sys.Source(k); !connected {
				continue
			}
			if holds[k] {
				held = append(held, k)
			} else {
				extrapolated = append(extrapolated, k)
			}
		}
	}
	return extrapolated, held
}

// chooseStates chooses the outputs that are judged: those of Control.Monitor, else the outputs with
// a position or velocity level, else all connected outputs at velocity level. For a component
// with coupling inputs but without such outputs it adds the connected outputs, else all
// outputs; otherwise its errors would not be estimated.
func (j *errorControl) chooseStates(sys *master.System) error {
	add := func(y int, level master.Level, why string) {
		if level == master.Position {
			j.pos = append(j.pos, y)
		} else {
			j.vel = append(j.vel, y)
		}
		j.names = append(j.names, sys.OutName(y)+" ("+why+")")
	}
	words := map[master.Level]string{master.NoLevel: "velocity level", master.Position: "position level", master.Velocity: "velocity level"}
	for _, m := range j.config.Monitor {
		y, ok := sys.FindOut(m.Name)
		if !ok {
			return fmt.Errorf("monitor=%s: no Real output has this name", m.Name)
		}
		add(y, m.Level, words[m.Level]+", named")
	}
	if len(j.names) > 0 {
		return nil
	}
	for i, info := range sys.Infos {
		for p, port := range info.Out {
			if port.Level != master.NoLevel {
				add(sys.OutAt[i]+p, port.Level, words[port.Level]+", by its derivative attribute")
			}
		}
	}
	feeds := make([]bool, sys.OutAt[len(sys.Infos)])
	for _, k := range j.entries {
		y, _ := sys.Source(k)
		feeds[y] = true
	}
	if len(j.names) == 0 {
		for y, does := range feeds {
			if does {
				add(y, master.NoLevel, "connected output, judged as velocity level")
			}
		}
	}
	for _, k := range j.entries {
		i := num.Owner(sys.InAt, k)
		from, to := sys.OutAt[i], sys.OutAt[i+1]
		judged := func(y int) bool { return y >= from && y < to }
		if slices.ContainsFunc(j.pos, judged) || slices.ContainsFunc(j.vel, judged) {
			continue
		}
		connected := slices.Contains(feeds[from:to], true)
		for y := from; y < to; y++ {
			switch {
			case sys.Infos[i].Out[y-from].Internal:
			case feeds[y]:
				add(y, master.NoLevel, "connected output, judged as velocity level")
			case !connected:
				add(y, master.NoLevel, "output of a component that feeds no other, judged as velocity level")
			}
		}
	}
	return nil
}
