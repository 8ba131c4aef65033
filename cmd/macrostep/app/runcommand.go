package app

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/fmuslave"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

const runHelp = `SYSTEM is an .ssp, a folder with SystemStructure.ssd, an .ssd, or one .fmu; or
an OspSystemStructure.xml of OSP, or a folder with one. Behind a # stands another
document of a package or folder: SYSTEM.ssp#VARIANT.ssd.
Flags stand before or after it; --flag VALUE and --flag=VALUE are the same.

Results are a table, time,component.variable,…: one row per communication
point, the first one the start after initialisation. The manifest beside it
(.json) says how the result came about: status, every parameter in force and
where it came from, loops, warnings, counters, times. A named pipe in place of a
file needs a reader within ten seconds.

The table is CSV, or Apache Arrow if the file is called so: .arrow (or .feather)
is an Arrow IPC file, .arrows an Arrow IPC stream. They are binary, by column, and
many times faster to write and to read; columns have their own types, and say
unit, description, causality and variability of their variables. Whatever ends
the process of the FMUs, the table is whole up to the last communication point. If
the machine fails, a CSV table has every row up to a second before, to its last line
feed, and an Arrow table its whole record batches (up to 65536 rows each); an .arrow
file lacks the footer then and is read as a stream from byte 8 on.

The macro step is --step-size, else that of the system's annotations, else the
smallest stepSize of a DefaultExperiment, else a thousandth of the time span.
What flags leave open, annotations of the system may say: ours everything, those of
OMSimulator, OSP and OpenMCx what they have. The manifest names the sources.
Connectors of systems take values like variables: --set CONNECTOR=VALUE, or of a
system inside --set SYSTEM.CONNECTOR=VALUE, in the unit of the connector. The value
goes on over the connections, with their units and transformations, and beats those
of the documents there and at connectors that feed this one. What an output of an
FMU feeds takes no value: a warning says so. A column of --input may be called
like an input of the outermost system, and goes to all that it is connected to.
Of one FMU every name of a variable may stand without that of the component:
--set k=2, --record x, columns of --input, variables of a scenario.
Where dots in names make a name mean several things, put each name in quotes:
--set "'a.b'.c=1" is variable c of component a.b.
Ctrl-C ends a run at the next communication point; results are kept.

--checkpoint keeps the state of a run in a file, and --resume goes on from it
with the same results to the last bit, as far as the FMUs repeat their steps
to the last bit (a warning tells if not). The results go on in the same file;
--output NAME puts the rows behind the checkpoint into another. With another
--stop-time the run goes on to there.

Examples:
   macrostep run system.ssp
   macrostep run system.ssp --stop-time 10 --step-size 1e-3 --output r.csv
   macrostep run system.ssp --set wheel.k_w=2e5 --set road.name="a, b"
   macrostep run system.ssp --algorithm gauss-seidel --param order=1
   macrostep run system.ssp --algorithm im-slocal --trace steps.csv
   macrostep run system.ssp --record 'wheel.*' --record chassis.F_c
   macrostep run system.ssp --output-interval 0.01 --quiet
   macrostep run system.ssp --report system.html
   macrostep run system.ssp --record '*' --output r.arrow
   macrostep run model.fmu --set k=2 --record x --input signals.csv
   macrostep run system.ssp --scenario fault.yaml
   macrostep run system.ssp --realtime --overrun stop
   macrostep run system.ssp --record none --output timing.csv
   macrostep run system.ssp --stop-time 3600 --checkpoint 60 run.checkpoint
   macrostep run --resume run.checkpoint`

// defaultOutput is the result of a run that names none.
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
)

var logLevels = []string{"debug", "info", "warn", "error"}

// runRequest is a run as the user asked for it.
type runRequest struct {
	simulate.Request
	Live    string // address to listen to; "" = none
	Metrics string // address; "" = none are served
	debugging
	// The file that is standard output, and a name that leads there while the run prints to
	// standard error; "" = none is.
	here, aside string
	Quiet       bool
}

const flagWorkers = "workers"

func (p *program) runCommand() *cli.Command {
	const times, coupling, system, processes, results, messages = "Time", "Coupling", "System", "Processes", "Results", "Messages"
	command := &cli.Command{
		Name: "run", Usage: "run a system of FMUs", ArgsUsage: "SYSTEM",
		UsageText: "macrostep run SYSTEM [FLAGS]", Description: runHelp + realtimeHelp + quirkHelp(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "start-time", Usage: "start at `T` seconds", Category: times},
			&cli.StringFlag{Name: "stop-time", Usage: "stop at `T` seconds", Category: times},
			&cli.StringFlag{Name: "step-size", Usage: "macro step of `H` seconds", Category: times},
			&cli.StringFlag{Name: "tolerance", Usage: "relative tolerance `R` for the solvers in the FMUs", Category: times},
			&cli.StringFlag{Name: flagAlgorithm, Usage: "coupling algorithm `PRESET`; macrostep algorithms lists them (default: that of the system, else " + algorithms.DefaultPreset + ")", Category: coupling},
			repeatable{&cli.StringSliceFlag{Name: flagParam, Usage: "parameter of the algorithm, `KEY=VALUE`; repeatable", KeepSpace: true, Category: coupling}},
			repeatable{&cli.StringSliceFlag{Name: "stateless", Usage: "declare `COMPONENT` stateless: it is stepped after its sources, with their new values; repeatable", KeepSpace: true, Category: coupling}},
			&cli.StringFlag{Name: "history", Usage: "`FILE.csv` with the connected outputs before the start, for extrapolation of full order from the first step on", Category: coupling},
			repeatable{&cli.StringSliceFlag{Name: flagBond, Usage: "power bond, `NAME=COMPONENT.EFFORT:COMPONENT.FLOW` of two outputs; -COMPONENT.EFFORT if its product with the flow is power that leaves the giver of the flow; more pairs after commas; repeatable; its energy is monitored", KeepSpace: true, Category: coupling}},
			repeatable{&cli.StringSliceFlag{Name: flagRate, Usage: "`COMPONENT=N` steps a macro step, or COMPONENT=1/N: one step over N macro steps; repeatable", KeepSpace: true, Category: coupling}},
			&cli.BoolFlag{Name: "monitor-energy", Usage: "record and total the power that the coupling lets appear at the bonds, with any algorithm", Category: coupling},
			&cli.BoolFlag{Name: flagAnalyze, Usage: "tell first whether the coupling will be stable with this algorithm and step, and what error to expect, as macrostep analyze does", Category: coupling},
			&cli.StringFlag{Name: "energy-spike", Usage: "warn of residual power whose peaks rise to `N` times their median before; 0: never", Value: "50", Category: coupling},
			&cli.IntFlag{Name: flagWorkers, Usage: "step subsystems side by side in `N` threads; 0: as many as pay, by the cost of their steps in earlier runs on this machine, and one if that is not known; the results are the same", Category: coupling},
			repeatable{&cli.StringSliceFlag{Name: "set", Usage: "parameter or start value, `COMPONENT.VARIABLE=VALUE`, also of a connector of a system; of one FMU VARIABLE=VALUE; repeatable", KeepSpace: true, Category: system}},
			&cli.StringFlag{Name: "input", Usage: "`FILE.csv` with unconnected inputs over time, or inputs of the outermost system; Reals are linear between rows, others held; items of enumerations by name or number", Category: system},
			&cli.StringFlag{Name: flagScenario, Usage: "play `FILE.yaml`: set and scale variables at times or on conditions, replay tables, and judge what is expected; macrostep help scenario describes it", Category: system},
			repeatable{&cli.StringSliceFlag{Name: flagQuirk, Usage: "`COMPONENT=NAME`: a quirk of its FMU, one of those above; of one FMU NAME; repeatable", KeepSpace: true, Category: system}},
			&cli.BoolFlag{Name: "compile", Usage: "compile the C sources of FMUs that have no library for this platform, with $CC, else cc, gcc or clang, in at most ten minutes each", Category: system},
			&cli.BoolFlag{Name: "strict", Usage: "take deviations from the standards and names that match nothing as errors, and only a complete and stable run as a success", Category: system},
			&cli.StringFlag{Name: flagIsolate, Usage: "run FMUs in processes of their own: " + strings.Join(assemble.IsolationNames, ", ") + "; auto: those that must", Value: assemble.IsolateAuto.String(), Category: processes},
			repeatable{&cli.StringSliceFlag{Name: "isolate-component", Usage: "run the FMU of `COMPONENT` in a process of its own; repeatable", KeepSpace: true, Category: processes}},
			&cli.StringFlag{Name: flagStepTimeout, Usage: "end an FMU that does not return from a call, or whose step is pending, for `T` seconds; with auto, isolates all FMUs; one that is not isolated ends the run", Category: processes},
			&cli.StringFlag{Name: flagMemoryLimit, Usage: "let each FMU allocate at most `N` MiB, shared memory and mapped files aside (Linux); with auto, isolates all FMUs; those that are not isolated may have so much in use together", Category: processes},
			&cli.StringFlag{Name: flagOnCrash, Usage: "when the process of an FMU ends: " + strings.Join(crashPolicies, ", ") + "; restart: it goes on in another one from its state at the last communication point (the FMU must serialise its state); with auto, isolates all FMUs", Value: crashPolicies[0], Category: processes},
			&cli.StringFlag{Name: flagRestarts, Usage: "restart each component at most `N` times", Value: "10", Category: processes},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "result `FILE`; its extension gives the format: .arrow or .feather (Apache Arrow), .arrows (the same as a stream), else CSV", Value: defaultOutput, Category: results},
			repeatable{&cli.StringSliceFlag{Name: "record", Usage: "record what `GLOB` matches (* and ? only; none: no result file); repeatable (default: outputs, and inputs that are connected or given)", KeepSpace: true, Category: results}},
			&cli.StringFlag{Name: "output-interval", Usage: "one row at the first communication point at or after each multiple of `T` seconds, and one at the end", Category: results},
			&cli.StringFlag{Name: "manifest", Usage: "manifest `FILE.json` (default: beside --output)", Category: results},
			&cli.StringFlag{Name: "trace", Usage: "table `FILE.csv` of every attempt at a macro step: t,H,k,iterations,estimate,indicator,accepted", Category: results},
			&cli.StringFlag{Name: flagReport, Usage: "web page `FILE.html` of the run, with plots (see macrostep help report)", Category: results},
			&cli.StringFlag{Name: flagLive, Usage: "serve that page while the run goes on, at `[HOST:]PORT`, with pause, step and stop; without HOST for this machine only; 0: a free port; the address that is printed holds a token, if MACROSTEP_TOKEN has none", Category: results},
			pair{&cli.StringSliceFlag{Name: flagCheckpoint, Usage: "at the first communication point at or after each multiple of EVERY seconds of simulated time and when the run is interrupted, keep in `EVERY FILE` what it takes to go on from there (all FMUs must serialise their state); 0: only when interrupted", KeepSpace: true, Category: results}},
			&cli.StringFlag{Name: flagResume, Usage: "go on from the checkpoint `FILE`, with SYSTEM and flags of its run; those given here take their place, and what must be the same is checked", Category: results},
			&cli.StringFlag{Name: flagLogLevel, Usage: "messages from `LEVEL` up: " + strings.Join(logLevels, ", "), Value: "warn", Category: messages},
			&cli.StringFlag{Name: flagMetrics, Usage: "serve metrics for Prometheus at http://`ADDRESS`/metrics while the run goes on: HOST:PORT, or PORT on this machine only; the token of --live is also taken as Authorization: Bearer", Category: messages},
			&cli.StringFlag{Name: "log-fmi-calls", Usage: "write every call into an FMU to `FILE`", Category: messages},
			&cli.BoolFlag{Name: "quiet", Usage: "print errors only", Category: messages},
			debugFlag(runDebugKeys, messages),
		},
		Action: p.supervised(func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "SYSTEM (an .ssp, a folder, an .ssd or an .fmu)"); err != nil {
				return err
			}
			req, err := parseRun(c)
			if err != nil {
				return &usageError{"run", err}
			}
			release, err := p.keepApart(req)
			defer release()
			if err != nil {
				return &usageError{"run", err}
			}
			if req.Checkpoints.Arguments, err = keepArguments(p.flags, req.System); err != nil {
				return &usageError{"run", err}
			}
			execute := func() error { return p.execute(c.Context, req) }
			if req.Profile != "" {
				return profile(req.Profile, execute)
			}
			return execute()
		}),
	}
	at := slices.IndexFunc(command.Flags, func(f cli.Flag) bool { return f.Names()[0] == flagAlgorithm })
	command.Flags = slices.Insert(command.Flags, at, realtimeFlags(times)...)
	return command
}

// parseRun reads the flags and gives all errors at once.
func parseRun(c *cli.Context) (*runRequest, error) {
	var errs []error
	number := func(name string, positive bool) *simulate.Setting {
		if !c.IsSet(name) {
			return nil
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(c.String(name)), 64)
		switch {
		case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
			errs = append(errs, fmt.Errorf("--%s: %q is not a finite number; give one like 0.001 or 1e-3", name, c.String(name)))
		case positive && v <= 0:
			errs = append(errs, fmt.Errorf("--%s: %s is not greater than 0", name, c.String(name)))
		default:
			return &simulate.Setting{Value: v, Source: "--" + name}
		}
		return nil
	}
	r := &runRequest{
		Request: simulate.Request{
			System: c.Args().First(),
			Start:  number("start-time", false), Stop: number("stop-time", false),
			Step: number("step-size", true), Tolerance: number("tolerance", true),
			Algorithm: c.String(flagAlgorithm), Stateless: c.StringSlice("stateless"),
			Scenario: c.String(flagScenario), Input: c.String("input"), History: c.String("history"),
			Output: c.String("output"), Manifest: c.String("manifest"), Strict: c.Bool("strict"), LogCalls: c.String("log-fmi-calls"),
			Trace: c.String("trace"), Report: c.String(flagReport), Workers: c.Int(flagWorkers), Given: c.LocalFlagNames(),
		},
		Metrics: c.String(flagMetrics), Quiet: c.Bool("quiet"),
	}
	if r.Start != nil && r.Stop != nil && r.Stop.Value <= r.Start.Value {
		errs = append(errs, fmt.Errorf("--stop-time %g is not after --start-time %g", r.Stop.Value, r.Start.Value))
	}
	if i := number("output-interval", true); i != nil {
		r.Interval = i.Value
	}
	for _, name := range []string{flagAlgorithm, flagScenario, flagMetrics, "input", "history", "output", "manifest", "trace", flagReport, flagLive, "log-fmi-calls"} {
		if c.IsSet(name) && c.String(name) == "" {
			errs = append(errs, fmt.Errorf("--%s: the value is empty", name))
		}
	}
	if c.IsSet(flagLive) {
		live, err := listenTo(flagLive, c.String(flagLive))
		errs, r.Live = append(errs, err), live
	}
	bonds, err := readBonds(c.StringSlice(flagBond))
	errs = append(errs, err)
	r.Checkpoints, err = readCheckpointing(c)
	errs = append(errs, err)
	r.Realtime, err = readRealtime(c)
	errs = append(errs, err)
	r.debugging, err = readDebug(runDebugKeys, c.StringSlice(flagDebug))
	errs = append(errs, err)
	r.Request.CallByCall = r.debugging.CallByCall
	switch {
	case r.Realtime != nil:
		r.Realtime.Unbounded = r.Unbounded
	case r.Unbounded:
		errs = append(errs, fmt.Errorf("--%s realtime-unbounded needs --%s", flagDebug, flagRealtime))
	}
	if r.LivePaused && !c.IsSet(flagLive) {
		errs = append(errs, fmt.Errorf("--%s live-paused: there is no page to go on from without --%s", flagDebug, flagLive))
	}
	r.Rates, err = readRates(c.StringSlice(flagRate))
	errs = append(errs, err)
	r.Bonds, r.MonitorEnergy, r.Analyze = bonds, c.Bool("monitor-energy"), c.Bool(flagAnalyze)
	if v, err := strconv.ParseFloat(c.String("energy-spike"), 64); err != nil || !(v >= 0) || math.IsInf(v, 0) {
		errs = append(errs, fmt.Errorf("--energy-spike: %q is not a number of at least 0", c.String("energy-spike")))
	} else {
		r.Spike = v
	}
	if r.Workers < 0 {
		errs = append(errs, fmt.Errorf("--workers: %d is less than 0", r.Workers))
	}
	params, err := assignments(flagParam, c.StringSlice(flagParam))
	errs = append(errs, err)
	r.Params = map[string]string{}
	for _, a := range params {
		r.Params[a.Name] = a.Value
	}
	timeout, memory := number(flagStepTimeout, true), number(flagMemoryLimit, true)
	restarts, err := readRestarts(c)
	errs = append(errs, err)
	r.Isolation, err = readIsolation(c.String(flagIsolate), c.IsSet(flagIsolate), c.StringSlice("isolate-component"), timeout, memory, restarts)
	r.Isolation.RestartsGiven = c.IsSet(flagOnCrash)
	errs = append(errs, err)
	quirks, err := readQuirks(c.StringSlice(flagQuirk))
	errs = append(errs, err)
	r.Quirks, r.Compile = quirks, c.Bool("compile")
	r.Set, err = assignments("set", c.StringSlice("set"))
	errs = append(errs, err)
	if r.Record, err = record.ParseSelection(c.StringSlice("record")); err != nil {
		errs = append(errs, fmt.Errorf("--record: %w", err))
	}
	if r.Format, err = record.FormatOf(r.Output); err != nil && !r.Record.IsNone() {
		errs = append(errs, fmt.Errorf("--output %w", err))
	}
	if err := r.LogLevel.UnmarshalText([]byte(c.String(flagLogLevel))); err != nil {
		errs = append(errs, fmt.Errorf("--%s: %q is none of %s", flagLogLevel, c.String(flagLogLevel), strings.Join(logLevels, ", ")))
	}
	errs = append(errs, r.Place())
	return r, errors.Join(errs...)
}

// crashPolicies are the values of --on-crash.
var crashPolicies = []string{"stop", "restart"}

// readRestarts returns how often a component may be restarted; 0 = never.
func readRestarts(c *cli.Context) (int, error) {
	policy := c.String(flagOnCrash)
	if !slices.Contains(crashPolicies, policy) {
		return 0, fmt.Errorf("--%s: %q is none of %s", flagOnCrash, policy, strings.Join(crashPolicies, ", "))
	}
	n, err := strconv.Atoi(strings.TrimSpace(c.String(flagRestarts)))
	switch {
	case err != nil || n < 1:
		return 0, fmt.Errorf("--%s: %q is no whole number from 1 on; without restarts there is --%s stop", flagRestarts, c.String(flagRestarts), flagOnCrash)
	case policy == crashPolicies[0] && c.IsSet(flagRestarts):
		return 0, fmt.Errorf("--%s: nothing is restarted without --%s restart", flagRestarts, flagOnCrash)
	case policy == crashPolicies[0]:
		return 0, nil
	}
	return n, nil
}

// readIsolation reads the flags about processes. Limits and restarts isolate all FMUs,
// unless the user has said which.
func readIsolation(mode string, given bool, components []string, timeout, memory *simulate.Setting, restarts int) (simulate.Isolation, error) {
	i := simulate.Isolation{Components: components, Restarts: restarts}
	var err error
	if i.Mode, err = assemble.ParseIsolation(mode); err != nil {
		return i, fmt.Errorf("--%s: %w", flagIsolate, err)
	}
	i.Given = given
	if timeout != nil {
		i.StepTimeout = assemble.Timeout(timeout.Value)
	}
	if memory != nil {
		if memory.Value > simulate.LargestMemory {
			return i, fmt.Errorf("--%s: %g MiB is more than there can be; leave the flag out for no limit", flagMemoryLimit, memory.Value)
		}
		i.MemoryLimit = simulate.MemoryOf(memory.Value)
	}
	switch {
	case len(components) > 0:
	case i.Mode == assemble.IsolateNever && restarts > 0:
		return i, fmt.Errorf("--%s restart needs FMUs in processes of their own; leave --%s %s out", flagOnCrash, flagIsolate, mode)
	case i.Mode == assemble.IsolateAuto && (timeout != nil || memory != nil || restarts > 0):
		i.Mode, i.Given = assemble.IsolateAlways, true
	}
	return i, nil
}

// readRates reads COMPONENT=N and COMPONENT=1/N.
func readRates(texts []string) ([]algorithms.Rate, error) {
	var out []algorithms.Rate
	var errs []error
	for _, text := range texts {
		at := strings.LastIndexByte(text, '=')
		r := algorithms.Rate{Steps: 1, Over: 1}
		ok := at > 0
		if ok {
			r.Component = text[:at]
			number, slow := strings.CutPrefix(text[at+1:], "1/")
			n, err := strconv.Atoi(number)
			ok = err == nil && n >= 1
			if slow {
				r.Over = n
			} else {
				r.Steps = n
			}
		}
		if !ok {
			errs = append(errs, fmt.Errorf("--%s: %q is not COMPONENT=N or COMPONENT=1/N with a whole N", flagRate, text))
			continue
		}
		out = append(out, r)
	}
	return out, errors.Join(errs...)
}

// readBonds reads NAME=a.F:b.v,….
func readBonds(texts []string) ([]algorithms.Bond, error) {
	var out []algorithms.Bond
	var errs []error
	for _, text := range texts {
		name, list, ok := strings.Cut(text, "=")
		b := algorithms.Bond{Name: strings.TrimSpace(name)}
		for pair := range strings.SplitSeq(list, ",") {
			pair, opposed := strings.CutPrefix(strings.TrimSpace(pair), "-")
			effort, flow, two := strings.Cut(pair, ":")
			ok = ok && two && strings.Contains(effort, ".") && strings.Contains(flow, ".")
			b.Pairs = append(b.Pairs, algorithms.Pair{Effort: effort, Flow: flow, Opposed: opposed})
		}
		switch {
		case !ok || b.Name == "" || strings.ContainsAny(b.Name, ",\"\n"):
			errs = append(errs, fmt.Errorf("--%s: %q is not NAME=COMPONENT.EFFORT:COMPONENT.FLOW", flagBond, text))
		case slices.ContainsFunc(out, func(o algorithms.Bond) bool { return o.Name == b.Name }):
			errs = append(errs, fmt.Errorf("--%s: two bonds are called %s", flagBond, b.Name))
		default:
			out = append(out, b)
		}
	}
	return out, errors.Join(errs...)
}

// readQuirks reads COMPONENT=NAME, or NAME for the only FMU.
func readQuirks(texts []string) ([]simulate.Assignment, error) {
	var out []simulate.Assignment
	var errs []error
	for _, text := range texts {
		at := strings.LastIndexByte(text, '=')
		if at == 0 {
			errs = append(errs, fmt.Errorf("--%s: %q is not COMPONENT=NAME", flagQuirk, text))
			continue
		}
		if _, err := fmuslave.ParseQuirk(text[at+1:]); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flagQuirk, err))
			continue
		}
		out = append(out, simulate.Assignment{Name: text[:max(at, 0)], Value: text[at+1:]})
	}
	return out, errors.Join(errs...)
}

// quirkHelp describes the quirks, one in a line.
func quirkHelp() string {
	var b strings.Builder
	b.WriteString("\n\nQuirks, for FMUs that need them:")
	for _, q := range fmuslave.Quirks() {
		fmt.Fprintf(&b, "\n   %-25s%s", q.Name, q.Doc)
	}
	return b.String()
}

// assignments reads KEY=VALUE, each key once.
func assignments(flag string, texts []string) ([]simulate.Assignment, error) {
	var out []simulate.Assignment
	var errs []error
	seen := map[string]bool{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		switch name = strings.TrimSpace(name); {
		case !ok || name == "":
			errs = append(errs, fmt.Errorf("--%s: %q is not NAME=VALUE", flag, text))
		case seen[name]:
			errs = append(errs, fmt.Errorf("--%s: %s is given twice", flag, name))
		default:
			seen[name] = true
			out = append(out, simulate.Assignment{Name: name, Value: value})
		}
	}
	return out, errors.Join(errs...)
}
