package record

import (
	"fmt"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
)

// Replay returns a column as a function of time (s): a Real that is not discrete is linear between rows, all else is
// held. It has the first value before the first row and the last value after the last row. The cells must be values
// of the port; errors name file, line and column.
func (s *Signals) Replay(column string, p master.Port) (func(t float64) master.Scalar, error) {
	col, err := s.find(column)
	if err != nil {
		return nil, err
	}
	value, err := s.held(col, p)
	if err != nil {
		return nil, err
	}
	return func(t float64) master.Scalar {
		row := s.row(t)
		if p.Kind == master.Real && !p.Discrete {
			return master.Scalar{Real: s.linear(col, row, t)}
		}
		return value(max(row, 0))
	}, nil
}

// find returns the index of the column with this name.
func (s *Signals) find(column string) (int, error) {
	if col, ok := s.Column(column); ok {
		return col, nil
	}
	return 0, fmt.Errorf("%s:1: there is no column %q%s", s.Path, column, diag.DidYouMean(column, s.Names))
}

// ReplayItems is like Replay for an enumeration with these items. A cell is the name or the
// number of an item.
func (s *Signals) ReplayItems(column string, items map[string]int64) (func(t float64) master.Scalar, error) {
	col, err := s.find(column)
	if err != nil {
		return nil, err
	}
	values, err := s.items(col, items)
	if err != nil {
		return nil, err
	}
	return func(t float64) master.Scalar {
		return master.Scalar{Kind: master.Integer, Integer: values[max(s.row(t), 0)]}
	}, nil
}
