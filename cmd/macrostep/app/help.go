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
	"run":     {"stop-time", "step-size", flagAlgorithm, flagCheck, flagSet, "input", "record", "output-interval", flagOutput, flagReport, flagVerbose},
	"analyze": {"step-size", "stop-time", "error", "at", "order", flagSet, "plot"},
	"study":   {"vary", "collect", "run", "design", "samples", "engines", flagOutput, flagResume},
}

// mostExamples is the number of examples in the help of a command that has commonFlags.
const mostExamples = 5

// helpText returns the help of a command: usage, explanation with examples, and flags by category in the
// order of their declaration. For a command with commonFlags, unless all is set, it is a line of
// explanation, these flags, and the first examples.
func helpText(c *cli.Command, all bool) string {
	var b strings.Builder
	common := commonFlags[c.Name]
	if all || common == nil {
		b.WriteString(c.UsageText + "\n\n" + c.Description + "\n")
		for _, f := range flagLines(c) {
			if f.title != "" {
				b.WriteString("\n" + f.title + "\n")
			}
			writeFlag(&b, f.head, f.usage)
		}
		return b.String()
	}
	explanation, examples, _ := strings.Cut(c.Description, "\nExamples:\n")
	b.WriteString(c.UsageText + "\n\n" + fold(firstSentence(oneLine(explanation)), 0) + "\n\nCommon flags\n")
	lines := flagLines(c)
	for _, name := range common {
		f := lines[slices.IndexFunc(lines, func(f flagLine) bool { return f.name == name })]
		writeFlag(&b, f.head, firstClause(f.usage))
	}
	b.WriteString("\nExamples\n")
	for _, line := range strings.Split(examples, "\n")[:mostExamples] {
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "\nAll %d flags, and what they do: macrostep %s --%s\n", len(lines), c.Name, flagHelpAll)
	return b.String()
}

func writeFlag(b *strings.Builder, head, usage string) {
	if len(head) < 24 {
		b.WriteString("  " + head + strings.TrimPrefix(fold(usage, 26), strings.Repeat(" ", 2+len(head))) + "\n")
	} else {
		b.WriteString("  " + head + "\n" + fold(usage, 26) + "\n")
	}
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
	for _, f := range c.Flags {
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
			line.head = "--" + f.Names()[0] + "[=" + value + "]"
		}
		lines = append(lines, line)
	}
	return lines
}
