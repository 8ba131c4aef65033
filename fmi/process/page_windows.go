package process

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// plainFile makes a file in the folder for temporary files that goes when nobody has it
// open any more.
func plainFile() (*os.File, error) {
	var random [8]byte
	rand.Read(random[:])
	path := filepath.Join(os.TempDir(), "macrostep-page-"+hex.EncodeToString(random[:]))
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE,
		nil, windows.CREATE_NEW, windows.FILE_ATTRIBUTE_TEMPORARY|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// mapExtent maps a part of the file.
func mapExtent(f *os.File, offset int64, size int) ([]byte, error) {
	end := uint64(offset) + uint64(size)
	m, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READWRITE, uint32(end>>32), uint32(end), nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateFileMapping", err)
	}
	defer windows.CloseHandle(m) // the view keeps it
	at, err := windows.MapViewOfFile(m, windows.FILE_MAP_READ|windows.FILE_MAP_WRITE, uint32(uint64(offset)>>32), uint32(offset), uintptr(size))
	if err != nil {
		return nil, os.NewSyscallError("MapViewOfFile", err)
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), size), nil
}

func mapView(f *os.File, size int) ([]byte, error) { return mapExtent(f, 0, size) }

func unmap(view []byte) {
	_ = windows.UnmapViewOfFile(uintptr(unsafe.Pointer(unsafe.SliceData(view))))
}

// sameFile reports whether the file is still the one of the page.
func sameFile(f *os.File, length int64) bool {
	info, err := f.Stat()
	return err == nil && info.Size() == length
}
