// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/unit"
)

// Text writes a machine for a terminal.
func Text(w io.Writer, m machine.Machine, options ...Option) error {
	b := &render.Terminal{TextOptions: render.TextOptions{UTF8: true}}
	f := newFacts(m, options...)
	fmt.Fprintf(b, "%s\n%s; %s\n", f.headline(), f.about(), f.Origin)
	for _, d := range f.Doubts {
		fmt.Fprintf(b, "warning: %s\n", d)
	}
	f.nodeText(b)
	f.distanceText(b)
	f.measuredText(b)
	f.accessText(b)
	f.sideCacheText(b)
	f.tierText(b)
	f.nearText(b)
	f.kindText(b)
	f.hugePageText(b)
	f.deviceText(b)
	f.daxText(b)
	f.linkText(b)
	return b.Flush(w, "topology")
}

// widest is how much of a CPU list fits into a table; the full ones come below it.
const widest = 32

func (f facts) nodeText(b *render.Terminal) {
	tiers, devices := len(f.tiers()) > 0, len(f.Devices) > 0
	t := table{{"node", "CPUs", "cores", "package", "memory", "LLC"}}
	if tiers {
		t[0] = append(t[0], "tier")
	}
	if devices {
		t[0] = append(t[0], "devices")
	}
	long := false
	for _, n := range f.Nodes {
		cpus, cut := shorten(render.Or(n.CPUs.String(), none), n.CPUs.Len())
		long = long || cut
		row := []string{strconv.Itoa(n.ID), cpus, f.coresOf(n).String(), f.packageText(n), n.Memory.String(), f.cachesOf(n, f.LLCs)}
		if tiers {
			row = append(row, n.Tier.String())
		}
		if devices {
			row = append(row, deviceNames(f.devicesOf(unit.Some(n.ID)), 4))
		}
		t = append(t, row)
	}
	b.WriteByte('\n')
	t.write(b, "><>>><><")
	if long {
		b.WriteByte('\n')
		for _, n := range f.Nodes {
			if !n.CPUs.IsEmpty() {
				fmt.Fprintf(b, "node %d: CPUs %s\n", n.ID, n.CPUs)
			}
		}
	}
	if !f.offline.IsEmpty() {
		fmt.Fprintf(b, "offline: CPUs %s\n", f.offline)
	}
	if lost := f.lost(); !lost.IsEmpty() {
		fmt.Fprintf(b, "on an unknown node: CPUs %s\n", lost)
	}
}

func shorten(list string, n int) (string, bool) {
	if len(list) <= widest {
		return list, false
	}
	cut := strings.LastIndexByte(list[:widest-8], ',')
	return fmt.Sprintf("%s,… (%d)", list[:max(cut, 0)], n), true
}

func (f facts) packageText(n machine.Node) string {
	if n.CPUs.IsEmpty() {
		return none
	}
	ids := f.packagesOf(n)
	if len(ids) == 0 {
		return unknown
	}
	return ints(ids)
}

func ints(ids []int) string {
	var parts []string
	for _, id := range ids {
		parts = append(parts, strconv.Itoa(id))
	}
	return strings.Join(parts, ",")
}

// deviceNames names at most so many.
func deviceNames(list []machine.Device, most int) string {
	var names []string
	for i, d := range list {
		if i == most {
			names = append(names, fmt.Sprintf("+%d", len(list)-most))
			break
		}
		names = append(names, deviceName(d))
	}
	return render.Or(strings.Join(names, " "), none)
}

func (f facts) distanceText(b *render.Terminal) {
	if len(f.Nodes) < 2 {
		return
	}
	t := table{{"from\\to"}}
	for _, n := range f.Nodes {
		t[0] = append(t[0], strconv.Itoa(n.ID))
	}
	for _, from := range f.Nodes {
		row := []string{strconv.Itoa(from.ID)}
		for _, to := range f.Nodes {
			row = append(row, distance(f.Distance(from.ID, to.ID)))
		}
		t = append(t, row)
	}
	b.WriteString("\nDistances (SLIT; 10 is local" + f.distanceMarks() + ")\n")
	t.write(b, "")
}

// distanceMarks explains the marks in the table that are there.
func (f facts) distanceMarks() string {
	marks := ""
	blocked, missing := false, false
	for _, from := range f.Nodes {
		for _, to := range f.Nodes {
			d, ok := f.Distance(from.ID, to.ID).Get()
			blocked, missing = blocked || d == noWay, missing || !ok
		}
	}
	if blocked {
		marks += ", 255 is no way"
	}
	if missing {
		marks += ", ? is unknown"
	}
	return marks
}

func distance(d unit.Opt[int]) string {
	if !d.Known() {
		return "?"
	}
	return d.String()
}

func (f facts) accessText(b *render.Terminal) {
	t := table{{"memory of", "seen from", "read", "write", "read", "write"}}
	for _, n := range f.Nodes {
		for _, a := range n.Access {
			t = append(t, accessRow(n, a))
		}
	}
	if len(t) > 1 {
		b.WriteString("\nLatency and bandwidth, as the firmware says (HMAT); not measured\n")
		t.write(b, "><")
	}
}

func accessRow(n machine.Node, a machine.Access) []string {
	return []string{"node " + strconv.Itoa(n.ID), initiators(a), nanoseconds(a.ReadLatency), nanoseconds(a.WriteLatency),
		rate(a.ReadBandwidth), rate(a.WriteBandwidth)}
}

// initiators says who the figures hold for: class 1 is about CPUs only, class 0
// about whatever is fastest (Documentation/admin-guide/mm/numaperf.rst).
func initiators(a machine.Access) string {
	who := "unknown nodes"
	if !a.Initiators.IsEmpty() {
		who = "node " + a.Initiators.String()
	}
	if a.Class == 1 {
		who += " (CPUs)"
	}
	return who
}

func (f facts) sideCacheText(b *render.Terminal) {
	first := true
	for _, n := range f.Nodes {
		for _, c := range n.SideCaches {
			if first {
				b.WriteString("\nCaches in front of memory\n")
				first = false
			}
			fmt.Fprintf(b, "  node %d: level %d, %s, lines of %s\n", n.ID, c.Level, c.Size.String(), c.Line.String())
		}
	}
}

func (f facts) tierText(b *render.Terminal) {
	tiers := f.tiers()
	if len(tiers) == 0 {
		return
	}
	b.WriteString("\nMemory tiers (lower is faster)\n")
	for _, t := range tiers {
		fmt.Fprintf(b, "  tier %d: %s %s\n", t.Tier, render.Plural(t.Nodes.Len(), "node"), t.Nodes)
	}
}

func (f facts) deviceText(b *render.Terminal) {
	if len(f.Devices) == 0 {
		return
	}
	t := table{{"node", "class", "address", "id", "near CPUs", "names"}}
	bridged := slices.ContainsFunc(f.Devices, func(d machine.Device) bool { return len(d.Bridges) > 0 })
	if bridged {
		t[0] = append(t[0], "behind bridges")
	}
	add := func(node string, list []machine.Device) {
		for _, d := range list {
			near := unknown
			if !d.CPUs.IsEmpty() {
				near, _ = shorten(d.CPUs.String(), d.CPUs.Len())
			}
			row := []string{node, string(d.Class), d.Address, deviceID(d), near, render.Or(deviceTitle(d), none)}
			if bridged {
				row = append(row, render.Or(strings.Join(d.Bridges, " "), none))
			}
			t = append(t, row)
		}
	}
	for _, n := range f.Nodes {
		add(strconv.Itoa(n.ID), f.devicesOf(unit.Some(n.ID)))
	}
	add(unknown, f.strays())
	b.WriteString("\nDevices\n")
	t.write(b, "><<<<<<")
}

func deviceID(d machine.Device) string {
	if d.Vendor == 0 {
		return unknown
	}
	return hex(d.Vendor) + ":" + hex(d.Model)
}

// strays are devices of no node, or of one that is not there.
func (f facts) strays() []machine.Device {
	var list []machine.Device
	for _, d := range f.Devices {
		if id, ok := d.Node.Get(); !ok || !f.NodeIDs().Has(id) {
			list = append(list, d)
		}
	}
	return list
}

// table is rows of cells, the heads first.
type table [][]string

// write aligns the columns; how has a < or > for each, and > for those it lacks.
func (t table) write(p *render.Terminal, how string) {
	all := render.Table{Margin: 2, Rows: t}
	for i := range t[0] {
		all.Columns = append(all.Columns, render.Column{Left: i < len(how) && how[i] == '<'})
	}
	p.Table(all)
}
