// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"fmt"
	"slices"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/set"
	"homenode/internal/unit"
)

const (
	// maoPerByte is CPU-seconds a byte: 0.65 s/GB of one core at 100 % (MAO, where it
	// says why it does not migrate pages; 0.63 to 0.65). Larger: less is moved.
	maoPerByte = 0.65e-9
	maoSource  = "0.65 s/GB (MAO)"
	// localLatency is seconds of a load from the own node if it was not measured
	// (Skylake-SP with DDR4-2400, MAO). Larger: moving seems to save more.
	localLatency = 80e-9
	// hugeFrom tells the profile's huge pages from its small ones, which are 64 KiB
	// at most.
	hugeFrom = unit.MiB
)

// Costs is what moving a byte costs on a machine, and what a load saves. The zero
// Costs knows MAO's price and no latency.
type Costs struct {
	profile *profile.Profile // nil: estimates
	machine *machine.Machine // nil: none
}

// CostsOf uses a profile of this machine; nil is none.
func CostsOf(p *profile.Profile, m machine.Machine) Costs { return Costs{profile: p, machine: &m} }

// access is what the firmware says of a node's memory.
func (c Costs) access(node int) []machine.Access {
	if c.machine == nil {
		return nil
	}
	n, _ := c.machine.Node(node)
	return n.Access
}

func (c Costs) distance(from, to int) (int, bool) {
	if c.machine == nil {
		return 0, false
	}
	return c.machine.Distance(from, to).Get()
}

// how is what the profile's clock makes of its figures.
func (c Costs) how() unit.Source { return max(c.profile.How, unit.HowEstimated) }

// PerByte is CPU-seconds to move a byte between two nodes, by one worker.
//
//  1. the profile's figure of this pair and page size, as good as the profile's clock,
//  2. the mean of other pairs with this page size, an estimate,
//  3. a small page's price for a huge one (too much), an estimate,
//  4. MAO's.
func (c Costs) PerByte(from, to int, huge bool) unit.Value[float64] {
	perByte := func(m *profile.Migration) (float64, bool) {
		ns, ok := m.PerPage.Median.Get()
		return ns / 1e9 / float64(m.PageSize), ok
	}
	if v, ok := c.figure(from, to, huge, perByte); ok { // 1, 2
		return v
	}
	if v, ok := c.figure(from, to, false, perByte); huge && ok { // 3
		return unit.Estimated(v.Or(0), v.From+", as of small pages")
	}
	return unit.Estimated(maoPerByte, maoSource) // 4
}

// Speed is bytes/s that one worker moves between two nodes, as fast as it goes.
func (c Costs) Speed(from, to int, huge bool) unit.Value[float64] {
	if v, ok := c.figure(from, to, huge, func(m *profile.Migration) (float64, bool) { return m.Rate.Median.Get() }); ok {
		return v
	}
	cost := c.PerByte(from, to, huge)
	return unit.Estimated(1/cost.Or(maoPerByte), cost.From)
}

// figure is number 1 or 2 of PerByte; false when the profile has neither.
func (c Costs) figure(from, to int, huge bool, of func(*profile.Migration) (float64, bool)) (unit.Value[float64], bool) {
	if c.profile == nil {
		return unit.Value[float64]{}, false
	}
	sum, n := 0.0, 0
	for i := range c.profile.Migration {
		m := &c.profile.Migration[i]
		v, ok := of(m)
		if (m.PageSize >= hugeFrom) != huge || !ok || v <= 0 {
			continue
		}
		if m.From == from && m.To == to {
			return unit.ValueOf(v, c.how(), fmt.Sprintf("profile: migration %d to %d, pages of %v", from, to, m.PageSize)), true
		}
		sum, n = sum+v, n+1
	}
	if n == 0 {
		return unit.Value[float64]{}, false
	}
	return unit.Estimated(sum/float64(n), "profile: migration, mean of "+pairs(n)), true
}

func pairs(n int) string {
	if n == 1 {
		return "1 other pair"
	}
	return fmt.Sprintf("%d other pairs", n)
}

// LatencyDifference is seconds that a load by a CPU of a node is shorter once the
// page moved; negative when it is longer then. Both latencies are of one source:
// the profile, unless that contradicts itself, or the firmware (HMAT), or SLIT distances
// (machine.SLITExcess), where a distance of 10 is the firmware's latency of the CPU's own
// memory, else 80 ns.
func (c Costs) LatencyDifference(cpuNode, from, to int) unit.Value[float64] {
	before, after := c.latencies(cpuNode, from, to)
	if before.Known() && after.Known() {
		return unit.ValueOf(before.Or(0)-after.Or(0), unit.Weakest(before.How, after.How), before.From)
	}
	return unit.UnknownValue[float64](fmt.Sprintf("no latency or distance from node %d to nodes %d and %d", cpuNode, from, to))
}

// Ratio is by what factor a load to the page takes longer now than once it moved.
func (c Costs) Ratio(cpuNode, from, to int) unit.Value[float64] {
	before, after := c.latencies(cpuNode, from, to)
	if before.Known() && after.Or(0) > 0 {
		return unit.ValueOf(before.Or(0)/after.Or(0), unit.Weakest(before.How, after.How), before.From)
	}
	return unit.UnknownValue[float64](fmt.Sprintf("no latency or distance from node %d to nodes %d and %d", cpuNode, from, to))
}

// latencies are those of LatencyDifference, of one source.
func (c Costs) latencies(cpuNode, from, to int) (before, after unit.Value[float64]) {
	doubt := ""
	if before, after = c.profiled(cpuNode, from), c.profiled(cpuNode, to); before.Known() && after.Known() {
		if doubt = c.profile.LatencyDoubt(); doubt == "" {
			return before, after
		}
		doubt = " (not the profile's: " + doubt + ")"
	}
	if before, after = c.firmware(cpuNode, from), c.firmware(cpuNode, to); !before.Known() || !after.Known() {
		before, after = c.byDistance(cpuNode, from), c.byDistance(cpuNode, to)
	}
	if before.Known() {
		before.From += doubt
	}
	return before, after
}

func (c Costs) profiled(cpuNode, mem int) unit.Value[float64] {
	if c.profile == nil {
		return unit.UnknownValue[float64]("no profile")
	}
	f, ok := c.profile.LatencyBetween(cpuNode, mem)
	if !ok {
		return unit.UnknownValue[float64]("not in the profile")
	}
	return unit.ValueOf(f.Median.Or(0)/1e9, c.how(), "profile: latency")
}

// firmware is what HMAT says; it is the firmware's word, and mostly of the own node
// alone.
func (c Costs) firmware(cpuNode, mem int) unit.Value[float64] {
	access := c.access(mem)
	for i := range access {
		a := &access[i]
		if ns, ok := a.ReadLatency.Get(); ok && ns > 0 && a.Initiators.Has(cpuNode) {
			return unit.Estimated(float64(ns)/1e9, "firmware (HMAT)")
		}
	}
	return unit.UnknownValue[float64]("no HMAT")
}

func (c Costs) byDistance(cpuNode, mem int) unit.Value[float64] {
	d, ok := c.distance(cpuNode, mem)
	if !ok {
		return unit.UnknownValue[float64]("no distance")
	}
	local := c.firmware(cpuNode, cpuNode)
	from := "SLIT distance, 80 ns at 10"
	if local.Known() {
		from = "SLIT distance × " + local.From
	}
	return unit.Estimated(local.Or(localLatency)*machine.LatencyRatio(d, machine.SLITExcess), from)
}

// Bandwidth is bytes/s that a node's memory delivers.
func (c Costs) Bandwidth(node int) unit.Value[unit.Bytes] {
	if c.profile != nil {
		doubt := c.profile.BandwidthDoubt() != ""
		for _, f := range c.profile.Peak {
			if v, ok := f.Median.Get(); ok && f.Node == node {
				return unit.ValueOf(unit.Bytes(v), c.how(), "profile: peak bandwidth")
			}
		}
		if f, ok := c.profile.BandwidthBetween(node, node); ok && !doubt {
			return unit.ValueOf(unit.Bytes(f.Median.Or(0)), c.how(), "profile: bandwidth")
		}
	}
	for _, a := range c.access(node) {
		if b, ok := a.ReadBandwidth.Get(); ok && b > 0 {
			return unit.Estimated(b, "firmware (HMAT)")
		}
	}
	return unit.UnknownValue[unit.Bytes](fmt.Sprintf("the bandwidth of node %d was not measured", node))
}

// Difference is LatencyDifference on the average: loads go to bytes alike wherever
// they are, they come from all these CPUs' nodes alike, and pages move to all nodes
// of to alike.
func (c Costs) Difference(cpus set.NodeSet, from []NodeBytes, to set.NodeSet) unit.Value[float64] {
	return average(from, to, func(f, t int) unit.Value[float64] { return over(cpus, f, t, c.LatencyDifference) })
}

// Slower is Ratio on the same average.
func (c Costs) Slower(cpus set.NodeSet, from []NodeBytes, to set.NodeSet) unit.Value[float64] {
	return average(from, to, func(f, t int) unit.Value[float64] { return over(cpus, f, t, c.Ratio) })
}

// over is the mean over the CPUs' nodes for one pair of nodes.
func over(cpus set.NodeSet, from, to int, of func(cpu, from, to int) unit.Value[float64]) unit.Value[float64] {
	var m mean
	for cpu := range cpus.All() {
		if v := of(cpu, from, to); !m.add(v, 1) {
			return v
		}
	}
	return m.value()
}

// Price is PerByte on the average.
func (c Costs) Price(from []NodeBytes, to set.NodeSet, huge bool) unit.Value[float64] {
	return average(from, to, func(f, t int) unit.Value[float64] { return c.PerByte(f, t, huge) })
}

// average weighs by bytes, and is as good as the weakest of its parts; it is unknown
// when one of them is, or when there is none.
func average(from []NodeBytes, to set.NodeSet, of func(from, to int) unit.Value[float64]) unit.Value[float64] {
	var m mean
	for _, f := range from {
		for t := range to.All() {
			if v := of(f.Node, t); !m.add(v, float64(f.Bytes)) {
				return v
			}
		}
	}
	return m.value()
}

// mean is one in the making: as good as the weakest of its parts.
type mean struct {
	sum, weight float64
	parts       int
	how         unit.Source
	first       string   // source
	others      []string // sources
}

// add is false for what is unknown.
func (m *mean) add(v unit.Value[float64], weight float64) bool {
	x, ok := v.Get()
	if !ok {
		return false
	}
	m.sum, m.weight = m.sum+float64(x*weight), m.weight+weight
	switch {
	case m.parts == 0:
		m.how, m.first = v.How, v.From
	case v.From != m.first && !slices.Contains(m.others, v.From):
		m.others = append(m.others, v.From)
	}
	m.how = min(m.how, v.How)
	m.parts++
	return true
}

func (m *mean) value() unit.Value[float64] {
	if m.weight == 0 {
		return unit.UnknownValue[float64]("there is nothing to move")
	}
	from := m.first
	if len(m.others) > 0 {
		from = fmt.Sprintf("%s, and %d more: the mean", from, len(m.others))
	}
	return unit.ValueOf(m.sum/m.weight, m.how, from)
}
