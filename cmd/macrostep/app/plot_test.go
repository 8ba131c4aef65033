package app

import (
	"context"
	"errors"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/simulate"
)

func TestPlotCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a1.csv", "time,m.x,m.y\n0,0,1\n1,1,1\n2,4,1\n")
	write(t, "a2.csv", "time;m.x [m];m.y\n0;0,5;1\n2;4,5;1\n")
	plot := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := callIn(t.Context(), t, ".", &fake{}, append([]string{"plot"}, args...)...)
		if code != exitDone || !strings.Contains(stdout, want) {
			t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
		}
	}
	plot("wrote a1.svg: 1 chart of 2 files", "a*.csv")
	if _, _, stderr := callIn(t.Context(), t, ".", &fake{}, "plot", "a2.csv", "--force"); stderr != "note: a2.csv: fields are separated by semicolons; decimal commas\n" {
		t.Errorf("the interpretation of a table is %q", stderr)
	}
	svg := read(t, "a1.svg")
	contains(t, "the picture", svg, ">m.x<", ">m.y = 1<", ">a1.csv<", ">a2.csv<", ">time [s]<")
	if strings.Contains(svg, ">m.y<") {
		t.Error("a constant has a chart")
	}
	write(t, "on.csv", "time,m.on\n0,0\n10,0\n20,0\n30,0\n40,1\n")
	plot("", "on.csv")
	if on := read(t, "on.svg"); !strings.Contains(on, ">1<") || strings.Contains(on, ">0.5<") {
		t.Error("a Boolean has an axis with fractions")
	}
	write(t, "gap.csv", "time,m.y\n0,1\n1,1\n2,NaN\n")
	plot("wrote gap.svg: 1 chart of 2 files", "gap.csv", "a1.csv", "--select", "m.y", "-o", "gap.svg") // not constant: it has a gap
	plot("wrote d.svg: 1 chart of 2 files", "a1.csv", "a2.csv", "--diff", "-o", "d.svg", "--select", "m.x")
	// B − A is 0.5, 1.5 (between the rows of B) and 0.5: the axis goes from 0.5 to 1.5.
	contains(t, "the picture of differences", read(t, "d.svg"), ">m.x<", "a2.csv − a1.csv", ">0.5<", ">1.5<")
	plot("", "a1.csv", "a1.csv", "--diff", "-o", "equal.svg")
	contains(t, "the picture of no differences", read(t, "equal.svg"), ">Without a difference<", ">m.x<", ">m.y<")
	write(t, "b.csv", "time,m.x [mm],m.f [N],m.on,m.s\n0,0,0,0,1\n1,1000,7,0,1.5\n2,2000,0,0,2\n3,3000,0,1,2\n4,1000,0,1,3\n")
	plot("wrote phase.svg: 3 charts of 1 file", "b.csv", "--against", "m.x", "-o", "phase.svg")
	contains(t, "the phase plot", read(t, "phase.svg"), ">m.x [mm]<", ">[N]<", ">3000<", ">A dot marks the start of a line.<")
	// Units are those of the first file: 1 m, not 1000.
	write(t, "c.csv", "time,m.x [m]\n0,1\n1,0\n")
	plot("", "c.csv", "b.csv", "--select", "m.x", "-o", "units.svg")
	contains(t, "the picture in m", read(t, "units.svg"), ">[m]<", ">3<")
	write(t, "v.csv", "time,m.x [V]\n0,1\n1,5\n")
	plot("wrote apart.svg: 2 charts", "c.csv", "v.csv", "-o", "apart.svg")
	contains(t, "the picture of two units", read(t, "apart.svg"), ">[m]<", ">[V]<")
	// The manifest beside a table has units, and outputs that inputs equal.
	write(t, "run.csv", "time,m.x,k.u,k.n\n0,0,0,1.5\n1,1,1,2.5\n2,4,4,1.5\n")
	write(t, "run.json", `{"units": {"m.x": "m"}, "connected": {"k.u": "m.x"}, "held": ["k.n"]}`)
	plot("", "run.csv")
	contains(t, "the picture of a run", read(t, "run.svg"), ">[m]<", ">Connected inputs<", ">k.u = m.x<")
	write(t, "run.json", `{"connected": {"k.u": "m.x"}, "manipulated": ["k.u"]}`)
	plot("", "run.csv", "--force")
	contains(t, "the picture of a run that a scenario disturbed", read(t, "run.svg"), ">k.u<")
	plot("", "a1.csv", "-o", "p.png")
	f, err := os.Open("p.png")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	blue := 0 // of the first line
	for x := range picture.Bounds().Dx() {
		for y := range picture.Bounds().Dy() {
			if r, g, b, _ := picture.At(x, y).RGBA(); r>>8 == 0 && g>>8 == 114 && b>>8 == 178 {
				blue++
			}
		}
	}
	if blue < 500 {
		t.Errorf("%d points of %v are of a line", blue, picture.Bounds())
	}
	// The greatest numbers have an axis, too, and no number has none.
	write(t, "huge.csv", "time,x [m],y,z\n0,1e308,NaN,NaN\n1,-1e308,Inf,Inf\n2,0,2,NaN\n")
	plot("", "huge.csv", "-o", "huge.png")
	plot("", "huge.csv")
	contains(t, "the picture", read(t, "huge.svg"), ">×1e306 [m]<", ">100<", ">-100<", ">y<", ">Without finite values<", ">z<")
	refuses(t, ".", &fake{}, map[string]string{
		"plot":                              "FILE (a table of results) is missing",
		"plot|none.csv":                     "none.csv: no such file",
		"plot|no*.csv":                      "no file matches no*.csv",
		"plot|a1.csv":                       "a1.svg exists already",
		"plot|a1.csv|--diff":                "needs two files",
		"plot|a1.csv|--against|m.z|--force": `a1.csv has no such variable with numbers; did you mean "m.x"?`,
		"plot|a1.csv|a2.csv|--diff|--against|m.x": "choose one",
		"plot|a1.csv|-o|x.pdf":                    "a picture must be .svg or .png",
		"plot|a1.csv|--force|--select|q":          `--select: no variable matches "q"`,
		"plot|a1.csv|a2.csv|--force|--select|m.z": `no variable matches "m.z"; did you mean "m.x"?`,
		"plot|a1.csv|--force|--select|?.z":        "there is nothing to draw: none of the chosen variables of a1.csv holds numbers",
	})
}

// Values of discrete variables hold until the next row.
func TestHeld(t *testing.T) {
	for want, lists := range map[bool][][]float64{
		true:  {{0, 0, 0, 1, 1, 1}, {3, 3, 3, 2}, {5, 5}},
		false: {{0, 1, 4, 9}, {0, 0, 0, 0.5}, {0, 1, 0, 1}, {1, 1, math.NaN(), 1, 1}},
	} {
		for _, values := range lists {
			if held(values) != want {
				t.Errorf("%v: want %t", values, want)
			}
		}
	}
}

// Commands that leave no partial files end at the first interrupt at any time.
func TestEndsAtOnce(t *testing.T) {
	var how answering
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), answeringKey{}, &how))
	begun, never := make(chan struct{}), make(chan struct{})
	defer close(never)
	go func() {
		<-begun
		cancel(master.ErrInterrupted)
	}()
	if text := how.String(); !strings.Contains(text, "what is under way is finished") {
		t.Error(text)
	}
	err := endsAtOnce(func(*cli.Context) error { close(begun); <-never; return nil })(&cli.Context{Context: ctx})
	var after *runError
	if !errors.Is(err, master.ErrInterrupted) || !errors.As(err, &after) {
		t.Error(err)
	}
	if text := how.String(); text != "interrupted" {
		t.Error(text)
	}
}

// The error about a missing file names similar files.
func TestThere(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "car.ssp"), "")
	for name, want := range map[string]string{
		filepath.Join(dir, "car.ssp"): "", filepath.Join(dir, "car.ssp#variant.ssd"): "",
		filepath.Join(dir, "car.sp"):       `car.sp: no such file; did you mean "car.ssp"?`,
		filepath.Join(dir, "quarter.ssp"):  "quarter.ssp: no such file; there are car.ssp",
		filepath.Join(dir, "sub", "x.ssp"): "there is no folder",
		filepath.Join(empty, "x.ssp"):      "macrostep demo",
	} {
		if err := simulate.There(name); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Names in several tables match as compare matches them: one may be the end of another, and --match adds pairs.
func TestMatchedNames(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("data.csv"), "time,h,speed\n0,1,0\n1,0.5,2\n")
	write(t, path("run.csv"), "time,BouncingBall.h,BouncingBall.v\n0,1,0\n1,0.4,2.5\n")
	both := []string{path("data.csv"), path("run.csv")}
	for _, tt := range []struct {
		args         []string
		charts       int
		has, without string
	}{
		{nil, 3, ">h<", "BouncingBall.h"},
		{[]string{"--match", "speed=BouncingBall.v"}, 2, ">speed<", "BouncingBall.v<"},
		{[]string{"--select", "BouncingBall.h"}, 1, ">h<", "speed"},
		{[]string{"--select", "h", "--diff"}, 1, ">h<", "speed"},
		{[]string{"--select", "speed", "--match", "speed=BouncingBall.v", "--against", "h"}, 1, ">speed<", "BouncingBall.v<"},
	} {
		code, stdout, stderr := call(t, nil, slices.Concat([]string{"plot"}, both, tt.args, []string{"--output", path("p.svg"), "--force"})...)
		picture := read(t, path("p.svg"))
		if code != 0 || !strings.Contains(stdout, plural(tt.charts, "chart")) || !strings.Contains(picture, tt.has) || strings.Contains(picture, tt.without) {
			t.Errorf("%v: %d, %s%s", tt.args, code, stdout, stderr)
		}
		code, stdout, stderr = call(t, nil, slices.Concat([]string{"report"}, both, slices.DeleteFunc(slices.Clone(tt.args), func(a string) bool {
			return a == "--diff" || a == "--against" || a == "h" && slices.Contains(tt.args, "--against")
		}), []string{"--output", path("p.html"), "--force"})...)
		if page := read(t, path("p.html")); code != 0 || strings.Count(page, `class="line l1"`) == 0 || !strings.Contains(page, strings.Trim(tt.has, "><")+`"`) || strings.Contains(page, `data-name="`+strings.Trim(tt.without, "<")+`"`) {
			t.Errorf("report %v: %d, %s%s", tt.args, code, stdout, stderr)
		}
	}
	if code, _, stderr := call(t, nil, "plot", both[0], both[1], "--match", "speed=v", "-o", path("n.svg")); code == 0 || !strings.Contains(stderr, "run.csv has no variable v") {
		t.Errorf("%d, %s", code, stderr)
	}
}
