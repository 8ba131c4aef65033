package plot

import (
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
)

// face is a font at a size.
type face struct {
	bold bool
	size float64
}

var (
	regular = face{size: 13}
	bold    = face{bold: true, size: 13}
	small   = face{size: 12}
)

// fonts holds the regular and the bold font.
var fonts = sync.OnceValue(func() (out [2]*opentype.Font) {
	for i, data := range [...][]byte{liberationsansregular.TTF, liberationsansbold.TTF} {
		f, err := opentype.Parse(data)
		if err != nil {
			panic(err) // the data is part of the program
		}
		out[i] = f
	}
	return out
})

// drawn returns the font for a scale.
func (f face) drawn(scale float64) font.Face {
	at := 0
	if f.bold {
		at = 1
	}
	face, err := opentype.NewFace(fonts()[at], &opentype.FaceOptions{Size: f.size * scale, DPI: 72})
	if err != nil {
		panic(err) // it never fails
	}
	return face
}

// rulers measure text. A font.Face has one user at a time.
var rulers struct {
	sync.Mutex
	faces map[face]font.Face
}

// width returns the width of a line of text.
func (f face) width(text string) float64 {
	const scale = 16 // widths are rounded to whole points at small sizes
	rulers.Lock()
	defer rulers.Unlock()
	if rulers.faces == nil {
		rulers.faces = map[face]font.Face{}
	}
	ruler := rulers.faces[f]
	if ruler == nil {
		ruler = f.drawn(scale)
		rulers.faces[f] = ruler
	}
	return float64(font.MeasureString(ruler, text)) / 64 / scale
}

// shortened replaces the middle of a text that is too wide.
func shortened(text string, f face, width float64) string {
	if f.width(text) <= width {
		return text
	}
	r := []rune(text)
	for n := len(r) - 1; n > 1; n-- {
		if s := string(r[:n/2]) + "…" + string(r[len(r)-(n-n/2):]); f.width(s) <= width {
			return s
		}
	}
	return "…"
}

// wrapped breaks a text into rows, if possible after a word or punctuation, and shortens what does not fit into the last one.
func wrapped(text string, f face, width float64, most int) (rows []string) {
	for len(rows) < most-1 && f.width(text) > width {
		fits := 0
		for i := range text {
			if i > 0 && f.width(text[:i]) > width {
				break
			}
			fits = i
		}
		if at := strings.LastIndexByte(text[:fits], ' ') + 1; at > fits/2 {
			fits = at
		} else if at := strings.LastIndexAny(text[:fits], "._/]-") + 1; at > fits/2 {
			fits = at
		}
		rows, text = append(rows, text[:fits]), text[fits:]
	}
	return append(rows, shortened(text, f, width))
}
