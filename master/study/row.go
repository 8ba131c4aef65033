package study

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
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

var (
	statuses = []Status{OK, Unstable, Failed, Crashed, TimedOut}
	verdicts = []string{master.NoExpectations, master.ExpectationsMet, master.ExpectationsNotMet, master.ExpectationsUndecided}
)

// warningPrefix begins the reason of a row that is OK.
const warningPrefix = "warning: "

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
func (r *Row) Warn(text string) { r.Reason = cmp.Or(r.Reason, oneLine(warningPrefix+text)) }

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
	for _, text := range []*string{&r.Reason, &r.Engine} {
		if !isLine(*text) { // of an earlier version
			*text = oneLine(*text)
		}
	}
	if r.Steps, err = strconv.Atoi(fields[3]); err == nil {
		if r.Rejected, err = strconv.Atoi(fields[4]); err == nil {
			r.Seconds, err = strconv.ParseFloat(fields[5], 64)
		}
	}
	if err != nil {
		return r, fmt.Errorf("run %d: %w", r.ID, err)
	}
	if err = p.checkShape(&r); err != nil {
		return r, fmt.Errorf("run %d %w", r.ID, err)
	}
	return r, nil
}

// CheckRow returns what is wrong with a row as that of a variant, nil if nothing is. A row that was made elsewhere passes it before it is part of
// a study: what evaluates rows relies on it.
func (p *Plan) CheckRow(v Variant, r *Row) error {
	var err error
	switch {
	case r.ID != v.ID || r.Samples != v.Samples:
		err = fmt.Errorf("is of another, %s", r.Variant)
	case !slices.Equal(r.Values, v.Values):
		err = fmt.Errorf("has factors with the values %s, not %s", quoted(r.Values), quoted(v.Values))
	default:
		err = cmp.Or(p.checkShape(r), p.checkCurves(r))
	}
	if err == nil && r.Error != nil {
		if err = checkError(r.Error); !v.checks() {
			err = errors.New("has a coupling error, which its run does not measure")
		}
	}
	if err != nil {
		return fmt.Errorf("the row of %s %w", v, err)
	}
	return nil
}

// checkShape returns what is wrong with a row of any run. The error is a sentence without its subject.
func (p *Plan) checkShape(r *Row) error {
	if len(r.Collected) != len(p.Quantities) {
		return fmt.Errorf("has %d values for %d quantities", len(r.Collected), len(p.Quantities))
	}
	for i, v := range r.Collected {
		if math.IsInf(v, 0) {
			return fmt.Errorf("has an infinite value of %s", p.Quantities[i].Name)
		}
		if v == v && r.Status != OK {
			return fmt.Errorf("has a value of %s, and its status %s is not %s", p.Quantities[i].Name, quoted(r.Status), OK)
		}
	}
	switch {
	case !slices.Contains(statuses, r.Status):
		return fmt.Errorf("has the unknown status %s", quoted(r.Status))
	case !slices.Contains(verdicts, r.Verdict):
		return fmt.Errorf("has the unknown verdict %s", quoted(r.Verdict))
	case !isLine(r.Reason):
		return fmt.Errorf("has a reason that is too long, or not one line of text: %s", quoted(r.Reason))
	case r.Status == OK && r.Reason != "" && !strings.HasPrefix(r.Reason, warningPrefix):
		return fmt.Errorf("is %s for a reason that is no warning: %s", OK, quoted(r.Reason))
	case r.Status != OK && r.Reason == "":
		return fmt.Errorf("has the status %s without a reason", r.Status)
	case !isLine(r.Engine):
		return fmt.Errorf("has an engine with a name that is too long, or not one line of text: %s", quoted(r.Engine))
	case r.Steps < 0, r.Rejected < 0:
		return fmt.Errorf("has less than 0 steps: %d accepted, %d rejected", r.Steps, r.Rejected)
	case r.Seconds < 0, r.Seconds-r.Seconds != 0:
		return fmt.Errorf("took the impossible time of %g s", r.Seconds)
	}
	return nil
}

// LongestRow bounds the row of a variant in bytes of JSON.
func (p *Plan) LongestRow(v Variant) int64 {
	const number, others = 32, 256 << 10
	n := int64(others + number*len(p.Quantities))
	for _, value := range v.Values {
		n += 6 * int64(len(value)) // escaped
	}
	if v.Samples && p.Optimise != nil {
		for _, fit := range p.Optimise.Fit {
			if i, err := p.quantity(fit.Quantity); err == nil {
				n += number * int64(p.Quantities[i].points())
			}
		}
	}
	return n
}

// checkCurves returns what is wrong with the curves of a row: certainty compares them with the measurements, point by point.
func (p *Plan) checkCurves(r *Row) error {
	if !r.Samples || r.Status != OK || p.Optimise == nil {
		if len(r.Curves) > 0 {
			return errors.New("has curves of fitted variables, which its run does not have")
		}
		return nil
	}
	if len(r.Curves) != len(p.Optimise.Fit) {
		return fmt.Errorf("has the curves of %d variables, of %d that are fitted", len(r.Curves), len(p.Optimise.Fit))
	}
	for c, fit := range p.Optimise.Fit {
		i, err := p.quantity(fit.Quantity)
		if err != nil {
			return err
		}
		if want := p.Quantities[i].points(); len(r.Curves[c]) != want {
			return fmt.Errorf("has a curve of %d points for %s, which has %d", len(r.Curves[c]), fit.Quantity, want)
		}
		if slices.ContainsFunc(r.Curves[c], notFinite) {
			return fmt.Errorf("has a curve for %s that is infinite or NaN at some point", fit.Quantity)
		}
	}
	return nil
}

// checkError returns what is wrong with a coupling error.
func checkError(e *record.Error) error {
	texts, numbers := []string{e.Where, e.Unknown, e.Reference}, []*float64{e.Worst, &e.Limit, e.Determined, &e.Until}
	for name, v := range e.Variables {
		texts = append(texts, name, v.Unit)
		numbers = append(numbers, v.Relative, &v.Absolute, &v.Largest, &v.Shift)
		if m := v.Moments; m != nil {
			numbers = append(numbers, &m.Mean, &m.RMS, &m.Lowest, &m.Highest)
		}
	}
	for _, text := range texts {
		if !isLine(text) {
			return fmt.Errorf("has a coupling error with a text that is too long, or not one line: %s", quoted(text))
		}
	}
	for _, x := range numbers {
		if x != nil && notFinite(*x) {
			return errors.New("has a coupling error with a number that is infinite or NaN")
		}
	}
	switch {
	case (e.Worst == nil) != (e.Unknown != ""):
		return errors.New("has a coupling error that is not either known or unknown for a reason")
	case e.Worst != nil && *e.Worst < 0, e.Limit < 0, e.Runs < 0:
		return errors.New("has a coupling error with a number below 0")
	}
	return nil
}

func notFinite(v float64) bool { return v-v != 0 }

// longestQuote bounds what a message quotes of a row, in bytes.
const longestQuote = 200

// quoted returns a text for a message, in quotes and with escapes; of several, a list.
func quoted[T ~string | ~[]string](text T) string {
	return strconv.Quote(diag.Clip(fmt.Sprint(text), longestQuote))
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

// NoRow returns a row without values of a run that gave none. Without a status but OK, there is no reason.
func (p *Plan) NoRow(v Variant, status Status, reason string) Row {
	r := Row{Variant: v, Status: OK, Verdict: master.NoExpectations, Collected: make([]float64, len(p.Quantities))}
	for i := range r.Collected {
		r.Collected[i] = math.NaN()
	}
	if status != OK {
		r.end(status, reason)
	}
	return r
}

// end sets how a run ended that is not OK.
func (r *Row) end(status Status, reason string) {
	r.Status, r.Reason = status, cmp.Or(oneLine(reason), "no reason is known")
}

// longestText bounds a reason and the other texts of a row in bytes.
const longestText = 2000

// oneLine joins the lines of a message, escapes what could control a terminal, and shortens a long one.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")); line != "" {
			lines = append(lines, line)
		}
	}
	return diag.Clip(diag.Visible(strings.Join(lines, "; ")), longestText)
}

// isLine reports whether a text is such as oneLine returns.
func isLine(text string) bool {
	return len(text) <= longestText+len("…") && !strings.ContainsAny(text, "\t\n") && diag.Visible(text) == text
}
