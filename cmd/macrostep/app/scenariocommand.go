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
		Name: "scenario", Usage: "check a scenario for run --scenario", ArgsUsage: "FILE.yaml [SYSTEM]",
		UsageText: "macrostep scenario FILE.yaml [SYSTEM]",
		Description: "Checks a scenario and the tables that it replays, and lists its variables. With\nSYSTEM it also checks that they exist " +
			"there. Use it while writing a scenario. To\nplay it: macrostep run SYSTEM --scenario FILE.yaml.\n\n" + scenario.Help + `

Examples:
   macrostep scenario fault.yaml
   macrostep scenario fault.yaml system.ssp
   macrostep run system.ssp --scenario fault.yaml`,
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 2, "FILE.yaml [SYSTEM]"); err != nil {
				return err
			}
			s, err := scenario.Read(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			if system := c.Args().Get(1); system != "" {
				if _, err := p.backend.Explain(system, s.Variables, looking(p.dialects)); err != nil {
					return fmt.Errorf("%s: %w", s.Path, err)
				}
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
