package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/simulate"
)

const runHelp = `Runs SYSTEM (an .ssp, a folder, an .ssd, one .fmu, or an OspSystemStructure.xml).
Writes a table of results, and beside it the manifest (.json), which records how the
result was produced. Settings not given as flags come from the system. Ctrl-C ends a
run at the next communication point and keeps its results. More: macrostep help
running

Examples:
   macrostep run system.ssp --stop-time 10 --step-size 1e-3 --output r.csv
   macrostep run system.ssp --set wheel.k_w=2e5 --algorithm gauss-seidel --check
   macrostep run model.fmu --set k=2 --record x --input signals.csv`

// Names of the flags that are used in more than one place.
const (
	flagAlgorithm   = "algorithm"
	flagParam       = "param"
	flagRate        = "rate"
	flagStepTimeout = "step-timeout"
	flagMemoryLimit = "memory-limit"
	flagReport      = "report"
	flagResume      = "resume"
	flagCheck       = "check"
	flagWorkers     = "workers"
	flagSet         = "set"
	flagOn          = "on"
	flagHostTimeout = "host-timeout"
	flagRealtime    = "realtime"
	flagSelect      = "select"
	flagOutput      = "output"
	flagForce       = "force"
	flagVerbose     = "verbose"
	flagLogCalls    = "log-fmi-calls"
	flagLogLevel    = "log-level"
)

// systemArgument describes the argument of most commands.
const systemArgument = "SYSTEM (an .ssp, a folder, an .ssd or an .fmu)"

// runRequest holds the settings of a run from the command line.
type runRequest struct {
	simulate.Request
	Live    string // address of the page; "" = none
	Metrics string // address of the metrics; "" = none
	debugging
	// here is the file that leads to standard output, and aside a path to it while the run prints to
	// standard error; "" = there is none.
	here, aside string
	Quiet       bool
	Verbose     bool // print what needs no action, too
}

func (p *program) runCommand() *cli.Command {
	return &cli.Command{
		Name: "run", Usage: "run a system of FMUs", ArgsUsage: "SYSTEM",
		UsageText: "macrostep run SYSTEM [FLAGS]", Description: runHelp,
		Flags: slices.Concat(settingFlags(), []cli.Flag{
			&cli.StringFlag{Name: flagLive, Category: "Results", Usage: "serve page and metrics during the run at `[HOST:]PORT`; 0: a free port"},
			&cli.BoolFlag{Name: "quiet", Category: "Messages", Usage: "print errors only"},
			valueOptional{&cli.StringFlag{Name: flagVerbose, Aliases: []string{"v"}, Category: "Messages",
				Usage: "print notes and parameters, too; -vv: also debug messages, those of FMUs among them"}, "1"},
			debugFlag(runDebugKeys),
			// They go with the next release.
			&cli.StringFlag{Name: flagMetrics, Hidden: true, Usage: "`ADDRESS`"},
			&cli.StringFlag{Name: flagLogLevel, Hidden: true, Usage: "`LEVEL`"},
			&cli.StringFlag{Name: flagLogCalls, Hidden: true, Usage: "`FILE`"},
		}),
		Action: p.supervised(p.runSystem),
	}
}

func withValue(value string, f *cli.StringFlag) *cli.StringFlag {
	f.Value = value
	return f
}

func (p *program) runSystem(c *cli.Context) error {
	least := 1
	if c.IsSet(flagResume) { // the checkpoint names it
		least = 0
	}
	if err := arguments(c, least, 1, systemArgument); err != nil {
		return err
	}
	r, err := parseRun(c)
	if err != nil {
		return err
	}
	release, err := p.keepApart(r)
	defer release()
	if err != nil {
		return &usageError{"run", err}
	}
	return profile(r.Profile, func() error { return p.execute(c.Context, r) })
}

// parseRun reads the flags.
func parseRun(c *cli.Context) (*runRequest, error) {
	in := newInput(c)
	r := &runRequest{Request: simulate.Request{System: c.Args().First(), LogLevel: slog.LevelWarn}, Metrics: c.String(flagMetrics),
		Quiet: c.Bool("quiet"), debugging: readDebug(in, runDebugKeys)}
	in.settings(&r.Request)
	if in.err() == nil {
		in.add(r.Continue())
	}
	switch r.Output {
	case "":
		r.Output = simulate.DefaultOutput
	case "-":
		r.Output = "/dev/stdout"
	}
	in.add(r.Complete())
	r.level(in)
	var err error
	if text := c.String(flagLive); text != "" {
		r.Live, err = listenTo(flagLive, text)
		in.add(err)
	}
	r.Request.CallByCall, r.LogCalls = r.debugging.CallByCall, cmp.Or(r.Calls, c.String(flagLogCalls))
	switch {
	case r.Realtime != nil:
		r.Realtime.Unbounded = r.Unbounded
	case r.Unbounded:
		in.add(fmt.Errorf("--%s realtime-unbounded needs --%s", flagDebug, flagRealtime))
	}
	if r.LivePaused && r.Live == "" {
		in.add(fmt.Errorf("--%s live-paused: the run is continued from a page, which needs --%s", flagDebug, flagLive))
	}
	in.add(r.Place())
	return r, in.err()
}

// level reads the flags about messages.
func (r *runRequest) level(in *input) {
	if r.Quiet {
		r.LogLevel = slog.LevelError
	}
	switch text := in.String(flagVerbose); text {
	case "":
	case "1":
		r.Verbose, r.LogLevel = true, slog.LevelInfo
	case "2":
		r.Verbose, r.LogLevel = true, slog.LevelDebug
	default:
		in.fail(flagVerbose, fmt.Errorf("%q is not 1 or 2", text))
	}
	if text := in.String(flagLogLevel); text != "" {
		if err := r.LogLevel.UnmarshalText([]byte(text)); err != nil {
			in.fail(flagLogLevel, fmt.Errorf("%q is not one of debug, info, warn, error%s", text, diag.DidYouMean(text, []string{"debug", "info", "warn", "error"})))
		}
	}
}
