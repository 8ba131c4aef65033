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

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

const sspSetHelp = `Gives variables values that every tool finds in the system: in a parameter set
(.ssv) that the outermost system binds last, so that they override all others. An
existing set of this kind is changed; otherwise one is made and bound. FMUs and
the rest of the documents stay as they are.

A value is a number, true or false, the name of an enumeration's item, or text, in
the unit of the variable. Only what can be set before a run takes a value.
CONNECTOR=VALUE or SYSTEM.CONNECTOR=VALUE gives a connector of a system a value,
which is passed on to everything connected to it and overrides values given there.

-o FILE.ssp writes the system with the new values; without it SYSTEM itself is
changed, which needs --force.

Examples:
   macrostep ssp set car.ssp wheel.k_w=2e5 -o stiff.ssp
   macrostep ssp set car.ssp wheel.k_w=2e5 'road.name=a road' --force
   macrostep ssp set car/SystemStructure.ssd wheel.k_w=2e5 --force`

func (p *program) sspSetCommand() *cli.Command {
	return &cli.Command{
		Name: "ssp set", Usage: "give parameters values", ArgsUsage: "SYSTEM COMPONENT.VARIABLE=VALUE…",
		UsageText: "macrostep ssp set SYSTEM COMPONENT.VARIABLE=VALUE… [-o FILE.ssp] [--force]", Description: sspSetHelp,
		Flags: []cli.Flag{outputFlag("write `FILE`, an .ssp, and leave SYSTEM as it is"), forceFlag()},
		Action: func(c *cli.Context) error {
			if err := arguments(c, 2, math.MaxInt, "SYSTEM COMPONENT.VARIABLE=VALUE"); err != nil {
				return err
			}
			in := newInput(c)
			list, errs := assignments(c.Args().Tail(), "COMPONENT.VARIABLE=VALUE")
			in.add(errors.Join(errs...))
			output, force := c.String(flagOutput), c.Bool(flagForce)
			if c.IsSet(flagOutput) && !strings.EqualFold(filepath.Ext(output), ".ssp") {
				in.add(fmt.Errorf("--output %s: the name must end in .ssp", output))
			} else if output == "" && !force {
				in.add(fmt.Errorf("%s would be changed; name another file with --output, or give --%s", c.Args().First(), flagForce))
			}
			if err := in.err(); err != nil {
				return err
			}
			return p.sspSet(c.Args().First(), list, output, force)
		},
	}
}

func (p *program) sspSet(path string, list []assemble.Assignment, output string, force bool) (err error) {
	if err := free(output); err != nil && !force {
		return err
	}
	a, err := assemble.Open(path, looking(p.dialects))
	defer func() { err = errors.Join(err, a.Close()) }()
	if err != nil {
		return err
	}
	changes, files, err := a.Bind(list)
	if err != nil {
		return err
	}
	path, variant := ssp.SplitVariant(path)
	if variant != "" {
		variant = "#" + variant
	}
	var weak []string
	check := func(written string) (err error) {
		weak, err = p.inForce(written+variant, changes)
		unwritten(err, files[0].Name, changes, len(files) > 1)
		return err
	}
	pkg := a.Package()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	alone := !info.IsDir() && !pkg.Packed() // a document by itself
	switch {
	case output != "" || pkg.Packed():
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
		if output == "" {
			output = path
		}
		// Errors are about the input: nothing has been written.
		inInput := func(temp string) error {
			err := check(temp)
			for i, text := range weak {
				weak[i] = renamed{errors.New(text), temp, output}.Error()
			}
			switch {
			case err == nil:
				return nil
			case alone:
				dir := filepath.Dir(path) + string(filepath.Separator)
				err = renamed{renamed{err, filepath.Join(temp, "SystemStructure.ssd"), path}, temp + string(filepath.Separator), dir}
			}
			return renamed{err, temp, path}
		}
		err = writeChecked(output, force, func(w io.Writer) error { return edit.WriteArchive(w, all) }, inInput)
		if err != nil {
			return err
		}
	default:
		output = path
		if err := replaceAll(pkg.Dir, files, func() error { return check(path) }); err != nil {
			return err
		}
	}
	table(p.stdout, rowsOf(changes, func(c assemble.Change) []string {
		return []string{c.Name, cmp.Or(c.Old, "none") + " → " + c.New}
	}))
	for _, text := range weak {
		fmt.Fprintln(p.stderr, "warning: "+text)
	}
	fmt.Fprintf(p.stdout, "wrote %s (%s)\n", output, files[0].Name)
	return nil
}

// wholePackage lists all files of a system: of an .ssp and a folder everything, of a
// single document what it refers to.
func wholePackage(pkg *ssp.Package, alone bool) ([]edit.File, error) {
	if alone {
		return edit.Needed(pkg)
	}
	files, hidden, err := edit.FolderFiles(pkg.Dir)
	if err == nil && !pkg.Packed() {
		_, err = edit.Needed(pkg) // refuses what is not in the folder
	}
	if pkg.Packed() {
		files = append(files, hidden...)
	}
	return files, err
}

// unwritten makes findings on new values name the values, because the file that would hold
// them is not written: all findings in a new set, and those on changed parameters.
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

// inForce checks that a written system has the values, and returns warnings on those that
// count until the first exchange only.
func (p *program) inForce(path string, changes []assemble.Change) (weak []string, err error) {
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
			weak = append(weak, fmt.Sprintf("%s = %s counts until the first exchange only: %s gives it a value from then on", c.Name, c.New, s.Fed))
		case variable && s.Value == c.New, !variable && s.Bound == c.New && s.At == c.Name:
		case variable:
			errs = append(errs, fmt.Errorf("%s would keep the value %s: the connector %s gives it over a connection of the system, from %s; give that one a value: %[3]s=VALUE", c.Name, s.Value, s.At, s.Origin))
		default:
			errs = append(errs, fmt.Errorf("the value of the connector %s would reach no FMU: nothing is connected to it, or another value or an output beats it; set the variable itself", c.Name))
		}
	}
	return weak, errors.Join(errs...)
}

// replaceAll replaces files of a folder, the one that others refer to first, and puts
// all back if the outcome is not sound. The new and the old content are on the disk
// before the first file is replaced, so that its end undoes nothing by halves.
func replaceAll(dir string, files []edit.File, check func() error) (err error) {
	type change struct {
		path     string
		now, was *archive.File // was: nil = there was none
	}
	var changes []change
	var made []string // folders
	defer func() {
		if err != nil {
			for _, dir := range made {
				_ = os.Remove(dir) // it may have got something else meanwhile
			}
		}
	}()
	defer func() {
		for _, c := range changes {
			for _, f := range []*archive.File{c.now, c.was} {
				if f != nil {
					err = errors.Join(err, f.Remove())
				}
			}
		}
	}()
	prepare := func(path string, data []byte) (*archive.File, error) {
		f, err := archive.NewTempFile(path)
		if err == nil {
			if _, err = f.Write(data); err != nil {
				err = errors.Join(err, f.Remove())
			}
		}
		return f, err
	}
	for _, f := range files {
		c := change{path: filepath.Join(dir, filepath.FromSlash(f.Name))}
		was, err := os.ReadFile(c.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			folder := filepath.Dir(c.path)
			if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
				made = append(made, folder)
			}
			if err := os.MkdirAll(folder, 0o777); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			if c.path, err = filepath.EvalSymlinks(c.path); err != nil { // what a link points to is replaced
				return err
			}
			if c.was, err = prepare(c.path, was); err != nil {
				return err
			}
		}
		c.now, err = prepare(c.path, f.Data)
		changes = append(changes, c)
		if err != nil {
			return err
		}
	}
	done := 0
	for _, c := range changes {
		if err = c.now.Place(c.path); err != nil {
			break
		}
		done++
	}
	if err == nil {
		err = check()
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("nothing is changed: %w", err)
	for _, c := range slices.Backward(changes[:done]) {
		if c.was == nil {
			err = errors.Join(err, os.Remove(c.path))
		} else {
			err = errors.Join(err, c.was.Place(c.path))
		}
	}
	return err
}
