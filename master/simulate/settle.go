package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master/record"
)

// settle applies the settings of the documents that the user has not set. Open has applied
// those of the system itself.
func (r *Request) settle(sys *System) error {
	if r.Closed {
		return nil
	}
	asked := &sys.Asked
	if asked.Workers != nil && !r.given("workers") {
		r.Workers = *asked.Workers
	}
	if asked.MonitorEnergy != nil && !r.given("monitor-energy") {
		r.MonitorEnergy = *asked.MonitorEnergy
	}
	if asked.EnergySpike != nil && !r.given("energy-spike") {
		r.Spike = *asked.EnergySpike
	}
	if asked.OutputInterval != nil && !r.given("output-interval") {
		r.Interval = *asked.OutputInterval
	}
	if asked.Record != nil && !r.given("record") {
		var err error
		if r.Record, err = record.ParseSelection(asked.Record); err != nil {
			return fmt.Errorf("%s: what is recorded: %w", asked.Sources["record"].Place, err)
		}
	}
	if asked.Input != nil && r.Input == "" {
		r.Input = asked.Input.Path
	}
	if asked.History != nil && r.History == "" {
		r.History = asked.History.Path
	}
	return nil
}

// sources returns the source of each setting that is not a default, by the name of the
// setting: a flag, or text and place in a document.
func (r *Request) sources(sys *System, c *Chosen) map[string]string {
	out := map[string]string{}
	document := func(name string) string {
		s, ok := sys.Asked.Sources[name]
		if !ok {
			return ""
		}
		return fmt.Sprintf("%s (%s)", s.Text, s.Place)
	}
	put := func(name string, given bool, flag string) {
		if given {
			out[name] = "--" + flag
		} else if text := document(name); text != "" {
			out[name] = text
		}
	}
	put("algorithm", r.Algorithm != "", "algorithm")
	for key, value := range c.Values {
		_, given := r.Params[key]
		sameAlgorithm := r.Algorithm == "" || r.Algorithm == sys.Algorithm || sys.Algorithm == ""
		if asked, ok := sys.Params[key]; given || ok && asked == value && sameAlgorithm {
			put("param "+key, given, "param")
		}
	}
	for _, b := range c.Bonds {
		put("bond "+b.Name, len(r.Bonds) > 0, "bond")
	}
	for _, rate := range c.Rates {
		given := slices.ContainsFunc(r.Rates, func(o algorithms.Rate) bool { return o.Component == rate.Component })
		put("rate "+rate.Component, given, "rate")
	}
	for _, name := range r.Stateless {
		out["stateless "+name] = "--stateless"
	}
	for _, q := range r.Quirks {
		out["quirk "+cmp.Or(q.Name, sys.Alone)+" "+q.Value] = "--quirk"
	}
	for _, name := range r.Isolation.Components {
		out["isolate-component "+name] = "--isolate-component"
	}
	for _, on := range r.Isolation.On {
		out["on "+on.Pattern] = "--on"
	}
	for _, flag := range []string{
		"record", "output-interval", "workers", "monitor-energy", "energy-spike",
		"isolate", "on-crash", "step-timeout", "memory-limit", "input", "history",
	} {
		put(flag, r.given(flag), flag)
	}
	for name := range sys.Asked.Sources {
		for _, kind := range []string{"stateless ", "quirk ", "isolate-component ", "on "} {
			if _, ok := out[name]; !ok && strings.HasPrefix(name, kind) {
				out[name] = document(name)
			}
		}
	}
	return out
}
