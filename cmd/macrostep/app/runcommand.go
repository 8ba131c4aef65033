package app

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/record"
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

// defaultOutput is the default result file.
const defaultOutput = "results.csv"

// Names of the flags that are used in more than one place.
const (
	flagAlgorithm   = "algorithm"
	flagParam       = "param"
	flagQuirk       = "quirk"
	flagBond        = "bond"
	flagRate        = "rate"
	flagLogLevel    = "log-level"
	flagIsolate     = "isolate"
	flagStepTimeout = "step-timeout"
	flagMemoryLimit = "memory-limit"
	flagOnCrash     = "on-crash"
	flagRestarts    = "restart-limit"
	flagReport      = "report"
	flagAnalyze     = "analyze"
	flagCheck       = "check"
	flagBudget      = "budget"
	flagWorkers     = "workers"
	flagStateless   = "stateless"
	flagSet         = "set"
	flagSelect      = "select"
	flagOutput      = "output"
	flagForce       = "force"
	flagVerbose     = "verbose"
)

// systemArgument describes the argument of most commands.
const systemArgument = "SYSTEM (an .ssp, a folder, an .ssd or an .fmu)"

var logLevels = []string{"debug", "info", "warn", "error"}

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
		Flags: slices.Concat(
			inCategory("Time", timeFlags()...), inCategory("Coupling", couplingFlags()...), inCategory("System", systemFlags()...),
			inCategory("Processes", processFlags()...), inCategory("Results", resultFlags()...),
			inCategory("Messages", messageFlags()...)),
		Action: p.supervised(p.runSystem),
	}
}

func withValue(value string, f *cli.StringFlag) *cli.StringFlag {
	f.Value = value
	return f
}

func timeFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag("start-time", "start at `T` seconds"),
		stringFlag("stop-time", "stop at `T` seconds"),
		stringFlag("step-size", "macro step of `H` seconds"),
		stringFlag("tolerance", "relative tolerance `R` for the solvers in the FMUs"),
		valueOptional{stringFlag(flagRealtime, "keep pace with the clock, at `FACTOR` times its speed (default factor: 1)")},
		withValue(master.CatchUp.String(), stringFlag(flagOverrun, "react to a missed deadline by `POLICY`: "+
			strings.Join(master.OverrunPolicies(), ", "))),
		&cli.IntFlag{Name: flagPriority, Usage: "step under SCHED_FIFO with priority `N`, 1 to 99 (Linux; needs the privilege)"},
	}
}

func couplingFlags() []cli.Flag {
	return []cli.Flag{
		stringFlag(flagAlgorithm, "coupling algorithm `PRESET`; macrostep algorithms lists them (default: that of the system, else "+
			algorithms.DefaultPreset+")"),
		listFlag(flagParam, "parameter of the algorithm, `KEY=VALUE`"),
		listFlag(flagStateless, "declare `COMPONENT` stateless: it is stepped after its sources, with their new values"),
		stringFlag("history", "read `FILE.csv` with the connected outputs before the start, so that extrapolation has its full order "+
			"from the first step"),
		listFlag(flagBond, "power bond, `NAME=COMPONENT.EFFORT:COMPONENT.FLOW` of two outputs; -COMPONENT.EFFORT if the product is power that "+
			"leaves the component that gives the flow; more pairs after commas; its energy is monitored"),
		listFlag(flagRate, "let a component take N steps per macro step: `COMPONENT=N`, or one step per N macro steps (COMPONENT=1/N)"),
		boolFlag("monitor-energy", "record and add up the power that the coupling creates at the bonds, with any algorithm"),
		boolFlag(flagAnalyze, "first predict stability and error for this algorithm and step, like macrostep analyze"),
		valueOptional{stringFlag(flagCheck, "after the run, measure its coupling error by runs with other algorithms and smaller steps; an error above "+
			"`LIMIT`, such as 1%, is a warning (default limit: 5%)")},
		stringFlag(flagBudget, "end --check after `SECONDS`; the error of the part reached is kept"),
		withValue("50", stringFlag("energy-spike", "warn of peaks of residual power above `N` times the median of earlier peaks; 0: never")),
		&cli.IntFlag{Name: flagWorkers, Usage: "step subsystems in parallel in `N` threads; 0: as many as pay off, judged by the cost of steps in " +
			"earlier runs on this machine, or one if that is unknown; results are the same"},
	}
}

func systemFlags() []cli.Flag {
	return []cli.Flag{
		listFlag(flagSet, "set a parameter or start value: `COMPONENT.VARIABLE=VALUE`, also of a connector of a system; "+
			"for a single FMU VARIABLE=VALUE"),
		stringFlag("input", "take inputs over time from `FILE` (.csv, .parquet or .mat): unconnected ones, and those of the outermost system; Reals are interpolated linearly, "+
			"others held; items of enumerations by name or number"),
		stringFlag(flagScenario, "play `FILE.yaml`: set and scale variables at times or on conditions, replay tables, check expectations; "+
			"macrostep help scenario describes it"),
		listFlag(flagQuirk, "enable quirk NAME of those above for the FMU of a component: `COMPONENT=NAME`; for a single FMU NAME"),
		boolFlag("compile", "compile the C sources of FMUs that have no library for this platform, with $CC, else cc, gcc or clang, in at most "+
			"ten minutes each"),
		boolFlag("strict", strictUsage+"; only a complete run in which nothing grows and nothing is NaN is a success"),
	}
}

func processFlags() []cli.Flag {
	return append([]cli.Flag{
		withValue(assemble.IsolateAuto.String(), stringFlag(flagIsolate, "run FMUs in separate processes by `POLICY`: "+
			strings.Join(assemble.IsolationNames, ", ")+"; auto: those that must")),
		listFlag("isolate-component", "run the FMU of `COMPONENT` in a separate process"),
		stringFlag(flagStepTimeout, "end an FMU when a call does not return, or a step is pending, for `T` seconds; with auto, isolates all FMUs; "+
			"an FMU that is not isolated ends the run"),
		stringFlag(flagMemoryLimit, "let each FMU allocate at most `N` MiB, not counting shared memory and mapped files (Linux); with auto, "+
			"isolates all FMUs; those that are not isolated share the limit"),
		withValue(crashPolicies[0], stringFlag(flagOnCrash, "when the process of an FMU ends, react by `POLICY`: "+strings.Join(crashPolicies, ", ")+
			"; restart: continue in a new process from the state at the last communication point (the FMU must serialise its state); "+
			"with auto, isolates all FMUs")),
		withValue("10", stringFlag(flagRestarts, "restart each component at most `N` times")),
	}, onFlags()...)
}

func resultFlags() []cli.Flag {
	return []cli.Flag{
		withValue(defaultOutput, outputFlag("write results to `FILE`; its extension sets the format: .parquet, .mat (Dymola, OMEdit), else CSV")),
		listFlag("record", "record what matches `GLOB` (* and ? only; none: no result file) (default: outputs, and inputs that are connected or "+
			"given)"),
		stringFlag("output-interval", "one row at the first communication point at or after each multiple of `T` seconds, and one at the end"),
		stringFlag("manifest", "manifest `FILE.json` (default: beside --output, with .json in place of .csv, else added)"),
		stringFlag("trace", "table `FILE.csv` of every attempt at a macro step: t,H,k,iterations,estimate,indicator,accepted"),
		stringFlag(flagReport, "write a web page of the run, with plots, to `FILE.html` (see macrostep help report)"),
		stringFlag(flagLive, "serve that page during the run at `[HOST:]PORT`, with pause, step and stop; without HOST for this machine only; "+
			"0: a free port; the address printed contains a token, unless MACROSTEP_TOKEN sets one"),
		pair{&cli.StringSliceFlag{Name: flagCheckpoint, KeepSpace: true, Usage: "save in `EVERY FILE` what is needed to continue the run, at the " +
			"first communication point at or after each multiple of EVERY seconds of simulated time, and on an interrupt (all FMUs must " +
			"serialise their state); 0: only on an interrupt"}},
		stringFlag(flagResume, "continue from the checkpoint `FILE`, with SYSTEM and flags of its run; flags given here take their place, and "+
			"what must be the same is checked"),
	}
}

func messageFlags() []cli.Flag {
	return []cli.Flag{
		withValue("warn", stringFlag(flagLogLevel, "messages from `LEVEL` up: "+strings.Join(logLevels, ", ")+
			"; debug also turns on the debug logging of the FMUs, and keeps more than 2000 messages a second")),
		stringFlag(flagMetrics, "serve metrics for Prometheus at http://`ADDRESS`/metrics during the run: HOST:PORT, or PORT on this machine only; "+
			"the token of --live is also accepted as Authorization: Bearer"),
		stringFlag("log-fmi-calls", "write every call into an FMU to `FILE`"),
		boolFlag("quiet", "print errors only"),
		boolFlag(flagVerbose, "print notes and the parameters of the algorithm, too"),
		debugFlag(runDebugKeys),
	}
}

func (p *program) runSystem(c *cli.Context) error {
	if err := arguments(c, 1, 1, systemArgument); err != nil {
		return err
	}
	r, err := parseRun(c)
	if err != nil {
		return err
	}
	release, err := p.keepApart(r)
	defer release()
	if err == nil {
		r.Checkpoints.Arguments, err = keepArguments(p.flags, r.System)
	}
	if err != nil {
		return &usageError{"run", err}
	}
	return profile(r.Profile, func() error { return p.execute(c.Context, r) })
}

// parseRun reads the flags.
func parseRun(c *cli.Context) (*runRequest, error) {
	in := newInput(c)
	r := &runRequest{
		Request: simulate.Request{
			System: c.Args().First(), Given: c.LocalFlagNames(),
			Start: in.number("start-time", anyNumber), Stop: in.number("stop-time", anyNumber),
			Step: in.number("step-size", positive), Tolerance: in.number("tolerance", positive),
			Algorithm: c.String(flagAlgorithm), Params: in.params(), Stateless: c.StringSlice(flagStateless),
			Bonds: readBonds(in), Rates: each(in, flagRate, readRate), Spike: in.float("energy-spike", notNegative),
			MonitorEnergy: c.Bool("monitor-energy"), Analyze: c.Bool(flagAnalyze), Workers: c.Int(flagWorkers),
			Check: readCheck(in), Scenario: c.String(flagScenario), Input: c.String("input"), History: c.String("history"),
			Set: in.assignments(flagSet), Quirks: each(in, flagQuirk, readQuirk), Compile: c.Bool("compile"), Strict: c.Bool("strict"),
			Output: c.String(flagOutput), Manifest: c.String("manifest"), Trace: c.String("trace"), Report: c.String(flagReport),
			Record: in.globs("record"), Interval: in.float("output-interval", positive), LogCalls: c.String("log-fmi-calls"),
			Isolation: readIsolation(in), Checkpoints: readCheckpointing(in), Realtime: readRealtime(in),
		},
		Metrics: c.String(flagMetrics), Quiet: c.Bool("quiet"), Verbose: c.Bool(flagVerbose), debugging: readDebug(in, runDebugKeys),
	}
	if r.Start != nil && r.Stop != nil && r.Stop.Value <= r.Start.Value {
		in.add(fmt.Errorf("--stop-time %g is not after --start-time %g", r.Stop.Value, r.Start.Value))
	}
	if r.Workers < 0 {
		in.fail(flagWorkers, fmt.Errorf("%d is less than 0", r.Workers))
	}
	var err error
	if text := c.String(flagLive); text != "" {
		r.Live, err = listenTo(flagLive, text)
		in.add(err)
	}
	r.Request.CallByCall = r.debugging.CallByCall
	switch {
	case r.Realtime != nil:
		r.Realtime.Unbounded = r.Unbounded
	case r.Unbounded:
		in.add(fmt.Errorf("--%s realtime-unbounded needs --%s", flagDebug, flagRealtime))
	}
	if r.LivePaused && r.Live == "" {
		in.add(fmt.Errorf("--%s live-paused: the run is continued from a page, which needs --%s", flagDebug, flagLive))
	}
	if r.Format, err = record.FormatOf(r.Output); err != nil && !r.Record.IsNone() {
		in.add(fmt.Errorf("--%s %w", flagOutput, err))
	}
	if err := r.LogLevel.UnmarshalText([]byte(logLevels[in.oneOf(flagLogLevel, logLevels)])); err != nil {
		in.fail(flagLogLevel, err)
	}
	in.add(r.Place())
	return r, in.err()
}

// crashPolicies are the values of --on-crash.
var crashPolicies = []string{"stop", "restart"}

// readIsolation reads the flags about processes. Limits and restarts isolate all FMUs, unless flags name
// the FMUs to isolate.
func readIsolation(in *input) simulate.Isolation {
	i := simulate.Isolation{
		Mode: assemble.Isolation(in.oneOf(flagIsolate, assemble.IsolationNames)), Given: in.IsSet(flagIsolate),
		Components: in.StringSlice("isolate-component"), RestartsGiven: in.IsSet(flagOnCrash),
	}
	if t := in.number(flagStepTimeout, positive); t != nil {
		i.StepTimeout = assemble.Timeout(t.Value)
	}
	if mib := in.float(flagMemoryLimit, positive); mib > simulate.LargestMemory {
		in.fail(flagMemoryLimit, fmt.Errorf("%g MiB is too large; leave the flag out for no limit", mib))
	} else {
		i.MemoryLimit = simulate.MemoryOf(mib)
	}
	restart := in.oneOf(flagOnCrash, crashPolicies) == 1
	n, err := strconv.Atoi(strings.TrimSpace(in.String(flagRestarts)))
	switch {
	case err != nil || n < 1:
		in.fail(flagRestarts, fmt.Errorf("%q is not a whole number of at least 1; to restart nothing, give --%s stop",
			in.String(flagRestarts), flagOnCrash))
	case !restart && in.IsSet(flagRestarts):
		in.fail(flagRestarts, fmt.Errorf("nothing is restarted without --%s restart", flagOnCrash))
	case restart:
		i.Restarts = n
	}
	switch {
	case len(i.Components) > 0:
	case i.Mode == assemble.IsolateNever && i.Restarts > 0:
		in.add(fmt.Errorf("--%s restart needs FMUs in separate processes; leave out --%s %s", flagOnCrash, flagIsolate, i.Mode))
	case i.Mode == assemble.IsolateAuto && (i.StepTimeout > 0 || i.MemoryLimit > 0 || i.Restarts > 0):
		i.Mode, i.Given = assemble.IsolateAlways, true
	}
	readHosts(in, &i)
	return i
}

// readRate reads COMPONENT=N or COMPONENT=1/N.
func readRate(text string) (algorithms.Rate, error) {
	at := strings.LastIndexByte(text, '=')
	number, slow := strings.CutPrefix(text[at+1:], "1/")
	n, err := strconv.Atoi(number)
	switch {
	case at < 1 || err != nil || n < 1:
		return algorithms.Rate{}, fmt.Errorf("%q is not COMPONENT=N or COMPONENT=1/N with a whole N", text)
	case slow:
		return algorithms.Rate{Component: text[:at], Steps: 1, Over: n}, nil
	}
	return algorithms.Rate{Component: text[:at], Steps: n, Over: 1}, nil
}

// readBonds reads NAME=a.F:b.v,….
func readBonds(in *input) []algorithms.Bond {
	names := map[string]bool{}
	return each(in, flagBond, func(text string) (b algorithms.Bond, err error) {
		name, list, ok := strings.Cut(text, "=")
		b.Name = strings.TrimSpace(name)
		for pair := range strings.SplitSeq(list, ",") {
			pair, opposed := strings.CutPrefix(strings.TrimSpace(pair), "-")
			effort, flow, two := strings.Cut(pair, ":")
			ok = ok && two && strings.Contains(effort, ".") && strings.Contains(flow, ".")
			b.Pairs = append(b.Pairs, algorithms.Pair{Effort: effort, Flow: flow, Opposed: opposed})
		}
		switch {
		case !ok || b.Name == "" || strings.ContainsAny(b.Name, ",\"\n"):
			err = fmt.Errorf("%q is not NAME=COMPONENT.EFFORT:COMPONENT.FLOW", text)
		case names[b.Name]:
			err = fmt.Errorf("two bonds are called %s", b.Name)
		}
		names[b.Name] = true
		return b, err
	})
}

// readQuirk reads COMPONENT=NAME, or NAME for a single FMU.
func readQuirk(text string) (simulate.Assignment, error) {
	at := strings.LastIndexByte(text, '=')
	if at == 0 {
		return simulate.Assignment{}, fmt.Errorf("%q is not COMPONENT=NAME", text)
	}
	_, err := fmuslave.ParseQuirk(text[at+1:])
	return simulate.Assignment{Name: text[:max(at, 0)], Value: text[at+1:]}, err
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

// readCheck reads the request to measure the error; nil if there is none.
func readCheck(in *input) *simulate.Check {
	if !in.IsSet(flagCheck) {
		if in.IsSet(flagBudget) {
			in.add(fmt.Errorf("--%s needs --%s", flagBudget, flagCheck))
		}
		return nil
	}
	check := &simulate.Check{Limit: simulate.DefaultLimit, Budget: time.Duration(in.float(flagBudget, positive) * float64(time.Second))}
	if text := in.String(flagCheck); text != "true" {
		number, percent := strings.CutSuffix(text, "%")
		v, err := parseNumber(number, positive)
		in.fail(flagCheck, err)
		if check.Limit = v; percent {
			check.Limit = v / 100
		} else if v >= 1 {
			in.fail(flagCheck, fmt.Errorf("%s is %g times the motion of a variable; for %s %%, write --%s=%s%%", text, v, text, flagCheck, text))
		}
	}
	return check
}
