package fmi

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/csrc"
	"github.com/macrostep/macrostep/fmi/diag"
)

// Rules on the sources of an FMU.
var (
	ruleSources = &diag.Rule{
		ID: "FA11S", Level: diag.Error, Ref: "fmi2 11",
		Doc:    "The source files of an FMU are listed, are in its folder sources and compile.",
		Remedy: "have the FMU exported with complete sources, or with a library for this platform",
	}
	ruleGuessed = &diag.Rule{
		ID: "FA11G", Level: diag.Warning, Ref: "fmi2 11",
		Doc:    "SourceFiles or sources/buildDescription.xml lists the source files.",
		Remedy: "have the exporter list them",
	}
	ruleBuildOption = &diag.Rule{
		ID: "FA11O", Level: diag.Warning, Ref: "fmi2 11",
		Doc:    "The build description has no compiler options. They are ignored.",
		Remedy: "compile the FMU with the exporter's tool if its results differ",
	}
)

// buildDescriptionName takes precedence over the list in modelDescription.xml (fmi2 11).
const buildDescriptionName = "buildDescription.xml"

// hasSources reports whether an unpacked FMU has sources.
func hasSources(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "sources"))
	return err == nil && info.IsDir()
}

// buildDescription is sources/buildDescription.xml, which FMI 2.0.4 adopted from
// FMI 3.
type buildDescription struct {
	XMLName        xml.Name             `xml:"fmiBuildDescription"`
	Configurations []buildConfiguration `xml:"BuildConfiguration"`
}

type buildConfiguration struct {
	ModelIdentifier string `xml:"modelIdentifier,attr"`
	Platform        string `xml:"platform,attr"` // "" = any
	Sets            []struct {
		Language        string `xml:"language,attr"`
		CompilerOptions string `xml:"compilerOptions,attr"`
		Files           []struct {
			Name string `xml:"name,attr"`
		} `xml:"SourceFile"`
		Definitions []struct {
			Name     string `xml:"name,attr"`
			Value    string `xml:"value,attr"`
			Optional bool   `xml:"optional,attr"`
		} `xml:"PreprocessorDefinition"`
		Includes []struct {
			Name string `xml:"name,attr"`
		} `xml:"IncludeDirectory"`
	} `xml:"SourceFileSet"`
	Libraries []struct {
		Name     string `xml:"name,attr"`
		External bool   `xml:"external,attr"`
	} `xml:"Library"`
}

var (
	macroName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	libraryName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]*$`)
)

// buildSources compiles the sources of an unpacked FMU to a library in a temporary
// folder and returns its path.
func (f *FMU) buildSources(ctx context.Context, dir string, add adder) (string, error) {
	sources := filepath.Join(dir, "sources")
	cc, err := csrc.Compiler()
	if err != nil {
		return "", add(ruleSources.WithRemedy(""), "sources", "the FMU has C sources only: %v", err)
	}
	args, err := f.buildArguments(sources, add)
	if err != nil {
		return "", err
	}
	if f.built, err = archive.NewTempDir(f.temp, archive.Prefix); err != nil {
		return "", err
	}
	headers := filepath.Join(f.built.Path, "headers")
	if err := os.Mkdir(headers, 0o700); err != nil {
		return "", err
	}
	if err := csrc.WriteHeaders(headers); err != nil {
		return "", err
	}
	library := filepath.Join(f.built.Path, f.Description.CoSimulation.ModelIdentifier+csrc.Extension())
	// Headers of the FMU take precedence.
	args = append(args, "-w", "-DFMI2_OVERRIDE_FUNCTION_PREFIX", "-I.", "-I"+headers)
	if err := csrc.Library(ctx, cc, sources, library, args...); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("compiling the sources of %s: %w", filepath.Base(f.Path), err)
		}
		return "", add(ruleSources, "sources", "%v", err)
	}
	return library, nil
}

const buildDescriptionPath = "sources/" + buildDescriptionName

// buildArguments returns the compiler arguments: source files, relative to their
// folder, and options.
func (f *FMU) buildArguments(sources string, add adder) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(sources, buildDescriptionName))
	if errors.Is(err, fs.ErrNotExist) {
		return f.listedSources(sources, add)
	}
	if err != nil {
		return nil, err
	}
	var b buildDescription
	if err := xml.Unmarshal(data, &b); err != nil {
		return nil, add(ruleSources, buildDescriptionPath, "the build description cannot be read: %v", err)
	}
	id := f.Description.CoSimulation.ModelIdentifier
	for k := range b.Configurations {
		c := &b.Configurations[k]
		if c.ModelIdentifier == id && (c.Platform == "" || slices.Contains(platforms(runtime.GOOS, runtime.GOARCH), c.Platform)) {
			return c.arguments(sources, add)
		}
	}
	return nil, add(ruleSources, buildDescriptionPath, "there is no BuildConfiguration for modelIdentifier %q on %s/%s",
		id, runtime.GOOS, runtime.GOARCH)
}

// listedSources returns the source files in SourceFiles, or all C files if it is empty.
func (f *FMU) listedSources(sources string, add adder) ([]string, error) {
	files := slices.Clone(f.Description.CoSimulation.SourceFiles)
	if len(files) == 0 {
		var err error
		if files, err = listSources(sources); err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, add(ruleSources, "sources", "there is no C file in the folder sources")
		}
		add(ruleGuessed, "sources", "the FMU does not list the files to compile; macrostep compiles %s",
			strings.Join(files, ", "))
	}
	slices.Sort(files) // some lists name a file twice
	files = slices.Compact(files)
	return files, checkSources(sources, files, add)
}

// arguments returns the compiler arguments of a configuration.
func (c *buildConfiguration) arguments(sources string, add adder) ([]string, error) {
	var files, args []string
	for _, set := range c.Sets {
		if l := set.Language; l != "" && (l[0] != 'C' || strings.HasPrefix(l, "C++")) {
			return nil, add(ruleSources, buildDescriptionPath, "the sources are in %s; macrostep compiles only C", l)
		}
		if set.CompilerOptions != "" {
			add(ruleBuildOption, buildDescriptionPath, "the compiler options %q are ignored", set.CompilerOptions)
		}
		for _, d := range set.Definitions {
			switch {
			case !macroName.MatchString(d.Name):
				return nil, add(ruleSources, buildDescriptionPath, "%q is not a valid name of a preprocessor definition", d.Name)
			case d.Optional:
			case d.Value == "":
				args = append(args, "-D"+d.Name)
			default:
				args = append(args, "-D"+d.Name+"="+d.Value)
			}
		}
		for _, i := range set.Includes {
			if !filepath.IsLocal(filepath.FromSlash(i.Name)) {
				return nil, add(ruleSources, buildDescriptionPath, "the include folder %q is outside the folder sources", i.Name)
			}
			args = append(args, "-I"+filepath.FromSlash(i.Name))
		}
		for _, s := range set.Files {
			files = append(files, s.Name)
		}
	}
	if len(files) == 0 {
		return nil, add(ruleSources, buildDescriptionPath, "the build description lists no source file")
	}
	if err := checkSources(sources, files, add); err != nil {
		return nil, err
	}
	args = append(args, files...)
	for _, l := range c.Libraries {
		if !libraryName.MatchString(l.Name) {
			return nil, add(ruleSources, buildDescriptionPath, "%q is not a valid name of a library", l.Name)
		}
		if !l.External {
			return nil, add(ruleSources, buildDescriptionPath, "macrostep cannot link the library %q inside the FMU", l.Name)
		}
		args = append(args, "-l"+l.Name)
	}
	return args, nil
}

// listSources lists the C files in a folder, without subfolders.
func listSources(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".c") {
			files = append(files, e.Name())
		}
	}
	return files, nil
}

// checkSources replaces names with paths and checks that the files exist. The leading
// ./ keeps the compiler from taking a name for an option.
func checkSources(dir string, files []string, add adder) error {
	for k, name := range files {
		local := filepath.FromSlash(name)
		if !filepath.IsLocal(local) {
			return add(ruleSources, "sources", "the source file %q is outside the folder sources", name)
		}
		if info, err := os.Stat(filepath.Join(dir, local)); err != nil || !info.Mode().IsRegular() {
			return add(ruleSources, "sources", "the source file %q does not exist", name)
		}
		files[k] = "." + string(filepath.Separator) + local
	}
	return nil
}
