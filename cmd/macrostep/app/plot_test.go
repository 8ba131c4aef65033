package app

import (
	"context"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/simulate"
)

func TestPlotCommand(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a1.csv", "time,m.x,m.y\n0,0,1\n1,1,1\n2,4,1\n")
	write(t, "a2.csv", "time;m.x [m];m.y\n0;0,5;1\n2;4,5;NaN\n")
	plot := func(args ...string) (code int, stdout, stderr string) {
		var out, errs strings.Builder
		code = run(context.Background(), append([]string{"plot"}, args...), strings.NewReader(""), &out, &errs, &fake{})
		return code, out.String(), errs.String()
	}
	if code, stdout, stderr := plot("a*.csv"); code != exitDone || !strings.Contains(stdout, "wrote a1.svg: 2 variables of 2 files") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	svg := read(t, "a1.svg")
	contains(t, "the picture", svg, ">m.x<", ">m.y<", ">a1.csv<", ">a2.csv<", ">time [s]<")
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, stderr := plot("a1.csv", "a2.csv", "--diff", "-o", "d.svg", "--select", "m.x"); code != exitDone || !strings.Contains(stdout, "wrote d.svg: 1 variable of 2 files") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	// B − A is 0.5, 1.5 (between the rows of B) and 0.5: the axis goes from 0.5 to 1.5.
	contains(t, "the picture of differences", read(t, "d.svg"), ">m.x<", "a2.csv − a1.csv", ">0.5<", ">1.5<")
	if code, _, stderr := plot("a1.csv", "-o", "p.png"); code != exitDone {
		t.Fatal(stderr)
	}
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
	for args, want := range map[string]string{
		"":                          "FILE (a table of results) is missing",
		"none.csv":                  "none.csv: no such file",
		"no*.csv":                   "no file matches no*.csv",
		"a1.csv":                    "a1.svg exists already",
		"a1.csv|--diff":             "a difference takes two",
		"a1.csv|-o|x.pdf":           "a picture is .svg or .png",
		"a1.csv|--force|--select|q": "there is nothing to draw: a1.csv has no variable that is chosen and holds numbers",
	} {
		if code, _, stderr := plot(strings.FieldsFunc(args, func(r rune) bool { return r == '|' })...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s; want %s", args, code, stderr, want)
		}
	}
}

// A file that is not there is told with what is near it.
// A range that is no number is drawn by another unit; the library would not come back.
func TestPlotHuge(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "a.csv", "time,x [m],y\n0,1e308,NaN\n1,-1e308,Inf\n2,0,2\n")
	for _, output := range []string{"a.svg", "a.png"} {
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"plot", "a.csv", "-o", output}, strings.NewReader(""), &out, &errs, &fake{}); code != exitDone {
			t.Fatalf("%s: exit code %d: %s", output, code, errs.String())
		}
	}
	contains(t, "the picture", read(t, "a.svg"), ">[1e+300 m]<", ">-1e+08<", ">1e+08<")
}

// Commands that leave nothing behind end at the first interrupt, whatever they are at.
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

func TestThere(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "car.ssp"), "")
	for name, want := range map[string]string{
		"car.sp": `car.sp: no such file; did you mean "car.ssp"?`, "quarter.ssp": "quarter.ssp: no such file; there are car.ssp", filepath.Join("sub", "x.ssp"): "there is no folder",
	} {
		if err := simulate.There(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	empty := t.TempDir()
	if err := simulate.There(filepath.Join(empty, "x.ssp")); err == nil || !strings.Contains(err.Error(), "macrostep demo") {
		t.Error(err)
	}
	for _, name := range []string{"car.ssp", "car.ssp#variant.ssd"} {
		if err := simulate.There(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
