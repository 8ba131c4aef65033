package app

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp/compose"
	"github.com/macrostep/macrostep/ssp/dialect"
	"github.com/macrostep/macrostep/ssp/edit"
)

// sspGroup is the first word of the commands on documents, which are called "ssp new" and so on.
const sspGroup = "ssp"

const sspHelp = `Makes, changes and draws systems. Existing files are replaced only with --force.

Commands:
   macrostep ssp new      make a system from FMUs, connected by names on request
   macrostep ssp set      change values of parameters, and settings of runs
   macrostep ssp graph    draw a system as an SVG
   macrostep ssp pack     make an .ssp from a folder or an .ssd
   macrostep ssp unpack   make a folder from an .ssp

Example:
   macrostep ssp new chassis.fmu wheel.fmu --connect-by-name -o car.ssp
   macrostep help ssp new`

// sspCommand explains the group.
func (p *program) sspCommand() *cli.Command {
	return &cli.Command{
		Name: sspGroup, Usage: "make, change, draw and pack systems", ArgsUsage: "COMMAND",
		UsageText: "macrostep ssp new|set|graph|pack|unpack …", Description: sspHelp,
		Action: func(c *cli.Context) error {
			return &usageError{sspGroup, errors.New("the command is missing; there are: new, set, graph, pack, unpack")}
		},
	}
}

// sspCommands are the commands of the group.
func (p *program) sspCommands() []*cli.Command {
	list := []*cli.Command{p.sspNewCommand(), p.sspSetCommand(), p.sspGraphCommand(), p.sspPackCommand(), p.sspUnpackCommand()}
	for _, c := range list {
		c.Hidden = true // the group is shown instead
	}
	return list
}

// joinGroup joins the first two arguments if they are the name of a command, like "ssp new".
func joinGroup(app *cli.App, args []string) ([]string, error) {
	at := 0
	if len(args) > 1 && isHelp(args[0]) {
		at = 1
	}
	if len(args) < at+2 {
		return args, nil
	}
	name := args[at] + " " + args[at+1]
	switch {
	case app.Command(name) != nil:
		return slices.Concat(args[:at], []string{name}, args[at+2:]), nil
	case args[at] == sspGroup && !strings.HasPrefix(args[at+1], "-"):
		return nil, &usageError{sspGroup, fmt.Errorf("there is no command %q%s", name,
			diag.DidYouMeanOr(args[at+1], []string{"new", "set", "graph", "pack", "unpack"}, "; there are: "))}
	}
	return args, nil
}

const (
	flagFor     = "for"
	flagConnect = "connect"
)

const sspNewHelp = `Makes a system from FMUs: a component for each, with connectors for its inputs and
outputs. NAME=FMU names a component; the same FMU may be given several times. An
.ssp holds copies of the FMUs; an .ssd refers to them where they are. More:
macrostep help building

Examples:
   macrostep ssp new chassis.fmu wheel.fmu --connect-by-name -o car.ssp
   macrostep ssp new front=wheel.fmu rear=wheel.fmu body.fmu --dry-run
   macrostep ssp new a.fmu b.fmu --connect a.y:b.u --connect b.y:a.u -o ab.ssd`

func (p *program) sspNewCommand() *cli.Command {
	return &cli.Command{
		Name: "ssp new", Usage: "make a system of FMUs", ArgsUsage: "[NAME=]FMU…",
		UsageText: "macrostep ssp new [NAME=]FMU… -o SYSTEM.ssp|SYSTEM.ssd [FLAGS]", Description: sspNewHelp,
		Flags: []cli.Flag{
			outputFlag("write `FILE`, an .ssp or an .ssd; -: an .ssp on standard output"),
			forceFlag(),
			boolFlag("connect-by-name", "connect inputs with outputs of the same name"),
			listFlag(flagConnect, "connect `OUTPUT:INPUT`, both component.variable"),
			boolFlag("parameters", "add connectors for parameters"),
			stringFlag(flagFor, "prepare for other `TOOLS`: omsimulator, osp"),
			boolFlag("dry-run", "show what would be written, and write nothing"),
			stringFlag("start-time", "start at `T` seconds"),
			stringFlag("stop-time", "stop at `T` seconds"),
			stringFlag("step-size", "macro step of `H` seconds"),
			stringFlag("tolerance", "relative tolerance `R` for the solvers in the FMUs"),
			stringFlag(flagAlgorithm, "coupling algorithm `PRESET`"),
		},
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, math.MaxInt, "FMU"); err != nil {
				return err
			}
			r, err := p.parseNew(c)
			if err != nil {
				return err
			}
			return p.sspNew(r)
		},
	}
}

// newRequest holds the settings of a new system from the command line.
type newRequest struct {
	parts         []namedFile
	output        string
	force         bool
	byName, dry   bool
	connect       []string
	asked         compose.Composition // from flags
	outputPackage bool
}

// namedFile is NAME=FILE; the name is "" if it is not given.
type namedFile struct{ name, path string }

func (p *program) parseNew(c *cli.Context) (*newRequest, error) {
	in := newInput(c)
	fail := func(format string, args ...any) { in.add(fmt.Errorf(format, args...)) }
	number := func(name string, b bound) *float64 {
		if s := in.number(name, b); s != nil {
			return &s.Value
		}
		return nil
	}
	r := &newRequest{output: c.String(flagOutput), force: c.Bool(flagForce), byName: c.Bool("connect-by-name"), dry: c.Bool("dry-run"),
		connect: c.StringSlice(flagConnect)}
	r.asked = compose.Composition{Parameters: c.Bool("parameters"), Algorithm: c.String(flagAlgorithm),
		Start: number("start-time", simulate.ParseTime), Stop: number("stop-time", simulate.ParseTime),
		Step: number("step-size", positiveTime), Tolerance: number("tolerance", positive)}
	if r.asked.Algorithm != "" {
		_, err := p.presets.New(r.asked.Algorithm, nil)
		in.add(err)
	}
	if c.IsSet(flagFor) {
		r.asked.For = readTools(in)
	}
	switch ext := strings.ToLower(filepath.Ext(r.output)); {
	case r.output == "" && !r.dry:
		fail("--output FILE is missing; name an .ssp or an .ssd")
	case ext == ".ssp" || r.output == "" || r.output == onStdout:
		r.outputPackage = true
	case ext != ".ssd":
		fail("--output %s: the name must end in .ssp or .ssd", r.output)
	}
	base := strings.TrimSuffix(filepath.Base(r.output), filepath.Ext(r.output))
	if r.output == "" || r.output == onStdout {
		base = "system"
	}
	if r.asked.Name = base; r.output != "" && base == "" {
		fail("--output %s: the system is named after the file, and that name is empty", r.output)
	}
	if slices.Contains(r.asked.For, "omsimulator") {
		r.asked.Name = edit.Identifier(base)
	}
	for _, arg := range c.Args().Slice() {
		f := namedFile{path: arg}
		if name, path, ok := strings.Cut(arg, "="); ok {
			if _, err := os.Stat(arg); err != nil { // the name of the file may contain =
				f = namedFile{name, path}
				if name == "" || strings.ContainsAny(name, ".:=\n") {
					fail("%q: the name of a component must not be empty or contain . : or =", arg)
				}
			}
		}
		r.parts = append(r.parts, f)
	}
	if r.output == onStdout && !r.dry {
		p.printAside()
	}
	return r, in.err()
}

// readTools reads the tools of --for, separated by commas.
func readTools(in *input) (tools []string) {
	for _, tool := range strings.Split(in.String(flagFor), ",") {
		tool = strings.ToLower(strings.TrimSpace(tool))
		if !slices.Contains(dialect.Tools(), tool) {
			in.fail(flagFor, fmt.Errorf("%q is not one of %s%s", tool, strings.Join(dialect.Tools(), ", "), diag.DidYouMean(tool, dialect.Tools())))
		} else if !slices.Contains(tools, tool) {
			tools = append(tools, tool)
		}
	}
	return tools
}

// sspNew makes the system.
func (p *program) sspNew(r *newRequest) (err error) {
	if err := free(r.output); err != nil && !r.dry && !r.force {
		return err
	}
	fmus, err := p.openParts(r.parts)
	defer func() {
		for _, f := range fmus {
			err = errors.Join(err, f.Close())
		}
	}()
	if err != nil {
		return err
	}
	parts, files, err := r.place(fmus)
	if err != nil {
		return err
	}
	c := r.asked
	var errs []error
	for _, text := range r.connect {
		link, err := compose.ParseLink(parts, text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--connect %s: %w", text, err))
			continue
		}
		c.Links = append(c.Links, link)
	}
	if err := errors.Join(errs...); err != nil {
		return &usageError{"ssp new", err}
	}
	var open []compose.NoLink
	if r.byName {
		var found []compose.Link
		found, open = compose.MatchByName(parts, c.Links)
		if len(found) == 0 && len(parts) > 1 {
			fmt.Fprintln(p.stderr, "warning: --connect-by-name connects nothing, because no free input has the name of an output of another component; "+
				"connect them with --connect COMPONENT.OUTPUT:COMPONENT.INPUT")
		}
		c.Links = append(c.Links, found...)
	}
	d, notes, err := compose.Compose(parts, c)
	if err != nil {
		return err
	}
	p.showNew(r, parts, c.Links, open, notes)
	if r.dry {
		fmt.Fprintln(p.stdout, "\nNothing is written.")
		return nil
	}
	data, err := edit.Encode(d)
	if err != nil {
		return err
	}
	if err := p.writeNew(r, data, files); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout)
	p.wrote(r.output, "")
	return nil
}

// openParts opens the FMUs of a new system, by absolute path, and prints their warnings.
func (p *program) openParts(parts []namedFile) (map[string]*fmi.FMU, error) {
	fmus := map[string]*fmi.FMU{}
	var errs []error
	var deviating []string // FMUs with deviations that change no result
	for _, part := range parts {
		if info, err := os.Stat(part.path); err == nil && info.IsDir() {
			errs = append(errs, fmt.Errorf("%s is a folder; its FMUs must be files", part.path))
			continue
		}
		path, err := filepath.Abs(part.path)
		if err == nil && fmus[path] == nil {
			var f *fmi.FMU
			var list *diag.List
			if f, list, err = fmi.Open(part.path, fmi.OpenOptions{}); err == nil {
				fmus[path] = f
				if slices.ContainsFunc(list.Findings, inert) {
					deviating = append(deviating, quote(part.path))
				}
				p.warn(slices.DeleteFunc(list.Findings, inert))
			}
		}
		errs = append(errs, err)
	}
	if len(deviating) > 0 {
		fmt.Fprintf(p.stderr, "note: deviations from the standard that change no result: macrostep validate %s\n", strings.Join(deviating, " "))
	}
	return fmus, errors.Join(errs...)
}

func inert(f diag.Finding) bool { return f.Inert }

// writeNew writes a new document, or a package with its files, if a run accepts it.
func (p *program) writeNew(r *newRequest, document []byte, files []edit.File) error {
	write := func(w io.Writer) error {
		if r.outputPackage {
			return edit.WriteArchive(w, append(files, edit.File{Name: "SystemStructure.ssd", Data: document}))
		}
		_, err := w.Write(document)
		return err
	}
	check := func(temp string) error {
		a, err := assemble.Open(temp, looking(p.dialects))
		if err == nil {
			ofFMU := func(f diag.Finding) bool { return !strings.HasPrefix(f.ID, "SD") } // printed already
			list := slices.DeleteFunc(a.Findings.Findings, ofFMU)
			for i := range list {
				list[i].File = strings.Replace(list[i].File, temp, r.output, 1)
			}
			p.warn(list)
			err = a.CheckErrors()
		}
		return errors.Join(err, a.Close())
	}
	return p.writeOutput(r.output, r.force, write, check)
}

// place names the components and finds the paths of the FMUs for the document. files are those of a package.
func (r *newRequest) place(fmus map[string]*fmi.FMU) (parts []compose.Part, files []edit.File, err error) {
	names, inPackage, sources := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, f := range r.parts {
		if names[f.name] && f.name != "" {
			return nil, nil, &usageError{"ssp new", fmt.Errorf("two components are called %s; give one of them another name", f.name)}
		}
		names[f.name] = true
	}
	for _, f := range r.parts {
		path, err := filepath.Abs(f.path)
		if err != nil {
			return nil, nil, err
		}
		stem := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		switch {
		case sources[path] != "":
		case r.outputPackage:
			name := "resources/" + unique(inPackage, stem, ".fmu")
			files = append(files, edit.File{Name: name, Path: path})
			sources[path] = edit.SourceURI(name)
		default:
			if sources[path], err = r.relative(path); err != nil {
				return nil, nil, fmt.Errorf("%s cannot refer to %s: %w; write an .ssp, which holds copies", r.output, f.path, err)
			}
		}
		name := f.name
		if name == "" {
			base := r.componentName(stem)
			if base == "" {
				return nil, nil, fmt.Errorf("%s: the component is named after the file without .fmu, and that name is empty; write NAME=%s",
					f.path, f.path)
			}
			name = unique(names, base, "")
		}
		parts = append(parts, compose.Part{Name: name, Source: sources[path], Description: fmus[path].Description})
	}
	return parts, files, nil
}

// unique returns a name that is not taken, with a number if necessary, and marks it as taken.
func unique(taken map[string]bool, base, ending string) string {
	name := base + ending
	for n := 2; taken[strings.ToLower(name)] || taken[name]; n++ {
		name = fmt.Sprintf("%s%d%s", base, n, ending)
	}
	taken[strings.ToLower(name)] = true
	return name
}

// relative returns the URI of a file, relative to the document.
func (r *newRequest) relative(path string) (string, error) {
	dir, err := filepath.Abs(filepath.Dir(r.output))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(dir, path)
	return edit.SourceURI(rel), err
}

// componentName returns the default name of a component: that of its file, with replaced characters.
func (r *newRequest) componentName(stem string) string {
	name := strings.Map(func(c rune) rune {
		if strings.ContainsRune(".:= \t\n", c) {
			return '_'
		}
		return c
	}, stem)
	if slices.Contains(r.asked.For, "omsimulator") {
		name = edit.Identifier(name)
	}
	return name
}

// showNew prints the system before it is written.
func (p *program) showNew(r *newRequest, parts []compose.Part, links []compose.Link, open []compose.NoLink, notes []string) {
	w := p.stdout
	var rows [][]string
	for i, part := range parts {
		d := part.Description
		rows = append(rows, []string{part.Name, r.parts[i].path, portCounts(count(d, description.Input), count(d, description.Output))})
	}
	titled(w, "Components", rows)
	titled(w, "\nConnections", rowsOf(links, func(l compose.Link) []string {
		return []string{parts[l.From].Name + "." + l.Output, "→ " + parts[l.To].Name + "." + l.Input}
	}))
	titled(w, "\nInputs left open", rowsOf(open, func(o compose.NoLink) []string {
		why := o.Why
		if len(o.Candidates) > 1 {
			why += ": " + strings.Join(o.Candidates, ", ") + "; choose with --connect " + o.Candidates[0] + ":" + o.Input
		}
		return []string{o.Input, why}
	}))
	if len(open) > 0 {
		fmt.Fprintln(w, "Connect them with --connect COMPONENT.OUTPUT:COMPONENT.INPUT. An open input keeps its start value, "+
			"or follows a column of run --input.")
	} else if len(links) == 0 && len(parts) > 1 {
		fmt.Fprintln(w, "\nNothing is connected; see --connect-by-name and --connect.")
	}
	if len(notes) > 0 {
		fmt.Fprintln(w, "\nNotes")
		for _, n := range notes {
			fmt.Fprintln(w, "  "+n)
		}
	}
}

// portCounts describes the numbers of inputs and outputs of a component.
func portCounts(inputs, outputs int) string {
	return plural(inputs, "input") + ", " + plural(outputs, "output")
}

// warn prints warnings, and as notes the deviations that change no result.
func (p *program) warn(list []diag.Finding) {
	for _, f := range list {
		if f.Level == diag.Warning || f.Inert {
			fmt.Fprintf(p.stderr, "%s: %s\n", levelWord(f.Level), f)
		}
	}
}
