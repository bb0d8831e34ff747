// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"io"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/render"
)

// Geometry of the page, in CSS pixels.
const (
	pageWidth  = 1200.0
	pageMargin = 24.0
	innerWidth = pageWidth - 2*pageMargin
	gap        = 14.0
)

// SVG writes a picture: no script, no font or file from elsewhere, legible in
// black and white. It is as wide as a ticket and as high as it takes:
//
//	headline, where it was read, doubts
//	┌ package 0 ─────────────────┐ ┌ package 1 ────────…
//	│ ┌ node 0 ─────┐ ┌ node 1 … │ │
//	│ │ LLC ▸ cores │ │          │ │
//	│ │ devices     │ │          │ │
//	└────────────────────────────┘ └──────────────────
//	distances   nearest nodes   measured   HMAT   devices of no node
//	legend
func SVG(w io.Writer, m machine.Machine, options ...Option) error {
	f := newFacts(m, options...)
	var c canvas
	y := f.drawHead(&c)
	y += gap + f.drawNodes(&c, y)
	y += f.drawPanels(&c, y)
	y += f.drawLegend(&c, y+4)
	if _, err := io.WriteString(w, page(f, c.String(), y+pageMargin)); err != nil {
		return fmt.Errorf("write topology: %w", err)
	}
	return nil
}

func page(f facts, body string, height float64) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" role="img" aria-labelledby="t d">`+"\n",
		render.Coordinate(pageWidth), render.Coordinate(height))
	fmt.Fprintf(&b, "<title id=\"t\">Topology of %s</title>\n<desc id=\"d\">%s</desc>\n", render.EscapeXML(f.Origin), render.EscapeXML(f.headline()))
	b.WriteString(style + hatch)
	fmt.Fprintf(&b, `<rect class="page" width="%s" height="%s"/>`+"\n", render.Coordinate(pageWidth), render.Coordinate(height))
	b.WriteString(body + "</svg>\n")
	return b.String()
}

// drawHead writes the headline and what is to be known before the picture is
// believed; it returns where the next thing may start.
func (f facts) drawHead(c *canvas) float64 {
	y := pageMargin
	for _, line := range headLines(f.headline()) {
		y += 24
		c.text(pageMargin, y-4, "h1", line)
	}
	for _, part := range []string{f.about(), f.Origin} {
		for _, line := range render.WrapText(part, 13, innerWidth) {
			y += 18
			c.text(pageMargin, y, "sub", line)
		}
	}
	for i, d := range f.Doubts {
		if i == 6 {
			d = fmt.Sprintf("%d more", len(f.Doubts)-i)
		}
		for _, line := range render.WrapText("⚠ "+d, 13, innerWidth) {
			y += 18
			c.text(pageMargin, y, "doubt", line)
		}
		if i == 6 {
			break
		}
	}
	return y + gap
}

// headLines breaks a long headline where a person would.
func headLines(text string) []string {
	const font = 19
	lines := render.WrapText(text, font, innerWidth)
	if first, rest, ok := strings.Cut(text, "; "); ok && len(lines) > 1 {
		lines = append(render.WrapText(first+";", font, innerWidth), render.WrapText(rest, font, innerWidth)...)
	}
	return lines
}

// style has the page's colours: blues of growing depth, orange for what differs
// from the rest, all apart in grey and to colour-blind eyes.
const style = `<style>
text{font:12px system-ui,"DejaVu Sans",Arial,sans-serif;fill:#1a1f24}
.page{fill:#fff}
.h1{font-size:19px;font-weight:600}
.h2{font-size:14px;font-weight:600}
.sub{font-size:13px;fill:#56616c}
.small{font-size:11px;fill:#56616c}
.doubt{font-size:13px;fill:#a34400;font-weight:600}
.name{font-size:13px;font-weight:700}
.size{font-size:13px;font-weight:600;fill:#0a3d7a}
.cpu{font-size:11px;fill:#12263a}
.cpu.off{fill:#7b8792}
.tag{font-size:11px}
.frame{fill:#f3f5f8;stroke:#c3ccd5}
.node{fill:#fff;stroke:#5b6b7b;stroke-width:1.4}
.node.bare{fill:#fff8ec;stroke:#b36b00;stroke-dasharray:6 3}
.llc{fill:#dce9f7;stroke:#8fb3da}
.l2{fill:#f4f8fd;stroke:#6d96c4}
.core{fill:#fff;stroke:#48698c}
.core.k1{fill:#fdf3e1}.core.k2{fill:#e9f3e6}
.core.off{fill:url(#hatch);stroke:#9aa5b0;stroke-dasharray:3 2}
.part{stroke:#b9c9da}
.group{fill:none;stroke:#9aa5b0;stroke-dasharray:2 3}
.track{fill:#e6ebf0}
.fill{fill:#2171b5}
.fill.bare{fill:#d98a1f}
.box{fill:#fff;stroke:#3b4754}
.network{fill:#2171b5}.storage{fill:#5f6b76}.gpu{fill:#0b3c6f}.accelerator{fill:#9a5b00}.cxl{fill:#7a4b00}.other{fill:#fff;stroke:#5f6b76}
.mark{font-size:10px;font-weight:700;fill:#fff}
.card{fill:#fff;stroke:#d7dce1}
.cell{stroke:#fff}
.cell.none{fill:url(#hatch)}
.num{font-size:12px}
.num.light{fill:#fff}
.num.local{font-weight:700}
.head{font-size:11px;fill:#56616c}
.tiny{font-size:8px}
.rule{stroke:#d7dce1}
.near{stroke:#0b3c6f;stroke-width:2.6}
.next{stroke:#8fb3da;stroke-width:1.3}
.far{stroke:#c3ccd5;stroke-width:.7}
.dot{fill:#fff;stroke:#0b3c6f;stroke-width:2}
.dot.bare{stroke:#b36b00;fill:#fff8ec}
</style>
`

const hatch = `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" fill="#f3f4f6"/><rect width="2" height="6" fill="#d3d9df"/></pattern></defs>
`
