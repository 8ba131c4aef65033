package app

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/master/simulate"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

const sspSetHelp = `Stores values of parameters and start values in a system, where every SSP tool finds
them: in a parameter set (.ssv) that overrides all others. With --algorithm, --param
and --step-size it stores settings, which runs use unless flags say otherwise;
--algorithm removes the parameters of the one before. All else stays as it is.

VALUE is a number, true or false, an item of an enumeration, or text, in the unit of
the variable. CONNECTOR=VALUE or SYSTEM.CONNECTOR=VALUE sets everything connected to
a connector of a system. -o FILE.ssp writes a new file; to change SYSTEM itself,
give --force.

Examples:
   macrostep ssp set car.ssp wheel.k_w=2e5 -o stiff.ssp
   macrostep ssp set car.ssp wheel.k_w=2e5 'road.name=a road' --force
   macrostep ssp set car/SystemStructure.ssd wheel.k_w=2e5 --force
   macrostep ssp set car.ssp --algorithm implicit --param order=1 -o tuned.ssp`

func (p *program) sspSetCommand() *cli.Command {
	return &cli.Command{
		Name: "ssp set", Usage: "change values of parameters, and settings of runs", ArgsUsage: "SYSTEM COMPONENT.VARIABLE=VALUE…",
		UsageText: "macrostep ssp set SYSTEM [COMPONENT.VARIABLE=VALUE…] [FLAGS]", Description: sspSetHelp,
		Flags: append(inCategory("", settingFlags(flagAlgorithm, flagParam, ssp.StepSize)...),
			outputFlag("write `FILE`, an .ssp, and leave SYSTEM as it is; -: on standard output"), forceFlag()),
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, math.MaxInt, "SYSTEM"); err != nil {
				return err
			}
			in, request := newInput(c), simulate.Request{System: c.Args().First()}
			in.settings(&request)
			request.Given = slices.DeleteFunc(request.Given, func(g simulate.Given) bool { return g.Name == flagOutput }) // that of a run
			if c.NArg() == 1 && len(request.Given) == 0 && in.err() == nil {
				in.add(errors.New("COMPONENT.VARIABLE=VALUE is missing, or a setting such as --algorithm"))
			}
			list, errs := assignments(c.Args().Tail(), "COMPONENT.VARIABLE=VALUE")
			in.add(errors.Join(errs...))
			output, force := c.String(flagOutput), c.Bool(flagForce)
			if output == onStdout {
				p.printAside()
			} else if c.IsSet(flagOutput) && !strings.EqualFold(filepath.Ext(output), ".ssp") {
				in.add(fmt.Errorf("--output %s: the name must end in .ssp", output))
			} else if output == "" && !force {
				in.add(fmt.Errorf("%s would be changed; name another file with --output, or give --%s", c.Args().First(), flagForce))
			}
			if err := in.err(); err != nil {
				return err
			}
			return p.sspSet(c.Args().First(), list, &request, output, force)
		},
	}
}

func (p *program) sspSet(path string, list []assemble.Assignment, r *simulate.Request, output string, force bool) (err error) {
	if err := free(output); err != nil && !force {
		return err
	}
	a, err := assemble.Open(path, looking(p.dialects))
	defer func() { err = errors.Join(err, a.Close()) }()
	if err != nil {
		return err
	}
	settings, settingRows, err := p.settingsFor(a, r)
	if err != nil {
		return err
	}
	changes, files, err := a.Bind(list, settings...)
	if err != nil {
		return err
	}
	_, err = os.Lstat(filepath.Join(a.Package().Dir, filepath.FromSlash(files[0].Name)))
	fresh := errors.Is(err, fs.ErrNotExist)
	path, variant := ssp.SplitVariant(path)
	if variant != "" {
		variant = "#" + variant
	}
	var weak []string
	check := func(written string) (err error) {
		weak, err = p.inForce(written+variant, changes, settings)
		unwritten(err, files[0].Name, changes, fresh)
		return err
	}
	if pkg := a.Package(); output != "" || pkg.Packed() {
		output = cmp.Or(output, path)
		err = p.writeSet(pkg, path, output, force, files, func(temp string) error {
			err := check(temp)
			for i, text := range weak {
				weak[i] = renamed{errors.New(text), temp, output}.Error()
			}
			return err
		})
	} else {
		output = path
		err = replaceAll(pkg.Dir, files, func() error { return check(path) })
	}
	if err != nil {
		return err
	}
	table(p.stdout, append(rowsOf(changes, func(c assemble.Change) []string {
		return []string{c.Name, cmp.Or(c.Old, "none") + " → " + c.New}
	}), settingRows...))
	for _, text := range weak {
		fmt.Fprintln(p.stderr, "warning: "+text)
	}
	p.wrote(output, " (%s)", files[0].Name)
	return nil
}

// settingsFor returns the settings of a request as those of a document, and rows with what they change. It refuses what a
// run refuses.
func (p *program) settingsFor(a *assemble.Assembly, r *simulate.Request) (list []ssp.Asked, rows [][]string, err error) {
	if len(r.Given) == 0 {
		return nil, nil, nil
	}
	a.Override(nil, nil, nil, nil) // settles the step
	was := append(slices.Clip(a.Asked), ssp.Asked{Name: ssp.Algorithm, Text: algorithms.DefaultPreset},
		ssp.Asked{Name: ssp.StepSize, Text: ssp.Number(a.Step.Value)})
	if r.Algorithm != "" { // it comes without the parameters of the documents
		a.Asked = slices.DeleteFunc(slices.Clone(a.Asked), func(s ssp.Asked) bool { return s.Name == ssp.Algorithm || s.Name == ssp.Param })
	}
	if s := simulate.StrategyOf(p.presets, a, r); s.Unfit != nil {
		return nil, nil, s.Unfit
	}
	for _, g := range r.Given {
		s := ssp.Asked{Name: g.Name, Key: g.Key, Text: g.Text}
		switch s.Name {
		case ssp.StepSize:
			s.Text = ssp.Number(r.Step.Value)
		case ssp.Param:
			s = ssp.AskParam(g.Key, r.Params[g.Key], "", ssp.Place{})
		}
		list = append(list, s)
	}
	find := func(in []ssp.Asked, name, key string) int {
		return slices.IndexFunc(in, func(s ssp.Asked) bool { return s.Name == name && s.Key == key })
	}
	const first = simulate.ParamFirstStep // a step size overrides it
	if r.Step != nil && find(a.Asked, ssp.Param, first) >= 0 && find(list, ssp.Param, first) < 0 {
		list = append(list, ssp.AskParam(first, "auto", "", ssp.Place{}))
	}
	row := func(s ssp.Asked, before, after string) {
		rows = append(rows, []string{strings.TrimSpace(s.Name + " " + s.Key), before + " → " + after})
	}
	for _, s := range list {
		before := "none"
		if i := find(was, s.Name, s.Key); i >= 0 {
			before = was[i].Value()
		}
		row(s, before, s.Value())
	}
	for _, s := range was {
		if s.Name == ssp.Param && find(a.Asked, s.Name, s.Key) < 0 && find(list, s.Name, s.Key) < 0 {
			row(s, s.Value(), "none")
		}
	}
	return list, rows, nil
}

// writeSet writes the package of the system at path with changed files as output, if check accepts it.
func (p *program) writeSet(pkg *ssp.Package, path, output string, force bool, files []edit.File, check func(temp string) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	alone := !info.IsDir() && !pkg.Packed() // a single document
	all, err := wholePackage(pkg, alone)
	if err != nil {
		return err
	}
	for _, f := range files {
		if filepath.Ext(f.Name) == ".ssd" && alone {
			f.Name = "SystemStructure.ssd"
		}
		all = slices.DeleteFunc(all, func(old edit.File) bool { return old.Name == f.Name })
		all = append(all, f)
	}
	// Errors name the input, because nothing has been written.
	inInput := func(temp string) error {
		err := check(temp)
		if err == nil {
			return nil
		}
		if alone {
			dir := filepath.Dir(path) + string(filepath.Separator)
			err = renamed{renamed{err, filepath.Join(temp, "SystemStructure.ssd"), path}, temp + string(filepath.Separator), dir}
		}
		return renamed{err, temp, path}
	}
	return p.writeOutput(output, force, func(w io.Writer) error { return edit.WriteArchive(w, all) }, inInput)
}

// wholePackage lists all files of a system: of an .ssp or a folder everything, of a single document the files
// that it refers to.
func wholePackage(pkg *ssp.Package, alone bool) ([]edit.File, error) {
	if alone {
		return edit.Needed(pkg)
	}
	files, hidden, err := edit.FolderFiles(pkg.Dir)
	if err == nil && !pkg.Packed() {
		_, err = edit.Needed(pkg) // refuses files outside the folder
	}
	if pkg.Packed() {
		files = append(files, hidden...)
	}
	return files, err
}

// unwritten changes findings about new values to name the values instead of the file that is not written: all
// findings in a new set, and those on changed parameters.
func unwritten(err error, file string, changes []assemble.Change, fresh bool) {
	var list *diag.ListError
	if !errors.As(err, &list) {
		return
	}
	for i := range list.Findings {
		f := &list.Findings[i]
		given := fresh || slices.ContainsFunc(changes, func(c assemble.Change) bool {
			return strings.HasSuffix(f.Path, "/Parameter[@name='"+c.Name+"']")
		})
		if given && (f.File == file || strings.HasSuffix(filepath.ToSlash(f.File), "/"+file)) {
			f.File, f.Line = "the values given", 0
		}
	}
}

// inForce checks that a written system has the values and settings, and returns warnings about those that only count until
// the first exchange.
func (p *program) inForce(path string, changes []assemble.Change, settings []ssp.Asked) (weak []string, err error) {
	a, err := assemble.Open(path, looking(p.dialects))
	defer func() { err = errors.Join(err, a.Close()) }()
	if err != nil {
		return nil, err
	}
	now, reached := map[string]assemble.SettingInfo{}, map[string][]assemble.SettingInfo{}
	for _, s := range a.Settings() {
		now[s.Name] = s
		reached[s.At] = append(reached[s.At], s)
	}
	var errs []error
	for _, c := range changes {
		s, variable := now[c.Name]
		if !variable && len(reached[c.Name]) > 0 {
			s = reached[c.Name][0]
		}
		switch {
		case variable && s.Fed != "" && s.Parameter:
			errs = append(errs, fmt.Errorf("the value of %s would have no effect: it is connected, and takes the value of %s", c.Name, s.Fed))
		case variable && s.Fed != "" && s.Value == c.New:
			weak = append(weak, fmt.Sprintf("%s = %s counts until the first exchange only: %s gives it a value from then on",
				c.Name, c.New, s.Fed))
		case variable && s.Value == c.New, !variable && s.Bound == c.New && s.At == c.Name:
		case variable:
			errs = append(errs, fmt.Errorf("%s would keep the value %s: the connector %s gives it over a connection of the system, from %s; "+
				"give that one a value: %[3]s=VALUE", c.Name, s.Value, s.At, s.Origin))
		default:
			errs = append(errs, fmt.Errorf("the value of the connector %s would reach no FMU: nothing is connected to it, or another value or "+
				"an output overrides it; set the variable itself", c.Name))
		}
	}
	for _, s := range settings {
		if !slices.ContainsFunc(a.Asked, func(now ssp.Asked) bool { return now.Name == s.Name && now.Key == s.Key && now.Text == s.Text }) {
			errs = append(errs, fmt.Errorf("%s would have no effect: another part of the document overrides it", s))
		}
	}
	return weak, errors.Join(errs...)
}

// replacement is a file that is replaced.
type replacement struct {
	path     string
	now, was *archive.File // temporary files with the new and the old content; was: nil = the file is new
}

// replaceAll replaces files of a folder and restores all of them if check returns an error. The new and the old
// content are in temporary files before the first file is replaced.
func replaceAll(dir string, files []edit.File, check func() error) (err error) {
	var list []replacement
	var made []string // folders
	defer func() {
		for _, c := range list {
			for _, f := range []*archive.File{c.now, c.was} {
				if f != nil {
					err = errors.Join(err, f.Remove())
				}
			}
		}
		if err != nil {
			for _, dir := range made {
				_ = os.Remove(dir) // fails if it is no longer empty
			}
		}
	}()
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if _, err := os.Stat(filepath.Dir(path)); errors.Is(err, fs.ErrNotExist) {
			made = append(made, filepath.Dir(path))
		}
		c, err := newReplacement(path, f.Data)
		list = append(list, c)
		if err != nil {
			return err
		}
	}
	done := 0
	for ; done < len(list) && err == nil; done++ {
		err = list[done].now.Place(list[done].path)
	}
	if err != nil {
		done-- // the last one failed
	} else if err = check(); err == nil {
		return nil
	}
	err = fmt.Errorf("nothing is changed: %w", err)
	for _, c := range slices.Backward(list[:done]) {
		if c.was == nil {
			err = errors.Join(err, os.Remove(c.path))
		} else {
			err = errors.Join(err, c.was.Place(c.path))
		}
	}
	return err
}

// newReplacement writes the new and the old content of a file to temporary files beside it. The caller
// removes them, also after an error.
func newReplacement(path string, data []byte) (c replacement, err error) {
	temporary := func(data []byte) (*archive.File, error) {
		f, err := archive.NewTempFile(c.path)
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			err = record.NotWritten(c.path, err)
		}
		return f, err
	}
	c.path = path
	was, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return c, record.NotWritten(path, err)
		}
	case err != nil:
		return c, err
	default:
		if c.path, err = filepath.EvalSymlinks(path); err != nil { // replace the target of a link
			return c, err
		}
		if c.was, err = temporary(was); err != nil {
			return c, err
		}
	}
	c.now, err = temporary(data)
	return c, err
}
