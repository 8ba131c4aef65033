// Package cloop is a co-simulation loop in C (src/cloop.c), written from the text of FMI 2.0, that shares no code
// with the program under test. Tests compare its results with explicit coupling of order 0. The package also
// reads the parts of model descriptions that the loop needs.
package cloop

import (
	"archive/zip"
	"bytes"
	"cmp"
	_ "embed"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed src/cloop.c
var source string

// Program is the compiled loop.
type Program string

// Build compiles the loop in dir with $CC, else cc.
func Build(dir string) (Program, error) {
	cc := strings.Fields(cmp.Or(os.Getenv("CC"), "cc"))
	path := filepath.Join(dir, "cloop")
	if err := os.WriteFile(path+".c", []byte(source), 0o600); err != nil {
		return "", err
	}
	args := append(cc[1:len(cc):len(cc)], "-O1", "-Wall", "-Wextra", "-o", path, path+".c", "-ldl")
	if out, err := exec.Command(cc[0], args...).CombinedOutput(); err != nil || len(out) > 0 {
		return "", fmt.Errorf("%s: %v\n%s", strings.Join(cc, " "), err, out)
	}
	return Program(path), nil
}

// Variable is a variable of modelDescription.xml.
type Variable struct {
	Name        string `xml:"name,attr"`
	Reference   uint32 `xml:"valueReference,attr"`
	Causality   string `xml:"causality,attr"`
	Variability string `xml:"variability,attr"`
	Real        *typed `xml:"Real"`
	Integer     *typed `xml:"Integer"`
	Enumeration *typed `xml:"Enumeration"`
	Boolean     *typed `xml:"Boolean"`
	String      *typed `xml:"String"`
}

type typed struct {
	Start *string `xml:"start,attr"`
}

// kind returns the name of the type in the input of the loop, and the element of the type.
func (v *Variable) kind() (string, *typed) {
	switch {
	case v.Real != nil:
		return "real", v.Real
	case v.Integer != nil:
		return "integer", v.Integer
	case v.Enumeration != nil:
		return "integer", v.Enumeration
	case v.Boolean != nil:
		return "boolean", v.Boolean
	}
	return "string", v.String
}

// set returns the line of the input that sets a value.
func (v *Variable) set(value string) string {
	kind, _ := v.kind()
	switch value {
	case "true":
		value = "1"
	case "false":
		value = "0"
	}
	return fmt.Sprintf("%s %d %s", kind, v.Reference, value)
}

// FMU is an unpacked FMU.
type FMU struct {
	GUID      string     `xml:"guid,attr"`
	Variables []Variable `xml:"ModelVariables>ScalarVariable"`
	CS        struct {
		Identifier string `xml:"modelIdentifier,attr"`
		Once       bool   `xml:"canBeInstantiatedOnlyOncePerProcess,attr"`
	} `xml:"CoSimulation"`

	dir, library string
}

// Unpack unpacks an FMU into dir and reads its description.
func Unpack(path, dir string) (*FMU, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, err
	}
	defer z.Close()
	for _, f := range z.File {
		to := filepath.Join(dir, filepath.FromSlash(f.Name))
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return nil, err
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(to, data, 0o700); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(filepath.Join(dir, "modelDescription.xml"))
	if err != nil {
		return nil, err
	}
	u := &FMU{dir: dir}
	d := xml.NewDecoder(bytes.NewReader(data))
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // names are ASCII
	if err := d.Decode(u); err != nil {
		return nil, err
	}
	folder := filepath.Join(dir, "binaries", "linux64")
	u.library = filepath.Join(folder, u.CS.Identifier+".so")
	if _, err := os.Stat(u.library); err != nil { // some are named after the file
		found, _ := filepath.Glob(filepath.Join(folder, "*.so"))
		if len(found) != 1 {
			return nil, fmt.Errorf("%s: no library of the name %s", path, u.CS.Identifier)
		}
		u.library = found[0]
	}
	return u, os.MkdirAll(filepath.Join(dir, "resources"), 0o700)
}

func (u *FMU) find(name string) (*Variable, error) {
	for k := range u.Variables {
		if u.Variables[k].Name == name {
			return &u.Variables[k], nil
		}
	}
	return nil, fmt.Errorf("%s: no variable %q", u.dir, name)
}

// outputs returns the variables to compare: all outputs except Strings; of an FMU without outputs, the
// continuous Reals without aliases.
func (u *FMU) outputs() (list []*Variable) {
	seen := map[uint32]bool{}
	for _, causality := range []string{"output", "local", ""} {
		for k := range u.Variables {
			v := &u.Variables[k]
			output := causality == "output" && v.String == nil
			local := v.Real != nil && (v.Variability == "" || v.Variability == "continuous") && !seen[v.Reference]
			if v.Causality == causality && (output || local) {
				seen[v.Reference] = v.Real != nil
				list = append(list, v)
			}
		}
		if len(list) > 0 {
			break
		}
	}
	return list
}

// Part is one component of a system.
type Part struct {
	Name string
	FMU  *FMU
	Set  map[string]string // parameters, before the initialisation mode
}

// Wire connects a Real output to an input, both "component.variable".
type Wire struct{ From, To string }

// Run takes steps of H in s from 0 and returns the outputs at each point, by "component.variable". With starts, it
// sets all inputs to their documented start values in the initialisation mode, without only connected ones.
func (p Program) Run(parts []Part, wires []Wire, starts bool, H float64, steps int) (map[string][]float64, error) {
	var in strings.Builder
	list := func(head string, lines []string) {
		fmt.Fprintf(&in, "%s %d\n", head, len(lines))
		for _, l := range lines {
			fmt.Fprintln(&in, l)
		}
	}
	fmt.Fprintf(&in, "steps %d %x\ninstances %d\n", steps, H, len(parts))
	place := map[string]string{} // of a variable, in the form of a wire
	var columns []string
	for i, part := range parts {
		u := part.FMU
		fmt.Fprintf(&in, "%s\n%s\nfile://%s\n%s\n", u.library, u.GUID, filepath.Join(u.dir, "resources"), part.Name)
		var before, after, outputs []string
		for name, value := range part.Set {
			v, err := u.find(name)
			if err != nil {
				return nil, err
			}
			before = append(before, v.set(value))
		}
		for k := range u.Variables {
			v := &u.Variables[k]
			if v.Causality != "input" {
				continue
			}
			place[part.Name+"."+v.Name] = fmt.Sprintf("%d %d", i, v.Reference)
			if _, t := v.kind(); starts && t.Start != nil {
				after = append(after, v.set(*t.Start))
			}
		}
		for k, v := range u.outputs() {
			kind, _ := v.kind()
			outputs = append(outputs, fmt.Sprintf("%s %d", kind, v.Reference))
			place[part.Name+"."+v.Name] = fmt.Sprintf("%d %d", i, k)
			columns = append(columns, part.Name+"."+v.Name)
		}
		list("before", before)
		list("after", after)
		list("outputs", outputs)
	}
	var lines []string
	for _, w := range wires {
		to, from := place[w.To], place[w.From]
		if to == "" || from == "" {
			return nil, fmt.Errorf("no wire from %s to %s", w.From, w.To)
		}
		lines = append(lines, to+" "+from)
	}
	list("wires", lines)
	cmd := exec.Command(string(p))
	cmd.Stdin = strings.NewReader(in.String())
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%v: %s", err, &problems)
	}
	table := map[string][]float64{}
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		if len(fields) != 1+len(columns) || fields[0] != "point" {
			continue // printed by an FMU
		}
		for k, f := range fields[1:] {
			x, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return nil, fmt.Errorf("%q is no number", f)
			}
			table[columns[k]] = append(table[columns[k]], x)
		}
	}
	return table, nil
}
