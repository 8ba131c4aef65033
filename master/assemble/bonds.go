package assemble

import (
	"fmt"
	"strings"

	"github.com/macrostep/macrostep/fmi/unit"
)

// BondCandidate is a pair of connections in opposite directions between two components whose
// product is a power.
type BondCandidate struct {
	Name         string  `json:"name"` // for example "wheel_chassis"
	Effort, Flow string  `json:"-"`    // outputs "component.variable"
	Pair         string  `json:"pair"` // "component.effort:component.flow", the form of --bond
	Unit         string  `json:"unit"` // of the product, by the units of the outputs
	Watt         float64 `json:"watt"` // W per unit of the product
}

// NoBond is a pair of connections in opposite directions that is not a power bond.
type NoBond struct {
	A   string `json:"a"` // outputs "component.variable"
	B   string `json:"b"`
	Why string `json:"why"`
}

// Bonds examines each pair of connections of Reals in opposite directions between two components.
// By their units, it returns the pairs that are power bonds (rad counts as 1), and the others with
// the reason. The effort is the factor with a mass in its unit: force, torque, pressure, voltage.
func (a *Assembly) Bonds() (bonds []BondCandidate, others []NoBond) {
	type lead struct {
		from, to int
		output   string
	}
	var leads []lead
	s := a.System
	for i, info := range s.Infos {
		for k := range info.In {
			if y, ok := s.Source(s.InAt[i] + k); ok {
				leads = append(leads, lead{s.SourceSubsystem(s.InAt[i] + k), i, s.OutName(y)})
			}
		}
	}
	used := map[string]int{}
	for n, one := range leads {
		for _, two := range leads[n+1:] {
			if one.from != two.to || one.to != two.from || one.from == one.to {
				continue
			}
			effort, flow := one, two
			product, units, why := a.product(effort.output, flow.output)
			if why != "" {
				others = append(others, NoBond{one.output, two.output, why})
				continue
			}
			if b, _, _ := a.baseOf(effort.output); b.Kg == 0 {
				effort, flow = flow, effort
				_, units, _ = a.product(effort.output, flow.output)
			}
			name := s.Infos[effort.from].Name + "_" + s.Infos[flow.from].Name
			name = strings.ReplaceAll(name, ".", "_")
			if used[name]++; used[name] > 1 {
				name = fmt.Sprintf("%s_%d", name, used[name])
			}
			bonds = append(bonds, BondCandidate{Name: name, Effort: effort.output, Flow: flow.output,
				Pair: effort.output + ":" + flow.output, Unit: units, Watt: product.Factor})
		}
	}
	return bonds, others
}

// Power returns the power in W per unit of the product of two outputs, 0 if a unit is unknown. It
// returns an error if the product is not a power, or if effort and flow are exchanged.
func (a *Assembly) Power(effort, flow string) (watt float64, err error) {
	for _, name := range []string{effort, flow} {
		if _, _, err := a.find(name); err != nil {
			return 0, err
		}
		if _, known, _ := a.baseOf(name); !known {
			return 0, nil
		}
	}
	product, _, why := a.product(effort, flow)
	if why != "" {
		return 0, fmt.Errorf("%s and %s: %s", effort, flow, why)
	}
	e, _, unitOfEffort := a.baseOf(effort)
	if f, _, unitOfFlow := a.baseOf(flow); e.Kg == 0 && f.Kg != 0 {
		return 0, fmt.Errorf("%s (%s) is the flow and %s (%s) the effort; write %s:%s",
			effort, unitOfEffort, flow, unitOfFlow, flow, effort)
	}
	return product.Factor, nil
}

// product multiplies the units of two outputs; why is the reason why the product is not a power.
func (a *Assembly) product(one, two string) (product unit.Base, units, why string) {
	x, okX, nameX := a.baseOf(one)
	y, okY, nameY := a.baseOf(two)
	units = nameX + "·" + nameY
	for _, side := range []struct {
		known    bool
		variable string
		unit     string
	}{{okX, one, nameX}, {okY, two, nameY}} {
		if !side.known {
			if side.unit == "" {
				return product, "", side.variable + " has no unit"
			}
			return product, "", fmt.Sprintf("the unit %q of %s has no base unit", side.unit, side.variable)
		}
	}
	product = x.Times(y)
	if !product.IsPower() {
		why = fmt.Sprintf("the product is in %s, which is no power", units)
		if work := product.Times(unit.Base{S: -1, Factor: 1}); work.IsPower() {
			why += " but an energy: a displacement where a bond needs a velocity"
		} else if alike(x, y) {
			why += ": both sides give the same kind, where one gives an effort and the other a flow"
		}
		return product, units, why
	}
	if x.Offset != 0 || y.Offset != 0 {
		return product, units, fmt.Sprintf("the unit %s has an offset, so that the product is no power", units)
	}
	return product, units, ""
}

// alike reports whether two units differ only by a factor and an offset.
func alike(x, y unit.Base) bool {
	x.Factor, x.Offset, y.Factor, y.Offset = 1, 0, 1, 0
	return x == y
}

// baseOf returns the base unit of a Real variable "component.variable".
func (a *Assembly) baseOf(name string) (base unit.Base, known bool, unitName string) {
	i, v, err := a.find(name)
	if err != nil || v.Real.Unit == "" {
		return unit.Base{}, false, ""
	}
	u, ok := a.Components[i].FMU.Description.Unit(v.Real.Unit)
	if !ok || u.Base == nil {
		return unit.Base{}, false, v.Real.Unit
	}
	return *u.Base, true, v.Real.Unit
}
