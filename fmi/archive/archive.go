package archive

import (
	"archive/zip"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unicode/utf8"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Limits bound the content of an archive. A field that is 0 has its default.
type Limits struct {
	Entries int   // files and folders; default 100 000
	Bytes   int64 // unpacked size of all files; default 8 GiB
	// Ratio of the unpacked size to the size of the archive; default 200. It applies only
	// above 64 MiB, because small files may compress better.
	Ratio int64
}

const ratioCountsFrom = 64 << 20

func (m Limits) orDefault() Limits {
	return Limits{cmp.Or(m.Entries, 100_000), cmp.Or(m.Bytes, 8<<30), cmp.Or(m.Ratio, 200)}
}

// Rules on archives. A letter after the number of an id marks a variant with another level.
var (
	ruleZIP = &diag.Rule{
		ID: "FA0", Level: diag.Error, Ref: "fmi2 1, ssp 1",
		Doc:    "FMUs and SSPs are ZIP archives.",
		Remedy: "export or download the file again; for an unpacked FMU or SSP give the folder",
	}
	ruleName = &diag.Rule{
		ID: "FA1", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 1, ssp 1",
		Doc:    "Names of entries are relative paths with the separator /, in UTF-8.",
		Remedy: "the name was repaired; pack the archive with a current ZIP tool",
	}
	ruleVersion = &diag.Rule{
		ID: "FA1V", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 1, ssp 1",
		Doc:    "Entries need at most version 2.0 of the ZIP format.",
		Remedy: "other tools may refuse the archive; pack it with plain deflate",
	}
	ruleEntry = &diag.Rule{
		ID: "FA2", Level: diag.Error, Ref: "fmi2 1, ssp 1",
		Doc: "Entries are files, links to files of the archive, and folders inside the folder, stored or deflated, not encrypted. " +
			"Two entries of one name are equal.",
		Remedy: "do not use the archive unless you trust its source; pack it again with a current ZIP tool",
	}
	ruleLink = &diag.Rule{
		ID: "FA2L", Level: diag.Info, Strict: true, Inert: true, Ref: "fmi2 1, ssp 1",
		Doc:    "An archive has each file once, and files instead of links to them.",
		Remedy: "harmless; pack the archive with plain files, for tools that refuse it",
	}
	ruleSize = &diag.Rule{
		ID: "FA2S", Level: diag.Error, Ref: "fmi2 1",
		Doc:    "Number, size and compression ratio of the entries are within the limits.",
		Remedy: "do not use the archive unless you trust its source; then unpack it yourself and give the folder",
	}
)

// Rules lists the rules of this package.
func Rules() []*diag.Rule {
	return []*diag.Rule{ruleZIP, ruleName, ruleVersion, ruleEntry, ruleLink, ruleSize}
}

// Archive is an open ZIP archive whose entries have been checked.
type Archive struct {
	path    string
	src     io.ReaderAt
	size    int64
	file    *os.File // for Close; may be nil
	entries []entry
	byName  map[string]int
}

type entry struct {
	name string    // slash-separated, clean, local
	zip  *zip.File // of a link, that to which it leads
	dir  bool
	link bool // not followed yet
}

// Open opens an archive and checks all entries. It appends its findings to l, which may be nil.
// The error is a *diag.ListError with the findings that forbid the use of the archive, or an
// error of the system. The caller must Close the archive.
func Open(path string, l *diag.List, limits Limits) (*Archive, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // opening a named pipe would wait for ever
		own := diag.List{}
		own.Add(ruleZIP, path, "", 0, "this is not a file but %s", diag.KindOf(info.Mode()))
		if l != nil {
			l.Append(&own)
		}
		return nil, own.Err()
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	a, err := open(f, info.Size(), path, l, limits.orDefault())
	if err != nil {
		f.Close()
		return nil, err
	}
	a.file = f
	return a, nil
}

func open(src io.ReaderAt, size int64, path string, l *diag.List, limits Limits) (*Archive, error) {
	mine := diag.List{}
	if l != nil {
		mine.Strict = l.Strict
		defer func() { l.Append(&mine) }()
	}
	start := make([]byte, min(size, 2048))
	if _, err := src.ReadAt(start, 0); err == nil || errors.Is(err, io.EOF) {
		if what := diag.Pointer(start); what != "" {
			mine.Add(ruleZIP.WithRemedy(diag.FetchPointer), path, "", 0, "%s", what)
			return nil, mine.Err()
		}
	}
	if n := lastPart(src, size); n > 0 {
		rule := ruleZIP.WithRemedy("join the parts with the ZIP tool that made them, or pack the files again into one archive")
		mine.Add(rule, path, "", 0, "the file is part %d of a split archive", n+1)
		return nil, mine.Err()
	}
	z, err := zip.NewReader(src, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // checked below
		mine.Add(ruleZIP, path, "", 0, "not a readable ZIP archive: %v", err)
		return nil, mine.Err()
	}
	a := &Archive{path: path, src: src, size: size, byName: make(map[string]int, len(z.File))}
	if len(z.File) > limits.Entries {
		mine.Add(ruleSize, path, "", 0, "the archive has %d entries, more than %d", len(z.File), limits.Entries)
		return nil, mine.Err()
	}
	j := judge{list: &mine, file: path}
	var packed, unpacked uint64
	var again []entry // of names that the archive has already
	for _, f := range z.File {
		e, ok := j.entry(f)
		packed = addSaturated(packed, f.CompressedSize64)
		unpacked = addSaturated(unpacked, f.UncompressedSize64)
		if !ok || e.name == "." {
			continue
		}
		if first, twice := a.byName[e.name]; twice {
			if !e.dir || !a.entries[first].dir {
				again = append(again, e)
			}
			continue
		}
		a.byName[e.name] = len(a.entries)
		a.entries = append(a.entries, e)
	}
	unpacked = addSaturated(unpacked, a.follow(&mine))
	switch {
	case unpacked > uint64(limits.Bytes):
		mine.Add(ruleSize, path, "", 0, "the archive unpacks to %d MB, more than %d MB", unpacked>>20, limits.Bytes>>20)
	case unpacked > ratioCountsFrom && unpacked/uint64(limits.Ratio) > uint64(size):
		mine.Add(ruleSize, path, "", 0, "the archive unpacks to %d times its size, more than %d times",
			unpacked/uint64(max(size, 1)), limits.Ratio)
	case packed > uint64(size):
		mine.Add(ruleSize, path, "", 0, "entries of the archive overlap: together they are longer than the archive")
	default:
		a.compare(again, &mine)
	}
	j.summarise()
	return a, mine.Err()
}

// lastPart returns the number, from 0, of the last part of a split archive; 0 for other files.
// Package zip does not check it.
func lastPart(src io.ReaderAt, size int64) int {
	const record, longestComment = 22, 1<<16 - 1
	n := min(size, record+longestComment)
	tail := make([]byte, n)
	if _, err := src.ReadAt(tail, size-n); err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	for at := len(tail) - record; at >= 0; at-- {
		r := tail[at:]
		if string(r[:4]) != "PK\x05\x06" || int(binary.LittleEndian.Uint16(r[20:])) > len(r)-record {
			continue
		}
		if part := binary.LittleEndian.Uint16(r[4:]); part != math.MaxUint16 { // MaxUint16: in the 64-bit record
			return int(part)
		}
		return 0
	}
	return 0
}

func addSaturated(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}

// judge checks the entries one by one. It reports the first repair of each kind with the number
// of entries, because a wrong separator usually concerns all entries.
type judge struct {
	list            *diag.List
	file            string
	repaired, newer similar
	why             string // of the first repair
	needs           int    // version of the first newer one
}

// entry checks an entry and cleans its name.
func (j *judge) entry(f *zip.File) (e entry, ok bool) {
	refuse := func(format string, args ...any) (entry, bool) {
		j.list.Add(ruleEntry, j.file, f.Name, 0, format, args...)
		return entry{}, false
	}
	name, why, err := cleanName(f.Name)
	if err != nil {
		return refuse("%v", err)
	}
	if why != "" && j.repaired.add(f.Name) {
		j.why = why
	}
	mode := f.Mode()
	dir := mode.IsDir() || strings.HasSuffix(f.Name, `\`)
	link := mode&fs.ModeSymlink != 0
	switch {
	case !mode.IsRegular() && !dir && !link:
		return refuse("the entry is neither file nor folder but %s", mode.Type())
	case f.Flags&0x1 != 0:
		return refuse("the entry is encrypted")
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return refuse("the entry is packed with method %d; only stored and deflated entries are allowed", f.Method)
	case f.UncompressedSize64 > math.MaxInt64 || dir && f.UncompressedSize64 > 0:
		return refuse("the entry claims an impossible size")
	}
	if v := int(f.ReaderVersion & 0xff); v > 20 && j.newer.add(f.Name) {
		j.needs = v
	}
	return entry{name, f, dir, link}, true
}

// longestLink is the maximum length of the path in a link.
const longestLink = 4096

// follow replaces the links by the files to which they lead. It returns the size that this adds, and reports links that
// lead elsewhere.
func (a *Archive) follow(l *diag.List) (more uint64) {
	targets := map[int]*zip.File{}
	var links similar
	for i := range a.entries {
		e := &a.entries[i]
		if !e.link {
			continue
		}
		target, err := a.target(i)
		if err != nil {
			l.Add(ruleEntry, a.path, e.name, 0, "the entry is a link that %v", err)
			continue
		}
		targets[i] = target
		more = addSaturated(more, target.UncompressedSize64)
		links.add(e.name)
	}
	for i, target := range targets {
		a.entries[i].zip, a.entries[i].link = target, false
	}
	if links.n > 0 {
		l.Add(ruleLink, a.path, links.first, 0, "the entry %q is a link and is read as a copy of its target%s",
			links.first, links)
	}
	return more
}

// target returns the file to which a link leads, over further links.
func (a *Archive) target(i int) (*zip.File, error) {
	const most = 8 // links one after another
	for range most {
		e := &a.entries[i]
		if !e.link {
			return e.zip, nil
		}
		text, err := a.ReadFile(e.name, longestLink)
		if err != nil {
			return nil, errors.New("cannot be read")
		}
		to := path.Join(path.Dir(e.name), strings.ReplaceAll(string(text), `\`, "/"))
		next, known := a.byName[to]
		switch {
		case len(text) == 0 || text[0] == '/' || !known:
			return nil, fmt.Errorf("leads to %q, which is no file of the archive", text)
		case a.entries[next].dir:
			return nil, fmt.Errorf("leads to %q, a folder", text)
		}
		i = next
	}
	return nil, errors.New("leads to further links without end")
}

// compare reports entries that have the name of another one: equal ones are harmless.
func (a *Archive) compare(again []entry, l *diag.List) {
	var equal similar
	for _, e := range again {
		other := &a.entries[a.byName[e.name]]
		if e.dir || e.link || other.dir || !sameContent(e.zip, other.zip) {
			l.Add(ruleEntry, a.path, e.zip.Name, 0, "the archive has two entries %q with different contents", e.name)
			continue
		}
		equal.add(e.name)
	}
	if equal.n > 0 {
		l.Add(ruleLink, a.path, equal.first, 0, "the archive has two equal entries %q%s", equal.first, equal)
	}
}

// sameContent reports whether two files can be read and are equal.
func sameContent(f, g *zip.File) bool {
	if f.UncompressedSize64 != g.UncompressedSize64 || f.CRC32 != g.CRC32 {
		return false
	}
	sum := func(z *zip.File) (sum [sha256.Size]byte, ok bool) {
		r, err := z.Open()
		if err != nil {
			return sum, false
		}
		defer r.Close()
		h := sha256.New()
		_, err = io.Copy(h, io.LimitReader(r, int64(z.UncompressedSize64)+1))
		return [sha256.Size]byte(h.Sum(nil)), err == nil
	}
	a, okA := sum(f)
	b, okB := sum(g)
	return okA && okB && a == b
}

// similar counts entries of which only the first one is reported.
type similar struct {
	first string
	n     int
}

// add counts an entry and reports whether it is the first one.
func (s *similar) add(name string) bool {
	if s.n++; s.n == 1 {
		s.first = name
	}
	return s.n == 1
}

// String is the end of the message on the first one.
func (s similar) String() string {
	if s.n <= 1 {
		return ""
	}
	return fmt.Sprintf(" (%d entries like this)", s.n)
}

func (j *judge) summarise() {
	if j.repaired.n > 0 {
		j.list.Add(ruleName, j.file, j.repaired.first, 0, "the name of the entry %q %s%s",
			j.repaired.first, j.why, j.repaired)
	}
	if j.newer.n > 0 {
		j.list.Add(ruleVersion, j.file, j.newer.first, 0, "the entry needs version %d.%d of the ZIP format%s",
			j.needs/10, j.needs%10, j.newer)
	}
}

// cleanName returns the relative path of an entry, "." for the root, and why it had to be
// repaired, "" if not.
func cleanName(raw string) (name, why string, err error) {
	name = raw
	if !utf8.ValidString(name) {
		name, why = strings.ToValidUTF8(name, "_"), "is not in UTF-8"
	}
	if strings.Contains(name, `\`) {
		name, why = strings.ReplaceAll(name, `\`, "/"), `has the separator \`
	}
	switch {
	case name == "":
		return "", "", errors.New("the entry has no name")
	case strings.HasPrefix(name, "/"):
		return "", "", errors.New("the name of the entry is an absolute path")
	case strings.ContainsRune(name, ':'):
		return "", "", errors.New("the name of the entry has a drive letter or a colon")
	case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "", "", errors.New("the name of the entry has a control character")
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", "", errors.New(`the name of the entry contains ".."`)
		}
	}
	clean := path.Clean(name)
	if clean != strings.TrimSuffix(name, "/") && why == "" {
		why = `has needless "./" or "//"`
	}
	if !filepath.IsLocal(filepath.FromSlash(clean)) { // on Windows also reserved names
		return "", "", errors.New("the name of the entry is not valid on this system")
	}
	return clean, why, nil
}

// Close closes the file of the archive.
func (a *Archive) Close() error {
	if a.file == nil {
		return nil
	}
	return a.file.Close()
}

// Hash returns "sha256:" and the digest of the archive.
func (a *Archive) Hash() (string, error) {
	return digest(a.path, io.NewSectionReader(a.src, 0, a.size))
}

// HashFile returns "sha256:" and the digest of a file. The error names the file.
func HashFile(path string) (string, error) {
	r, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer r.Close()
	return digest(path, r)
}

func digest(path string, r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// Names returns the clean names of all files, in the order of the archive.
func (a *Archive) Names() []string {
	var names []string
	for _, e := range a.entries {
		if !e.dir {
			names = append(names, e.name)
		}
	}
	return names
}

// Open opens one file for reading. The error is fs.ErrNotExist if there is none.
func (a *Archive) Open(name string) (io.ReadCloser, error) {
	i, ok := a.byName[name]
	if !ok || a.entries[i].dir {
		return nil, fmt.Errorf("%s: %s: %w", a.path, name, fs.ErrNotExist)
	}
	r, err := a.entries[i].zip.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", a.path, name, err)
	}
	return r, nil
}

// ReadFile reads one file whole. It fails if the file is longer than limit bytes.
func (a *Archive) ReadFile(name string, limit int64) ([]byte, error) {
	r, err := a.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", a.path, name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: %s is longer than %d bytes", a.path, name, limit)
	}
	return data, nil
}

// Unpack writes all files into an existing empty folder. Their permissions are those of other new
// files (0666 or 0777 less the umask); the executable bit is kept. After an error the folder may have some of the files.
func (a *Archive) Unpack(into string) error {
	root, err := os.OpenRoot(into) // a second protection against paths outside the folder
	if err != nil {
		return err
	}
	defer root.Close()
	wrap := func(e *entry, err error) error {
		return fmt.Errorf("%s: cannot unpack entry %s: %w; %s", a.path, e.name, err, remedy(err))
	}
	made := map[string]bool{".": true}
	for i := range a.entries {
		e := &a.entries[i]
		dir := e.name
		if !e.dir {
			dir = path.Dir(dir)
		}
		if made[dir] {
			continue
		}
		if ending.Load() {
			return errEnding
		}
		if err := root.MkdirAll(dir, 0o777); err != nil {
			return wrap(e, err)
		}
		made[dir] = true
	}
	var next atomic.Int64
	var failed atomic.Bool
	workers := min(runtime.GOMAXPROCS(0), 8, len(a.entries))
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			buf := make([]byte, 64<<10)
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(a.entries) {
					return
				}
				e := &a.entries[i]
				if e.dir {
					continue
				}
				if ending.Load() {
					errs[w] = errEnding
					return
				}
				if err := e.write(root, buf); err != nil {
					errs[w] = wrap(e, err)
					failed.Store(true)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (e *entry) write(root *os.Root, buf []byte) (err error) {
	r, err := e.zip.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	mode := fs.FileMode(0o666)
	if e.zip.Mode()&0o111 != 0 {
		mode = 0o777
	}
	w, err := root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	size := int64(e.zip.UncompressedSize64)
	n, err := io.CopyBuffer(struct{ io.Writer }{w}, io.LimitReader(r, size+1), buf)
	if err == nil && n != size {
		err = fmt.Errorf("it has %d bytes or more instead of %d", n, size)
	}
	return err
}

// remedy returns what to do about an error of unpacking, whose cause may be the archive or the
// folder.
func remedy(err error) string {
	switch {
	case diag.DiskFull(err):
		return "the archive may be sound: free some space, or set TMPDIR (on Windows TEMP) to a folder with more"
	case errors.Is(err, syscall.EFBIG):
		return "the archive may be sound: the size of files is limited (ulimit -f); raise the limit"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "the archive may be sound: the number of open files is limited (ulimit -n); raise the limit"
	case diag.DiskFailed(err), errors.Is(err, fs.ErrPermission):
		return "the archive may be sound: the disk refuses the file; set TMPDIR (on Windows TEMP) to another folder"
	}
	return "the archive is damaged: export or download it again"
}

// Unpack opens the archive at zipPath and unpacks it into an existing empty folder; see Open and
// Archive.Unpack.
func Unpack(zipPath, into string, l *diag.List, limits Limits) error {
	a, err := Open(zipPath, l, limits)
	if err != nil {
		return err
	}
	defer a.Close()
	return a.Unpack(into)
}

// followed is a folder in which links to files are files.
type followed struct{ fs.FS }

// ReadDir lists a folder.
func (f followed) ReadDir(dir string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(f.FS, dir)
	for i, e := range list {
		if e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if info, err := fs.Stat(f.FS, path.Join(dir, e.Name())); err == nil && info.Mode().IsRegular() {
			list[i] = fs.FileInfoToDirEntry(info)
		}
	}
	return list, err
}

// Pack writes the files of a folder, also those to which links in it lead, to a new archive.
func Pack(path, folder string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	z := zip.NewWriter(out)
	err = z.AddFS(followed{os.DirFS(folder)})
	return errors.Join(err, z.Close(), out.Close())
}
