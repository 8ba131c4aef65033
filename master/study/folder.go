package study

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master/record"
)

// Folder is where a study lives: its plan with all files that its runs read, its design, and its rows.
// Nothing outside of it is needed to go on with the study, or to run it elsewhere.
//
//	study.json     the plan's place in files
//	files/         the plan, the system and what else runs read
//	variants.csv   the design: a row for each run, written before the first
//	results.csv    a row for each run that is done, in the order of their ends; when all are done, in that of the design
//	results.parquet, summary.json, report.html
//	               the same table with typed columns, what the rows say together, and a page of both
//	runs/          tables and manifests of the runs that are kept
type Folder struct {
	Path string
	Plan *Plan

	file   *os.File // results.csv
	size   int64    // of its whole rows
	torn   bool     // it has a part of a row behind them
	held   *os.File // locked
	rows   []Row
	places map[int]int           // of the rows, by run
	due    atomic.Bool           // the rows will be synced
	next   *time.Timer           // syncs them
	syncs  sync.WaitGroup        // are due or under way
	lost   atomic.Pointer[error] // of syncing them
}

// syncEvery is the time after which rows survive a crash of the machine. Syncing each row would be the larger part of a
// short run.
var syncEvery = time.Second

var syncFile = (*os.File).Sync // tests observe it

// Names in a folder.
const (
	folderIndex  = "study.json"
	folderFiles  = "files"
	folderRuns   = "runs"
	folderLock   = "lock"
	VariantsFile = "variants.csv"
	ResultsFile  = "results.csv"
	PageFile     = "report.html" // written by package page
	TicketFile   = "join.json"   // what workers on other machines join with, while the study runs
	KeysFile     = "keys.json"   // the other side of it
	Incoming     = "incoming"    // what workers are sending
)

// folderNames are the names of all that a study writes into its folder, but for the lock.
var folderNames = []string{folderIndex, folderFiles, folderRuns, VariantsFile, ResultsFile, ReportFile, ParquetFile, PageFile, TicketFile, KeysFile, Incoming}

// index is study.json.
type index struct {
	Plan string `json:"plan"` // path of the plan below files
	Root string `json:"root"` // folder that files is a copy of
	// Step is the macro step in s of the system, Units and Starts are as in Inspection.
	Step   float64           `json:"step"`
	Units  map[string]string `json:"units,omitempty"`
	Starts map[string]string `json:"starts,omitempty"`
}

// Create makes a folder for a study: text is its plan at the path of p, and found what Inspect returns
// for it. The folder must neither hold a study nor files with the names of its own.
func Create(path string, p *Plan, text []byte, found *Inspection) (_ *Folder, err error) {
	if _, err := os.Stat(filepath.Join(path, folderIndex)); err == nil {
		return nil, fmt.Errorf("%s holds a study already; continue it with --resume, replace it with --force, or name another folder", path)
	}
	if err := claim(path); err != nil {
		return nil, err
	}
	plan, err := filepath.Abs(p.Path)
	if err != nil {
		return nil, err
	}
	root := filepath.Dir(plan)
	paths := make([]string, len(found.Files))
	for i, f := range found.Files {
		if paths[i], err = filepath.Abs(f); err != nil {
			return nil, err
		}
		for !within(root, paths[i]) {
			if root == filepath.Dir(root) {
				return nil, fmt.Errorf("%s and %s are on different volumes; put the files of a study on one", plan, paths[i])
			}
			root = filepath.Dir(root)
		}
	}
	for _, f := range paths {
		if err := copyFile(filepath.Join(path, folderFiles, relative(root, f)), f); err != nil {
			return nil, err
		}
	}
	i := index{filepath.ToSlash(relative(root, plan)), root, found.Step, found.Units, found.Starts}
	if err := writeFile(filepath.Join(path, folderFiles, relative(root, plan)), text); err != nil {
		return nil, err
	}
	if p.Optimise == nil && p.Convergence == nil {
		design, err := p.Variants()
		if err != nil {
			return nil, err
		}
		if err := writeFile(filepath.Join(path, VariantsFile), design.csv()); err != nil {
			return nil, err
		}
	}
	data, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(path, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			record.SyncFolder(path)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	record.SyncFolder(filepath.Dir(path))
	// Last: without it, the folder is no study.
	if err := writeFile(filepath.Join(path, folderIndex), append(data, '\n')); err != nil {
		return nil, err
	}
	return OpenFolder(path, ReadWrite)
}

// claim marks a folder as that of a study. It refuses a folder with files that the study would replace, unless
// they are those of a study whose folder was not completed.
func claim(path string) error {
	mark := filepath.Join(path, folderLock)
	if _, err := os.Stat(mark); err == nil {
		return nil
	}
	for _, name := range folderNames {
		if _, err := os.Lstat(filepath.Join(path, name)); err == nil {
			return fmt.Errorf("%s has %s, which is not of a study and would be replaced; name another folder", path, name)
		}
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return record.NotWritten(path, err)
	}
	file, err := os.OpenFile(mark, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return record.NotWritten(path, err)
	}
	return file.Close()
}

// Access is what the folder of a study is opened for.
type Access int

// The kinds of access.
const (
	ReadWrite Access = iota // by one process at a time
	ReadOnly                // of the plan; the rows are not read
)

// OpenFolder opens the folder of a study that has begun.
func OpenFolder(path string, a Access) (*Folder, error) {
	f := &Folder{Path: path, places: map[int]int{}}
	if err := f.read(); err != nil || a == ReadOnly {
		return f, err
	}
	return f, f.openRows()
}

// read reads the plan.
func (f *Folder) read() error {
	at := filepath.Join(f.Path, folderIndex)
	data, err := readFile(at)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s holds no study: there is no %s", f.Path, folderIndex)
	}
	if err != nil {
		return err
	}
	damaged := func(err error) error {
		return fmt.Errorf("%s: the file is damaged: %w; restore it, or make the study again in another folder (the rows so far are in %s)", at, err, ResultsFile)
	}
	var i index
	if err := json.Unmarshal(data, &i); err != nil {
		return damaged(err)
	}
	files, err := filepath.Abs(filepath.Join(f.Path, folderFiles))
	if err != nil {
		return err
	}
	if !filepath.IsLocal(filepath.FromSlash(i.Plan)) {
		return damaged(fmt.Errorf("the plan %q is not in the folder", i.Plan))
	}
	place := filepath.Join(files, filepath.FromSlash(i.Plan))
	text, err := readFile(place)
	if err != nil {
		return fmt.Errorf("the plan of the study in %s cannot be read: %w; restore it, or make the study again in another folder", f.Path, err)
	}
	f.Plan, err = Parse(place, text, func(path string) string {
		if within(i.Root, path) {
			return filepath.Join(files, relative(i.Root, path))
		}
		return path
	})
	if err != nil {
		return err
	}
	f.Plan.Units, f.Plan.Starts = i.Units, i.Starts
	if c := f.Plan.Convergence; c != nil && c.From == 0 {
		c.From = i.Step
	}
	return nil
}

// openRows locks the folder and reads the rows. It removes a last one that breaks off.
func (f *Folder) openRows() (err error) {
	if err := f.lock(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.held.Close())
		}
	}()
	design, err := f.design()
	if err != nil {
		return err
	}
	path := filepath.Join(f.Path, ResultsFile)
	if err := diag.Readable(path); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return record.NotWritten(path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	whole, err := f.readRows(path, data, design)
	if err != nil {
		return err
	}
	if err := file.Truncate(int64(whole)); err != nil {
		return err
	}
	f.file, f.size = file, int64(whole)
	f.sweep()
	if whole > 0 {
		return nil
	}
	if err := f.write(func(w io.Writer) error { return writeHeader(w, f.Plan) }); err != nil {
		return record.NotWritten(path, err)
	}
	record.SyncFolder(f.Path)
	return nil
}

// partial ends the name of a file that is not complete yet.
const partial = ".partial"

// sweep removes what a process left that was killed: files that are not complete, and kept tables of runs without a row, which are made
// again. At worst, there is a file more.
func (f *Folder) sweep() {
	for _, name := range folderNames {
		_ = os.Remove(filepath.Join(f.Path, name+partial))
	}
	runs := filepath.Join(f.Path, folderRuns)
	entries, _ := os.ReadDir(runs) // mostly, there is none
	for _, e := range entries {
		name, _, _ := strings.Cut(e.Name(), ".")
		id, err := strconv.Atoi(name)
		_, there := f.places[id]
		if strings.HasSuffix(e.Name(), partial) || err == nil && !there && (e.Name() == keptTable(id) || e.Name() == keptManifest(id)) {
			_ = os.Remove(filepath.Join(runs, e.Name()))
		}
	}
	record.Sweep(filepath.Join(runs, keptManifest(0))) // and all others there
}

// keptTable and keptManifest name the files of a run in the folder of those that are kept.
func keptTable(id int) string    { return strconv.Itoa(id) + ".csv" }
func keptManifest(id int) string { return strconv.Itoa(id) + ".json" }

// KeptFiles returns the names of the files of a run that is kept.
func KeptFiles(id int) []string { return []string{keptTable(id), keptManifest(id)} }

// byteOrderMark begins texts that some programs have saved.
const byteOrderMark = "\ufeff"

// readRows reads the rows in the content of the table, which must be those of the design unless that is nil. It returns the length of
// the table without a last row that breaks off.
func (f *Folder) readRows(path string, data []byte, design []Variant) (whole int, err error) {
	text := bytes.TrimPrefix(data, []byte(byteOrderMark))
	before := len(data) - len(text)
	if text = text[:bytes.LastIndexByte(text, '\n')+1]; len(text) == 0 {
		return 0, nil
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord = -1
	for first := true; ; first = false {
		at := int(r.InputOffset())
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		line := 1 + bytes.Count(text[:at], []byte("\n"))
		var broken *csv.ParseError
		switch {
		case first && (err != nil || !slices.Equal(record, f.Plan.Columns())):
			return 0, fmt.Errorf("%s:%d: the header is not that of this study; restore it, or remove the file, and all runs are made again", path, line)
		case first:
			continue
		case errors.As(err, &broken):
			if torn := text[at:]; int(r.InputOffset()) == len(text) && bytes.Count(torn, []byte("\n")) <= 1+mostLineEnds(design) { // in a quoted text
				return before + at, nil
			}
			err = broken.Err
		case err == nil:
			err = f.readRow(record, design)
		}
		if err != nil {
			return 0, fmt.Errorf("%s:%d: %w; restore the line, or remove it, and its run is made again", path, line, err)
		}
	}
	return before + len(text), nil
}

// mostLineEnds returns the number of line ends in the values of a variant.
func mostLineEnds(design []Variant) (most int) {
	for _, v := range design {
		n := 0
		for _, text := range v.Values {
			n += strings.Count(text, "\n")
		}
		most = max(most, n)
	}
	return most
}

// readRow takes a row of the table. Of several rows of a run, the last counts.
func (f *Folder) readRow(record []string, design []Variant) error {
	row, err := f.Plan.parseRow(record)
	if err != nil {
		return err
	}
	if design != nil {
		if row.ID >= len(design) {
			return fmt.Errorf("run %d is none of the design, which has %d runs", row.ID, len(design))
		}
		v := design[row.ID]
		for i, name := range f.Plan.FactorNames() {
			if want := lineEnds.Replace(v.Values[i]); row.Values[i] != want {
				return fmt.Errorf("run %d has %s = %s here, and %s in the design", row.ID, name, quoted(row.Values[i]), quoted(want))
			}
		}
		row.Variant = v
	}
	f.put(row)
	return nil
}

// lineEnds are read as such from a table.
var lineEnds = strings.NewReplacer("\r\n", "\n")

// put adds a row, or replaces that of the same run.
func (f *Folder) put(r Row) {
	i, there := f.places[r.ID]
	if !there {
		f.places[r.ID] = len(f.rows)
		f.rows = append(f.rows, r)
		return
	}
	f.rows[i] = r
}

// design returns the runs of the plan, which must be those of variants.csv; nil if they are chosen while the study goes on. It writes
// a file that is missing.
func (f *Folder) design() ([]Variant, error) {
	if f.Plan.Optimise != nil || f.Plan.Convergence != nil {
		return nil, nil
	}
	design, err := f.Plan.Variants()
	if err != nil {
		return nil, err
	}
	path, want := filepath.Join(f.Path, VariantsFile), design.csv()
	data, err := readFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return design.List, writeFile(path, want)
	}
	if err != nil || bytes.Equal(data, want) {
		return design.List, err
	}
	of, to := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte(byteOrderMark)))), csv.NewReader(bytes.NewReader(want))
	for {
		at := to.InputOffset()
		a, errA := of.Read()
		b, errB := to.Read()
		if errors.Is(errA, io.EOF) && errors.Is(errB, io.EOF) { // only saved in another way
			return design.List, nil
		}
		if errA != nil || errB != nil || !slices.Equal(a, b) {
			return nil, fmt.Errorf("%s:%d: from here on it is not the design of %s: one of the two was changed, or another version of macrostep made it; "+
				"restore them, or remove %s to go on with the design of the plan", path, 1+bytes.Count(want[:at], []byte("\n")), f.Plan.Path, VariantsFile)
		}
	}
}

// readFile reads a file that is one, and not a pipe.
func readFile(path string) ([]byte, error) {
	if err := diag.Readable(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func writeHeader(to io.Writer, p *Plan) error {
	w := csv.NewWriter(to)
	if err := w.Write(p.Columns()); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// write appends to the table with a single write, so that no line is torn when the process ends. What a full disk takes only in part
// is removed again, so that the table ends with a whole row.
func (f *Folder) write(fill func(io.Writer) error) error {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	if f.torn { // before, not even that was possible
		if err := f.file.Truncate(f.size); err != nil {
			return err
		}
	}
	n, err := f.file.WriteAt(b.Bytes(), f.size)
	if err == nil {
		f.size, f.torn = f.size+int64(n), false
		return nil
	}
	f.torn = f.file.Truncate(f.size) != nil
	return err
}

// Rows returns the rows so far.
func (f *Folder) Rows() []Row { return slices.Clone(f.rows) }

// Add appends a row to the table. It is in the file when Add returns, and survives a crash of the machine a second later.
func (f *Folder) Add(r Row) error {
	err := f.write(func(w io.Writer) error { return writeRows(w, r) })
	if err == nil {
		err = f.unsynced()
	} else {
		err = record.NotWritten(filepath.Join(f.Path, ResultsFile), err)
	}
	if err != nil {
		return err
	}
	f.put(r)
	if f.due.CompareAndSwap(false, true) {
		file := f.file
		f.syncs.Add(1)
		f.next = time.AfterFunc(syncEvery, func() {
			defer f.syncs.Done()
			f.due.Store(false) // rows from here on need another
			if err := syncFile(file); err != nil && !errors.Is(err, os.ErrClosed) {
				f.lost.Store(&err)
			}
		})
	}
	return nil
}

// Sort puts the rows of the table in the order of the design.
func (f *Folder) Sort() error {
	slices.SortFunc(f.rows, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	for i := range f.rows {
		f.places[f.rows[i].ID] = i
	}
	var b bytes.Buffer
	if err := errors.Join(writeHeader(&b, f.Plan), writeRows(&b, f.rows...)); err != nil {
		return err
	}
	path := filepath.Join(f.Path, ResultsFile)
	err := errors.Join(f.file.Close(), writeFile(path, b.Bytes())) // some systems cannot rename to an open file
	if err == nil {
		f.size = int64(b.Len())
	}
	file, opened := os.OpenFile(path, os.O_RDWR, 0)
	if opened == nil { // else writing to the closed one fails
		f.file = file
	}
	return errors.Join(err, opened)
}

// Close closes the table.
func (f *Folder) Close() error {
	if f.next != nil && f.next.Stop() {
		f.syncs.Done()
	}
	f.syncs.Wait()
	synced := syncFile(f.file)
	if synced != nil {
		synced = record.NotWritten(filepath.Join(f.Path, ResultsFile), synced)
	}
	return errors.Join(cmp.Or(f.unsynced(), synced), f.file.Close(), f.held.Close())
}

// unsynced returns the error of syncing earlier rows.
func (f *Folder) unsynced() error {
	if err := f.lost.Load(); err != nil {
		return record.NotWritten(filepath.Join(f.Path, ResultsFile), *err)
	}
	return nil
}

// lock keeps a second process from continuing the study at the same time.
func (f *Folder) lock() error {
	path := filepath.Join(f.Path, folderLock)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return record.NotWritten(path, err)
	}
	if err := record.Lock(file); err != nil {
		return errors.Join(fmt.Errorf("%s: another process is running this study, perhaps on another machine; wait for it, or end it (if that machine is gone "+
			"for good, and its lock is not: delete %s)", f.Path, path), file.Close())
	}
	f.held = file
	return nil
}

// Remove removes the study in a folder, and nothing else that is there. A folder without a study stays.
func Remove(path string) error {
	if _, err := os.Stat(filepath.Join(path, folderIndex)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	f := &Folder{Path: path}
	if err := f.lock(); err != nil {
		return err
	}
	var errs []error
	for _, name := range folderNames {
		errs = append(errs, os.RemoveAll(filepath.Join(path, name)), os.RemoveAll(filepath.Join(path, name+partial)))
	}
	return errors.Join(append(errs, f.held.Close())...)
}

// Runs returns the folder for tables of runs that are kept.
func (f *Folder) Runs() (string, error) {
	path, err := filepath.Abs(filepath.Join(f.Path, folderRuns))
	if err != nil {
		return "", err
	}
	return path, os.MkdirAll(path, 0o777)
}

// csv returns a design as a table.
func (v *Variants) csv() []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(append([]string{columnID}, v.Names...)) // a buffer takes everything
	for _, e := range v.List {
		_ = w.Write(append([]string{fmt.Sprint(e.ID)}, e.Values...))
	}
	w.Flush()
	return b.Bytes()
}

// within reports whether a path is below a folder.
func within(folder, path string) bool { return filepath.IsLocal(relative(folder, path)) }

// relative returns a path below a folder, ".." if there is none.
func relative(folder, path string) string {
	rel, err := filepath.Rel(folder, path)
	if err != nil {
		return ".."
	}
	return rel
}

// WriteFile writes a file in the folder that is whole or not there, also after a crash of the machine.
func (f *Folder) WriteFile(name string, fill func(io.Writer) error) error {
	return replace(filepath.Join(f.Path, name), fill)
}

// writeFile writes a file, as replace does, and the folders that it is in.
func writeFile(path string, data []byte) error {
	return replace(path, func(w io.Writer) error { _, err := w.Write(data); return err })
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return replace(to, func(w io.Writer) error { _, err := io.Copy(w, in); return err })
}

func replace(path string, fill func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return record.NotWritten(path, err)
	}
	temporary := path + partial
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return record.NotWritten(path, err)
	}
	if err := errors.Join(fill(file), syncFile(file), file.Close()); err != nil {
		return errors.Join(record.NotWritten(path, err), os.Remove(temporary))
	}
	if err := os.Rename(temporary, path); err != nil {
		return errors.Join(record.NotWritten(path, err), os.Remove(temporary))
	}
	record.SyncFolder(filepath.Dir(path))
	return nil
}

// FilesOf lists what a machine needs to make runs of the study in a folder: paths in it, with slashes.
func FilesOf(folder string) ([]string, error) {
	list := []string{folderIndex}
	root := filepath.Join(folder, folderFiles)
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			list = append(list, filepath.ToSlash(relative(folder, path)))
		}
		return err
	})
	return list, err
}
