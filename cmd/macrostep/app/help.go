package app

import (
	"cmp"
	"strings"

	"github.com/urfave/cli/v2"
)

// repeatable is a flag that may be given several times, one value each time.
type repeatable struct{ *cli.StringSliceFlag }

// pair is a flag that takes two values.
type pair struct{ *cli.StringSliceFlag }

// valueOptional is a flag with an optional value, which follows =.
type valueOptional struct{ *cli.StringFlag }

// TakesValue returns false: the next argument never belongs to the flag.
func (valueOptional) TakesValue() bool { return false }

// helpText returns the help of a command: usage, explanation with examples, and flags by category in the
// order of their declaration.
func helpText(c *cli.Command) string {
	var b strings.Builder
	b.WriteString(c.UsageText + "\n\n" + c.Description + "\n")
	for _, f := range flagLines(c) {
		if f.title != "" {
			b.WriteString("\n" + f.title + "\n")
		}
		if len(f.head) < 24 {
			b.WriteString("  " + f.head + strings.TrimPrefix(fold(f.usage, 26), strings.Repeat(" ", 2+len(f.head))) + "\n")
		} else {
			b.WriteString("  " + f.head + "\n" + fold(f.usage, 26) + "\n")
		}
	}
	return b.String()
}

// flagLine is a flag in the help.
type flagLine struct {
	title string // of the category, for its first flag; else ""
	head  string // with the name of its value
	usage string // with the default
}

func flagLines(c *cli.Command) (lines []flagLine) {
	category := "-"
	for _, f := range c.Flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		line := flagLine{}
		if in, ok := f.(cli.CategorizableFlag); ok && in.GetCategory() != category {
			category = in.GetCategory()
			line.title = cmp.Or(category, "Flags")
		}
		// The name of the value is between backquotes, as in cli.
		value, usage := "", doc.GetUsage()
		if _, rest, ok := strings.Cut(usage, "`"); ok {
			value, _, _ = strings.Cut(rest, "`")
		}
		line.usage = strings.ReplaceAll(usage, "`", "")
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
