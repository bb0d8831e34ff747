// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"time"

	"homenode/internal/set"
	"homenode/internal/unit"
)

// Schema is the version of the wire form.
const Schema = 2 // 2: a name has one meaning in all JSON

// Profile is what a machine was measured to do. Times are by Clock: in the lab a
// model's, and How says so.
type Profile struct {
	Schema  int         `json:"schema"`
	Machine Fingerprint `json:"machine"`
	// Origin is the machine's: "live", "shape:four".
	Origin  string      `json:"origin"`
	Version string      `json:"version"` // of homenode
	Command string      `json:"command"`
	Date    time.Time   `json:"date"`
	Seconds float64     `json:"seconds"` // of wall clock it took, all parts together
	How     unit.Source `json:"how"`     // measured, or modelled: in the lab
	Clock   string      `json:"clock"`   // the clock of the times, in words
	// UsedCPUs and UsedNodes are the CPUs and nodes that the measurement used, which
	// may be fewer than the machine has (Only); empty: all.
	UsedCPUs  set.CPUSet  `json:"used_cpus"`
	UsedNodes set.NodeSet `json:"used_nodes"`
	Caveats   []Caveat    `json:"caveats"`
	// Done are the parts that are complete, in the order they were measured.
	Done    []Part    `json:"done"`
	Skipped []Skipped `json:"skipped"` // what was left out, and why

	Latency      []PairFigure  `json:"latency"`        // ns a dependent load, CPU's node × memory's node
	Bandwidth    []PairFigure  `json:"bandwidth"`      // bytes/s read by all CPUs of the node
	Peak         []NodeFigure  `json:"peak_bandwidth"` // bytes/s read from the node by all CPUs of the machine
	Mixes        []Mix         `json:"mixes"`
	Loaded       []Curve       `json:"loaded_latency"`
	Caches       []CacheSize   `json:"caches"`
	WorkingSets  []SizeFigure  `json:"working_sets"` // ns a load by working set, one CPU, local memory: the source of Caches
	CacheSharing []SharingTest `json:"cache_sharing"`
	CoreToCore   []CoreFigure  `json:"core_to_core"`
	Migration    []Migration   `json:"migration"`
	Policies     []PolicyRow   `json:"policies"`
	Rao          []RaoCell     `json:"rao"`
}

// Part is one thing that is measured: the unit of the plan, of --only and of
// resuming.
type Part string

// The parts, in the order in which they are measured: caches first, because the buffers
// of the other parts are multiples of the last-level cache.
const (
	Caches       Part = "caches"
	Latency      Part = "latency"
	Bandwidth    Part = "bandwidth"
	Mixes        Part = "mixes"
	Loaded       Part = "loaded-latency"
	CacheSharing Part = "cache-sharing"
	CoreToCore   Part = "core-to-core"
	Migrating    Part = "migration"
	Policies     Part = "policies"
	Rao          Part = "rao"
)

// Parts returns all parts in order.
func Parts() []Part {
	return []Part{Caches, Latency, Bandwidth, Mixes, Loaded, CacheSharing, CoreToCore, Migrating, Policies, Rao}
}

// Fingerprint distinguishes machines: a profile belongs to one.
type Fingerprint struct {
	CPUModel  string            `json:"cpu_model"` // "" = unknown
	CPUs      int               `json:"cpu_count"` // online
	Nodes     []int             `json:"node_ids"`
	NodeCPUs  []set.CPUSet      `json:"node_cpus"` // of Nodes
	Memory    []unit.Bytes      `json:"node_memory_bytes"`
	Distances [][]unit.Opt[int] `json:"distances"`
}

// Figure is one measured value, in the unit of the field that holds it.
type Figure struct {
	Median unit.Opt[float64] `json:"median"` // unknown: Why
	Min    float64           `json:"min"`
	Max    float64           `json:"max"`
	N      int               `json:"n"` // repeats
	// Cycles is the same per core clock where the PMU counted it and the unit is a time.
	Cycles unit.Opt[float64] `json:"cycles,omitzero"`
	Why    string            `json:"why,omitempty"` // why it is unknown
}

// Caveat is a reason not to trust figures.
type Caveat struct {
	Code string `json:"code"` // "virtual-machine", "other-load", "thermal", "spread", "no-cycles", "small-pages", …
	Text string `json:"text"` // one sentence
	// Parts that it is about; empty: all.
	Parts []Part `json:"parts,omitempty"`
}

// Skipped is a part, or a piece of one, that was not measured.
type Skipped struct {
	Part Part   `json:"part"`
	What string `json:"what,omitempty"` // "" = all of it
	Why  string `json:"why"`
}

// PairFigure is from the CPUs of a node to the memory of a node.
type PairFigure struct {
	From int `json:"from_node"` // the CPUs' node
	To   int `json:"to_node"`   // the memory's
	Figure
}

// NodeFigure is of one node's memory.
type NodeFigure struct {
	Node int `json:"node"`
	Figure
}

// Mix is the bandwidth, bytes/s of reads and writes together, of all CPUs on their
// own node's memory.
type Mix struct {
	Reads  int `json:"reads"` // lines read for …
	Writes int `json:"writes"`
	Figure
}

// Curve is latency against load: one CPU chases, the others read with a pause that gets
// shorter from point to point.
type Curve struct {
	Name   string       `json:"name"`      // "node 0, local", "whole machine, all local"
	From   int          `json:"from_node"` // node of the CPU that chases
	To     int          `json:"to_node"`   // node of its memory
	Points []CurvePoint `json:"points"`
}

// CurvePoint is one load.
type CurvePoint struct {
	Pause     int    `json:"pause"`     // instructions of waiting between two lines of a loader
	Bandwidth Figure `json:"bandwidth"` // bytes/s of all loaders
	Latency   Figure `json:"latency"`   // ns
}

// CacheSize is what the working-set scan saw of one level.
type CacheSize struct {
	Level    int                  `json:"level"`
	Size     unit.Opt[unit.Bytes] `json:"bytes"`      // largest working set that still fits
	Next     unit.Opt[unit.Bytes] `json:"next_bytes"` // the next step of the scan, which does not fit
	Latency  Figure               `json:"latency"`    // ns of a hit
	Firmware unit.Opt[unit.Bytes] `json:"firmware_bytes"`
	Why      string               `json:"why,omitempty"` // why the size is unknown
}

// SizeFigure is the latency at one working set.
type SizeFigure struct {
	Bytes unit.Bytes `json:"bytes"`
	Figure
}

// Level says how far apart two CPUs are.
type Level string

// The levels, from near to far. On different nodes: by SLIT distance.
const (
	SameCore Level = "same-core" // SMT siblings
	SameLLC  Level = "same-llc"
	SameNode Level = "same-node" // another LLC
	Between  Level = "between"   // nodes, Distance says how far
)

// SharingTest is one pair of CPUs: each with a working set that fills most of the
// last-level cache alone.
type SharingTest struct {
	CPUs     [2]int        `json:"cpu_pair"`
	Level    Level         `json:"sharing"`
	Distance unit.Opt[int] `json:"distance"`
	Alone    Figure        `json:"alone"`    // ns a load of the first
	Together Figure        `json:"together"` // the same while the second runs
	// Shared is the verdict; unknown when the figures are too close to tell.
	Shared unit.Opt[bool] `json:"shared"`
}

// CoreFigure is the latency, ns, of a line that another CPU has just modified.
type CoreFigure struct {
	CPUs     [2]int        `json:"cpu_pair"` // reader, writer
	Level    Level         `json:"sharing"`
	Distance unit.Opt[int] `json:"distance"`
	Figure
}

// Migration is the cost of moving pages from one node to another.
type Migration struct {
	From     int        `json:"from_node"`
	To       int        `json:"to_node"`
	PageSize unit.Bytes `json:"page_bytes"`
	PerPage  Figure     `json:"per_page"` // ns
	Rate     Figure     `json:"rate"`     // bytes/s
}

// PolicyRow is what numademo shows: one memory policy, one kind of work.
type PolicyRow struct {
	Policy string `json:"policy"` // "local", "bind 1", "interleave 0-3", …
	Work   string `json:"work"`   // "read", "write", "copy", "chase"
	CPU    int    `json:"cpu"`    // that did the work; -1 = all
	Figure        // bytes/s; for chase ns
	Unit   string `json:"unit"`
	// Against is the value as a ratio to the local policy's of the same work: above
	// 1 is better.
	Against unit.Opt[float64] `json:"against_local"`
}

// RaoCell is one cell of Rao's grid: each thread chases a working set of its own and
// adds atomically to lines that all share.
type RaoCell struct {
	Threads int        `json:"thread_count"`
	Spread  string     `json:"spread"`       // "intra": all on one node; "inter": over the nodes
	Memory  string     `json:"memory_place"` // "local", "remote"
	WS      unit.Bytes `json:"ws_bytes"`
	Sharing unit.Bytes `json:"sharing_bytes"` // 0 = no adds
	// AddEvery is the number of chase steps for one add; 0 = no adds.
	AddEvery int    `json:"add_every,omitempty"`
	PerOp    Figure `json:"per_op"` // ns a chase step, adds included
	Cycles   Figure `json:"cycles_per_op"`
	LLCMiss  Figure `json:"llc_misses_per_op"`
	MissRate Figure `json:"llc_miss_rate"` // misses / L2 misses
	// Penalty is the uncore penalty W/A, cycles a request.
	Penalty  Figure `json:"uncore_penalty"`
	Requests Figure `json:"uncore_requests_per_op"`
	// PenaltyPerOp is W per op.
	PenaltyPerOp Figure `json:"uncore_critical_per_op"`
}

// RaoKey distinguishes the cells of the grid.
type RaoKey struct {
	Threads        int
	Spread, Memory string
	WS, Sharing    unit.Bytes
}

// Key is the cell's.
func (c RaoCell) Key() RaoKey { return RaoKey{c.Threads, c.Spread, c.Memory, c.WS, c.Sharing} }
