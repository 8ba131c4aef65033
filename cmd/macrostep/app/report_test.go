package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/macrostep/macrostep/master/mastertest"
	"github.com/macrostep/macrostep/master/record"
)

// The page of a run and that of its results show the same.
func TestReport(t *testing.T) {
	code, stdout, stderr := call(t, &fake{warnings: []string{"<b>beware</b>"}}, "run", "s.ssp", "--report", "run.html", "--param", "order=1")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	contains(t, "the summary", stdout, "page      ", "run.html (", " plots, ")
	page := read(t, "run.html")
	contains(t, "the page", page, "&lt;b&gt;beware&lt;/b&gt;", ">complete<", `data-name="`, "There is no picture of the system", "macrostep: coupling", "macrostep: recording", "start: loading, initialisation",
		"&#34;status&#34;: &#34;complete&#34;", "<td>step size</td><td>0.01</td><td>s</td>", `data-name="order"`, `<ul id="warnings"><li>&lt;b&gt;beware`)
	report := func(args ...string) {
		t.Helper()
		if code, _, stderr := callIn(t.Context(), t, ".", &fake{}, append([]string{"report"}, args...)...); code != exitDone {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	}
	report("results.csv")
	again := read(t, "results.html")
	for _, m := range regexp.MustCompile(`data-name="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(again, m[0]) && m[1] != "order" {
			t.Errorf("the page of the results lacks %s", m[1])
		}
	}
	contains(t, "the page of the results", again, ">complete<", "results.csv, 101 rows", "s.ssp is missing")
	results := func(page string) string {
		_, rest, _ := strings.Cut(page, "<h2>Results</h2>")
		section, _, _ := strings.Cut(rest, "</section>")
		return section
	}
	if a, b := results(page), results(again); a != b || a == "" {
		t.Errorf("the results differ:\n%s\n%s", a, b)
	}

	write(t, "other.csv", "time,a\n0,1\n1,2\n")
	write(t, "no.json", "{}")
	refuses(t, ".", &fake{}, map[string]string{
		"report|results.csv|-o|none/r.html":               "none/r.html cannot be written: no such file or directory; create the folder first",
		"plot|results.csv|-o|none/r.svg":                  "none/r.svg cannot be written: no such file or directory; create the folder first",
		"plot|results.csv|-o|other.csv/r.svg":             "not a directory",
		"report|results.csv":                              "results.html exists already",
		"report|results.csv|-o|results.csv":               "would overwrite the results",
		"report|none.csv":                                 "none.csv: no such file",
		"report|results.csv|--force|--manifest|no.json":   "no.json is not the manifest of a run: it has no status",
		"report|results.csv|--force|--manifest|none.json": "--manifest: open none.json",
		"report|results.csv|--force|--trace|other.csv":    "other.csv is not a table of attempts: it has no column H",
		"report|results.csv|--force|--analysis|no.json":   "no.json holds no analysis",
		"report|results.csv|--force|--select|x*":          `--select: no variable matches "x*"`,
		"report|results.csv|--force|--select|*x*":         "there is nothing to show",
		"report": "RESULT (a table of results) is missing",
	})
	report("other.csv") // of another tool
	contains(t, "the page of the other table", read(t, "other.html"), `data-name="a"`)
	write(t, "on.csv", "time,a.on\n0,0\n1,0\n2,0\n3,0\n4,1\n")
	report("on.csv")
	if on := read(t, "on.html"); !strings.Contains(on, `data-held="1" data-integral="1"`) || strings.Contains(on, ">0.5<") {
		t.Error("a Boolean has an axis with fractions")
	}
	write(t, "clock.csv", "clock,a\n0,1\n1,2\n")
	report("clock.csv", "--time-column", "clock")
	contains(t, "the page with another time column", read(t, "clock.html"), `data-name="a"`)
}

// What cannot be written is refused before the run touches earlier results.
func TestNotWritable(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "results.csv", "earlier")
	refuses(t, ".", &fake{}, map[string]string{
		"run|s.ssp|--report|none/run.html":     "--report none/run.html: there is no folder none; create the folder first",
		"run|s.ssp|--manifest|none/m.json":     "--manifest none/m.json: there is no folder none",
		"run|s.ssp|--output|none/r.csv":        "--output none/r.csv: there is no folder none",
		"run|s.ssp|--trace|none/t.csv":         "--trace none/t.csv: there is no folder none",
		"run|s.ssp|--output|results.csv/r.csv": "there is no folder results.csv",
		"run|s.ssp|--report|/dev/null":         "/dev/null is not an ordinary file",
	})
	if text := read(t, "results.csv"); text != "earlier" {
		t.Errorf("the results are %q", text)
	}
}

// The page of several results draws their lines in the same plots, in the units of the first, and their differences.
func TestReportOfSeveral(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.csv", "time,c.x [m],c.y,c.k [m]\n0,0,1,5\n1,1,2,5\n2,3,2,5\n")
	write(t, "b.csv", "time,c.x [mm],c.y,c.k [m]\n0,0,1,5\n1,1000,2,5\n2,3500,2,5\n")
	code, stdout, stderr := callIn(t.Context(), t, ".", &fake{}, "report", "a.csv", "b.csv")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	contains(t, "the output", stdout, "comparison.html (3 plots, ")
	page := read(t, "comparison.html")
	contains(t, "the page", page, "</svg>a</span>", "</svg>b</span>", "<td>b.csv, 0 to 2 s</td>", "Differences from a", "<td>c.k</td><td>5</td><td>m</td>",
		"Variables that are the same in all results are not drawn (2)",
		"<td>c.x</td><td>b</td><td>9.623 %</td><td>0.5</td><td>m</td><td>2 s</td>")
	for name, want := range map[string][]string{
		// Of the height, 0.06 of the greatest value are above and below.
		"c.x":   {`data-top="4"`, `<path class="line l0" d="M0 1000000l0 0 500000-250000 500000-500000"/>`, `<path class="line l1" d="M0 1000000l0 0 500000-250000 500000-625000"/>`},
		"Δ c.x": {`data-top="0.5"`, `<path class="line l1" d="`},
	} {
		_, plot, _ := strings.Cut(page, `data-name="`+name+`"`)
		plot, _, _ = strings.Cut(plot, "</figure>")
		contains(t, name, plot, want...)
	}
	contains(t, "the page of results without manifests", page, "<h1>2 results</h1>")
	write(t, "a.json", `{"status": "complete", "outcome": {"ended": "complete", "expectations": "none"}}`)
	write(t, "b.json", `{"status": "complete", "outcome": {"ended": "complete", "stability": "unstable", "expectations": "none"}}`)
	callIn(t.Context(), t, ".", &fake{}, "report", "a.csv", "b.csv", "--force")
	contains(t, "the page of an unstable run", read(t, "comparison.html"), `class="state bad">b: complete, unstable</span>`)
	refuses(t, ".", &fake{}, map[string]string{
		"report|a.csv|b.csv|--trace|t.csv": "--trace: it belongs to one RESULT, and 2 are given",
		"report|a.csv|b.csv|-o|b.csv":      "b.csv would overwrite the results",
		"report|a.csv|none.csv|-o|x.html":  "none.csv: no such file",
	})
}

// The page of a run in real time with a scenario shows the verdicts, marks in the plots and the
// delays.
func TestReportOfScenario(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "fault.yaml"), `name: a <fault>
events:
  - {at: 0.25, set: {free.u1: 2}, for: 0.1}
  - {when: free.y1 > 9, stop: never}
expect:
  - {variable: free.y1, at: 0.5, min: 0.1}
  - {variable: free.y1, always: {}, max: 0.001}
`)
	code, stdout, stderr := call(t, &fake{}, "run", "s.ssp", "--scenario", path, "--realtime=20", "--report", "run.html")
	if code != exitFailed {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if o := manifestOf(t, "results.json").Outcome; o.String() != "complete, expectations not met" {
		t.Errorf("the outcome is %q", o)
	}
	contains(t, "the summary", stdout, "outcome   complete, expectations not met\n")
	page := read(t, "run.html")
	contains(t, "the page", page, `class="state bad">complete, expectations not met<`, "a &lt;fault&gt;: 1 of 2 events, 1 of 2 expectations met",
		`<td class="failed">failed</td><td class="long">free.y1 ≤ 0.001 always</td>`, "<td>0.25 s</td><td>set free.u1 to 2</td>",
		"20 × the speed of the clock, 100 deadlines", "Deadlines by how late the run was", "<td>at work</td>")
	for name, want := range map[string][]string{
		"free.y1":  {`<path class="mark event" d="M250000 0v1000000M350000 0v1000000"/>`, `<path class="mark met" d="M500000 0v1000000"/>`, `<path class="mark failed" d="M260000 0v1000000"/>`},
		"first.y1": {`<path class="mark event" d="M250000 0v1000000M350000 0v1000000"/>`},
	} {
		_, plot, ok := strings.Cut(page, `data-name="`+name+`"`)
		plot, _, _ = strings.Cut(plot, "</figure>")
		if !ok || strings.Count(plot, `class="mark `) != len(want) {
			t.Errorf("%s has the marks %q", name, regexp.MustCompile(`<path class="mark [^>]*>`).FindAllString(plot, -1))
		}
		contains(t, name, plot, want...)
	}
}

// Expectations that are undecided when a run fails are reported as not judged.
func TestUnjudged(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "half.yaml"), `expect:
  - {variable: free.y1, always: {}, max: 5}
  - {variable: free.y1, always: {until: 0.3}, max: 5}
  - {variable: free.y1, eventually: {}, min: 5}
  - {variable: first.y1, eventually: {}, min: -1e9}
  - {variable: free.y1, at: 0.9, max: 5}
`)
	f := &fake{fault: &mastertest.Faulty{AtStep: 50, Err: errors.New("broken")}}
	code, stdout, stderr := call(t, f, "run", "s.ssp", "--scenario", path, "--report", "run.html")
	if code != exitFailed {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	const told = "half.yaml: 0 events, 2 of 5 expectations met, 3 not judged"
	contains(t, "the summary", stdout, told)
	if strings.Contains(stderr, "was expected") {
		t.Error(stderr)
	}
	page := read(t, "run.html")
	contains(t, "the page", page, `class="state bad">failed, expectations undecided<`, told, "not judged</td><td>free.y1 ≤ 5 always</td>",
		"met</td><td class=\"long\">free.y1 ≤ 5 always until t = 0.3 s</td>",
		"free.y1 ≤ 5 always was expected, and is not judged: the run ended at t = 0.4")
	contains(t, "the manifest", read(t, "results.json"), `"unjudged": true`)
}

// If the manifest cannot be written, the error reports whether the existing file belongs to another
// run or to the beginning of this one, and the summary does not name it.
func TestManifestNotWritten(t *testing.T) {
	steps := 0
	replace := func() {
		if steps++; steps == 50 { // a folder is not replaced by a file
			if err := errors.Join(os.Remove("m.json"), os.MkdirAll("m.json/x", 0o777)); err != nil {
				t.Error(err)
			}
		}
	}
	long := strings.Repeat("m", 245) + ".json" // leaves no room for the name of a temporary file
	for name, want := range map[string]string{long: long + " that is there is not of this run", "m.json": "m.json that is there is that of its beginning"} {
		dir, f := t.TempDir(), &fake{}
		if name == long {
			write(t, filepath.Join(dir, name), "{}")
		} else {
			f.beginStep = replace
		}
		code, stdout, stderr := callIn(t.Context(), t, dir, f, "run", "s.ssp", "--manifest", name)
		if code == exitDone || strings.Contains(stdout, "manifest ") || strings.Contains(stdout, "results ") != (name != long) {
			t.Errorf("exit code %d: %s", code, stdout)
		}
		contains(t, "the error", stderr, "the manifest ", "cannot be written: ", want)
	}
}

// A run that begins paused shows its page until a command stops it.
func TestLiveRun(t *testing.T) {
	t.Chdir(t.TempDir())
	var out, errs lockedBuffer
	ended := make(chan int)
	go func() {
		ended <- run(context.Background(), []string{"run", "s.ssp", "--live", "0", "--debug", "live-paused"}, strings.NewReader(""), &out, &errs, &fake{})
	}()
	address := ""
	for end := time.Now().Add(5 * time.Minute); address == "" && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\S+`).FindString(errs.String())
	}
	send := func(method, address string) string {
		t.Helper()
		r, err := http.NewRequest(method, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Macrostep", "1")
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode >= 300 {
			t.Fatalf("%v, %v", answer, err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	contains(t, "the page", send(http.MethodGet, address), ">paused<", `data-name="`)
	send(http.MethodPost, strings.Replace(address, "/?", "/command/stop?", 1))
	if code := <-ended; code != exitFailed {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if m := manifestOf(t, "results.json"); m.Status != "incomplete" || !strings.Contains(m.Reason, "stopped on its page") {
		t.Errorf("%s: %s", m.Status, m.Reason)
	}
	if _, err := http.Get(address); err == nil {
		t.Error("the page is served although the run has ended")
	}
}

func TestLiveAddress(t *testing.T) {
	for text, want := range map[string]string{"8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0": "127.0.0.1:0", "0.0.0.0:1": "0.0.0.0:1", "[::1]:5": "[::1]:5", "h:5": "h:5"} {
		if got, err := listenTo(flagLive, text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	l := &liveRun{seen: newWatcher(record.Selection{}, 0)}
	ctx, err := l.follow(context.Background(), "0.0.0.0:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`/\?token=[0-9a-f]{32}$`).MatchString(l.url) {
		t.Errorf("the address is %s", l.url)
	}
	if err := l.end(nil); err != nil || ctx.Err() == nil {
		t.Error(err)
	}
	busy := &liveRun{seen: l.seen}
	if _, err := busy.follow(context.Background(), "256.0.0.1:0", nil); err == nil || !strings.Contains(err.Error(), "--live") {
		t.Error(err)
	}
}
