// Package csrc compiles C sources of FMUs and holds the C interface of FMI 2.0
// that they are compiled with.
package csrc

import (
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

// standardHeaders are the names that sources written for the headers of the
// standard include. The standard lets FMUs leave these out.
var standardHeaders = []string{"fmi2TypesPlatform.h", "fmi2FunctionTypes.h", "fmi2Functions.h"}

// WriteHeaders puts the headers into a folder: fmi2.h, and those of the standard,
// which lead to it.
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

// Compiler finds the C compiler: $CC (with arguments, if it holds some), else
// the first of cc, gcc and clang on the path. The error says what to install.
func Compiler() ([]string, error) {
	if cc := strings.Fields(os.Getenv("CC")); len(cc) > 0 {
		if _, err := exec.LookPath(cc[0]); err != nil {
			return nil, fmt.Errorf("the C compiler named by CC, %q, cannot be run: %w; set CC to one that is installed or unset it", cc[0], err)
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

// Extension ends the name of a shared library of this system.
func Extension() string {
	switch runtime.GOOS {
	case "windows":
		return ".dll"
	case "darwin":
		return ".dylib"
	}
	return ".so"
}

// Library makes the shared library out. The working folder is dir, so that no
// path of this machine gets into the library; args are the sources, relative to
// dir, and what else the compiler is told. The error holds its messages. The compiler
// and what it starts are ended when ctx ends, whose cause is the error then, and after
// ten minutes.
func Library(ctx context.Context, cc []string, dir, out string, args ...string) error {
	// Contraction into fused operations would make results depend on the machine.
	all := append(cc[1:len(cc):len(cc)], "-O2", "-ffp-contract=off", "-shared", "-o", out)
	switch runtime.GOOS {
	case "windows":
		all = append(all, "-static-libgcc")
	case "darwin":
		arch := map[string]string{"amd64": "x86_64"}[runtime.GOARCH]
		if arch == "" {
			arch = runtime.GOARCH
		}
		all = append(all, "-fPIC", "-arch", arch)
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

// limit bounds a compilation.
var limit = 10 * time.Minute
