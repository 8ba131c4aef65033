package results

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A MAT file of level 4 is a sequence of matrices by column, each with a header: the type M·1000+P·10+T (M = 1 for
// big-endian numbers, P their type, T = 1 for text), the numbers of rows and columns, 0, and the length of the name, which
// follows. Trajectories of Modelica tools have these matrices: Aclass; name and description with a text per variable;
// dataInfo with two numbers per variable (k, ±i), variable i of matrix data_k, negated if so; and data_1, data_2 … with the
// values of their variables at each of their times, of which variable 1 is the time. With binTrans in Aclass, variables are
// columns of name and rows of data_k; with binNormal, the opposite.

// matrix is a matrix in the file.
type matrix struct {
	rows, columns int
	kind          int // index of matSizes
	order         binary.ByteOrder
	at            int64 // position of the values
}

// matSizes has the sizes of the types of numbers.
var matSizes = [...]int64{8, 4, 4, 2, 2, 1} // float64, float32, int32, int16, uint16, uint8

const matHeader = 20

// readMatrix reads the header at the beginning of b; ok reports whether there is one.
func readMatrix(b []byte) (m matrix, nameSize int, ok bool) {
	if len(b) < matHeader {
		return m, 0, false
	}
	m.order = binary.LittleEndian
	if b[0] == 0 && b[1] == 0 && (b[2] != 0 || b[3] != 0) {
		m.order = binary.BigEndian
	}
	number := func(i int) int { return int(int32(m.order.Uint32(b[4*i:]))) }
	kind := number(0)
	if m.order == binary.BigEndian {
		kind -= 1000
	}
	m.kind, m.rows, m.columns, nameSize = kind/10, number(1), number(2), number(4)
	ok = kind >= 0 && m.kind < len(matSizes) && kind%10 <= 1 && m.rows >= 0 && m.columns >= 0 && number(3) == 0 &&
		nameSize > 0 && nameSize <= 64
	return m, nameSize, ok
}

func isMat(start []byte) bool {
	_, n, ok := readMatrix(start)
	return ok && len(start) >= matHeader+n && strings.TrimRight(string(start[matHeader:matHeader+n]), "\x00") == "Aclass"
}

// count returns the number of values.
func (m *matrix) count() int64 { return int64(m.rows) * int64(m.columns) }

// turned returns the matrix with its size exchanged.
func (m matrix) turned() matrix {
	m.rows, m.columns = m.columns, m.rows
	return m
}

// each calls f with the values, by column.
func (m *matrix) each(file io.ReaderAt, f func(v float64)) error {
	size := matSizes[m.kind]
	in := bufio.NewReaderSize(io.NewSectionReader(file, m.at, m.count()*size), 1<<16)
	for range m.count() {
		b, err := in.Peek(int(size))
		if err != nil {
			return err
		}
		switch m.kind {
		case 0:
			f(math.Float64frombits(m.order.Uint64(b)))
		case 1:
			f(float64(math.Float32frombits(m.order.Uint32(b))))
		case 2:
			f(float64(int32(m.order.Uint32(b))))
		case 3:
			f(float64(int16(m.order.Uint16(b))))
		case 4:
			f(float64(m.order.Uint16(b)))
		case 5:
			f(float64(b[0]))
		}
		_, _ = in.Discard(int(size))
	}
	return nil
}

// lists returns the values of each column, or of each row if not transposed.
func (m *matrix) lists(file io.ReaderAt, transposed bool) ([][]float64, error) {
	n := m.columns
	if !transposed {
		n = m.rows
	}
	out := make([][]float64, n)
	at := 0
	err := m.each(file, func(v float64) {
		i := at / max(m.rows, 1)
		if !transposed {
			i = at % m.rows
		}
		out[i] = append(out[i], v)
		at++
	})
	return out, err
}

// texts returns the texts in the columns, or in the rows if not transposed.
func (m *matrix) texts(file io.ReaderAt, transposed bool) ([]string, error) {
	lists, err := m.lists(file, transposed)
	var texts []string
	for _, list := range lists {
		var b []byte
		for _, c := range list {
			b = append(b, byte(c))
		}
		texts = append(texts, strings.TrimRight(string(b), " \x00"))
	}
	return texts, err
}

// matSource is the trajectory in a MAT file.
type matSource struct {
	file       io.ReaderAt
	matrices   map[string]matrix
	transposed bool
	variables  []string
	units      []string
	places     []matPlace // by variable
	main       int        // number of the matrix with the times of the table
	cut        bool       // data_2 has fewer rows than its header says
}

// matPlace is the place of a variable: its number in a matrix, negative if the values are negated.
type matPlace struct{ matrix, variable int }

func (p *parser) openMat(file io.ReaderAt, size int64) (source, error) {
	s := &matSource{file: file, matrices: map[string]matrix{}}
	if err := s.list(size); err != nil {
		return nil, err
	}
	var class, info, name matrix
	for _, needed := range []struct {
		name string
		to   *matrix
	}{{"Aclass", &class}, {"name", &name}, {"dataInfo", &info}} {
		var ok bool
		if *needed.to, ok = s.matrices[needed.name]; !ok {
			return nil, fmt.Errorf("it has no matrix %s, as trajectories of Dymola and OpenModelica have", needed.name)
		}
	}
	lines, err := class.texts(file, false)
	if err != nil || len(lines) == 0 || lines[0] != "Atrajectory" {
		return nil, errors.New("it is no trajectory, but another kind of MAT")
	}
	if s.transposed = len(lines) > 3 && lines[3] == "binTrans"; s.cut && !s.transposed {
		return nil, errors.New("matrix data_2 is longer than the file")
	}
	if s.variables, err = name.texts(file, s.transposed); err != nil {
		return nil, err
	}
	s.units = make([]string, len(s.variables))
	if m, ok := s.matrices["description"]; ok {
		texts, err := m.texts(file, s.transposed)
		if err != nil {
			return nil, err
		}
		for i, text := range texts[:min(len(texts), len(s.units))] {
			s.units[i] = unitIn(text)
		}
	}
	list, err := info.lists(file, s.transposed)
	if err != nil {
		return nil, err
	}
	if len(list) != len(s.variables) {
		return nil, fmt.Errorf("it has %d names, and places of %d variables", len(s.variables), len(list))
	}
	return s, s.place(list)
}

// list finds the matrices of the file.
func (s *matSource) list(size int64) error {
	for at := int64(0); at < size; {
		b := make([]byte, min(matHeader+64, size-at))
		if _, err := s.file.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		m, n, ok := readMatrix(b)
		if !ok || len(b) < matHeader+n {
			if _, any := s.matrices["data_2"]; any {
				return nil // rows of a killed run that are not counted
			}
			return errors.New("a matrix is damaged")
		}
		name := strings.TrimRight(string(b[matHeader:matHeader+n]), "\x00")
		m.at = at + matHeader + int64(n)
		room := (size - m.at) / matSizes[m.kind]
		if name == "data_2" && m.rows > 0 && m.count() > room {
			s.cut, m.columns = true, int(room/int64(m.rows))
		}
		if m.count() > room || int64(max(m.rows, m.columns)) > size {
			return fmt.Errorf("matrix %s is longer than the file", name)
		}
		s.matrices[name] = m
		at = m.at + m.count()*matSizes[m.kind]
	}
	return nil
}

// data returns a matrix of values with a row for each variable.
func (s *matSource) data(k int) (matrix, bool) {
	m, ok := s.matrices["data_"+strconv.Itoa(k)]
	if !s.transposed {
		m = m.turned()
	}
	return m, ok
}

// place checks the places of the variables.
func (s *matSource) place(info [][]float64) error {
	s.main = 1
	for k := 2; ; k++ {
		m, ok := s.data(k)
		if !ok {
			break
		}
		if main, _ := s.data(s.main); s.main == 1 || m.columns > main.columns {
			s.main = k
		}
	}
	for i, numbers := range info {
		if len(numbers) < 2 {
			return errors.New("its matrix dataInfo is too small")
		}
		p := matPlace{matrix: int(numbers[0]), variable: int(numbers[1])}
		if p.matrix == 0 {
			p.matrix = s.main
		}
		if m, ok := s.data(p.matrix); !ok || p.variable == 0 || p.variable > m.rows || -p.variable > m.rows {
			return fmt.Errorf("it has no values of %s (variable %d of matrix data_%d)", s.variables[i], p.variable, p.matrix)
		}
		s.places = append(s.places, p)
	}
	return nil
}

// unitIn returns the unit at the end of a description: "text [unit|display unit]".
func unitIn(text string) string {
	text, ok := strings.CutSuffix(strings.TrimSpace(text), "]")
	i := strings.LastIndexByte(text, '[')
	if !ok || i < 0 {
		return ""
	}
	unit, _, _ := strings.Cut(text[i+1:], "|")
	unit, _, _ = strings.Cut(unit, ":#") // the type, in files of Dymola
	return strings.TrimSpace(unit)
}

func (s *matSource) names() []string { return s.variables }

func (s *matSource) rows() int {
	m, _ := s.data(s.main)
	return m.columns
}

func (s *matSource) read(p *parser) error {
	if s.cut {
		p.note("the file ends before its last row, because its run was killed")
	}
	series, err := s.series(p)
	if err != nil {
		return err
	}
	times := series[matPlace{s.main, 1}]
	constants := map[uint64][]float64{}
	for i := range p.fields {
		if p.left[i] {
			continue
		}
		c, at := &p.t.Columns[i], s.places[i]
		if c.Unit == "" {
			c.Unit = s.units[i]
		}
		if i == p.timeAt && c.Unit == "" {
			c.Unit = "s"
		}
		values, known := series[at]
		if !known { // negated
			values = slices.Clone(series[matPlace{at.matrix, -at.variable}])
			for k := range values {
				values[k] = -values[k]
			}
			series[at] = values
		}
		if at.matrix != s.main {
			if values = onTimes(values, series[matPlace{at.matrix, 1}], times, constants); values == nil {
				p.note("%s has values at other times than most variables and is left out", c.Name)
				p.texts[i]++
			}
		}
		c.Values = values
	}
	return p.timeIn(p.t.Columns[p.timeAt].Unit)
}

// series reads the variables of the columns that are kept, and the times of all matrices.
func (s *matSource) series(p *parser) (map[matPlace][]float64, error) {
	out := map[matPlace][]float64{}
	needed := map[int][]bool{}
	for i, at := range s.places[:p.fields] {
		m, _ := s.data(at.matrix)
		if needed[at.matrix] == nil {
			needed[at.matrix] = make([]bool, m.rows)
			needed[at.matrix][0] = true
		}
		if !p.left[i] {
			needed[at.matrix][max(at.variable, -at.variable)-1] = true
		}
	}
	for k, wanted := range needed {
		m, _ := s.data(k)
		values := make([][]float64, m.rows)
		for i, yes := range wanted {
			if yes {
				values[i] = make([]float64, 0, m.columns)
			}
		}
		stored, at := s.matrices["data_"+strconv.Itoa(k)], 0
		err := stored.each(s.file, func(v float64) {
			i := at % stored.rows
			if !s.transposed {
				i = at / stored.rows
			}
			if wanted[i] {
				values[i] = append(values[i], v)
			}
			at++
		})
		if err != nil {
			return nil, err
		}
		for i, v := range values {
			if wanted[i] {
				out[matPlace{k, i + 1}] = v
			}
		}
	}
	return out, nil
}

// onTimes returns values at their own times as values at other times, if they are constant or the times are equal; else nil.
func onTimes(values, own, times []float64, constants map[uint64][]float64) []float64 {
	if slices.Equal(own, times) {
		return values
	}
	if len(values) == 0 {
		return nil
	}
	bits := math.Float64bits(values[0])
	for _, v := range values {
		if math.Float64bits(v) != bits {
			return nil
		}
	}
	if constants[bits] == nil {
		constants[bits] = slices.Repeat(values[:1], len(times))
	}
	return constants[bits]
}
