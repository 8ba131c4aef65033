package page

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/macrostep/macrostep/master/study"
)

// sent is an executor whose rows come from somewhere else. Those that are wrong count as failed runs.
type sent struct {
	plan *study.Plan
	rows []study.Row
}

func (s sent) Run(_ context.Context, variants []study.Variant, done func(study.Row) error) error {
	for k, v := range variants {
		r := s.rows[k%len(s.rows)]
		r.Values, r.Collected = slices.Clone(v.Values), slices.Clone(r.Collected)
		r.Variant = v
		if err := s.plan.CheckRow(v, &r); err != nil {
			r = s.plan.NoRow(v, study.Failed, err.Error())
			if err := s.plan.CheckRow(v, &r); err != nil {
				return err
			}
		}
		if err := done(r); err != nil {
			return err
		}
	}
	return nil
}

// Whatever rows are sent, a study is evaluated, written and shown if they pass the check.
func FuzzRows(f *testing.F) {
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "m.csv"), []byte("time,a.z,a.y\n0,1,2\n1,2,1\n2,4,1\n3,4.5,2\n"), 0o666); err != nil {
		f.Fatal(err)
	}
	var plans []*study.Plan
	for _, text := range []string{
		small,
		"{system: s, vary: {a.x: [1, 2, 3], a.y: 'linear(0, 1, 3)'}, collect: {u: final(a.z), w: mean(a.z)}, check: 3}",
		"{system: s, vary: {a.x: 'linear(0, 1)', a.y: 'linear(0, 1)'}, design: morris, samples: 3, collect: {u: final(a.z), w: mean(a.z)}}",
		"{system: s, vary: {a.x: 'linear(0, 1)', a.y: 'log(1, 2)'}, design: saltelli, samples: 4, collect: {u: final(a.z), w: mean(a.z)}}",
		"{system: s, vary: {a.x: 'linear(0, 1)', a.y: 'log(1, 2)'}, optimise: {fit: m.csv, evaluations: 9, method: cma-es}, check: 2}",
		"{system: s, vary: {a.x: 'linear(0, 1)', a.y: 'log(1, 2)'}, optimise: {fit: m.csv, evaluations: 9}}",
		"{system: s, vary: {a.x: 'linear(0, 1)', a.y: 'log(1, 2)'}, optimise: {maximise: u, evaluations: 9, method: l-bfgs}, collect: {u: final(a.z), w: mean(a.z)}}",
		"{system: s, convergence: {of: [u, w], from: 1, most: 5}, collect: {u: final(a.z), w: mean(a.z)}}",
	} {
		p, err := study.Parse(filepath.Join(dir, "plan.yaml"), []byte(text), nil)
		if err != nil {
			f.Fatal(err)
		}
		plans = append(plans, p)
	}
	for k := range plans {
		for _, rows := range []string{
			`[{"Collected":[1,2],"Status":"ok","Verdict":"none"},{"Collected":[3,null],"Status":"ok","Verdict":"met","Reason":"warning: x"}]`,
			`[{"Collected":[1,2],"Status":"ok","Verdict":"none","Curves":[[1,2,3,4],[2,1,1,2.5]],"Error":{"worst":0.1,"where":"a.z","limit":0.05,"variables":{"a.z":{"relative":0.1,"moments":{}}}}},
			{"Collected":[1.5,2],"Status":"ok","Verdict":"none","Curves":[[1,2,3,4.5],[2,1,1,2]],"Error":{"unknown":"x"}},{"Status":"failed","Reason":"x","Verdict":"none","Collected":[null,null]}]`,
			`[{"Collected":[1e308,-1e308],"Status":"ok","Verdict":"none","Curves":[[1e308,-1e308,1e308,1],[2,1,1,2]]},{"Collected":[-1e308,5e-324],"Status":"ok","Verdict":"none","Curves":[[1,-1e308,1e-308,1],[2,1,1,2]],
			"Seconds":1e308,"Steps":9223372036854775807}]`,
			`[{"Collected":[],"Status":"ok"}]`,
		} {
			f.Add(byte(k), []byte(rows))
		}
	}
	f.Fuzz(func(t *testing.T, k byte, data []byte) {
		var rows []study.Row
		if json.Unmarshal(data, &rows) != nil || len(rows) == 0 {
			return
		}
		p := plans[int(k)%len(plans)]
		for i := range rows {
			_ = p.CheckRow(study.Variant{ID: i}, &rows[i])
		}
		s := &study.Study{Plan: p}
		found, err := s.Run(t.Context(), sent{p, rows})
		if err != nil && p.Optimise == nil {
			t.Fatal(err)
		}
		r := study.Summarise(p, found)
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
		if err := study.WriteParquet(io.Discard, p, found.Rows); err != nil {
			t.Error(err)
		}
		if err := Write(io.Discard, &Page{Title: "t", Plan: p, Report: r, Rows: found.Rows, State: Complete}); err != nil {
			t.Error(err)
		}
	})
}
