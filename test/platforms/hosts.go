//go:build linux

package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/description"
)

// coupling is a system that runs here while its FMUs, with a library for the other platform only, are on a host there.
type coupling struct {
	name string
	args []string
	// within is the largest difference from a local run with the library for this platform, relative to the largest
	// value of a column, which is due to the compilers: a run of the FMUs there, without a host, gives the bytes of the
	// run on the host. 0 = none: the tables are equal to the byte.
	within float64
	// Of third-party FMUs: their paths in the folder of -real, and lines "component.output component.input". Unconnected
	// Real inputs are sines.
	fmus  []string
	lines []string
}

// couplings are the systems. Our FMUs come from two compilers, which contract no operations; of the third-party ones,
// exporters have built both libraries.
func couplings() []coupling {
	return []coupling{
		{name: "quarter-car-a", args: []string{"--stop-time", "1"}},
		{name: "two-mass-ff", args: []string{"--algorithm", "implicit"}},
		{name: "two-mass-fd", args: []string{"--param", "order=3"}},
		{name: "spring pendulum (Dymola)", fmus: []string{"fmus/dymola/SpringPendulumExtForce1D.fmu"},
			within: 1e-11}, // its solver, with a tolerance of 1e-4, enlarges a difference of the last bit
		{name: "speed control (Dymola)", fmus: []string{"fmus/dymola/Controller.fmu", "fmus/dymola/Drivetrain.fmu"},
			lines: []string{"Controller.y Drivetrain.tau", "Drivetrain.w Controller.u_m"}},
		{name: "dampers, implicit (20-sim)", fmus: []string{"fmus/20sim/MassSpringDamper1.fmu", "fmus/20sim/MassSpringDamper2.fmu"},
			lines: []string{"MassSpringDamper1.x1 MassSpringDamper2.x1", "MassSpringDamper1.v1 MassSpringDamper2.v1",
				"MassSpringDamper2.fk MassSpringDamper1.fk"}, args: []string{"--algorithm", "implicit"}},
		{name: "once per process (Simulink)", fmus: []string{"fmus/simulink/StateInitExample.fmu"}},
		{name: "ball", fmus: []string{"fmus/testfmus/BouncingBall.fmu"}},
		{name: "chassis", fmus: []string{"systems/libcosim/quarter_truck/Chassis.fmu"}},
		{name: "mass of a drive (Dymola)", fmus: []string{"systems/omsimulator/dcmotor/resources/edrive_mass.fmu"},
			within: 1e-14},
	}
}

// hosted runs the couplings with a host there and returns the number of failures. Without a folder real, third-party FMUs
// are left out.
func hosted(here, there *bench, real string) (failed int, err error) {
	foreign := filepath.Join(here.dir, "hosted")
	offer := filepath.Join(there.dir, "offer")
	if err := os.MkdirAll(offer, 0o755); err != nil {
		return 0, err
	}
	var cases []coupling
	for _, c := range couplings() {
		if len(c.fmus) > 0 && real == "" {
			continue
		}
		if len(c.fmus) > 0 {
			err = c.write(real, filepath.Join(here.dir, c.name))
		} else {
			// The FMUs of there have libraries for both platforms.
			err = os.CopyFS(filepath.Join(foreign, c.name), os.DirFS(filepath.Join(there.dir, c.name)))
		}
		if err == nil && len(c.fmus) > 0 {
			err = os.CopyFS(filepath.Join(foreign, c.name), os.DirFS(filepath.Join(here.dir, c.name)))
		}
		if err == nil {
			err = there.strip(filepath.Join(foreign, c.name, "resources"), offer)
		}
		if err != nil {
			return 0, err
		}
		cases = append(cases, c)
	}
	if real == "" {
		fmt.Printf("%s: hosts: third-party FMUs NOT TRIED; absent: -real\n", there.name())
	}
	ticket, end, err := there.host(offer)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end()) }()
	for _, c := range cases {
		begun := time.Now()
		say, err := c.try(here, there, ticket)
		if err != nil {
			return failed, err
		}
		if say.fault != "" {
			failed++
			fmt.Printf("%s: on a host: %s: FAILED: %s\n", there.name(), c.name, say.fault)
			continue
		}
		fmt.Printf("%s: on a host: %s: right, %s (%.1f s)\n", there.name(), c.name, say.how, time.Since(begun).Seconds())
	}
	return failed, nil
}

// outcome says how a coupling went; fault is "" if it is right.
type outcome struct{ how, fault string }

// try compares a run on a host with a local one.
func (c *coupling) try(here, there *bench, ticket string) (o outcome, err error) {
	up, err := filepath.Rel(there.dir, here.dir)
	run := func(b *bench, kind, system string, more ...string) (r *result) {
		if err == nil {
			to := "{}"
			if b == there {
				to += "/" + up
			}
			args := append([]string{"run", to + "/" + system}, c.args...)
			if len(c.fmus) > 0 {
				args = append(args, "--input", to+"/"+c.name+"/input.csv")
			}
			r, err = b.run(filepath.Join("hosted", c.name, kind), append(args, more...)...)
		}
		return r
	}
	want := run(here, "local", c.name)
	alone := run(here, "alone", filepath.Join("hosted", c.name))
	got := run(here, "host", filepath.Join("hosted", c.name), "--on", "*="+ticket)
	same := got
	if c.within > 0 {
		same = run(there, "same", filepath.Join("hosted", c.name))
	}
	if err != nil {
		return o, err
	}
	rows, d, tables := difference(want.csv, got.csv)
	o.how = fmt.Sprintf("%d rows, largest difference %.2g", rows, d)
	switch {
	case want.code != 0:
		o.fault = "it fails here, too\n" + want.output
	case alone.code != 2 || !strings.Contains(alone.output, "the FMU has libraries for") || !strings.Contains(alone.output, "=HOST"):
		o.fault = "without --on the run does not propose it\n" + alone.output
	case got.code != 0:
		o.fault = fmt.Sprintf("exit code %d\n%s", got.code, got.output)
	case tables != nil:
		o.fault = tables.Error()
	case !(d <= c.within) || c.within == 0 && got.csv != want.csv:
		o.fault = fmt.Sprintf("the difference is %.2g, above %g", d, c.within)
	case same.csv != got.csv:
		o.fault = "the run on the host is not that without a host there\n" + same.output
	}
	return o, nil
}

// strip leaves only the library of the platform in the FMUs of a folder, and copies them to another.
func (b *bench) strip(dir, offer string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.fmu"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		err := rewrite(path, func(name string) bool {
			return !strings.HasSuffix(name, "/") && !strings.HasPrefix(name, "sources/") && (!strings.HasPrefix(name, "binaries/") || strings.HasPrefix(name, "binaries/"+b.folder+"/"))
		})
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(offer, filepath.Base(path)), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// rewrite keeps some entries of an archive.
func rewrite(path string, keep func(name string) bool) error {
	old, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer old.Close()
	out, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	z := zip.NewWriter(out)
	for _, f := range old.File {
		if err == nil && keep(f.Name) {
			err = z.Copy(f)
		}
	}
	if err := errors.Join(err, z.Close(), out.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// write creates the folder of a system of third-party FMUs, with a table of its inputs. Components are called like their
// FMUs.
func (c *coupling) write(real, dir string) error {
	resources := filepath.Join(dir, "resources")
	if err := os.MkdirAll(resources, 0o755); err != nil {
		return err
	}
	const element = `<ssd:Component name=%q source="resources/%s.fmu"><ssd:Connectors>%s</ssd:Connectors></ssd:Component>`
	var elements, lines strings.Builder
	var free []string
	for _, path := range c.fmus {
		name := strings.TrimSuffix(filepath.Base(path), ".fmu")
		data, err := os.ReadFile(filepath.Join(real, path))
		if err != nil {
			return err
		}
		copied := filepath.Join(resources, name+".fmu")
		if err := os.WriteFile(copied, data, 0o644); err != nil {
			return err
		}
		f, _, err := fmi.Open(copied, fmi.OpenOptions{})
		if err != nil {
			return err
		}
		var connectors strings.Builder
		for k := range f.Description.Variables {
			v := &f.Description.Variables[k]
			kind := map[description.Causality]string{description.Input: "input", description.Output: "output"}[v.Causality]
			if kind == "" || v.Type != description.Real {
				continue
			}
			fmt.Fprintf(&connectors, `<ssd:Connector name=%q kind=%q><ssc:Real/></ssd:Connector>`, v.Name, kind)
			if kind == "input" && !strings.Contains(strings.Join(c.lines, "\n")+"\n", " "+name+"."+v.Name+"\n") {
				free = append(free, name+"."+v.Name)
			}
		}
		fmt.Fprintf(&elements, element, name, name, connectors.String())
		if err := f.Close(); err != nil {
			return err
		}
	}
	for _, line := range c.lines {
		from, to, _ := strings.Cut(line, " ")
		a, out, _ := strings.Cut(from, ".")
		b, in, _ := strings.Cut(to, ".")
		fmt.Fprintf(&lines, `<ssd:Connection startElement=%q startConnector=%q endElement=%q endConnector=%q/>`, a, out, b, in)
	}
	if lines.Len() > 0 {
		lines.WriteString("</ssd:Connections>")
	}
	connections := strings.Replace(lines.String(), "<", "<ssd:Connections><", 1)
	document := `<?xml version="1.0" encoding="UTF-8"?>
<ssd:SystemStructureDescription version="1.0" name="system"
    xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon">
  <ssd:System name="system"><ssd:Elements>` + elements.String() + `</ssd:Elements>` + connections + `</ssd:System>
  <ssd:DefaultExperiment startTime="0" stopTime="2"/>
</ssd:SystemStructureDescription>
`
	table := "time," + strings.Join(free, ",") + "\n"
	if len(free) == 0 {
		table = "time\n"
	}
	for k := range 201 {
		t := float64(k) / 100
		table += fmt.Sprint(t)
		for i := range free {
			table += fmt.Sprintf(",%.17g", math.Sin(float64(3+i)*t))
		}
		table += "\n"
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "SystemStructure.ssd"), []byte(document), 0o644),
		os.WriteFile(filepath.Join(dir, "input.csv"), []byte(table), 0o644))
}

// host starts a host there that offers the FMUs of a folder, and returns the path of its ticket on this platform.
func (b *bench) host(offer string) (ticket string, end func() error, err error) {
	said, err := os.Create(filepath.Join(b.dir, "host.txt"))
	if err != nil {
		return "", nil, err
	}
	defer said.Close()
	folder, err := filepath.Rel(b.dir, offer)
	if err != nil {
		return "", nil, err
	}
	words := b.start(b.program(), []string{"host", folder, "--listen", "127.0.0.1:0"})
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.dir, said, said // a file, as for runs
	cmd.Env = append(os.Environ(), b.env...)
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	// Wine passes no interrupt to a program without a console.
	end = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return err
	}
	for limit := time.Now().Add(deadline); ; time.Sleep(100 * time.Millisecond) {
		text, err := os.ReadFile(said.Name())
		if err != nil {
			return "", nil, errors.Join(err, end())
		}
		if strings.Contains(string(text), "ready: ") {
			_, rest, _ := strings.Cut(string(text), "ticket: ")
			line, _, _ := strings.Cut(rest, "\n")
			ticket = b.path(strings.TrimSpace(line))
			if err := os.Chmod(ticket, 0o600); err != nil { // Wine gives it the mode of all files
				return "", nil, errors.Join(err, end())
			}
			return ticket, end, nil
		}
		if time.Now().After(limit) {
			return "", nil, errors.Join(fmt.Errorf("the host is not ready: %s", text), end())
		}
	}
}

// path returns the path here of a file there.
func (b *bench) path(there string) string {
	if drive, rest, ok := strings.Cut(there, `:\`); ok && len(drive) == 1 {
		return filepath.Join(b.dir, "wine", "drive_"+strings.ToLower(drive), filepath.FromSlash(strings.ReplaceAll(rest, `\`, "/")))
	}
	return there
}
