// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"slices"
	"strconv"
	"sync"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/agent/outbox"
	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/window"
)

const (
	gauge   = "gauge"
	counter = "counter"
)

// after is for families that exist only after the first round.
func after(write func(p *printer, in *MetricsInput)) func(p *printer, in *MetricsInput) {
	return func(p *printer, in *MetricsInput) {
		if in.Read {
			write(p, in)
		}
	}
}

// node is a figure of each node.
func node(write func(p *printer, n *window.Node, label string)) func(p *printer, in *MetricsInput) {
	return after(func(p *printer, in *MetricsInput) {
		eachNode(in, func(n *window.Node, label string) { write(p, n, label) })
	})
}

// workload is a figure of each workload that has series of its own.
func workload(write func(p *printer, in *MetricsInput, ws *agent.WorkloadStatus, wl *window.Workload, l []string)) func(p *printer, in *MetricsInput) {
	return after(func(p *printer, in *MetricsInput) {
		eachWorkload(in, func(ws *agent.WorkloadStatus, wl *window.Workload, l []string) { write(p, in, ws, wl, l) })
	})
}

// nodeFamilies are the figures of each node that render/field has.
func nodeFamilies() (all []family) {
	for _, f := range field.Nodes {
		all = append(all, family{"homenode_node_" + f.Metric, gauge, f.Help, after(func(p *printer, in *MetricsInput) {
			eachNode(in, func(n *window.Node, label string) {
				value(p, f.Of(field.Node{Node: n, Window: &in.View.Status.Window}), "node", label)
			})
		})})
	}
	return all
}

// workloadFamilies are the figures of each workload that render/field has.
func workloadFamilies() (all []family) {
	for _, f := range field.Workloads {
		if f.Metric == "" {
			continue
		}
		all = append(all, family{"homenode_workload_" + f.Metric, gauge, f.Help, workload(func(p *printer, in *MetricsInput, ws *agent.WorkloadStatus, wl *window.Workload, l []string) {
			x := field.Workload{Workload: wl, Features: &ws.Features}
			if f.ByNode != nil {
				byNode(p, in, l, f.ByNode(x))
				return
			}
			value(p, f.Of(x), l...)
		})})
	}
	return all
}

// nodeSources are how the figures of each node are known.
func nodeSources(p *printer, in *MetricsInput) {
	eachNode(in, func(n *window.Node, label string) {
		for _, f := range field.Nodes {
			source(p, f.Of(field.Node{Node: n, Window: &in.View.Status.Window}), f.Metric, "node", label)
		}
	})
}

// workloadSources are how the figures of each workload are known. Those by node have one
// for each node.
func workloadSources(p *printer, in *MetricsInput) {
	nodes := in.View.Status.Window.Nodes
	eachWorkload(in, func(ws *agent.WorkloadStatus, wl *window.Workload, l []string) {
		x := field.Workload{Workload: wl, Features: &ws.Features}
		for _, f := range field.Workloads {
			switch {
			case f.Metric == "":
			case f.ByNode == nil:
				source(p, f.Of(x), f.Metric, l...)
			default:
				for i, v := range f.ByNode(x)[:min(len(nodes), len(f.ByNode(x)))] {
					source(p, v, f.Metric, append(l[:len(l):len(l)], "node", strconv.Itoa(nodes[i].ID))...)
				}
			}
		}
	})
}

// decisionKinds are what the optimizer decides; none: no place was found for a workload.
var decisionKinds = []string{string(action.Bind), string(action.Unbind), string(action.Isolate), string(action.Escalate), "none"}

// stepOutcomes are all pairs of the agent's steps and what may become of them.
func stepOutcomes() (all []string) {
	for _, kind := range []action.StepKind{action.SetCPUs, action.SetMems, action.MovePages, action.Restore, action.SetClass} {
		for _, status := range []action.Status{action.Done, action.InProgress, action.Refused, action.Drifted, action.Gone, action.Failed, action.DryRun} {
			all = append(all, string(kind)+" "+string(status))
		}
	}
	return all
}

// mostLabel bounds a label's value: names come from containers.
const mostLabel = 128

// labelPairs are the labels of homenode_workload_info; one that is not known is left out.
func labelPairs(owner string, l window.Labels) []string {
	pairs := []string{"owner", owner}
	for _, x := range l.All() {
		pairs = append(pairs, x.Name, render.Clip(x.Value, mostLabel))
	}
	return pairs
}

// hub is a figure of an agent that sends to one.
func hub(write func(p *printer, h *outbox.Status)) func(p *printer, in *MetricsInput) {
	return after(func(p *printer, in *MetricsInput) {
		if h := in.View.Status.Hub; h != nil {
			write(p, h)
		}
	})
}

// total is one of the agent's counts.
func total(of func(t *agent.Totals) float64) func(p *printer, in *MetricsInput) {
	return after(func(p *printer, in *MetricsInput) { p.series(of(&in.View.Status.Totals)) })
}

func ofService(of func(s service) float64) func(p *printer, in *MetricsInput) {
	return after(func(p *printer, in *MetricsInput) {
		eachService(in, func(name string, s service) { p.series(of(s), "service", name) })
	})
}

// families, in the order in which they are written. They are made when they are first asked
// for: most starts of homenode serve nothing.
var families = sync.OnceValue(func() []family {
	return slices.Concat([]family{
		{"homenode_build_info", gauge, "Always 1; the version is in the label.", func(p *printer, in *MetricsInput) { p.series(1, "version", in.Version) }},
		{"homenode_alive", gauge, "1 while the last round ended within three periods.", func(p *printer, in *MetricsInput) { p.series(truth(in.Health.Alive)) }},
		{"homenode_ready", gauge, "1 while it is alive, the journal is open and the last window is recent.", func(p *printer, in *MetricsInput) { p.series(truth(in.Health.Ready)) }},
		{"homenode_resident_memory_bytes", gauge, "Resident memory of the agent, bytes.", func(p *printer, in *MetricsInput) {
			if b, ok := in.Resident.Get(); ok {
				p.series(float64(b))
			}
		}},
		{"homenode_cpu_seconds_total", counter, "CPU time that the agent used.", after(func(p *printer, in *MetricsInput) { p.series(in.View.Status.CPUSeconds) })},
		{"homenode_dry_run", gauge, "1 in a dry run, which changes nothing.", after(func(p *printer, in *MetricsInput) { p.series(truth(in.View.Status.DryRun)) })},
		{"homenode_accesses_counted", gauge, "1 while memory accesses are counted; 0: every local access ratio is an estimate.", after(func(p *printer, in *MetricsInput) {
			if c := in.View.Status.Counting; c != nil {
				p.series(truth(c.Counts))
			}
		})},
		{"homenode_period_seconds", gauge, "Time from window to window while something is under way, seconds.", after(func(p *printer, in *MetricsInput) { p.series(in.View.Status.Period.Seconds()) })},
		{"homenode_last_window_timestamp_seconds", gauge, "End of the last window, seconds since 1970.", after(func(p *printer, in *MetricsInput) { p.series(unixSeconds(in.View.Status.Window.At)) })},
		{"homenode_window_problems", gauge, "Problems of reading the last window.", after(func(p *printer, in *MetricsInput) { p.series(float64(in.View.Status.Problems)) })},
		{"homenode_rounds_total", counter, "Rounds that have begun.", total(func(t *agent.Totals) float64 { return float64(t.Rounds) })},
		{"homenode_round_failures_total", counter, "Rounds without a window.", total(func(t *agent.Totals) float64 { return float64(t.FailedRounds) })},
		{"homenode_file_errors_total", counter, "Failed writes of decisions, recording, histories or status.", total(func(t *agent.Totals) float64 { return float64(t.FileErrors) })},
		{"homenode_moved_bytes_total", counter, "Memory moved between nodes, bytes.", total(func(t *agent.Totals) float64 { return float64(t.MovedBytes) })},
		{"homenode_reloads_total", counter, "Reloads of the configuration, by result.", after(func(p *printer, in *MetricsInput) {
			p.series(float64(in.View.Status.Totals.Reloads), "result", "taken")
			p.series(float64(in.View.Status.Totals.BadReloads), "result", "refused")
		})},
		{"homenode_round_seconds", "histogram", "Time of a round for reading, deciding and acting, seconds.", after(func(p *printer, in *MetricsInput) { p.histogram(in.View.Status.Totals.RoundTimes) })},
		{"homenode_decide_seconds", "histogram", "Deciding alone.", after(func(p *printer, in *MetricsInput) { p.histogram(in.View.Status.Totals.DecideTimes) })},
		{"homenode_decisions_total", counter, "Decisions by kind; none: no place was found for a workload.", after(func(p *printer, in *MetricsInput) { counted(p, in.View.Status.Totals.Decisions, decisionKinds, "kind") })},
		{"homenode_steps_total", counter, "Steps taken, by outcome.", after(func(p *printer, in *MetricsInput) {
			counted(p, in.View.Status.Totals.Steps, stepOutcomes(), "step", "status")
		})},
		{"homenode_excluded_workloads", gauge, "Workloads that the API has excluded from binding.", after(func(p *printer, in *MetricsInput) { p.series(float64(len(in.View.Status.Excluded))) })},

		{"homenode_outbox_sent_batches_total", counter, "Batches that the hub has.", hub(func(p *printer, h *outbox.Status) { p.series(float64(h.Sent)) })},
		{"homenode_outbox_last_sent_timestamp_seconds", gauge, "When the hub last took a batch, seconds since 1970.", hub(func(p *printer, h *outbox.Status) {
			if !h.LastSent.IsZero() {
				p.series(unixSeconds(h.LastSent))
			}
		})},
		{"homenode_outbox_waiting_batches", gauge, "Batches that the hub does not have yet.", hub(func(p *printer, h *outbox.Status) { p.series(float64(h.Waiting)) })},
		{"homenode_outbox_waiting_bytes", gauge, "Spool on disk, bytes.", hub(func(p *printer, h *outbox.Status) { p.series(float64(h.WaitingBytes)) })},
		{"homenode_outbox_dropped_batches_total", counter, "Batches that the hub will never have, by reason.", hub(func(p *printer, h *outbox.Status) { counted(p, h.Dropped, outbox.Drops, "reason") })},
		{"homenode_outbox_certificate_end_timestamp_seconds", gauge, "End of this host's certificate, seconds since 1970.", hub(func(p *printer, h *outbox.Status) {
			if !h.Certificate.IsZero() {
				p.series(unixSeconds(h.Certificate))
			}
		})},

		{"homenode_node_cpus", gauge, "Online CPUs of a node.", node(func(p *printer, n *window.Node, l string) { p.series(float64(n.CPUs.Len()), "node", l) })},
	},
		nodeFamilies(), []family{
			{"homenode_node_source_info", gauge, "Always 1; how a figure of a node is known: measured, modelled or estimated.", after(nodeSources)},
			{"homenode_workloads", gauge, "Watched workloads.", after(func(p *printer, in *MetricsInput) { p.series(float64(len(in.View.Status.Window.Workloads))) })},
			{"homenode_workloads_without_series", gauge, "Workloads beyond max_workloads.", after(func(p *printer, in *MetricsInput) {
				p.series(float64(len(in.View.Status.Window.Workloads) - len(in.View.Status.Workloads)))
			})},
		},
		workloadFamilies(), []family{
			{"homenode_workload_source_info", gauge, "Always 1; how a figure of a workload is known: measured, modelled or estimated.", after(workloadSources)},
			{"homenode_workload_info", gauge, "Always 1; the manager of a workload's cgroup, and what that calls the workload.", workload(func(p *printer, _ *MetricsInput, ws *agent.WorkloadStatus, wl *window.Workload, l []string) {
				p.series(1, append(l[:len(l):len(l)], labelPairs(wl.Owner, ws.Labels)...)...)
			})},
			{"homenode_workload_target_ratio", gauge, "Target of the workload's local access ratio.", workload(func(p *printer, _ *MetricsInput, _ *agent.WorkloadStatus, wl *window.Workload, l []string) {
				if t, ok := wl.Target.Get(); ok {
					p.series(float64(t), l...)
				}
			})},
			{"homenode_workload_approved", gauge, "1 if binding the workload is approved.", workload(func(p *printer, _ *MetricsInput, _ *agent.WorkloadStatus, wl *window.Workload, l []string) {
				p.series(truth(wl.Approved), l...)
			})},
			{"homenode_workload_bound", gauge, "1 for each node that the workload is bound to.", workload(func(p *printer, _ *MetricsInput, ws *agent.WorkloadStatus, _ *window.Workload, l []string) {
				eachOf(ws.Nodes, func(n string) { p.series(1, append(l[:len(l):len(l)], "node", n)...) })
			})},

			{"homenode_service_workloads", gauge, "Workloads of a service on this host.", ofService(func(s service) float64 { return s.workloads })},
			{"homenode_service_approved_workloads", gauge, "Workloads of a service that may be bound.", ofService(func(s service) float64 { return s.approved })},
			{"homenode_service_bound_workloads", gauge, "Workloads of a service whose CPUs homenode has set.", ofService(func(s service) float64 { return s.bound })},
			{"homenode_service_unknown_workloads", gauge, "Workloads of a service with a target and an unknown local access ratio: they may be below it.", ofService(func(s service) float64 { return s.unknown })},
			{"homenode_service_below_target_workloads", gauge, "Workloads of a service whose local access ratio is known to be below their target.", ofService(func(s service) float64 { return s.below })},
		})
})
