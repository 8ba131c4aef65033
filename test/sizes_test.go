package test

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/macrostep/macrostep/test/probe"
)

// matrices are the arrays of an FMU x' = A x + B u, y = C x + D u, in row-major order; sizes are m, n and r.
type matrices struct {
	m, n, r              int
	a, b, c, d, start, u []float64
}

// newMatrices draws arrays of these sizes: multiples of 1/8, which have short decimals.
func newMatrices(m, n, r int) *matrices {
	k := 0
	draw := func(n int) []float64 {
		v := make([]float64, n)
		for i := range v {
			k = (k*7 + 5) % 17
			v[i] = float64(k-8) / 8
		}
		return v
	}
	return &matrices{m, n, r, draw(n * n), draw(n * m), draw(r * n), draw(r * m), draw(n), draw(m)}
}

// values are the values by variable, sizes included.
func (s *matrices) values() map[string]string {
	all := map[string]string{"m": fmt.Sprint(s.m), "n": fmt.Sprint(s.n), "r": fmt.Sprint(s.r)}
	for name, x := range map[string][]float64{"A": s.a, "B": s.b, "C": s.c, "D": s.d} {
		columns := map[string]int{"A": s.n, "B": s.m, "C": s.n, "D": s.m}[name]
		for k, v := range x {
			all[fmt.Sprintf("%s[%d,%d]", name, k/columns+1, k%columns+1)] = fmt.Sprint(v)
		}
	}
	for name, x := range map[string][]float64{"x0": s.start, "u": s.u} {
		for k, v := range x {
			all[fmt.Sprintf("%s[%d]", name, k+1)] = fmt.Sprint(v)
		}
	}
	return all
}

// set returns flags for the values of a component.
func (s *matrices) set(component string) (args []string) {
	all := s.values()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		args = append(args, "--set", component+"."+name+"="+all[name])
	}
	return args
}

// product adds matrix·vector to a vector.
func product(to, matrix, vector []float64) {
	for i := range to {
		for j, v := range vector {
			to[i] += matrix[i*len(vector)+j] * v
		}
	}
}

// outputs returns y at t by the explicit Euler method with steps h, all in s.
func (s *matrices) outputs(x []float64, t, h float64) []float64 {
	x = slices.Clone(x)
	for range int(math.Round(t / h)) {
		slope := make([]float64, s.n)
		product(slope, s.a, x)
		product(slope, s.b, s.u)
		for i := range x {
			x[i] += h * slope[i]
		}
	}
	y := make([]float64, s.r)
	product(y, s.c, x)
	product(y, s.d, s.u)
	return y
}

// check compares the last outputs of a run with those of the Euler method.
func (s *matrices) check(t testing.TB, o *outcome, component string, want []float64) {
	t.Helper()
	if o.columns[fmt.Sprintf("%s.y[%d]", component, s.r+1)] != nil {
		t.Error("there are too many outputs")
	}
	for k := range want {
		y := o.column(t, fmt.Sprintf("%s.y[%d]", component, k+1))
		if got := y[len(y)-1]; !(math.Abs(got-want[k]) <= 1e-12*(1+math.Abs(want[k]))) {
			t.Errorf("y[%d] is %.17g, want %.17g", k+1, got, want[k])
		}
	}
}

func spaceFMU(t testing.TB) string {
	return once(t, "space.fmu", func(string) error { _, err := probe.Space(work, "space"); return err })
}

// spaces writes a system of components with the FMU, whose values are in parameter sets.
func spaces(t testing.TB, components map[string]*matrices) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "space.fmu"), read(t, spaceFMU(t)))
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(components)) {
		fmt.Fprintf(&b, `<ssd:Component name=%q source="space.fmu"><ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues>`+
			`<ssv:ParameterSet version="1.0" name="v"><ssv:Parameters>`, name)
		all := components[name].values()
		for _, v := range slices.Sorted(maps.Keys(all)) {
			kind := "Real"
			if len(v) == 1 {
				kind = "Integer"
			}
			fmt.Fprintf(&b, `<ssv:Parameter name=%q><ssv:%s value=%q/></ssv:Parameter>`, v, kind, all[v])
		}
		b.WriteString(`</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings></ssd:Component>`)
	}
	write(t, filepath.Join(dir, "SystemStructure.ssd"), []byte(`<ssd:SystemStructureDescription version="1.0" name="spaces" `+
		`xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues">`+
		`<ssd:System name="s"><ssd:Elements>`+b.String()+`</ssd:Elements></ssd:System></ssd:SystemStructureDescription>`))
	return dir
}

// Sizes, smaller and greater ones, give the outputs of the Euler method wherever the FMU runs, by --set or by the documents.
func TestSizes(t *testing.T) {
	path := spaceFMU(t)
	for _, s := range []*matrices{newMatrices(2, 4, 3), newMatrices(3, 1, 2), newMatrices(1, 1, 1)} {
		args := append([]string{path, "--algorithm", "explicit", "--step-size", "0.125"}, s.set("space")...)
		here := complete(t, args...)
		s.check(t, here, "space", s.outputs(s.start, 1, 0.125))
		for _, more := range []string{"--isolate=space", hostFlag(t), "--workers=2"} {
			if complete(t, append(slices.Clip(args), more)...).table(t) != here.table(t) {
				t.Errorf("%d, %d, %d, %s: other bytes", s.m, s.n, s.r, more)
			}
		}
	}
}

// One FMU with two sizes in a system is two FMUs, also for what is measured and stored, and --set overrides documents.
func TestSizesTwice(t *testing.T) {
	small, large := newMatrices(1, 2, 1), newMatrices(2, 4, 3)
	path := spaces(t, map[string]*matrices{"small": small, "large": large, "twin": large})
	args := []string{path, "--step-size", "0.125", "--stop-time", "1"}
	for _, more := range []string{"--workers=1", "--isolate=small", "--isolate=large"} {
		o := complete(t, append(slices.Clip(args), more)...)
		small.check(t, o, "small", small.outputs(small.start, 1, 0.125))
		large.check(t, o, "large", large.outputs(large.start, 1, 0.125))
		large.check(t, o, "twin", large.outputs(large.start, 1, 0.125))
	}
	o := complete(t, append(slices.Clip(args), large.set("small")...)...)
	large.check(t, o, "small", large.outputs(large.start, 1, 0.125))
}

// A process of its own is replaced with the same sizes, and a checkpoint is resumed with them only.
func TestSizesAgain(t *testing.T) {
	s := newMatrices(2, 4, 3)
	dir := t.TempDir()
	path, err := probe.Space(dir, "space", "KILL 3", fmt.Sprintf("ONCE %q", filepath.ToSlash(filepath.Join(dir, "once"))))
	if err != nil {
		t.Fatal(err)
	}
	o := complete(t, append(s.set("space"), path, "--stop-time=4", "--isolate=space", "--on-crash=restart")...)
	if s.check(t, o, "space", s.outputs(s.start, 4, 0.125)); len(o.manifest.Restarts) != 1 {
		t.Errorf("%d restarts", len(o.manifest.Restarts))
	}

	c := completed(t, "0.25", append(s.set("space"), spaceFMU(t), "--stop-time=1", "--output=results.csv")...)
	resume := []string{"--resume", c.path("run.checkpoint"), "--stop-time=2"}
	s.check(t, complete(t, resume...), "space", s.outputs(s.start, 2, 0.125))
	run(t, append(newMatrices(3, 4, 2).set("space"), resume...)...).is(t, 2, "another run", "the inputs of space was u[1], u[2], but is u[1], u[2], u[3]")
}

// What is wrong with sizes is named, with the component, the parameter and its range.
func TestSizesRefused(t *testing.T) {
	path := spaceFMU(t)
	all := newMatrices(2, 5, 2).set("space")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"--set=n=6"}, []string{"space.fmu", `6 is given for "n", which is from 0 to 5`}},
		{[]string{"--set=n=0"}, []string{"space.fmu", `dimension 1 of "A" is 0, the value of "n"`, "at least 1"}},
		{[]string{"--set=n=-1"}, []string{"n=-1: the variable is of type UInt64; give a whole number from 0"}},
		{[]string{"--set=n=1.5"}, []string{"n=1.5: the variable is of type UInt64"}},
		{[]string{"--set=n=2", "--set=A[1,1]=1"}, []string{"space: A[1,2] has no value: with n = 2, A has the sizes [2 2]", "set all its 4 elements"}},
		{[]string{"--set=A[1,2]=1"}, []string{`space has no variable "A[1,2]"`}},
	} {
		o := run(t, append(slices.Clip(c.args), path)...)
		o.is(t, 2, c.want...)
	}
	run(t, append(all, path)...).is(t, 1, "space: fmi3SetUInt64 returned Discard; the FMU does not take m = 2, n = 5, r = 2")
	study := []string{"study", path, "--collect=final(space.y[1])", "--output", filepath.Join(t.TempDir(), "study"), "--vary"}
	call(t, append(study, "space.n=1,2")...).is(t, 2, "space.n cannot vary", "fixed when the system is opened", "--run set=space.n=")
	played := filepath.Join(t.TempDir(), "scenario.yaml")
	write(t, played, []byte("events:\n  - at: 0.5\n    set: {space.n: 2}\n"))
	run(t, path, "--scenario", played).is(t, 2, "space.n", "structural parameters are set when the system is opened: --set")
	o := call(t, append([]string{"info", path, "--explain", "space.n"}, newMatrices(2, 4, 3).set("space")...)...)
	if o.is(t, 0, "4", "given by the user"); strings.Contains(o.output, "documented start value") {
		t.Error(o.output)
	}
}

// A system is made with one size and set to another one, with the new elements.
func TestSizesStored(t *testing.T) {
	dir := t.TempDir()
	first, path := filepath.Join(dir, "first.ssp"), filepath.Join(dir, "second.ssp")
	call(t, "ssp", "new", "space="+spaceFMU(t), "--output", first).is(t, 0)
	s := newMatrices(2, 4, 3)
	args := []string{"ssp", "set", first, "--output", path}
	for name, v := range s.values() {
		args = append(args, "space."+name+"="+v)
	}
	call(t, args...).is(t, 0, "space.n", "1 → 4")
	s.check(t, complete(t, path), "space", s.outputs(s.start, 1, 0.125))
	call(t, "ssp", "set", path, "--output", filepath.Join(dir, "third.ssp"), "space.m=3").is(t, 2, "space: B[1,3] has no value")
}

// arrays writes a system of one → two, with the outputs of two as its own, with array connectors and lists of values or
// with the scalars that these stand for. connection has further attributes.
func arrays(t testing.TB, whole bool, one, two *matrices, connection string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "space.fmu"), read(t, spaceFMU(t)))
	each := func(n int, scalar func(index string) string, array string) (text string) {
		if whole {
			return array
		}
		for k := range n {
			text += scalar(fmt.Sprintf("[%d]", k+1))
		}
		return text
	}
	connector := func(name, kind string, n int, dimension string) string {
		format := `<ssd:Connector name="` + name + `%s" kind="` + kind + `"><ssc:Float64/>%s</ssd:Connector>`
		return each(n, func(index string) string { return fmt.Sprintf(format, index, "") }, fmt.Sprintf(format, "", dimension))
	}
	component := func(name string, s *matrices) string {
		values := ""
		all := s.values()
		for v, n := range map[string][]int{"A": {s.n, s.n}, "B": {s.n, s.m}, "C": {s.r, s.n}, "D": {s.r, s.m}, "x0": {s.n}, "u": {s.m}} {
			var list []string
			for k := range n[0] {
				for j := range append(n, 1)[1] {
					index := fmt.Sprintf("[%d]", k+1)
					if len(n) > 1 {
						index = fmt.Sprintf("[%d,%d]", k+1, j+1)
					}
					list = append(list, all[v+index])
					if !whole {
						values += fmt.Sprintf(`<ssv:Parameter name="%s%s"><ssv:Float64 value=%q/></ssv:Parameter>`, v, index, all[v+index])
					}
				}
			}
			if whole {
				values += fmt.Sprintf(`<ssv:Parameter name=%q><ssv:Float64 value=%q/></ssv:Parameter>`, v, strings.Join(list, " "))
			}
		}
		for _, v := range []string{"m", "n", "r"} {
			values += fmt.Sprintf(`<ssv:Parameter name=%q><ssv:UInt64 value=%q/></ssv:Parameter>`, v, all[v])
		}
		return fmt.Sprintf(`<ssd:Component name=%q source="space.fmu"><ssd:Connectors>`, name) +
			connector("u", "input", s.m, `<ssc:Dimension sizeConnector="m"/>`) +
			connector("y", "output", s.r, fmt.Sprintf(`<ssc:Dimension size="%d"/>`, s.r)) +
			`</ssd:Connectors><ssd:ParameterBindings><ssd:ParameterBinding><ssd:ParameterValues><ssv:ParameterSet version="2.0" name="v"><ssv:Parameters>` +
			values + `</ssv:Parameters></ssv:ParameterSet></ssd:ParameterValues></ssd:ParameterBinding></ssd:ParameterBindings></ssd:Component>`
	}
	join := func(format string, n int) string {
		return each(n, func(index string) string { return fmt.Sprintf(format, index, index, "") }, fmt.Sprintf(format, "", "", connection))
	}
	write(t, filepath.Join(dir, "SystemStructure.ssd"), []byte(`<ssd:SystemStructureDescription version="2.0" name="arrays"
  xmlns:ssd="http://ssp-standard.org/SSP1/SystemStructureDescription" xmlns:ssc="http://ssp-standard.org/SSP1/SystemStructureCommon"
  xmlns:ssv="http://ssp-standard.org/SSP1/SystemStructureParameterValues"><ssd:System name="s"><ssd:Connectors>`+
		connector("out", "output", two.r, fmt.Sprintf(`<ssc:Dimension size="%d"/>`, two.r))+`</ssd:Connectors><ssd:Elements>`+
		component("one", one)+component("two", two)+`</ssd:Elements><ssd:Connections>`+
		join(`<ssd:Connection startElement="one" startConnector="y%s" endElement="two" endConnector="u%s"%s/>`, one.r)+
		join(`<ssd:Connection startElement="two" startConnector="y%s" endConnector="out%s"/><!--%s-->`, two.r)+
		`</ssd:Connections></ssd:System></ssd:SystemStructureDescription>`))
	return dir
}

// Array connectors and lists of values give the bytes of the scalars that they stand for; others are refused.
func TestSizesConnectors(t *testing.T) {
	one, two := newMatrices(1, 3, 2), newMatrices(2, 2, 3)
	args := []string{"--step-size=0.125", "--stop-time=1", "--algorithm=explicit", "--record=*"}
	whole := complete(t, append(args, arrays(t, true, one, two, ""))...)
	scalars := complete(t, append(args, arrays(t, false, one, two, ""))...)
	if whole.table(t) != scalars.table(t) || whole.columns["two.u[2]"] == nil {
		t.Errorf("other bytes: %v", slices.Sorted(maps.Keys(whole.columns)))
	}
	one.check(t, whole, "one", one.outputs(one.start, 1, 0.125))
	run(t, arrays(t, true, one, newMatrices(3, 2, 1), "")).is(t, 2, `"y" is an array of 2 and "u" is an array of 3`, "same sizes")
	for indices, want := range map[string]string{
		`startIndices="2"`:                  `"y" is a scalar and "u" is an array of 2`,
		`startIndices="3" endIndices="1"`:   `"one.y" is an array of 2, which has no element with the indices [3]; they count from 1`,
		`startIndices="0" endIndices="1"`:   `no element with the indices [0]`,
		`startIndices="1 1" endIndices="1"`: `no element with the indices [1 1]`,
	} {
		run(t, arrays(t, true, one, two, " "+indices)).is(t, 2, want)
	}
	part := complete(t, append(args, arrays(t, true, one, two, ` startIndices="2" endIndices="1"`))...)
	y, u := part.column(t, "one.y[2]"), part.column(t, "two.u[1]")
	if !slices.Equal(y[:4], u[:4]) || slices.Equal(y[:4], part.column(t, "two.u[2]")[:4]) {
		t.Errorf("%v, %v", y, u)
	}
}
