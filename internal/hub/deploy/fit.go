// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/render"
	"homenode/internal/schema"
	"homenode/internal/set"
	"homenode/internal/store"
)

// Fit says whether a service's replicas fit on single nodes of their hosts, all of them at once:
// estimated from mean CPU time and memory at last.
type Fit struct {
	Replicas int `json:"replica_count"` // that were looked at
	Fitting  int `json:"fitting_count"`
	Unknown  int `json:"unknown_count"`  // of Replicas: nothing says how large they or their nodes are
	Hosts    int `json:"host_count"`     // that were looked at
	AllHosts int `json:"all_host_count"` // that run it
}

// LeastFit is the share of replicas that must fit for a hub to start a rollout by itself: what does
// not fit stays unbound, and a rollout in which most stay so shows nothing.
const LeastFit = 0.9

// mostFitHosts bounds the hosts that are looked at: two questions each.
const mostFitHosts = 40

// Enough says whether so many fit.
func (f Fit) Enough() bool {
	return f.Replicas > f.Unknown && float64(f.Fitting) >= LeastFit*float64(f.Replicas)
}

// Words say it to a person.
func (f Fit) Words() string {
	text := fmt.Sprintf("%d of %s would fit on a node of their hosts", f.Fitting, render.Count(f.Replicas, "replica"))
	if f.Unknown > 0 {
		text += fmt.Sprintf("; the size of %d is unknown", f.Unknown)
	}
	if f.Hosts < f.AllHosts {
		text += fmt.Sprintf(" (looked at on %d of %d hosts)", f.Hosts, f.AllHosts)
	}
	return text
}

// fitOf looks at the service's hosts: at all of them, or at some that are spread evenly.
func fitOf(ctx context.Context, s Asker, service string, hosts []string, now time.Time) (Fit, error) {
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	f := Fit{AllHosts: len(hosts)}
	for i := range min(len(hosts), mostFitHosts) {
		host := hosts[i*len(hosts)/min(len(hosts), mostFitHosts)]
		ask := func(topic store.Topic) (store.Table, error) {
			return s.Ask(ctx, store.Question{Topic: topic, Host: host, From: now.Add(-time.Hour), Until: now, Most: store.MostRows})
		}
		nodes, err := ask(store.Nodes)
		if err != nil {
			return f, fmt.Errorf("ask for the nodes of %q: %w", schema.Name(host), err)
		}
		loads, err := ask(store.Workloads)
		if err != nil {
			return f, fmt.Errorf("ask for the workloads of %q: %w", schema.Name(host), err)
		}
		f.addHost(nodes, loads, service)
		f.Hosts++
	}
	return f, nil
}

// space is what a node has left, or what a workload needs: CPUs and bytes.
type space struct{ cpus, bytes float64 }

// addHost fits the replicas of one host. Those that are bound keep their place, whichever service's
// they are; others may leave theirs.
func (f *Fit) addHost(nodes, loads store.Table, service string) {
	left := map[int]space{}
	for _, row := range nodes.Rows {
		id, _ := nodes.Number(row, "node")
		cpus, ok := nodes.Number(row, "cpus")
		bytes, known := nodes.Number(row, "memory_bytes")
		if ok && known && cpus > 0 {
			left[int(id)] = space{cpus, bytes}
		}
	}
	var wants []space
	for _, row := range loads.Rows {
		need, known := needOf(loads, row)
		on, _ := set.ParseNodes(loads.Text(row, "bound")) // malformed: as if it were not bound
		for id := range on.All() {
			if at, ok := left[id]; ok {
				left[id] = space{at.cpus - need.cpus/float64(on.Len()), at.bytes - need.bytes/float64(on.Len())}
			}
		}
		if loads.Text(row, "service") != service || !on.IsEmpty() {
			continue
		}
		if f.Replicas++; known && len(left) > 0 {
			wants = append(wants, need)
		} else {
			f.Unknown++
		}
	}
	f.Fitting += pack(left, wants)
}

// pack counts what fits: the largest first, each on the node with most CPUs left.
func pack(left map[int]space, wants []space) (fitting int) {
	slices.SortFunc(wants, func(a, b space) int {
		return cmp.Or(cmp.Compare(b.cpus, a.cpus), cmp.Compare(b.bytes, a.bytes))
	})
	ids := slices.Sorted(maps.Keys(left))
	for _, w := range wants {
		best := -1
		for _, id := range ids {
			if at := left[id]; at.cpus >= w.cpus && at.bytes >= w.bytes && (best < 0 || at.cpus > left[best].cpus) {
				best = id
			}
		}
		if best >= 0 {
			left[best] = space{left[best].cpus - w.cpus, left[best].bytes - w.bytes}
			fitting++
		}
	}
	return fitting
}

// needOf is the mean CPU time of a workload, and its memory at last.
func needOf(loads store.Table, row []any) (need space, known bool) {
	cpus, known := loads.Number(row, "cpus")
	anon, file := strings.Fields(loads.Text(row, "anon_by_node")), strings.Fields(loads.Text(row, "file_by_node"))
	need.cpus = cpus
	for _, part := range append(anon, file...) {
		bytes, err := strconv.ParseFloat(part, 64)
		known = known && err == nil
		need.bytes += bytes
	}
	return need, known && len(anon) > 0
}
