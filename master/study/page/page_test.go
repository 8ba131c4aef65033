package page

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/master/study"
)

// evil is a name that must not become markup.
const evil = `</script><script>alert(1)</script><img src=x onerror=alert(2)>"'&` + "`" + `</title>-->{{.}}`

// studied returns a page of a plan whose runs give rows; of makes the row of a run complete.
func studied(t testing.TB, text string, of func(r *study.Row)) *Page {
	t.Helper()
	p, err := study.Parse("plan.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	design := &study.Variants{}
	if p.Optimise == nil && p.Convergence == nil {
		if design, err = p.Variants(); err != nil {
			t.Fatal(err)
		}
	}
	var rows []study.Row
	for _, v := range design.List {
		r := p.NoRow(v, study.OK, "")
		of(&r)
		rows = append(rows, r)
	}
	return &Page{Title: "title", Plan: p, Report: study.Summarise(p, &study.Findings{Rows: rows}), Rows: rows, Total: len(rows), State: Complete}
}

func written(t testing.TB, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if m := regexp.MustCompile(`NaN|Inf|ZgotmplZ|%!`).FindString(regexp.MustCompile(`(?s)<script.*?</script>`).ReplaceAllString(text, "")); m != "" {
		t.Errorf("the page has %s", m)
	}
	return text
}

// has checks that a page has parts.
func has(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the page has no %q", part)
		}
	}
}

const small = `
system: s.ssp
vary: {a.x: "linear(0, 1, 5)", run.algorithm: [explicit, implicit]}
collect: {peak: final(a.z), late: "crossing(a.z, 1)"}
`

// Names and reasons come from files of anybody.
func TestEscaped(t *testing.T) {
	name, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	p := studied(t, fmt.Sprintf("{system: s, vary: {%[1]s: [1, 2, 3], b.x: [%[1]s, 2]}, collect: {%[1]s: final(a.z), q: final(a.z)}}", name), func(r *study.Row) {
		r.Collected = []float64{float64(r.ID), math.Inf(1)}
		if r.ID == 0 {
			r.Status, r.Reason, r.Engine = study.Failed, evil, evil
		}
	})
	p.Title, p.Made, p.Plan.System = evil, evil, evil
	text := written(t, p)
	for _, part := range []string{"<script>alert", "<img", `onerror=alert(2)>"`, "</script><script"} {
		if strings.Contains(text, part) {
			t.Errorf("the page has %s", part)
		}
	}
	if n := strings.Count(text, "<script"); n != 3 {
		t.Errorf("%d scripts", n)
	}
	d := xml.NewDecoder(strings.NewReader(regexp.MustCompile(`(?s)<(style|script).*?</(style|script)>`).ReplaceAllString(text, "")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// The data of the scatter matrix has the rows that are OK, null for what is missing, and as many digits as tell the
// values apart.
func TestData(t *testing.T) {
	p := studied(t, small, func(r *study.Row) {
		r.Collected = []float64{1e6 + 1e-3*float64(r.ID), math.NaN()}
		if r.ID == 3 {
			r.Collected[0] = math.Inf(-1)
		}
		if r.ID == 4 {
			r.Status, r.Reason = study.Crashed, "it crashed"
		}
	})
	text := written(t, p)
	m := regexp.MustCompile(`(?s)<script type="application/json" id="rows">(.*?)</script>`).FindStringSubmatch(text)
	if m == nil {
		t.Fatal("there are no data")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(m[1])); err != nil {
		t.Fatal(err)
	}
	const want = `{"factors":2,"runs":[0,1,2,3,5,6,7,8,9],"columns":[` +
		`{"name":"a.x","ends":[0,1],"values":[0,0,0.25,0.25,0.5,0.75,0.75,1,1]},` +
		`{"name":"run.algorithm","ends":[0,1],"labels":["explicit","implicit"],"values":[0,1,0,1,1,0,1,0,1]},` +
		`{"name":"peak","ends":[1000000,1000000.01],"values":[1000000,1000000.001,1000000.002,null,1000000.005,1000000.006,1000000.007,1000000.008,1000000.009]},` +
		`{"name":"late","ends":[0,0],"values":[null,null,null,null,null,null,null,null,null]}]}`
	if got := compact.String(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	has(t, text, "it crashed", "Left out: 1 of 10 runs, which are not ok.", "1 (10 %)", "nothing to draw", "<td>1000000.009</td>")
}

// Units and the values in the system are shown with the factors and quantities.
func TestUnits(t *testing.T) {
	p := studied(t, "{system: s, vary: {a.x: 'linear(1, 9, 9)', a.on: [true, false]}, collect: {peak: final(a.z)}}", func(r *study.Row) { r.Collected = []float64{float64(r.ID)} })
	p.Plan.Units, p.Plan.Starts = map[string]string{"a.x": "N", "peak": "m/s"}, map[string]string{"a.x": "4"}
	has(t, written(t, p), "<td>a.x [N]</td><td class=\"long\">1 to 9, linear(1, 9, 9)</td><td>4</td>", "<td>a.on</td><td>true, false</td><td>–</td>",
		`"name":"peak [m/s]"`, "Mean of peak [m/s]", "<td>peak [m/s]</td>")
}

// Each quantity of a grid of two factors has a map over both, without the runs that are not ok.
func TestMaps(t *testing.T) {
	const plan = "{system: s, vary: {a.x: [3, 1, 2.5], a.on: [true, false]}, collect: {q: final(a.z), none: final(a.y)}}"
	text := written(t, studied(t, plan, func(r *study.Row) {
		if r.Collected = []float64{10 * float64(r.ID), math.NaN()}; r.ID == 5 { // 2, false
			r.Status = study.Failed
		}
	}))
	// x: 1, 2, 3; y: true below false. Run 0 is the least (3, true), run 4 the greatest (2, true).
	const upper = `<tr><th scope="row">false</th><td style="--part:75.0%">30</td><td class="none">–</td><td style="--part:25.0%">10</td></tr>`
	const lower = `<tr><th scope="row">true</th><td style="--part:50.0%">20</td><td style="--part:100.0%">40</td><td style="--part:0.0%">0</td></tr>`
	const labels = `<th scope="col">1</th><th scope="col">2.5</th><th scope="col">3</th>`
	has(t, text, "<h2>Both factors</h2>", upper+"\n"+lower, labels, `<p class="scale">0 <i></i> 40</p>`, ">↑ a.on<")
	if n := strings.Count(text, `class="scale"`); n != 1 {
		t.Errorf("%d maps", n)
	}
	if strings.Contains(written(t, studied(t, small, func(r *study.Row) { r.Collected = []float64{1, math.NaN()} })), `--part:100`) {
		t.Error("equal values are not all the least")
	}
}

// The page of a running study loads itself again; the others do not.
func TestStates(t *testing.T) {
	p := studied(t, small, func(r *study.Row) { r.Collected = []float64{1, 2} })
	for _, tt := range []struct {
		state       State
		total       int
		shown, tone string
		refresh     bool
	}{
		{Complete, 10, "complete", "good", false},
		{Running, 2000, "running: 10 of 2000", "active", true},
		{Running, 0, "running: 10", "active", true},
		{Interrupted, 20, "interrupted: 10 of 20", "doubtful", false},
	} {
		p.State, p.Total = tt.state, tt.total
		text := written(t, p)
		has(t, text, fmt.Sprintf(`class="state %s">%s</span>`, tt.tone, tt.shown), "default-src &#39;none&#39;")
		if strings.Contains(text, `http-equiv="refresh" content="5"`) != tt.refresh {
			t.Errorf("%s: refresh is not %v", tt.shown, tt.refresh)
		}
	}
	p.Rows = append(p.Rows[:9:9], study.Row{Variant: study.Variant{Values: []string{"1", "implicit"}}, Status: study.Failed})
	p.State = Complete
	has(t, written(t, p), `class="state doubtful">complete, 1 of 10 runs not ok</span>`)
	// Before the first run.
	written(t, &Page{Title: "t", Plan: p.Plan, Report: study.Summarise(p.Plan, &study.Findings{}), State: Running, Total: 10})
}

// Of a study with more rows than a page holds, a part is drawn, evenly.
func TestMany(t *testing.T) {
	p := studied(t, "{system: s, vary: {a.x: 'uniform(0, 1)'}, samples: 25000, collect: [final(a.z)]}", func(r *study.Row) { r.Collected = []float64{float64(r.ID)} })
	text := written(t, p)
	has(t, text, "10000 of 25000 runs are drawn.", `"runs":[0,2,5,`, `,24997]`)
	if len(text) > 400_000 {
		t.Errorf("%d bytes", len(text))
	}
}

func TestSensitivity(t *testing.T) {
	of := func(r *study.Row) {
		if r.Collected = []float64{float64(len(r.Values[0]))}; r.ID == 2 {
			r.Status = study.TimedOut
		}
	}
	has(t, written(t, studied(t, "{system: s, vary: {a.x: 'uniform(0, 1)', a.y: 'uniform(0, 1)'}, design: morris, samples: 20, collect: [final(a.z)]}", of)),
		"Elementary effects", "a.y on final(a.z)", "Left out: 1 of the trajectories")
	has(t, written(t, studied(t, "{system: s, vary: {a.x: 'uniform(0, 1)', a.y: 'uniform(0, 1)'}, design: saltelli, samples: 20, collect: [final(a.z)]}", of)),
		"Sobol indices", "a.x on final(a.z)", "±", "Left out: 1 of the samples")
}

// The best goal so far goes down, or up, over the runs.
func TestOptimum(t *testing.T) {
	for _, goal := range []string{"minimise", "maximise"} {
		p := studied(t, "{system: s, vary: {a.x: 'linear(0, 1)'}, collect: {q: final(a.z)}, optimise: {"+goal+": q}}", nil)
		for i, v := range []float64{3, 2, math.NaN(), 2.5} {
			r := p.Plan.NoRow(study.Variant{ID: i, Values: []string{"0.5"}}, study.OK, "")
			if r.Collected[0] = v; v != v {
				r.Status = study.Failed
			}
			p.Rows = append(p.Rows, r)
		}
		p.Report = study.Summarise(p.Plan, &study.Findings{Rows: p.Rows, Optimum: &study.Optimum{Row: p.Rows[1], Goal: 2, Runs: 4, Ended: "evil <b>", Method: "nelder-mead"}})
		text := written(t, p)
		has(t, text, "Run 1 is the best of 4: goal 2.", "evil &lt;b&gt;")
		m := regexp.MustCompile(`class="line other" d="([^"]*)"`).FindStringSubmatch(text)
		if m == nil {
			t.Fatal("the best goal is not drawn")
		}
		steps := regexp.MustCompile(`\d+ (\d+)`).FindAllStringSubmatch(m[1], -1)
		if first, last := steps[0][1], steps[len(steps)-1][1]; (first != last) != (goal == "minimise") || goal == "minimise" && len(steps) != 4 {
			t.Errorf("%s: the best goal is %s", goal, m[1])
		}
	}
}

// The page of a fit shows how certain its values are, and the best run beside the measurements, but not the search.
func TestFit(t *testing.T) {
	p := studied(t, "{system: s, vary: {a.x: 'linear(0, 1)', a.y: 'linear(0, 1)'}, collect: {q: final(a.z)}, optimise: {minimise: q}}", nil)
	row := p.Plan.NoRow(study.Variant{Values: []string{"0.5", "0.25"}}, study.OK, "")
	row.Collected[0] = 2
	p.Rows = []study.Row{row}
	p.Plan.Optimise.Fit = []study.Fit{{Quantity: "q", Scale: 10}}
	p.Report = study.Summarise(p.Plan, &study.Findings{Rows: p.Rows, Optimum: &study.Optimum{Row: row, Goal: 0.04, Runs: 7, Ended: "converged", Method: "nelder-mead"},
		Fit: &study.Certainty{
			Parameters: []study.Parameter{{Factor: "a.x", Value: 0.5, StandardError: 0.0123, Low: 0.476, High: 0.524},
				{Factor: "a.y", Value: 0.25, StandardError: study.Number(math.NaN())}},
			Correlations: [][]study.Number{{1, study.Number(math.NaN())}, {study.Number(math.NaN()), study.Number(math.NaN())}},
			Columns:      []study.FittedColumn{{Variable: "a.z", Deviation: 0.2, Range: 10, Time: []float64{0, 1}, Measured: []float64{1, 2}, Fitted: []float64{1.5, 1.75}}},
			Warnings:     []string{"evil <b>"},
		}})
	text := written(t, p)
	has(t, text, "Run 0 fits best", "0.476 to 0.524", "0.012", "Correlations", "evil &lt;b&gt;", "measured (points)", "best run − measured", "<td>2 %</td>")
	if strings.Contains(text, "Effects of the factors") || strings.Contains(text, "best so far") {
		t.Error("the page shows the search")
	}
}

func TestConvergence(t *testing.T) {
	p := studied(t, "{system: s, collect: {q: final(a.z)}, convergence: {from: 0.1}}", nil)
	nan := study.Number(math.NaN())
	p.Report = study.Summarise(p.Plan, &study.Findings{Settled: []study.Settled{{Quantity: "q", Settings: []float64{0.1, 0.05, 0.025},
		Values: []study.Number{1.4, 1.1, 1.025}, Changes: []study.Number{nan, -0.3, -0.075}, Orders: []study.Number{nan, nan, 2}, Settled: true}}})
	text := written(t, p)
	has(t, text, "q: settled", "observed order 2<", "<td>-0.075</td>", `class="points "`)
	if strings.Contains(text, "id=\"scatter\"") {
		t.Error("there is a scatter matrix")
	}
}
