package app

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master/assemble"
)

const bondsHelp = `Lists the power bonds that a system may have: pairs of connections in opposite
directions between two components whose product is a power by their units (rad
counts as 1). For other such pairs it gives the reason why they are no bonds. Use it
to find what to pass to --bond. Nothing is run.

A bond is declared with --bond NAME=COMPONENT.EFFORT:COMPONENT.FLOW, both outputs.
Units do not show whether effort and flow count in the same direction where the flow
is given. Write -COMPONENT.EFFORT where their product is power that leaves that
component, like a force that its equation takes with a minus. The sign changes that
of the residual energy, not its size.

Examples:
   macrostep bonds system.ssp
   macrostep run system.ssp --algorithm ecco --bond axle=-wheel.F_c:chassis.v_c
   macrostep run system.ssp --bond axle=-wheel.F_c:chassis.v_c`

func (p *program) bondsCommand() *cli.Command {
	return &cli.Command{
		Name: "bonds", Usage: "list the power bonds that a system may have", ArgsUsage: "SYSTEM",
		UsageText: "macrostep bonds SYSTEM [--json]", Description: bondsHelp,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) (err error) {
			if err := arguments(c, 1, 1, systemArgument); err != nil {
				return err
			}
			a, err := assemble.Open(c.Args().First(), looking(p.dialects))
			defer func() { err = errors.Join(err, a.Close()) }()
			if err != nil {
				return err
			}
			found, others := a.Bonds()
			if c.Bool("json") {
				return writeJSON(p.data(), struct {
					Bonds  []assemble.BondCandidate `json:"bonds"`
					Others []assemble.NoBond        `json:"others"`
				}{append([]assemble.BondCandidate{}, found...), append([]assemble.NoBond{}, others...)})
			}
			if len(found) == 0 {
				fmt.Fprintln(p.stdout, "No pair of opposite connections is a power by its units.")
			}
			table(p.stdout, rowsOf(found, func(b assemble.BondCandidate) []string {
				return []string{"--bond " + b.Name + "=" + b.Pair, b.Unit}
			}))
			titled(p.stdout, "\nNo bonds:", rowsOf(others, func(o assemble.NoBond) []string { return []string{o.A + ", " + o.B, o.Why} }))
			return nil
		},
	}
}
