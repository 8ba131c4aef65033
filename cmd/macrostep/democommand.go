package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master/record"
)

const (
	demoSystem = "quarter-car-a"
	demoStep   = 1e-3 // s
)

const demoHelp = `Builds the example systems as DIR/NAME.ssp (default: ./macrostep-demo), runs
the quarter car, a chassis and a wheel on a road with a step, and says where the
results are and what to try next. It needs a C compiler: $CC, cc, gcc or clang.

Examples:
   macrostep demo
   macrostep demo examples`

func (p *program) demoCommand() *cli.Command {
	return &cli.Command{
		Name: "demo", Usage: "build the example systems and run one", ArgsUsage: "[DIR]",
		UsageText: "macrostep demo [DIR]", Description: demoHelp,
		Action: func(c *cli.Context) error {
			if err := arguments(c, 0, 1, "DIR"); err != nil {
				return err
			}
			dir := "macrostep-demo"
			if c.NArg() == 1 {
				dir = c.Args().First()
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return fmt.Errorf("making the folder of the examples: %w", err)
			}
			names := p.engine.Systems()
			if !slices.Contains(names, demoSystem) {
				return fmt.Errorf("the examples lack %s; there are %s", demoSystem, strings.Join(names, ", "))
			}
			for _, name := range names {
				if c.Context.Err() != nil {
					return context.Cause(c.Context)
				}
				path, err := p.engine.WriteSystem(dir, name)
				if err != nil {
					return fmt.Errorf("building the example %s: %w", name, err)
				}
				fmt.Fprintf(p.stdout, "built %s\n", path)
			}
			system, output := filepath.Join(dir, demoSystem+".ssp"), filepath.Join(dir, demoSystem+".csv")
			fmt.Fprintf(p.stdout, "\n$ %s run %s --step-size %g --output %s\n", p.command(), quote(system), demoStep, quote(output))
			sel, err := record.ParseSelection(nil)
			if err != nil {
				return err
			}
			r := &runRequest{
				System: system, Step: &setting{Value: demoStep, Source: "macrostep demo"},
				Algorithm: "explicit", Output: output, Record: sel, LogLevel: slog.LevelWarn,
			}
			if err := r.placeFiles(); err != nil {
				return err
			}
			if _, err := p.execute(c.Context, r); err != nil {
				return err
			}
			p.next(dir, system, output)
			return nil
		},
	}
}

// next tells what to try after the demo.
func (p *program) next(dir, system, output string) {
	command := p.command()
	two := filepath.Join(dir, "two-mass-ff.ssp")
	fmt.Fprintf(p.stdout, `
The table %s opens in every spreadsheet. Try next:

  %[2]s info %[3]s
  %[2]s run %[3]s --algorithm gauss-seidel --output %[4]s
  %[2]s run %[3]s --param order=1 --output %[5]s
  %[2]s run %[3]s --set wheel.z_road=0.05 --record 'chassis.*' --output %[6]s
  %[2]s run %[7]s --output %[8]s
  %[2]s algorithms explicit
`,
		output, command, quote(system),
		quote(filepath.Join(dir, "gauss-seidel.csv")), quote(filepath.Join(dir, "order-1.csv")),
		quote(filepath.Join(dir, "low-road.csv")), quote(two), quote(filepath.Join(dir, "two-mass-ff.csv")))
}

// command is how the user can call this program again: by its name if that is
// what the shell would find, else by its path; go run leaves no program behind.
func (p *program) command() string {
	exe, err := os.Executable()
	switch {
	case err != nil:
		return "macrostep"
	case strings.Contains(exe, string(filepath.Separator)+"go-build"):
		return "go run ./cmd/macrostep"
	case !strings.ContainsRune(os.Args[0], filepath.Separator):
		return os.Args[0]
	}
	return quote(os.Args[0])
}

// quote quotes a word for the shell if it needs it.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(`/\._-+=:,@%`, r))
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
