package record

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Format is a kind of result file.
type Format uint8

// The formats.
const (
	CSV         Format = iota // comma-separated values
	ArrowFile                 // Arrow IPC file, also called Feather version 2
	ArrowStream               // Arrow IPC stream
)

// FormatNames are the names of the formats, in order.
var FormatNames = []string{"csv", "arrow", "arrow-stream"}

// String returns the name.
func (f Format) String() string { return FormatNames[f] }

// FormatOf returns the format for the extension of a file: ArrowFile for .arrow and .feather,
// ArrowStream for .arrows, else CSV. Extensions of other known formats are an error.
func FormatOf(path string) (Format, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".arrow", ".feather":
		return ArrowFile, nil
	case ".arrows":
		return ArrowStream, nil
	case ".parquet", ".mat", ".h5", ".hdf5", ".xlsx":
		return 0, fmt.Errorf("%s: files %s are not written; name a .csv, .arrow or .arrows", path, ext)
	}
	return CSV, nil
}

func (f Format) encoder(l *layout) encoder {
	if f == CSV {
		return newCSVEncoder(l)
	}
	return newArrowEncoder(l, f == ArrowFile)
}
