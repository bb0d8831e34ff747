// SPDX-License-Identifier: Apache-2.0

package render

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
)

// PictureStyle is the style of plots and heat maps, on a page and in a file. Lines differ
// by marks or dashes too, so that they are distinct in black and white. s0 is grey, for
// what others are compared with.
//
//go:embed pictures.css
var PictureStyle string

// Hues is the number of colours: s0 to s5.
const Hues = 6

// Panel is one picture, in CSS pixels. A page puts each in a card; a file has them side by
// side.
type Panel struct {
	ID         string // unique on the page
	Title, Sub string
	Wide, High float64
	Draw       func(c *Canvas) // with its own origin
}

// Picture is the panel alone, for a page, which has the style; the canvas has escaped
// everything in it.
func (p Panel) Picture() template.HTML {
	return template.HTML(fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" role="img" aria-labelledby="%[3]s-t %[3]s-d">`+"\n<title id=\"%[3]s-t\">%[4]s</title><desc id=\"%[3]s-d\">%[5]s</desc>\n",
		Coordinate(p.Wide), Coordinate(p.High), p.ID, EscapeXML(p.Title), EscapeXML(p.Sub)) + p.Elements() + "</svg>")
}

// Elements are what the panel draws.
func (p Panel) Elements() string {
	c := Canvas{hatch: p.ID + "-hatch"}
	p.Draw(&c)
	return c.pattern() + c.String()
}

// Hatched draws a rectangle for an unknown figure.
func (c *Canvas) Hatched(x, y, w, h float64, class string) {
	c.Fill(x, y, w, h, class, "url(#"+c.hatch+")")
}

// pattern is that of Hatched, if there is one.
func (c *Canvas) pattern() string {
	if !strings.Contains(c.String(), "url(#"+c.hatch+")") {
		return ""
	}
	return `<defs><pattern id="` + c.hatch + `" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="6" height="6"/><rect class="stripe" width="2" height="6"/></pattern></defs>` + "\n"
}
