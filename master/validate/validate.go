package validate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/macrostep/macrostep/fmi"
	"github.com/macrostep/macrostep/fmi/archive"
	"github.com/macrostep/macrostep/fmi/description"
	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/assemble"
	"github.com/macrostep/macrostep/master/workdir"
	"github.com/macrostep/macrostep/ssp"
	"github.com/macrostep/macrostep/ssp/dialect"
)

// Options are the options of a validation. The zero value is tolerant and executes no FMU code.
type Options struct {
	Strict  bool     // strict warnings are errors
	Disable []string // IDs of rules whose findings are left out
	// Dynamic tries each FMU in processes that Launcher starts.
	Dynamic bool
	// Launcher starts processes; nil = no component can be isolated, and Dynamic tries FMUs in
	// this process.
	Launcher fmi.Launcher
	// StepTimeout is the maximum time of a Pending step in a trial; 0 = no limit.
	StepTimeout time.Duration
	Cache       string // folder for measured properties of FMUs (fmuslave.CacheDir); "" = none
	// Strategy returns the algorithm of a system, for the rules on algorithms; nil = these are not
	// checked. It is called after Assembly.Override.
	Strategy func(*assemble.Assembly) assemble.Strategy
	// Assemble has further options for systems: Select, Columns and settings of the user.
	Assemble assemble.Options
	// Compile compiles the sources of FMUs without a library for trials.
	Compile bool
	// Step is the macro step of a trial in s; 0 = that of the FMU.
	Step float64

	copy *workdir.Copy // of the working folder, for trials
}

// Report is the result for one file.
type Report struct {
	File     string
	Kind     string         // "FMU", "system", "modelDescription", or the root element of another document
	Findings []diag.Finding // without those of disabled rules
	Disabled int            // number of findings left out
	// Stopped lists the rules that could not be checked because of errors; "" = none.
	Stopped string
	Took    time.Duration
}

// Count returns the number of findings of one level.
func (r *Report) Count(level diag.Level) int {
	n := 0
	for _, f := range r.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// File validates a file or folder. It returns an error if the file does not exist or is of an
// unknown kind. ctx interrupts trials.
func File(ctx context.Context, path string, o Options) (*Report, error) {
	begin := time.Now()
	for _, id := range o.Disable {
		if _, known := Find(id); !known {
			return nil, fmt.Errorf("there is no rule %s", id)
		}
	}
	if o.Assemble.Dialects == nil {
		o.Assemble.Dialects = dialect.All()
	}
	kind, err := kindOf(path, o.Assemble.Dialects)
	if err != nil {
		return nil, err
	}
	o.copy = &workdir.Copy{}
	defer func() { _ = o.copy.Remove() }() // the next program removes files that remain
	j := &judge{ctx: ctx, o: o, path: path, r: &Report{File: path, Kind: kind}, l: &diag.List{Strict: o.Strict}}
	switch kind {
	case kindFMU:
		err = j.fmu()
	case kindSystem:
		err = j.system()
	default:
		err = j.document()
	}
	if err != nil {
		return nil, err
	}
	j.r.Findings = j.finish()
	j.r.Took = time.Since(begin)
	return j.r, nil
}

// The kinds of files, in addition to the root elements of other documents.
const (
	kindFMU         = "FMU"
	kindSystem      = "system"
	kindDescription = "modelDescription"
	kindPart        = "SSP document"
)

// mostDocument is the maximum size of a document in bytes.
const mostDocument = 256 << 20

// kindOf returns the kind of a file or folder.
func kindOf(path string, dialects []ssp.Dialect) (string, error) {
	names, roots := []string{"SystemStructure.ssd"}, []string{"SystemStructureDescription"} // of system structures
	for _, d := range dialects {
		if d.Format != nil {
			names, roots = append(names, d.Format.File), append(roots, d.Format.Root)
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s: there is no such file", path)
	case err != nil:
		return "", err
	case info.IsDir():
		return kindOfFolder(path, names)
	case !info.Mode().IsRegular(): // opening a named pipe would block
		return "", fmt.Errorf("%s is neither a file nor a folder", path)
	}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".fmu":
		return kindFMU, nil
	case ".ssp", ".ssd":
		return kindSystem, nil
	case ".ssv", ".ssm", ".ssb":
		return kindPart, nil
	}
	return kindOfContent(path, roots)
}

// kindOfFolder returns the kind of a folder; names are those of system structures.
func kindOfFolder(path string, names []string) (string, error) {
	if assemble.IsFMU(path) {
		return kindFMU, nil
	}
	for _, pattern := range append([]string{"*.ssd"}, names...) {
		if found, _ := filepath.Glob(filepath.Join(path, pattern)); len(found) > 0 {
			return kindSystem, nil
		}
	}
	return "", fmt.Errorf("%s: the folder has neither modelDescription.xml nor %s; give a file in it",
		path, strings.Join(names, " nor "))
}

// kindOfContent returns the kind of a file by its content; roots are the root elements of system
// structures.
func kindOfContent(path string, roots []string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 4)
	if n, _ := io.ReadFull(f, head); n == 4 && bytes.Equal(head, []byte("PK\x03\x04")) {
		if a, err := archive.Open(path, nil, archive.Limits{}); err == nil {
			defer a.Close()
			if slices.Contains(a.Names(), "modelDescription.xml") {
				return kindFMU, nil
			}
		}
		return kindSystem, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	switch root := rootOf(f); {
	case root == "fmiModelDescription", root == "" && filepath.Base(path) == "modelDescription.xml":
		return kindDescription, nil
	case slices.Contains(roots, root):
		return kindSystem, nil
	case root == "ParameterSet", root == "ParameterMapping", root == "SignalDictionary":
		return kindPart, nil
	case root != "":
		return "", fmt.Errorf("%s: there are no rules for a document with the root element %s", path, root)
	}
	return "", fmt.Errorf("%s is not an FMU, an SSP or an XML document", path)
}

// rootOf returns the name of the root element of an XML document, "" if it is none.
func rootOf(r io.Reader) string {
	d := xml.NewDecoder(r)
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		t, err := d.RawToken()
		if err != nil {
			return ""
		}
		switch t := t.(type) {
		case xml.StartElement:
			return t.Name.Local
		case xml.CharData:
			if len(bytes.TrimSpace(bytes.TrimPrefix(t, []byte("\ufeff")))) > 0 {
				return ""
			}
		}
	}
}

// judge validates one file.
type judge struct {
	ctx  context.Context
	o    Options
	path string
	r    *Report
	l    *diag.List
}

// finish returns the findings at the requested levels.
func (j *judge) finish() []diag.Finding {
	rules := map[string]*diag.Rule{}
	for _, r := range Rules() {
		rules[r.ID] = r
	}
	out := []diag.Finding{}
	seen := map[diag.Finding]bool{}
	defer func() { group(out) }()
	for _, f := range j.l.Findings {
		if r := rules[f.ID]; r != nil { // some packages do not know Options.Strict
			if f.Inert {
				f.Level = r.Level
			}
			if j.o.Strict && r.Strict {
				f.Level = diag.Error
			}
		}
		if f.File == "" {
			f.File = j.path
		}
		switch {
		case slices.ContainsFunc(j.o.Disable, func(id string) bool { return strings.EqualFold(id, f.ID) }):
			j.r.Disabled++
		case !seen[f]:
			seen[f] = true
			out = append(out, f)
		}
	}
	return out
}

// group sorts findings by document, in the order of their first findings, and by line.
func group(list []diag.Finding) {
	first := map[string]int{}
	for i, f := range list {
		if _, seen := first[f.File]; !seen {
			first[f.File] = i
		}
	}
	slices.SortStableFunc(list, func(a, b diag.Finding) int {
		return cmp.Or(first[a.File]-first[b.File], a.Line-b.Line)
	})
}

// fmu validates an FMU.
func (j *judge) fmu() error {
	abs, err := filepath.Abs(j.path)
	if err != nil {
		return err
	}
	asGiven := func(list []diag.Finding) []diag.Finding {
		for i := range list {
			if rest, ok := strings.CutPrefix(list[i].File, abs); ok {
				list[i].File = j.path + rest
			}
		}
		return list
	}
	f, l, err := fmi.Open(j.path, fmi.OpenOptions{Strict: j.o.Strict, Compile: j.o.Compile})
	j.l.Findings = append(j.l.Findings, asGiven(l.Findings)...)
	if err != nil {
		return j.stop(err, "the rules on what follows from the description were not checked, nor those on the library")
	}
	defer f.Close()
	j.rest(f, false, asGiven)
	return nil
}

// stop handles an error that ends the validation of a file. If it consists of findings, stop sets
// Report.Stopped to left and returns nil.
func (j *judge) stop(err error, left string) error {
	var list *diag.ListError
	if !errors.As(err, &list) {
		return err
	}
	j.r.Stopped = left
	return nil
}

// rest checks the rules that opening an FMU does not check. If elsewhere is true, it runs on a host, and only trials need
// its library here.
func (j *judge) rest(f *fmi.FMU, elsewhere bool, shown func([]diag.Finding) []diag.Finding) {
	own := &diag.List{Strict: j.o.Strict}
	var failed error
	if _, onHost := j.o.Launcher.(fmi.Elsewhere); !onHost && (j.o.Dynamic || !elsewhere) {
		var located *diag.List
		if located, failed = f.Locate(); !j.o.Dynamic || failed != nil { // loading reports the same findings
			own.Findings = slices.Clone(located.Findings)
			f.CheckNames(own)
		}
	}
	if j.o.Dynamic && failed == nil {
		own.Append(try(j.ctx, f, j.o))
	}
	j.l.Findings = append(j.l.Findings, shown(own.Findings)...)
}

// system validates a system and its FMUs.
func (j *judge) system() error {
	o := j.o.Assemble
	o.Compile, o.Strict, o.Launcher, o.Cache = j.o.Compile, j.o.Strict, j.o.Launcher, j.o.Cache
	a, err := assemble.Open(j.path, o) // never nil
	defer func() { _ = a.Close() }()   // the next program removes files that remain
	j.l.Append(&a.Findings)
	for _, f := range a.FMUs() {
		j.rest(f, a.Elsewhere(f), func(list []diag.Finding) []diag.Finding { return a.Shown(f, list) })
		j.rollback(a, f)
	}
	if err != nil {
		var list *diag.ListError
		if errors.Is(err, assemble.ErrEmpty) {
			j.l.Add(ruleEmpty, j.path, "", 0, "%v", assemble.ErrEmpty)
			return nil
		}
		if !errors.As(err, &list) {
			j.l.Add(ruleSystem, j.path, "", 0, "%v", err)
		}
		j.r.Stopped = "the rules that need the whole system were not checked, since it cannot be put together"
		return nil
	}
	a.Override(nil, nil, nil, nil)
	var s assemble.Strategy
	if j.o.Strategy != nil {
		s = j.o.Strategy(a)
	}
	j.l.Append(a.Check(s))
	if j.o.Dynamic && j.l.Err() == nil {
		j.gains()
	}
	return nil
}

// rollback adds a finding for an FMU of a system whose trial of rollback failed.
func (j *judge) rollback(a *assemble.Assembly, f *fmi.FMU) {
	shown := a.Shown(f, []diag.Finding{{File: f.Path}})[0].File
	if !slices.ContainsFunc(j.l.Findings, func(found diag.Finding) bool {
		return found.ID == "DY4" && (found.File == shown || strings.HasPrefix(found.File, shown+string(filepath.Separator)))
	}) {
		return
	}
	var users []string
	for _, c := range a.Components {
		if c.FMU == f {
			users = append(users, c.Name)
		}
	}
	j.l.Add(ruleRollback, a.Root(), "", 0, "%s (%s) declares canGetAndSetFMUstate but does not restore its state",
		strings.Join(users, ", "), shown)
}

// document validates a single document.
func (j *judge) document() error {
	f, err := os.Open(j.path)
	if err != nil {
		return err
	}
	defer f.Close()
	switch j.r.Kind {
	case kindDescription:
		if _, err := description.Read(f, j.path, j.l); err != nil {
			return j.stop(err, "")
		}
	case kindPart:
		data, err := io.ReadAll(io.LimitReader(f, mostDocument+1))
		if err != nil {
			return err
		}
		if len(data) > mostDocument {
			return fmt.Errorf("%s is larger than %d MB", j.path, mostDocument>>20)
		}
		if root, known := ssp.CheckPart(data, j.path, j.l); known {
			j.r.Kind = root
		}
	}
	return nil
}
