// SPDX-License-Identifier: Apache-2.0

package report

import (
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// bytesCell is an amount in a table, where most are zero.
func bytesCell(b unit.Bytes) string {
	if b == 0 {
		return "-"
	}
	return b.String()
}

func cellOpt(o unit.Opt[unit.Bytes]) string { return render.Show(o, bytesCell) }

// mostSeconds is about 30 years; more is no estimate.
const mostSeconds = 1e9

func seconds(o unit.Opt[float64]) string {
	s, ok := o.Get()
	if !ok || s < 0 || s > mostSeconds {
		return unknown
	}
	return render.Seconds(s)
}

// nodes prints "node 1", "nodes 0-2".
func nodes(s set.NodeSet) string {
	return render.Plural(s.Len(), "node") + " " + s.String()
}
