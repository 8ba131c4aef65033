package parquetfile

import "encoding/binary"

// compact encodes the fields of a struct in the compact protocol of Apache Thrift.
type compact struct {
	b    []byte
	last int // number of the last field
}

// Types of fields and of the elements of lists.
const isInt32, isInt64, isText, isList, isStruct = 5, 6, 8, 9, 12

// field begins a field. Numbers of fields must increase.
func (c *compact) field(number, kind int) {
	c.b = append(c.b, byte((number-c.last)<<4|kind))
	c.last = number
}

func (c *compact) zigzag(v int64)          { c.b = binary.AppendVarint(c.b, v) }
func (c *compact) i64(number int, v int64) { c.field(number, isInt64); c.zigzag(v) }
func (c *compact) i32(number int, v int32) { c.field(number, isInt32); c.zigzag(int64(v)) }

func (c *compact) text(number int, s string) { c.field(number, isText); c.bytes(s) }

func (c *compact) bytes(s string) {
	c.b = append(binary.AppendUvarint(c.b, uint64(len(s))), s...)
}

// list begins a list; its n elements follow.
func (c *compact) list(number, kind, n int) {
	c.field(number, isList)
	if n < 15 {
		c.b = append(c.b, byte(n<<4|kind))
		return
	}
	c.b = binary.AppendUvarint(append(c.b, byte(0xf0|kind)), uint64(n))
}

// object adds a field that is a struct.
func (c *compact) object(number int, fields func()) {
	c.field(number, isStruct)
	c.nested(fields)
}

// nested adds a struct.
func (c *compact) nested(fields func()) {
	last := c.last
	c.last = 0
	fields()
	c.b = append(c.b, 0)
	c.last = last
}

// numbers reads consecutive fields of numbers. Further reads after an error return 0.
type numbers struct {
	b   []byte
	bad bool
}

// next returns the number of the next field.
func (n *numbers) next() int {
	if n.bad || len(n.b) == 0 || n.b[0] != 1<<4|isInt32 {
		n.bad = true
		return 0
	}
	v, size := binary.Varint(n.b[1:])
	if size <= 0 || int64(int32(v)) != v {
		n.bad = true
		return 0
	}
	n.b = n.b[1+size:]
	return int(v)
}

// object enters the next field, a struct.
func (n *numbers) object() {
	if n.bad || len(n.b) == 0 || n.b[0] != 1<<4|isStruct {
		n.bad = true
		return
	}
	n.b = n.b[1:]
}
