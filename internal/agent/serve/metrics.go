// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"homenode/internal/agent"
	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// metricsType is the format's.
const metricsType = "text/plain; version=0.0.4; charset=utf-8"

// MetricsInput is what metrics are made of.
type MetricsInput struct {
	View     agent.View
	Read     bool // View is valid: a round has ended
	Health   agent.Health
	Version  string
	Resident unit.Opt[unit.Bytes] // memory of this process
}

// family is one metric with all its series.
type family struct {
	name, kind, help string
	write            func(p *printer, in *MetricsInput)
}

// WriteMetrics writes all of them; before the first round only what is known without one.
func WriteMetrics(w io.Writer, in MetricsInput) error {
	p := &printer{}
	in.View.Status.Workloads = shown(&in)
	for _, f := range families() {
		p.begin(f)
		f.write(p, &in)
	}
	_, err := io.WriteString(w, p.out.String())
	return err
}

// shown are the workloads with series of their own: approved ones first, then by path, so
// that a series does not come and go with the load.
func shown(in *MetricsInput) []agent.WorkloadStatus {
	all := slices.Clone(in.View.Status.Workloads)
	if len(all) <= in.View.MaxWorkloads {
		return all
	}
	approved := map[string]bool{}
	for _, wl := range in.View.Status.Window.Workloads {
		approved[wl.ID] = wl.Approved
	}
	rank := func(ws agent.WorkloadStatus) int {
		if approved[ws.ID] {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b agent.WorkloadStatus) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.ID, b.ID)) })
	return all[:in.View.MaxWorkloads]
}

// printer writes lines. It writes nothing for a family without series.
type printer struct {
	out    strings.Builder
	family family
	headed bool
}

func (p *printer) begin(f family) { p.family, p.headed = f, false }

// series writes one series; labels are name, value, name, value, ….
func (p *printer) series(v float64, labels ...string) { p.line("", v, labels) }

func (p *printer) line(suffix string, v float64, labels []string) {
	if !p.headed {
		p.headed = true
		p.out.WriteString("# HELP " + p.family.name + " " + p.family.help + "\n# TYPE " + p.family.name + " " + p.family.kind + "\n")
	}
	p.out.WriteString(render.MetricSeries(p.family.name+suffix, labels...) + " " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
}

func (p *printer) histogram(h agent.Histogram) {
	sum := uint64(0)
	for i, b := range h.Bounds() {
		sum += h.Counts[i]
		p.line("_bucket", float64(sum), []string{"le", strconv.FormatFloat(b.Seconds(), 'g', -1, 64)})
	}
	p.line("_bucket", float64(h.Count), []string{"le", "+Inf"})
	p.line("_sum", h.Sum.Seconds(), nil)
	p.line("_count", float64(h.Count), nil)
}

// value writes a figure. It writes nothing if the figure is unknown. How it is known is
// not a label of it: the series would end, and another begin, when that changes.
func value(p *printer, v unit.Value[float64], labels ...string) {
	if x, ok := v.Get(); ok {
		p.series(x, labels...)
	}
}

// source writes how a figure is known. It writes nothing if the figure is unknown.
func source(p *printer, v unit.Value[float64], figure string, labels ...string) {
	if v.Known() {
		p.series(1, append(slices.Clone(labels), "figure", figure, "source", v.How.String())...)
	}
}

func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// eachNode calls f with each node's label.
func eachNode(in *MetricsInput, f func(n *window.Node, label string)) {
	nodes := in.View.Status.Window.Nodes
	for i := range nodes {
		f(&nodes[i], strconv.Itoa(nodes[i].ID))
	}
}

// eachWorkload calls f with each workload that is shown, and its labels.
func eachWorkload(in *MetricsInput, f func(ws *agent.WorkloadStatus, wl *window.Workload, labels []string)) {
	for i := range in.View.Status.Workloads {
		ws := &in.View.Status.Workloads[i]
		if k, ok := in.View.Status.Window.WorkloadIndex(ws.ID); ok {
			f(ws, &in.View.Status.Window.Workloads[k], []string{"workload", ws.ID, "service", ws.Service})
		}
	}
}

// byNode writes a figure of each node.
func byNode(p *printer, in *MetricsInput, labels []string, by []unit.Value[float64]) {
	nodes := in.View.Status.Window.Nodes
	for i := range min(len(by), len(nodes)) {
		value(p, by[i], append(slices.Clone(labels), "node", strconv.Itoa(nodes[i].ID))...)
	}
}

// services counts all workloads by service, not only those that are shown.
type service struct{ workloads, approved, bound, unknown, below float64 }

func services(in *MetricsInput) map[string]service {
	all := map[string]service{}
	for i := range in.View.Status.Window.Workloads {
		wl := &in.View.Status.Window.Workloads[i]
		if wl.Service == "" {
			continue
		}
		s := all[wl.Service]
		s.workloads++
		s.approved += truth(wl.Approved)
		s.bound += truth(wl.Binding.OursCPUs)
		target, ok := wl.Target.Get()
		local, known := window.LocalAccess(wl).Get()
		s.unknown += truth(ok && !known)
		s.below += truth(ok && known && local < target)
		all[wl.Service] = s
	}
	return all
}

func eachService(in *MetricsInput, f func(name string, s service)) {
	all := services(in)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f(name, all[name])
	}
}

// counted writes a counter for each key, in order; a key may hold several labels' values.
// Those of always are there from the start, with 0: a counter that begins with 1 hides its
// first event from rate() and increase().
func counted(p *printer, by map[string]uint64, always []string, labels ...string) {
	keys := slices.Clone(always)
	for k := range by {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		var pairs []string
		for i, part := range strings.SplitN(k, " ", len(labels)) {
			pairs = append(pairs, labels[i], part)
		}
		p.series(float64(by[k]), pairs...)
	}
}

func eachOf(nodes set.NodeSet, f func(label string)) {
	for _, id := range nodes.IDs() {
		f(strconv.Itoa(id))
	}
}
