//go:build linux || darwin || freebsd || netbsd

package fmi

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
)

// checkImage looks whether a file holds all that an ELF library says it holds.
// The loader maps what the headers name and touches it unchecked: a library that
// was cut off in a transfer ends the process by SIGBUS. Everything else that can
// be wrong with a file the loader refuses by itself, as it does on macOS and
// Windows for this one too.
func checkImage(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := uint64(info.Size())
	cut := func(need uint64) error {
		return fmt.Errorf("the file is cut off: it has %d bytes and needs %d; export or copy the FMU again", size, need)
	}
	ident := make([]byte, elf.EI_NIDENT)
	if _, err := io.ReadFull(f, ident); err != nil {
		return fmt.Errorf("the file is no library: it has %d bytes; export or copy the FMU again", size)
	}
	if !bytes.HasPrefix(ident, []byte(elf.ELFMAG)) || elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil
	}
	var h elf.Header64
	if binary.Read(io.NewSectionReader(f, 0, int64(binary.Size(h))), binary.LittleEndian, &h) != nil {
		return cut(uint64(binary.Size(h)))
	}
	var p elf.Prog64
	entry := uint64(binary.Size(p))
	if uint64(h.Phentsize) != entry {
		return nil
	}
	for i := range uint64(h.Phnum) {
		end := h.Phoff + (i+1)*entry
		if end < h.Phoff || end > size {
			return cut(end)
		}
		if err := binary.Read(io.NewSectionReader(f, int64(end-entry), int64(entry)), binary.LittleEndian, &p); err != nil {
			return err
		}
		if end := p.Off + p.Filesz; elf.ProgType(p.Type) == elf.PT_LOAD && (end < p.Off || end > size) {
			return cut(end)
		}
	}
	return nil
}
