package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

const manHelp = `Prints the manual page of macrostep, with the help of all commands.

Examples:
   macrostep man | man -l -
   macrostep man | sudo tee /usr/local/share/man/man1/macrostep.1 > /dev/null`

func (p *program) manCommand() *cli.Command {
	return &cli.Command{
		Name: "man", Usage: "print the manual page", UsageText: "macrostep man", Description: manHelp,
		Action: func(c *cli.Context) error {
			if err := arguments(c, 0, 0, ""); err != nil {
				return err
			}
			return writeMan(p.data(), p.app())
		},
	}
}

// writeMan writes a manual page in the macros of man(1). (App.ToMan of cli treats texts as Markdown, which ours
// are not, and supports neither our kinds of flags nor their categories.)
func writeMan(w io.Writer, app *cli.App) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH MACROSTEP 1 \"\" \"macrostep %s\" \"User Commands\"\n.nh\n.ad l\n", roff(app.Version))
	fmt.Fprintf(&b, ".SH NAME\nmacrostep \\- %s\n.SH SYNOPSIS\n.B macrostep\n", roff(app.Usage))
	b.WriteString("\\fICOMMAND\\fR [\\fIARGUMENTS AND FLAGS\\fR]\n.SH DESCRIPTION\n")
	manText(&b, app.Description)
	b.WriteString(".SH COMMANDS\n")
	for _, c := range app.VisibleCommands() {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(c.Name), roff(c.Usage))
	}
	for _, c := range app.Commands {
		fmt.Fprintf(&b, ".SH %s\n", roff(strings.ToUpper(c.Name)))
		for _, line := range strings.Split(c.UsageText, "\n") {
			fmt.Fprintf(&b, ".PP\n\\fB%s\\fR\n", roff(strings.TrimSpace(line)))
		}
		manText(&b, c.Description)
		for _, f := range flagLines(c) {
			if f.title != "" {
				fmt.Fprintf(&b, ".SS %s\n", roff(f.title))
			}
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(f.head), roff(f.usage))
		}
	}
	b.WriteString(".SH SEE ALSO\n")
	for _, c := range topicChoices(app) {
		fmt.Fprintf(&b, ".TP\n.B macrostep help %s\n%s\n", roff(c.word), roff(c.doc))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// manText writes a text of the help: paragraphs are filled, indented lines are kept.
func manText(b *strings.Builder, text string) {
	b.WriteString(".PP\n")
	asIs, empty := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			empty = true
			continue
		}
		indented := strings.HasPrefix(line, " ")
		switch {
		case asIs && !indented:
			b.WriteString(".fi\n.PP\n")
		case asIs && empty:
			b.WriteString("\n")
		case empty:
			b.WriteString(".PP\n")
		}
		if indented && !asIs {
			b.WriteString(".nf\n")
		}
		asIs, empty = indented, false
		b.WriteString(roff(line) + "\n")
	}
	if asIs {
		b.WriteString(".fi\n")
	}
}

// roff escapes a text so that troff prints it literally; characters outside ASCII are written by number.
func roff(text string) string {
	var b strings.Builder
	for i, c := range text {
		switch {
		case c == '\\':
			b.WriteString(`\e`)
		case c == '-':
			b.WriteString(`\-`)
		case i == 0 && (c == '.' || c == '\''):
			b.WriteString(`\&` + string(c))
		case c > 0x7f:
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
