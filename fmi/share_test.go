package fmi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/test/probe"
)

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// instances asks an FMU how many instances its library has had in this process.
func instances(t *testing.T, f *fmi.FMU) int64 {
	t.Helper()
	in, err := f.Instantiate("x", fmi.InstanceOptions{})
	must(t, err)
	must(t, in.SetupExperiment(fmi.Experiment{}))
	must(t, in.EnterInitializationMode())
	must(t, in.ExitInitializationMode())
	n := make([]int64, 1)
	must(t, in.GetInteger([]description.ValueReference{2}, n))
	must(t, in.Free())
	return n[0]
}

// Archives of equal content share one unpacked tree, which the last user removes, and one
// library, which stays loaded (fmi2 3).
func TestShare(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	a, err := probe.Sources(dir, "a", probe.LifeCapabilities, "SHARE")
	must(t, err)
	data, err := os.ReadFile(a)
	must(t, err)
	b := filepath.Join(dir, "b.fmu")
	must(t, os.WriteFile(b, data, 0o600))
	other, err := probe.Sources(dir, "other", probe.LifeCapabilities, "SHARE=2")
	must(t, err)
	open := func(path string) *fmi.FMU {
		f, _, err := fmi.Open(path, fmi.OpenOptions{Compile: true, TempDir: temp})
		must(t, err)
		return f
	}
	var fs [4]*fmi.FMU
	var wg sync.WaitGroup
	for k := range fs { // at the same time
		wg.Go(func() { fs[k], _, _ = fmi.Open([]string{a, b}[k%2], fmi.OpenOptions{Compile: true, TempDir: temp}) })
	}
	wg.Wait()
	for k, f := range fs {
		if f == nil || f.Dir != fs[0].Dir || f.Path != []string{a, b}[k%2] {
			t.Fatalf("FMU %d: %+v", k, f)
		}
	}
	for want := int64(1); want <= 3; want++ {
		if got := instances(t, fs[want]); got != want {
			t.Errorf("instance %d of the library is number %d", want, got)
		}
	}
	x := open(other)
	if x.Dir == fs[0].Dir || instances(t, x) != 1 {
		t.Error("an FMU of other content shares")
	}
	must(t, x.Close())
	for k, f := range fs {
		if _, err := os.Stat(filepath.Join(fs[0].Dir, "modelDescription.xml")); err != nil {
			t.Errorf("the tree is gone before user %d", k)
		}
		must(t, f.Close())
		must(t, f.Close())
	}
	if runtime.GOOS != "windows" {
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", temp, left, err)
		}
	}
	f := open(b) // unpacked anew, and the library is still there
	defer f.Close()
	if got := instances(t, f); got != 4 {
		t.Errorf("the library has had %d instances after the tree was gone", got)
	}
}

// FMUs with sources only are compiled according to their documents (fmi2 10, 11).
func TestCompile(t *testing.T) {
	life := probe.LifeSource()
	plain := probe.LifeDescription("", "")
	named := func(files ...string) string {
		return probe.LifeDescription("", `<SourceFiles><File name="`+strings.Join(files, `"/><File name="`)+`"/></SourceFiles>`)
	}
	build := func(head, set string) string {
		return `<fmiBuildDescription fmiVersion="3.0"><BuildConfiguration ` + head + `>` + set + `</BuildConfiguration></fmiBuildDescription>`
	}
	const files = "sources/buildDescription.xml"
	built := func(head, set string) []string {
		return []string{"modelDescription.xml", plain, "sources/life.c", life, files, build(head, set)}
	}
	one := func(more string) string {
		return `<SourceFileSet><SourceFile name="life.c"/>` + more + `</SourceFileSet>`
	}
	part := `int part(void) { return 1; }`
	for _, c := range []struct {
		name     string
		entries  []string
		findings string // ids
		wrong    string // part of the error
	}{
		{"listed", []string{"modelDescription.xml", named("life.c"), "sources/life.c", life, "sources/wrong.c", "not C"}, "", ""},
		{"listed twice", []string{"modelDescription.xml", named("life.c", "part.c", "life.c"), "sources/life.c", life, "sources/part.c", part}, "", ""},
		{"in folders", []string{"modelDescription.xml", named("src/life.c", "src/b/-part.c"), "sources/src/life.c", life, "sources/src/b/-part.c", part}, "", ""},
		{"not listed", []string{"modelDescription.xml", plain, "sources/life.c", life, "sources/part.c", part, "sources/read.me", "x"}, "FA11G", ""},
		{"own headers", []string{"modelDescription.xml", plain, "sources/life.c", life, "sources/fmi2Functions.h", `#include <fmi2.h>`}, "FA11G", ""},
		{"prefixed", []string{"modelDescription.xml", named("life.c"), "sources/life.c",
			prefixed(life)}, "", ""},
		{"build description outranks", []string{"modelDescription.xml", named("wrong.c"), "sources/c/life.c", life, "sources/inc/extra.h", "", "sources/wrong.c", "not C",
			files, build(`modelIdentifier="life"`, `<SourceFileSet language="C99" compilerOptions="-O3"><SourceFile name="c/life.c"/>`+
				`<PreprocessorDefinition name="X" value="1"/><PreprocessorDefinition name="Y"/><PreprocessorDefinition name="DIVIDE" optional="true"/>`+
				`<IncludeDirectory name="inc"/></SourceFileSet><Library name="m" external="true"/>`)}, "FA11O", ""},
		{"compiler's message", []string{"modelDescription.xml", named("life.c"), "sources/life.c", "#error no licence"}, "", "no licence"},
		{"missing file", []string{"modelDescription.xml", named("none.c"), "sources/life.c", life}, "", `"none.c" does not exist`},
		{"outside", []string{"modelDescription.xml", named("../x.c"), "sources/life.c", life}, "", "outside"},
		{"nothing to compile", []string{"modelDescription.xml", plain, "sources/read.me", "x"}, "", "no C file"},
		{"no sources at all", []string{"modelDescription.xml", plain}, "", "has no library at all"},
		{"broken build description", []string{"modelDescription.xml", plain, "sources/life.c", life, files, "<x"}, "", "buildDescription.xml"},
		{"other model", built(`modelIdentifier="death"`, ""), "", `modelIdentifier "life"`},
		{"other platform", built(`modelIdentifier="life" platform="vax"`, ""), "", "no BuildConfiguration"},
		{"C++", built(`modelIdentifier="life"`, `<SourceFileSet language="C++11"><SourceFile name="life.c"/></SourceFileSet>`), "", "C++11"},
		{"no file named", built(`modelIdentifier="life"`, `<SourceFileSet/>`), "", "no source file"},
		{"odd macro", built(`modelIdentifier="life"`, `<SourceFileSet><PreprocessorDefinition name="A B"/></SourceFileSet>`), "", "A B"},
		{"include outside", built(`modelIdentifier="life"`, one(`<IncludeDirectory name="/usr"/>`)), "", "/usr"},
		{"library inside", built(`modelIdentifier="life"`, one("")+`<Library name="z"/>`), "", `"z"`},
		{"option as library", built(`modelIdentifier="life"`, one("")+`<Library name="-x" external="true"/>`), "", `"-x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			path, err := probe.Zip(filepath.Join(t.TempDir(), "life.fmu"), c.entries...)
			must(t, err)
			f, _, err := fmi.Open(path, fmi.OpenOptions{Compile: true, TempDir: temp})
			must(t, err)
			list, err := f.Load(t.Context(), "")
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), path) {
					t.Errorf("no %q in %v", c.wrong, err)
				}
			} else {
				must(t, err)
				var ids []string
				for _, d := range list.Findings {
					ids = append(ids, d.ID)
				}
				if got := strings.Join(ids, " "); got != c.findings {
					t.Errorf("findings %q, want %q", got, c.findings)
				}
				if instances(t, f) < 1 {
					t.Error("no instance")
				}
			}
			must(t, f.Close())
			if left, err := os.ReadDir(temp); runtime.GOOS != "windows" && (err != nil || len(left) > 0) {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// prefixed returns the source with the prefix of the standard before its functions, which no
// macro can override.
func prefixed(source string) string {
	var names strings.Builder
	for _, n := range []string{"GetTypesPlatform", "GetVersion", "Instantiate", "FreeInstance", "SetupExperiment", "EnterInitializationMode",
		"ExitInitializationMode", "Terminate", "GetReal", "GetInteger", "SetReal", "SetInteger", "DoStep"} {
		names.WriteString("#define fmi2" + n + " life_fmi2" + n + "\n")
	}
	return names.String() + source
}

// Sources are compiled only if OpenOptions.Compile is set and there is a compiler; the message has the remedy.
func TestNotCompiled(t *testing.T) {
	path, err := probe.Sources(t.TempDir(), "a", "", "NOT_COMPILED")
	must(t, err)
	for compile, words := range map[bool][]string{false: {"--compile", "C sources only"}, true: {"no C compiler", "install"}} {
		if compile {
			t.Setenv("CC", "")
			t.Setenv("PATH", t.TempDir())
		}
		f, _, err := fmi.Open(path, fmi.OpenOptions{Compile: compile})
		must(t, err)
		defer f.Close()
		_, err = f.Load(t.Context(), "")
		for _, w := range words {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("no %q in: %v", w, err)
			}
		}
	}
}

// idle is a launcher that launches nothing.
type idle struct{}

func (idle) Launch(fmi.Launch) (fmi.Link, error) { return nil, errors.New("not launched") }

// Compiling that was cancelled is tried again by the next call, and leaves neither a finding nor a file.
func TestCompileCancelled(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the endless compiler is a script
	}
	given := os.Getenv("CC")
	endless := filepath.Join(t.TempDir(), "cc")
	must(t, os.WriteFile(endless, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	temp := t.TempDir()
	path, err := probe.Sources(t.TempDir(), "a", probe.LifeCapabilities, "CANCELLED")
	must(t, err)
	f, _, err := fmi.Open(path, fmi.OpenOptions{Compile: true, TempDir: temp})
	must(t, err)
	defer f.Close()
	before, err := os.ReadDir(temp)
	must(t, err)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, load := range map[string]func(ctx context.Context) error{
		"Load":   func(ctx context.Context) error { _, err := f.Load(ctx, ""); return err },
		"LoadIn": func(ctx context.Context) error { _, err := f.LoadIn(ctx, idle{}); return err },
		"Instantiate": func(ctx context.Context) error {
			_, err := f.Instantiate("x", fmi.InstanceOptions{Context: ctx})
			return err
		},
	} {
		t.Setenv("CC", endless)
		if err := load(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.ReadDir(temp); err != nil || len(after) != len(before) {
			t.Errorf("%s: %v: files %v, before %v", name, err, after, before)
		}
	}
	t.Setenv("CC", given)
	list, err := f.Load(t.Context(), "")
	if err != nil || len(list.Findings) > 0 {
		t.Errorf("%v, %v", err, list)
	}
}

// LoadInItsFolder changes the working directory only while the library is loaded (fmi2 7).
func TestLoadInItsFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // the probe asks by getcwd
	}
	dir, err := os.Getwd()
	must(t, err)
	for _, there := range []bool{false, true} {
		path, err := probe.Sources(t.TempDir(), "a", "", "FOLDER", map[bool]string{false: "A=1", true: "A=2"}[there])
		must(t, err)
		f, _, err := fmi.Open(path, fmi.OpenOptions{Compile: true})
		must(t, err)
		defer f.Close()
		if there {
			f.LoadInItsFolder()
		}
		var said string
		in, err := f.Instantiate("x", fmi.InstanceOptions{Log: func(m fmi.LogMessage) { said += m.Text }})
		must(t, err)
		defer in.Free()
		want := dir
		if there {
			want = filepath.Dir(f.Library())
		}
		if !strings.Contains(said, "loaded in "+want) {
			t.Errorf("%q, want %s", said, want)
		}
		if now, err := os.Getwd(); err != nil || now != dir {
			t.Errorf("working directory %s, %v", now, err)
		}
	}
}
