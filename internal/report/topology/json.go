// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"io"

	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/unit"
)

// firmware is how a figure of the HMAT was got: it was read, not measured.
const firmware = "firmware (HMAT)"

// document is the JSON form; docs/topo-json.md describes it. Fields may be
// added, and are neither renamed nor given another meaning.
type document struct {
	Schema    int                  `json:"schema"` // 1
	Origin    string               `json:"origin"`
	Summary   string               `json:"summary"`
	CPUs      int                  `json:"cpu_count"`
	Cores     unit.Opt[int]        `json:"core_count"`
	SMT       unit.Opt[int]        `json:"smt"`
	Online    set.CPUSet           `json:"online_cpus"`
	Offline   set.CPUSet           `json:"offline_cpus"`
	Memory    unit.Opt[unit.Bytes] `json:"memory_bytes"`
	PageSize  unit.Opt[unit.Bytes] `json:"page_bytes"`
	Nodes     []nodeDoc            `json:"nodes"`
	NoCPUs    set.NodeSet          `json:"nodes_without_cpus"`
	Packages  []groupDoc           `json:"packages"`
	Dies      []groupDoc           `json:"dies"`
	LLCs      []cacheDoc           `json:"llcs"`
	L2s       []cacheDoc           `json:"l2s"`
	Tiers     []tier               `json:"tiers"`
	Access    []accessDoc          `json:"access"`
	Profile   []profileDoc         `json:"profile"`
	SideCache []sideCacheDoc       `json:"side_caches"`
	Caches    []cacheDoc           `json:"inner_caches"`
	Kinds     []machine.CPUKind    `json:"cpu_kinds"`
	Devices   []deviceDoc          `json:"devices"`
	DAX       []machine.DAX        `json:"dax"`
	Links     []machine.Links      `json:"links"`
	CoreList  []coreDoc            `json:"core_list"`
	CPUList   []machine.CPU        `json:"cpu_list"`
	Doubts    []string             `json:"doubts"`
	Problems  []string             `json:"problems"`
}

type nodeDoc struct {
	ID        int                  `json:"id"`
	CPUs      set.CPUSet           `json:"cpus"`
	Cores     unit.Opt[int]        `json:"core_count"`
	Packages  []int                `json:"package_indexes"` // indexes
	Memory    unit.Opt[unit.Bytes] `json:"memory_bytes"`
	Distances []unit.Opt[int]      `json:"distances"`
	Tier      unit.Opt[int]        `json:"tier"`
	Near      set.CPUSet           `json:"near_cpus"`
	NearNodes set.NodeSet          `json:"near_nodes"`
	NearHow   unit.Opt[string]     `json:"near_how"`
	HugePages []machine.HugePages  `json:"huge_pages"`
}

type groupDoc struct {
	CPUs set.CPUSet `json:"cpus"`
}

type cacheDoc struct {
	CPUs  set.CPUSet           `json:"cpus"`
	Level int                  `json:"level"`
	Size  unit.Opt[unit.Bytes] `json:"size_bytes"`
	ID    unit.Opt[int]        `json:"id"`
	Type  string               `json:"type,omitempty"`
}

type accessDoc struct {
	Node int `json:"node"`
	machine.Access
	How string `json:"how"`
}

type sideCacheDoc struct {
	Node  int                  `json:"node"`
	Level int                  `json:"level"`
	Size  unit.Opt[unit.Bytes] `json:"size_bytes"`
	Line  unit.Opt[unit.Bytes] `json:"line_bytes"`
}

type deviceDoc struct {
	Address string              `json:"address"`
	Class   machine.DeviceClass `json:"class"`
	Names   []string            `json:"names"`
	Vendor  unit.Opt[string]    `json:"vendor"` // hexadecimal, as lspci prints it
	Device  unit.Opt[string]    `json:"device"`
	Node    unit.Opt[int]       `json:"node"`
	CPUs    set.CPUSet          `json:"cpus"`
	Bridges []string            `json:"bridges"`
	// Memory is of a CXL device.
	Memory unit.Opt[unit.Bytes] `json:"memory_bytes,omitzero"`
}

type coreDoc struct {
	CPUs    set.CPUSet    `json:"cpus"`
	Package unit.Opt[int] `json:"package"`
	Node    unit.Opt[int] `json:"node"`
}

// Form is a value of what JSON writes.
var Form any = document{}

// JSON writes a machine, and what was wrong with reading it, one sentence each.
func JSON(w io.Writer, m machine.Machine, problems []string, options ...Option) error {
	e := schema.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(newDocument(newFacts(m, options...), problems)); err != nil {
		return fmt.Errorf("write topology: %w", err)
	}
	return nil
}

func newDocument(f facts, problems []string) document {
	return document{
		Schema: 1, Origin: f.Origin, Summary: f.headline(), CPUs: f.online.Len(), Online: f.online, Offline: f.offline,
		Cores: unit.OptOf(len(f.Cores), len(f.Cores) > 0), SMT: f.threads, Memory: f.memory, PageSize: f.PageSize,
		Nodes: f.nodeDocs(), NoCPUs: f.noCPUs, Packages: groupDocs(f.Packages), Dies: groupDocs(f.Dies),
		LLCs: cacheDocs(f.LLCs), L2s: cacheDocs(f.L2s), Tiers: orEmpty(f.tiers()), Access: f.accessDocs(), Profile: f.profileDocs(),
		SideCache: f.sideCacheDocs(), Caches: f.innerDocs(), Kinds: orEmpty(f.Kinds),
		Devices: f.deviceDocs(), DAX: orEmpty(f.DAX), Links: orEmpty(f.Links), CoreList: f.coreDocs(), CPUList: orEmpty(f.CPUs),
		Doubts: orEmpty(f.Doubts), Problems: render.Each(problems, render.Printable),
	}
}

// orEmpty makes [] of nothing: a reader need not tell null from none.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func (f facts) nodeDocs() []nodeDoc {
	docs := []nodeDoc{}
	for _, n := range f.Nodes {
		near, how := f.NearCPUs(n.ID)
		d := nodeDoc{ID: n.ID, CPUs: n.CPUs, Cores: f.coresOf(n), Packages: orEmpty(f.packagesOf(n)), Memory: n.Memory, Tier: n.Tier,
			Near: near, NearNodes: f.nodesOf(near), NearHow: unit.OptOf(string(how), how != machine.NearnessUnset), HugePages: orEmpty(n.HugePages)}
		for _, to := range f.Nodes {
			d.Distances = append(d.Distances, f.Distance(n.ID, to.ID))
		}
		docs = append(docs, d)
	}
	return docs
}

func groupDocs(groups []set.CPUSet) []groupDoc {
	docs := []groupDoc{}
	for _, g := range groups {
		docs = append(docs, groupDoc{g})
	}
	return docs
}

func cacheDocs(caches []machine.Cache) []cacheDoc {
	docs := []cacheDoc{}
	for _, c := range caches {
		docs = append(docs, cacheDoc{CPUs: c.CPUs, Level: c.Level, Size: c.Size, ID: c.ID})
	}
	return docs
}

// innerDocs are the caches that are neither L2 nor the last level, with their type: an L1
// may hold instructions.
func (f facts) innerDocs() []cacheDoc {
	docs := cacheDocs(f.Inner)
	for i, c := range f.Inner {
		docs[i].Type = "data"
		if c.Instr {
			docs[i].Type = "instruction"
		}
	}
	return docs
}

func (f facts) accessDocs() []accessDoc {
	docs := []accessDoc{}
	for _, n := range f.Nodes {
		for _, a := range n.Access {
			docs = append(docs, accessDoc{n.ID, a, firmware})
		}
	}
	return docs
}

func (f facts) sideCacheDocs() []sideCacheDoc {
	docs := []sideCacheDoc{}
	for _, n := range f.Nodes {
		for _, c := range n.SideCaches {
			docs = append(docs, sideCacheDoc{n.ID, c.Level, c.Size, c.Line})
		}
	}
	return docs
}

func (f facts) deviceDocs() []deviceDoc {
	docs := []deviceDoc{}
	for _, d := range f.Devices {
		docs = append(docs, deviceDoc{Address: d.Address, Class: d.Class, Names: orEmpty(d.Names),
			Vendor: unit.OptOf(hex(d.Vendor), d.Vendor != 0), Device: unit.OptOf(hex(d.Model), d.Vendor != 0), Node: d.Node, CPUs: d.CPUs,
			Bridges: orEmpty(d.Bridges), Memory: d.Memory})
	}
	return docs
}

// hex prints a PCI id. There is no vendor 0: it says that none was read.
func hex(id uint16) string { return fmt.Sprintf("%04x", id) }

// coreDocs tells a core's package and node by its CPUs; unknown where they differ.
func (f facts) coreDocs() []coreDoc {
	docs := make([]coreDoc, len(f.Cores))
	seen := make([]bool, len(f.Cores))
	for _, c := range f.CPUs {
		i, ok := c.Core.Get()
		if !ok || i >= len(docs) {
			continue
		}
		d := &docs[i]
		if !seen[i] {
			seen[i] = true
			*d = coreDoc{f.Cores[i], c.Package, c.Node}
		}
		if d.Package != c.Package {
			d.Package = unit.None[int]()
		}
		if d.Node != c.Node {
			d.Node = unit.None[int]()
		}
	}
	return docs
}
