//go:build linux

// Command platforms tests cross-built programs: linux/arm64 under qemu, windows/amd64 under Wine.
//
//	go run ./test/platforms                  both platforms, if the machine supports them
//	go run ./test/platforms linux/arm64
//	go run ./test/platforms --install        Debian, Ubuntu: install missing programs with apt-get
//	go run ./test/platforms --real DIR       also third-party FMUs with libraries for both, on a host
//
// Programs and FMUs are built here. Cross compilers build the FMUs from their sources, so that each has a library for
// this platform and one for the other. Both platforms run the same: the quarter car, names of the C library, input derivatives, rollback with
// fixed and variable steps, the logger, isolated FMUs that work, crash, exit and hang, a checkpoint and its resumption.
// Tables must agree to 1e-12 of the largest value of a column, with variable steps to 1e-9, because step sizes follow
// from differences of nearly equal numbers. Runs repeated on one platform must agree to the byte.
//
// Then macrostep host runs under Wine, and runs here use FMUs of it that have a library for Windows only (hosts.go). Their
// results are compared with runs of the library for this platform.
//
// Missing programs are listed and are no failure. The exit code is 1 if a test fails. The command needs Linux on amd64,
// Go and a C compiler.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	install := flag.Bool("install", false, "install missing programs with apt-get")
	work := flag.String("work", "", "folder for builds; default: a temporary one, which is removed")
	real := flag.String("real", "", "folder with third-party FMUs; default: none")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: platforms [flags] [linux/arm64] [windows/amd64]")
		flag.PrintDefaults()
	}
	flag.Parse()
	ok, err := run(*install, *work, *real, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "platforms:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(install bool, work, real string, names []string) (ok bool, err error) {
	if runtime.GOARCH != "amd64" {
		return false, errors.New("this machine is not amd64, for which the reference FMUs are built")
	}
	var chosen []*platform
	for _, p := range platforms() {
		if len(names) == 0 {
			chosen = append(chosen, p)
		}
		for _, name := range names {
			if name == p.name() {
				chosen = append(chosen, p)
			}
		}
	}
	if len(chosen) < len(names) || len(chosen) == 0 {
		return false, fmt.Errorf("%v: there are linux/arm64 and windows/amd64", names)
	}
	if work == "" {
		if work, err = os.MkdirTemp("", "platforms-"); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	}
	if work, err = filepath.Abs(work); err != nil {
		return false, err
	}
	var tried []*platform
	for _, p := range chosen {
		if install {
			if err := p.install(); err != nil {
				fmt.Printf("%s: %v\n", p.name(), err)
			}
		}
		if absent := p.absent(); len(absent) > 0 {
			fmt.Printf("%s: NOT TRIED; absent: %s\n", p.name(), strings.Join(absent, "; "))
			continue
		}
		tried = append(tried, p)
	}
	if len(tried) == 0 {
		return true, nil
	}
	here, err := newBench(filepath.Join(work, "here"), native(), nil) // the reference
	if err != nil {
		return false, err
	}
	var wg sync.WaitGroup
	failed, errs := make([]int, len(tried)), make([]error, len(tried))
	for i, p := range tried {
		wg.Go(func() {
			begun := time.Now()
			if failed[i], errs[i] = try(here, filepath.Join(work, p.goos+"-"+p.goarch), real, p); errs[i] != nil {
				errs[i] = fmt.Errorf("%s: %w", p.name(), errs[i])
				return
			}
			verdict := "all right"
			if failed[i] > 0 {
				verdict = fmt.Sprintf("%d FAILED", failed[i])
			}
			fmt.Printf("%s: %s, %v\n", p.name(), verdict, time.Since(begun).Round(time.Second))
		})
	}
	wg.Wait()
	return slices.Max(failed) == 0, errors.Join(errs...)
}

// try builds and runs everything on a platform and returns the number of failures.
func try(here *bench, dir, real string, p *platform) (failed int, err error) {
	there, err := newBench(dir, p, here)
	if p.finish != nil {
		defer func() { err = errors.Join(err, p.finish()) }()
	}
	if err != nil {
		return 0, err
	}
	failed, err = compare(here, there)
	if p.hosts && err == nil {
		more, failure := hosted(here, there, real)
		failed, err = failed+more, failure
	}
	return failed, err
}

// platform is an operating system and architecture, with the programs to build and run for it.
type platform struct {
	goos, goarch string
	folder       string   // of the library in an FMU
	extension    string   // of the library
	compiler     []string // with the options for a library
	needs        []need
	packages     []string // of Debian and Ubuntu with the needs
	isolates     bool     // FMUs can be isolated
	hosts        bool     // macrostep host is tried
	drive        string   // before paths of this machine
	// prepare sets up the emulation in a folder and sets start, isolates and env.
	prepare func(p *platform, dir string) error
	finish  func() error                                 // ends the processes of prepare; nil = there are none
	start   func(program string, args []string) []string // the command here that runs a program there
	env     []string
}

// need is a program or folder on this machine.
type need struct{ any []string } // alternative names

func (p *platform) name() string { return p.goos + "/" + p.goarch }

// absent lists the missing needs of a platform.
func (p *platform) absent() (names []string) {
	for _, n := range p.needs {
		if n.found() == "" {
			names = append(names, strings.Join(n.any, " or "))
		}
	}
	if len(names) > 0 {
		names = append(names, "to install: apt-get install "+strings.Join(p.packages, " "))
	}
	return names
}

func (n need) found() string {
	for _, name := range n.any {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return name
		}
	}
	return ""
}

// install installs missing packages with apt-get.
func (p *platform) install() error {
	if len(p.absent()) == 0 {
		return nil
	}
	for _, args := range [][]string{{"update", "-q"}, append([]string{"install", "-yq", "--no-install-recommends"}, p.packages...)} {
		cmd := exec.Command("apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w\n%s", args[0], err, lastLines(string(out), 5))
		}
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// options compile FMUs, as ours are compiled.
var options = []string{"-std=c99", "-fvisibility=hidden", "-O2", "-ffp-contract=off", "-shared"}

func native() *platform {
	return &platform{goos: runtime.GOOS, goarch: runtime.GOARCH, isolates: true,
		folder: "linux64", extension: ".so", compiler: append([]string{"cc", "-fPIC"}, options...),
		start: func(program string, args []string) []string { return append([]string{program}, args...) }}
}

func platforms() []*platform {
	const root = "/usr/aarch64-linux-gnu"
	arm := &platform{goos: "linux", goarch: "arm64", folder: "aarch64-linux", extension: ".so",
		compiler: append([]string{"aarch64-linux-gnu-gcc", "-fPIC"}, options...),
		needs:    []need{{[]string{"qemu-aarch64-static", "qemu-aarch64"}}, {[]string{"aarch64-linux-gnu-gcc"}}, {[]string{root}}},
		packages: []string{"qemu-user-static", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"},
		env:      []string{"QEMU_LD_PREFIX=" + root},
		prepare:  prepareQEMU,
	}
	windows := &platform{goos: "windows", goarch: "amd64", folder: "win64", extension: ".dll", isolates: true, hosts: true, drive: "Z:",
		compiler: append([]string{"x86_64-w64-mingw32-gcc", "-static-libgcc"}, options...),
		needs:    []need{{wines}, {[]string{"x86_64-w64-mingw32-gcc"}}},
		packages: []string{"wine64", "gcc-mingw-w64-x86-64"},
		prepare:  prepareWine,
	}
	return []*platform{arm, windows}
}

// binfmt is a script that makes the kernel run arm64 programs with qemu in a separate namespace, so that a program can
// start itself. Since Linux 6.7 each user namespace has its own list of formats. The long text matches an ELF header.
const binfmt = `mount -t binfmt_misc none /proc/sys/fs/binfmt_misc &&
echo ':macrostep-arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$0"':' > /proc/sys/fs/binfmt_misc/register &&
exec "$@"`

// prepareQEMU chooses how to run arm64 programs: by the kernel, possibly in a namespace, or by qemu alone, where they
// cannot start themselves.
func prepareQEMU(p *platform, dir string) error {
	qemu := p.needs[0].found()
	for _, start := range []func(string, []string) []string{
		func(program string, args []string) []string { return append([]string{program}, args...) },
		func(program string, args []string) []string {
			return append([]string{"unshare", "--mount", "--user", "--map-root-user", "sh", "-c", binfmt, qemu, program}, args...)
		},
	} {
		words := start(filepath.Join(dir, "macrostep"), []string{"version"})
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env = append(os.Environ(), p.env...)
		if cmd.Run() == nil {
			p.start, p.isolates = start, true
			return nil
		}
	}
	p.start = func(program string, args []string) []string { return append([]string{qemu, program}, args...) }
	return nil
}

// wines are the names of Wine.
var wines = []string{"wine64", "wine", "/usr/lib/wine/wine64"}

// prng is a library that the Go runtime needs and older versions of Wine lack.
const prng = `#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE p, SIZE_T n) { return SystemFunction036(p, (ULONG)n); }
`

// prepareWine creates a Wine prefix and starts a server for it.
func prepareWine(p *platform, dir string) error {
	wine := p.needs[0].found()
	prefix := filepath.Join(dir, "wine")
	p.env = []string{"WINEPREFIX=" + prefix, "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=", "DISPLAY="}
	p.start = func(program string, args []string) []string { return append([]string{wine, program + ".exe"}, args...) }
	// All runs share one server: a server started by a program ends some seconds after it, and the next
	// program may fail while connecting to it.
	server, err := exec.LookPath("wineserver")
	if err != nil {
		server = "/usr/lib/wine/wineserver"
	}
	serve := func(flag string) error {
		cmd := exec.Command(server, flag)
		cmd.Env = append(os.Environ(), p.env...)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s %s: %w", server, flag, err)
		}
		return nil
	}
	if err := os.MkdirAll(prefix, 0o700); err != nil {
		return err
	}
	if err := serve("-p"); err != nil {
		return err
	}
	p.finish = func() error { return serve("-k") }
	boot := exec.Command(wine, "wineboot", "-i")
	boot.Env = append(os.Environ(), p.env...)
	if err := boot.Run(); err != nil { // without pipes, which its services would keep open
		return fmt.Errorf("wineboot: %w", err)
	}
	dll := filepath.Join(prefix, "drive_c", "windows", "system32", "bcryptprimitives.dll")
	if _, err := os.Stat(dll); err == nil {
		return nil
	}
	source := filepath.Join(dir, "prng.c")
	if err := os.WriteFile(source, []byte(prng), 0o644); err != nil {
		return err
	}
	cc := exec.Command(p.compiler[0], "-shared", "-o", dll, source, "-ladvapi32")
	if out, err := cc.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", p.compiler[0], err, out)
	}
	return nil
}
