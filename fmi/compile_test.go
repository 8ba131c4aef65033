package fmi

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// The compiler arguments from any build description are files and folders inside
// sources, macros and libraries.
func FuzzBuildDescription(f *testing.F) {
	f.Add(`<fmiBuildDescription><BuildConfiguration modelIdentifier="probe"><SourceFileSet language="C99" compilerOptions="-O3">` +
		`<SourceFile name="a.c"/><PreprocessorDefinition name="X" value="1"/><IncludeDirectory name="inc"/></SourceFileSet>` +
		`<Library name="m" external="true"/></BuildConfiguration></fmiBuildDescription>`)
	f.Add(`<fmiBuildDescription><BuildConfiguration modelIdentifier="probe"><SourceFileSet><SourceFile name="../a.c"/></SourceFileSet></BuildConfiguration></fmiBuildDescription>`)
	f.Add(`<x`)
	dir := f.TempDir()
	must(f, os.WriteFile(filepath.Join(dir, "a.c"), nil, 0o600))
	fmu := &FMU{Description: described(), Path: "a.fmu"}
	f.Fuzz(func(t *testing.T, text string) {
		must(t, os.WriteFile(filepath.Join(dir, buildDescriptionName), []byte(text), 0o600))
		refused := errors.New("refused")
		args, err := fmu.buildArguments(dir, func(r *diag.Rule, _, _ string, _ ...any) error {
			if r == ruleSources {
				return refused
			}
			return nil
		})
		if err != nil {
			if !errors.Is(err, refused) {
				t.Errorf("%v", err)
			}
			return
		}
		for _, a := range args {
			rest, isInclude := strings.CutPrefix(a, "-I")
			switch {
			case isInclude && filepath.IsLocal(rest), strings.HasPrefix(a, "-D"), strings.HasPrefix(a, "-l") && len(a) > 2:
			case a == "."+string(filepath.Separator)+"a.c":
			default:
				t.Errorf("argument %q", a)
			}
		}
	})
}
