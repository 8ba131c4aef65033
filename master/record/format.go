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
	CSV     Format = iota // comma-separated values
	Parquet               // Apache Parquet
	MAT                   // MAT level 4, with the matrices of a Modelica trajectory
)

// FormatNames are the names of the formats, in order.
var FormatNames = []string{"csv", "parquet", "mat"}

// String returns the name.
func (f Format) String() string { return FormatNames[f] }

// FormatOf returns the format for the extension of a file: Parquet for .parquet, MAT for .mat, else CSV. Extensions of
// other known formats are an error.
func FormatOf(path string) (Format, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".parquet":
		return Parquet, nil
	case ".mat":
		return MAT, nil
	case ".arrow", ".arrows", ".feather", ".h5", ".hdf5", ".xls", ".xlsx", ".ods":
		return 0, fmt.Errorf("%s: files %s are not written; name a .parquet, which the same programs read, a .mat or a .csv", path, ext)
	}
	return CSV, nil
}

func (f Format) encoder(l *layout) encoder {
	switch f {
	case Parquet:
		return newParquetEncoder(l)
	case MAT:
		return newMatEncoder(l)
	}
	return newCSVEncoder(l)
}
