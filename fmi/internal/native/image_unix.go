//go:build linux || darwin || freebsd || netbsd

package native

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
)

// machines are the processors of libraries by GOARCH.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkImage checks that a file is a complete ELF library for this processor. The loader
// maps it unchecked, so an incomplete library would end the process by SIGBUS; for another
// processor the message of glibc is misleading. The loader detects all other defects, and
// on macOS and Windows also these.
func checkImage(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = segments(f)
	return err
}

// segments returns the segments of an ELF library for this processor, and the error of checkImage.
// There are none if the library has another format.
func segments(f *os.File) (all []elf.Prog64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := uint64(info.Size())
	cut := func(need uint64) error {
		return fmt.Errorf("the file is cut off: it has %d bytes and needs %d; export or copy the FMU again", size, need)
	}
	ident := make([]byte, elf.EI_NIDENT)
	if _, err := io.ReadFull(f, ident); err != nil || !bytes.HasPrefix(ident, []byte(elf.ELFMAG)) {
		if runtime.GOOS == "darwin" {
			return nil, nil
		}
		return nil, fmt.Errorf("the file of %d bytes is not an ELF library; export or copy the FMU again", size)
	}
	if elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil, nil
	}
	var h elf.Header64
	if binary.Read(io.NewSectionReader(f, 0, int64(binary.Size(h))), binary.LittleEndian, &h) != nil {
		return nil, cut(uint64(binary.Size(h)))
	}
	if own, ok := machines[runtime.GOARCH]; ok && elf.Machine(h.Machine) != own {
		return nil, fmt.Errorf("the ELF library is for another processor, %s instead of %s; have the FMU exported for this one",
			elf.Machine(h.Machine), own)
	}
	var p elf.Prog64
	entry := uint64(binary.Size(p))
	if uint64(h.Phentsize) != entry {
		return nil, nil
	}
	for i := range uint64(h.Phnum) {
		end := h.Phoff + (i+1)*entry
		if end < h.Phoff || end > size {
			return nil, cut(end)
		}
		if err := binary.Read(io.NewSectionReader(f, int64(end-entry), int64(entry)), binary.LittleEndian, &p); err != nil {
			return nil, err
		}
		if end := p.Off + p.Filesz; elf.ProgType(p.Type) == elf.PT_LOAD && (end < p.Off || end > size) {
			return nil, cut(end)
		}
		all = append(all, p)
	}
	return all, nil
}

// image is an ELF library as the loader reads it.
type image struct {
	file     *os.File
	segments []elf.Prog64
	dynamic  map[elf.DynTag][]uint64
	texts    []byte // ending in zeros
	table    []byte // of symbols
	symbols  int    // in table
}

// openImage opens a library; nil if it is damaged, or for another processor.
func openImage(path string) *image {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	x := &image{file: f, dynamic: map[elf.DynTag][]uint64{}}
	if x.segments, err = segments(f); err != nil || x.segments == nil {
		_ = f.Close()
		return nil
	}
	for _, p := range x.segments {
		if elf.ProgType(p.Type) != elf.PT_DYNAMIC {
			continue
		}
		for d := x.read(p.Vaddr, p.Filesz); len(d) >= 16; d = d[16:] {
			tag := elf.DynTag(binary.LittleEndian.Uint64(d))
			x.dynamic[tag] = append(x.dynamic[tag], binary.LittleEndian.Uint64(d[8:]))
			if tag == elf.DT_NULL {
				break
			}
		}
	}
	x.texts = x.read(x.value(elf.DT_STRTAB), x.value(elf.DT_STRSZ))
	x.table = x.read(x.value(elf.DT_SYMTAB), x.countSymbols()*elf.Sym64Size)
	x.symbols = len(x.table) / elf.Sym64Size
	return x
}

// value returns a value of the dynamic section, 0 if it is missing.
func (x *image) value(tag elf.DynTag) uint64 {
	if v := x.dynamic[tag]; len(v) > 0 {
		return v[0]
	}
	return 0
}

// listed returns the texts of the dynamic section with a tag.
func (x *image) listed(tag elf.DynTag) (all []string) {
	for _, at := range x.dynamic[tag] {
		all = append(all, x.text(at))
	}
	return all
}

// read returns up to n bytes at an address.
func (x *image) read(address, n uint64) []byte {
	for _, p := range x.segments {
		if at := address - p.Vaddr; elf.ProgType(p.Type) == elf.PT_LOAD && at < p.Filesz {
			b := make([]byte, min(n, p.Filesz-at)) // the segment is within the file
			if _, err := x.file.ReadAt(b, int64(p.Off+at)); err != nil {
				return nil
			}
			return b
		}
	}
	return nil
}

// words returns up to n numbers of 32 bits at an address.
func (x *image) words(address, n uint64) []uint32 {
	b := x.read(address, 4*n)
	w := make([]uint32, len(b)/4)
	for k := range w {
		w[k] = binary.LittleEndian.Uint32(b[4*k:])
	}
	return w
}

// countSymbols returns the number of symbols. It is in the hash table; that of GNU has only the
// list of each bucket, whose last symbol is odd.
func (x *image) countSymbols() uint64 {
	if w := x.words(x.value(elf.DT_HASH), 2); len(w) == 2 && x.dynamic[elf.DT_HASH] != nil {
		return uint64(w[1])
	}
	head := x.words(x.value(elf.DT_GNU_HASH), 4)
	if len(head) < 4 || x.dynamic[elf.DT_GNU_HASH] == nil {
		return 0
	}
	buckets, first, filter := uint64(head[0]), uint64(head[1]), uint64(head[2])
	at := x.value(elf.DT_GNU_HASH) + 16 + 8*filter
	last := uint64(0)
	for _, k := range x.words(at, buckets) {
		last = max(last, uint64(k))
	}
	if last < first {
		return first
	}
	const longest = 1 << 16
	for _, w := range x.words(at+4*buckets+4*(last-first), longest) {
		last++
		if w&1 != 0 {
			break
		}
	}
	return last
}

// symbol returns symbol k, empty if there is none.
func (x *image) symbol(k int) elf.Sym64 {
	if k >= x.symbols {
		return elf.Sym64{}
	}
	b := x.table[k*elf.Sym64Size:]
	return elf.Sym64{Name: binary.LittleEndian.Uint32(b), Info: b[4], Other: b[5],
		Shndx: binary.LittleEndian.Uint16(b[6:]), Value: binary.LittleEndian.Uint64(b[8:])}
}

// text returns the text at a place.
func (x *image) text(at uint64) string {
	if at >= uint64(len(x.texts)) {
		return ""
	}
	text, _, _ := bytes.Cut(x.texts[at:], []byte{0})
	return string(text)
}

// lookedUp returns the numbers of the symbols that the loader looks up.
func (x *image) lookedUp() (all []int) {
	const entry = 24 // bytes: place, type, symbol, addend
	for _, t := range [][2]elf.DynTag{{elf.DT_RELA, elf.DT_RELASZ}, {elf.DT_JMPREL, elf.DT_PLTRELSZ}} {
		for r := x.read(x.value(t[0]), x.value(t[1])); len(r) >= entry; r = r[entry:] {
			all = append(all, int(binary.LittleEndian.Uint32(r[12:])))
		}
	}
	return all
}

// variable reports whether the memory at an address can change while the library is in use.
func (x *image) variable(address uint64) bool {
	for _, p := range x.segments {
		if elf.ProgType(p.Type) == elf.PT_GNU_RELRO && address-p.Vaddr < p.Memsz {
			return false
		}
	}
	return slices.ContainsFunc(x.segments, func(p elf.Prog64) bool {
		return elf.ProgType(p.Type) == elf.PT_LOAD && elf.ProgFlag(p.Flags)&elf.PF_W != 0 && address-p.Vaddr < p.Memsz
	})
}
