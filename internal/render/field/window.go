// SPDX-License-Identifier: Apache-2.0

package field

import (
	"homenode/internal/unit"
	"homenode/internal/window"
)

// Node is one node of a window.
type Node struct {
	*window.Node
	Window *window.Window
}

// The figures of a node.
var (
	NodeBusy = Field[Node]{ID: "cpu_busy", Name: "busy CPUs", Head: "BUSY", Metric: "busy_cpus", Unit: CPUs, Width: 6,
		Help: "CPUs' worth of time used on a node.", Of: func(n Node) unit.Value[float64] { return n.CPUBusy }}
	NodeMemory = Field[Node]{ID: "memory_bytes", Name: "memory", Head: "MEMORY", Metric: "memory_bytes", Unit: Amount, Width: 8,
		Help: "Memory of a node.", Of: func(n Node) unit.Value[float64] { return number(n.Memory) }}
	NodeFree = Field[Node]{ID: "free_bytes", Name: "free memory", Head: "FREE", Metric: "free_bytes", Unit: Amount, Width: 8,
		Help: "Free memory of a node.", Of: func(n Node) unit.Value[float64] { return number(n.Free) }}
	NodeTraffic = Field[Node]{ID: "traffic_bytes", Name: "traffic", Metric: "traffic_bytes_per_second", Unit: PerSecond, Width: 9,
		Help: "Bytes per second that a node's memory serves.", Of: func(n Node) unit.Value[float64] { return perSecond(n.Traffic, n.Window) }}
)

// Nodes are all figures of a node.
var Nodes = []Field[Node]{NodeBusy, NodeMemory, NodeFree, NodeTraffic}

// Workload is one workload of a window, with the features that were computed from it.
type Workload struct {
	*window.Workload
	Features *window.Features
}

// The figures of a workload.
var (
	Tasks = Field[Workload]{ID: "tasks", Name: "tasks", Unit: Count, Width: 5,
		Help: "Threads of a workload.", Of: func(w Workload) unit.Value[float64] { return number(w.Tasks) }}
	CPU = Field[Workload]{ID: "cpu", Name: "CPUs used", Head: "CPU", Metric: "cpus", Unit: CPUs, Width: 5,
		Help: "CPUs' worth of time that a workload used.", Of: func(w Workload) unit.Value[float64] { return w.CPU }}
	Quota = Field[Workload]{ID: "quota", Name: "CPU quota", Unit: CPUs, Width: 5,
		Help: "CPUs' worth of time that a workload may use.", Of: func(w Workload) unit.Value[float64] { return w.Quota }}
	Throttled = Field[Workload]{ID: "throttled", Name: "throttled", Unit: Share, Width: 6,
		Help: "Share of its quota's periods in which a workload was throttled.", Of: func(w Workload) unit.Value[float64] { return number(w.Throttled) }}
	Waiting = Field[Workload]{ID: "waiting", Name: "some thread waited", Metric: "waiting_ratio", Unit: Share, Width: 6,
		Help: "Share of the time in which some of its threads waited for a CPU.", Of: func(w Workload) unit.Value[float64] { return number(w.Waiting) }}
	MemoryLimit = Field[Workload]{ID: "memory_limit_bytes", Name: "memory limit", Unit: Amount, Width: 8,
		Help: "Memory that a workload may use.", Of: func(w Workload) unit.Value[float64] { return number(w.MemoryLimit) }}
	Anon = Field[Workload]{ID: "anon_by_node", Name: "anonymous memory by node", Head: "ANON", Metric: "memory_bytes", Unit: Amount, Width: 8,
		Help: "Anonymous memory of a workload on a node.", ByNode: func(w Workload) []unit.Value[float64] { return numbers(w.AnonByNode) }}
	LocalAccess = Field[Workload]{ID: "local_access_ratio", Name: "local access ratio", Head: "LOCAL", Metric: "local_access_ratio", Unit: Share, Width: 6,
		Help: "Share of DRAM reads that its CPUs' own nodes served.", Of: func(w Workload) unit.Value[float64] { return number(w.Features.LocalAccessRatio) }}
	LocalPages = Field[Workload]{ID: "local_page_ratio", Name: "local page ratio", Metric: "local_page_ratio", Unit: Share, Width: 6,
		Help: "Share of pages that are where its CPU time is.", Of: func(w Workload) unit.Value[float64] { return number(w.Features.LocalPageRatio) }}
	MBW = Field[Workload]{ID: "mbw", Name: "DRAM reads (MBW)", Metric: "read_bytes_per_second", Unit: PerSecond, Width: 9,
		Help: "DRAM reads (MAO's MBW).", Of: func(w Workload) unit.Value[float64] { return w.Features.MBW }}
	MSR = Field[Workload]{ID: "msr", Name: "stall share (MSR)", Head: "MSR", Metric: "memory_stall_ratio", Unit: Share, Width: 5,
		Help: "Stall cycles over cycles (MAO's MSR).", Of: func(w Workload) unit.Value[float64] { return number(w.Features.MSR) }}
	NPMR = Field[Workload]{ID: "npmr", Name: "anonymous share (NPMR)", Unit: Share, Width: 6,
		Help: "Anonymous memory over anonymous and file memory (MAO's NPMR).", Of: func(w Workload) unit.Value[float64] { return number(w.Features.NPMR) }}
	RMBR = Field[Workload]{ID: "rmbr", Name: "remote reads (RMBR)", Metric: "remote_read_ratio", Unit: Share, Width: 6,
		Help: "Remote DRAM reads over all (MAO's RMBR).", Of: func(w Workload) unit.Value[float64] { return number(w.Features.RMBR) }}
	Latency = Field[Workload]{ID: "latency_s", Name: "latency", Metric: "latency_seconds", Unit: Time, Width: 8,
		Help: "What its service says of its quality.", Of: func(w Workload) unit.Value[float64] { return w.Latency }}
	Cycles = Field[Workload]{ID: "cycles", Name: "cycles", Unit: Count, Width: 12,
		Help: "Clock cycles of a workload in the window.", Of: func(w Workload) unit.Value[float64] { return number(w.Cycles) }}
	Instructions = Field[Workload]{ID: "instructions", Name: "instructions", Unit: Count, Width: 12,
		Help: "Instructions of a workload in the window.", Of: func(w Workload) unit.Value[float64] { return number(w.Instructions) }}
)

// Workloads are all figures of a workload, in the order in which they are listed.
var Workloads = []Field[Workload]{Tasks, CPU, Quota, Throttled, Waiting, MemoryLimit, Anon, LocalAccess, LocalPages, MBW, MSR, NPMR, RMBR, Latency, Cycles, Instructions}
