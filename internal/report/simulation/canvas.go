// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strconv"

	"homenode/internal/render"
)

// panel is one picture in its card, with the table of its figures.
type panel struct {
	render.Panel
	Table render.Grid
}

// hues is the number of colours besides the reference arm's grey; further arms repeat
// them, paler. Lines also differ by dashes.
const hues = render.Hues - 1

func styleOf(n int) string {
	text := "s" + strconv.Itoa(n%render.Hues)
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
	return (at/hues)*render.Hues + at%hues + 1
}

// scenarioStyle is the style of what only the panels of a scenario draw, and the dashes of
// arms.
const scenarioStyle = `
svg .paperText{font-size:11px;fill:var(--markText)}
svg .fill{fill:var(--c)}svg .fill.pale{fill-opacity:.5}
svg .curve.s1{stroke-dasharray:9 2}svg .curve.s3{stroke-dasharray:3 2}svg .curve.s4{stroke-dasharray:9 2 3 2}svg .curve.s5{stroke-dasharray:5 3}
svg .paper{fill:var(--card);stroke:var(--mark);stroke-width:2}
`
