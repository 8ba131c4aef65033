package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms"
)

const algorithmsHelp = `Lists the coupling algorithms, or explains one: what it does, where it is published,
and its parameters with defaults and ranges. To choose one: macrostep help
algorithms.md

Examples:
   macrostep algorithms
   macrostep algorithms gauss-seidel
   macrostep run system.ssp --algorithm gauss-seidel --param order=2`

func (p *program) algorithmsCommand() *cli.Command {
	return &cli.Command{
		Name: "algorithms", Usage: "list the coupling algorithms, or explain one", ArgsUsage: "[NAME]",
		UsageText: "macrostep algorithms [NAME] [FLAGS]", Description: algorithmsHelp, Flags: []cli.Flag{jsonFlag()},
		Action: func(c *cli.Context) error {
			if err := arguments(c, 0, 1, "NAME"); err != nil {
				return err
			}
			all := p.presets.All()
			if c.NArg() > 0 {
				preset, err := p.presets.Find(c.Args().First())
				if err != nil {
					return &usageError{"algorithms", err}
				}
				all = []algorithms.Preset{*preset}
			}
			switch {
			case c.Bool("json"):
				return writeJSON(p.data(), presetList(all))
			case c.NArg() > 0:
				explainPreset(p.stdout, &all[0])
			default:
				listPresets(p.stdout, all)
			}
			return nil
		},
	}
}

// presetInfo is a preset for programs.
type presetInfo struct {
	Name   string      `json:"name"`
	Doc    string      `json:"doc"`
	Source string      `json:"source"`
	Params []paramInfo `json:"params"`
}

type paramInfo struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Range   string `json:"range"`
	Doc     string `json:"doc"`
}

func presetList(all []algorithms.Preset) (list []presetInfo) {
	for _, a := range all {
		info := presetInfo{Name: a.Name, Doc: a.Doc, Source: a.Source}
		for _, q := range a.Params {
			info.Params = append(info.Params, paramInfo{q.Name, q.Default, q.Range, q.Doc})
		}
		list = append(list, info)
	}
	return list
}

func listPresets(w io.Writer, all []algorithms.Preset) {
	for _, a := range all {
		name := a.Name
		if name == algorithms.DefaultPreset {
			name += " (default)"
		}
		fmt.Fprintf(w, "%s\n%s\n\n", name, fold(a.Doc, 4))
	}
	fmt.Fprintln(w, "Parameters and sources: macrostep algorithms NAME")
}

func explainPreset(w io.Writer, a *algorithms.Preset) {
	fmt.Fprintf(w, "%s\n\n%s\n\nSource: %s\n", a.Name, fold(a.Doc, 0), a.Source)
	if len(a.Params) > 0 {
		fmt.Fprintln(w, "\nParameters (--param NAME=VALUE):")
	}
	for _, q := range a.Params {
		fmt.Fprintf(w, "\n  %s=%s  (%s)\n%s\n", q.Name, q.Default, q.Range, fold(q.Doc, 6))
	}
	fmt.Fprintf(w, "\nExample:\n  macrostep run SYSTEM.ssp --algorithm %s", a.Name)
	if len(a.Params) > 0 {
		fmt.Fprintf(w, " --param %s=%s", a.Params[0].Name, a.Params[0].Default)
	}
	fmt.Fprintln(w)
}

// fold breaks text into indented lines of at most 78 characters.
func fold(text string, indent int) string { return foldAt(text, indent, 78) }

// foldAt is fold for another width of lines.
func foldAt(text string, indent, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case column == 0:
			b.WriteString(strings.Repeat(" ", indent))
			column = indent
		case column+1+n > width:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
