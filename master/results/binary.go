package results

import (
	"fmt"
	"io"
	"math"
)

// binary reads a Parquet or MAT file of size bytes.
func (p *parser) binary(file io.ReaderAt, size int64, parquet bool) (*Table, error) {
	what, open := "a MAT", p.openMat
	if parquet {
		what, open = "Parquet", p.openParquet
	}
	failed := func(err error) error {
		return fmt.Errorf("%s cannot be read as %s: %w; name a complete file, or write it again", p.t.Path, what, err)
	}
	var source source
	err := guarded(func() (err error) {
		source, err = open(file, size)
		return err
	})
	if err != nil {
		return nil, failed(err)
	}
	if err := p.readHeader(source.names(), p.options); err != nil || p.options.header {
		return p.t, err
	}
	p.texts = make([]int, p.fields)
	if err := p.bound(source.rows()); err != nil {
		return nil, err
	}
	if err := guarded(func() error { return source.read(p) }); err != nil {
		return nil, failed(err)
	}
	if err := p.takeTimes(); err != nil {
		return nil, err
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return p.t, nil
}

// source is an open binary file.
type source interface {
	names() []string
	rows() int
	// read reads the values of the columns that are kept. A column that holds no numbers is marked in p.texts.
	read(p *parser) error
}

// guarded turns a panic into an error: parquet-go panics on some invalid files.
func guarded(f func() error) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("it is damaged: %v", broken)
		}
	}()
	return f()
}

// takeTimes makes the values of the time column the times of the table.
func (p *parser) takeTimes() error {
	c, path := &p.t.Columns[p.timeAt], p.t.Path
	if p.texts[p.timeAt] > 0 {
		return fmt.Errorf("%s: column %s holds no numbers; name a column with the time in seconds", path, c.Name)
	}
	times := make([]float64, len(c.Values)) // a column of a MAT may share its values with others
	for i, at := range c.Values {
		switch {
		case math.IsNaN(at) || math.IsInf(at, 0):
			return fmt.Errorf("%s: the time in row %d is %g; it must be a finite number", path, i+1, at)
		case i > 0 && at < c.Values[i-1]:
			return fmt.Errorf("%s: the time %g in row %d is before that of the row above; sort the rows by time", path, at, i+1)
		}
		times[i] = at * p.scale
	}
	p.t.Times, c.Values = times, nil
	return nil
}
