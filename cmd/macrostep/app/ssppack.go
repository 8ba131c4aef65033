package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/edit"
)

const sspPackHelp = `Makes an .ssp: from a folder with SystemStructure.ssd, of all its files except those
whose names begin with a dot; from an .ssd, of the document and the files in its
folder that it refers to. Equal content gives equal bytes.

Examples:
   macrostep ssp pack car
   macrostep ssp pack car -o delivery/car.ssp
   macrostep ssp pack car/variant.ssd -o variant.ssp`

func (p *program) sspPackCommand() *cli.Command {
	return &cli.Command{
		Name: "ssp pack", Usage: "make an .ssp from a folder or an .ssd", ArgsUsage: "FOLDER|SYSTEM.ssd",
		UsageText: "macrostep ssp pack FOLDER|SYSTEM.ssd [-o SYSTEM.ssp] [--force]", Description: sspPackHelp,
		Flags: []cli.Flag{outputFlag("write `FILE` (default: FOLDER.ssp or SYSTEM.ssp beside it); -: standard output"), forceFlag()},
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "FOLDER (with SystemStructure.ssd, or an .ssd)"); err != nil {
				return err
			}
			return p.sspPack(c)
		},
	}
}

// sspPack packs a folder or a document.
func (p *program) sspPack(c *cli.Context) error {
	path := c.Args().First()
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	stem := filepath.Clean(path)
	if !info.IsDir() {
		stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	} else if base := filepath.Base(stem); base == "." || base == ".." { // use the real name
		if stem, err = filepath.Abs(path); err != nil {
			return err
		}
	}
	output, err := p.target(c, stem+".ssp")
	if err != nil {
		return err
	}
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(path, "SystemStructure.ssd")); err != nil {
			return fmt.Errorf("%s has no SystemStructure.ssd, so it is not the folder of a package; if its .ssd has another name, "+
				"give that", path)
		}
	}
	files, err := p.packed(path, info.IsDir(), output)
	if err != nil {
		return err
	}
	if err := p.writeOutput(output, c.Bool(flagForce), func(w io.Writer) error { return edit.WriteArchive(w, files) }, p.whole); err != nil {
		return err
	}
	p.wrote(output, ": %d files", len(files))
	return nil
}

// whole returns an error if a package lacks files that it refers to.
func (p *program) whole(path string) error {
	pkg, err := ssp.Open(path, nil, p.dialects...)
	if err != nil {
		return err
	}
	return errors.Join(pkg.CheckSources(nil), pkg.Close())
}

// packed lists the files for the archive, if the documents have no errors.
func (p *program) packed(path string, folder bool, output string) (files []edit.File, err error) {
	list := &diag.List{}
	pkg, err := ssp.Open(path, list, p.dialects...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pkg.Close()) }()
	if pkg.Packed() {
		return nil, fmt.Errorf("%s is a package already", path)
	}
	if err := pkg.CheckSources(list); err != nil {
		return nil, err
	}
	if ext := filepath.Ext(pkg.Root.File); !strings.EqualFold(ext, ".ssd") {
		return nil, fmt.Errorf("%s is not an .ssd, and a package holds one", pkg.Root.File)
	}
	p.warn(slices.DeleteFunc(list.Findings, func(f diag.Finding) bool { return f.ID == "SD2O" })) // is an error here
	needed, err := edit.Needed(pkg)
	if err != nil || !folder {
		return needed, err
	}
	files, hidden, err := edit.FolderFiles(path)
	if err != nil {
		return nil, err
	}
	for _, h := range hidden {
		if slices.ContainsFunc(needed, func(n edit.File) bool { return n.Name == h.Name }) {
			files = append(files, h)
		} else {
			fmt.Fprintf(p.stderr, "left out: %s\n", h.Name)
		}
	}
	return slices.DeleteFunc(files, func(f edit.File) bool { return sameFile(f.Path, output) }), nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

const sspUnpackHelp = `Makes a folder from an .ssp, to edit its documents or to keep them under version
control. With --force the folder may exist: files of the package replace those
there, others stay.

Examples:
   macrostep ssp unpack car.ssp
   macrostep ssp unpack car.ssp -o work/car`

func (p *program) sspUnpackCommand() *cli.Command {
	return &cli.Command{
		Name: "ssp unpack", Usage: "make a folder from an .ssp", ArgsUsage: "SYSTEM.ssp",
		UsageText: "macrostep ssp unpack SYSTEM.ssp [-o FOLDER] [--force]", Description: sspUnpackHelp,
		Flags: []cli.Flag{outputFlag("make `FOLDER` (default: SYSTEM beside it)"), forceFlag()},
		Action: func(c *cli.Context) error {
			if err := arguments(c, 1, 1, "SYSTEM.ssp"); err != nil {
				return err
			}
			path := c.Args().First()
			if filepath.Ext(path) == "" && !c.IsSet(flagOutput) {
				return &usageError{"ssp unpack", fmt.Errorf("%s has no extension to leave out; name the folder with --output", path)}
			}
			if c.String(flagOutput) == onStdout {
				return &usageError{"ssp unpack", errors.New("--output -: a folder cannot be written to standard output")}
			}
			output, err := p.target(c, strings.TrimSuffix(path, filepath.Ext(path)))
			if err != nil {
				return err
			}
			return p.sspUnpack(path, output)
		},
	}
}

// sspUnpack unpacks beside the folder and moves the files into place.
func (p *program) sspUnpack(path, output string) (err error) {
	parent := filepath.Dir(filepath.Clean(output))
	temp, err := archive.NewTempDir(parent, archive.Hidden)
	if err != nil {
		return record.NotWritten(output, err)
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	list := &diag.List{}
	whole := filepath.Join(temp.Path, "whole")
	if err := os.Mkdir(whole, 0o777); err != nil {
		return err
	}
	if err := archive.Unpack(path, whole, list, archive.Limits{}); err != nil {
		return err
	}
	p.warn(list.Findings)
	if _, err := os.Lstat(output); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(whole, output); err != nil {
			return err
		}
	} else if err := moveInto(whole, output); err != nil {
		return err
	}
	fmt.Fprintf(p.stdout, "wrote %s\n", output)
	return nil
}

// moveInto renames the files of a folder into another. It moves nothing if a file cannot be replaced.
func moveInto(from, to string) error {
	var paths, targets []string
	if err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		info, err := os.Lstat(target)
		switch {
		case e.IsDir() && rel != "." && err == nil && !info.IsDir():
			return fmt.Errorf("%s is not a folder and is not replaced", target)
		case e.IsDir():
			return nil
		case err == nil && !info.Mode().IsRegular():
			return fmt.Errorf("%s is not an ordinary file and is not replaced", target)
		}
		paths, targets = append(paths, path), append(targets, target)
		return nil
	}); err != nil {
		return err
	}
	for _, target := range targets {
		if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
			return err
		}
	}
	for k, path := range paths {
		if err := os.Rename(path, targets[k]); err != nil {
			return err
		}
	}
	return nil
}
