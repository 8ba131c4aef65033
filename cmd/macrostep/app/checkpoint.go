package app

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
)

// Names of the flags about checkpoints.
const (
	flagCheckpoint = "checkpoint"
	flagResume     = "resume"
)

// pathFlags are the flags of run whose value is a file.
var pathFlags = []string{"input", "history", "output", "manifest", "trace", "report", "log-fmi-calls", flagScenario}

// resumeArguments lays arguments over those of the run that is resumed, if it is one:
// a flag that is given, and SYSTEM, take the place of theirs.
func resumeArguments(flags, rest []string) ([]string, []string, error) {
	path := ""
	given := map[string]bool{}
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		given[name] = true
		if name == flagResume {
			path = value
		}
	}
	if !given[flagResume] {
		return flags, rest, nil
	}
	c, err := record.ReadCheckpoint(path)
	if err != nil {
		return nil, nil, fmt.Errorf("--%s: %w", flagResume, err)
	}
	var before []string
	for _, f := range c.Arguments {
		name, isFlag := strings.CutPrefix(f, "--")
		name, _, _ = strings.Cut(name, "=")
		switch {
		case isFlag && !given[name]:
			before = append(before, f)
		case !isFlag && len(rest) == 0:
			rest = []string{f}
		}
	}
	return append(before, flags...), rest, nil
}

// keepArguments returns the arguments of a run as they are kept in its checkpoints:
// with absolute paths, so that the run can be resumed from any folder.
func keepArguments(flags []string, system string) ([]string, error) {
	var out []string
	absolute := func(path string) (string, error) {
		if path == "" {
			return "", nil
		}
		return filepath.Abs(path)
	}
	output := false
	second := false // value of the flag of checkpoints
	for _, f := range flags {
		name, value, _ := strings.Cut(strings.TrimPrefix(f, "--"), "=")
		isPath := slices.Contains(pathFlags, name)
		switch name {
		case flagResume:
			continue
		case flagDebug:
			if strings.HasPrefix(value, profileKey.name) {
				continue
			}
		case flagCheckpoint:
			isPath, second = second, !second
		case "output":
			output = true
		}
		if isPath {
			var err error
			if value, err = absolute(value); err != nil {
				return nil, err
			}
		}
		out = append(out, "--"+name+"="+value)
	}
	if !output {
		path, err := absolute(defaultOutput)
		if err != nil {
			return nil, err
		}
		out = append(out, "--output="+path)
	}
	system, err := absolute(system)
	return append(out, system), err
}

// readCheckpointing reads the flags.
func readCheckpointing(c *cli.Context) (simulate.Checkpointing, error) {
	k := simulate.Checkpointing{Resume: c.String(flagResume)}
	pair := c.StringSlice(flagCheckpoint)
	if c.IsSet(flagResume) && k.Resume == "" {
		return k, fmt.Errorf("--%s: the value is empty", flagResume)
	}
	if len(pair) == 0 {
		return k, nil
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(pair[0]), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return k, fmt.Errorf("--%s: %q is no number of seconds; give --%s EVERY FILE, like --%[1]s 10 run.checkpoint", flagCheckpoint, pair[0], flagCheckpoint)
	}
	if len(pair) != 2 || pair[1] == "" {
		return k, fmt.Errorf("--%s takes two values, EVERY FILE, like --%[1]s 10 run.checkpoint", flagCheckpoint)
	}
	k.Every, k.File = v, pair[1]
	return k, nil
}
