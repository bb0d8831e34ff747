// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"homenode/internal/action"
	"homenode/internal/unit"
)

// inUnit is a figure as a sentence has it. A unit that the sentence names itself, such as
// CPUs or windows, is left out.
func inUnit(v float64, of string) string {
	switch of {
	case "ratio":
		return unit.Ratio(v).String()
	case "bytes":
		return bytes(v)
	case "bytes/s":
		return bytes(v) + "/s"
	case "s":
		return duration(v)
	case "cpus", "times":
		return strconv.FormatFloat(v, 'f', 2, 64)
	case "window", "windows", "workloads", "replicas", "reads", "threads":
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return figure(v)
}

// figure keeps four significant digits: enough to see on which side of a limit.
func figure(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func bytes(v float64) string { return unit.Bytes(v).String() }

func duration(seconds float64) string {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond).String()
}

func percent(v float64) string { return fmt.Sprintf("%.0f%%", v*100) }

// estimated is " (estimated: Σ CPU share × …)"; "" of a measurement.
func estimated(n action.Number) string {
	if n.Value.How != unit.HowEstimated {
		return ""
	}
	return " (estimated: " + n.Value.From + ")"
}

// count is a rate for people: "1.2 M", "300 k", "25".
func count(v float64) string {
	for _, scale := range []struct {
		of   float64
		name string
	}{{1e9, " G"}, {1e6, " M"}, {1e3, " k"}} {
		if v >= scale.of {
			return short(v/scale.of) + scale.name
		}
	}
	return short(v)
}

// short keeps three digits without an exponent where that is short.
func short(v float64) string {
	digits := 0
	for limit := 100.0; digits < 2 && v < limit && v > -limit; limit /= 10 {
		digits++
	}
	if v != 0 && v < 0.01 && v > -0.01 {
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if digits > 0 {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}
