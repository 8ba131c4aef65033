package study

import (
	"cmp"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// ParquetFile is the table of rows in a folder as Parquet.
const ParquetFile = "results.parquet"

// WriteParquet writes rows as Parquet, with the columns of [Plan.Columns]. A factor is a DOUBLE if all its values
// are finite numbers, else a STRING; a value that is "" or NaN is null.
func WriteParquet(to io.Writer, p *Plan, rows []Row) error {
	var columns []parquetColumn
	add := func(node parquet.Node, value func(r *Row) parquet.Value) {
		columns = append(columns, parquetColumn{Node: node, name: p.Columns()[len(columns)], value: value})
	}
	whole, double, text := parquet.Leaf(parquet.Int64Type), parquet.Leaf(parquet.DoubleType), parquet.String()
	count := func(of func(r *Row) int) {
		add(whole, func(r *Row) parquet.Value { return parquet.Int64Value(int64(of(r))) })
	}
	words := func(of func(r *Row) string) {
		add(text, func(r *Row) parquet.Value { return parquet.ByteArrayValue([]byte(of(r))) })
	}
	count(func(r *Row) int { return r.ID })
	for i := range p.FactorNames() {
		if slices.ContainsFunc(rows, func(r Row) bool { return r.Values[i] != "" && math.IsNaN(finite(r.Values[i])) }) {
			add(parquet.Optional(text), func(r *Row) parquet.Value {
				if r.Values[i] == "" {
					return parquet.NullValue()
				}
				return parquet.ByteArrayValue([]byte(r.Values[i]))
			})
			continue
		}
		add(parquet.Optional(double), func(r *Row) parquet.Value { return doubleOrNull(finite(r.Values[i])) })
	}
	for i := range p.Quantities {
		add(parquet.Optional(double), func(r *Row) parquet.Value { return doubleOrNull(r.Collected[i]) })
	}
	words(func(r *Row) string { return string(r.Status) })
	words(func(r *Row) string { return r.Reason })
	words(func(r *Row) string { return r.Verdict })
	count(func(r *Row) int { return r.Steps })
	count(func(r *Row) int { return r.Rejected })
	add(double, func(r *Row) parquet.Value { return parquet.DoubleValue(r.Seconds) })
	words(func(r *Row) string { return r.Engine })

	w := parquet.NewWriter(to, parquet.NewSchema("study", parquetTable{parquet.Group{}, columns}), parquet.Compression(&parquet.Snappy))
	record := make(parquet.Row, len(columns))
	for i := range rows {
		for c := range columns {
			v, defined := columns[c].value(&rows[i]), 0
			if columns[c].Optional() && !v.IsNull() {
				defined = 1
			}
			record[c] = v.Level(0, defined, c)
		}
		if _, err := w.WriteRows([]parquet.Row{record}); err != nil {
			return err
		}
	}
	return w.Close()
}

// finite returns the number that a text is; NaN if it is none.
func finite(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(v, 0) {
		return math.NaN()
	}
	return v
}

func doubleOrNull(v float64) parquet.Value {
	if math.IsNaN(v) {
		return parquet.NullValue()
	}
	return parquet.DoubleValue(v)
}

// parquetColumn is a column and where its values come from.
type parquetColumn struct {
	parquet.Node
	name  string
	value func(r *Row) parquet.Value
}

// Name returns the name of the column.
func (c parquetColumn) Name() string { return c.name }

// Value is for Go structs, which are not used.
func (c parquetColumn) Value(base reflect.Value) reflect.Value { return base }

// parquetTable is a group that keeps the order of its columns; [parquet.Group] sorts them by name.
type parquetTable struct {
	parquet.Group
	columns []parquetColumn
}

// Fields returns the columns.
func (t parquetTable) Fields() []parquet.Field {
	out := make([]parquet.Field, len(t.columns))
	for i := range t.columns {
		out[i] = t.columns[i]
	}
	return out
}

// writeParquet writes the rows of a folder, in the order of the design.
func (f *Folder) writeParquet(to io.Writer) error {
	rows := f.Rows()
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Compare(a.ID, b.ID) })
	return WriteParquet(to, f.Plan, rows)
}
