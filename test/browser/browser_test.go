//go:build linux

package browser

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	_ "image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "folder for pictures of the pages; it is made")

// patience limits what should never take long, however busy the machine is. A test may use a tab for five times as long.
const patience = time.Minute

// chromium finds the browser.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	if name := os.Getenv("CHROMIUM"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("there is no browser called %s; install one (Debian: apt-get install chromium), or name it in $CHROMIUM",
		strings.Join(names, ", "))
	return ""
}

var (
	program string
	systems string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "macrostep-browser-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		program, systems = filepath.Join(dir, "macrostep"), filepath.Join(dir, "systems")
		build := exec.Command("go", "build", "-o", program, "./cmd/macrostep")
		build.Dir = filepath.Join("..", "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		for _, c := range []*exec.Cmd{build, exec.Command(program, "demo", "--all", "-o", systems)} {
			if out, err := c.CombinedOutput(); err != nil {
				fmt.Fprintf(os.Stderr, "%v: %v\n%s", c.Args, err, out)
				return 1
			}
		}
		return m.Run()
	}())
}

// tab is a page in a browser that keeps what must not happen.
type tab struct {
	context.Context
	t  *testing.T
	mu sync.Mutex
	// Messages of errors, and requests to other places than this machine.
	errors, requests []string
}

// open opens a browser of a size, with light or dark colours.
func open(t *testing.T, width, height int64, dark bool) *tab {
	t.Helper()
	var browser *exec.Cmd
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.UserDataDir(t.TempDir()),
		chromedp.WSURLReadTimeout(patience),
		chromedp.ModifyCmdFunc(func(c *exec.Cmd) {
			browser = c
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		}))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	ctx, expire := context.WithTimeout(ctx, 5*patience)
	t.Cleanup(func() { // before the profile is removed
		expire()
		cancel()
		stop()
		if browser != nil && browser.Process != nil {
			endGroup(t, browser.Process.Pid)
		}
	})
	b := &tab{Context: ctx, t: t}
	chromedp.ListenTarget(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.errors = append(b.errors, e.ExceptionDetails.Error())
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				b.errors = append(b.errors, fmt.Sprint(e.Args))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
				b.errors = append(b.errors, e.Entry.Text)
			}
		case *network.EventRequestWillBeSent:
			u, err := url.Parse(e.Request.URL)
			if err != nil || u.Scheme != "file" && u.Scheme != "data" && u.Hostname() != "127.0.0.1" {
				b.requests = append(b.requests, e.Request.URL)
			}
		}
	})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do(network.Enable(), log.Enable(), emulation.SetDeviceMetricsOverride(width, height, 1, width < 600),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
	return b
}

// endGroup ends the processes that a browser has started, which may still write into its profile, and waits until
// none is left.
func endGroup(t *testing.T, group int) {
	t.Helper()
	for {
		_ = syscall.Kill(-group, syscall.SIGKILL) // there may be none
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(stats, func(path string) bool {
			stat, _ := os.ReadFile(path) // it may have ended
			_, rest, _ := strings.Cut(string(stat), ") ")
			fields := strings.Fields(rest) // state, parent, group, …
			return len(fields) > 2 && fields[0] != "Z" && fields[0] != "X" && fields[2] == strconv.Itoa(group)
		}) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](b *tab, expression string) (v T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		var is bool
		// While a page loads there is none.
		if err := chromedp.Run(b, chromedp.Evaluate(expression, &is)); err == nil && is {
			return
		}
	}
	b.picture("failed")
	b.t.Fatalf("not in %v: %s", patience, expression)
}

// quiet checks that there were no errors and no requests to other machines.
func (b *tab) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.errors) > 0 {
		b.t.Errorf("the console has %q", b.errors)
	}
	if len(b.requests) > 0 {
		b.t.Errorf("the page asks for %q", b.requests)
	}
}

// picture takes a picture of the page, and writes it to -screenshots.
func (b *tab) picture(name string) image.Image {
	b.t.Helper()
	var data []byte
	b.do(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		data, err = page.CaptureScreenshot().WithCaptureBeyondViewport(false).Do(ctx)
		return err
	}))
	if *screenshots != "" {
		if err := errors.Join(os.MkdirAll(*screenshots, 0o777), os.WriteFile(filepath.Join(*screenshots, name+".png"),
			data, 0o666)); err != nil {
			b.t.Fatal(err)
		}
	}
	picture, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		b.t.Fatal(err)
	}
	return picture
}

// lineColours are those of lines of plots, in light and in dark.
var lineColours = map[bool][3]uint32{false: {0x00, 0x72, 0xb2}, true: {0x5e, 0xb1, 0xf2}}

// columns counts the columns of a picture in which there is something of the colour of lines.
func columns(p image.Image, dark bool) int {
	n, c := 0, lineColours[dark]
	for x := p.Bounds().Min.X; x < p.Bounds().Max.X; x++ {
		for y := p.Bounds().Min.Y; y < p.Bounds().Max.Y; y++ {
			r, g, b, _ := p.At(x, y).RGBA()
			if r>>8 == c[0] && g>>8 == c[1] && b>>8 == c[2] {
				n++
				break
			}
		}
	}
	return n
}

// drag goes over the first plot from one part of it to another.
func (b *tab) drag(from, to float64) {
	b.t.Helper()
	type rect struct{ X, Y, Width, Height float64 }
	r := eval[rect](b, `(() => { const f = document.querySelector(".plot .frame"); f.scrollIntoView({block: "center"}); const r = f.getBoundingClientRect(); return {X: r.x, Y: r.y, Width: r.width, Height: r.height} })()`)
	y := r.Y + r.Height/2
	mouse := func(kind input.MouseType, x float64, pressed int64) chromedp.Action {
		e := input.DispatchMouseEvent(kind, x, y).WithButtons(pressed)
		if kind != input.MouseMoved {
			e = e.WithButton(input.Left).WithClickCount(1)
		}
		return e
	}
	a, z := r.X+from*r.Width, r.X+to*r.Width
	b.do(mouse(input.MouseMoved, a, 0), mouse(input.MousePressed, a, 1), mouse(input.MouseMoved, (a+z)/2, 1),
		mouse(input.MouseMoved, z, 1), mouse(input.MouseReleased, z, 0))
}

func macrostep(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		t.Fatalf("macrostep %v: %v\n%s", args, err, out)
	}
}

// made makes the page of a run with everything that a page can have.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "car.html")
	macrostep(t, "run", filepath.Join(systems, "quarter-car-a.ssp"), "--algorithm", "ex-slocal",
		"--record", "*", "--record", "bond.*", "--check", "--output", filepath.Join(filepath.Dir(path), "car.csv"), "--report", path)
	return "file://" + path
}

const (
	plots = `document.querySelectorAll(".plot").length`
	lines = `[...document.querySelectorAll(".line")].filter(l => /l/i.test(l.getAttribute("d"))).length`
)

func TestReport(t *testing.T) {
	b := open(t, 1200, 900, false)
	b.do(chromedp.Navigate(made(t)), chromedp.WaitVisible("#tools", chromedp.ByQuery))
	b.picture("report")
	if n := eval[int](b, plots); n < 10 || eval[int](b, lines) != n {
		t.Errorf("%d plots, %d lines", n, eval[int](b, lines))
	}
	if !eval[bool](b, `document.querySelector(".picture").shadowRoot.querySelectorAll("svg .box").length === 2`) {
		t.Error("the system is not drawn")
	}

	// Zoom: all plots show the part that was dragged over, and draw it.
	b.drag(0.25, 0.5)
	b.until(`/^(1|0\.99\d*|1\.00\d*) to (2|1\.99\d*|2\.0\d*) s/.test(document.getElementById("window").textContent)`)
	b.until(`(() => { const v = document.querySelectorAll(".plot svg")[1].getAttribute("viewBox").split(" ").map(Number); return Math.abs(v[0] - 250000) < 2000 && Math.abs(v[2] - 250000) < 3000 && v[3] < 1000000 })()`)
	if n := columns(b.picture("report-zoomed"), false); n < 400 {
		t.Errorf("zoomed in, %d columns have a line", n)
	}
	// The cursor tells a value that the table has: chassis.v_c has its least near 0.73 s; here it is near 0.16 s
	// that it rises.
	b.until(`/^-?[\d.e-]+ at 1\.99|^-?[\d.e-]+ at 2/.test(document.querySelector("output").textContent)`)
	b.do(chromedp.Click("#all", chromedp.ByQuery))
	b.until(`document.querySelector(".plot svg").getAttribute("viewBox") === "0 0 1000000 1000000"`)
	b.do(chromedp.Click("#closer", chromedp.ByQuery))
	b.until(`document.querySelector(".plot svg").getAttribute("viewBox").startsWith("250000 ")`)
	b.do(chromedp.Click("#later", chromedp.ByQuery))
	b.until(`document.querySelector(".plot svg").getAttribute("viewBox").startsWith("500000 ")`)
	b.do(chromedp.Click("#wider", chromedp.ByQuery))
	b.until(`document.querySelector(".plot svg").getAttribute("viewBox") === "0 0 1000000 1000000"`)
	b.do(chromedp.Evaluate(`document.getElementById("filter").focus()`, nil), input.InsertText("wheel v"))
	b.until(`[...document.querySelectorAll(".plot")].filter(p => p.offsetWidth > 0).every(p => /wheel.*v/.test(p.dataset.name)) && document.querySelectorAll(".plot:not(.hidden)").length > 0`)
	b.quiet()
}

// The page of a run and that of its results show the same: names, units, lines, labels.
func TestReportOfResults(t *testing.T) {
	address := made(t)
	dir := filepath.Dir(strings.TrimPrefix(address, "file://"))
	macrostep(t, "report", filepath.Join(dir, "car.csv"), "--output", filepath.Join(dir, "again.html"))
	b := open(t, 1200, 900, false)
	plain := func(address string) string {
		b.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(address))
		return eval[string](b, `[...document.querySelectorAll("section")].filter(s => /^(Results|Power bonds|.*constants?)/.test(s.innerText)).map(s => s.innerHTML).join("")`)
	}
	if a, z := plain(address), plain("file://"+filepath.Join(dir, "again.html")); a != z || !strings.Contains(a, "[m/s]") || !strings.Contains(a, "bond.") {
		t.Errorf("the pages differ:\n%.3000s\n%.3000s", a, z)
	}
}

// The script labels axes as the page without it does.
func TestLabels(t *testing.T) {
	var table strings.Builder
	table.WriteString("time")
	ranges := [][2]float64{{0, 4}, {0, 1}, {2, 3}, {-1e-7, 3e-7}, {68.999999, 69.000001}, {1e9, 1e9 + 3}, {101325.2, 101325.9}, {-101325.9, -101325.2}, {0, 1e9}, {-5e4, 7e4},
		{293.1, 293.2}, {0.009, 0.0102}, {1e-300, 2e-300}, {-1e300, 1.7e308}, {7, 7.000000001}, {-3, -2.5}, {99999, 100001}}
	for i := range ranges {
		fmt.Fprintf(&table, ",c.x%d [m]", i)
	}
	for row := range 5 { // whole numbers that mostly stay the same hold, on an axis without fractions
		fmt.Fprintf(&table, "\n%.9g", 1e5+1e-3*float64(row))
		for _, r := range ranges {
			fmt.Fprintf(&table, ",%.17g", r[row/4])
		}
	}
	path := filepath.Join(t.TempDir(), "r.csv")
	if err := os.WriteFile(path, []byte(table.String()+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	macrostep(t, "report", path)
	b := open(t, 1200, 4000, false)
	const labels = `[...document.querySelectorAll(".plot")].map(p => [...p.querySelectorAll(".unit,.x,.y,.axis")].map(e => e.className + e.textContent + Math.round(10 * parseFloat(e.style.left || e.style.bottom || 0))).sort().join(" "))`
	b.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate("file://"+strings.TrimSuffix(path, "csv")+"html"))
	static := eval[[]string](b, labels)
	b.do(emulation.SetScriptExecutionDisabled(false), chromedp.Reload())
	// The grid of the script is drawn with absolute lines.
	b.until(`[...document.querySelectorAll(".plot .grid")].every(g => g.getAttribute("d").includes("V"))`)
	drawn := eval[[]string](b, labels)
	if len(static) != len(ranges) {
		t.Fatalf("%d plots", len(static))
	}
	for i := range static {
		if static[i] != drawn[i] {
			t.Errorf("%v is labelled\n%s\nand by the script\n%s", ranges[i], static[i], drawn[i])
		}
	}
	b.quiet()
}

// Several results: their lines in the same plots, and any variables in one plot, over time and over each other.
func TestSeveral(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one, two := write("one.csv", "time,a.x [m],a.v [m/s],a.F [N]\n0,0,1,5\n1,1,0,6\n2,0,-1,7\n"), write("two.csv", "time,a.x [m],a.v [m/s],a.F [N]\n0,0,1,5\n1,2,0,6\n2,0,-1,8\n")
	macrostep(t, "report", one, two, "--output", filepath.Join(dir, "both.html"))
	for _, width := range []int64{1280, 390} {
		b := open(t, width, 1200, width == 390)
		b.do(chromedp.Navigate("file://"+filepath.Join(dir, "both.html")), chromedp.WaitVisible("#tools", chromedp.ByQuery))
		b.picture(fmt.Sprintf("several-%d", width))
		if got := eval[[]int](b, `[...document.querySelectorAll(".plot")].map(p => p.querySelectorAll("path.line").length)`); !slices.Equal(got, []int{2, 2, 2, 1, 1}) {
			t.Errorf("the plots have %v lines", got)
		}
		const own = `document.querySelector(".plot-own")`
		b.do(chromedp.Evaluate(`for (const i of [0, 1]) document.querySelectorAll(".plot figcaption button")[i].click()`, nil))
		b.until(own + `.querySelectorAll("path.line").length === 4 && ` + own + `.querySelectorAll(".y.right").length > 1`)
		b.do(chromedp.Evaluate(`document.getElementById("own").scrollIntoView()`, nil))
		b.picture(fmt.Sprintf("several-combined-%d", width))
		// Over a.x: the line of a.v of each result goes from (0, 1) over (its greatest x, 0) to (0, -1).
		b.do(chromedp.Evaluate(`(() => { const s = document.getElementById("over"); s.selectedIndex = 1; s.dispatchEvent(new Event("change")) })()`, nil))
		b.until(`/a.x \[m\]/.test(` + own + `.querySelector(".axis").textContent)`)
		paths := eval[[]string](b, `[...`+own+`.querySelectorAll("path.line")].map(l => l.getAttribute("d"))`)
		if paths[0] != "" || paths[2] != "M0 0l0 0L500000 500000L0 1000000" || !strings.Contains(paths[3], "L1000000 500000") {
			t.Errorf("over a.x the lines are %q", paths)
		}
		b.picture(fmt.Sprintf("several-over-%d", width))
		// A third unit: each on a scale of its own.
		b.do(chromedp.Evaluate(`(() => { const a = document.getElementById("add"); a.value = "a.f"; a.dispatchEvent(new Event("change")); const s = document.getElementById("over"); s.selectedIndex = 0; s.dispatchEvent(new Event("change")) })()`, nil))
		b.until(`/a.F · one 5 … 7 N/.test(document.querySelector(".chosen-ones").textContent) && ` + own + `.querySelectorAll(".y").length === 0`)
		if got := eval[int64](b, `document.documentElement.scrollWidth`); got > width {
			t.Errorf("the page is %d wide", got)
		}
		b.quiet()
	}
}

// The picture of the system begins at a size at which it can be read, and scrolls in its frame. Two fingers zoom into it.
func TestDrawing(t *testing.T) {
	b := open(t, 390, 844, false)
	b.do(chromedp.Navigate(made(t)), chromedp.WaitVisible("#tools", chromedp.ByQuery))
	const wide = `document.querySelector(".picture").shadowRoot.querySelector("svg").getBoundingClientRect().width`
	before := eval[float64](b, wide)
	if frame := eval[float64](b, `document.querySelector(".picture").getBoundingClientRect().width`); before < 500 || frame > 390 {
		t.Errorf("the picture is %g wide, in a frame of %g", before, frame)
	}
	// What is above takes its size when it comes into view.
	b.until(`(() => { const p = document.querySelector(".picture"), old = p.getBoundingClientRect().y; p.scrollIntoView({block: "center"}); return p.getBoundingClientRect().y === old })()`)
	type point struct{ X, Y float64 }
	at := eval[point](b, `(() => { const r = document.querySelector(".picture").getBoundingClientRect(); return {X: r.x + r.width / 2, Y: r.y + r.height / 2} })()`)
	fingers := func(kind input.TouchType, apart float64) chromedp.Action {
		e := input.DispatchTouchEvent(kind, nil)
		if apart > 0 {
			e.TouchPoints = []*input.TouchPoint{{X: at.X - apart, Y: at.Y, ID: 1}, {X: at.X + apart, Y: at.Y, ID: 2}}
		}
		return e
	}
	b.do(fingers(input.TouchStart, 30), fingers(input.TouchMove, 45), fingers(input.TouchMove, 60), fingers(input.TouchEnd, 0))
	b.until(fmt.Sprintf(`%s > %g`, wide, 1.5*before))
	b.picture("drawing-zoomed")
	b.do(chromedp.Evaluate(`[...document.querySelectorAll(".buttons.small button")].at(-1).click()`, nil))
	b.until(wide + ` < 390`)
	b.quiet()
}

// The value at the cursor is the one of the table.
func TestCursor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.csv")
	if err := os.WriteFile(path, []byte("time,a.x\n0,1.5\n1,-2.25\n2,1e3\n4,7\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	macrostep(t, "report", path)
	b := open(t, 1200, 900, false)
	b.do(chromedp.Navigate("file://" + strings.TrimSuffix(path, "csv") + "html"))
	for part, want := range map[float64]string{0.26: "-2.25 at 1 s", 0.51: "1000 at 2 s", 0.9: "7 at 4 s"} {
		b.drag(part, part)
		// Heights are kept to a millionth of the picture.
		b.until(fmt.Sprintf(`(() => { const [v, , t] = document.querySelector("output").textContent.split(" "), [w, , u] = %q.split(" "); return Math.abs(v - w) < 2e-3 && t === u })()`, want))
	}
	b.quiet()
}

// The page of a test case in real time: verdicts, how late it was, marks in the plots that stay where they are in
// time.
func TestScenario(t *testing.T) {
	dir := t.TempDir()
	scenario, path := filepath.Join(dir, "fault.yaml"), filepath.Join(dir, "car.html")
	if err := os.WriteFile(scenario, []byte(`name: a sensor that drifts
events:
  - {at: 0.5, offset: {chassis.v_c: 0.05}, for: 1}
  - {at: 2, freeze: [chassis.F_c]}
expect:
  - {variable: chassis.z_c, always: {}, max: 0.12}
  - {variable: chassis.z_c, at: 1, min: 0}
`), 0o666); err != nil {
		t.Fatal(err)
	}
	run := exec.Command(program, "run", filepath.Join(systems, "quarter-car-a.ssp"), "--scenario", scenario,
		"--realtime=10", "--output", filepath.Join(dir, "car.csv"), "--report", path)
	if out, err := run.CombinedOutput(); run.ProcessState == nil || run.ProcessState.ExitCode() != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, width := range []int64{1200, 390} {
		for _, dark := range []bool{false, true} {
			b := open(t, width, 900, dark)
			b.do(chromedp.Navigate("file://"+path), chromedp.WaitVisible("#tools", chromedp.ByQuery))
			if got := eval[int64](b, `document.documentElement.scrollWidth`); got > width {
				t.Errorf("the page is %d wide", got)
			}
			show := func(element, name string) image.Image {
				b.do(chromedp.Evaluate(element+`.scrollIntoView()`, nil))
				time.Sleep(200 * time.Millisecond)
				return b.picture(fmt.Sprintf("scenario-%s-%d-dark-%v", name, width, dark))
			}
			for _, title := range []string{"Scenario", "Real time"} {
				show(fmt.Sprintf(`[...document.querySelectorAll("h2")].find(h => h.textContent === %q)`, title),
					strings.ReplaceAll(title, " ", "-"))
			}
			if n := columns(show(`document.querySelector(".plot")`, "plots"), dark); n < 250 {
				t.Errorf("%d wide, dark %v: %d columns have a line", width, dark, n)
			}
			b.drag(0.1, 0.6)
			b.until(`Math.abs(parseFloat(document.querySelector(".plot svg").getAttribute("viewBox")) - 1e5) < 5e3`)
			b.until(`[...document.querySelectorAll(".plot")].filter(p => /chassis.z_c/.test(p.dataset.name)).every(p => { const [, y, , h] = p.querySelector("svg").getAttribute("viewBox").split(" ").map(Number); return p.querySelector(".mark.event").getAttribute("d").startsWith("M125000 " + y + "V" + (y + h)) && p.querySelectorAll(".mark.met,.mark.failed").length === 2 })`)
			b.picture(fmt.Sprintf("scenario-zoomed-%d-dark-%v", width, dark))
			b.quiet()
		}
	}
}

// Without JavaScript plots are there, with their axes.
func TestWithoutScript(t *testing.T) {
	address := made(t)
	b := open(t, 1200, 900, false)
	b.do(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(address))
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		return input.SynthesizeScrollGesture(600, 400).WithYDistance(-500).WithSpeed(5000).Do(ctx)
	}))
	time.Sleep(200 * time.Millisecond)
	if n := columns(b.picture("without-script"), false); n < 500 {
		t.Errorf("%d columns have a line", n)
	}
	if eval[bool](b, `document.getElementById("tools").offsetWidth > 0`) {
		t.Error("buttons that need a script are shown")
	}
	b.quiet()
}

// A page of fifty variables with a hundred thousand points each stays small.
func TestLarge(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "large.csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const variables, n = 50, 100_001
	w := bufio.NewWriter(f)
	w.WriteString("time")
	for k := range variables {
		fmt.Fprintf(w, ",c%d.v%d", k/10, k)
	}
	state := uint32(1)
	for i := range n {
		fmt.Fprintf(w, "\n%g", float64(i)*1e-3)
		for range variables {
			state = state*1664525 + 1013904223
			fmt.Fprintf(w, ",%d", state>>20)
		}
	}
	w.WriteString("\n")
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
	macrostep(t, "report", path)
	info, err := os.Stat(filepath.Join(dir, "large.html"))
	if err != nil || info.Size() > 2_000_000 {
		t.Fatalf("%v: %d bytes", err, info.Size())
	}
	b := open(t, 1200, 900, false)
	b.do(chromedp.Navigate("file://" + filepath.Join(dir, "large.html")))
	b.until(plots + ` === 50 && document.querySelector(".plot svg").getAttribute("viewBox") === "0 0 1000000 1000000"`)
	b.drag(0.4, 0.6)
	b.until(`document.querySelector(".plot svg").getAttribute("viewBox").startsWith("4")`)
	// Few points are drawn, however many there are.
	if n := eval[int](b, `[...document.querySelectorAll(".line")].reduce((n, l) => n + l.getAttribute("d").length, 0)`); n > 2_000_000 {
		t.Errorf("zoomed in, the lines are %d characters long", n)
	}
	b.picture("large")
	b.quiet()
}

// live starts a run that serves its page, and returns the address of the page.
func live(t *testing.T, args ...string) (address string, run *exec.Cmd) {
	t.Helper()
	run = exec.Command(program, append([]string{"run", filepath.Join(systems, "quarter-car-a.ssp"), "--live", "0"}, args...)...)
	run.Dir = t.TempDir()
	out, err := run.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = run.Process.Kill() // it may have ended
		_ = run.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if address = regexp.MustCompile(`http://\S+`).FindString(lines.Text()); address != "" {
			break
		}
	}
	if address == "" {
		t.Fatal("no address is told")
	}
	go func() {
		for lines.Scan() { // so that the run does not wait
		}
	}()
	return address, run
}

func TestLive(t *testing.T) {
	address, run := live(t, "--debug", "live-paused", "--stop-time", "1e6", "--step-size", "1e-4", "--record", "none",
		"--report", "live.html")
	b := open(t, 1200, 900, false)
	const told = `document.getElementById("told").textContent`
	state := func(s string) string { return fmt.Sprintf(`document.getElementById("state").textContent === %q`, s) }
	b.do(chromedp.Navigate(address))
	b.until(state("paused"))
	b.until(told + `.endsWith(", 0 macro steps")`)
	for i, text := range []string{"1 macro step", "2 macro steps"} {
		b.do(chromedp.Click("#step", chromedp.ByQuery))
		b.until(fmt.Sprintf(`%s.endsWith(", %s")`, told, text))
		if i == 1 {
			b.until(`document.querySelectorAll(".line")[0].getAttribute("d").length > 10`)
		}
	}
	b.do(chromedp.Click("#pause", chromedp.ByQuery)) // it says Resume
	b.until(state("running"))
	b.until(`parseFloat(` + told + `.slice(4)) > 20`)
	b.until(lines + ` === ` + plots)
	b.do(chromedp.Click("#pause", chromedp.ByQuery))
	b.until(state("paused"))
	time.Sleep(500 * time.Millisecond)
	before := eval[string](b, told)
	time.Sleep(700 * time.Millisecond)
	if after := eval[string](b, told); after != before {
		t.Errorf("a paused run goes on: %s, then %s", before, after)
	}
	if n := columns(b.picture("live-paused"), false); n < 300 {
		t.Errorf("%d columns have a line", n)
	}
	// Zoom holds while the run goes on.
	b.drag(0.2, 0.4)
	b.until(`document.getElementById("window").textContent.includes(" to ")`)
	b.do(chromedp.Click("#pause", chromedp.ByQuery))
	b.until(state("running"))
	b.until(told + ` !== ` + fmt.Sprintf("%q", before))
	b.do(chromedp.Click("#stop", chromedp.ByQuery))
	b.until(state("interrupted")) // the page of the whole run
	b.until(`/stopped on its page/.test(document.getElementById("reason").textContent)`)
	b.picture("live-stopped")
	var exit *exec.ExitError
	if err := run.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the run ends with %v", err)
	}
	if page, err := os.ReadFile(filepath.Join(run.Dir, "live.html")); err != nil || !bytes.Contains(page, []byte("stopped on its page")) {
		t.Errorf("%v: the report is not there", err)
	}
	b.quiet()
}

// A run that comes to its end shows the whole of it.
func TestLiveToTheEnd(t *testing.T) {
	address, run := live(t, "--debug", "live-paused", "--stop-time", "4")
	b := open(t, 390, 844, true)
	b.do(chromedp.Navigate(address))
	b.until(`document.getElementById("state").textContent === "paused"`)
	b.picture("live-phone")
	b.do(chromedp.Click("#pause", chromedp.ByQuery))
	b.until(`document.getElementById("state").textContent === "complete"`)
	if err := run.Wait(); err != nil {
		t.Error(err)
	}
	b.until(lines + ` === ` + plots + ` && ` + plots + ` > 1`)
	if !eval[bool](b, `document.querySelectorAll(".bar").length === 5 && document.querySelector("pre").textContent.includes('"status": "complete"')`) {
		t.Error("it is not the page of the whole run")
	}
	b.quiet()
}

// A run that is over before anybody looks shows its page to the first reader.
func TestLiveShort(t *testing.T) {
	address, run := live(t, "--stop-time", "0.01")
	b := open(t, 1200, 900, false)
	b.do(chromedp.Navigate(address))
	b.until(`document.getElementById("state").textContent === "complete" && document.body.textContent.includes("The run is over.")`)
	if err := run.Wait(); err != nil {
		t.Error(err)
	}
	b.quiet()
}
