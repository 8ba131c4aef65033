package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

const (
	demoSystem = "quarter-car-a"
	demoStep   = 1e-3 // s
)

const demoHelp = `Builds the example systems as DIR/NAME.ssp (default: ./macrostep-demo) and runs the
quarter car, a chassis and a wheel that hit a step in the road. It prints where the
results are and what to try next. It needs a C compiler: $CC, cc, gcc or clang.

demo chain builds DIR/chain.ssp instead, a chain of masses with nonlinear
springs, impulses and contacts, divided into subsystems, and runs it with control
of order and step size. Use it to see how algorithms scale. The flags below are
for it.

Examples:
   macrostep demo
   macrostep demo examples
   macrostep demo chain --masses 1000 --subsystems 20
   macrostep demo chain --damping 5e5 --algorithm im-slocal
   macrostep demo chain --set contacts=0 --set seed=7 --stop-time 0.1`

// demoChain is the argument that asks for a chain.
const demoChain = "chain"

func (p *program) demoCommand() *cli.Command {
	return &cli.Command{
		Name: "demo", Usage: "build the example systems and run one", ArgsUsage: "[DIR]",
		UsageText: "macrostep demo [chain] [DIR]", Description: demoHelp,
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "masses", Usage: "`N` masses in all", Value: 20},
			&cli.IntFlag{Name: "subsystems", Usage: "cut into `R` subsystems", Value: 4},
			&cli.IntFlag{Name: "ends", Usage: "the first and the last subsystem have `N` masses each; 0: as many as the others"},
			&cli.Float64Flag{Name: "damping", Usage: "damping `D` of the springs in N s/m, the same as --set d=D", Value: 1e4},
			listFlag(flagSet, "parameter of all masses and springs, `NAME=VALUE`; a wrong name lists them"),
			&cli.StringFlag{Name: flagAlgorithm, Usage: "coupling algorithm `PRESET`", Value: "ex-slocal"},
			&cli.StringFlag{Name: "stop-time", Usage: "stop at `T` seconds", Value: "0.01"},
		},
		Action: p.supervised(func(c *cli.Context) error {
			if c.Args().First() == demoChain {
				return p.runChain(c)
			}
			if names := c.LocalFlagNames(); len(names) > 0 {
				return &usageError{"demo", fmt.Errorf("--%s is for a chain; write: macrostep demo chain --%s …", names[0], names[0])}
			}
			if err := arguments(c, 0, 1, "DIR"); err != nil {
				return err
			}
			return p.runExamples(c)
		}),
	}
}

// demoFolder creates the folder of the examples, by default macrostep-demo, and returns its path.
func demoFolder(dir string) (string, error) {
	dir = cmp.Or(dir, "macrostep-demo")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", fmt.Errorf("making the folder of the examples: %w", err)
	}
	return dir, nil
}

// runExample runs an example with its own settings.
func (p *program) runExample(c *cli.Context, r simulate.Request) error {
	var err error
	if r.Record, err = record.ParseSelection(nil); err != nil {
		return err
	}
	r.LogLevel, r.Closed = slog.LevelWarn, true
	if err := r.Place(); err != nil {
		return err
	}
	return p.execute(c.Context, &runRequest{Request: r})
}

// runExamples builds all systems and runs one.
func (p *program) runExamples(c *cli.Context) error {
	dir, err := demoFolder(c.Args().First())
	if err != nil {
		return err
	}
	names := p.backend.Systems()
	if !slices.Contains(names, demoSystem) {
		return fmt.Errorf("the examples lack %s; they are %s", demoSystem, strings.Join(names, ", "))
	}
	for _, name := range names {
		if c.Context.Err() != nil {
			return context.Cause(c.Context)
		}
		path, err := p.backend.WriteSystem(dir, name)
		if err != nil {
			return fmt.Errorf("building the example %s: %w", name, err)
		}
		fmt.Fprintf(p.stdout, "built %s\n", path)
	}
	stem := filepath.Join(dir, demoSystem)
	system, output, report := stem+".ssp", stem+".csv", stem+".html"
	fmt.Fprintf(p.stdout, "\n$ %s run %s --step-size %g --output %s --report %s\n",
		p.command(), quote(system), demoStep, quote(output), quote(report))
	err = p.runExample(c, simulate.Request{System: system, Step: &simulate.Setting{Value: demoStep, Source: "macrostep demo"},
		Algorithm: "explicit", Output: output, Report: report})
	if err != nil {
		return err
	}
	p.next(dir, system, output, report)
	return nil
}

// runChain builds a chain and runs it.
func (p *program) runChain(c *cli.Context) error {
	if err := arguments(c, 1, 2, "chain and DIR"); err != nil {
		return err
	}
	in := newInput(c)
	chain := fmus.Chain{Masses: c.Int("masses"), Subsystems: c.Int("subsystems"), Ends: c.Int("ends"), Set: map[string]float64{}}
	for _, a := range in.assignments(flagSet) {
		v, err := strconv.ParseFloat(a.Value, 64)
		if err != nil {
			in.fail(flagSet, fmt.Errorf("%s=%s: the value is not a number", a.Name, a.Value))
		}
		chain.Set[a.Name] = v
	}
	if c.IsSet("damping") {
		if _, twice := chain.Set["d"]; twice {
			in.add(errors.New("--damping and --set d=… set the same parameter; give only one of them"))
		}
		chain.Set["d"] = c.Float64("damping")
	}
	algorithm, stop := c.String(flagAlgorithm), in.float("stop-time", positive)
	_, err := p.presets.New(algorithm, nil)
	in.add(err)
	_, err = fmus.ChainDocument(chain)
	in.add(err)
	if err := in.err(); err != nil {
		return err
	}
	dir, err := demoFolder(c.Args().Get(1))
	if err != nil {
		return err
	}
	system, err := p.backend.WriteChain(dir, chain)
	if err != nil {
		return fmt.Errorf("building the chain: %w", err)
	}
	output := filepath.Join(dir, "chain.csv")
	fmt.Fprintf(p.stdout, "built %s\n\n$ %s run %s --algorithm %s --stop-time %g --output %s\n",
		system, p.command(), quote(system), quote(algorithm), stop, quote(output))
	return p.runExample(c, simulate.Request{System: system, Stop: &simulate.Setting{Value: stop, Source: "macrostep demo"},
		Algorithm: algorithm, Output: output})
}

// next prints commands to try after the demo.
func (p *program) next(dir, system, output, report string) {
	command := p.command()
	two := filepath.Join(dir, "two-mass-ff.ssp")
	fmt.Fprintf(p.stdout, `
Try next:

  %[2]s info %[3]s
  %[2]s run %[3]s --algorithm gauss-seidel --output %[4]s
  %[2]s run %[3]s --param order=1 --output %[5]s
  %[2]s run %[3]s --set wheel.z_road=0.05 --record 'chassis.*' --output %[6]s
  %[2]s run %[7]s --output %[8]s
  %[2]s run %[9]s --algorithm im-milne --output %[10]s
  %[2]s demo chain --masses 100 --subsystems 10
  %[2]s algorithms explicit

Open the table %[1]s in a spreadsheet, and in a browser
the page %[11]s
`,
		output, command, quote(system),
		quote(filepath.Join(dir, "gauss-seidel.csv")), quote(filepath.Join(dir, "order-1.csv")),
		quote(filepath.Join(dir, "low-road.csv")), quote(two), quote(filepath.Join(dir, "two-mass-ff.csv")),
		quote(filepath.Join(dir, "contact-oscillator.ssp")), quote(filepath.Join(dir, "contact-oscillator.csv")), report)
}

// command returns the name for calling this program again, or its path if the shell does not find it by name.
// After go run there is no program.
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

// quote quotes a word for the shell if necessary.
func quote(s string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(`/\._-+=:,@%`, r))
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
