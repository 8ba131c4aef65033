package study

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/macrostep/macrostep/fmi/diag"
)

// Table is a table of texts.
type Table struct {
	Names []string
	Rows  [][]string
}

// readTable reads a CSV file with a header.
func readTable(path string) (*Table, error) {
	file, err := diag.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t, err := decodeTable(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func decodeTable(from io.Reader) (*Table, error) {
	data, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) { // its texts could not be sent to engines
		return nil, errors.New("the table has bytes that are not UTF-8; save it as UTF-8")
	}
	rows, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte(byteOrderMark)))).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 2 {
		return nil, errors.New("the table has no rows; give a header with names and a row per run")
	}
	t := &Table{Names: rows[0], Rows: rows[1:]}
	for i, name := range t.Names {
		if t.Names[i] = strings.TrimSpace(name); t.Names[i] == "" || slices.Contains(t.Names[:i], t.Names[i]) {
			return nil, fmt.Errorf("column %d of the header has the name %q, which is empty or used twice", i+1, name)
		}
	}
	return t, nil
}

// column returns the index of a column.
func (t *Table) column(name string) (int, error) {
	i := slices.Index(t.Names, name)
	if i < 0 {
		return 0, fmt.Errorf("there is no column %q%s", name, diag.DidYouMean(name, t.Names))
	}
	return i, nil
}
