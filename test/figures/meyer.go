package main

import (
	"errors"
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

var estimators = []string{"ex-local", "ex-milne", "ex-slocal", "im-milne", "im-slocal"}

// attempted returns the columns of the results and of the table of attempts.
func attempted(r *runner, args ...string) (results, attempts map[string][]float64, err error) {
	trace := r.file("trace.csv")
	if results, err = r.run(append(args, "--trace", trace)...); err != nil {
		return nil, nil, err
	}
	defer os.Remove(trace)
	attempts, err = columns(trace)
	return results, attempts, err
}

// overTime draws Figs. 11 to 13.
func overTime(r *runner, system, dir string) error {
	x, v, H, k := newPlot("displacement x₁ / m"), newPlot("velocity v₁ / (m/s)"), newPlot("macro step size H / s"), newPlot("order k")
	H.Y.Scale, H.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	for i, e := range estimators {
		results, attempts, err := attempted(r, system, "--algorithm", e)
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

// counts draws Fig. 14b: macro steps at fixed orders and with order control.
func counts(r *runner, system, dir string) error {
	p := plot.New()
	p.Y.Label.Text = "macro steps"
	orders := []string{"1", "2", "3", "4", "auto"}
	const width = 9 * vg.Millimeter / 3
	for i, e := range estimators {
		var values plotter.Values
		for _, k := range orders {
			_, attempts, err := attempted(r, system, "--algorithm", e, "--param", "order="+k)
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
