package fmus

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/xml"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/csrc"
)

//go:embed systems
var documents embed.FS

// Systems returns the names of the example systems:
//
//   - quarter-car-a, quarter-car-b: the quarter car of sadjina section IV in the
//     reticulations (20) and (21); components chassis and wheel, 4 s in steps of
//     1 ms, parameters of Table II.
//   - two-mass-ff, two-mass-fd, two-mass-dd: the two-mass oscillator of schweizer
//     in force/force, force/displacement and displacement/displacement
//     decomposition; components mass1, mass2 and, but in dd, coupling; 0.5 s in
//     steps of 1 ms, parameters of section 3.2, released from x = 1 m of mass 1.
//   - contact-oscillator: the nonlinear two-mass oscillator of meyer 6.1, whose
//     first mass meets a contact; components left, right and coupling; 0.2 s, with
//     the paper's parameters and its settings of the control of order and step.
//   - energy-oscillator: the double linear oscillator of rodriguez 3.3; components
//     left, with the coupling element, and right; 10 kJ at the start, which explicit
//     coupling nearly doubles in the 10 s. energy-star-3 and energy-star-5 divide
//     left unevenly into left1, left2, … (4.1); bonds spring1, spring2, …
//   - sqrt-oscillator, quadratic-oscillator: the same with square-root springs, and
//     with quadratic dampers (4.2).
//   - pendula: the coupled pendula of rodriguez 4.3; components left and right, a
//     bond of two pairs; explicit coupling adds a fifth of the energy in 10 s.
//   - crane: the hydraulic crane of rodriguez 4.4; components mechanics and
//     hydraulics, which makes 10 micro steps per macro step; 10 s of the manoeuvre
//     (33).
//
// Systems after sadjina and rodriguez declare their power bonds. Macro steps are
// 1 ms. The tables of rodriguez are not published: parameters are chosen
// so that the systems behave as in the text, see package exact.
//
// WriteChain writes the oscillator chain of meyer 6.2 in any size.
func Systems() []string {
	return []string{"quarter-car-a", "quarter-car-b", "two-mass-ff", "two-mass-fd", "two-mass-dd",
		"contact-oscillator",
		"energy-oscillator", "energy-star-3", "energy-star-5", "sqrt-oscillator", "quadratic-oscillator", "pendula", "crane",
		"corrector-oscillator", "corrector-oscillator-blackbox"}
}

// SystemDocument returns SystemStructure.ssd of an example system.
func SystemDocument(name string) ([]byte, error) {
	for _, s := range Systems() {
		if s == name {
			return documents.ReadFile("systems/" + name + ".ssd")
		}
	}
	return nil, fmt.Errorf("no example system is called %q; choose one of %v", name, Systems())
}

// Summary returns the description of an example system in one line.
func Summary(name string) string {
	document, err := SystemDocument(name)
	if err != nil {
		return ""
	}
	var root struct {
		Description string `xml:"description,attr"`
	}
	if xml.Unmarshal(document, &root) != nil {
		return ""
	}
	return root.Description
}

// WriteSystem builds the FMUs of an example system and writes dir/name.ssp,
// replacing an existing file. Errors are those of Build.
func WriteSystem(dir, name string) (path string, err error) {
	err = WriteSystems(context.Background(), dir, []string{name}, func(written string) { path = written })
	return path, err
}

// WriteSystems is WriteSystem for several systems, built side by side on all processors. It builds each FMU once, and
// calls written for each system when it is complete, one call at a time. When ctx ends, no further FMU is built.
func WriteSystems(ctx context.Context, dir string, names []string, written func(path string)) error {
	documents := make([][]byte, len(names))
	for i, name := range names {
		var err error
		if documents[i], err = SystemDocument(name); err != nil {
			return err
		}
	}
	if _, err := csrc.Compiler(); err != nil {
		return err // once, not for each system
	}
	b := newBuilder(ctx)
	errs := make([]error, len(names))
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			path, err := b.writePackage(dir, name, documents[i])
			if errs[i] = err; err == nil {
				mu.Lock()
				written(path)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// builder builds FMUs, each once, as many at a time as there are processors.
type builder struct {
	ctx  context.Context
	free chan struct{}
	mu   sync.Mutex
	fmus map[string]func() ([]byte, error) // by name
}

func newBuilder(ctx context.Context) *builder {
	return &builder{ctx: ctx, free: make(chan struct{}, runtime.GOMAXPROCS(0)), fmus: map[string]func() ([]byte, error){}}
}

// fmu returns the FMU of a name.
func (b *builder) fmu(name string) ([]byte, error) {
	b.mu.Lock()
	build := b.fmus[name]
	if build == nil {
		build = sync.OnceValues(func() ([]byte, error) {
			b.free <- struct{}{}
			defer func() { <-b.free }()
			if b.ctx.Err() != nil {
				return nil, context.Cause(b.ctx)
			}
			cc, err := csrc.Compiler()
			if err != nil {
				return nil, err
			}
			m, err := find(name)
			if err != nil {
				return nil, err
			}
			return m.build(cc)
		})
		b.fmus[name] = build
	}
	b.mu.Unlock()
	return build()
}

// writePackage writes dir/name.ssp with a document and the FMUs that it uses.
func (b *builder) writePackage(dir, name string, document []byte) (path string, err error) {
	needed, err := components(document)
	if err != nil {
		return "", fmt.Errorf("writing %s.ssp: %w", name, err)
	}
	entries := make([]file, 1+len(needed))
	entries[0] = file{"SystemStructure.ssd", document}
	errs := make([]error, len(needed))
	var wg sync.WaitGroup
	for i, fmu := range needed {
		wg.Go(func() {
			entries[1+i].name = "resources/" + fmu + ".fmu"
			entries[1+i].data, errs[i] = b.fmu(fmu)
		})
	}
	wg.Wait()
	if err := cmp.Or(errs...); err != nil { // the first: without a compiler all are the same
		return "", fmt.Errorf("writing %s.ssp: %w", name, err)
	}
	data, err := zipped(entries)
	if err != nil {
		return "", fmt.Errorf("writing %s.ssp: %w", name, err)
	}
	path = filepath.Join(dir, name+".ssp")
	return path, archive.WriteFile(path, data)
}

// components returns the names of the FMUs that a document uses, each once.
func components(document []byte) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	d := xml.NewDecoder(bytes.NewReader(document))
	for {
		t, err := d.RawToken()
		if t == nil {
			if len(names) == 0 {
				return nil, fmt.Errorf("the document names no FMU: %w", err)
			}
			return names, nil
		}
		e, ok := t.(xml.StartElement)
		if !ok || e.Name.Local != "Component" {
			continue
		}
		for _, a := range e.Attr {
			name := strings.TrimSuffix(strings.TrimPrefix(a.Value, "resources/"), ".fmu")
			if a.Name.Local == "source" && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
}
