package algorithms

import (
	"fmt"
	"slices"

	"github.com/macrostep/macrostep/algorithms/internal/num"
	"github.com/macrostep/macrostep/master"
)

// linearModel computes low-order sensitivities of one subsystem from directional derivatives.
//
// Let x' = A x + B u, y = C x + D u, and let ℓ(s) be the polynomial that is 1 at the end of the
// macro step and 0 at the points before it. By the Taylor series of e^{A(H−s)}, the response of
// the outputs to the input at the end is
//
//	∂y/∂z = D + C ∫ e^{A(H−s)} B ℓ ds ≈ D + H C_vel C B + H² C_pos C A B,
//
// For a mechanical subsystem this is ∂v/∂u ≈ H C_vel ∂a/∂u and ∂q/∂u ≈ H² C_pos ∂a/∂u (meyer,
// appendix A.2).
type linearModel struct {
	subsystem int
	linear    master.Linearizer // nil = stateless
	direct    master.DirectionalDeriver
	columns   []int
	du        []float64
	b, ab     []float64 // B e_j, A B e_j
	dy        []float64
}

// lacksModel returns why subsystem i cannot give low-order sensitivities; "" = it can.
func lacksModel(sys *master.System, i int) string {
	info := sys.Infos[i]
	if !info.Caps.DirectionalDerivative {
		return "it gives no directional derivatives (providesDirectionalDerivative), which newton-los needs"
	}
	if info.Stateless {
		return ""
	}
	linear, ok := master.As[master.Linearizer](sys.Subsystems[i])
	if !ok || len(linear.States()) == 0 {
		return "it exposes no continuous states with their derivatives (ModelStructure/Derivatives), which " +
			"newton-los needs"
	}
	return ""
}

// needsDerivatives returns the subsystems on loops whose directional derivatives are used.
func (s *implicit) needsDerivatives(sys *master.System) []int {
	var out []int
	if s.config.Kind == NewtonLOS {
		for _, b := range sys.Blocks() {
			for _, i := range b.Members {
				if b.Cyclic && len(sys.Infos[i].In) > 0 && s.iterates(sys, i) {
					out = append(out, i)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// prepareModels makes a linearModel for each subsystem with columns.
func (b *block) prepareModels(x *master.Exec) error {
	sys := x.Sys
	at := map[int]int{}
	for j, c := range b.columns {
		i := c.subsystem
		m, known := at[i]
		if !known {
			m = len(b.models)
			at[i] = m
			model := linearModel{subsystem: i, du: make([]float64, len(sys.Infos[i].In)), dy: make([]float64, len(c.s))}
			model.direct, _ = master.As[master.DirectionalDeriver](sys.Subsystems[i])
			if !sys.Infos[i].Stateless {
				model.linear, _ = master.As[master.Linearizer](sys.Subsystems[i])
				n := len(model.linear.States())
				model.b, model.ab = make([]float64, n), make([]float64, n)
			}
			b.models = append(b.models, model)
		}
		b.models[m].columns = append(b.models[m].columns, j)
	}
	members := make([]int, len(b.models))
	for m := range b.models {
		members[m] = b.models[m].subsystem
	}
	b.respond = x.NewPhase(members, func(i int) error { return b.respondOf(x, &b.models[at[i]]) })
	return nil
}

// lowOrderSensitivities computes S from directional derivatives at the end of the last evaluation
// of the macro step of size H.
func (b *block) lowOrderSensitivities(H float64) error {
	b.heldPos, b.heldVel = H*H/2, H
	pos, vel := num.ErrorConstants(b.in.DegreeAhead(), H, b.in.Times())
	b.shapedPos, b.shapedVel = H*H*pos, H*vel
	return b.respond.Run()
}

// respondOf computes the columns of S of one model.
func (b *block) respondOf(x *master.Exec, m *linearModel) error {
	pos, vel := b.heldPos, b.heldVel
	if b.in.Shapes(m.subsystem) {
		pos, vel = b.shapedPos, b.shapedVel
	}
	for _, j := range m.columns {
		c := &b.columns[j]
		if err := m.respond(c.s, c.input-x.Sys.InAt[c.subsystem], vel, pos); err != nil {
			return fmt.Errorf("%s: sensitivities: %w", x.Sys.Infos[c.subsystem], err)
		}
	}
	return nil
}

// respond writes D e_j + vel C B e_j + pos C A B e_j to s, where j is an input.
func (m *linearModel) respond(s []float64, input int, vel, pos float64) error {
	m.du[input] = 1
	defer func() { m.du[input] = 0 }()
	if m.linear == nil {
		return m.direct.DirectionalDerivative(m.du, s)
	}
	if err := m.linear.Linearize(nil, m.du, m.b, s); err != nil {
		return err
	}
	if err := m.linear.Linearize(m.b, nil, m.ab, m.dy); err != nil {
		return err
	}
	for i, v := range m.dy {
		s[i] += float64(vel * v)
	}
	if err := m.linear.Linearize(m.ab, nil, nil, m.dy); err != nil {
		return err
	}
	for i, v := range m.dy {
		s[i] += float64(pos * v)
	}
	return nil
}
