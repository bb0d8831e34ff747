// SPDX-License-Identifier: Apache-2.0

package views

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"homenode/internal/agent"
	"homenode/internal/agent/serve"
	"homenode/internal/machine"
	"homenode/internal/render/field"
	"homenode/internal/tui"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// known is a window in which every figure is known.
func known() window.Window {
	w := fourSources()
	i := slices.IndexFunc(w.Workloads, func(wl window.Workload) bool { return wl.ID == "/measured" })
	w.Workloads = w.Workloads[i : i+1]
	wl := &w.Workloads[0]
	wl.Quota, wl.Latency, wl.MemoryLimit = unit.Measured(2.0, "x"), unit.Measured(0.01, "x"), unit.Measured(unit.GiB, "x")
	wl.Throttled, wl.Waiting = unit.Measured(unit.Ratio(0.1), "x"), unit.Measured(unit.Ratio(0.2), "x")
	wl.Instructions = unit.Measured(uint64(500), "x")
	for i := range w.Nodes {
		n := &w.Nodes[i]
		n.CPUBusy, n.Memory, n.Free, n.Traffic = unit.Measured(1.0, "x"), unit.Measured(unit.GiB, "x"), unit.Measured(unit.MiB, "x"), unit.Measured(unit.MiB, "x")
	}
	return w
}

func statusOf(w window.Window) agent.Status {
	s := agent.Status{Window: w}
	for _, wl := range w.Workloads {
		s.Workloads = append(s.Workloads, agent.WorkloadStatus{ID: wl.ID, Features: window.FeaturesOf(wl, w.Length)})
	}
	return s
}

// Every output calls a figure by the names in render/field.
func TestEveryFaceNamesAFigureAlike(t *testing.T) {
	w := known()
	s := statusOf(w)
	var text, exported strings.Builder
	if err := Status(&text, s, wide); err != nil {
		t.Fatal(err)
	}
	if err := serve.WriteMetrics(&exported, serve.MetricsInput{View: agent.View{Status: s, MaxWorkloads: 10}, Read: true}); err != nil {
		t.Fatal(err)
	}
	wl, features, node := keys(t, w.Workloads[0]), keys(t, s.Workloads[0].Features), keys(t, w.Nodes[0])
	table, detail := topFace(t, w), detailFace(t, w)
	for _, f := range field.Workloads {
		has(t, "JSON", slices.Concat(wl, features), f.ID)
		has(t, "metrics", strings.Split(exported.String(), "\n"), metric("homenode_workload_", f.Metric, f.Help))
		if f.Of != nil {
			contains(t, "top's detail", detail, f.Name, f.Text(field.Workload{Workload: &w.Workloads[0], Features: &s.Workloads[0].Features}))
		}
		if f.Head != "" {
			contains(t, "top", table+detail, f.Head)
		}
	}
	contains(t, "status", text.String(), field.CPU.Head, field.LocalAccess.Head)
	for _, f := range field.Nodes {
		has(t, "JSON", node, f.ID)
		has(t, "metrics", strings.Split(exported.String(), "\n"), metric("homenode_node_", f.Metric, f.Help))
		if f.Head != "" {
			contains(t, "status", text.String(), f.Head, f.Text(field.Node{Node: &w.Nodes[0], Window: &w}))
		}
	}
}

// No two figures share a name, and each has what every output needs.
func TestFieldsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range field.Workloads {
		for _, name := range []string{"id " + f.ID, "name " + f.Name, "metric " + f.Metric, "head " + f.Head} {
			if _, text, _ := strings.Cut(name, " "); text != "" && seen[name] {
				t.Errorf("two figures have the %s", name)
			}
			seen[name] = true
		}
		if f.ID == "" || f.Name == "" || f.Unit == "" || f.Width <= 0 || !strings.HasSuffix(f.Help, ".") || (f.Of == nil) == (f.ByNode == nil) {
			t.Errorf("%+v lacks something", f)
		}
	}
	for _, f := range field.Nodes {
		if f.ID == "" || f.Name == "" || f.Unit == "" || f.Width <= 0 || !strings.HasSuffix(f.Help, ".") || f.Of == nil || f.Metric == "" {
			t.Errorf("%+v lacks something", f)
		}
	}
}

func keys(t *testing.T, v any) (all []string) {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	for k := range fields {
		all = append(all, k)
	}
	return all
}

// metric is the line of a metric's help; "" if there is none.
func metric(prefix, name, help string) string {
	if name == "" {
		return ""
	}
	return "# HELP " + prefix + name + " " + help
}

func has(t *testing.T, face string, all []string, name string) {
	t.Helper()
	if !slices.Contains(all, name) && name != "" {
		t.Errorf("%s has no %q in %q", face, name, all)
	}
}

func contains(t *testing.T, face, text string, names ...string) {
	t.Helper()
	for _, n := range names {
		if !strings.Contains(text, n) {
			t.Errorf("%s: no %q in\n%s", face, n, text)
		}
	}
}

// detailFace is top with a workload's detail page open.
func detailFace(t *testing.T, w window.Window) string {
	t.Helper()
	m := tui.New(context.Background(), tui.Options{Source: tui.NewReplay(window.Recording{Machine: machine.Machine{}, Period: time.Second, Windows: []window.Window{w}})})
	m.Update(tea.WindowSizeMsg{Width: 160, Height: 60})
	m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	return m.Text()
}
