// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"html/template"
	"strconv"

	"homenode/internal/render"
)

type canvas struct{ render.Canvas }

// panel is one picture in its card, with the table of its figures.
type panel struct {
	ID, Title, Sub string
	Table          table
	high           float64
	draw           func(*canvas)
}

// Picture is the SVG of a panel; the canvas has escaped everything in it.
func (p panel) Picture() template.HTML {
	var c canvas
	p.draw(&c)
	return c.Canvas.Picture(barsWide, p.high, p.ID, p.Title+". "+p.Sub, "")
}

// hues is the number of colours; further arms repeat them, paler. The reference arm is
// grey. Lines also differ by dashes.
const hues = 5

func styleOf(n int) string {
	text := "s" + strconv.Itoa(n%(hues+1))
	if n > hues {
		text += " pale"
	}
	return text
}

// style is an arm's style: 0 is the reference's, the others have 1 to 5, then 7 to 11.
func (v scenarioView) style(arm int) int {
	if arm == v.base {
		return 0
	}
	at := arm
	if arm > v.base {
		at--
	}
	return (at/hues)*(hues+1) + at%hues + 1
}

// scenarioStyle is the style of what the panels draw.
const scenarioStyle = `
svg{--s0:#6b7782;--s1:#c2570a;--s2:#0a62c2;--s3:#0b7a4b;--s4:#8a3fa0;--s5:#a3123b}
@media (prefers-color-scheme:dark){svg{--s0:#a5b0bb;--s1:#ff9d4d;--s2:#5aa7ff;--s3:#53cf8b;--s4:#d19be8;--s5:#ff8f9f}}
svg .axis{font-size:11px;fill:var(--muted)}svg .name,svg .figure,svg .paperText{font-size:11px;fill:var(--fg)}
svg .group{font-size:12.5px;font-weight:600}svg .paperText{fill:var(--markText)}
svg .grid{stroke:var(--line);stroke-width:1}svg .base{stroke:var(--muted);stroke-width:1}
svg .s0{--c:var(--s0)}svg .s1{--c:var(--s1)}svg .s2{--c:var(--s2)}svg .s3{--c:var(--s3)}svg .s4{--c:var(--s4)}svg .s5{--c:var(--s5)}
svg .fill{fill:var(--c)}svg .fill.pale{fill-opacity:.5}
svg .curve{fill:none;stroke:var(--c);stroke-width:1.8;stroke-linejoin:round}svg .curve.s1{stroke-dasharray:9 2}svg .curve.s3{stroke-dasharray:3 2}svg .curve.s4{stroke-dasharray:9 2 3 2}svg .curve.s5{stroke-dasharray:5 3}svg .curve.pale{stroke-opacity:.6}
svg .spread{fill:none;stroke:var(--c);stroke-width:1.2;opacity:.75}svg .band{fill:var(--c);fill-opacity:.14;stroke:none}
svg .dot{fill:var(--c);stroke:var(--card);stroke-width:1}
svg .paper{fill:var(--card);stroke:var(--mark);stroke-width:2}
`
