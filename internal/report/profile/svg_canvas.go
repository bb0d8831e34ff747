// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"html/template"
	"io"
	"strings"

	"homenode/internal/profile"
	"homenode/internal/render"
)

// panel is one picture: a heat map or a plot, in CSS pixels. The page puts each in a
// card; a file has them side by side.
type panel struct {
	ID    string // unique on the page
	Title string
	Sub   string
	W, H  float64
	draw  func(c *canvas) // with its own origin
}

// canvas is report's, with a pattern of its own for unknown figures.
type canvas struct {
	render.Canvas
	hatch string // id of the panel's pattern
}

// Picture is the panel alone, for the page; the canvas has escaped everything in it.
func (p panel) Picture() template.HTML {
	c := canvas{hatch: p.ID + "-hatch"}
	p.draw(&c)
	return c.Canvas.Picture(p.W, p.H, p.ID, p.Title+". "+p.Sub, c.defs())
}

func (c *canvas) defs() string {
	if !strings.Contains(c.String(), "#"+c.hatch) {
		return ""
	}
	return `<defs><pattern id="` + c.hatch + `" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="6" height="6"/><rect class="stripe" width="2" height="6"/></pattern></defs>` + "\n"
}

// Geometry of a file's page.
const (
	pageMargin = 24.0
	pageWidth  = 1200.0
	cardPad    = 14.0
	cardTop    = 46.0
	cardGap    = 14.0
)

// writeSVG writes panels as one picture: no script, and no font or file from outside.
func writeSVG(w io.Writer, p profile.Profile, title string, panels []panel) error {
	var body strings.Builder
	x, y, high, right := pageMargin, pageMargin+66, 0.0, 0.0
	for _, part := range panels {
		wide, tall := part.W+2*cardPad, cardTop+part.H+cardPad
		if x > pageMargin && x+wide > pageWidth-pageMargin {
			x, y, high = pageMargin, y+high+cardGap, 0
		}
		body.WriteString(part.card(x, y, wide, tall))
		right, high = max(right, x+wide), max(high, tall)
		x += wide + cardGap
	}
	var head canvas
	right = max(right, 560)
	head.Text(pageMargin, pageMargin+20, "h1", "start", render.FitText(title, 19, right-pageMargin))
	head.Text(pageMargin, pageMargin+40, "sub", "start", render.FitText(headline(p), 13, right-pageMargin))
	head.Text(pageMargin, pageMargin+56, "small", "start", render.FitText(render.Or(p.Clock, "clock unknown")+"; "+render.Date(p.Date), 11, right-pageMargin))
	width, height := render.Coordinate(right+pageMargin), render.Coordinate(y+high+pageMargin)
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" role="img" aria-labelledby="t">
<title id="t">%[3]s</title>
<style>%[4]s%[5]s</style>
<rect class="paper" width="%[1]s" height="%[2]s"/>
%[6]s%[7]s</svg>
`, width, height, render.EscapeXML(title+": "+headline(p)), colours, pictureStyle, head.String(), body.String())
	if err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// card is a panel with its frame and words.
func (p panel) card(x, y, wide, tall float64) string {
	c, inner := canvas{}, canvas{hatch: p.ID + "-hatch"}
	c.Rect(x, y, wide, tall, "frame", 0)
	c.Text(x+cardPad, y+22, "h2", "start", render.FitText(p.Title, 14, wide-2*cardPad))
	c.Text(x+cardPad, y+38, "small", "start", render.FitText(p.Sub, 11, wide-2*cardPad))
	p.draw(&inner)
	return c.String() + inner.defs() + fmt.Sprintf(`<g transform="translate(%s %s)">`, render.Coordinate(x+cardPad), render.Coordinate(y+cardTop)) + "\n" + inner.String() + "</g>\n"
}

// colours are the page's names (report's style), for a picture outside of a page.
const colours = `
svg{--bg:#f6f7f8;--card:#fff;--fg:#1a1f24;--muted:#56616c;--line:#d7dce1;--mark:#d1600a;--markText:#a34400}
@media (prefers-color-scheme:dark){svg{--bg:#111417;--card:#191d22;--fg:#e7eaed;--muted:#a5b0bb;--line:#343b43;--mark:#ffb169;--markText:#ffb169}}
text{font-family:system-ui,"DejaVu Sans",Arial,sans-serif}
.paper{fill:var(--bg)}.frame{fill:var(--card);stroke:var(--line)}
text{fill:var(--fg);font-size:12px}
.h1{font-size:19px;font-weight:600}.h2{font-size:14px;font-weight:600}.sub{font-size:13px}.sub,.small{fill:var(--muted)}.small{font-size:11px}
`

// pictureStyle is the style of the panels. Lines differ by colour, dashes and marks, so
// that they are distinct in black and white too.
const pictureStyle = `
svg{--s0:#0a62c2;--s1:#c2570a;--s2:#0b7a4b;--s3:#8a3fa0;--s4:#5f6b76;--s5:#a3123b}
@media (prefers-color-scheme:dark){svg{--s0:#5aa7ff;--s1:#ff9d4d;--s2:#53cf8b;--s3:#d19be8;--s4:#a5b0bb;--s5:#ff8f9f}}
svg .cell{stroke:var(--card);stroke-width:1.5}
svg .hatch{fill:var(--bg)}svg .stripe{fill:var(--line)}
svg .num{font-size:12px;fill:#12263a;stroke:none}svg .num.light{fill:#fff}svg .num.none{fill:var(--muted)}svg .num.local{font-weight:700}svg .num.tiny{font-size:10.5px}
svg .axis{font-size:11px;fill:var(--muted)}svg .name{font-size:11px;fill:var(--fg)}
svg .grid{stroke:var(--line);stroke-width:1}svg .base{stroke:var(--muted);stroke-width:1}
svg .limit{stroke:var(--mark);stroke-width:1.4;stroke-dasharray:4 3}svg .limitText{font-size:10.5px;fill:var(--markText)}
svg .s0{stroke:var(--s0);--c:var(--s0)}svg .s1{stroke:var(--s1);--c:var(--s1)}svg .s2{stroke:var(--s2);--c:var(--s2)}
svg .s3{stroke:var(--s3);--c:var(--s3)}svg .s4{stroke:var(--s4);--c:var(--s4)}svg .s5{stroke:var(--s5);--c:var(--s5)}
svg .curve{fill:none;stroke-width:1.8}svg .curve.dashed{stroke-dasharray:6 3}svg .bar{stroke-width:1.2;opacity:.75;fill:none}
svg .dot{stroke-width:1.5;fill:var(--c)}svg .dot.open{fill:var(--card)}svg .dot.faint{fill-opacity:.45;stroke-width:1}
`
