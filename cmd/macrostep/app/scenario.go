package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/scenario"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/master/validate"
)

const flagScenario = "scenario"

func isScenario(path string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, strings.ToLower(filepath.Ext(path)))
}

// validateScenario checks a scenario, and its variables if a system is given.
func (p *program) validateScenario(c *cli.Context, format string) error {
	in := newInput(c)
	for _, name := range c.LocalFlagNames() {
		if !slices.Contains([]string{"json", flagSARIF, flagFormat}, name) {
			in.fail(name, errors.New("the flag is not for a scenario"))
		}
	}
	if format == flagSARIF {
		in.fail(flagSARIF, errors.New("findings in a scenario are printed as text, or with --json"))
	}
	files := c.Args().Slice()
	at := slices.IndexFunc(files, isScenario)
	path, rest := files[at], slices.Delete(slices.Clone(files), at, at+1)
	if len(rest) > 1 || slices.ContainsFunc(rest, isScenario) {
		in.add(fmt.Errorf("%s is a scenario; give one, and at most the system that it is for", path))
	}
	if err := in.err(); err != nil {
		return err
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	s, err := scenario.Read(c.Context, path)
	if err == nil && len(rest) == 1 {
		if err := simulate.There(rest[0]); err != nil {
			return err
		}
		if _, err = explain(rest[0], s.Variables, looking(p.dialects)); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	switch {
	case context.Cause(c.Context) != nil:
		return &runError{err}
	case format == "json":
		return p.scenarioJSON(path, err)
	case err != nil:
		return &runError{err}
	}
	fmt.Fprintf(p.stdout, "%s: %s and %s on %s\n", path, plural(s.Events(), "event"), plural(s.Expectations(), "expectation"),
		strings.Join(s.Variables, ", "))
	return nil
}

// scenarioJSON prints the errors of a scenario like the findings of other files.
func (p *program) scenarioJSON(path string, found error) error {
	r := &validate.Report{File: path, Kind: "scenario"}
	if found == nil {
		return writeValidationJSON(p.data(), []*validate.Report{r})
	}
	for line := range strings.Lines(found.Error()) {
		f := diag.Finding{Level: diag.Error, File: path, Message: strings.TrimSuffix(line, "\n")}
		if place, text, ok := strings.Cut(f.Message, ": "); ok {
			if number, ok := strings.CutPrefix(place, path+":"); ok {
				f.Line, _ = strconv.Atoi(number)
				f.Message = text
			}
		}
		r.Findings = append(r.Findings, f)
	}
	return errors.Join(writeValidationJSON(p.data(), []*validate.Report{r}), errFindings)
}

// printScenario prints the outcome of a scenario.
func printScenario(w io.Writer, s *record.Scenario, verbose bool) {
	fmt.Fprintf(w, "scenario  %s\n", scenarioLine(s))
	if !verbose {
		return
	}
	for _, e := range s.Events {
		fmt.Fprintf(w, "  t = %s s: %s\n", number(e.Time), strings.Join(e.Did, "; "))
	}
}
