// SPDX-License-Identifier: Apache-2.0

package views

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"homenode/internal/render"
	"homenode/internal/render/field"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// figure is one figure of one thing in one window.
type figure struct {
	kind, name, service, node string // kind is "node" or "workload"
	id, metric                string
	unit                      field.Unit
	value                     unit.Value[float64]
}

// labels are those of the figure's series.
func (f figure) labels() []string {
	var l []string
	if f.kind == "workload" {
		l = append(l, "workload", f.name, "service", f.service)
	}
	if f.node != "" {
		l = append(l, "node", f.node)
	}
	return l
}

// figures calls f with every figure of a window that render/field has.
func figures(w *window.Window, f func(figure)) {
	for i := range w.Nodes {
		n := field.Node{Node: &w.Nodes[i], Window: w}
		id := strconv.Itoa(n.ID)
		for _, x := range field.Nodes {
			f(figure{kind: "node", name: id, node: id, id: x.ID, metric: "homenode_node_" + x.Metric, unit: x.Unit, value: x.Of(n)})
		}
	}
	for i := range w.Workloads {
		features := window.FeaturesOf(w.Workloads[i], w.Length)
		wl := field.Workload{Workload: &w.Workloads[i], Features: &features}
		for _, x := range field.Workloads {
			one := figure{kind: "workload", name: wl.ID, service: wl.Service, id: x.ID, metric: "homenode_workload_" + x.Metric, unit: x.Unit}
			if x.Metric == "" {
				one.metric = ""
			}
			if x.ByNode == nil {
				one.value = x.Of(wl)
				f(one)
				continue
			}
			for k, v := range x.ByNode(wl) {
				if k < len(w.Nodes) {
					one.node, one.value = strconv.Itoa(w.Nodes[k].ID), v
					f(one)
				}
			}
		}
	}
}

// DumpCSV writes a recording as a table: a row for each figure of each window. A figure
// that is unknown has no value, and "unknown" in how.
func DumpCSV(out io.Writer, rec window.Recording) error {
	w := csv.NewWriter(out)
	_ = w.Write([]string{"time", "seq", "kind", "name", "service", "node", "figure", "unit", "value", "how"}) // Error tells it at the end
	for i := range rec.Windows {
		at, seq := rec.Windows[i].At.UTC().Format(time.RFC3339Nano), strconv.FormatUint(rec.Windows[i].Seq, 10)
		figures(&rec.Windows[i], func(f figure) {
			text := ""
			if v, ok := f.value.Get(); ok {
				text = strconv.FormatFloat(v, 'g', -1, 64)
			}
			_ = w.Write([]string{at, seq, f.kind, cell(f.name), cell(f.service), f.node, f.id, string(f.unit), text, f.value.How.String()})
		})
	}
	w.Flush()
	return w.Error()
}

// cell makes a name fit for a terminal, and for a spreadsheet, which would compute one that
// begins as a formula.
func cell(name string) string {
	if name = render.Printable(name); name != "" && strings.ContainsRune("=+-@", rune(name[0])) {
		return "'" + name
	}
	return name
}

// mostSeries bounds the series of a recording: names come from cgroups.
const mostSeries = 1_000_000

// DumpOpenMetrics writes a recording in the OpenMetrics text format (1.0), with the names
// of /metrics and the time of each window: 'promtool tsdb create-blocks-from openmetrics'
// makes blocks of Prometheus from it. A figure that is unknown has no sample.
func DumpOpenMetrics(out io.Writer, rec window.Recording) error {
	w := bufio.NewWriter(out)
	for _, x := range field.Nodes {
		if err := dumpFamily(w, rec, "homenode_node_"+x.Metric, x.Help); err != nil {
			return err
		}
	}
	for _, x := range field.Workloads {
		if x.Metric == "" {
			continue
		}
		if err := dumpFamily(w, rec, "homenode_workload_"+x.Metric, x.Help); err != nil {
			return err
		}
	}
	fmt.Fprintln(w, "# EOF")
	return w.Flush()
}

// dumpFamily writes one metric: the format wants each series in one piece, by time.
func dumpFamily(w io.Writer, rec window.Recording, name, help string) error {
	var order []string
	samples := map[string]*strings.Builder{}
	last := map[string]string{}
	for i := range rec.Windows {
		at := strconv.FormatFloat(float64(rec.Windows[i].At.UnixMilli())/1e3, 'f', 3, 64)
		figures(&rec.Windows[i], func(f figure) {
			v, ok := f.value.Get()
			if !ok || f.metric != name {
				return
			}
			series := render.MetricSeries(name, f.labels()...)
			s := samples[series]
			if s == nil {
				s = &strings.Builder{}
				samples[series], order = s, append(order, series)
			}
			if last[series] != at { // two windows within a millisecond: the first stands
				fmt.Fprintf(s, "%s %s %s\n", series, strconv.FormatFloat(v, 'g', -1, 64), at)
				last[series] = at
			}
		})
		if len(order) > mostSeries {
			return fmt.Errorf("dump %s: more than %d series: record fewer workloads", name, mostSeries)
		}
	}
	if len(order) == 0 {
		return nil
	}
	fmt.Fprintf(w, "# TYPE %s gauge\n# HELP %s %s\n", name, name, help)
	for _, series := range order {
		if _, err := io.WriteString(w, samples[series].String()); err != nil {
			return err
		}
	}
	return nil
}
