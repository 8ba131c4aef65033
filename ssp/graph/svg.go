package graph

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

const style = `
text{font-family:Helvetica,Arial,"Liberation Sans",sans-serif;font-size:11px;fill:#333}
.heading{font-size:15px;font-weight:bold}
.title{font-size:12px;font-weight:bold;fill:#1d2b3a}
.detail{fill:#566270}
.box{fill:#f6f8fb;stroke:#5b6b82;stroke-width:1.2}
.wire{fill:none;stroke:#56708f;stroke-width:1.3}
.many{stroke-width:2.2}
.loop{stroke:#c0392b}
.assumed{stroke:#d98880;stroke-dasharray:5 3}
.bond{fill:none;stroke:#58b06f;stroke-opacity:.7;stroke-width:7;stroke-linecap:round}
.proposed{stroke-opacity:.4}
.name{fill:#1e7a3c;paint-order:stroke;stroke:#fff;stroke-width:3px}
.ring{stroke:#c0392b;stroke-width:1.8}
`

// SVG draws the system. The picture needs no fonts or scripts. The tooltip of a curve names its
// variables.
func SVG(w io.Writer, s *System) error {
	list, err := s.bundles()
	if err != nil {
		return err
	}
	p := &page{width: 260, height: margin + 30, left: map[*layout]float64{}}
	p.place(s, list)
	d := &drawing{s: s}
	for _, l := range p.layouts {
		d.left = p.left[l]
		d.part(l)
	}
	width, height := d.legend(p.width, p.height)
	body := d.w.Bytes()
	d.w = bytes.Buffer{}
	d.head(width, height)
	d.w.Write(body)
	d.printf("</svg>\n")
	_, err = d.w.WriteTo(w)
	return err
}

// page places the parts of a system.
type page struct {
	width, height float64
	layouts       []*layout // in the order of drawing
	left          map[*layout]float64
}

// sideMargin is the space beside parts for curves that lead around boxes.
const sideMargin = 60.0

// place puts the connected parts below each other, and components without connections in rows
// below them. It sets the size of the page.
func (p *page) place(s *System, list []*bundle) {
	var singles []*layout
	for _, nodes := range parts(len(s.Nodes), list) {
		l := newLayout(s, nodes, list)
		if len(nodes) == 1 && len(l.bundles) == 0 {
			singles = append(singles, l)
			continue
		}
		p.layouts = append(p.layouts, l)
		p.width = max(p.width, l.w)
		l.top, p.left[l] = p.height, margin+sideMargin
		p.height += l.h + bandGap
	}
	limit := p.width
	if len(p.layouts) == 0 {
		limit = 1000
	}
	x, row := 0.0, 0.0
	for _, l := range singles {
		if x > 0 && x+l.w > limit {
			x, p.height = 0, p.height+row+nodeGap
			row = 0
		}
		l.top, p.left[l] = p.height, margin+sideMargin+x
		p.width = max(p.width, x+l.w)
		x += l.w + nodeGap
		row = max(row, l.h)
	}
	if len(singles) > 0 {
		p.height += row + bandGap
	}
	p.layouts = append(p.layouts, singles...)
	p.width += 2 * (margin + sideMargin)
}

// head writes the beginning of the file.
func (d *drawing) head(width, height float64) {
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %[1]s %[2]s" role="img">`+"\n",
		num(width), num(height))
	d.printf("<title>%s</title>\n", escape(d.s.Title))
	d.printf("<desc>%s</desc>\n", escape(fmt.Sprintf("%d components, %d connections", len(d.s.Nodes), len(d.s.Edges))))
	d.printf("<style>%s</style>\n<defs>\n", style)
	for _, m := range []struct{ id, colour string }{{"a", "#56708f"}, {"al", "#c0392b"}, {"as", "#d98880"}} {
		d.printf(`<marker id="%s" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" `+
			`markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0L8 4L0 8z" fill="%s"/></marker>`+"\n", m.id, m.colour)
	}
	d.printf("</defs>\n" + `<rect width="100%%" height="100%%" fill="#fff"/>` + "\n")
	d.printf(`<text class="heading" x="%s" y="%s">%s</text>`+"\n", num(margin), num(margin+8), escape(cut(d.s.Title, 80)))
}

// drawing writes one picture.
type drawing struct {
	w    bytes.Buffer
	s    *System
	left float64
	used struct{ many, loop, assumed, bond, proposed bool }
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.w, format, args...) }

func num(v float64) string {
	s := fmt.Sprintf("%.1f", v)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // to memory: it cannot fail
	return b.String()
}

// part draws one connected part.
func (d *drawing) part(l *layout) {
	type wire struct {
		b    *bundle
		path string
		x, y float64 // of the name of a bond
	}
	var wires []wire
	for _, b := range l.bundles {
		path, x, y := d.route(l, b)
		wires = append(wires, wire{b, path, x, y})
	}
	for _, w := range wires { // bonds are below everything else
		if len(w.b.bonds) > 0 {
			class := "bond"
			if w.b.proposed {
				class += " proposed"
				d.used.proposed = true
			} else {
				d.used.bond = true
			}
			d.printf(`<path class="%s" d="%s"/>`+"\n", class, w.path)
		}
	}
	for _, w := range wires {
		class, marker := "wire", "a"
		if len(w.b.edges) > 1 {
			class += " many"
			d.used.many = true
		}
		switch {
		case w.b.loop && w.b.assumed:
			class, marker = class+" assumed", "as"
			d.used.assumed = true
		case w.b.loop:
			class, marker = class+" loop", "al"
			d.used.loop = true
		}
		d.printf(`<path class="%s" d="%s" marker-end="url(#%s)"><title>%s</title></path>`+"\n", class, w.path, marker, escape(d.names(w.b)))
	}
	for _, it := range l.items {
		if it.node >= 0 {
			d.box(l, it)
		}
	}
	named := map[string]bool{}
	for _, w := range wires {
		var names []string
		for _, name := range w.b.bonds {
			if !w.b.proposed && !named[name] {
				named[name] = true
				names = append(names, name)
			}
		}
		text := strings.Join(names, ", ")
		if len(names) > 1 && len(text) > 16 {
			text = fmt.Sprintf("%d bonds", len(names))
		}
		if text != "" {
			d.printf(`<text class="name" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num(w.x), num(w.y-5), escape(cut(text, 16)))
		}
	}
}

// names lists the connections of a bundle, one per line.
func (d *drawing) names(b *bundle) string {
	var lines []string
	for _, i := range b.edges {
		e := d.s.Edges[i]
		line := d.s.Nodes[e.From].Name + "." + e.Output + " → " + d.s.Nodes[e.To].Name + "." + e.Input
		if e.Note != "" {
			line += "  " + e.Note
		}
		if e.Loop > 0 {
			line += fmt.Sprintf("  (loop %d)", e.Loop)
		}
		lines = append(lines, line)
	}
	for _, name := range b.bonds {
		lines = append(lines, "bond "+name)
	}
	return strings.Join(lines, "\n")
}

// box draws a node with its ports.
func (d *drawing) box(l *layout, it *item) {
	node := d.s.Nodes[it.node]
	x := d.left + l.x[it.layer] + (l.width[it.layer]-it.width)/2
	y := l.top + it.y - it.up
	ring := ""
	for _, b := range l.bundles {
		if b.loop && !b.assumed && (b.from == it.node || b.to == it.node) {
			ring = " ring"
		}
	}
	d.printf(`<g><title>%s</title><rect class="box%s" x="%s" y="%s" width="%s" height="%s" rx="5"/>`+"\n",
		escape(strings.TrimSpace(node.Name+"\n"+node.Detail)), ring, num(x), num(y), num(it.width), num(it.up+it.down))
	d.printf(`<text class="title" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num(x+it.width/2), num(y+15),
		escape(cut(node.Name, 34)))
	if node.Detail != "" {
		d.printf(`<text class="detail" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num(x+it.width/2),
			num(y+28), escape(cut(node.Detail, 40)))
	}
	for side, list := range it.sides {
		for _, p := range list {
			at, px, anchor := p.bundles[0].toAt, x+boxPadding, "start"
			if p.output {
				at = p.bundles[0].fromAt
			}
			if (side == behind) != l.reversed[it.layer] {
				px, anchor = x+it.width-boxPadding, "end"
			}
			d.printf(`<text x="%s" y="%s" text-anchor="%s">%s</text>`+"\n", num(px), num(l.top+it.y+at+3.5), anchor, escape(p.label))
		}
	}
	d.printf("</g>\n")
}

// sideOf returns the x of a side of an item: of the box, or of the layer at a crossing.
func (d *drawing) sideOf(l *layout, it *item, side int) float64 {
	x, w := d.left+l.x[it.layer], l.width[it.layer]
	if it.node >= 0 {
		x, w = x+(w-it.width)/2, it.width
	}
	if (side == behind) != l.reversed[it.layer] {
		x += w
	}
	return x
}

// pen draws the curve of a bundle.
type pen struct {
	d            *drawing
	l            *layout
	path         strings.Builder
	x, y         float64 // where the curve ends so far
	nameX, nameY float64 // where the name of a bond goes
}

// outwards returns the direction that a side of an item faces, +1 to the right.
func (p *pen) outwards(it *item, side int) float64 {
	if (side == behind) != p.l.reversed[it.layer] {
		return 1
	}
	return -1
}

// curve adds a Bézier curve to a point, with the x of its control points.
func (p *pen) curve(c1, c2, x, y float64) {
	fmt.Fprintf(&p.path, "C%s %s %s %s %s %s", num(c1), num(p.y), num(c2), num(y), num(x), num(y))
	p.nameX, p.nameY = (p.x+3*c1+3*c2+x)/8, (p.y+y)/2
	p.x, p.y = x, y
}

// bend adds a curve out of one side and back into the same.
func (p *pen) bend(direction, reach, x, y float64) {
	far := direction*max(direction*p.x, direction*x) + direction*(reach+math.Min(26, math.Abs(y-p.y)/8))
	p.curve(far, far, x, y)
}

// across adds a straight line to the x of the other side of an item.
func (p *pen) across(x float64) {
	p.x = x
	fmt.Fprintf(&p.path, "H%s", num(x))
}

// route returns the curve of a bundle, and the place of its name.
func (d *drawing) route(l *layout, b *bundle) (path string, nameX, nameY float64) {
	p := pen{d: d, l: l}
	from, to := l.items[l.nodes[b.from]], l.items[l.nodes[b.to]]
	leave, enter := behind, before
	if b.back {
		leave, enter = before, behind
	}
	p.x, p.y = d.sideOf(l, from, leave), l.top+from.y+b.fromAt
	fmt.Fprintf(&p.path, "M%s %s", num(p.x), num(p.y))
	if b.around {
		return p.around(b, from, to)
	}
	last := from
	for _, i := range append(slices.Clone(b.chain), l.nodes[b.to]) {
		it := l.items[i]
		x, y := d.sideOf(l, it, enter), l.top+it.y
		if it == to {
			y += b.toAt
		}
		if l.band[last.layer] != l.band[it.layer] { // around the fold
			p.bend(p.outwards(last, leave), 24, x, y)
		} else {
			half := (p.x + x) / 2
			p.curve(half, half, x, y)
		}
		if it != to {
			p.across(d.sideOf(l, it, leave))
		}
		last = it
	}
	return p.path.String(), p.nameX, p.nameY
}

// around draws a curve within one layer, around the boxes. The name is beside the boxes.
func (p *pen) around(b *bundle, from, to *item) (path string, nameX, nameY float64) {
	for _, i := range b.chain {
		it := p.l.items[i]
		x := p.d.sideOf(p.l, it, behind)
		p.bend(p.outwards(from, behind), b.turn, x, p.l.top+it.y)
		p.across(p.d.sideOf(p.l, it, before))
		nameX, nameY = (p.x+x)/2, p.y
	}
	p.bend(p.outwards(to, before), b.turn, p.d.sideOf(p.l, to, before), p.l.top+to.y+b.toAt)
	return p.path.String(), nameX, nameY
}

// legend explains the styles that occur, in rows at the end of a picture. It returns the size of the picture with them.
func (d *drawing) legend(width, height float64) (float64, float64) {
	x, row := float64(margin), 0
	for _, e := range []struct {
		used              bool
		class, mark, text string
	}{
		{len(d.s.Edges) > 0, "wire", "a", "connection"}, {d.used.many, "wire many", "a", "several connections"},
		{d.used.loop, "wire loop", "al", "on an algebraic loop"}, {d.used.assumed, "wire assumed", "as",
			"on a loop if outputs depend on all inputs (not declared)"},
		{d.used.bond, "bond", "", "power bond"}, {d.used.proposed, "bond proposed", "", "power bond by its units"},
	} {
		if !e.used {
			continue
		}
		long := 42 + textChar*float64(len(e.text))
		if x > margin && x+long > width-margin {
			x, row = margin, row+1
		}
		width = max(width, x+long+margin)
		y := height + legendRow*float64(row)
		marker := ""
		if e.mark != "" {
			marker = fmt.Sprintf(` marker-end="url(#%s)"`, e.mark)
		}
		d.printf(`<path class="%s" d="M%s %sh34"%s/><text x="%s" y="%s">%s</text>`+"\n", e.class, num(x), num(y),
			marker, num(x+42), num(y+3.5), escape(e.text))
		x += long + 26
	}
	return width, height + legendRow*float64(row+1)
}
