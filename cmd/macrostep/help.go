package main

import (
	"strings"

	"github.com/urfave/cli/v2"
)

// repeatable is a flag that may be given several times, one value each time.
type repeatable struct{ *cli.StringSliceFlag }

// pair is a flag that takes two values.
type pair struct{ *cli.StringSliceFlag }

// valueOptional is a flag whose value may be left out, and follows = if it is given.
type valueOptional struct{ *cli.StringFlag }

// TakesValue tells that no argument behind the flag belongs to it.
func (valueOptional) TakesValue() bool { return false }

// helpText is the help of a command: usage, explanation with examples, flags by
// category in the order of their declaration.
func helpText(c *cli.Command) string {
	var b strings.Builder
	b.WriteString(c.UsageText + "\n\n" + c.Description + "\n")
	category := "-"
	for _, f := range c.Flags {
		doc, ok := f.(cli.DocGenerationFlag)
		if !ok {
			continue
		}
		if in, ok := f.(cli.CategorizableFlag); ok && in.GetCategory() != category {
			category = in.GetCategory()
			title := category
			if title == "" {
				title = "Flags"
			}
			b.WriteString("\n" + title + "\n")
		}
		// The name of the value stands between backquotes, as cli has it.
		value, usage := "", doc.GetUsage()
		if _, rest, ok := strings.Cut(usage, "`"); ok {
			value, _, _ = strings.Cut(rest, "`")
		}
		usage = strings.ReplaceAll(usage, "`", "")
		if takesValue(f) {
			if v := doc.GetValue(); v != "" {
				usage += " (default: " + v + ")"
			}
		}
		head := strings.TrimSpace("--" + f.Names()[0] + " " + value)
		if _, ok := f.(valueOptional); ok {
			head = "--" + f.Names()[0] + "[=" + value + "]"
		}
		if len(head) < 24 {
			b.WriteString("  " + head + strings.TrimPrefix(fold(usage, 26), strings.Repeat(" ", 2+len(head))) + "\n")
		} else {
			b.WriteString("  " + head + "\n" + fold(usage, 26) + "\n")
		}
	}
	return b.String()
}
