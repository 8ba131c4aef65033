package master

import (
	"context"
	"fmt"
	"testing"
)

// port is a subsystem that does nothing.
type port struct{ info Info }

func (p *port) Info() *Info                                           { return &p.info }
func (p *port) SetInputs([]float64) error                             { return nil }
func (p *port) Outputs([]float64) error                               { return nil }
func (p *port) Step(_ context.Context, t, H float64) (float64, error) { return t + H, nil }

// BenchmarkTransfer is what it costs to couple all inputs to the outputs, per connection,
// each with a gain.
func BenchmarkTransfer(b *testing.B) {
	const n = 10 // of each kind, by subsystem
	for _, subsystems := range []int{2, 100, 1000} {
		b.Run(fmt.Sprint(subsystems*n), func(b *testing.B) {
			var subs []Subsystem
			var connections []Connection
			for i := range subsystems {
				p := &port{Info{Name: fmt.Sprint("s", i)}}
				for k := range n {
					p.info.In = append(p.info.In, Port{Name: fmt.Sprint("u", k)})
					p.info.Out = append(p.info.Out, Port{Name: fmt.Sprint("y", k)})
					connections = append(connections, Connection{
						From: Endpoint{fmt.Sprint("s", i), fmt.Sprint("y", k)}, To: Endpoint{fmt.Sprint("s", (i+1)%subsystems), fmt.Sprint("u", (k*7)%n)}, Linear: &Linear{Gain: 2},
					})
				}
				subs = append(subs, p)
			}
			s, err := NewSystem(subs, connections)
			if err != nil {
				b.Fatal(err)
			}
			x := newExec(s, 1, 1)
			b.ReportAllocs()
			for b.Loop() {
				x.CoupleAll(0, x.W)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(connections)), "ns/connection")
		})
	}
}
