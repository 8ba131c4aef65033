package analyze

import (
	"math"
)

// Map is the spectral radius over the step and the gain of one connection: a view of how far
// off a stability limit is when the coupling is stiffer or weaker than the model.
type Map struct {
	Preset     string      `json:"algorithm"`
	Order      int         `json:"order"`
	Connection string      `json:"connection"`
	Steps      []float64   `json:"steps"` // s
	Gains      []float64   `json:"gains"` // factors of the gain that the connection has
	Radius     [][]float64 `json:"radius"`
}

// Points of a map.
const (
	mapSteps, mapGains = 41, 31
	mapRange           = 10 // gains lie between its inverse and it
)

// gainMap makes the map of a strategy for the connection whose gain decides most; nil where
// nothing is known.
func (p *point) gainMap(r *Report, of *Strategy, s *scheme) *Map {
	if of.Mode == nil || len(of.Mode.Connections) == 0 {
		return nil
	}
	most := of.Mode.Connections[0]
	m := &Map{Preset: of.Preset, Order: of.Order, Connection: most.Name}
	for i := range mapSteps {
		m.Steps = append(m.Steps, r.From*math.Pow(r.To/r.From, float64(i)/(mapSteps-1)))
	}
	for i := range mapGains {
		m.Gains = append(m.Gains, math.Pow(mapRange, 2*float64(i)/(mapGains-1)-1))
	}
	for _, g := range m.Gains {
		row := make([]float64, mapSteps)
		for i, h := range m.Steps {
			mode, err := p.spectrum(s, h, most.input, g)
			if row[i] = -1; err == nil { // −1 = unknown, which JSON can say
				row[i] = mode.radius()
			}
			if math.IsNaN(row[i]) || math.IsInf(row[i], 0) {
				row[i] = math.MaxFloat64
			}
		}
		m.Radius = append(m.Radius, row)
		if p.ctx.Err() != nil {
			return nil
		}
	}
	return m
}
