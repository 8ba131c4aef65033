package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/fmus"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

// demoSystem is the example that the command builds if none is named.
const demoSystem = "quarter-car-a"

const demoHelp = `Builds an example system (default: the quarter car) as macrostep-demo/NAME.ssp, runs
it, and prints where its results are and what to try next. Several examples, or
--all, are only built. demo chain builds a chain of masses with nonlinear springs,
divided into subsystems. Examples need a C compiler.

Examples:
   macrostep demo
   macrostep demo --all
   macrostep demo chain --masses 1000 --subsystems 20 --algorithm im-slocal`

// demoChain is the example of any size.
const demoChain = "chain"

// Flags of the command for all examples.
const flagAll = "all"

func (p *program) demoCommand() *cli.Command {
	return &cli.Command{
		Name: "demo", Usage: "build an example system and run it", ArgsUsage: "[NAME…]",
		UsageText: "macrostep demo [NAME…] [FLAGS]", Description: demoHelp + exampleHelp(),
		Flags: slices.Concat([]cli.Flag{
			boolFlag(flagAll, "build all examples"),
			withValue("macrostep-demo", outputFlag("write to the folder `DIR`")),
		}, inCategory("Chain",
			&cli.IntFlag{Name: "masses", Usage: "chains have `N` masses in all", Value: 20},
			&cli.IntFlag{Name: "subsystems", Usage: "cut into `R` subsystems", Value: 4},
			&cli.IntFlag{Name: "ends", Usage: "the first and the last subsystem have `N` masses each; 0: as many as the others"},
			listFlag(flagSet, "set a parameter of all masses and springs: `NAME=VALUE`; a wrong name lists them"),
			&cli.StringFlag{Name: flagAlgorithm, Usage: "coupling algorithm `PRESET`", Value: "ex-slocal"},
			&cli.StringFlag{Name: "stop-time", Usage: "stop at `T` seconds", Value: "0.01"},
		)),
		Action: p.supervised(func(c *cli.Context) error {
			names := c.Args().Slice()
			if slices.Contains(names, demoChain) {
				return p.runChain(c)
			}
			for _, name := range c.LocalFlagNames() {
				if name != flagAll && name != flagOutput && name != "o" {
					return &usageError{"demo", fmt.Errorf("--%s is for a chain; write: macrostep demo chain --%s …", name, name)}
				}
			}
			in := newInput(c)
			in.add(knownExamples(names, c.Bool(flagAll)))
			if err := in.err(); err != nil {
				return err
			}
			if c.Bool(flagAll) {
				names = fmus.Systems()
			}
			return p.runExamples(c, names)
		}),
	}
}

// exampleHelp lists the examples. Their papers and kinds of coupling are in the completion.
func exampleHelp() string {
	return "\n\n" + fold("The examples are "+strings.Join(fmus.Systems(), ", ")+".", 0)
}

// knownExamples checks the names of examples.
func knownExamples(names []string, all bool) error {
	if all && len(names) > 0 {
		return fmt.Errorf("--%s builds %s too; leave out one of the two", flagAll, names[0])
	}
	for _, name := range names {
		if !slices.Contains(fmus.Systems(), name) {
			return fmt.Errorf("no example is called %q%s", name, cmp.Or(diag.DidYouMean(name, fmus.Systems()),
				fmt.Sprintf("; they are %s; --%s names another folder", strings.Join(append(fmus.Systems(), demoChain), ", "), flagOutput)))
		}
	}
	return nil
}

// demoFolder creates the folder of the examples and returns its path.
func demoFolder(c *cli.Context) (string, error) {
	dir := c.String(flagOutput)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", record.NotWritten(dir, err)
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

// runExamples builds examples and runs the only one.
func (p *program) runExamples(c *cli.Context, names []string) error {
	if len(names) == 0 {
		names = []string{demoSystem}
	}
	dir, err := demoFolder(c)
	if err != nil {
		return err
	}
	done := 0
	err = fmus.WriteSystems(c.Context, dir, names, func(path string) {
		done++
		if len(names) > 1 {
			fmt.Fprintf(p.stdout, "%2d of %d  ", done, len(names))
		}
		fmt.Fprintf(p.stdout, "built %s\n", path)
	})
	if err != nil {
		return fmt.Errorf("building examples: %w", err)
	}
	stem := filepath.Join(dir, names[0])
	system, output, report := stem+".ssp", stem+".csv", stem+".html"
	if len(names) > 1 {
		fmt.Fprintf(p.stdout, "\nRun one:\n   %s run %s\n", p.command(), quote(system))
		return nil
	}
	fmt.Fprintf(p.stdout, "\n$ %s run %s --output %s --report %s\n", p.command(), quote(system), quote(output), quote(report))
	if err := p.runExample(c, simulate.Request{System: system, Output: output, Report: report}); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, `
Open the page in a browser:
   %[3]s

Try next:
   %[1]s info %[2]s
   %[1]s run %[2]s --algorithm gauss-seidel --output %[4]s
   %[1]s analyze %[2]s
   %[1]s demo --all
`, p.command(), quote(system), report, quote(filepath.Join(dir, "gauss-seidel.csv")))
	return nil
}

// runChain builds a chain and runs it.
func (p *program) runChain(c *cli.Context) error {
	if err := arguments(c, 1, 1, demoChain); err != nil {
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
	algorithm, stop := c.String(flagAlgorithm), in.float("stop-time", positiveTime)
	_, err := p.presets.New(algorithm, nil)
	in.add(err)
	_, err = fmus.ChainDocument(chain)
	in.add(err)
	if err := in.err(); err != nil {
		return err
	}
	dir, err := demoFolder(c)
	if err != nil {
		return err
	}
	system, err := fmus.WriteChain(dir, chain)
	if err != nil {
		return fmt.Errorf("building the chain: %w", err)
	}
	output := filepath.Join(dir, "chain.csv")
	fmt.Fprintf(p.stdout, "built %s\n\n$ %s run %s --algorithm %s --stop-time %g --output %s\n",
		system, p.command(), quote(system), quote(algorithm), stop, quote(output))
	return p.runExample(c, simulate.Request{System: system, Stop: &simulate.Setting{Value: stop, Source: "macrostep demo"},
		Algorithm: algorithm, Output: output})
}

// command returns the name for calling this program again, or its path if the shell does not find it by name.
// After go run there is no program.
func (p *program) command() string {
	exe, err := os.Executable()
	switch {
	case err != nil:
		return "macrostep"
	case strings.Contains(exe, string(filepath.Separator)+"go-build"), strings.HasSuffix(filepath.Dir(exe), "-d"): // of the cache of go run
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
