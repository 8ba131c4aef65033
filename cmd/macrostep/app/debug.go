package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/diag"
)

const flagDebug = "debug"

// debugging holds the settings of --debug.
type debugging struct {
	CallByCall, LivePaused, Unbounded bool
	Profile                           string // folder; "" = none
	Calls                             string // file with the calls into FMUs; "" = none
}

// debugKey is a key of --debug.
type debugKey struct {
	name  string // ends with = if it takes a value
	usage string
	set   func(d *debugging, value string)
}

var profileKey = debugKey{"profile=", "folder for profiles, which go tool pprof reads: " + cpuProfile + " of processor time, " +
	heapProfile + " of allocations", func(d *debugging, dir string) {
	d.Profile = dir
	if abs, err := filepath.Abs(dir); err == nil { // the working folder may change meanwhile
		d.Profile = abs
	}
}}

// runDebugKeys are the keys of run.
var runDebugKeys = []debugKey{
	{"call-by-call", "step each FMU by itself and make each of its calls by itself, with the same results",
		func(d *debugging, _ string) { d.CallByCall = true }},
	{"live-paused", "with --live: begin paused", func(d *debugging, _ string) { d.LivePaused = true }},
	{"realtime-unbounded", "take algorithms in real time that iterate, repeat steps or choose their size, too",
		func(d *debugging, _ string) { d.Unbounded = true }},
	{"calls=", "file with every call into an FMU", func(d *debugging, path string) { d.Calls = path }},
	profileKey,
}

func debugNames(keys []debugKey) []string {
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

func debugFlag(keys []debugKey) cli.Flag {
	usage := "`KEY` for work on macrostep and on FMUs: " + strings.Join(debugNames(keys), ", ") + " (macrostep help debug)"
	return inCategory("For reports of errors", listFlag(flagDebug, usage))[0]
}

// readDebug reads the values of --debug.
func readDebug(in *input, keys []debugKey) (d debugging) {
	for _, text := range in.StringSlice(flagDebug) {
		name, value, given := strings.Cut(text, "=")
		if given {
			name += "="
		}
		k := slices.IndexFunc(keys, func(k debugKey) bool { return k.name == name })
		if k < 0 || given && value == "" {
			in.fail(flagDebug, fmt.Errorf("%q is not one of %s%s", text, strings.Join(debugNames(keys), ", "), diag.DidYouMean(name, debugNames(keys))))
			continue
		}
		keys[k].set(&d, value)
	}
	return d
}
