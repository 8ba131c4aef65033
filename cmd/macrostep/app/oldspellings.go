package app

import (
	"fmt"
	"slices"
	"strings"
)

// oldSpellings maps commands of earlier versions to the arguments in their place. They work for one release.
var oldSpellings = map[string][]string{
	"bonds":    {"info", "--bonds"},
	"hosts":    {"host", "list"},
	"scenario": {"validate"},
}

// respelled replaces an old spelling in the arguments, and prints the new one.
func (p *program) respelled(args []string) []string {
	at := 0
	if len(args) > 1 && isHelp(args[0]) && topic(args[1]) == "" {
		at = 1
	}
	if len(args) == 0 || oldSpellings[args[at]] == nil {
		return args
	}
	now := oldSpellings[args[at]]
	fmt.Fprintf(p.stderr, "macrostep: `macrostep %s` is now `macrostep %s`; the old spelling goes with the next release\n",
		args[at], strings.Join(now, " "))
	return slices.Concat(args[:at], now, args[at+1:])
}
