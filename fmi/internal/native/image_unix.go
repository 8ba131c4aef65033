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
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := uint64(info.Size())
	cut := func(need uint64) error {
		return fmt.Errorf("the file is cut off: it has %d bytes and needs %d; export or copy the FMU again", size, need)
	}
	ident := make([]byte, elf.EI_NIDENT)
	if _, err := io.ReadFull(f, ident); err != nil || !bytes.HasPrefix(ident, []byte(elf.ELFMAG)) {
		if runtime.GOOS == "darwin" {
			return nil
		}
		return fmt.Errorf("the file of %d bytes is not an ELF library; export or copy the FMU again", size)
	}
	if elf.Class(ident[elf.EI_CLASS]) != elf.ELFCLASS64 || elf.Data(ident[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return nil
	}
	var h elf.Header64
	if binary.Read(io.NewSectionReader(f, 0, int64(binary.Size(h))), binary.LittleEndian, &h) != nil {
		return cut(uint64(binary.Size(h)))
	}
	if own, ok := machines[runtime.GOARCH]; ok && elf.Machine(h.Machine) != own {
		return fmt.Errorf("the ELF library is for another processor, %s instead of %s; have the FMU exported for this one",
			elf.Machine(h.Machine), own)
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
