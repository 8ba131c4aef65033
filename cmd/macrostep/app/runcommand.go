package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/simulate"
)

const runHelp = `Runs SYSTEM (an .ssp, a folder, an .ssd or one .fmu) and writes its results. A
folder has SystemStructure.ssd; an OspSystemStructure.xml of OSP, or the folder with
it, runs as well. To run another document of a package or folder, put its name after
a #: SYSTEM.ssp#VARIANT.ssd. Flags may come before or after SYSTEM; --flag VALUE and
--flag=VALUE are the same.

Results are a table, time,component.variable,…: one row per communication point,
the first at the start, after initialisation. The manifest beside it (.json) records
how the result was produced: status, every parameter in force and its source, loops,
warnings, counters, times. A run replaces the results of an earlier one. Instead of
a file, an output may be a named pipe; its reader must come within ten seconds.

The extension of --output sets the format of the table: .parquet (DuckDB, pandas,
polars, MATLAB), .mat (the trajectory of Dymola and OMEdit; no strings), else CSV.
The first two are binary, several times faster to write and read, and carry units
and descriptions. However the process of the FMUs ends, the table is whole up to
the last communication point. If the machine fails, CSV and .mat have every row up
to a second earlier, and .parquet its row groups (up to 65536 rows each).

The macro step is --step-size, else that of the system's annotations, else the
smallest stepSize of a DefaultExperiment, else a thousandth of the time span.
Settings not given as flags come from annotations of the system: ours cover
everything, those of OMSimulator, OSP and OpenMCx a part. The manifest names the
sources.

--set gives a parameter or start value. A connector of a system takes a value
like a variable, in the unit of the connector: --set CONNECTOR=VALUE, or for a
nested system --set SYSTEM.CONNECTOR=VALUE. The value follows the connections,
with their units and transformations, and overrides values in the documents there
and at connectors that feed this one. An input that is fed by the output of an
FMU cannot be set; a warning says so. A column of --input may be named after an
input of the outermost system and then drives everything connected to it. For a
single FMU the component may be left out: --set k=2, --record x, columns of
--input, variables of a scenario. Where dots make a name ambiguous, quote each
part: --set "'a.b'.c=1" is variable c of component a.b.

Ctrl-C ends a run at the next communication point and keeps its results.

--checkpoint saves the state of a run to a file, and --resume continues from it,
with results that are equal to the last bit if the FMUs repeat their steps
exactly (a warning says if they do not). Rows are appended to the same table;
--output NAME writes those after the checkpoint to another one. Give a later
--stop-time to extend a run.

Examples:
   macrostep run system.ssp
   macrostep run system.ssp --stop-time 10 --step-size 1e-3 --output r.csv
   macrostep run system.ssp --set wheel.k_w=2e5 --record 'wheel.*'
   macrostep run system.ssp --algorithm gauss-seidel --report system.html
   macrostep run model.fmu --set k=2 --record x --input signals.csv
   macrostep run system.ssp --algorithm im-slocal --param order=1 --trace steps.csv
   macrostep run system.ssp --output-interval 0.01 --quiet
   macrostep run system.ssp --record '*' --output r.parquet
   macrostep run system.ssp --scenario fault.yaml
   macrostep run system.ssp --realtime --overrun stop
   macrostep run system.ssp --record none --output timing.csv
   macrostep run system.ssp --stop-time 3600 --checkpoint 60 run.checkpoint
   macrostep run --resume run.checkpoint`

// Names of the flags that are used in more than one place.
const (
	flagAlgorithm   = "algorithm"
	flagParam       = "param"
	flagBond        = "bond"
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
		UsageText: "macrostep run SYSTEM [FLAGS]", Description: runHelp + realtimeHelp + quirkHelp(),
		Flags: slices.Concat(settingFlags(), []cli.Flag{
			&cli.StringFlag{Name: flagLive, Category: "Results", Usage: "serve the page and metrics of the run at `[HOST:]PORT`, with pause, step and stop; 0: a free port"},
			&cli.BoolFlag{Name: "quiet", Category: "Messages", Usage: "print errors only"},
			valueOptional{&cli.StringFlag{Name: flagVerbose, Aliases: []string{"v"}, Category: "Messages",
				Usage: "print notes and parameters, too; -vv: also debug messages, of FMUs too"}, "1"},
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
	r := &runRequest{Request: simulate.Request{System: c.Args().First(), LogLevel: slog.LevelWarn, Dial: dial}, Metrics: c.String(flagMetrics),
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
		in.fail(flagLogLevel, r.LogLevel.UnmarshalText([]byte(text)))
	}
}

// quirkHelp describes the quirks, one per line.
func quirkHelp() string {
	var b strings.Builder
	b.WriteString("\n\nQuirks, for FMUs that need them:")
	for _, q := range fmuslave.Quirks() {
		fmt.Fprintf(&b, "\n   %-25s%s", q.Name, q.Doc)
	}
	return b.String()
}
