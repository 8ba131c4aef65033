package page

import (
	"slices"
	"strconv"
)

// drawnMap is the data of a map in the template.
type drawnMap struct {
	Map
	Fine   bool       // the cells are too many to have texts
	Shown  []drawnRow // from the top
	Labels []spanned  // below the columns
}

type drawnRow struct {
	Label string
	Cells []drawnCell
}

type drawnCell struct {
	MapCell
	Percent string // of the colour; "" = there is no value
}

type spanned struct {
	Text string
	Span int
}

// A map with more than mostTexts columns has no texts in its cells, and at most mostSpanned labels of columns.
const (
	mostTexts   = 24
	mostSpanned = 12
)

func (m Map) draw() drawnMap {
	d := drawnMap{Map: m, Fine: len(m.Columns) > mostTexts}
	every := 1
	if d.Fine {
		every = (len(m.Columns) + mostSpanned - 1) / mostSpanned
	}
	for i := 0; i < len(m.Columns); i += every {
		d.Labels = append(d.Labels, spanned{m.Columns[i], min(every, len(m.Columns)-i)})
	}
	for _, r := range m.Rows {
		row := drawnRow{Label: r.Label}
		for _, c := range r.Cells {
			cell := drawnCell{MapCell: c}
			if c.Part == c.Part {
				cell.Percent = strconv.FormatFloat(100*min(max(c.Part, 0), 1), 'f', 1, 64)
			}
			row.Cells = append(row.Cells, cell)
		}
		d.Shown = append(d.Shown, row)
	}
	slices.Reverse(d.Shown)
	return d
}
