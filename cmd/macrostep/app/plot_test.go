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
	plot := func(want string, args ...string) {
		t.Helper()
		code, stdout, stderr := callIn(t.Context(), t, ".", &fake{}, append([]string{"plot"}, args...)...)
		if code != exitDone || !strings.Contains(stdout, want) {
			t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
		}
	}
	plot("wrote a1.svg: 2 variables of 2 files", "a*.csv")
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
	plot("wrote d.svg: 1 variable of 2 files", "a1.csv", "a2.csv", "--diff", "-o", "d.svg", "--select", "m.x")
	// B − A is 0.5, 1.5 (between the rows of B) and 0.5: the axis goes from 0.5 to 1.5.
	contains(t, "the picture of differences", read(t, "d.svg"), ">m.x<", "a2.csv − a1.csv", ">0.5<", ">1.5<")
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
	// A range beyond the numbers is drawn in a larger unit; the library would not return.
	write(t, "huge.csv", "time,x [m],y\n0,1e308,NaN\n1,-1e308,Inf\n2,0,2\n")
	plot("", "huge.csv", "-o", "huge.png")
	plot("", "huge.csv")
	contains(t, "the picture", read(t, "huge.svg"), ">[1e+300 m]<", ">-1e+08<", ">1e+08<")
	refuses(t, ".", &fake{}, map[string]string{
		"plot":                           "FILE (a table of results) is missing",
		"plot|none.csv":                  "none.csv: no such file",
		"plot|no*.csv":                   "no file matches no*.csv",
		"plot|a1.csv":                    "a1.svg exists already",
		"plot|a1.csv|--diff":             "needs two files",
		"plot|a1.csv|-o|x.pdf":           "a picture must be .svg or .png",
		"plot|a1.csv|--force|--select|q": "there is nothing to draw: none of the chosen variables of a1.csv holds numbers",
	})
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
