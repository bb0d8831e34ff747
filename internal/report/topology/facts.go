// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"slices"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/profile"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
)

const (
	unknown = render.Unknown
	none    = "none"
	// noWay is the SLIT's "there is no way from here to there" (ACPI 6.5, 5.2.17).
	noWay = 255
)

// facts are what all faces say of a machine.
type facts struct {
	machine.Machine
	online, offline set.CPUSet
	noCPUs          set.NodeSet
	threads         unit.Opt[int]        // of the largest core
	memory          unit.Opt[unit.Bytes] // of all nodes; unknown when one is
	far             int                  // the largest distance that is a way
	profile         *profile.Profile     // nil: it was not measured
}

func newFacts(m machine.Machine, options ...Option) facts {
	m = render.Cleaned(m)
	m.Doubts = m.AllDoubts()
	f := facts{Machine: m, online: m.OnlineCPUs(), noCPUs: m.NodeIDs()}
	f.noCPUs = f.noCPUs.Minus(m.NodesWithCPUs())
	for _, c := range m.CPUs {
		if !c.Online {
			f.offline = f.offline.With(c.ID)
		}
	}
	for _, core := range m.Cores {
		f.threads = unit.Some(max(f.threads.Or(0), core.Len()))
	}
	f.memory = unit.Some(unit.Bytes(0))
	for _, n := range m.Nodes { // the sum cannot overflow: see machine.MaxMemory
		b, ok := n.Memory.Get()
		f.memory = unit.OptOf(f.memory.Or(0)+b, ok && f.memory.Known())
	}
	f.far = f.farthestWay()
	for _, set := range options {
		set(&f)
	}
	return f
}

// headline is the machine in one sentence.
func (f facts) headline() string {
	where := f.packages()
	if len(f.Nodes) != 1 {
		where += " and " + f.nodes()
	}
	return fmt.Sprintf("%s (%s) in %s, %s; %s", render.Count(f.online.Len(), "CPU"), f.smt(), where, memoryOf(f.memory), f.farthest())
}

func (f facts) smt() string {
	s := "SMT unknown"
	if n, ok := f.threads.Get(); ok {
		s = "no SMT"
		if n > 1 {
			s = render.Count(n, "thread") + " per core"
			if len(f.Cores)*n != f.online.Len() {
				s = "up to " + s
			}
		}
	}
	if !f.offline.IsEmpty() {
		s += fmt.Sprintf(", %d more offline", f.offline.Len())
	}
	return s
}

func (f facts) packages() string {
	if len(f.Packages) == 0 {
		return "an unknown number of packages"
	}
	return render.Count(len(f.Packages), "package")
}

func (f facts) nodes() string {
	if f.noCPUs.IsEmpty() {
		return render.Count(len(f.Nodes), "node")
	}
	return fmt.Sprintf("%d nodes, %d of them without CPUs", len(f.Nodes), f.noCPUs.Len())
}

// distances from CPUs to memory: the largest that is a way, and what else is met.
type spread struct {
	far              int
	unknown, blocked bool
}

func (f facts) spread() spread {
	var s spread
	for _, from := range f.Nodes {
		for _, to := range f.Nodes {
			if from.CPUs.IsEmpty() || to.Memory == unit.Some(unit.Bytes(0)) {
				continue
			}
			d, ok := f.Distance(from.ID, to.ID).Get()
			switch {
			case !ok:
				s.unknown = true
			case d == noWay:
				s.blocked = true
			default:
				s.far = max(s.far, d)
			}
		}
	}
	return s
}

// farthest says how far memory can be.
func (f facts) farthest() string {
	if len(f.Nodes) == 1 {
		if lost := f.lost(); !lost.IsEmpty() {
			return fmt.Sprintf("one node; %s on none that is known", render.Count(lost.Len(), "CPU"))
		}
		return oneNode
	}
	s := f.spread()
	var said string
	switch {
	case s.unknown && s.far <= machine.LocalDistance:
		return "distances between nodes are unknown"
	case s.far <= machine.LocalDistance:
		said = "all memory at the local distance, says the firmware"
	default:
		said = "farthest memory at " + times(s.far) + " × the local distance"
	}
	if s.unknown {
		said += ", some distances unknown"
	}
	if s.blocked {
		said += ", some memory out of reach (255)"
	}
	return said
}

// lost are online CPUs that no node has.
func (f facts) lost() set.CPUSet { return f.online.Minus(f.CPUsOf(f.NodeIDs())) }

const oneNode = "one node: every CPU is equally near to all memory"

// times is a SLIT distance relative to the local one: 22 is 2.2.
func times(d int) string {
	return render.Short(float64(d) / machine.LocalDistance)
}

// about is the second line: caches, pages, where it was read.
func (f facts) about() string {
	parts := []string{caches("L2", f.L2s), caches("LLC", f.LLCs)}
	if len(f.Inner) > 0 {
		parts = append([]string{caches("L1", f.Inner)}, parts...)
	}
	if page, ok := f.PageSize.Get(); ok {
		parts = append(parts, "pages of "+page.String())
	}
	return strings.Join(parts, "; ")
}

// caches counts the kinds of caches: "8 × L3 6 MiB for 8 CPUs each".
func caches(what string, list []machine.Cache) string {
	type kind struct {
		level, cpus int
		size        unit.Opt[unit.Bytes]
		letter      string
	}
	var kinds []kind
	counts := map[kind]int{}
	for _, c := range list {
		k := kind{c.Level, c.CPUs.Len(), c.Size, cacheLetter(c)}
		if counts[k]++; counts[k] == 1 {
			kinds = append(kinds, k)
		}
	}
	const most = 4
	var parts []string
	for i, k := range kinds {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d other kinds", len(kinds)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%d × L%d%s %s for %s each", counts[k], k.level, k.letter, cacheSize(k.size), render.Count(k.cpus, "CPU")))
	}
	if len(parts) == 0 {
		return what + " " + unknown
	}
	return strings.Join(parts, ", ")
}

// cacheLetter tells an L1 of data from one of instructions.
func cacheLetter(c machine.Cache) string {
	switch {
	case c.Instr:
		return "i"
	case c.Level == 1:
		return "d"
	}
	return ""
}

// coresOf counts the cores that have a CPU on a node; unknown when a CPU's is.
func (f facts) coresOf(n machine.Node) unit.Opt[int] {
	seen := map[int]bool{}
	for _, c := range f.CPUs {
		if !n.CPUs.Has(c.ID) {
			continue
		}
		core, ok := c.Core.Get()
		if !ok {
			return unit.None[int]()
		}
		seen[core] = true
	}
	return unit.Some(len(seen))
}

// packagesOf lists the packages a node's CPUs are in, as "0" or "0,1".
func (f facts) packagesOf(n machine.Node) []int {
	var ids []int
	for i, p := range f.Packages {
		if p.Overlaps(n.CPUs) {
			ids = append(ids, i)
		}
	}
	return ids
}

// nodesOf are the nodes that have some of these CPUs.
func (f facts) nodesOf(cpus set.CPUSet) set.NodeSet {
	var ids []int
	for _, n := range f.Nodes {
		if n.CPUs.Overlaps(cpus) {
			ids = append(ids, n.ID)
		}
	}
	return set.FromNodes(ids...)
}

// cachesOf says which of these caches a node has: "6 MiB", "8 × 4 MiB",
// "27.5 MiB with node 2".
func (f facts) cachesOf(n machine.Node, list []machine.Cache) string {
	var kinds []string
	counts := map[string]int{}
	for _, c := range list {
		if !c.CPUs.Overlaps(n.CPUs) {
			continue
		}
		text := cacheSize(c.Size)
		if others := f.nodesOf(c.CPUs).Without(n.ID); !others.IsEmpty() {
			text += " with node " + others.String()
		}
		if counts[text]++; counts[text] == 1 {
			kinds = append(kinds, text)
		}
	}
	for i, k := range kinds {
		if counts[k] > 1 {
			kinds[i] = fmt.Sprintf("%d × %s", counts[k], k)
		}
	}
	switch {
	case len(kinds) > 0:
		return strings.Join(kinds, ", ")
	case n.CPUs.IsEmpty():
		return none
	}
	return unknown
}

// tiers are the memory tiers by ascending number: lower is faster.
func (f facts) tiers() []tier {
	by := map[int]set.NodeSet{}
	for _, n := range f.Nodes {
		if t, ok := n.Tier.Get(); ok {
			by[t] = by[t].With(n.ID)
		}
	}
	var all []tier
	for t, nodes := range by {
		all = append(all, tier{t, nodes})
	}
	slices.SortFunc(all, func(a, b tier) int { return a.Tier - b.Tier })
	return all
}

type tier struct {
	Tier  int         `json:"tier"`
	Nodes set.NodeSet `json:"nodes"`
}

// devicesOf are a node's devices; of the unknown node, those without one.
func (f facts) devicesOf(node unit.Opt[int]) []machine.Device {
	var list []machine.Device
	for _, d := range f.Devices {
		if d.Node == node {
			list = append(list, d)
		}
	}
	return list
}

// deviceName is what the kernel calls a device, else its address.
func deviceName(d machine.Device) string {
	if len(d.Names) > 0 {
		return strings.Join(d.Names, " ")
	}
	return d.Address
}

func memoryOf(o unit.Opt[unit.Bytes]) string {
	if !o.Known() {
		return "memory unknown"
	}
	return o.String()
}

func cacheSize(o unit.Opt[unit.Bytes]) string {
	if !o.Known() {
		return "(size unknown)"
	}
	return o.String()
}

// rate prints bytes per second.
func rate(o unit.Opt[unit.Bytes]) string {
	if !o.Known() {
		return unknown
	}
	return o.String() + "/s"
}

func nanoseconds(o unit.Opt[int]) string {
	if !o.Known() {
		return unknown
	}
	return o.String() + " ns"
}
