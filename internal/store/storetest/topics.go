// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"testing"
	"time"

	"homenode/internal/store"
	"homenode/internal/unit"
)

// topics: sorted, paged, and complete.
func topics(t *testing.T, s store.Store) {
	batches := Batches(5, 20, 30)
	add(t, s, batches)
	topicAnswers(t, s, batches)
	maintain(t, s, end(batches), store.Usual) // and from rolled-up rows
	topicAnswers(t, s, batches)
}

func topicAnswers(t *testing.T, s store.Store, batches []store.Batch) {
	t.Helper()
	for _, q := range []store.Question{
		{Topic: store.Services}, {Topic: store.Hosts}, {Topic: store.Gain}, {Topic: store.Features}, {Topic: store.Instances, Service: "service-1"},
		{Topic: store.Workloads, Host: "host-1"}, {Topic: store.History, Host: "host-1", Workload: "/demo/1"}, {Topic: store.Events}, {Topic: store.Unbound}, {Topic: store.HostBins}, {Topic: store.Nodes, Host: "host-1"},
	} {
		q.From, q.Until = Start, end(batches)
		all := Ask(t, s, q)
		if none := q.Topic == store.Events || q.Topic == store.Unbound; none == (len(all.Rows) > 0) {
			t.Errorf("%s: %d rows", q.Topic, len(all.Rows))
		}
		for _, c := range all.Columns {
			for _, q.Ascending = range []bool{false, true} {
				q.Sort = c.Name
				pages(t, s, q, len(all.Rows))
			}
		}
	}
	gain := Ask(t, s, store.Question{Topic: store.Gain, From: Start, Until: end(batches), Service: "service-1"})
	want := expect(batches, Start, end(batches))["service-1"]
	extra := (1 - want.local/want.all) * 0.725
	if got := Cell(t, gain, 0, "saved_ratio"); !near(got, want.msr/want.cpu*extra/(1+extra)) || Cell(t, gain, 0, "saved_how") != "estimated" {
		t.Errorf("gain: %v", gain.Rows)
	}
	features := Ask(t, s, store.Question{Topic: store.Features, From: Start, Until: end(batches), Service: "service-1"})
	for name, of := range map[string]func(store.Window) unit.Opt[float64]{
		"mbw_bytes_per_s": func(w store.Window) unit.Opt[float64] { return w.MBW },
		"npmr_ratio":      func(w store.Window) unit.Opt[float64] { return ratioOf(w.NPMR) },
		"rmbr_ratio":      func(w store.Window) unit.Opt[float64] { return ratioOf(w.RMBR) },
		"cpu_of_node_ratio": func(w store.Window) unit.Opt[float64] {
			cpu, ok := w.CPU.Get()
			return unit.OptOf(cpu/nodeCPUs, ok)
		},
		"server_busy_ratio":      func(w store.Window) unit.Opt[float64] { return unit.Some(3 * busyOn(w) / (2 * nodeCPUs)) },
		"idlest_node_busy_ratio": func(w store.Window) unit.Opt[float64] { return unit.Some(busyOn(w) / nodeCPUs) },
	} {
		if got, want := Cell(t, features, 0, name), meanOf(batches, "service-1", of); !near(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := Cell(t, features, 0, "server_how"); got != "modelled" {
		t.Errorf("how busy its hosts are is %v", got)
	}
	w := Ask(t, s, store.Question{Topic: store.Workloads, From: Start, Until: end(batches), Host: "host-1", Sort: "workload", Ascending: true})
	if Cell(t, w, 0, "workload") != "/demo/1" || Cell(t, w, 0, "cpu_by_node") != "1 0.5" || Cell(t, w, 0, "anon_by_node") != "1048576 2097152" || Cell(t, w, 0, "local_from") != "perf" {
		t.Errorf("workloads: %v", w.Rows[0])
	}
}

// busyOn is what Batches says of the first node of a window's host: host-0 has the workloads of even
// numbers. The second node is twice as busy.
func busyOn(w store.Window) float64 {
	n := 0
	if _, err := fmt.Sscanf(w.Workload, "/demo/%d", &n); err != nil {
		panic(err)
	}
	return float64(n%2 + 1)
}

func ratioOf(v unit.Opt[unit.Ratio]) unit.Opt[float64] {
	x, ok := v.Get()
	return unit.OptOf(float64(x), ok)
}

// meanOf is the mean over the time in which it is known.
func meanOf(batches []store.Batch, service string, of func(store.Window) unit.Opt[float64]) float64 {
	sum, time := 0.0, 0.0
	for _, b := range batches {
		for _, w := range b.Windows {
			if x, ok := of(w).Get(); ok && w.Service == service {
				sum, time = sum+x*w.Length.Seconds(), time+w.Length.Seconds()
			}
		}
	}
	return sum / time
}

// pages puts an answer together from pages of 3 rows, and looks at its order.
func pages(t *testing.T, s store.Store, q store.Question, rows int) {
	t.Helper()
	q.Most = 3
	var last any
	for n := 0; ; n += len(last.([][]any)) {
		q.Offset = n
		table := Ask(t, s, q)
		last = table.Rows
		for i := 1; i < len(table.Rows); i++ {
			a, b := Cell(t, table, i-1, q.Sort), Cell(t, table, i, q.Sort)
			x, ok := a.(float64)
			y, both := b.(float64)
			if a == nil && b != nil || ok && both && x != y && (x < y) != q.Ascending {
				t.Errorf("%s by %s: %v before %v", q.Topic, q.Sort, a, b)
			}
		}
		if !table.More {
			if n+len(table.Rows) != rows {
				t.Errorf("%s by %s: %d rows in pages, %d at once", q.Topic, q.Sort, n+len(table.Rows), rows)
			}
			return
		}
	}
}

func events(t *testing.T, s store.Store) {
	b := store.Batch{Host: "h", Run: "r", Number: 1,
		Decisions: []store.Decision{
			{At: Start, Kind: "bind", Workload: "/a", Service: "a", Nodes: []int{0, 1, 4}, Rule: "mao.bind", Sentence: "it reads remote memory"},
			{At: Start.Add(time.Second), Kind: "unbind", Workload: "/a", Service: "a", Rule: "mao.b", Sentence: "node 1 is busy"},
			{At: Start.Add(2 * time.Second), Kind: "unbind", Workload: "/b", DryRun: true, Rule: "mao.b", Sentence: "would"},
		},
		Outcomes: []store.Outcome{{At: Start.Add(3 * time.Second), Workload: "/a", Service: "a", Action: "bind /a to nodes 1", State: "drifted", Sentence: "changed by another process"}},
	}
	add(t, s, []store.Batch{b})
	all := Ask(t, s, store.Question{Topic: store.Events, From: Start, Until: Start.Add(time.Hour)})
	if len(all.Rows) != 4 || Cell(t, all, 0, "state") != "drifted" || Cell(t, all, 1, "dry_run") != true || Cell(t, all, 3, "nodes") != "0-1,4" || Cell(t, all, 3, "at") != Start {
		t.Errorf("events: %v", all.Rows)
	}
	un := Ask(t, s, store.Question{Topic: store.Unbound, From: Start, Until: Start.Add(time.Hour)})
	if len(un.Rows) != 1 || Cell(t, un, 0, "sentence") != "node 1 is busy" {
		t.Errorf("unbound: %v", un.Rows)
	}
	if rows := Ask(t, s, store.Question{Topic: store.Events, Workload: "/b", From: Start, Until: Start.Add(time.Hour)}).Rows; len(rows) != 1 {
		t.Errorf("events of one workload: %v", rows)
	}
	maintain(t, s, Start.Add(500*24*time.Hour), store.Usual)
	if rows := Ask(t, s, store.Question{Topic: store.Events, From: Start, Until: Start.Add(time.Hour)}).Rows; len(rows) != 0 {
		t.Errorf("events after their retention: %v", rows)
	}
}

func hosts(t *testing.T, s store.Store) {
	batches := Batches(6, 8, 60)
	add(t, s, batches)
	add(t, s, []store.Batch{
		{Host: "only-nodes", Run: "r", Number: 1, Nodes: []store.Node{{At: Start, Length: time.Second, CPUs: 2}}},
		// One workload: its service and its binding change meanwhile.
		{Host: "only-windows", Run: "r", Number: 1, Windows: []store.Window{{At: Start, Length: time.Second, Workload: "/x"}, {At: Start.Add(time.Second), Length: time.Second, Workload: "/x", Service: "x", Bound: []int{0}}}},
	})
	hostAnswers(t, s, end(batches))
	maintain(t, s, end(batches), store.Usual) // and from rolled-up rows
	hostAnswers(t, s, end(batches))
}

func hostAnswers(t *testing.T, s store.Store, until time.Time) {
	t.Helper()
	table := Ask(t, s, store.Question{Topic: store.Hosts, From: Start, Until: until})
	if len(table.Rows) != 4 {
		t.Fatalf("%d hosts", len(table.Rows))
	}
	for i, want := range []struct {
		host             string
		apart            any
		nodes, workloads int64
	}{{"host-1", 0.25, 2, 4}, {"host-0", 0.125, 2, 4}, {"only-nodes", nil, 1, 0}, {"only-windows", nil, 0, 1}} {
		if Cell(t, table, i, "host") != want.host || !near(Cell(t, table, i, "apart_ratio"), want.apart) || Cell(t, table, i, "nodes") != want.nodes || Cell(t, table, i, "workloads") != want.workloads {
			t.Errorf("row %d: %v, want %v", i, table.Rows[i], want)
		}
	}
	if got := fmt.Sprint(column(t, table, "apart_how")); got != "[modelled modelled unknown unknown]" {
		t.Errorf("how far nodes are apart is known: %s", got)
	}
	if bound := Cell(t, table, 3, "bound_workloads"); bound != int64(1) || Cell(t, table, 2, "bound_workloads") != int64(0) {
		t.Errorf("bound workloads: %v, %v", table.Rows[2], table.Rows[3])
	}
	bins := Ask(t, s, store.Question{Topic: store.HostBins, From: Start, Until: until})
	if got := fmt.Sprint(column(t, bins, "apart_ratio"), column(t, bins, "hosts"), column(t, bins, "example")); got != "[0.1 0.2 <nil>] [1 1 2] [host-0 host-1 only-nodes]" {
		t.Errorf("bins: %s", got)
	}
	for i, host := range []string{"host-0", "host-1"} {
		remote := Cell(t, table, 1-i, "remote_ratio").(float64)
		if low := Cell(t, bins, i, "remote_ratio").(float64); remote < low || remote >= low+store.BinStep {
			t.Errorf("%s: a bin from %v has %v", host, low, remote)
		}
	}
	nodes := Ask(t, s, store.Question{Topic: store.Nodes, Host: "host-1", From: Start, Until: until})
	if got := fmt.Sprint(column(t, nodes, "node"), column(t, nodes, "cpus"), column(t, nodes, "busy_cpus"), column(t, nodes, "used_bytes"), column(t, nodes, "traffic_bytes_per_s"), column(t, nodes, "busy_how"), column(t, nodes, "memory_how"), column(t, nodes, "traffic_how")); got != "[0 1] [8 8] [2 4] [1.072693248e+09 1.072693248e+09] [<nil> <nil>] [modelled modelled] [measured measured] [unknown unknown]" {
		t.Errorf("nodes: %s", got)
	}
	for pattern, want := range map[string]int{"host-*": 2, "*o*-*": 4, "*": 4, "host-?": 0, "host-[01]": 0, "h%": 0, "*_*": 0, "*-windows": 1, "host-1": 1, "Host-*": 0} {
		if rows := Ask(t, s, store.Question{Topic: store.Hosts, Host: pattern, From: Start, Until: until}).Rows; len(rows) != want {
			t.Errorf("hosts like %s: %d rows, want %d", pattern, len(rows), want)
		}
	}
	if rows := Ask(t, s, store.Question{Topic: store.Services, Service: "serv*-1", From: Start, Until: until}).Rows; len(rows) != 1 {
		t.Errorf("services by a pattern: %v", rows)
	}
	if Cell(t, table, 2, "remote_ratio") != nil || Cell(t, table, 2, "remote_how") != "unknown" {
		t.Errorf("a host without workloads: %v", table.Rows[2])
	}
}
