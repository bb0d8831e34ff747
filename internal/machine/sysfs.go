// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"homenode/internal/set"
	"homenode/internal/unit"
)

const (
	cpuDir  = "sys/devices/system/cpu"
	nodeDir = "sys/devices/system/node"
)

// ErrNoCPU means that a tree describes no CPU, so it is not a machine's.
var ErrNoCPU = errors.New("no CPU found: the tree must hold sys/devices/system/cpu")

var errNoneOnline = errors.New("no CPU is online: a kernel runs on one at least")

// ParseSysfs reads a machine from a tree rooted at its "/" (sys/devices/system and,
// where present, proc). A missing file leaves a value unknown. The error joins
// everything that could not be read or believed; the machine beside it holds the rest
// and is usable, unless the error is ErrNoCPU: then it is the zero Machine.
//
// Give a recorded tree as os.Root.FS, not os.DirFS: the absolute links in it must
// not lead to this host's own /sys.
//
//  1. CPUs are the cpuN directories. Where there are none at all, the tree was cut down to
//     what cpu/online names.
//  2. Nodes are the nodeN directories; without any, one node 0 has it all.
//  3. A CPU's node is the one that claims it, or else that of its own cpuN/nodeM link.
//     If several claim it, the link decides, then the lowest id: no CPU is ever given
//     twice. That is reported, because such a table comes from broken firmware.
//  4. Packages, dies, cores and caches come from the online CPUs' own directories; an
//     offline CPU is in none.
//  5. The cgroup limits of the process that recorded the tree are no property of the
//     machine, and are ignored.
func ParseSysfs(fsys fs.FS, origin string) (Machine, error) {
	t := &tree{fsys: fsys, served: map[string]string{}, leaves: map[int]leaf{}}
	m := Machine{Origin: origin}
	if m.CPUs = t.cpus(); len(m.CPUs) == 0 {
		return Machine{}, errors.Join(append([]error{ErrNoCPU}, t.errs...)...)
	}
	if t.online = m.OnlineCPUs(); t.online.IsEmpty() {
		return Machine{}, errors.Join(append([]error{fmt.Errorf("read %s/online: %w: %w", cpuDir, ErrMalformed, errNoneOnline)}, t.errs...)...)
	}
	t.topologies(&m)
	t.dropUndescribed(&m)
	t.allCaches(&m)
	t.nodes(&m)
	t.tiers(&m)
	t.kinds(&m)
	t.devices(&m)
	t.dax(&m)
	t.xgmi(&m)
	slices.Sort(m.Doubts)
	slices.Sort(m.PackageDoubts)
	m.PageSize = load(t, "proc/hwloc-nofile-info", parsePageSize).Or(unit.None[unit.Bytes]())
	return m, errors.Join(t.errs...)
}

// cpus lists the CPUs (1).
func (t *tree) cpus() []CPU {
	online := t.cpuList(cpuDir + "/online")
	var all set.CPUSet
	for _, id := range t.ids(cpuDir, "cpu") {
		if id > set.MaxCPU {
			t.failed("read", cpuPath(id, ""), fmt.Errorf("%w: cpu ids end at %d", ErrMalformed, set.MaxCPU))
			continue
		}
		all = all.With(id)
	}
	if t.listed = online.Known(); !t.listed {
		online = unit.Some(t.onlineOnes(all))
	}
	on := online.Or(set.CPUSet{})
	if extra := on.Minus(all); !all.IsEmpty() && !extra.IsEmpty() {
		t.malformed(cpuDir+"/online", fmt.Errorf("line 1: it names cpus %v, which have no folder beside it", extra))
		on = on.Intersect(all)
	}
	var cpus []CPU
	for id := range all.Union(on).All() {
		cpus = append(cpus, CPU{ID: id, Online: on.Has(id)})
	}
	return cpus
}

// onlineOnes reads every cpuN/online if there is no cpu/online. A CPU that cannot be
// switched off (often cpu0) has no such file.
func (t *tree) onlineOnes(all set.CPUSet) set.CPUSet {
	on := all
	for id := range all.All() {
		if !load(t, cpuPath(id, "online"), parseOnline).Or(true) {
			on = on.Without(id)
		}
	}
	return on
}

// dropUndescribed treats CPUs as offline if they have no topology although others have,
// and no other file shows their state.
func (t *tree) dropUndescribed(m *Machine) {
	if t.listed || len(m.Cores)+len(m.Packages) == 0 {
		return
	}
	for i := range m.CPUs {
		if c := &m.CPUs[i]; !c.Core.Known() && !c.Package.Known() {
			c.Online = false
		}
	}
	t.online = m.OnlineCPUs()
}

// nodes lists the nodes with their CPUs, memory and distances (2, 3).
func (t *tree) nodes(m *Machine) {
	ids := t.nodeIDs()
	if len(ids) == 0 {
		t.oneNode(m)
		return
	}
	claims := map[int]set.CPUSet{}
	for _, id := range ids {
		files := t.names(nodePath(id, ""))
		n := Node{
			ID:         id,
			Memory:     load(t, nodePath(id, "meminfo"), parseMemTotal),
			Access:     t.access(id, numbered(files, "access")),
			SideCaches: t.sideCaches(id, slices.Contains(files, "memory_side_cache")),
		}
		if slices.Contains(files, "hugepages") {
			n.HugePages = t.hugePages(nodePath(id, "hugepages"), n.Memory)
		}
		m.Nodes = append(m.Nodes, n)
		claims[id] = t.cpuList(nodePath(id, "cpumap"), nodePath(id, "cpulist")).Or(set.CPUSet{})
	}
	t.assign(m, claims)
	m.nodeCPUs()
	m.Distances = t.distances(m.Nodes)
}

func (t *tree) nodeIDs() []int {
	ids := t.ids(nodeDir, "node")
	n, _ := slices.BinarySearch(ids, set.MaxNode+1)
	if n < len(ids) {
		t.failed("read", nodePath(ids[n], ""), fmt.Errorf("%w: node ids end at %d", ErrMalformed, set.MaxNode))
	}
	return ids[:n]
}

// oneNode describes a machine whose kernel has no nodes.
func (t *tree) oneNode(m *Machine) {
	memory := load(t, "proc/meminfo", parseMemTotal)
	m.Nodes = []Node{{ID: 0, Memory: memory, HugePages: t.hugePages("sys/kernel/mm/hugepages", memory)}}
	m.Distances = [][]unit.Opt[int]{{unit.Some(LocalDistance)}}
	for i := range m.CPUs {
		m.CPUs[i].Node = unit.Some(0)
	}
	m.nodeCPUs()
}

// assign gives every CPU its node (3) and notes where nodes contradict each other.
func (t *tree) assign(m *Machine, claims map[int]set.CPUSet) {
	contested := map[set.NodeSet]set.CPUSet{}
	for i := range m.CPUs {
		c := &m.CPUs[i]
		claimants := m.nodesWhere(func(n *Node) bool { return claims[n.ID].Has(c.ID) })
		c.Node = t.nodeOf(m, c.ID, claimants)
		if claimants.Len() > 1 {
			contested[claimants] = contested[claimants].With(c.ID)
		}
	}
	var doubts []string
	for nodes, cpus := range contested {
		doubts = append(doubts, fmt.Sprintf("nodes %v all claim cpus %v: each cpu was given to one of them", nodes, cpus))
	}
	slices.Sort(doubts)
	for _, d := range doubts {
		t.doubt(&m.Doubts, nodeDir, d)
	}
}

// doubt notes that files contradict each other.
func (t *tree) doubt(all *[]string, where, what string) {
	*all = append(*all, what)
	t.failed("read", where, fmt.Errorf("%w: %s", ErrMalformed, what))
}

// nodeOf decides the node of a CPU (3).
func (t *tree) nodeOf(m *Machine, cpu int, claimants set.NodeSet) unit.Opt[int] {
	lowest, claimed := claimants.First()
	if claimants.Len() == 1 {
		return unit.Some(lowest)
	}
	linked, ok := t.linkedNode(m, cpu)
	if claimed && !claimants.Has(linked) {
		return unit.Some(lowest)
	}
	return unit.OptOf(linked, ok)
}

// linkedNode follows cpuN/nodeM, the kernel's cpu_to_node(), unless that node
// is offline. Links since 2.6.33.
func (t *tree) linkedNode(m *Machine, cpu int) (int, bool) {
	for _, id := range t.ids(cpuPath(cpu, ""), "node") {
		if _, ok := m.nodeIndex(id); ok {
			return id, true
		}
	}
	return -1, false
}

// nodeCPUs gives each node its own online CPUs.
func (m *Machine) nodeCPUs() {
	for i := range m.Nodes {
		var ids []int
		for _, c := range m.CPUs {
			if node, ok := c.Node.Get(); ok && node == m.Nodes[i].ID && c.Online {
				ids = append(ids, c.ID)
			}
		}
		m.Nodes[i].CPUs = set.FromCPUs(ids...)
	}
}

func cpuPath(id int, name string) string {
	return joinPath(fmt.Sprintf("%s/cpu%d", cpuDir, id), name)
}

func nodePath(id int, name string) string {
	return joinPath(fmt.Sprintf("%s/node%d", nodeDir, id), name)
}

func joinPath(dir, name string) string {
	if name == "" {
		return dir
	}
	return dir + "/" + name
}
