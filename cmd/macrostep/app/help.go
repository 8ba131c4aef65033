package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// repeatable is a flag that may be given several times, one value each time.
type repeatable struct{ *cli.StringSliceFlag }

// pair is a flag that takes two values.
type pair struct{ *cli.StringSliceFlag }

// valueOptional is a flag with an optional value, which follows =.
type valueOptional struct {
	*cli.StringFlag
	bare string // the value without one
}

// TakesValue returns false: the next argument never belongs to the flag.
func (valueOptional) TakesValue() bool { return false }

const (
	flagHelp    = "help"
	flagHelpAll = "help-all"
)

// commonFlags are the flags that --help shows of commands with many; --help-all shows all.
var commonFlags = map[string][]string{
	"demo":    {"all", flagOutput, flagForce},
	"run":     {"stop-time", "step-size", flagAlgorithm, flagCheck, flagSet, "input", "record", "output-interval", flagOutput, flagReport, flagVerbose},
	"analyze": {"step-size", "stop-time", "error", "budget", "all", flagSet, "plot"},
	"study":   {"vary", "collect", "run", "design", "samples", "engines", flagCheck, flagOutput, flagResume},
}

// helpText returns the help of a command: usage, explanation, examples, and a line for each of its commonFlags, or of all
// flags.
func helpText(c *cli.Command, all bool) string {
	var b strings.Builder
	b.WriteString(c.UsageText + "\n\n" + c.Description + "\n")
	common, lines := commonFlags[c.Name], flagLines(c)
	for _, f := range lines {
		switch {
		case all || common == nil:
			if f.title != "" {
				b.WriteString("\n" + f.title + "\n")
			}
			fmt.Fprintf(&b, "  %-24s %s\n", f.head, f.usage)
		case slices.Contains(common, f.name):
			if f.name == common[0] {
				b.WriteString("\nCommon flags\n")
			}
			fmt.Fprintf(&b, "  %-24s %s\n", f.head, firstClause(f.usage))
		}
	}
	if common != nil && !all {
		fmt.Fprintf(&b, "\nAll %d flags: macrostep %s --%s\n", len(lines), c.Name, flagHelpAll)
	}
	return b.String()
}

// firstClause returns a text up to its first semicolon or bracket.
func firstClause(text string) string {
	text, _, _ = strings.Cut(text, "; ")
	text, _, _ = strings.Cut(text, " (")
	return text
}

// flagLine is a flag in the help.
type flagLine struct {
	name  string
	title string // of the category, for its first flag; else ""
	head  string // with the name of its value
	usage string // with the default
}

func flagLines(c *cli.Command) (lines []flagLine) {
	category := "-"
	var categories []string // in the order of their first flags
	of := func(f cli.Flag) int {
		in, ok := f.(cli.CategorizableFlag)
		if !ok {
			return -1
		}
		return slices.Index(categories, in.GetCategory())
	}
	for _, f := range c.Flags {
		if in, ok := f.(cli.CategorizableFlag); ok && of(f) < 0 {
			categories = append(categories, in.GetCategory())
		}
	}
	flags := slices.Clone(c.Flags)
	slices.SortStableFunc(flags, func(a, b cli.Flag) int { return of(a) - of(b) })
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if hides, is := f.(cli.VisibleFlag); !ok || is && !hides.IsVisible() {
			continue
		}
		line := flagLine{name: f.Names()[0]}
		if in, ok := f.(cli.CategorizableFlag); ok && in.GetCategory() != category {
			category = in.GetCategory()
			line.title = cmp.Or(category, "Flags")
		}
		// The name of the value is between backquotes, as in cli.
		value, usage := "", doc.GetUsage()
		if _, rest, ok := strings.Cut(usage, "`"); ok {
			value, _, _ = strings.Cut(rest, "`")
		}
		line.usage = strings.ReplaceAll(strings.Replace(usage, ": `"+value+"`", "", 1), "`", "") // it is in the head
		if takesValue(f) {
			if v := doc.GetValue(); v != "" {
				line.usage += " (default: " + v + ")"
			}
		}
		line.head = strings.TrimSpace("--" + f.Names()[0] + " " + value)
		for _, alias := range f.Names()[1:] {
			line.head = dashed(alias) + ", " + line.head
		}
		if _, ok := f.(valueOptional); ok {
			line.head = strings.TrimSuffix(line.head, " "+value)
			if value != "" {
				line.head += "[=" + value + "]"
			}
		}
		lines = append(lines, line)
	}
	return lines
}
