package plot

import (
	"image/color"
	"io"
	"math"

	"git.sr.ht/~sbinet/gg"
	"golang.org/x/image/font"
)

// bitmap is a canvas of points.
type bitmap struct {
	dc    *gg.Context
	scale float64
	faces map[face]font.Face
}

func newBitmap(width, height, scale float64) bitmap {
	dc := gg.NewContext(int(math.Ceil(width*scale)), int(math.Ceil(height*scale)))
	dc.SetLineJoinRound()
	return bitmap{dc, scale, map[face]font.Face{}}
}

func (c bitmap) writeTo(w io.Writer) error { return c.dc.EncodePNG(w) }

func (c bitmap) line(points []point, width float64, color color.RGBA, dash []float64) {
	c.dc.SetColor(color)
	if len(points) == 1 {
		c.dc.DrawCircle(points[0].x*c.scale, points[0].y*c.scale, width/2*c.scale)
		c.dc.Fill()
		return
	}
	c.dc.SetLineWidth(width * c.scale)
	c.dc.SetLineCapRound()
	scaled := make([]float64, len(dash))
	for i, d := range dash {
		scaled[i] = d * c.scale
		c.dc.SetLineCapButt()
	}
	c.dc.SetDash(scaled...)
	for _, p := range points {
		c.dc.LineTo(p.x*c.scale, p.y*c.scale)
	}
	c.dc.Stroke()
}

func (c bitmap) rectangle(x, y, width, height float64, color color.RGBA) {
	c.dc.SetColor(color)
	c.dc.DrawRectangle(x*c.scale, y*c.scale, width*c.scale, height*c.scale)
	c.dc.Fill()
}

func (c bitmap) text(x, y float64, text string, f face, color color.RGBA, share float64) {
	if c.faces[f] == nil {
		c.faces[f] = f.drawn(c.scale)
	}
	c.dc.SetFontFace(c.faces[f])
	c.dc.SetColor(color)
	c.dc.DrawStringAnchored(text, x*c.scale, y*c.scale, share, 0)
}

func (c bitmap) inside(x, y, width, height float64, draw func(canvas)) {
	part := newBitmap(width, height, c.scale)
	draw(part)
	c.dc.DrawImage(part.dc.Image(), int(math.Round(x*c.scale)), int(math.Round(y*c.scale)))
}
