//go:build linux

package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// studied makes the page of a study of 10000 runs of 5 factors and 5 quantities. Only two runs are made: the
// rows of all are written into the folder, and the study is resumed.
func studied(t *testing.T) (path string) {
	t.Helper()
	dir := t.TempDir()
	folder := filepath.Join(dir, "wide")
	system, err := filepath.Abs(filepath.Join(systems, "quarter-car-a.ssp"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 10_000
	const factors = "wheel.k_w,wheel.d_c,wheel.m_w,chassis.m_c,wheel.k_c"
	const quantities = "maximum(chassis.v_c),rms(wheel.F_c),final(chassis.z_c),minimum(chassis.v_c),mean(wheel.F_c)"
	plan := fmt.Sprintf("{system: %q, run: {stop-time: 0.01}, table: cases.csv, collect: [%s]}", system, quantities)
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "quarter-car-a-study.yaml"), []byte(plan), 0o666),
		os.WriteFile(filepath.Join(dir, "cases.csv"), []byte(factors+"\n1,1,1,1,1\n2,2,2,2,2\n"), 0o666)); err != nil {
		t.Fatal(err)
	}
	macrostep(t, "study", filepath.Join(dir, "quarter-car-a-study.yaml"), "--output", folder)
	var index struct{ Plan string }
	data, err := os.ReadFile(filepath.Join(folder, "study.json"))
	if err = errors.Join(err, json.Unmarshal(data, &index), os.Remove(filepath.Join(folder, "variants.csv"))); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(folder, "files", filepath.Dir(filepath.FromSlash(index.Plan)), "cases.csv")
	f, err := os.Create(filepath.Join(folder, "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	cases := bytes.NewBufferString(factors + "\n")
	w := bufio.NewWriter(f)
	fmt.Fprintf(w, "run,%s,%s,status,reason,verdict,steps,rejected,seconds,engine\n", factors, quantities)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		var x [5]float64
		fmt.Fprint(w, i)
		for k := range x {
			x[k] = 1 + random.Float64()
			fmt.Fprintf(w, ",%g", x[k])
			fmt.Fprintf(cases, "%g,", x[k])
		}
		cases.Truncate(cases.Len() - 1)
		fmt.Fprintln(cases)
		if x[0]+x[1] > 3.8 {
			fmt.Fprintln(w, ",,,,,,failed,wheel: fmi2DoStep returned Error,none,7,0,0.01,e:1:0")
			continue
		}
		fmt.Fprintf(w, ",%g,%g,%g,%g,%g,ok,,none,10,0,0.01,e:1:0\n", 1e-3*x[0]*x[1], x[0]+0.1*random.NormFloat64(), math.Exp(5*x[2]),
			math.Sin(6*x[3]), 1e6+random.NormFloat64())
	}
	if err := errors.Join(w.Flush(), f.Close(), os.WriteFile(path, cases.Bytes(), 0o666)); err != nil {
		t.Fatal(err)
	}
	macrostep(t, "study", "--resume", folder)
	return filepath.Join(folder, "report.html")
}

func TestStudy(t *testing.T) {
	path := studied(t)
	if info, err := os.Stat(path); err != nil || info.Size() > 3_000_000 {
		t.Errorf("%v: the page has %d bytes", err, info.Size())
	}
	for _, width := range []int64{1280, 390} {
		for _, dark := range []bool{false, true} {
			b := open(t, width, 900, dark)
			b.do(chromedp.Navigate("file://" + path))
			b.until(`document.getElementById("scatter").dataset.drawn > 0`)
			drawn := time.Duration(eval[float64](b, `+document.getElementById("scatter").dataset.drawn`)) * time.Millisecond
			t.Logf("%d wide, dark %v: drawn %v after the page was asked for", width, dark, drawn)
			if drawn > 20*time.Second {
				t.Errorf("the page was drawn after %v", drawn)
			}
			if got := eval[int64](b, `document.documentElement.scrollWidth`); got > width {
				t.Errorf("the page is %d wide", got)
			}
			if n := eval[int](b, `document.querySelectorAll("#scatter canvas").length`); n != 25 {
				t.Errorf("%d cells", n)
			}
			if s := eval[string](b, `document.getElementById("state").textContent`); !strings.HasPrefix(s, "complete, ") {
				t.Errorf("state %q", s)
			}
			// Each section at the top.
			for i, h := range eval[[]string](b, `[...document.querySelectorAll("h2")].map(h => h.textContent)`) {
				b.do(chromedp.Evaluate(fmt.Sprintf(`scrollTo(0, document.querySelectorAll("section")[%d].getBoundingClientRect().top + scrollY)`, i), nil))
				if *screenshots == "" {
					continue
				}
				time.Sleep(200 * time.Millisecond)
				b.picture(fmt.Sprintf("study-%s-%d-dark-%v", strings.ReplaceAll(h, " ", "-"), width, dark))
			}

			// The run at the pointer is shown with its values.
			type point struct{ X, Y float64 }
			at := eval[point](b, `(() => { const c = document.querySelector("#scatter .cell"); c.scrollIntoView({block: "center"}); const r = c.getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2} })()`)
			b.do(input.DispatchMouseEvent(input.MouseMoved, at.X, at.Y))
			b.until(`document.querySelector("#scatter output").textContent.includes("wheel.k_w [N/m]\u00a0= 1.") && document.querySelectorAll("#scatter .cell i:not([hidden])").length === 25`)
			b.picture(fmt.Sprintf("study-run-%d-dark-%v", width, dark))
			// One column less.
			b.do(chromedp.Evaluate(`document.querySelector("#scatter details").open = true; document.querySelector("#scatter input").click()`, nil))
			b.until(`document.querySelectorAll("#scatter canvas").length === 20`)
			b.picture(fmt.Sprintf("study-choice-%d-dark-%v", width, dark))
			// The choice is still there when the page is loaded again, as it is every few seconds while a study runs.
			b.do(chromedp.Reload())
			b.until(`document.querySelectorAll("#scatter canvas").length === 20 && document.querySelector("#scatter output").textContent.includes("wheel.k_w [N/m]\u00a0= 1.")`)
			b.quiet()
		}
	}
	b := open(t, 1280, 900, false)
	b.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate("file://"+path))
	if !eval[bool](b, `document.querySelector("table").offsetHeight > 0 && /JavaScript/.test(document.querySelector("noscript").innerText)`) {
		t.Error("without a script, tables or the note are missing")
	}
	b.quiet()
}
