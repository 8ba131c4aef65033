package results

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
)

const (
	simulates = "macrostep run simulates it and writes a table"
	toParquet = "write a table to Parquet (parquetwrite) or CSV"
	named     = "name the table itself"
)

// strangers are files that are not read as tables, by their first bytes and extension ("" = any).
var strangers = []struct{ start, ext, what, remedy string }{
	{"PK\x03\x04", ".ssp", "a system, not a table", simulates},
	{"PK\x03\x04", ".fmu", "an FMU, not a table", simulates},
	{"PK\x03\x04", "", "a zip archive or spreadsheet, which is not read", "write it as CSV"},
	{"\x89MSCKP", "", "a checkpoint, not a table", "macrostep run --resume continues its run"},
	{"ARROW1", "", "Apache Arrow, which is not read", "write it as Parquet"},
	{"\xff\xff\xff\xff", "", "Apache Arrow, which is not read", "write it as Parquet"},
	{"MATLAB 5.0", "", "a MAT of level 5, which is not read", toParquet},
	{"MATLAB 7.3", "", "a MAT of version 7.3, which is not read", toParquet},
	{"\x89HDF", "", "HDF5, which is not read", "write it as Parquet or CSV"},
	{"\x89PNG", "", "a picture, not a table", named},
	{"%PDF", "", "a document, not a table", named},
	{"<", ".ssd", "a system, not a table", simulates},
	{"<", ".html", "a web page, not a table", "open it in a browser, or " + named},
	{"<", "", "XML or HTML, not a table", named},
	{"{", "", "JSON, perhaps the manifest of a run, not a table", named},
	{"", ".yaml", "a study or scenario, not a table", "macrostep study makes the runs of a study, macrostep run --scenario takes a scenario"},
	{"", ".yml", "a study or scenario, not a table", "macrostep study makes the runs of a study, macrostep run --scenario takes a scenario"},
}

// StartBytes is the number of first bytes of a file that show what it is.
const StartBytes = 512

// byteOrderMark may begin a text in UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// Stranger returns an error that says what a file is, and what reads it, if its first bytes are not those of a
// table that [Read] reads.
func Stranger(path string, start []byte) error {
	if Binary(start) {
		return nil
	}
	if what := diag.Pointer(start); what != "" {
		return fmt.Errorf("%s: %s; %s", path, what, diag.FetchPointer)
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(start, []byte(byteOrderMark)), " \t\r\n")
	for _, s := range strangers {
		if bytes.HasPrefix(text, []byte(s.start)) && (s.ext == "" || strings.EqualFold(filepath.Ext(path), s.ext)) {
			return fmt.Errorf("%s is %s; %s", path, s.what, s.remedy)
		}
	}
	if bytes.IndexByte(start, 0) >= 0 {
		return fmt.Errorf("%s is neither text, Parquet nor a MAT of a trajectory; name a table of comma-separated values", path)
	}
	return nil
}
