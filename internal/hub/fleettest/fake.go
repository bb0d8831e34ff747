// SPDX-License-Identifier: Apache-2.0

package fleettest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"homenode/internal/store"
	"homenode/internal/unit"
)

// Fake answers from a fleet. It counts what it is asked, and the rows that it answers.
type Fake struct {
	Fleet
	Asked, Rows atomic.Int64
}

// columns of each topic, as the stores have them.
var columns = map[store.Topic]string{
	store.Services:  "service instances hosts local_ratio:1 local_how cpu_s:s traffic_bytes:bytes saved_ratio:1 saved_cpu_s:s saved_how unbound_ratio:1 last cpu_how traffic_how",
	store.Gain:      "service instances cpu_s:s local_ratio:1 local_how saved_ratio:1 saved_cpu_s:s saved_how cpu_how",
	store.Features:  "service instances hosts mbw_bytes_per_s:bytes/s traffic_how msr_ratio:1 ipc_instructions_per_cycle llc_misses_per_kilo_instruction cycles_how npmr_ratio:1 pages_how rmbr_ratio:1 local_how cpu_cpus:CPUs cpu_how cpu_of_node_ratio:1 server_busy_ratio:1 idlest_node_busy_ratio:1 server_how bound_ratio:1 approved",
	store.Instances: "host workload name local_ratio:1 local_how cpus:CPUs traffic_bytes_per_s:bytes/s bound_ratio:1 last cpu_how traffic_how",
	store.Workloads: "workload service name bound cpu_by_node:CPUs anon_by_node:bytes local_ratio:1 local_how cpus:CPUs traffic_bytes_per_s:bytes/s last cpu_how traffic_how",
	store.Hosts:     "host apart_ratio:1 apart_how remote_ratio:1 remote_how nodes workloads bound_workloads last",
	store.HostBins:  "apart_ratio:1 remote_ratio:1 hosts example",
	store.Nodes:     "node cpus:CPUs busy_cpus:CPUs memory_bytes:bytes used_bytes:bytes traffic_bytes_per_s:bytes/s last busy_how memory_how",
	store.History:   "at instances local_ratio:1 local_how cpus:CPUs traffic_bytes_per_s:bytes/s bound_ratio:1 cpu_how traffic_how",
	store.Events:    "at host workload service type kind nodes dry_run state rule sentence",
	store.Unbound:   "at host workload service rule sentence",
}

// Ask answers a question.
func (f *Fake) Ask(_ context.Context, q store.Question) (store.Table, error) {
	f.Asked.Add(1)
	var t store.Table
	for _, name := range strings.Fields(columns[q.Topic]) {
		name, kind, _ := strings.Cut(name, ":")
		t.Columns = append(t.Columns, store.Column{Name: name, Unit: kind, About: "about " + name})
	}
	rows, ok := map[store.Topic]func(store.Question) [][]any{
		store.Services: f.servicesRows, store.Gain: f.gainRows, store.Features: f.featureRows, store.Instances: f.instanceRows, store.Workloads: f.workloadRows, store.Hosts: f.hostRows,
		store.HostBins: f.binRows, store.Nodes: f.nodeRows, store.History: f.historyRows, store.Events: f.eventRows, store.Unbound: f.unboundRows,
	}[q.Topic]
	if !ok {
		return t, fmt.Errorf("topic %q: %w", q.Topic, store.ErrQuestion)
	}
	all := rows(q)
	if q.Sort != "" {
		i := slices.IndexFunc(t.Columns, func(c store.Column) bool { return c.Name == q.Sort })
		if i < 0 {
			return t, fmt.Errorf("no column %q to sort by: %w", q.Sort, store.ErrQuestion)
		}
		slices.SortStableFunc(all, func(a, b []any) int { return order(a[i], b[i], q.Ascending) })
	}
	if q.Most == 0 {
		q.Most = 100
	}
	all = all[min(q.Offset, len(all)):]
	t.More = len(all) > q.Most
	t.Rows = all[:min(len(all), q.Most)]
	f.Rows.Add(int64(len(t.Rows)))
	return t, nil
}

// SQL answers with one row.
func (f *Fake) SQL(context.Context, string, int) (store.Table, error) {
	return store.Table{Columns: []store.Column{{Name: "1"}}, Rows: [][]any{{int64(1)}}}, nil
}

// order has the unknown last.
func order(a, b any, ascending bool) int {
	if a == nil || b == nil {
		return cmp.Compare(b2i(a == nil), b2i(b == nil))
	}
	n := 0
	switch x := a.(type) {
	case string:
		n = cmp.Compare(x, b.(string))
	case float64:
		n = cmp.Compare(x, b.(float64))
	case int64:
		n = cmp.Compare(x, b.(int64))
	case time.Time:
		n = x.Compare(b.(time.Time))
	}
	if !ascending {
		return -n
	}
	return n
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// matches says whether a name fits a pattern with stars.
func matches(pattern, name string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == "" || pattern == name
	}
	return strings.Contains(name, strings.Trim(pattern, "*"))
}

func (f *Fake) instances(s int) int64 {
	return int64(f.Hosts*f.Each/f.services()) + int64(s%3)
}

func (f *Fake) serviceFigures(s int) (local any, how string, saved, cpu float64) {
	cpu = float64(f.instances(s)) * (0.1 + 3*spread(float64(s)+40)) * 86400
	if s%12 == 11 {
		return nil, unit.HowUnknown.String(), 0, cpu
	}
	v := min(0.35+0.6*spread(float64(s)+3), 0.99)
	how = []string{"measured", "estimated", "modelled"}[s%3]
	return v, how, (1 - v) * 0.3 * spread(float64(s)+9), cpu
}

func (f *Fake) servicesRows(q store.Question) (all [][]any) {
	for s := range f.services() {
		name := f.Service(s)
		if !matches(q.Service, name) {
			continue
		}
		local, how, saved, cpu := f.serviceFigures(s)
		n := f.instances(s)
		row := []any{name, n, min(n, int64(f.Hosts)), local, how, cpu, cpu * 1.5e9, nil, nil, "unknown", float64(s%4) / 4, f.Until, "measured", "estimated"}
		if local != nil {
			row[7], row[8], row[9] = saved, saved*cpu, "estimated"
		}
		all = append(all, row)
	}
	return all
}

func (f *Fake) gainRows(q store.Question) (all [][]any) {
	for _, r := range f.servicesRows(q) {
		all = append(all, []any{r[0], r[1], r[5], r[3], r[4], r[7], r[8], r[9], "measured"})
	}
	return all
}

func (f *Fake) featureRows(q store.Question) (all [][]any) {
	for s, r := range f.servicesRows(q) {
		var remote any
		if local, ok := r[3].(float64); ok {
			remote = 1 - local
		}
		x := spread(float64(s) + 21)
		all = append(all, []any{r[0], r[1], r[2], 5e8 + 4e9*x, "measured", 0.05 + 0.6*x, 2 - x, 1 + 20*x, "measured", 0.3 + 0.6*x, "measured", remote, r[4], 1 + 4*x, "measured", (1 + 4*x) / 24, 0.1 + 0.4*x, 0.05 + 0.3*x, "measured", 0.0, false})
	}
	return all
}

// known is a figure, or nothing where the host does not know it.
func (f *Fake) known(host int, v float64) any {
	if f.how(host) == unit.HowUnknown {
		return nil
	}
	return v
}

func (f *Fake) instanceRows(q store.Question) (all [][]any) {
	for h := range min(f.Hosts, 5000) {
		for i := range f.Each {
			if f.Service(f.serviceOf(h, i)) == q.Service {
				all = append(all, []any{f.Host(h), f.Workload(h, i), "prod/" + q.Service, f.known(h, f.local(h, i, 1)), f.how(h).String(), f.cpus(h, i, 1), f.cpus(h, i, 1) * 1.5e9, float64(b2i(f.bound(h, i))), f.Until, "measured", "estimated"})
			}
		}
	}
	return all
}

func (f *Fake) find(host string) int {
	for h := range f.Hosts {
		if f.Host(h) == host {
			return h
		}
	}
	return -1
}

func (f *Fake) workloadRows(q store.Question) (all [][]any) {
	h := f.find(q.Host)
	if h < 0 {
		return nil
	}
	for i := range f.Each {
		w := f.window(h, i, f.Until, 1)
		bound := ""
		if len(w.Bound) > 0 {
			bound = fmt.Sprint(w.Bound[0])
		}
		all = append(all, []any{w.Workload, w.Service, w.Name, bound, fmt.Sprintf("%.3f %.3f", w.CPUByNode[0], w.CPUByNode[1]), fmt.Sprintf("%d %d", w.AnonByNode[0], w.AnonByNode[1]), f.known(h, f.local(h, i, 1)), f.how(h).String(), f.cpus(h, i, 1), f.cpus(h, i, 1) * 1.5e9, f.Until, "measured", "estimated"})
	}
	return all
}

func (f *Fake) hostFigures(h int) (apart, remote float64) {
	return 0.9 * math.Pow(spread(float64(h)+1), 3), 0.7 * math.Pow(spread(float64(h)+2), 2)
}

func (f *Fake) hostRows(q store.Question) (all [][]any) {
	for h := range f.Hosts {
		if !matches(q.Host, f.Host(h)) {
			continue
		}
		apart, remote := f.hostFigures(h)
		all = append(all, []any{f.Host(h), apart, "measured", f.known(h, remote), f.how(h).String(), int64(2), int64(f.Each), int64(f.Each / 3), f.Until})
	}
	if q.Sort == "" {
		slices.SortStableFunc(all, func(a, b []any) int { return order(a[1], b[1], false) })
	}
	return all
}

func (f *Fake) binRows(store.Question) (all [][]any) {
	type bin struct{ apart, remote int }
	count, example := map[bin]int64{}, map[bin]string{}
	for h := range f.Hosts {
		apart, remote := f.hostFigures(h)
		b := bin{int(apart / store.BinStep), int(remote / store.BinStep)}
		if f.known(h, remote) == nil {
			b.remote = -1
		}
		count[b]++
		example[b] = f.Host(h)
	}
	for b, n := range count {
		row := []any{float64(b.apart) * store.BinStep, float64(b.remote) * store.BinStep, n, example[b]}
		if b.remote < 0 {
			row[1] = nil
		}
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b []any) int {
		return cmp.Or(order(a[0], b[0], true), order(a[1], b[1], true))
	})
	return all
}

func (f *Fake) nodeRows(q store.Question) (all [][]any) {
	h := f.find(q.Host)
	if h < 0 {
		return nil
	}
	for n := range 2 {
		x := f.node(h, n, f.Until, 4+20*spread(float64(h*2+n)))
		busy, _ := x.Busy.Get()
		free, _ := x.Free.Get()
		all = append(all, []any{int64(n), float64(32), busy, float64(256 * unit.GiB), float64(256*unit.GiB - free), busy * 2e9, f.Until, "measured", "measured"})
	}
	return all
}

func (f *Fake) historyRows(q store.Question) (all [][]any) {
	span := q.Until.Sub(q.From)
	for i := range 200 {
		at := q.From.Add(span * time.Duration(i) / 200)
		x := float64(at.Unix()%86400) / 86400 * 2 * math.Pi
		local := any(0.6 + 0.3*wave(float64(len(q.Service)+len(q.Workload)), x))
		if i > 90 && i < 100 {
			local = nil
		}
		all = append(all, []any{at, int64(40 + i%5), local, "measured", 1 + wave(2, x), 2e9 * wave(3, x), float64(b2i(i > 120)), "measured", "estimated"})
	}
	return all
}

func (f *Fake) eventRows(q store.Question) (all [][]any) {
	for h := range min(f.Hosts, 200) {
		if q.Host != "" && f.Host(h) != q.Host {
			continue
		}
		b := store.Batch{}
		f.happened(&b, h)
		for _, d := range b.Decisions {
			all = append(all, []any{d.At, f.Host(h), d.Workload, d.Service, "decision", d.Kind, strings.Trim(fmt.Sprint(d.Nodes), "[]"), h%9 == 4, "", d.Rule, d.Sentence})
		}
		for _, o := range b.Outcomes {
			all = append(all, []any{o.At, f.Host(h), o.Workload, o.Service, "outcome", o.Action, "", false, o.State, "", o.Sentence})
		}
	}
	all = slices.DeleteFunc(all, func(row []any) bool {
		return q.Service != "" && row[3] != q.Service || q.Workload != "" && row[2] != q.Workload
	})
	slices.SortStableFunc(all, func(a, b []any) int { return order(a[0], b[0], false) })
	return all
}

func (f *Fake) unboundRows(q store.Question) (all [][]any) {
	for _, r := range f.eventRows(q) {
		if r[5] == "unbind" {
			all = append(all, []any{r[0], r[1], r[2], r[3], r[9], r[10]})
		}
	}
	return all
}
