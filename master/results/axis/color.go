package axis

import "image/color"

// Style is how one of several lines is drawn. Neighbours differ in colour, also for the colour-blind, and in their dashes.
type Style struct {
	Light, Dark color.RGBA // on light and on dark paper
	Dash        []float64  // lengths of dashes and gaps in points; nil = solid
}

// Colors is the number of colours of lines.
const Colors = 6

// LineStyle returns the style of line i, from 0.
func LineStyle(i int) Style {
	s := styles[i%Colors]
	s.Dash = dashes[i%len(dashes)]
	return s
}

// The colours for light paper are those of M. Okabe and K. Ito (2008), with grey instead of yellow.
var styles = [Colors]Style{
	{Light: rgb(0x0072b2), Dark: rgb(0x5eb1f2)}, // blue
	{Light: rgb(0xd55e00), Dark: rgb(0xf0a030)}, // orange
	{Light: rgb(0x009e73), Dark: rgb(0x3fd0a4)}, // green
	{Light: rgb(0xcc79a7), Dark: rgb(0xe79ac9)}, // purple
	{Light: rgb(0x4d5661), Dark: rgb(0xc9d1d9)}, // grey
	{Light: rgb(0xe69f00), Dark: rgb(0xf0e442)}, // yellow
}

var dashes = [...][]float64{nil, {6, 4}, {2, 4}, {9, 4, 2, 4}}

func rgb(v uint32) color.RGBA {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}
