// Package csrc compiles C sources of FMUs with its own headers of FMI 2.0 and 3.0.
package csrc

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi/process"
)

// Header is fmi2.h, our own C interface of FMI 2.0.
//
//go:embed fmi2.h
var Header []byte

// Header3 is fmi3.h, our own C interface of FMI 3.0.
//
//go:embed fmi3.h
var Header3 []byte

// standardHeaders are the headers of the standard, which FMUs need not contain.
var standardHeaders = []string{"fmi2TypesPlatform.h", "fmi2FunctionTypes.h", "fmi2Functions.h"}

// WriteHeaders writes fmi2.h and the headers of the standard, which include it, into a folder.
func WriteHeaders(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "fmi2.h"), Header, 0o600); err != nil {
		return err
	}
	for _, name := range standardHeaders {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#include \"fmi2.h\"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Compiler returns the C compiler: $CC with its arguments, or the first of cc, gcc and clang on the
// path. The error names what to install.
func Compiler() ([]string, error) {
	if cc := strings.Fields(os.Getenv("CC")); len(cc) > 0 {
		if _, err := exec.LookPath(cc[0]); err != nil {
			return nil, fmt.Errorf("cannot run the C compiler %q of the variable CC: %w; "+
				"set CC to an installed compiler, or unset it", cc[0], err)
		}
		return cc, nil
	}
	for _, name := range []string{"cc", "gcc", "clang"} {
		if _, err := exec.LookPath(name); err == nil {
			return []string{name}, nil
		}
	}
	return nil, errors.New("there is no C compiler: neither cc, gcc nor clang is on the path; install one " +
		"(Debian, Ubuntu: apt install gcc libc6-dev; Fedora: dnf install gcc; macOS: xcode-select --install; " +
		"Windows: MinGW-w64) or set CC to the path of yours")
}

// Extension returns the suffix of shared libraries.
func Extension() string {
	switch runtime.GOOS {
	case "windows":
		return ".dll"
	case "darwin":
		return ".dylib"
	}
	return ".so"
}

// Library compiles the shared library out. args are source files, relative to the working directory
// dir, and compiler options. Thus no path of this machine gets into the library. The error
// includes the messages of the compiler. The compiler and its child processes are ended after ten
// minutes or when ctx ends; the error is then the cause of ctx.
func Library(ctx context.Context, cc []string, dir, out string, args ...string) error {
	// With fused operations results would depend on the machine.
	all := append(cc[1:len(cc):len(cc)], "-O2", "-ffp-contract=off", "-shared", "-o", out)
	switch runtime.GOOS {
	case "windows":
		all = append(all, "-static-libgcc")
	case "darwin":
		all = append(all, "-fPIC", "-arch", cmp.Or(map[string]string{"amd64": "x86_64"}[runtime.GOARCH], runtime.GOARCH))
	default:
		all = append(all, "-fPIC", "-Wl,--build-id=none")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not end within %v", limit))
	defer cancel()
	cmd := exec.Command(cc[0], append(append(all, args...), "-lm")...)
	cmd.Dir = dir
	text, err := process.Output(ctx, cmd)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return fmt.Errorf("the C compiler was ended: %w\n%s", cause, strings.Join(cmd.Args, " "))
	}
	if err != nil {
		return fmt.Errorf("the C compiler failed: %w\n%s\n%s", err, strings.Join(cmd.Args, " "), text)
	}
	return nil
}

// limit is the longest time of a compilation.
var limit = 10 * time.Minute
