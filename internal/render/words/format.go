// SPDX-License-Identifier: Apache-2.0

package words

import (
	"strconv"

	"homenode/internal/action"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// inUnit is a figure as a sentence has it. A unit that the sentence names itself, such as
// CPUs or windows, is left out.
func inUnit(v float64, of string) string {
	switch of {
	case "ratio":
		return render.Percent(v)
	case "bytes":
		return render.Bytes(v)
	case "bytes/s":
		return render.Bytes(v) + "/s"
	case "s":
		return render.Seconds(v)
	case "cpus", "times":
		return render.CPUs(v)
	case "window": // which one, not how many: it is looked up in a log
		return strconv.FormatFloat(v, 'f', 0, 64)
	case "windows", "workloads", "replicas", "reads", "threads":
		return render.Commas(v)
	}
	return render.Precise(v)
}

// estimated is " (estimated: Σ CPU share × …)"; "" of a measurement.
func estimated(n action.Number) string {
	if n.Value.How != unit.HowEstimated {
		return ""
	}
	return " (estimated: " + n.Value.From + ")"
}
