package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/supervise"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // an error after the first FMU was instantiated, or an interrupt
	exitUsage  = 2 // an error before that: usage, documents, archives
)

// program is one call of the command line.
type program struct {
	args           []string
	helpAll        bool // --help-all is given
	stdin          io.Reader
	stdout, stderr *screen   // for people
	out            io.Writer // standard output unchanged, see data
	extensions
	openSystem func(ctx context.Context, path string, o simulate.OpenOptions) (*simulate.System, error) // tests replace it
	// A command that runs FMUs does so in an engine: engine starts the process, and job is the command
	// inside it. If both are nil, as in tests, FMUs run in this process.
	engine    *supervise.Engine
	newEngine func() *supervise.Engine // for studies, whose FMUs print to standard error
	job       *supervise.Job
}

// usageError is a wrong use of the command line.
type usageError struct {
	command string // "" = the program itself
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// runError is an error after the first FMU was instantiated.
type runError struct{ err error }

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// newProgram returns a call of the command line.
func newProgram(args []string, stdin io.Reader, stdout, stderr io.Writer) *program {
	return &program{args: args, stdin: stdin, stdout: &screen{to: stdout}, stderr: &screen{to: stderr}, out: stdout, openSystem: simulate.Open,
		extensions: extensions{dialects: simulate.Dialects(nil)}}
}

// run executes the command and returns the exit code. Text that cannot be written is an error, unless the reader of a
// pipe has left, or the caller or an FMU has closed standard output.
func (p *program) run(ctx context.Context) int {
	code := p.perform(ctx)
	if err := p.stdout.flush(); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.EBADF) {
		fmt.Fprintln(p.stderr, "macrostep: the text on standard output is incomplete:", err)
		code = max(code, exitFailed)
	}
	_ = p.stderr.flush() // there is no other place to report it
	return code
}

// perform executes the command and reports its error.
func (p *program) perform(ctx context.Context) int {
	if len(p.args) > 0 && p.args[0] == completeCommand {
		p.complete(p.args[1:])
		return exitDone
	}
	err := p.dispatch(ctx)
	if err == nil {
		return exitDone
	}
	if code := exitCode(0); errors.As(err, &code) {
		return int(code)
	}
	printed := map[string]bool{} // joined errors may have the same cause
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSuffix(line, "\n"); !printed[line] {
			fmt.Fprintln(p.stderr, "macrostep:", line)
		}
		printed[line] = true
	}
	var usage *usageError
	var after *runError
	var ended *fmi.ProcessError // also while its library was being loaded
	switch {
	case errors.As(err, &after), errors.As(err, &ended), errors.Is(err, master.ErrInterrupted):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintln(p.stderr, "See:", strings.TrimSpace("macrostep help "+usage.command))
	}
	return exitUsage
}

// dispatch arranges the arguments and hands them to cli.
func (p *program) dispatch(ctx context.Context) error {
	app := p.app()
	p.args = p.respelled(p.args)
	if len(p.args) == 2 && isHelp(p.args[0]) && app.Command(p.args[1]) == nil && topic(p.args[1]) != "" {
		_, err := io.WriteString(p.stdout, topic(p.args[1]))
		return err
	}
	args, err := joinGroup(app, p.args)
	if err == nil && len(args) > 0 {
		args, err = p.arranged(app, args)
	}
	if err != nil {
		return err
	}
	if len(args) > 1 && isHelp(args[0]) {
		cmd := app.Command(args[1])
		cmd.CustomHelpTemplate = helpText(cmd, p.helpAll)
	}
	return app.RunContext(ctx, append([]string{"macrostep"}, args...))
}

func isHelp(command string) bool { return command == "help" || command == "h" }

// arranged returns the arguments in the order that cli needs: the command, its flags, --, the rest.
func (p *program) arranged(app *cli.App, args []string) ([]string, error) {
	name := args[0]
	switch cmd := app.Command(name); {
	case cmd != nil:
		return p.arrangedFor(cmd, name, args[1:])
	case isHelp(name):
		if len(args) > 1 && (args[1] == "--help" || args[1] == "-h") {
			return args[:1], nil
		}
		if len(args) > 1 && app.Command(args[1]) == nil {
			return nil, &usageError{"", fmt.Errorf("there is no command and no topic %q%s", args[1], diag.DidYouMean(args[1], helpNames(app), topicWords))}
		}
		return args[:min(len(args), 2)], nil
	case name == "--help" || name == "-h" || name == "--version" || name == "-v":
		return args[:1], nil
	case p.isSystem(name):
		p.args = slices.Concat([]string{"run"}, args)
		return p.arrangedFor(app.Command("run"), "run", args)
	}
	return nil, notACommand(app, name)
}

// isSystem reports whether an argument is a system by the name of the file, or by what is in the folder.
func (p *program) isSystem(path string) bool {
	file, _ := ssp.SplitVariant(path)
	names := []string{ssp.DocumentName}
	for _, d := range p.dialects {
		if d.Format != nil {
			names = append(names, d.Format.File)
		}
	}
	info, err := os.Stat(file)
	switch {
	case err == nil && info.IsDir():
		return assemble.IsFMU(file) || slices.ContainsFunc(names, func(name string) bool {
			_, err := os.Stat(filepath.Join(file, name))
			return err == nil
		})
	case err == nil && slices.Contains(names, filepath.Base(file)):
		return true
	}
	return slices.Contains([]string{".ssp", ".ssd", ".fmu"}, strings.ToLower(filepath.Ext(file)))
}

// arrangedFor is arranged for a command.
func (p *program) arrangedFor(cmd *cli.Command, name string, args []string) ([]string, error) {
	flags, rest, help, err := arrange(cmd, args)
	if err != nil {
		return nil, &usageError{cmd.Name, err}
	}
	if help != "" {
		p.helpAll = help == flagHelpAll
		return []string{"help", cmd.Name}, nil
	}
	if p.job == nil { // else the supervisor has told it
		for _, f := range flags {
			name, _, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
			p.tellOld(name)
		}
	}
	return slices.Concat([]string{name}, flags, []string{"--"}, rest), nil
}

// notACommand returns the error for a first argument that is not a command.
func notACommand(app *cli.App, name string) error {
	if strings.HasPrefix(name, "-") {
		return &usageError{"", fmt.Errorf("%s comes before the command; write the command first, as in: macrostep run SYSTEM %s", name, name)}
	}
	if err := dialect.Foreign(name); err != nil {
		return &usageError{"", err}
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return &usageError{"", fmt.Errorf("%s is a folder without %s; name a system in it, or a command", name, ssp.DocumentName)}
	} else if err == nil {
		return &usageError{"", fmt.Errorf("%s is a file, not a command; to run it: macrostep run %s", name, name)}
	}
	if slices.ContainsFunc(app.Command("run").Flags, func(f cli.Flag) bool { return f.Names()[0] == name }) {
		return &usageError{"run", fmt.Errorf("there is no command %q; it is a flag: macrostep run SYSTEM --%s …", name, name)}
	}
	meant, ok := synonyms[name]
	if !ok && app.Command(sspGroup+" "+name) != nil {
		meant, ok = sspGroup+" "+name, true
	}
	if ok {
		return &usageError{"", fmt.Errorf("there is no command %q; its job is done by: macrostep %s", name, meant)}
	}
	return &usageError{"", fmt.Errorf("there is no command %q%s", name, diag.DidYouMean(name, commandNames(app)))}
}

// synonyms are words that other tools use for our commands.
var synonyms = map[string]string{
	"simulate": "run", "sim": "run", "start": "run", "exec": "run", "execute": "run", "cosimulate": "run", "resume": "run --resume",
	"sweep": "study", "optimise": "study", "optimize": "study", "calibrate": "study", "doe": "study", "batch": "study", "sensitivity": "study",
	"check": "validate", "lint": "validate", "verify": "validate",
	"show": "info", "describe": "info", "inspect": "info", "list": "info", "variables": "info",
	"diff": "compare", "draw": "plot", "page": "report", "html": "report",
	"analyse": "analyze", "stability": "analyze", "presets": "algorithms", "solvers": "algorithms",
	"create": "ssp new", "connect": "ssp new", "convert": "ssp new", "zip": "ssp pack", "unzip": "ssp unpack", "extract": "ssp unpack",
	"example": "demo", "examples": "demo", "tutorial": "demo",
}

func (p *program) app() *cli.App {
	app := &cli.App{
		Name:        "macrostep",
		Usage:       "couple FMUs and run them",
		UsageText:   "macrostep COMMAND [ARGUMENTS AND FLAGS]\nmacrostep SYSTEM [FLAGS of run]",
		Version:     simulate.Version(),
		Description: programHelp,
		Commands: []*cli.Command{
			p.runCommand(), p.infoCommand(), p.validateCommand(), p.analyzeCommand(), p.algorithmsCommand(),
			p.plotCommand(), p.compareCommand(), p.reportCommand(), p.studyCommand(), p.workerCommand(), p.hostCommand(), p.hostListCommand(),
			p.sspCommand(), p.demoCommand(), p.completionCommand(),
			p.manCommand(), p.versionCommand(),
		},
		Writer: p.stdout, ErrWriter: p.stderr, Reader: p.stdin,
		DisableSliceFlagSeparator: true, // values may hold commas
		Suggest:                   true,
		// Only main exits; run turns errors into exit codes.
		ExitErrHandler: func(*cli.Context, error) {},
	}
	app.Commands = append(app.Commands, p.sspCommands()...)
	app.Description += "\n\nTopics:\n" + topicLines(app)
	for _, c := range app.Commands {
		c.HideHelpCommand = true // an argument "help" is an argument
		c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return &usageError{c.Name, err} }
	}
	return app
}

const programHelp = `macrostep couples FMUs (FMI 2.0 and 3.0 for Co-Simulation) into one simulation, described
by SSP, and measures how good the result is.

Start here:
   macrostep demo                                   an example, built and run
   macrostep info SYSTEM.ssp                        what is in a file
   macrostep validate SYSTEM.ssp                    what is wrong with it
   macrostep SYSTEM.ssp --stop-time 10              run it (macrostep run SYSTEM.ssp …)
   macrostep run --help-all                         all its flags

Exit codes: 0 done; 1 a run failed, or the answer is no; 2 wrong usage or
files, found before any FMU was started.`

// arguments checks the number of arguments of a command; what describes them.
func arguments(c *cli.Context, least, most int, what string) error {
	switch n := c.NArg(); {
	case n < least:
		return &usageError{c.Command.Name, fmt.Errorf("%s is missing", what)}
	case n > most && most == 0:
		return &usageError{c.Command.Name, fmt.Errorf("%q is one argument too many; the command takes none", c.Args().Get(0))}
	case n > most:
		joined := ""
		for _, f := range c.Command.Flags {
			if f, ok := f.(valueOptional); ok && c.String(f.Name) == f.bare {
				joined += fmt.Sprintf("; a value of --%s follows =, as in --%[1]s=%s", f.Name, c.Args().Get(most))
			}
		}
		return &usageError{c.Command.Name, fmt.Errorf("%q is one argument too many; the command takes %s only%s", c.Args().Get(most), what, joined)}
	}
	return nil
}

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", UsageText: "macrostep version",
		Description: "Prints the versions of macrostep and of Go, and the platform. Give it in reports of\nerrors. The manifest of a run " +
			"holds the same.\n\nExample:\n   macrostep version",
		Action: func(c *cli.Context) error {
			if err := arguments(c, 0, 0, ""); err != nil {
				return err
			}
			fmt.Fprintf(p.stdout, "macrostep %s (%s, %s)\n", simulate.Version(), runtime.Version(), simulate.Platform())
			return nil
		},
	}
}
