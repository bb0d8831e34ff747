// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MetricSeries is a series as Prometheus' text formats name it; labels are name, value,
// name, value, ….
//
//	homenode_workload_cpus{workload="/demo/a",service="a"}
func MetricSeries(name string, labels ...string) string {
	var out strings.Builder
	out.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		sep := ","
		if i == 0 {
			sep = "{"
		}
		out.WriteString(sep + labels[i] + `="` + metricLabel(labels[i+1]) + `"`)
	}
	if len(labels) > 1 {
		out.WriteByte('}')
	}
	return out.String()
}

var metricEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// metricLabel keeps a label's value on its line, and removes what a terminal would obey: a
// cgroup may have any name. Different names stay different labels.
func metricLabel(s string) string {
	var out strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, s[0])
		case r != '\n' && !unicode.IsPrint(r):
			fmt.Fprintf(&out, `\u%04x`, r)
		default:
			out.WriteRune(r)
		}
		s = s[size:]
	}
	return metricEscaper.Replace(out.String())
}
