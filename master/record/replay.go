package record

import (
	"fmt"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// Replay returns a column as a function of time (s): a Real is linear between rows, or
// held; the other kinds are held. Before the first row it is the first value, after the
// last row the last one. The cells must suit the kind; errors name file, line and column.
// The function is for one goroutine.
func (s *Signals) Replay(column string, kind master.Kind, held bool) (func(t float64) master.Scalar, error) {
	col, ok := s.Column(column)
	if !ok {
		return nil, fmt.Errorf("%s:1: there is no column %q%s", s.Path, column, diag.DidYouMean(column, s.Names))
	}
	text, err := s.readDiscrete(col, kind)
	if err != nil {
		return nil, err
	}
	return func(t float64) master.Scalar {
		row := s.row(t)
		if kind == master.Real && !held {
			return master.Scalar{Kind: kind, Real: s.linear(col, row, t)}
		}
		row = max(row, 0)
		if kind == master.String {
			return master.Scalar{Kind: kind, Text: text[row]}
		}
		v := s.columns[col][row]
		switch kind {
		case master.Integer:
			return master.Scalar{Kind: kind, Integer: int32(v)}
		case master.Boolean:
			return master.Scalar{Kind: kind, Boolean: v == 1}
		}
		return master.Scalar{Kind: kind, Real: v}
	}, nil
}

// ReplayItems is Replay for an enumeration, whose items have these numbers; a cell is the
// name of one or its number.
func (s *Signals) ReplayItems(column string, items map[string]int32) (func(t float64) master.Scalar, error) {
	col, ok := s.Column(column)
	if !ok {
		return nil, fmt.Errorf("%s:1: there is no column %q%s", s.Path, column, diag.DidYouMean(column, s.Names))
	}
	values, err := s.items(col, items)
	if err != nil {
		return nil, err
	}
	return func(t float64) master.Scalar {
		return master.Scalar{Kind: master.Integer, Integer: values[max(s.row(t), 0)]}
	}, nil
}
