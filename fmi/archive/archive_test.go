package archive

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/fmi/diag"
)

// item is one entry of a test archive.
type item struct {
	header zip.FileHeader
	data   []byte
}

func file(name, text string) item {
	return item{zip.FileHeader{Name: name, Method: zip.Deflate}, []byte(text)}
}

func withMode(it item, m fs.FileMode) item {
	it.header.SetMode(m)
	return it
}

// link is an entry that leads to a path.
func link(name, to string) item { return withMode(file(name, to), fs.ModeSymlink|0o777) }

// must fails the test if an error is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func pack(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, it := range items {
		f, err := w.CreateHeader(&it.header)
		must(t, err)
		_, err = f.Write(it.data)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func save(t testing.TB, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.fmu")
	must(t, os.WriteFile(name, data, 0o600))
	return name
}

// tree lists the files below dir with their contents.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(rel)] = string(data)
		return err
	})
	must(t, err)
	return got
}

func TestUnpack(t *testing.T) {
	var items []item
	want := map[string]string{}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 200 {
		name := fmt.Sprintf("resources/%d/%d.bin", i%7, i)
		data := make([]byte, rng.IntN(20000))
		for k := range data {
			data[k] = byte(rng.IntN(16))
		}
		items = append(items, file(name, string(data)))
		want[name] = string(data)
	}
	items = append(items, file("empty/", ""), item{zip.FileHeader{Name: "stored.txt", Method: zip.Store}, []byte("as it is")})
	want["stored.txt"] = "as it is"
	name, into := save(t, pack(t, items...)), t.TempDir()
	var l diag.List
	must(t, Unpack(name, into, &l, Limits{}))
	if len(l.Findings) > 0 {
		t.Errorf("findings: %v", l.Findings)
	}
	if got := tree(t, into); !maps.Equal(got, want) {
		t.Errorf("the %d files differ from the %d in the archive", len(got), len(want))
	}
	if info, err := os.Stat(filepath.Join(into, "empty")); err != nil || !info.IsDir() {
		t.Errorf("the empty folder is missing: %v", err)
	}
}

// Links to files are unpacked as copies.
func TestLinks(t *testing.T) {
	into := t.TempDir()
	name := save(t, pack(t, link("lib/a.so", "a.so.1"), link("lib/a.so.1", "../real/a.so.1.2"), file("real/a.so.1.2", "code"), file("b", "1"), file("b", "1")))
	must(t, Unpack(name, into, nil, Limits{}))
	if got, want := tree(t, into), map[string]string{"lib/a.so": "code", "lib/a.so.1": "code", "real/a.so.1.2": "code", "b": "1"}; !maps.Equal(got, want) {
		t.Errorf("unpacked %v, want %v", got, want)
	}
	if info, err := os.Lstat(filepath.Join(into, "lib", "a.so")); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
}

// A packed folder has the files to which its links lead.
func TestPackLinks(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // links need a privilege there
	}
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "lib"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "lib", "a.so.1"), []byte("code"), 0o644))
	must(t, os.Symlink("a.so.1", filepath.Join(dir, "lib", "a.so")))
	name, into := filepath.Join(t.TempDir(), "x.fmu"), t.TempDir()
	must(t, Pack(name, dir))
	must(t, Unpack(name, into, nil, Limits{}))
	if got, want := tree(t, into), map[string]string{"lib/a.so": "code", "lib/a.so.1": "code"}; !maps.Equal(got, want) {
		t.Errorf("packed %v, want %v", got, want)
	}
}

func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // no such bits there
	}
	name, into := save(t, pack(t,
		withMode(file("tool", "x"), 0o4755), withMode(file("data", "x"), 0o000), file("plain", "x"))), t.TempDir()
	must(t, Unpack(name, into, nil, Limits{}))
	usual := func(name string, mode fs.FileMode) fs.FileMode {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		must(t, os.WriteFile(path, nil, mode))
		info, err := os.Stat(path)
		must(t, err)
		return info.Mode()
	}
	for name, want := range map[string]fs.FileMode{"tool": usual("tool", 0o777), "data": usual("data", 0o666), "plain": usual("plain", 0o666)} {
		info, err := os.Stat(filepath.Join(into, name))
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
}

// patch changes bytes of the one local and the one central header of an archive.
func patch(data []byte, local, central int, value ...byte) []byte {
	data = bytes.Clone(data)
	copy(data[bytes.Index(data, []byte("PK\x03\x04"))+local:], value)
	copy(data[bytes.Index(data, []byte("PK\x01\x02"))+central:], value)
	return data
}

// split makes an archive the last part of a split one.
func split(data []byte, part int) []byte {
	data = bytes.Clone(data)
	binary.LittleEndian.PutUint16(data[bytes.LastIndex(data, []byte("PK\x05\x06"))+4:], uint16(part))
	return data
}

func TestRules(t *testing.T) {
	plain := pack(t, file("a.txt", "text"))
	claims83MB := patch(plain, 22, 24, 0, 0, 0, 5)
	for _, c := range []struct {
		name   string
		data   []byte
		limits Limits
		want   string // id of the only finding
		text   string // part of its message
	}{
		{name: "good", data: plain},
		{name: "no archive", data: []byte("<xml/>"), want: "FA0", text: "not a readable ZIP"},
		{name: "empty file", data: nil, want: "FA0"},
		{name: "cut off", data: plain[:len(plain)-5], want: "FA0"},
		{name: "split", data: split(plain, 2), want: "FA0", text: "part 3 of"},
		{name: "split, with a comment", data: append(split(append(plain[:len(plain)-2:len(plain)-2], 3, 0), 1), "PK!"...), want: "FA0", text: "part 2"},
		{name: "number of the part elsewhere", data: split(plain, 0xffff)},
		{name: "backslash", data: pack(t, file(`resources\a.txt`, ""), file(`resources\b.txt`, "")), want: "FA1", text: "2 entries"},
		{name: "dot slash", data: pack(t, file("./a.txt", "")), want: "FA1", text: "needless"},
		{name: "Latin-1 name", data: pack(t, item{zip.FileHeader{Name: "gr\xfc\xdfe.txt", NonUTF8: true}, nil}), want: "FA1", text: "UTF-8"},
		{name: "new format", data: patch(plain, 4, 6, 63), want: "FA1V", text: "version 6.3"},
		{name: "parent", data: pack(t, file("a/../../x", "")), want: "FA2", text: `".."`},
		{name: "parent with backslash", data: pack(t, file(`..\x`, "")), want: "FA2", text: `".."`},
		{name: "absolute", data: pack(t, file("/etc/x", "")), want: "FA2", text: "absolute"},
		{name: "drive", data: pack(t, file("C:/x", "")), want: "FA2", text: "drive"},
		{name: "relative to a drive", data: pack(t, file("C:x", "")), want: "FA2", text: "drive"},
		{name: "control character", data: pack(t, file("a\x00b", "")), want: "FA2", text: "control"},
		{name: "no name", data: pack(t, file("", "x")), want: "FA2", text: "no name"},
		{name: "link outside", data: pack(t, link("a", "/etc/passwd")), want: "FA2", text: `link that leads to "/etc/passwd", which is no file of the archive`},
		{name: "link to the parent", data: pack(t, link("a", "../x"), file("x", "1")), want: "FA2", text: "no file of the archive"},
		{name: "link to a folder", data: pack(t, link("a", "b"), file("b/", "")), want: "FA2", text: `leads to "b", a folder`},
		{name: "link to itself", data: pack(t, link("a", "a")), want: "FA2", text: "without end"},
		{name: "empty link", data: pack(t, link("a", ""), file("b", "")), want: "FA2", text: "no file"},
		{name: "link", data: pack(t, link("d/a", "../e/b"), link("e/b", "c"), file("e/c", "text")), want: "FA2L", text: `"d/a" is a link and is read as a copy of its target (2 entries like this)`},
		{name: "links to a large file", data: pack(t, link("a", "c"), link("b", "c"), file("c", strings.Repeat("x", 1<<20))), limits: Limits{Bytes: 5 << 19}, want: "FA2S", text: "3 MB"},
		{name: "pipe", data: pack(t, withMode(file("a", ""), fs.ModeNamedPipe|0o777)), want: "FA2", text: "neither"},
		{name: "encrypted", data: patch(plain, 6, 8, 9, 0), want: "FA2", text: "encrypted"},
		{name: "method", data: patch(plain, 8, 10, 12, 0), want: "FA2", text: "method 12"},
		{name: "twice", data: pack(t, file("a", "1"), file("./a", "2")), want: "FA2", text: "two entries"},
		{name: "twice and equal", data: pack(t, file("a", "1"), file("b", "2"), file("a", "1")), want: "FA2L", text: `two equal entries "a"`},
		{name: "twice with another length", data: pack(t, file("a", "1"), file("a", "12")), want: "FA2", text: "different contents"},
		{name: "file and folder", data: pack(t, file("a", "1"), file("a/", "")), want: "FA2", text: "two entries"},
		{name: "folder twice", data: pack(t, file("a/", ""), file("a/", ""), file("a/b", ""))},
		{name: "entries", data: pack(t, file("a", ""), file("b", "")), limits: Limits{Entries: 1}, want: "FA2S", text: "2 entries"},
		{name: "size", data: pack(t, file("a", strings.Repeat("x", 3<<20))), limits: Limits{Bytes: 2 << 20}, want: "FA2S", text: "3 MB"},
		{name: "ratio", data: claims83MB, want: "FA2S", text: "times its size"},
		{name: "ratio allowed", data: claims83MB, limits: Limits{Ratio: 1 << 20}},
		{name: "overlap", data: patch(plain, 18, 20, 0xff, 0xff, 0, 0), want: "FA2S", text: "overlap"},
	} {
		t.Run(c.name, func(t *testing.T) {
			name := save(t, c.data)
			var l diag.List
			a, err := Open(name, &l, c.limits)
			if err == nil {
				defer a.Close()
			}
			level := diag.Error
			if strings.HasPrefix(c.want, "FA1") || c.want == "FA2L" {
				level = diag.Info
			}
			if refused := c.want != "" && level == diag.Error; diag.Has(err, c.want) != refused || (err != nil) != refused {
				t.Fatalf("error %v, want %s", err, c.want)
			}
			got := slices.DeleteFunc(l.Findings, func(f diag.Finding) bool {
				return f.ID != c.want && c.want != "" && f.Level == diag.Info // "./a" is also needless, and a refused archive may have links
			})
			if c.want == "" {
				if len(got) > 0 {
					t.Errorf("findings %v", got)
				}
				return
			}
			if len(got) != 1 || got[0].ID != c.want || got[0].Level != level || got[0].File != name ||
				got[0].Remedy == "" || !strings.Contains(got[0].Message, c.text) {
				t.Fatalf("findings %+v, want one %v of %s with %q", got, level, c.want, c.text)
			}
		})
	}
}

// TestNothingLeavesTheFolder unpacks an invalid entry without checking the rules.
func TestNothingLeavesTheFolder(t *testing.T) {
	outer := t.TempDir()
	into := filepath.Join(outer, "in")
	must(t, os.Mkdir(into, 0o700))
	data := pack(t, file("x", "evil"))
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	must(t, err)
	a := &Archive{entries: []entry{{name: "../x", zip: z.File[0]}}}
	if err := a.Unpack(into); err == nil {
		t.Error("no error")
	}
	if got := tree(t, outer); len(got) > 0 {
		t.Errorf("written: %v", got)
	}
}

func TestUnpackRefusesLies(t *testing.T) {
	honest := pack(t, item{zip.FileHeader{Name: "a", Method: zip.Deflate}, bytes.Repeat([]byte("x"), 100000)})
	size := make([]byte, 4)
	binary.LittleEndian.PutUint32(size, 1000)
	for name, data := range map[string][]byte{
		"longer than declared": patch(honest, 22, 24, size...),
		"wrong checksum":       patch(honest, 14, 16, 1, 2, 3, 4),
	} {
		into := t.TempDir()
		if err := Unpack(save(t, data), into, nil, Limits{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := len(tree(t, into)["a"]); name == "longer than declared" && got > 1001 {
			t.Errorf("%s: %d bytes were written", name, got)
		}
	}
	if err := Unpack(save(t, pack(t, file("a", "1"), file("a/b", "2"))), t.TempDir(), nil, Limits{}); err == nil {
		t.Error("file used as folder: no error")
	}
}

func TestReading(t *testing.T) {
	name := save(t, pack(t, file("./b.txt", "text"), file("c/", ""), file("c/d", "")))
	a, err := Open(name, nil, Limits{})
	must(t, err)
	defer a.Close()
	if got := a.Names(); !slices.Equal(got, []string{"b.txt", "c/d"}) {
		t.Errorf("names %v", got)
	}
	if data, err := a.ReadFile("b.txt", 4); err != nil || string(data) != "text" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := a.ReadFile("b.txt", 3); err == nil {
		t.Error("the limit is not kept")
	}
	for _, none := range []string{"z", "c"} {
		if _, err := a.ReadFile(none, 4); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", none, err)
		}
	}
	hash, err := a.Hash()
	if err != nil || !strings.HasPrefix(hash, "sha256:") || len(hash) != 7+64 {
		t.Errorf("hash %q, %v", hash, err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil, Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(t.TempDir(), nil, Limits{}); err == nil {
		t.Error("a folder was opened")
	}
}

func TestHashKnown(t *testing.T) {
	a := &Archive{src: strings.NewReader("abc"), size: 3}
	got, err := a.Hash()
	if want := "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(pack(f, file("modelDescription.xml", "<a/>"), file(`binaries\linux64\x.so`, "elf"), file("resources/", "")))
	f.Add(pack(f, file("../x", "1")))
	f.Add(pack(f, withMode(file("l", "/"), fs.ModeSymlink|0o777), file("l/x", "1")))
	f.Add(patch(pack(f, file("a", "long enough")), 22, 24, 1, 0, 0, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := open(bytes.NewReader(data), int64(len(data)), "x.fmu", nil, Limits{Entries: 50, Bytes: 1 << 20}.orDefault())
		if err != nil {
			return
		}
		outer := t.TempDir()
		into := filepath.Join(outer, "in")
		must(t, os.Mkdir(into, 0o700))
		err = a.Unpack(into)
		if list, _ := os.ReadDir(outer); len(list) != 1 {
			t.Fatalf("something stands beside the folder: %v", list)
		}
		if err != nil {
			return
		}
		got := tree(t, into)
		for _, name := range a.Names() {
			r, err := a.Open(name)
			must(t, err)
			want, _ := io.ReadAll(r)
			r.Close()
			if got[name] != string(want) {
				t.Errorf("%s differs", name)
			}
		}
	})
}
