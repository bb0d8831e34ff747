// SPDX-License-Identifier: Apache-2.0

package words

import (
	"math"
	"strconv"
	"strings"

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

// evidence is a figure of a list: with its unit, in the digits that one needs.
func evidence(v float64, of string) string {
	switch of {
	case "ratio":
		return render.Precise(v*100) + "%"
	case "bytes", "bytes/s", "s":
		return inUnit(v, of)
	case "cpu_s":
		return render.Seconds(v) + " of CPU time"
	case "window":
		return "window " + inUnit(v, of)
	case "cpus":
		return counted(cpus(v), "CPUs")
	case "1/s":
		return render.Precise(v) + " per second"
	}
	return exactly(v, of)
}

// cpus has two decimals; less than that is not nothing.
func cpus(v float64) string {
	if math.Abs(v) < 0.005 {
		return render.Significant(v, 1)
	}
	return strings.TrimSuffix(strings.TrimRight(render.CPUs(v), "0"), ".")
}

// exactly has more digits, for a figure beside a limit that evidence does not tell from it.
func exactly(v float64, of string) string { return counted(render.Precise(v), of) }

// counted is "3 windows", "1 window", "0.5".
func counted(figure, of string) string {
	if figure == "1" {
		of = strings.TrimSuffix(of, "s")
	}
	return strings.TrimSpace(figure + " " + of)
}

// estimated is " (estimated: Σ CPU share × …)"; "" of a measurement.
func estimated(n action.Number) string {
	if n.Value.How != unit.HowEstimated {
		return ""
	}
	return " (estimated: " + n.Value.From + ")"
}
