// Command figures draws what the papers draw, from runs of macrostep:
//
//	go run ./test/figures DIR
//
// It builds the program and the example systems, runs them, and writes SVG
// files to DIR.
//
//   - meyer-11.svg, -12.svg, -13.svg: displacement and velocity of the mass before
//     the contact, macro step size, and order over time, for the five error
//     estimators with order control (meyer 6.1, Figs. 11 to 13).
//   - meyer-14.svg: macro steps at fixed orders and with order control (Fig. 14b).
package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/macrostep/macrostep/fmus"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/figures DIR")
		os.Exit(2)
	}
	if err := draw(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var estimators = []string{"ex-local", "ex-milne", "ex-slocal", "im-milne", "im-slocal"}

// colours of the estimators, told apart also without red and green.
var colours = []color.RGBA{{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 86, 86, 255}}

func draw(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "macrostep-figures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r := runner{program: filepath.Join(work, "macrostep"), dir: work}
	if out, err := exec.Command("go", "build", "-o", r.program, "github.com/macrostep/macrostep/cmd/macrostep").CombinedOutput(); err != nil {
		return fmt.Errorf("building macrostep: %w\n%s", err, out)
	}
	if r.system, err = fmus.WriteSystem(work, "contact-oscillator"); err != nil {
		return err
	}
	return errors.Join(overTime(r, dir), counts(r, dir))
}

// runner runs the program on a system.
type runner struct{ program, dir, system string }

// run gives the columns of the results and of the table of attempts.
func (r runner) run(args ...string) (results, attempts map[string][]float64, err error) {
	output, trace := filepath.Join(r.dir, "results.csv"), filepath.Join(r.dir, "trace.csv")
	out, err := exec.Command(r.program, append([]string{"run", r.system, "--quiet", "--output", output, "--trace", trace}, args...)...).CombinedOutput()
	if err != nil {
		return nil, nil, fmt.Errorf("%v: %w\n%s", args, err, out)
	}
	results, err = columns(output)
	if err != nil {
		return nil, nil, err
	}
	attempts, err = columns(trace)
	return results, attempts, err
}

func columns(path string) (map[string][]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	for _, row := range rows[1:] {
		for i, text := range row {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			out[rows[0][i]] = append(out[rows[0][i]], v)
		}
	}
	return out, nil
}

// overTime draws Figs. 11 to 13.
func overTime(r runner, dir string) error {
	x, v, H, k := newPlot("displacement x₁ / m"), newPlot("velocity v₁ / (m/s)"), newPlot("macro step size H / s"), newPlot("order k")
	H.Y.Scale, H.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	for i, e := range estimators {
		results, attempts, err := r.run("--algorithm", e)
		if err != nil {
			return err
		}
		var t, size, order []float64
		for j, accepted := range attempts["accepted"] {
			if accepted == 1 {
				t, size, order = append(t, attempts["t"][j]), append(size, attempts["H"][j]), append(order, attempts["k"][j])
			}
		}
		err = errors.Join(add(x, i, results["time"], results["left.x"]), add(v, i, results["time"], results["left.v"]),
			add(H, i, t, size), add(k, i, t, order))
		if err != nil {
			return err
		}
	}
	return errors.Join(save(x, dir, "meyer-11-x"), save(v, dir, "meyer-11-v"), save(H, dir, "meyer-12"), save(k, dir, "meyer-13"))
}

func newPlot(what string) *plot.Plot {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "time / s", what
	p.Legend.Top = true
	return p
}

func add(p *plot.Plot, i int, t, y []float64) error {
	points := make(plotter.XYs, len(t))
	for j := range t {
		points[j] = plotter.XY{X: t[j], Y: y[j]}
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color = colours[i]
	p.Add(line)
	p.Legend.Add(estimators[i], line)
	return nil
}

func save(p *plot.Plot, dir, name string) error {
	path := filepath.Join(dir, name+".svg")
	if err := p.Save(18*vg.Centimeter, 10*vg.Centimeter, path); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fmt.Println(path)
	return nil
}

// counts draws Fig. 14b: macro steps at fixed orders and with order control.
func counts(r runner, dir string) error {
	p := plot.New()
	p.Y.Label.Text = "macro steps"
	orders := []string{"1", "2", "3", "4", "auto"}
	const width = 9 * vg.Millimeter / 3
	for i, e := range estimators {
		var values plotter.Values
		for _, k := range orders {
			_, attempts, err := r.run("--algorithm", e, "--param", "order="+k)
			if err != nil {
				return err
			}
			n := 0.0
			for _, accepted := range attempts["accepted"] {
				n += accepted
			}
			values = append(values, n)
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color = colours[i]
		bars.Offset = vg.Length(i-2) * width
		p.Add(bars)
		p.Legend.Add(e, bars)
	}
	p.Legend.Top = true
	p.NominalX("k = 1", "k = 2", "k = 3", "k = 4", "order control")
	return save(p, dir, "meyer-14")
}
