package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/scenario"
)

const flagScenario = "scenario"

// scenarioCommand checks a scenario by itself; its help describes the file.
func (p *program) scenarioCommand() *cli.Command {
	return &cli.Command{
		Name: "scenario", Usage: "check a scenario for run --scenario", ArgsUsage: "FILE.yaml",
		UsageText: "macrostep scenario FILE.yaml",
		Description: "Checks a scenario and the tables that it replays, without a system, and lists its\nvariables. Use it while writing " +
			"a scenario. To play it:\nmacrostep run SYSTEM --scenario FILE.yaml.\n\n" + scenario.Help + `

Examples:
   macrostep scenario fault.yaml
   macrostep run system.ssp --scenario fault.yaml`,
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "FILE.yaml"); err != nil {
				return err
			}
			s, err := scenario.Read(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			fmt.Fprintf(p.stdout, "%s: %s and %s on %s\n", s.Path, plural(s.Events(), "event"), plural(s.Expectations(), "expectation"),
				strings.Join(s.Variables, ", "))
			return nil
		},
	}
}

// printScenario prints the outcome of a scenario.
func printScenario(w io.Writer, s *record.Scenario, verbose bool) {
	fmt.Fprintf(w, "scenario  %s\n", scenarioLine(s))
	if !verbose {
		return
	}
	for _, e := range s.Events {
		fmt.Fprintf(w, "  t = %s s: %s\n", number(e.Time), strings.Join(e.Did, "; "))
	}
}
