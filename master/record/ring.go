package record

import (
	"unsafe"

	"github.com/macrostep/macrostep/master"
)

// ring is the buffer of rows between Record and the workers. Row n is in slot n modulo the
// number of slots. The values of each kind are stored row by row, the bytes of strings in a
// ring of their own.
type ring struct {
	layout  *layout
	rows    int // slots
	real    []float64
	str     []span
	integer []int64
	boolean []byte // 0 or 1
	text    []byte
}

// span is a string in the ring of text.
type span struct{ at, n uint64 }

// ringBytes returns the size of the memory for a number of rows, without their text.
func (l *layout) ringBytes(rows int) int {
	return rows * (8*(l.count[master.Real]+l.count[master.Integer]) + 16*l.count[master.String] + l.count[master.Boolean])
}

// place uses b as the memory of the rows.
func (r *ring) place(b []byte) {
	b, r.real = carve[float64](b, r.rows*r.layout.count[master.Real])
	b, r.str = carve[span](b, r.rows*r.layout.count[master.String])
	b, r.integer = carve[int64](b, r.rows*r.layout.count[master.Integer])
	_, r.boolean = carve[byte](b, r.rows*r.layout.count[master.Boolean])
}

// carve splits n values off the front of b.
func carve[T any](b []byte, n int) (rest []byte, values []T) {
	if n == 0 {
		return b, nil
	}
	size := n * int(unsafe.Sizeof(*new(T)))
	return b[size:], unsafe.Slice((*T)(unsafe.Pointer(&b[:size][0])), n)
}

// block is a window of consecutive rows in the ring.
type block struct {
	rows    int
	real    []float64
	str     []span
	integer []int64
	boolean []byte
	text    []byte // contains the spans
}

// block returns so many rows from a slot on.
func (r *ring) block(slot, rows int) block {
	return block{
		rows:    rows,
		real:    window(r.real, r.layout.count[master.Real], slot, rows),
		str:     window(r.str, r.layout.count[master.String], slot, rows),
		integer: window(r.integer, r.layout.count[master.Integer], slot, rows),
		boolean: window(r.boolean, r.layout.count[master.Boolean], slot, rows),
		text:    r.text,
	}
}

// window returns the values of rows with n values each.
func window[T any](values []T, n, from, rows int) []T { return values[n*from : n*(from+rows)] }

// string returns the string of a span. It is valid until the row leaves the ring.
func (b *block) string(s span) string {
	text := b.text[s.at : s.at+s.n]
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// time returns the time of the row in a slot.
func (r *ring) time(slot int) float64 { return r.real[slot*r.layout.count[master.Real]] }

// textOf returns the size of the strings of a point in bytes.
func (l *layout) textOf(p *master.Point) (size int) {
	if l.count[master.String] == 0 {
		return 0
	}
	for i := range l.segments {
		if s := &l.segments[i]; s.kind == master.String {
			for _, text := range s.values(p).String[s.at : s.at+s.n] {
				size += len(text)
			}
		}
	}
	return size
}

// textIn returns the size of the strings in a slot in bytes, and whether all of them are
// within the text.
func (r *ring) textIn(slot int) (size int, ok bool) {
	room := uint64(len(r.text))
	for _, s := range window(r.str, r.layout.count[master.String], slot, 1) {
		if s.n > room || s.at > room-s.n {
			return 0, false
		}
		size += int(s.n)
	}
	return size, true
}

// put copies the values of a point to a slot, and its strings to position text of the ring
// of text.
func (r *ring) put(slot int, p *master.Point, text int) {
	l := r.layout
	reals := window(r.real, l.count[master.Real], slot, 1)
	reals[0] = p.T
	for i := range l.segments {
		s := &l.segments[i]
		if s.by != nil {
			switch x, n := s.changed(p); s.kind {
			case master.Real:
				reals[s.to] = x
			case master.Integer:
				window(r.integer, l.count[master.Integer], slot, 1)[s.to] = n
			default: // a Boolean, as strings have no changes
				window(r.boolean, l.count[master.Boolean], slot, 1)[s.to] = byte(min(n, 1))
			}
			continue
		}
		switch s.from {
		case fromU:
			copy(reals[s.to:], p.U[s.at:s.at+s.n])
			continue
		case fromY:
			copy(reals[s.to:], p.Y[s.at:s.at+s.n])
			continue
		case fromMeasured:
			copy(reals[s.to:], p.Measured[s.at:s.at+s.n])
			continue
		}
		v := s.values(p)
		switch s.kind {
		case master.Real:
			copy(reals[s.to:], v.Real[s.at:s.at+s.n])
		case master.Integer:
			copy(window(r.integer, l.count[master.Integer], slot, 1)[s.to:], v.Integer[s.at:s.at+s.n])
		case master.Boolean:
			from := v.Boolean[s.at : s.at+s.n]
			bytes := unsafe.Slice((*byte)(unsafe.Pointer(&from[0])), s.n)
			copy(window(r.boolean, l.count[master.Boolean], slot, 1)[s.to:], bytes)
		case master.String:
			to := window(r.str, l.count[master.String], slot, 1)[s.to:]
			for k, from := range v.String[s.at : s.at+s.n] {
				to[k] = span{uint64(text), uint64(len(from))}
				text += copy(r.text[text:], from)
			}
		}
	}
}

// values returns the values of a point from which a segment of a subsystem is copied.
func (s *segment) values(p *master.Point) *master.Values {
	switch s.from {
	case fromDiscreteIn:
		return &p.DiscreteIn[s.sub]
	case fromDiscreteOut:
		return &p.DiscreteOut[s.sub]
	}
	return &p.Watch[s.sub]
}
