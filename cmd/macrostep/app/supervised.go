package app

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master/results"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/supervise"
)

// exitCode is the exit code of a command that ran in the engine, which has already printed
// its output.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// mostDeaths is the number of times that a search starts again.
const mostDeaths = 8

// supervised makes an action that runs FMUs run in the engine.
//
// A search for settings starts again if an FMU has ended the engine, with this FMU isolated.
func (p *program) supervised(action cli.ActionFunc) cli.ActionFunc {
	if p.engine == nil {
		return action
	}
	return func(c *cli.Context) error {
		if err := simulate.CheckLimits(); err != nil {
			return err
		}
		text, err := p.engine.Do(c.Context, commandWork, p.args, nil)
		var death *supervise.Death
		for range mostDeaths {
			if death = nil; !errors.As(err, &death) || death.Record == "" || death.Outcome.Manifest != nil || c.Command.Name != "analyze" && !c.IsSet("accuracy") {
				break
			}
			fmt.Fprintf(p.stderr, "warning: in a trial run: %s; all starts again with this FMU in a process of its own\n", death.Reason())
			text, err = p.engine.Do(c.Context, commandWork, p.args, nil)
		}
		if errors.As(err, &death) {
			return p.salvaged(c, death)
		}
		if closed := p.engine.Close(); !errors.As(closed, &death) {
			err = errors.Join(err, closed)
		} else if !c.Bool("quiet") {
			fmt.Fprintf(p.stderr, "warning: after the run: %s; no result is lost\n", death.Reason())
		}
		var completed *supervise.Completed
		if errors.As(err, &completed) {
			fmt.Fprintln(p.stderr, "macrostep:", completed)
			err = nil
		}
		if err != nil {
			return err
		}
		var code exitCode
		if err := json.Unmarshal(text, &code); err != nil {
			return err
		}
		if code == exitDone && completed != nil {
			return completed.Err
		}
		if code == exitDone {
			return nil
		}
		return code
	}
}

// salvaged prints what is left of a command whose engine has died, and makes the page that
// the run was asked for.
func (p *program) salvaged(c *cli.Context, d *supervise.Death) error {
	fmt.Fprintln(p.stderr)
	err := error(d)
	if d.After || d.RunEnded {
		err = d.Failed
		if m := d.Outcome.Manifest; err == nil && m != nil && m.Error != nil {
			err = m.Error.Failure()
		}
	}
	if c.Command.Name == "run" {
		if r, bad := parseRun(c); bad == nil {
			if _, _, here := p.toStdout(r); here != nil {
				p.printAside()
			}
		}
	}
	if m := d.Outcome.Manifest; m != nil && !c.Bool("quiet") {
		fmt.Fprint(p.stdout, summary(&d.Outcome, c.Bool(flagVerbose)))
		printWarnings(newConsole(p.stderr), m.Warnings, shownNames, d.Outcome.ManifestPath)
	}
	if path := c.String(flagReport); path != "" && d.Outcome.Rows > 0 && d.Outcome.ManifestPath != "" {
		parts, table, failed := readReport(c.String("output"), d.Outcome.ManifestPath, results.ReadOptions{})
		if failed == nil {
			parts.findSystem("", p.dialects)
			parts.addCurves(table, len(table.Columns), nil)
			failed = parts.readTrace("")
		}
		if failed == nil {
			_, failed = writeReport(path, true, pageOf(parts, componentsOf(parts.manifest)))
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("--%s: %w", flagReport, failed))
		}
	}
	if err == nil {
		return nil
	}
	return &runError{err}
}
