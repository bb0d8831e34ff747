// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/profile"
	"homenode/internal/render"
)

// Geometry of a file's page.
const (
	pageMargin = 24.0
	pageWidth  = 1200.0
	cardPad    = 14.0
	cardTop    = 46.0
	cardGap    = 14.0
)

// writeSVG writes panels as one picture: no script, and no font or file from outside.
func writeSVG(w io.Writer, p profile.Profile, title string, panels []render.Panel) error {
	var body strings.Builder
	x, y, high, right := pageMargin, pageMargin+66, 0.0, 0.0
	for _, part := range panels {
		wide, tall := part.Wide+2*cardPad, cardTop+part.High+cardPad
		if x > pageMargin && x+wide > pageWidth-pageMargin {
			x, y, high = pageMargin, y+high+cardGap, 0
		}
		body.WriteString(card(part, x, y, wide, tall))
		right, high = max(right, x+wide), max(high, tall)
		x += wide + cardGap
	}
	var head render.Canvas
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
`, width, height, render.EscapeXML(title+": "+headline(p)), colours, render.PictureStyle, head.String(), body.String())
	if err != nil {
		return fmt.Errorf("write picture: %w", err)
	}
	return nil
}

// card is a panel with its frame and words.
func card(p render.Panel, x, y, wide, tall float64) string {
	var c render.Canvas
	c.Rect(x, y, wide, tall, "frame", 0)
	c.Text(x+cardPad, y+22, "h2", "start", render.FitText(p.Title, 14, wide-2*cardPad))
	c.Text(x+cardPad, y+38, "small", "start", render.FitText(p.Sub, 11, wide-2*cardPad))
	return c.String() + `<g transform="translate(` + render.XY(x+cardPad, y+cardTop) + `)">` + "\n" + p.Elements() + "</g>\n"
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
