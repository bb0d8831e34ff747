// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"homenode/internal/agent"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const (
	gauge   = "gauge"
	counter = "counter"
)

// after is for what there is only once a round has ended.
func after(write func(p *printer, in *Input)) func(p *printer, in *Input) {
	return func(p *printer, in *Input) {
		if in.Read {
			write(p, in)
		}
	}
}

// node is a figure of each node.
func node(write func(p *printer, n *window.Node, label string)) func(p *printer, in *Input) {
	return after(func(p *printer, in *Input) { eachNode(in, func(n *window.Node, label string) { write(p, n, label) }) })
}

// workload is a figure of each workload that is shown.
func workload(write func(p *printer, in *Input, ws *agent.WorkloadStatus, wl *window.Workload, l []string)) func(p *printer, in *Input) {
	return after(func(p *printer, in *Input) {
		eachWorkload(in, func(ws *agent.WorkloadStatus, wl *window.Workload, l []string) { write(p, in, ws, wl, l) })
	})
}

// feature is one of a workload's features.
func feature[T ~float64](of func(f *window.Features) unit.Value[T]) func(p *printer, in *Input) {
	return workload(func(p *printer, _ *Input, ws *agent.WorkloadStatus, _ *window.Workload, l []string) {
		value(p, of(&ws.Features), l...)
	})
}

// total is one of the agent's counts.
func total(of func(t *agent.Totals) float64) func(p *printer, in *Input) {
	return after(func(p *printer, in *Input) { p.add(of(&in.View.Status.Totals)) })
}

func ofService(of func(s service) float64) func(p *printer, in *Input) {
	return after(func(p *printer, in *Input) {
		eachService(in, func(name string, s service) { p.add(of(s), "service", name) })
	})
}

// families, in the order in which they are written.
var families = []family{
	{"homenode_build_info", gauge, "Always 1; the version is in the label.", func(p *printer, in *Input) { p.add(1, "version", in.Version) }},
	{"homenode_alive", gauge, "1 while the last round ended within three periods.", func(p *printer, in *Input) { p.add(truth(in.Health.Alive)) }},
	{"homenode_ready", gauge, "1 while it is alive, the journal is open and the last window is recent.", func(p *printer, in *Input) { p.add(truth(in.Health.Ready)) }},
	{"homenode_resident_memory_bytes", gauge, "Memory of the agent that is resident.", func(p *printer, in *Input) {
		if b, ok := in.Resident.Get(); ok {
			p.add(float64(b))
		}
	}},
	{"homenode_cpu_seconds_total", counter, "CPU time that the agent used.", after(func(p *printer, in *Input) { p.add(in.View.Status.CPUSeconds) })},
	{"homenode_dry_run", gauge, "1 where the agent changes nothing.", after(func(p *printer, in *Input) { p.add(truth(in.View.Status.DryRun)) })},
	{"homenode_period_seconds", gauge, "Time from window to window, while something is under way.", after(func(p *printer, in *Input) { p.add(in.View.Status.Period.Seconds()) })},
	{"homenode_last_window_timestamp_seconds", gauge, "When the last window ended, since 1970.", after(func(p *printer, in *Input) { p.add(unixSeconds(in.View.Status.Window.At)) })},
	{"homenode_window_problems", gauge, "Things that could not be read in the last window.", after(func(p *printer, in *Input) { p.add(float64(in.View.Status.Problems)) })},
	{"homenode_rounds_total", counter, "Rounds begun.", total(func(t *agent.Totals) float64 { return float64(t.Rounds) })},
	{"homenode_round_failures_total", counter, "Rounds without a window.", total(func(t *agent.Totals) float64 { return float64(t.FailedRounds) })},
	{"homenode_file_errors_total", counter, "Writes of decisions, recording, histories or status that failed.", total(func(t *agent.Totals) float64 { return float64(t.FileErrors) })},
	{"homenode_moved_bytes_total", counter, "Memory moved between nodes.", total(func(t *agent.Totals) float64 { return float64(t.MovedBytes) })},
	{"homenode_reloads_total", counter, "Configurations read again, by what came of it.", after(func(p *printer, in *Input) {
		p.add(float64(in.View.Status.Totals.Reloads), "result", "taken")
		p.add(float64(in.View.Status.Totals.BadReloads), "result", "refused")
	})},
	{"homenode_round_seconds", "histogram", "Reading, deciding and acting of a round.", after(func(p *printer, in *Input) { p.histogram(in.View.Status.Totals.RoundTimes) })},
	{"homenode_decide_seconds", "histogram", "Deciding alone.", after(func(p *printer, in *Input) { p.histogram(in.View.Status.Totals.DecideTimes) })},
	{"homenode_decisions_total", counter, "Decisions by kind; none: no place was found for a workload.", after(func(p *printer, in *Input) { counted(p, in.View.Status.Totals.Decisions, "kind") })},
	{"homenode_steps_total", counter, "Steps taken, by what became of them.", after(func(p *printer, in *Input) { counted(p, in.View.Status.Totals.Steps, "step", "status") })},
	{"homenode_excluded_workloads", gauge, "Workloads that somebody keeps from being bound.", after(func(p *printer, in *Input) { p.add(float64(len(in.View.Status.Excluded))) })},

	{"homenode_node_cpus", gauge, "CPUs of a node that are online.", node(func(p *printer, n *window.Node, l string) { p.add(float64(n.CPUs.Len()), "node", l) })},
	{"homenode_node_busy_cpus", gauge, "CPUs' worth of time used on a node.", node(func(p *printer, n *window.Node, l string) { value(p, n.CPUBusy, "node", l) })},
	{"homenode_node_memory_bytes", gauge, "Memory of a node.", node(func(p *printer, n *window.Node, l string) { value(p, n.Memory, "node", l) })},
	{"homenode_node_free_bytes", gauge, "Free memory of a node.", node(func(p *printer, n *window.Node, l string) { value(p, n.Free, "node", l) })},
	{"homenode_node_traffic_bytes_per_second", gauge, "Bytes that a node's memory serves.", after(func(p *printer, in *Input) {
		eachNode(in, func(n *window.Node, l string) {
			value(p, perSecond(n.Traffic, in.View.Status.Window.Length), "node", l)
		})
	})},

	{"homenode_workloads", gauge, "Workloads that are watched.", after(func(p *printer, in *Input) { p.add(float64(len(in.View.Status.Window.Workloads))) })},
	{"homenode_workloads_without_series", gauge, "Workloads beyond max_workloads.", after(func(p *printer, in *Input) {
		p.add(float64(len(in.View.Status.Window.Workloads) - len(in.View.Status.Workloads)))
	})},
	{"homenode_workload_cpus", gauge, "CPUs' worth of time that a workload used.", workload(func(p *printer, _ *Input, _ *agent.WorkloadStatus, wl *window.Workload, l []string) {
		value(p, wl.CPU, l...)
	})},
	{"homenode_workload_waiting_cpus", gauge, "CPUs' worth of time that its threads waited for a CPU.", workload(func(p *printer, _ *Input, _ *agent.WorkloadStatus, wl *window.Workload, l []string) {
		value(p, wl.Waiting, l...)
	})},
	{"homenode_workload_memory_bytes", gauge, "Anonymous memory of a workload on a node.", workload(func(p *printer, in *Input, _ *agent.WorkloadStatus, wl *window.Workload, l []string) {
		byNode(p, in, l, wl.AnonByNode)
	})},
	{"homenode_workload_local_access_ratio", gauge, "Share of DRAM reads that its CPUs' own nodes served.", feature(func(f *window.Features) unit.Value[unit.Ratio] { return f.LocalAccessRatio })},
	{"homenode_workload_local_page_ratio", gauge, "Share of pages that are where its CPU time is.", feature(func(f *window.Features) unit.Value[unit.Ratio] { return f.LocalPageRatio })},
	{"homenode_workload_read_bytes_per_second", gauge, "DRAM reads (MAO's MBW).", feature(func(f *window.Features) unit.Value[float64] { return f.MBW })},
	{"homenode_workload_memory_stall_ratio", gauge, "Stall cycles over cycles (MAO's MSR).", feature(func(f *window.Features) unit.Value[unit.Ratio] { return f.MSR })},
	{"homenode_workload_remote_read_ratio", gauge, "Remote DRAM reads over all (MAO's RMBR).", feature(func(f *window.Features) unit.Value[unit.Ratio] { return f.RMBR })},
	{"homenode_workload_target_ratio", gauge, "Local access ratio that it should have.", workload(func(p *printer, _ *Input, _ *agent.WorkloadStatus, wl *window.Workload, l []string) {
		if t, ok := wl.Target.Get(); ok {
			p.add(float64(t), l...)
		}
	})},
	{"homenode_workload_latency_seconds", gauge, "What its service says of its quality.", workload(func(p *printer, _ *Input, _ *agent.WorkloadStatus, wl *window.Workload, l []string) {
		value(p, wl.Latency, l...)
	})},
	{"homenode_workload_approved", gauge, "1 where binding it is approved.", workload(func(p *printer, _ *Input, _ *agent.WorkloadStatus, wl *window.Workload, l []string) {
		p.add(truth(wl.Approved), l...)
	})},
	{"homenode_workload_bound", gauge, "1 on each node that it is bound to.", workload(func(p *printer, _ *Input, ws *agent.WorkloadStatus, _ *window.Workload, l []string) {
		eachOf(ws.Nodes, func(n string) { p.add(1, append(l[:len(l):len(l)], "node", n)...) })
	})},

	{"homenode_service_workloads", gauge, "Workloads of a service on this host.", ofService(func(s service) float64 { return s.workloads })},
	{"homenode_service_approved_workloads", gauge, "Those that may be bound.", ofService(func(s service) float64 { return s.approved })},
	{"homenode_service_bound_workloads", gauge, "Those whose CPUs homenode has set.", ofService(func(s service) float64 { return s.bound })},
	{"homenode_service_unknown_workloads", gauge, "Those with a target whose local access ratio is unknown: they may be below.", ofService(func(s service) float64 { return s.unknown })},
	{"homenode_service_below_target_workloads", gauge, "Those whose local access ratio is known to be below their target.", ofService(func(s service) float64 { return s.below })},
}
