// Command figures draws figures of the papers from runs of macrostep:
//
//	go run ./test/figures DIR
//
// It builds the program and the example systems, runs them, writes SVG files to DIR and prints their numbers. It takes
// about three minutes of processor time, on all cores at once.
//
//   - meyer-11-x.svg, meyer-11-v.svg, meyer-12.svg, meyer-13.svg: displacement and
//     velocity of the mass before the contact, macro step size, and order over time,
//     for the five error estimators with order control (meyer 6.1, Figs. 11 to 13).
//   - meyer-14.svg: macro steps at fixed orders and with order control (Fig. 14b).
//   - haid-4.svg: where in the plane of coupling stiffness and damping the holds of
//     order 0 to 2 are stable, without and with model-based correction, for the
//     macro steps of the paper (haid 4.1, Fig. 4): fields by 15 120 runs of the
//     strategy on subsystems in Go, lines by the spectral radius. Dots show stable
//     steps above unstable ones.
//   - haid-6.svg: where their global error is at most 1 % (haid 4.2, Fig. 6): fields
//     by runs, lines by propagation matrices. The paper gives neither the start nor
//     the length of its runs; ours start at v1 = v2 = 1 m/s with an exact history
//     and last 0.1 s.
//   - haid-8.svg: local error over macro step for holds of order 0 to 4 (haid 4.3,
//     Fig. 8), by FMUs.
//   - haid-9.svg: displacement and global error of the oscillator with nonlinear
//     damping (haid 5, Fig. 9), by FMUs.
package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"

	"github.com/macrostep/macrostep/fmus"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/figures DIR")
		os.Exit(2)
	}
	if err := drawAll(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// colours are distinct also for the red-green colour-blind.
var colours = []color.RGBA{{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {86, 86, 86, 255}}

func drawAll(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "macrostep-figures-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r := &runner{program: filepath.Join(work, "macrostep"), dir: work}
	if out, err := exec.Command("go", "build", "-o", r.program, "github.com/macrostep/macrostep/cmd/macrostep").CombinedOutput(); err != nil {
		return fmt.Errorf("building macrostep: %w\n%s", err, out)
	}
	contact, err := fmus.WriteSystem(work, "contact-oscillator")
	if err != nil {
		return err
	}
	oscillator, err := fmus.WriteSystem(work, "corrector-oscillator")
	if err != nil {
		return err
	}
	return errors.Join(overTime(r, contact, dir), counts(r, contact, dir),
		localErrors(r, oscillator, dir), nonlinear(r, oscillator, dir), stability(dir), accuracy(dir))
}

// runner runs the program. It may be used from several goroutines.
type runner struct {
	program, dir string
	files        atomic.Int64
}

// file returns a new path.
func (r *runner) file(name string) string {
	return filepath.Join(r.dir, fmt.Sprintf("%d-%s", r.files.Add(1), name))
}

// run returns the columns of the results.
func (r *runner) run(args ...string) (map[string][]float64, error) {
	output := r.file("results.csv")
	out, err := exec.Command(r.program, append([]string{"run", "--quiet", "--output", output}, args...)...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", args, err, out)
	}
	defer os.Remove(output)
	return columns(output)
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

// each calls do for 0 … n−1, on all processors.
func each(n int, do func(i int) error) error {
	var next atomic.Int64
	failed := make([]error, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	for w := range failed {
		wait.Go(func() {
			for failed[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				failed[w] = do(i)
			}
		})
	}
	wait.Wait()
	return errors.Join(failed...)
}

func save(p *plot.Plot, dir, name string) error {
	path := filepath.Join(dir, name+".svg")
	if err := p.Save(18*vg.Centimeter, 10*vg.Centimeter, path); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fmt.Println(path)
	return nil
}
