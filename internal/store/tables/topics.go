// SPDX-License-Identifier: Apache-2.0

package tables

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"homenode/internal/store"
)

// topic is one of the ready-made questions.
type topic struct {
	takes     string   // fields of the question, "!" after one that it needs
	sort      string   // a column
	ascending bool     // of sort
	keys      []string // columns that tell rows apart
	counts    string   // columns that count workloads or hosts; of topics whose first column is the key
	columns   []column
	rows      func(asked) string // what the columns are made from
}

// asked is a question on its way to SQL.
type asked struct {
	d           Dialect
	from, until int64
	step        time.Duration
	pieces      []Piece
	filter      Filter
	grouped     bool // from sums by service or host, without counts
}

// counting is the expression of a column that counts.
func (a asked) counting(name string) string {
	switch name {
	case "instances":
		return "count(DISTINCT f.series)"
	case "hosts":
		return "count(DISTINCT f.place)"
	case "workloads":
		return "count(DISTINCT " + a.d.Workload() + ")"
	}
	return "count(DISTINCT CASE WHEN f.bound_s > 0 THEN " + a.d.Workload() + " ELSE NULL END)" // bound_workloads
}

// byService adds windows up by service, with these counts.
func (a asked) byService(counts ...string) string { return a.byServiceOf(forUsual, counts...) }

func (a asked) byServiceOf(columns string, counts ...string) string {
	kind, more := "windows", map[string]string{"last": "max(f.at)"}
	if a.grouped {
		kind = "services"
	}
	for _, name := range counts {
		if more[name] = "0"; !a.grouped {
			more[name] = a.counting(name)
		}
	}
	return a.sums(kind, columns, "service", more)
}

// sums adds rows up by keys: each key and further expression as named, each column as t_NAME.
func (a asked) sums(kind string, columns string, keys string, more map[string]string) string {
	used := strings.Fields(columns)
	names := strings.Fields(keys)
	var list []string
	for _, k := range names {
		list = append(list, "f."+k+" AS "+k)
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		list = append(list, more[name]+" AS "+name)
	}
	for _, c := range used {
		aggregate := "sum"
		if IsHow(c) {
			aggregate = "min"
		}
		list = append(list, fmt.Sprintf("%s(f.%s) AS t_%s", aggregate, c, c))
	}
	facts := a.d.Facts(kind, used, a.pieces, a.filter, strings.Contains(strings.Join(slices.Collect(maps.Values(more)), " "), "f."+LastColumns[0]))
	return fmt.Sprintf("SELECT %s FROM (%s) f GROUP BY f.%s", strings.Join(list, ", "), facts, strings.Join(names, ", f."))
}

// over is a quotient of two sums, unknown where the weight is 0.
func over(value, weight string) string {
	return fmt.Sprintf("CASE WHEN t_%s > 0 THEN t_%s / t_%s ELSE NULL END", weight, value, weight)
}

const (
	forLocal = "local_reads reads reads_how guess_local_cpu_s guess_cpu_s guess_how "
	local    = "(CASE WHEN t_reads > 0 THEN t_local_reads / t_reads WHEN t_guess_cpu_s > 0 THEN t_guess_local_cpu_s / t_guess_cpu_s ELSE NULL END)"
	localHow = "CASE WHEN t_reads > 0 THEN t_reads_how WHEN t_guess_cpu_s > 0 THEN t_guess_how ELSE 0 END"
	forUsual = forLocal + "windows length_s bound_s approved_s cpu_s cpu_known_s traffic_bytes traffic_known_s waiting_s waiting_known_s latency_x_s latency_known_s stalled_cpu_s stalled_known_cpu_s cycles instructions cpu_how cycles_how traffic_how latency_how"
)

// Columns that several topics have.
var (
	service  = column{store.Column{Name: "service", About: "its name; empty: no rule names one"}, "service", text}
	host     = column{store.Column{Name: "host", About: "its name, by its certificate"}, "host", text}
	workload = column{store.Column{Name: "workload", About: "path of its cgroup"}, "workload", text}
	sentence = column{store.Column{Name: "sentence", About: "why, in words"}, "sentence", text}
	rule     = column{store.Column{Name: "rule", About: "code of the reason"}, "rule", text}
	at       = column{store.Column{Name: "at", About: "when"}, "at", moment}

	instances  = column{store.Column{Name: "instances", About: "workloads"}, "instances", count}
	ratio      = column{store.Column{Name: "local_ratio", Unit: "1", About: "local access ratio: local / all reads where they are counted, otherwise weighted by CPU time"}, local, figure}
	ratioHow   = column{store.Column{Name: "local_how", About: "how the local access ratio is known: its weakest part"}, localHow, how}
	cpuTime    = column{store.Column{Name: "cpu_s", Unit: "s", About: "CPU time"}, "CASE WHEN t_cpu_known_s > 0 THEN t_cpu_s ELSE NULL END", figure}
	cpus       = column{store.Column{Name: "cpus", Unit: "CPUs", About: "CPUs' worth of time, mean of a workload"}, over("cpu_s", "cpu_known_s"), figure}
	traffic    = column{store.Column{Name: "traffic_bytes", Unit: "bytes", About: "memory traffic in all"}, "CASE WHEN t_traffic_known_s > 0 THEN t_traffic_bytes ELSE NULL END", figure}
	rate       = column{store.Column{Name: "traffic_bytes_per_s", Unit: "bytes/s", About: "memory traffic, mean of a workload"}, over("traffic_bytes", "traffic_known_s"), figure}
	boundPart  = column{store.Column{Name: "bound_ratio", Unit: "1", About: "share of the time in which homenode bound it"}, over("bound_s", "length_s"), figure}
	unbound    = column{store.Column{Name: "unbound_ratio", Unit: "1", About: "share of the workloads' time in which they were not bound"}, "CASE WHEN t_length_s > 0 THEN 1 - t_bound_s / t_length_s ELSE NULL END", figure}
	approved   = column{store.Column{Name: "approved", About: "it was approved for binding at the time or a part of it"}, "CASE WHEN t_approved_s > 0 THEN 1 ELSE 0 END", yes}
	waiting    = column{store.Column{Name: "waiting_ratio", Unit: "1", About: "share of the time in which it waited for a CPU"}, over("waiting_s", "waiting_known_s"), figure}
	latency    = column{store.Column{Name: "latency_s", Unit: "s", About: "as the service says, mean over time"}, over("latency_x_s", "latency_known_s"), figure}
	stalled    = column{store.Column{Name: "msr_ratio", Unit: "1", About: "memory stall cycles / cycles"}, over("stalled_cpu_s", "stalled_known_cpu_s"), figure}
	ipc        = column{store.Column{Name: "ipc", About: "instructions per cycle"}, over("instructions", "cycles"), figure}
	cpuHow     = known("cpu_how", "CPU time and waiting for a CPU")
	trafficHow = known("traffic_how", "the traffic")
	latencyHow = known("latency_how", "the latency")
	cyclesHow  = known("cycles_how", "cycles, instructions and stalls")
	lastSeen   = column{store.Column{Name: "last", About: "end of its newest window (of a rolled-up one: its start)"}, "last", moment}
)

// known is how the figures of a sum are known.
func known(code, what string) column {
	return column{store.Column{Name: code, About: "how " + what + " is known: the weakest part"}, fmt.Sprintf("CASE WHEN t_%s < %d THEN t_%s ELSE 0 END", code, noHow, code), how}
}

func as(c column, name, about string) column {
	c.Name, c.sql, c.About = name, name, about
	return c
}

// in is a column with a unit.
func in(kind string, c column) column {
	c.Unit = kind
	return c
}

// named is a column under another name.
func named(c column, name string) column {
	c.Name = name
	return c
}

func about(c column, text string) column {
	c.About = text
	return c
}

// latencyRatio is a remote read's latency by a local one's, of MAO's Skylake-SP with
// DDR4-2400: 138 ns / 80 ns. Hosts with farther nodes gain more than a question says.
const latencyRatio = "1.725"

// saved is what all reads being local would save of the CPU time: stalls are in proportion to
// the reads' mean latency, so of MSR the part r·(L-1) / (1+r·(L-1)) is due to remote reads.
// A stall that other things cause makes it less: an upper bound.
const (
	remoteExtra = "((1 - " + local + ") * (" + latencyRatio + " - 1))"
	saved       = "(CASE WHEN t_stalled_known_cpu_s > 0 THEN (t_stalled_cpu_s / t_stalled_known_cpu_s) * " + remoteExtra + " / (1 + " + remoteExtra + ") ELSE NULL END)"
	gainAbout   = "; estimated: MSR, the share of remote reads, and a remote read taken as " + latencyRatio + " times as slow as a local one (80 and 138 ns); at most this"
)

var (
	savedRatio = column{store.Column{Name: "saved_ratio", Unit: "1", About: "share of its CPU time that local reads would save" + gainAbout}, saved, figure}
	savedTime  = column{store.Column{Name: "saved_cpu_s", Unit: "s", About: "CPU time that its remote reads cost" + gainAbout}, "t_cpu_s * " + saved, figure}
	savedHow   = column{store.Column{Name: "saved_how", About: "how the gain is known"}, "CASE WHEN " + saved + " IS NULL THEN 0 ELSE 1 END", how}
)

var topics = map[store.Topic]topic{
	store.Services: {
		takes: "service*", sort: "local_ratio", ascending: true, keys: []string{"service"}, counts: "instances hosts",
		columns: []column{service, instances, as(instances, "hosts", "hosts that run it"), ratio, ratioHow, cpuTime, cpuHow, traffic, trafficHow, savedRatio, savedTime, savedHow, unbound, approved, lastSeen},
		rows:    func(a asked) string { return a.byService("instances", "hosts") },
	},
	store.Instances: {
		takes: "service!", sort: "local_ratio", ascending: true, keys: []string{"host", "workload"},
		columns: []column{host, workload, as(host, "name", "what its manager calls it"), as(host, "owner", "what manages it"), ratio, ratioHow, cpus, cpuHow, rate, trafficHow, boundPart, approved, waiting, latency, latencyHow, stalled, ipc, cyclesHow, lastSeen},
		rows: func(a asked) string {
			return a.sums("windows", forUsual, "host workload", map[string]string{"name": "max(f.name)", "owner": "max(f.owner)", "last": "max(f.at)"})
		},
	},
	store.Workloads: {
		takes: "host!", sort: "cpus", keys: []string{"workload"},
		columns: []column{
			workload, service, as(host, "name", "what its manager calls it"), as(host, "owner", "what manages it"),
			as(host, "bound", "nodes that homenode bound it to, at last"),
			in("CPUs", as(host, "cpu_by_node", "CPUs' worth of time of each node, at last; empty: unknown or no longer kept")),
			in("bytes", as(host, "anon_by_node", "anonymous memory on each node, at last")),
			in("bytes", as(host, "file_by_node", "page cache on each node, at last")),
			ratio, ratioHow, as(host, "local_from", "what the local access ratio comes from, at last"), cpus, cpuHow, rate, trafficHow, boundPart, approved, waiting, latency, latencyHow, stalled, ipc, cyclesHow, lastSeen,
		},
		rows: func(a asked) string {
			more := map[string]string{"service": "max(f.service)", "name": "max(f.name)", "owner": "max(f.owner)", "last": "max(f.at)"}
			for _, c := range LastColumns {
				more[c] = a.d.Latest("f." + c)
			}
			return a.sums("windows", forUsual, "workload", more)
		},
	},
	store.History: {
		takes: "host workload service", sort: "at", ascending: true, keys: []string{"at"},
		columns: []column{at, instances, ratio, ratioHow, cpus, cpuHow, rate, trafficHow, boundPart, waiting, latency, latencyHow, stalled, ipc, cyclesHow},
		rows: func(a asked) string {
			step := a.step.Milliseconds()
			inner := a
			inner.d = stepped{a.d, step}
			return inner.sums("windows", forUsual, "step", map[string]string{"at": "max(f.step)", "instances": "count(DISTINCT f.series)"})
		},
	},
	store.Gain: {
		takes: "service*", sort: "saved_cpu_s", keys: []string{"service"}, counts: "instances",
		columns: []column{
			service, instances, cpuTime, cpuHow, ratio, ratioHow, stalled, cyclesHow,
			{store.Column{Name: "remote_reads", About: "DRAM reads of other nodes, where they are counted"}, "CASE WHEN t_reads > 0 THEN t_reads - t_local_reads ELSE NULL END", figure},
			savedRatio, savedTime, savedHow,
			approved, unbound,
		},
		rows: func(a asked) string { return a.byService("instances") },
	},
	store.Features: {
		takes: "service*", sort: "mbw_bytes_per_s", keys: []string{"service"}, counts: "instances hosts",
		columns: []column{
			service, instances, as(instances, "hosts", "hosts that run it"),
			{store.Column{Name: "mbw_bytes_per_s", Unit: "bytes/s", About: "MBW: memory bandwidth, mean of a workload"}, over("mbw_x_s", "mbw_known_s"), figure}, trafficHow,
			stalled,
			{store.Column{Name: "ipc_instructions_per_cycle", About: "instructions per cycle"}, over("instructions", "cycles"), figure},
			{store.Column{Name: "llc_misses_per_kilo_instruction", About: "DRAM reads of 1,000 instructions"}, "CASE WHEN t_reads > 0 AND t_instructions > 0 THEN 1000 * t_reads / t_instructions ELSE NULL END", figure}, cyclesHow,
			{store.Column{Name: "npmr_ratio", Unit: "1", About: "NPMR: anonymous memory / all of its memory"}, over("npmr_x_s", "npmr_known_s"), figure}, known("pages_how", "its memory"),
			{store.Column{Name: "rmbr_ratio", Unit: "1", About: "RMBR: remote / all DRAM reads"}, over("rmbr_x_s", "rmbr_known_s"), figure}, ratioHow,
			in("CPUs", named(cpus, "cpu_cpus")), cpuHow,
			{store.Column{Name: "cpu_of_node_ratio", Unit: "1", About: "CPU time by that of all CPUs of a node, the fewest of a node of its host, mean of a workload"}, over("of_node_x_s", "of_node_known_s"), figure},
			{store.Column{Name: "server_busy_ratio", Unit: "1", About: "use of all CPUs of its hosts"}, over("server_busy_x_s", "server_known_s"), figure},
			{store.Column{Name: "idlest_node_busy_ratio", Unit: "1", About: "use of the CPUs of the node that is used least, of its hosts: what room a binding finds at best"}, over("idlest_busy_x_s", "server_known_s"), figure},
			known("server_how", "the use of its hosts' CPUs"), boundPart, approved,
		},
		rows: func(a asked) string {
			return a.byServiceOf(forUsual+" mbw_x_s mbw_known_s npmr_x_s npmr_known_s rmbr_x_s rmbr_known_s pages_how of_node_x_s of_node_known_s server_busy_x_s idlest_busy_x_s server_known_s server_how", "instances", "hosts")
		},
	},
	store.Hosts: {
		takes: "host*", sort: "apart_ratio", keys: []string{"host"}, counts: "workloads bound_workloads",
		columns: []column{
			host,
			{store.Column{Name: "apart_ratio", Unit: "1", About: "how far its nodes are apart: use of the busiest node's CPUs less the idlest's"}, "CASE WHEN apart >= 0 THEN apart ELSE NULL END", figure},
			named(known("busy_how", "the use of its CPUs"), "apart_how"),
			{store.Column{Name: "remote_ratio", Unit: "1", About: "remote access ratio of its workloads: 1 less the local one"}, "1 - " + local, figure},
			{store.Column{Name: "remote_how", About: "how the remote access ratio is known: its weakest part"}, localHow, how},
			as(instances, "nodes", "NUMA nodes"), as(instances, "workloads", "workloads seen"), as(instances, "bound_workloads", "workloads that homenode bound, at the time or a part of it"), lastSeen,
		},
		rows: func(a asked) string { return hostRows(a, true) },
	},
	store.HostBins: {
		sort: "apart_ratio", ascending: true, keys: []string{"apart_ratio", "remote_ratio"},
		columns: []column{
			{store.Column{Name: "apart_ratio", Unit: "1", About: "from how far the hosts' nodes are apart, in steps of 0.1"}, "apart_ratio", figure},
			{store.Column{Name: "remote_ratio", Unit: "1", About: "from which remote access ratio on, in steps of 0.1"}, "remote_ratio", figure},
			as(instances, "hosts", "hosts in this bin"), as(host, "example", "one of them"),
		},
		rows: func(a asked) string {
			return fmt.Sprintf("SELECT apart_ratio, remote_ratio, count(*) AS hosts, min(b.host) AS example FROM (SELECT host, CASE WHEN apart >= 0 THEN %s ELSE NULL END AS apart_ratio, %s AS remote_ratio FROM (%s) t) b GROUP BY apart_ratio, remote_ratio",
				a.binned("apart"), a.binned("(1 - "+local+")"), hostRows(a, false))
		},
	},
	store.Nodes: {
		takes: "host!", sort: "node", ascending: true, keys: []string{"node"},
		columns: []column{
			as(instances, "node", "its number"),
			{store.Column{Name: "cpus", Unit: "CPUs", About: "CPUs online, mean"}, over("cpus_s", "length_s"), figure},
			{store.Column{Name: "busy_cpus", Unit: "CPUs", About: "CPUs' worth of time used, mean"}, over("busy_s", "busy_known_s"), figure},
			known("busy_how", "the time used"),
			{store.Column{Name: "memory_bytes", Unit: "bytes", About: "its memory"}, over("memory_byte_s", "memory_known_s"), figure},
			{store.Column{Name: "used_bytes", Unit: "bytes", About: "memory that is not free, mean"}, "CASE WHEN t_memory_known_s > 0 AND t_free_known_s > 0 THEN t_memory_byte_s / t_memory_known_s - t_free_byte_s / t_free_known_s ELSE NULL END", figure},
			known("memory_how", "its memory"),
			about(rate, "traffic of its memory controllers, mean"), trafficHow, lastSeen,
		},
		rows: func(a asked) string {
			return a.sums("nodes", strings.Join(NodeColumns, " "), "node", map[string]string{"last": "max(f.at)"})
		},
	},
	store.Events: {
		takes: "host workload service", sort: "at", keys: []string{"host", "workload", "type", "kind", "state", "rule", "sentence"},
		columns: []column{
			at, host, workload, service, as(host, "type", "decision or outcome"),
			as(host, "kind", "of a decision: bind, unbind, isolate, escalate, none, way; of an outcome: the step"), as(host, "nodes", "nodes to bind to"),
			{store.Column{Name: "dry_run", About: "decided, but not done: the agent only watches"}, "dry_run", yes},
			as(host, "state", "what became of the step"), rule, sentence,
		},
		rows: func(a asked) string { return a.events("") },
	},
	store.Unbound: {
		takes: "host workload service", sort: "at", keys: []string{"host", "workload", "rule", "sentence"},
		columns: []column{at, host, workload, service, rule, sentence},
		rows: func(a asked) string {
			return a.events(" AND type = 'decision' AND kind = 'unbind' AND dry_run = 0")
		},
	},
}

// stepped numbers the steps of a history.
type stepped struct {
	Dialect
	step int64
}

func (s stepped) Facts(kind string, columns []string, pieces []Piece, of Filter, last bool) string {
	return fmt.Sprintf("SELECT *, at - at %% %d AS step FROM (%s)", s.step, s.Dialect.Facts(kind, columns, pieces, of, last))
}

// binned is the start of a figure's bin. The last bin has its end too.
func (a asked) binned(x string) string {
	bins := int(math.Round(1 / store.BinStep))
	return fmt.Sprintf("CASE WHEN %s >= 1 THEN %g ELSE %s / %d.0 END", x, 1-store.BinStep, a.d.Floor(fmt.Sprintf("%s * %d + 1e-9", x, bins)), bins)
}

// events are those of the time, with further conditions.
func (a asked) events(and string) string {
	return fmt.Sprintf("SELECT * FROM (%s) e WHERE at >= %d AND at < %d%s%s", a.d.Events(), a.from, a.until, a.filter.Where(a.d, ""), and)
}

// hostRows joins hosts' nodes and workloads by adding them up, for in ClickHouse a join makes
// zeros of what is not there. counted adds what a list of hosts has and a map has not: the
// workloads have to be told apart for it.
func hostRows(a asked, counted bool) string {
	nodes := a.sums("nodes", "busy_s busy_cpus_s busy_how", "host node", map[string]string{"last": "max(f.at)"})
	more := map[string]string{"last": "max(f.at)", "load": "0", "bound_load": "0"}
	kind, columns := "windows", forLocal
	if a.grouped {
		kind = "hosts"
	} else if counted {
		columns += "bound_s"
		more["load"], more["bound_load"] = a.counting("workloads"), a.counting("bound_workloads")
	}
	windows := a.sums(kind, columns, "host", more)
	var zeros, sums []string
	for _, c := range strings.Fields(forLocal) {
		value, aggregate := "0.0", "sum"
		if IsHow(c) {
			value, aggregate = fmt.Sprintf("%d.0", noHow), "min"
		}
		zeros = append(zeros, value+" AS t_"+c)
		sums = append(sums, fmt.Sprintf("%s(h.t_%s) AS t_%s", aggregate, c, c))
	}
	// Columns of a union are joined by their order.
	ofNodes := fmt.Sprintf("SELECT n.host AS host, CASE WHEN n.t_busy_cpus_s > 0 THEN n.t_busy_s / n.t_busy_cpus_s ELSE -1.0 END AS busy, n.t_busy_how AS busy_how, 1 AS node, 0 AS load, 0 AS bound_load, n.last AS last, %s FROM (%s) n", strings.Join(zeros, ", "), nodes)
	ofWindows := fmt.Sprintf("SELECT w.host AS host, -1.0 AS busy, %d.0 AS busy_how, 0 AS node, w.load AS load, w.bound_load AS bound_load, w.last AS last, w.t_%s FROM (%s) w", noHow, strings.Join(strings.Fields(forLocal), ", w.t_"), windows)
	return fmt.Sprintf("SELECT h.host AS host, max(h.busy) - min(CASE WHEN h.busy < 0 THEN 1e9 ELSE h.busy END) AS apart, min(h.busy_how) AS t_busy_how, sum(h.node) AS nodes, sum(h.load) AS workloads, sum(h.bound_load) AS bound_workloads, max(h.last) AS last, %s FROM (%s UNION ALL %s) h GROUP BY h.host",
		strings.Join(sums, ", "), ofNodes, ofWindows)
}
