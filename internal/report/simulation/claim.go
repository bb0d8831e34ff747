// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"math"

	"homenode/internal/render"
	"homenode/internal/sim/scenario"
)

// noFigure is shown for a claim without a figure.
const noFigure = "no figure in our text"

// claimed is a paper's figure beside ours, in words.
type claimed struct {
	scenario.Judged
	figure figure
	seeds  int // seeds that it could cover
}

func (v scenarioView) claimed() (all []claimed) {
	for _, j := range scenario.Judge(v.Result) {
		all = append(all, claimed{j, v.figureNamed(j.Metric), v.seedsOf(j.Claim)})
	}
	return all
}

func (v scenarioView) seedsOf(c scenario.Claim) int {
	a, base := v.arm(c.Arm), v.arm(c.Against)
	switch {
	case a < 0:
		return 0
	case c.Absolute():
		return len(v.Arms[a].Runs)
	case base < 0:
		return 0
	}
	return pairs(v.Arms[a], v.Arms[base])
}

// what says what the figure describes: "latency of feed: mao against balancing".
func (c claimed) what() string {
	text := c.figure.title
	switch {
	case c.Service != "":
		text += " of " + c.Service
	case c.figure.OfServices() && c.Metric != scenario.LocalRatio: // that metric covers the whole run
		text += " of all services"
	}
	text += ": " + render.Or(c.Arm, unknown)
	if c.Absolute() {
		return text
	}
	return text + " against " + c.Against
}

// paper is the paper's figure: a change, or the figure itself.
func (c claimed) paper() string {
	v, ok := c.Value.Get()
	switch {
	case !ok:
		return noFigure
	case c.Absolute():
		return c.figure.print(v)
	}
	return render.Change(v)
}

func (c claimed) ours() render.Cell {
	if c.Absolute() {
		return of(c.Ours, c.seeds, cellOf(c.Ours, c.figure.print))
	}
	return of(c.Ours, c.seeds, changeCell(c.Ours))
}

// verdict compares our figure with the paper's, by the range of the seeds. It is "" where
// either is missing.
func (c claimed) verdict() string {
	paper, ok := c.Value.Get()
	low, high, mid := c.Ours.Min, c.Ours.Max, c.Ours.Median
	switch {
	case c.Ours.N == 0 || !ok:
		return ""
	case low <= paper && paper <= high:
		return "alike: the paper's is in our range"
	case c.Absolute() && mid < paper:
		return "lower than the paper's"
	case c.Absolute():
		return "higher than the paper's"
	case low <= 0 && 0 <= high:
		return "not clearly a change"
	case mid*paper < 0:
		return "the other way round"
	case math.Abs(mid) < math.Abs(paper):
		return "less, the same way"
	}
	return "more, the same way"
}
