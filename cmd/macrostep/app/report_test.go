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
	contains(t, "the summary", stdout, "report    ", "run.html (", " plots, ")
	page := read(t, "run.html")
	contains(t, "the page", page, "&lt;b&gt;beware&lt;/b&gt;", ">complete<", `data-name="`, "There is no picture of the system", "macrostep itself", "&#34;status&#34;: &#34;complete&#34;", `data-name="step size"`, `data-name="order"`)
	names := regexp.MustCompile(`data-name="([^"]*)"`)
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"report", "results.csv"}, strings.NewReader(""), &out, &errs, &fake{}); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	again := read(t, "results.html")
	for _, m := range names.FindAllStringSubmatch(page, -1) {
		if !strings.Contains(again, m[0]) && m[1] != "order" {
			t.Errorf("the page of the results lacks %s", m[1])
		}
	}
	contains(t, "the page of the results", again, ">complete<", "results.csv, 101 rows", "s.ssp is missing")

	// It replaces nothing unless it may, and says what it lacks.
	write(t, "other.csv", "time,a\n0,1\n1,2\n")
	write(t, "no.json", "{}")
	for args, want := range map[string]string{
		"results.csv":                              "results.html exists already",
		"results.csv|-o|results.csv":               "would overwrite the results",
		"none.csv":                                 "none.csv: no such file",
		"results.csv|--force|--manifest|no.json":   "no.json is not the manifest of a run: it has no status",
		"results.csv|--force|--manifest|none.json": "--manifest: open none.json",
		"results.csv|--force|--trace|other.csv":    "other.csv is not a table of attempts: it has no column H",
		"results.csv|--force|--analysis|no.json":   "no.json holds no analysis",
		"results.csv|--force|--select|x*":          "there is nothing to show",
		"":                                         "RESULT (a table of results) is missing",
	} {
		errs.Reset()
		args := append([]string{"report"}, strings.FieldsFunc(args, func(r rune) bool { return r == '|' })...)
		if code := run(context.Background(), args, strings.NewReader(""), io.Discard, &errs, &fake{}); code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: exit code %d: %s; want %s", args, code, errs.String(), want)
		}
	}
	if run(context.Background(), []string{"report", "other.csv"}, strings.NewReader(""), io.Discard, &errs, &fake{}) != exitDone || !strings.Contains(read(t, "other.html"), `data-name="a"`) {
		t.Error("a table of another tool has no page")
	}
}

// The page of a run with a scenario, in real time, has its verdicts, its marks in the plots,
// and how late it was.
func TestReportOfScenario(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "fault.yaml")
	write(t, path, `name: a <fault>
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
	contains(t, "the page", page, `class="state bad">complete, expectations not met<`, "a &lt;fault&gt;: 1 of 2 events, 1 of 2 expectations met", `<td class="failed">failed</td><td>free.y1 ≤ 0.001 always</td>`, "<td>0.25 s</td><td>set free.u1 to 2</td>",
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

// What a run that fails has not decided is not judged.
func TestUnjudged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "half.yaml")
	write(t, path, `expect:
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
	contains(t, "the page", page, `class="state bad">failed, expectations undecided<`, told, "not judged</td><td>free.y1 ≤ 5 always</td>", "met</td><td>free.y1 ≤ 5 always until t = 0.3 s</td>",
		"free.y1 ≤ 5 always was expected, and is not judged: the run ended at t = 0.4")
	contains(t, "the manifest", read(t, "results.json"), `"unjudged": true`)
}

// A manifest that cannot be written is not announced, and one that is there is said to
// be of another run, or of the beginning of this one.
func TestManifestNotWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	name := strings.Repeat("m", 245) + ".json" // there is no room for that of a temporary file
	write(t, name, "{}")
	var out, errs strings.Builder
	if code := run(context.Background(), []string{"run", "s.ssp", "--manifest", name}, strings.NewReader(""), &out, &errs, &fake{}); code == exitDone {
		t.Error("it is done")
	}
	contains(t, "the error", errs.String(), "writing the manifest", name+" that is there is not of this run")
	if strings.Contains(out.String(), "manifest ") {
		t.Error(out.String())
	}

	f := &fake{}
	steps := 0
	f.beginStep = func() {
		if steps++; steps == 50 { // what is no file is not replaced by one
			if err := errors.Join(os.Remove("m.json"), os.MkdirAll("m.json/x", 0o777)); err != nil {
				t.Error(err)
			}
		}
	}
	out.Reset()
	errs.Reset()
	if code := run(context.Background(), []string{"run", "s.ssp", "--manifest", "m.json", "--output", "r.csv"}, strings.NewReader(""), &out, &errs, f); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	contains(t, "the error", errs.String(), "writing the manifest", "m.json that is there is that of its beginning")
	if strings.Contains(out.String(), "manifest ") || !strings.Contains(out.String(), "results ") {
		t.Error(out.String())
	}
}

// A run that fails has its page, too.
func TestReportOfFailure(t *testing.T) {
	f := &fake{}
	steps := 0
	f.beginStep = func() {
		if steps++; steps == 50 {
			panic("lost")
		}
	}
	if code, _, stderr := call(t, f, "run", "s.ssp", "--report", "run.html", "--quiet"); code != exitFailed {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	contains(t, "the page", read(t, "run.html"), ">failed<", "lost", `data-name="`)
}

// A run that begins paused is stepped and ended by its page; what it has computed is kept.
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
	if address == "" {
		t.Fatal(errs.String())
	}
	command := func(name string) {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, strings.Replace(address, "/?", "/command/"+name+"?", 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Macrostep", "1")
		answer, err := http.DefaultClient.Do(r)
		if err != nil || answer.StatusCode != http.StatusNoContent {
			t.Fatalf("%v, %v", answer, err)
		}
		_ = answer.Body.Close()
	}
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || !strings.Contains(string(page), ">paused<") || !strings.Contains(string(page), `data-name="`) {
		t.Fatalf("%v: %s", err, page)
	}
	for range 3 {
		command("step")
	}
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if table, err := os.ReadFile("results.csv"); err == nil && strings.Count(string(table), "\n") >= 5 {
			break
		}
	}
	command("stop")
	if code := <-ended; code != exitFailed {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
	if n := strings.Count(read(t, "results.csv"), "\n"); n != 5 { // header, start, three steps
		t.Errorf("%d lines", n)
	}
	if m := manifestOf(t, "results.json"); m.Status != "incomplete" || !strings.Contains(m.Reason, "stopped on its page") || m.Steps.Accepted != 3 {
		t.Errorf("%s: %s after %d steps", m.Status, m.Reason, m.Steps.Accepted)
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
	for args, want := range map[string]string{
		"--live|x": `"x" is neither HOST:PORT nor a port`, "--live|": "--live: the value is empty", "--debug|live-paused": "there is no page to go on from without --live", "--debug|paused": `"paused" is none of call-by-call, live-paused, realtime-unbounded, profile=`, "--debug|profile": "is none of", "--debug|profile=": "is none of", "--debug|live-paused=x": "is none of", "--debug|realtime-unbounded": "needs --realtime",
		"--live|0|--report|results.csv": "--output and --report are the same file",
	} {
		if code, _, stderr := call(t, &fake{}, append([]string{"run", "s.ssp"}, strings.Split(args, "|")...)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
	}
	l := &liveRun{seen: newWatcher(record.Selection{}, 0)}
	ctx, err := l.follow(context.Background(), "0.0.0.0:0")
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
	if _, err := busy.follow(context.Background(), "256.0.0.1:0"); err == nil || !strings.Contains(err.Error(), "--live") {
		t.Error(err)
	}
}
