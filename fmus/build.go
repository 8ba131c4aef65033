package fmus

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/csrc"
)

//go:embed src
var sources embed.FS

// file is an entry of an archive.
type file struct {
	name string
	data []byte
}

// Names returns the names of our FMUs.
func Names() []string {
	var names []string
	for _, m := range models() {
		names = append(names, m.name)
	}
	return names
}

// Description returns modelDescription.xml of one of our FMUs as Build writes it.
func Description(name string) ([]byte, error) { return describe(find(name)) }

// Description3 returns modelDescription.xml of one of our FMUs as Build3 writes it.
func Description3(name string) ([]byte, error) { return describe(find3(name)) }

func describe(m *model, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	src, err := m.files()
	if err != nil {
		return nil, err
	}
	return []byte(m.xml(m.guid(src))), nil
}

// Build compiles one of our FMUs, as FMI 2.0, for this machine and writes it to dir/name.fmu,
// replacing an existing file. The FMU contains its sources. Builds may run at
// the same time, also of the same FMU.
//
// The compiler is $CC, which may include arguments, else the first of cc,
// gcc and clang on the path. Errors: there is no compiler (the text names what to install), or it
// fails (the text contains its messages).
func Build(dir, name string) (path string, err error) {
	m, err := find(name)
	if err != nil {
		return "", err
	}
	return m.write(dir)
}

// Build3 is Build for FMI 3.0.
func Build3(dir, name string) (path string, err error) {
	m, err := find3(name)
	if err != nil {
		return "", err
	}
	return m.write(dir)
}

// write builds the FMU and writes it to a folder.
func (m *model) write(dir string) (path string, err error) {
	cc, err := csrc.Compiler()
	if err != nil {
		return "", fmt.Errorf("building %s.fmu: %w", m.name, err)
	}
	data, err := m.build(cc)
	if err != nil {
		return "", fmt.Errorf("building %s.fmu: %w", m.name, err)
	}
	path = filepath.Join(dir, m.name+".fmu")
	return path, archive.WriteFile(path, data)
}

// Pack compiles one C source, which may include our fmi2.h or fmi3.h, and writes an FMU of
// the library and the given modelDescription.xml to dir/name.fmu, replacing an existing file;
// name is also its modelIdentifier. Errors are those of Build.
func Pack(dir, name, description, source string) (path string, err error) {
	cc, err := csrc.Compiler()
	if err != nil {
		return "", fmt.Errorf("building %s.fmu: %w", name, err)
	}
	library, err := compile(cc, name, []file{{"fmi2.h", csrc.Header}, {"fmi3.h", csrc.Header3},
		{name + ".c", []byte(source)}})
	if err != nil {
		return "", fmt.Errorf("building %s.fmu: %w", name, err)
	}
	where := platform()
	if strings.Contains(description, `fmiVersion="3`) {
		where = platform3()
	}
	data, err := zipped([]file{{"modelDescription.xml", []byte(description)}, binary(where, name, library)})
	if err != nil {
		return "", fmt.Errorf("building %s.fmu: %w", name, err)
	}
	path = filepath.Join(dir, name+".fmu")
	return path, archive.WriteFile(path, data)
}

// binary returns a library at its place in an FMU.
func binary(platform, name string, library []byte) file {
	return file{"binaries/" + platform + "/" + name + csrc.Extension(), library}
}

// BuildAll builds all our FMUs into dir in parallel and returns their paths
// in the order of Names.
func BuildAll(dir string) ([]string, error) {
	names := Names()
	paths, errs := make([]string, len(names)), make([]error, len(names))
	parallel(len(names), func(i int) { paths[i], errs[i] = Build(dir, names[i]) })
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return paths, nil
}

// parallel calls f(0) … f(n-1), as many at a time as there are processors.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range n {
		wg.Go(func() {
			free <- struct{}{}
			f(i)
			<-free
		})
	}
	wg.Wait()
}

// files returns the sources of the library without guid.h.
func (m *model) files() ([]file, error) {
	f := []file{{"fmi2.h", csrc.Header}}
	if m.fmi3 {
		f = []file{{"fmi3.h", csrc.Header3}}
	}
	for _, name := range m.names() {
		data, err := sources.ReadFile("src/" + name)
		if err != nil {
			return nil, err
		}
		f = append(f, file{name, data})
	}
	return f, nil
}

// names returns the names of the sources from src.
func (m *model) names() []string {
	api := "api2.c"
	if m.fmi3 {
		api = "api3.c"
	}
	return append([]string{"fmu.c", "fmu.h", api}, m.sources...)
}

func isC(name string) bool { return strings.HasSuffix(name, ".c") }

// build returns the whole FMU.
func (m *model) build(cc []string) ([]byte, error) {
	src, err := m.files()
	if err != nil {
		return nil, err
	}
	guid := m.guid(src)
	// Macros are in a file and not in compiler options, so that the sources in the FMU can be compiled again.
	header := fmt.Sprintf("#define FMU_GUID \"%s\"\n", guid)
	header += m.header()
	src = append(src, file{"guid.h", []byte(header)})
	library, err := compile(cc, m.name, src)
	if err != nil {
		return nil, err
	}
	if m.wrongGUID {
		guid = "{00000000-0000-0000-0000-000000000000}"
	}
	where := platform()
	if m.fmi3 {
		where = platform3()
		src = append(src, file{"buildDescription.xml", []byte(m.buildDescription())})
	}
	entries := []file{
		{"modelDescription.xml", []byte(m.xml(guid))},
		binary(where, m.name, library),
	}
	for _, f := range src {
		entries = append(entries, file{"sources/" + f.name, f.data})
	}
	return zipped(entries)
}

// header returns the macros and enumerations that the sources take from the model.
func (m *model) header() string {
	var b, reals, integers, texts strings.Builder
	version := 2
	if m.fmi3 {
		version = 3
	}
	fmt.Fprintf(&b, "#define FMU_FMI %d\n#define FIRST_INTEGER %du\n#define FIRST_TEXT %du\n", version, m.first(count), m.first(text))
	for _, d := range m.defines {
		fmt.Fprintf(&b, "#define %s\n", d)
	}
	if m.plain {
		b.WriteString("#define FMU_PLAIN\n")
	}
	if m.wrapped {
		b.WriteString("#define FMU_WRAPPED\n")
	}
	states, n, wordCount := map[string]int{}, [text + 1]int{}, 0 // indices of states; variables of each role
	for _, v := range m.variables {
		if v.enumeration != "" {
			fmt.Fprintf(&b, "enum { %s_%s };\n", v.enumeration, strings.Join(v.items, ", "+v.enumeration+"_"))
			fmt.Fprintf(&b, "#define NAMES_%s \"%s\"\n", v.enumeration, strings.Join(v.items, `", "`))
		}
		index := n[v.role]
		n[v.role]++
		switch v.role {
		case count:
			fmt.Fprintf(&b, "#define START_%s %g\n", v.name, v.start)
			least := 0.0
			if v.min != nil {
				least = *v.min
			}
			enumeration := 0
			if v.enumeration != "" {
				enumeration = 1
			}
			fmt.Fprintf(&integers, "{%g, %g, %d}, ", v.start, least, enumeration)
			continue
		case text:
			fmt.Fprintf(&texts, "%s, ", cLiteral(v.word))
			wordCount++
			continue
		case state:
			states[v.name] = index
		case derivative:
			index = states[v.derivativeOf]
		}
		fmt.Fprintf(&reals, "{%s, %d, %s}, ", roles[v.role], index, number(v.start))
	}
	fmt.Fprintf(&b, "#define FMU_REALS %s\n#define FMU_INTEGERS %s\n#define FMU_TEXTS %s\n", &reals, &integers, &texts)
	fmt.Fprintf(&b, "#define FMU_STRINGS %d\n#define FMU_NX %d\n#define FMU_NU %d\n#define FMU_NY %d\n#define FMU_OUTPUT_ORDER %d\n",
		wordCount, n[state], n[input], n[calculated], m.outputOrder)
	return b.String()
}

// cLiteral returns a string as a C literal.
func cLiteral(s string) string {
	b := []byte{'"'}
	for i := range len(s) {
		b = fmt.Appendf(b, "\\%03o", s[i])
	}
	return string(append(b, '"'))
}

// compile returns the shared library made from the sources, compiled in their folder, so that it contains no path of
// this machine.
func compile(cc []string, name string, src []file) (built []byte, err error) {
	temp, err := archive.NewTempDir("", archive.Prefix)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, temp.Remove()) }()
	dir := temp.Path
	library := name + csrc.Extension()
	args := []string{"-std=c99", "-Wall", "-fvisibility=hidden"}
	for _, f := range src {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.data, 0o644); err != nil {
			return nil, err
		}
		if isC(f.name) {
			args = append(args, f.name)
		}
	}
	if err := csrc.Library(context.Background(), cc, dir, library, args...); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, library))
}

// platform returns the folder of the binaries of this machine (fmi2 5).
func platform() string {
	system := runtime.GOOS
	if system == "windows" {
		system = "win"
	}
	if runtime.GOARCH == "amd64" {
		return system + "64"
	}
	machine := runtime.GOARCH
	if machine == "arm64" {
		machine = "aarch64"
	}
	return machine + "-" + runtime.GOOS
}

// platform3 returns the same of FMI 3.0 (2.5.1.4.1).
func platform3() string {
	machine := runtime.GOARCH
	switch machine {
	case "amd64":
		machine = "x86_64"
	case "386":
		machine = "x86"
	case "arm64":
		machine = "aarch64"
	}
	return machine + "-" + runtime.GOOS
}

// zipped zips the entries in their order with a fixed time, so that equal
// content gives equal bytes. FMUs are stored without compression.
func zipped(entries []file) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
		if strings.HasSuffix(e.name, ".fmu") {
			h.Method = zip.Store
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
