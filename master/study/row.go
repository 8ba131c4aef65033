package study

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/macrostep/macrostep/fmi/diag"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/record"
)

// Status is how a run ended.
type Status string

// The statuses of a row. All but OK have a reason.
const (
	OK       Status = "ok"       // complete, or ended regularly by an FMU or a scenario
	Unstable Status = "unstable" // its values overflowed, or steps were refused down to nothing
	Failed   Status = "failed"
	Crashed  Status = "crashed" // its process ended, again and again
	TimedOut Status = "time limit"
)

// Row is the result of a run in a study.
type Row struct {
	Variant
	// Collected are the quantities in the order of the plan; NaN for those that the run does not have, and
	// all of a run that is not OK.
	Collected []float64
	Status    Status
	Reason    string  // one line; "" = OK, "warning: …" = OK with this warning
	Verdict   string  // on the expectations of the scenario: "none", "met", "not met", "undecided"
	Steps     int     // accepted macro steps
	Rejected  int     // macro steps
	Seconds   float64 // of processor and waiting for the run, on a clock
	Engine    string  // that made the run
	// Curves are the values of the fitted variables, by column of the measurements, of a variant that samples them.
	Curves [][]float64 `json:",omitempty"`
	// Error is the coupling error, of a variant that measures it; nil = it is unknown.
	Error *record.Error `json:",omitempty"`
}

// The columns of every table of rows, after and before factors and quantities.
const (
	columnID       = "run"
	columnStatus   = "status"
	columnReason   = "reason"
	columnVerdict  = "verdict"
	columnSteps    = "steps"
	columnRejected = "rejected"
	columnSeconds  = "seconds"
	columnEngine   = "engine"
)

var fixedColumns = []string{columnID, columnStatus, columnReason, columnVerdict, columnSteps, columnRejected, columnSeconds, columnEngine}

// Columns returns the header of a table of rows.
func (p *Plan) Columns() []string {
	names := append([]string{columnID}, p.FactorNames()...)
	for i := range p.Quantities {
		names = append(names, p.Quantities[i].Name)
	}
	return append(names, fixedColumns[1:]...)
}

// Warn sets the warning of a row that is OK, unless it has one.
func (r *Row) Warn(text string) { r.Reason = cmp.Or(r.Reason, oneLine("warning: "+text)) }

// record returns a row as texts.
func (r *Row) record() []string {
	out := append([]string{strconv.Itoa(r.ID)}, r.Values...)
	for _, v := range r.Collected {
		text := ""
		if !math.IsNaN(v) {
			text = formatNumber(v)
		}
		out = append(out, text)
	}
	return append(out, string(r.Status), r.Reason, r.Verdict, strconv.Itoa(r.Steps), strconv.Itoa(r.Rejected), strconv.FormatFloat(r.Seconds, 'g', 4, 64), r.Engine)
}

// parseRow reads what record has returned.
func (p *Plan) parseRow(fields []string) (Row, error) {
	factors, quantities := len(p.FactorNames()), len(p.Quantities)
	if len(fields) != factors+quantities+len(fixedColumns) {
		return Row{}, fmt.Errorf("%d fields, want %d", len(fields), factors+quantities+len(fixedColumns))
	}
	var r Row
	var err error
	if r.ID, err = strconv.Atoi(fields[0]); err != nil || r.ID < 0 {
		return r, fmt.Errorf("%q is no number of a run", fields[0])
	}
	r.Values, fields = fields[1:1+factors], fields[1+factors:]
	for _, text := range fields[:quantities] {
		v := math.NaN()
		if text != "" {
			if v, err = strconv.ParseFloat(text, 64); err != nil {
				return r, fmt.Errorf("run %d: %w", r.ID, err)
			}
		}
		r.Collected = append(r.Collected, v)
	}
	fields = fields[quantities:]
	r.Status, r.Reason, r.Verdict, r.Engine = Status(fields[0]), fields[1], fields[2], fields[6]
	if r.Steps, err = strconv.Atoi(fields[3]); err == nil {
		if r.Rejected, err = strconv.Atoi(fields[4]); err == nil {
			r.Seconds, err = strconv.ParseFloat(fields[5], 64)
		}
	}
	if err != nil {
		return r, fmt.Errorf("run %d: %w", r.ID, err)
	}
	return r, nil
}

// MarshalJSON writes a number that is not there as null.
func (r Row) MarshalJSON() ([]byte, error) {
	w := wireRow{plainRow: plainRow(r)}
	for i := range r.Collected {
		w.Collected = append(w.Collected, nil)
		if !math.IsNaN(r.Collected[i]) && !math.IsInf(r.Collected[i], 0) {
			w.Collected[i] = &r.Collected[i]
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Row) UnmarshalJSON(data []byte) error {
	var w wireRow
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*r = Row(w.plainRow)
	r.Collected = make([]float64, len(w.Collected))
	for i, v := range w.Collected {
		r.Collected[i] = math.NaN()
		if v != nil {
			r.Collected[i] = *v
		}
	}
	return nil
}

type plainRow Row

type wireRow struct {
	plainRow
	Collected []*float64
}

// writeRows writes rows as CSV.
func writeRows(to io.Writer, rows ...Row) error {
	w := csv.NewWriter(to)
	for i := range rows {
		if err := w.Write(rows[i].record()); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// NoRow returns a row without values of a run that gave none.
func (p *Plan) NoRow(v Variant, status Status, reason string) Row {
	r := Row{Variant: v, Status: status, Reason: oneLine(reason), Verdict: master.NoExpectations, Collected: make([]float64, len(p.Quantities))}
	for i := range r.Collected {
		r.Collected[i] = math.NaN()
	}
	return r
}

// longestReason bounds a reason in bytes.
const longestReason = 2000

// oneLine joins the lines of a message, and shortens a long one.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return diag.Clip(strings.Join(lines, "; "), longestReason)
}
