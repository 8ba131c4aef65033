package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

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

// resumeArguments adds the arguments of the run that --resume names. Given flags and SYSTEM replace those of
// that run.
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

// keepArguments returns the arguments of a run for its checkpoints, with absolute paths, so that the run can
// be resumed from any folder.
func keepArguments(flags []string, system string) ([]string, error) {
	var out []string
	absolute := func(path string) (string, error) {
		if path == "" {
			return "", nil
		}
		return filepath.Abs(path)
	}
	output := false
	second := false // the next value of --checkpoint is its file
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
func readCheckpointing(in *input) simulate.Checkpointing {
	k := simulate.Checkpointing{Resume: in.String(flagResume)}
	given := in.StringSlice(flagCheckpoint)
	if len(given) == 0 {
		return k
	}
	v, err := parseNumber(given[0], notNegative)
	if err != nil || len(given) != 2 || given[1] == "" {
		in.fail(flagCheckpoint, fmt.Errorf("%q is not EVERY FILE with a number of seconds; give, for example, --%s 10 run.checkpoint",
			strings.Join(given, " "), flagCheckpoint))
	} else {
		k.Every, k.File = v, given[1]
	}
	return k
}
