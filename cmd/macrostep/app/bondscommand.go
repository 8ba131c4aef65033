package app

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master/assemble"
)

const bondsHelp = `Lists the power bonds that a system may have: pairs of connections that lead in
opposite directions between two components and whose product is a power by
their units (rad counts as 1). Says of other such pairs why they are none.
Nothing is run.

A bond is declared with --bond NAME=COMPONENT.EFFORT:COMPONENT.FLOW, both
outputs. Whether effort and flow count in the same direction where the flow is
given cannot be read from units: write -COMPONENT.EFFORT where their product is
power that leaves that component, like a force that its equation takes with a
minus. The sign changes that of the residual energy, not its size.

Examples:
   macrostep bonds system.ssp
   macrostep run system.ssp --algorithm ecco --bond axle=-wheel.F_c:chassis.v_c
   macrostep run system.ssp --monitor-energy --bond axle=-wheel.F_c:chassis.v_c`

func (p *program) bondsCommand() *cli.Command {
	return &cli.Command{
		Name: "bonds", Usage: "list the power bonds that a system may have", ArgsUsage: "SYSTEM",
		UsageText: "macrostep bonds SYSTEM [--json]", Description: bondsHelp,
		Flags: []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON"}},
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "SYSTEM (an .ssp, a folder, an .ssd or an .fmu)"); err != nil {
				return err
			}
			found, others, err := p.backend.Bonds(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			if c.Bool("json") {
				e := json.NewEncoder(p.data())
				e.SetEscapeHTML(false)
				e.SetIndent("", "  ")
				return e.Encode(struct {
					Bonds  []assemble.BondCandidate `json:"bonds"`
					Others []assemble.NoBond        `json:"others"`
				}{append([]assemble.BondCandidate{}, found...), append([]assemble.NoBond{}, others...)})
			}
			w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
			if len(found) == 0 {
				fmt.Fprintln(w, "No pair of opposite connections is a power by its units.")
			}
			for _, b := range found {
				fmt.Fprintf(w, "--bond %s=%s\t%s\n", b.Name, b.Pair, b.Unit)
			}
			for i, o := range others {
				if i == 0 {
					fmt.Fprintln(w, "\nNo bonds:")
				}
				fmt.Fprintf(w, "  %s, %s\t%s\n", o.A, o.B, o.Why)
			}
			return w.Flush()
		},
	}
}
