package test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/algorithms/analyze"
)

// The steps at which algorithms settle that choose them are those of runs of the FMUs: by the number of steps over the horizon, to
// a tenth. Where the solver inside an FMU makes an error estimate see another thing, that is told; where the tolerance cannot
// be kept, it is.
func testAnalyzeVarying(t *testing.T) {
	for _, c := range []struct {
		name    string
		presets []string // told of
		unknown []string
		fails   []string
	}{
		{"two-mass-ff", []string{"ex-local", "ex-milne", "im-milne", "im-slocal", "richardson", "predictor-corrector", "ecco"}, nil, nil},
		{"quarter-car-b", []string{"predictor-corrector", "ecco"}, []string{"ex-milne", "im-milne", "richardson"}, []string{"ex-slocal"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := system(t, c.name)
			r := analysis(t, path, "--order", "1")
			for _, preset := range slices.Concat(c.presets, c.unknown, c.fails) {
				at := slices.IndexFunc(r.Varying, func(v analyze.Varying) bool { return v.Preset == preset })
				if at < 0 {
					t.Errorf("nothing is told of %s", preset)
					continue
				}
				v := &r.Varying[at]
				if slices.Contains(c.unknown, preset) {
					if !strings.Contains(v.Why, "the solver inside") {
						t.Errorf("%s: %+v", preset, v)
					}
					continue
				}
				if len(v.Settled) == 0 {
					t.Errorf("%s: %+v", preset, v)
					continue
				}
				s := v.Settled[len(v.Settled)-1]
				args := []string{path, "--algorithm", preset, "--param", fmt.Sprintf("%s=%g", v.Tolerance, s.Tolerance), "--param", "order=" + v.Order,
					"--stop-time", fmt.Sprint(r.Horizon), "--record", "none"}
				for _, b := range r.Structure.Bonds {
					if preset == "ecco" && !b.Declared {
						args = append(args, "--bond", b.Name+"="+strings.Join(b.Pairs, ","))
					}
				}
				got := run(t, args...)
				if fails := slices.Contains(c.fails, preset); fails != (s.Fails != "") || fails != (got.code != 0) {
					t.Errorf("%s: %+v, and a run has exit code %d\n%s", preset, s, got.code, got.output)
					continue
				}
				if n := float64(got.manifest.Steps.Accepted); math.Abs(float64(s.Accepted)-n) > 0.1*n {
					t.Errorf("%s, %s=%g: %d steps are expected, and %g are taken", preset, v.Tolerance, s.Tolerance, s.Accepted, n)
				}
			}
		})
	}
}

// A run with --analyze is told what to expect of its own algorithm and parameters, whatever they are.
func testAnalyzeOwn(t *testing.T) {
	t.Parallel()
	o := run(t, system(t, "two-mass-fd"), "--algorithm", "im-milne", "--param", "control.rtol=1e-3", "--analyze", "--record", "none")
	if o.code != 0 || !strings.Contains(o.output, "analysis: im-milne: steps of 0.00") || !strings.Contains(o.output, "expected error") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
	o = run(t, system(t, "quarter-car-b"), "--algorithm", "ex-slocal", "--analyze", "--record", "none")
	if o.code == 0 || !strings.Contains(o.warnings(), "analysis: the run is expected to fail: t = ") {
		t.Errorf("exit code %d\n%s", o.code, o.output)
	}
}
