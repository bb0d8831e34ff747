// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"cmp"
	"slices"
	"strings"

	"homenode/internal/unit"
	"homenode/internal/window"
)

// order is the sort order of the table.
type order struct {
	by       column
	reversed bool
}

type column int

const (
	byCPU   column = iota // most first
	byLocal               // least first: the worst matters most
	byPages               // most first
	byName
	byMSR // most first
)

// orderKey is the column that a key sorts by.
func orderKey(key string) (column, bool) {
	i := strings.Index("clpnm", key)
	return column(i), i >= 0 && len(key) == 1
}

// press sorts by a column, or reverses the order if it is the column already.
func (o *order) press(c column) {
	o.reversed = o.by == c && !o.reversed
	o.by = c
}

// arrow marks the direction in the heading.
func (o order) arrow(c column) string {
	if o.by != c {
		return ""
	}
	if down := c == byCPU || c == byPages || c == byMSR; down != o.reversed {
		return "▾"
	}
	return "▴"
}

type row struct {
	wl       window.Workload
	features window.Features
	key      unit.Opt[float64]
}

// rows are the workloads that match the filter, in order. Unknown figures come
// last in either direction.
func (m *Model) rows() []row {
	f, _ := m.time.frame()
	var all []row
	for _, wl := range f.Window.Workloads {
		if m.filter != "" && !contains(wl.ID, m.filter) && !contains(wl.Service, m.filter) {
			continue
		}
		r := row{wl: wl, features: window.FeaturesOf(wl, f.Window.Length)}
		r.key = m.order.keyOf(r)
		all = append(all, r)
	}
	slices.SortStableFunc(all, m.order.compare)
	return all
}

func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

func (o order) keyOf(r row) unit.Opt[float64] {
	switch o.by {
	case byCPU:
		return r.wl.CPU.V
	case byLocal:
		return ratio(r.features.LocalAccessRatio)
	case byPages:
		by, ok := r.wl.PagesByNode()
		sum := 0.0
		for _, b := range by {
			sum -= float64(b)
		}
		return unit.OptOf(-sum, ok)
	case byMSR:
		return ratio(r.features.MSR)
	}
	return unit.Some(0.0)
}

func ratio(v unit.Value[unit.Ratio]) unit.Opt[float64] {
	r, ok := v.Get()
	return unit.OptOf(float64(r), ok)
}

func (o order) compare(a, b row) int {
	x, okX := a.key.Get()
	y, okY := b.key.Get()
	if okX != okY {
		if okX {
			return -1
		}
		return 1
	}
	c := cmp.Compare(x, y)
	if o.by == byCPU || o.by == byPages || o.by == byMSR {
		c = -c
	}
	if c == 0 {
		c = cmp.Compare(a.wl.ID, b.wl.ID)
		if o.by != byName {
			return c
		}
	}
	if o.reversed {
		return -c
	}
	return c
}

// follow keeps the selection on its workload, or on its row if the workload is
// gone.
func (m *Model) follow() {
	all := m.rows()
	at := slices.IndexFunc(all, func(r row) bool { return r.wl.ID == m.selected })
	if at < 0 {
		at = min(m.row, len(all)-1)
	}
	m.choose(all, at)
}

func (m *Model) choose(all []row, at int) {
	at = max(0, min(at, len(all)-1))
	m.row, m.selected = at, ""
	if at < len(all) {
		m.selected = all[at].wl.ID
	}
}

// move goes down by n rows.
func (m *Model) move(by int) {
	m.follow()
	m.choose(m.rows(), m.row+by)
}
