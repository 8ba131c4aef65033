package plot

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"io"
	"strconv"
	"strings"
)

// svg is a canvas that writes SVG.
type svg struct{ b *bytes.Buffer }

func newSVG(width, height float64) svg {
	c := svg{&bytes.Buffer{}}
	fmt.Fprintf(c.b, `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" font-family="'Liberation Sans',Arial,Helvetica,sans-serif" fill="none" stroke-linejoin="round">
`, decimal(width), decimal(height))
	return c
}

func (c svg) writeTo(w io.Writer) error {
	c.b.WriteString("</svg>\n")
	_, err := c.b.WriteTo(w)
	return err
}

func (c svg) line(points []point, width float64, color color.RGBA, dash []float64) {
	c.b.WriteString(`<path d="`)
	letter := 'M'
	for _, p := range points {
		fmt.Fprintf(c.b, "%c%s %s", letter, decimal(p.x), decimal(p.y))
		letter = 'L'
	}
	if len(points) == 1 {
		c.b.WriteString("h0")
	}
	fmt.Fprintf(c.b, `" stroke="%s" stroke-width="%s"`, hex(color), decimal(width))
	if len(dash) > 0 && len(points) > 1 {
		c.b.WriteString(` stroke-dasharray="`)
		for i, d := range dash {
			if i > 0 {
				c.b.WriteByte(' ')
			}
			c.b.WriteString(decimal(d))
		}
		c.b.WriteByte('"')
	} else {
		c.b.WriteString(` stroke-linecap="round"`)
	}
	c.b.WriteString("/>\n")
}

func (c svg) rectangle(x, y, width, height float64, color color.RGBA) {
	fmt.Fprintf(c.b, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"/>`+"\n", decimal(x), decimal(y), decimal(width), decimal(height), hex(color))
}

func (c svg) text(x, y float64, text string, f face, color color.RGBA, share float64) {
	if text == "" {
		return
	}
	// The length makes any font fit.
	fmt.Fprintf(c.b, `<text x="%s" y="%s" font-size="%s" fill="%s" textLength="%s" lengthAdjust="spacingAndGlyphs"`,
		decimal(x), decimal(y), decimal(f.size), hex(color), decimal(f.width(text)))
	if f.bold {
		c.b.WriteString(` font-weight="bold"`)
	}
	switch share {
	case 0.5:
		c.b.WriteString(` text-anchor="middle"`)
	case 1:
		c.b.WriteString(` text-anchor="end"`)
	}
	c.b.WriteByte('>')
	_ = xml.EscapeText(c.b, []byte(text)) // a buffer never fails
	c.b.WriteString("</text>\n")
}

func (c svg) inside(x, y, width, height float64, draw func(canvas)) {
	fmt.Fprintf(c.b, `<svg x="%s" y="%s" width="%s" height="%s">`+"\n", decimal(x), decimal(y), decimal(width), decimal(height))
	draw(c)
	c.b.WriteString("</svg>\n")
}

// decimal formats a length with at most two decimals.
func decimal(v float64) string {
	s := strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }
