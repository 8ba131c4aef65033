package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/master"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // found after the first FMU was instantiated, or interrupted
	exitUsage  = 2 // found before that: usage, documents, archives
)

// program is one call of the command line.
type program struct {
	args           []string
	flags          []string // of the command run, as --name=value, those of the run that it resumes included
	stdin          io.Reader
	stdout, stderr io.Writer // for people
	out            io.Writer // standard output as it is, see data
	engine         engine
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

// run is the program without the process: it gives the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, e engine) int {
	shown, told := &screen{to: stdout}, &screen{to: stderr}
	defer shown.flush()
	defer told.flush()
	p := &program{args: args, stdin: stdin, stdout: shown, stderr: told, out: stdout, engine: e}
	if len(args) > 0 && args[0] == completeCommand {
		p.complete(args[1:])
		return exitDone
	}
	defer fmi.OnExit(nil) // the program may end by the exit of C itself
	defer fmi.CatchCrashes(nil)
	var err error
	fmi.OnLargeStack(func() { err = p.dispatch(ctx) }) // whatever command calls FMUs
	if err == nil {
		return exitDone
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintln(p.stderr, "macrostep:", strings.TrimSuffix(line, "\n"))
	}
	var usage *usageError
	var after *runError
	switch {
	case errors.As(err, &after), errors.Is(err, master.ErrInterrupted):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintln(p.stderr, "See:", strings.TrimSpace("macrostep help "+usage.command))
	}
	return exitUsage
}

// dispatch arranges the arguments of the command and hands them to cli.
func (p *program) dispatch(ctx context.Context) error {
	app := p.app()
	args, err := joinGroup(app, p.args)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		name := args[0]
		switch cmd := app.Command(name); {
		case cmd != nil:
			flags, rest, help, err := arrange(cmd, args[1:])
			if err != nil {
				return &usageError{cmd.Name, err}
			}
			if help {
				args = []string{"help", cmd.Name}
				break
			}
			if cmd.Name == "run" {
				if flags, rest, err = resumeArguments(flags, rest); err != nil {
					return &usageError{cmd.Name, err}
				}
				p.flags = flags
			}
			args = append(append([]string{name}, flags...), "--")
			args = append(args, rest...)
		case name == "help" || name == "h":
			if len(args) > 1 && (args[1] == "--help" || args[1] == "-h") {
				args = args[:1]
			}
			if len(args) > 1 && app.Command(args[1]) == nil {
				return &usageError{"", fmt.Errorf("there is no command %q", args[1])}
			}
			args = args[:min(len(args), 2)]
		case name == "--help" || name == "-h" || name == "--version" || name == "-v":
			args = args[:1]
		case strings.HasPrefix(name, "-"):
			return &usageError{"", fmt.Errorf("%s stands before the command; write the command first, as in: macrostep run SYSTEM %s", name, name)}
		default:
			if _, err := os.Stat(name); err == nil {
				return &usageError{"", fmt.Errorf("%s is a file, not a command; to run it: macrostep run %s", name, name)}
			}
			if slices.ContainsFunc(app.Command("run").Flags, func(f cli.Flag) bool { return f.Names()[0] == name }) {
				return &usageError{"run", fmt.Errorf("there is no command %q; it is a flag: macrostep run SYSTEM --%s …", name, name)}
			}
			return &usageError{"", fmt.Errorf("there is no command %q; %s", name, strings.TrimSpace(cli.SuggestCommand(app.Commands, name)))}
		}
	}
	return app.RunContext(ctx, append([]string{"macrostep"}, args...))
}

func (p *program) app() *cli.App {
	app := &cli.App{
		Name:        "macrostep",
		Usage:       "couple FMUs and run them",
		UsageText:   "macrostep COMMAND [ARGUMENTS AND FLAGS]",
		Version:     version(),
		Description: programHelp,
		Commands:    []*cli.Command{p.runCommand(), p.infoCommand(), p.validateCommand(), p.bondsCommand(), p.analyzeCommand(), p.algorithmsCommand(), p.plotCommand(), p.compareCommand(), p.reportCommand(), p.sspCommand(), p.scenarioCommand(), p.demoCommand(), p.completionCommand(), p.manCommand(), p.versionCommand()},
		Writer:      p.stdout, ErrWriter: p.stderr, Reader: p.stdin,
		DisableSliceFlagSeparator: true, // values may hold commas
		Suggest:                   true,
		// Only main exits; run turns errors into exit codes.
		ExitErrHandler: func(*cli.Context, error) {},
	}
	app.Commands = append(app.Commands, p.sspCommands()...)
	for _, c := range app.Commands {
		c.HideHelpCommand = true // an argument "help" is an argument
		c.CustomHelpTemplate = helpText(c)
		c.OnUsageError = func(_ *cli.Context, err error, _ bool) error { return &usageError{c.Name, err} }
	}
	return app
}

const programHelp = `macrostep is an FMI 2.0 co-simulation master: it couples FMUs as an SSP
describes, steps them with published coupling algorithms, and says how good
the result is.

Start here:
   macrostep demo                                   examples, built and run
   macrostep info SYSTEM.ssp                        what is in a file
   macrostep validate SYSTEM.ssp                    what is wrong with it
   macrostep run SYSTEM.ssp --stop-time 10          run it
   macrostep help run                               all about running

Exit codes: 0 done; 2 found before any FMU was instantiated (usage,
documents, archives); 1 after that. validate: 1 if it finds errors.`

// arguments checks the number of arguments of a command.
func arguments(c *cli.Context, least, most int, what string) error {
	switch n := c.NArg(); {
	case n < least:
		return &usageError{c.Command.Name, fmt.Errorf("%s is missing", what)}
	case n > most && most == 0:
		return &usageError{c.Command.Name, fmt.Errorf("%q is too much; the command takes no arguments", c.Args().Get(0))}
	case n > most:
		return &usageError{c.Command.Name, fmt.Errorf("%q is too much; the command takes %s only", c.Args().Get(most), what)}
	}
	return nil
}

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Usage: "print the version", UsageText: "macrostep version",
		Description: "Prints the versions of macrostep and of the Go it was built with, and the\nplatform. The manifest of a run holds the same.\n\nExample:\n   macrostep version",
		Action: func(c *cli.Context) error {
			if err := arguments(c, 0, 0, ""); err != nil {
				return err
			}
			fmt.Fprintf(p.stdout, "macrostep %s (%s, %s)\n", version(), runtime.Version(), platform())
			return nil
		},
	}
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// version is the module version the binary was built from, or its commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	revision, modified := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = "devel-" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+modified"
		}
	}
	return revision + modified
}
