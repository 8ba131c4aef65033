//go:build linux

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe returns the source of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(os.Getenv("AXE"))
	if err != nil {
		t.Fatalf("%v; install axe-core (npm install axe-core), and name its axe.min.js in $AXE", err)
	}
	return string(source)
}

// kinds makes a page of each kind, and returns their addresses.
func kinds(t *testing.T) map[string]string {
	t.Helper()
	dir, car := t.TempDir(), filepath.Join(systems, "quarter-car-a.ssp")
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) string {
		if err := os.WriteFile(path(name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path(name)
	}
	out := map[string]string{"run": made(t)}
	scenario := write("s.yaml", "events: [{at: 0.3, freeze: [wheel.F_c], for: 0.2}]\nexpect:\n  - {variable: chassis.z_c, always: {until: 2}, min: -1, max: 0.18}\n"+
		"  - {variable: chassis.z_c, eventually: {}, min: 0.12}\n  - {variable: chassis.z_c, at: 4, value: 0.1, tolerance: 0.01}\n")
	macrostep(t, "run", car, "--scenario", scenario, "--realtime=10", "--output", path("scenario.csv"), "--report", path("scenario.html"))
	macrostep(t, "run", car, "--step-size", "0.02", "--set", "wheel.k_w=2e5", "--param", "order=3", "--output", path("warned.csv"), "--report", path("warned.html"))
	macrostep(t, "report", path("scenario.csv"), path("warned.csv"), "--output", path("several.html"))
	analysis, err := exec.Command(program, "analyze", car, "--stop-time", "1", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	macrostep(t, "report", path("warned.csv"), "--analysis", write("analysis.json", string(analysis)), "--output", path("analysis.html"))
	for _, name := range []string{"scenario", "warned", "several", "analysis"} {
		out[name] = "file://" + path(name+".html")
	}
	measured := path("measured.csv")
	macrostep(t, "run", car, "--stop-time", "0.2", "--output-interval", "0.01", "--record", "chassis.v_c", "--output", measured)
	const ranges = "vary: {wheel.k_c: 'linear(1e4, 2e4)', wheel.d_c: 'linear(500, 2000)'}\n"
	for name, rest := range map[string]string{
		"grid":        "vary: {wheel.k_w: 'linear(1e5, 2e5, 4)', wheel.d_c: [-1e9, 500, 1000]}\ncheck: 1\ncollect: {peak: maximum(chassis.v_c)}\n",
		"fine":        "vary: {wheel.k_w: 'linear(1e5, 2e5, 26)', wheel.d_c: [500, 1000]}\ncollect: {peak: maximum(chassis.v_c)}\n",
		"sobol":       ranges + "design: saltelli\nsamples: 8\ncollect: {peak: maximum(chassis.v_c)}\n",
		"morris":      ranges + "design: morris\nsamples: 4\ncollect: {peak: maximum(chassis.v_c)}\n",
		"optimum":     ranges + "optimise: {minimise: peak, evaluations: 12}\ncollect: {peak: maximum(chassis.v_c)}\n",
		"fit":         ranges + "optimise: {fit: measured.csv, evaluations: 12}\n",
		"convergence": "convergence: {of: peak, most: 4}\ncollect: {peak: maximum(chassis.v_c)}\n",
	} {
		study := write(name+".yaml", "system: "+car+"\nrun: {stop-time: 0.2}\n"+rest)
		macrostep(t, "study", study, "--output", path(name))
		out["study-"+name] = "file://" + path(name+"/report.html")
	}
	return out
}

// problems lists what axe-core finds on a page with all its parts open, texts below 11 px, and what is wider than the page.
const problems = `(async () => {
	for (const d of document.querySelectorAll("details")) d.open = true;
	for (const b of [...document.querySelectorAll(".plot figcaption button")].slice(0, 2)) b.click();
	const list = [];
	if (document.documentElement.scrollWidth > innerWidth) list.push("the page is " + document.documentElement.scrollWidth + " px wide");
	const look = (root) => {
		for (const e of root.querySelectorAll("*")) {
			if (e.shadowRoot) look(e.shadowRoot);
			if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || !e.getClientRects().length) continue;
			const scale = e.ownerSVGElement ? e.getScreenCTM().a : 1, size = parseFloat(getComputedStyle(e).fontSize) * scale;
			if (size < 10.9 && e.textContent.trim()) list.push(size.toFixed(1) + " px: " + e.outerHTML.slice(0, 100));
		}
	};
	look(document);
	const found = await axe.run(document, { resultTypes: ["violations"] });
	for (const v of found.violations) list.push(v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 150)).join(" | "));
	return list;
})()`

// Pages of all kinds can be read by everybody: axe-core finds nothing, no text is small, and nothing is wider than the page.
func TestAccess(t *testing.T) {
	source, pages := axe(t), kinds(t)
	address, run := live(t, "--debug", "live-paused", "--stop-time", "4")
	pages["live"] = address
	for _, dark := range []bool{false, true} { // colours depend on the one, the layout on the other
		width := int64(1280)
		if dark {
			width = 390
		}
		b := open(t, width, 900, dark)
		if width == 390 {
			b.do(emulation.SetTouchEmulationEnabled(true))
		}
		for name, address := range pages {
			b.do(chromedp.Navigate(address), chromedp.WaitVisible("h1", chromedp.ByQuery))
			b.do(chromedp.Evaluate(source+";0", nil))
			var list []string
			b.do(chromedp.Evaluate(problems, &list, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			for _, text := range list {
				t.Errorf("%s, %d wide, dark %v: %s", name, width, dark, text)
			}
			if words := eval[string](b, `document.body.innerText`); width == 390 && (strings.Contains(words, "drag over") || strings.Contains(words, "Point at")) {
				t.Errorf("%s has words for a mouse", name)
			}
			b.picture(fmt.Sprintf("access-%s-%d-dark-%v", name, width, dark))
		}
		b.quiet()
	}
	b := open(t, 1280, 900, false)
	b.do(chromedp.Navigate(address), chromedp.WaitVisible("#stop", chromedp.ByQuery), chromedp.Click("#stop", chromedp.ByQuery))
	b.until(`document.getElementById("state").textContent === "interrupted"`)
	_ = run.Wait() // it was interrupted
}
