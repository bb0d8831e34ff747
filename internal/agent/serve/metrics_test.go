// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"homenode/internal/agent"
	"homenode/internal/set"
	"homenode/internal/unit"
	"homenode/internal/window"
	"homenode/internal/yamlfile"
)

// input is an agent with everything that may be told.
func input(workloads int) MetricsInput {
	s := agent.Status{Period: 10 * time.Second, CPUSeconds: 1.5}
	s.Window = window.Window{Schema: 1, At: time.Unix(1000, 5e8), Length: 4 * time.Second, Problems: []string{"x"}, Nodes: []window.Node{
		{ID: 0, CPUs: set.FromCPUs(0, 1), CPUBusy: unit.Measured(1.5, "t"), Memory: unit.Measured(unit.GiB, "t"), Free: unit.Measured(unit.MiB, "t"), Traffic: unit.Modelled(unit.MiB, "t")},
		{ID: 4, CPUs: set.FromCPUs(2), CPUBusy: unit.UnknownValue[float64]("t")},
	}}
	for i := range workloads {
		wl := window.Workload{ID: fmt.Sprintf("/w%03d", i), Service: "s", Approved: i%2 == 1, Target: unit.Some(unit.Ratio(0.9)), CPU: unit.Measured(0.5, "t"), Waiting: unit.Measured(unit.Ratio(0.1), "t"),
			Latency: unit.Measured(0.01, "t"), LocalLoads: unit.Modelled(uint64(1), "t"), RemoteLoads: unit.Modelled(uint64(1), "t"),
			AnonByNode: []unit.Value[unit.Bytes]{unit.Measured(unit.KiB, "t"), unit.UnknownValue[unit.Bytes]("t")}}
		if i == 0 {
			wl.ID, wl.Service = "/a\"b\\c\nd\xff", ""
		}
		if i == 2 {
			wl.LocalLoads, wl.RemoteLoads = unit.UnknownValue[uint64]("t"), unit.UnknownValue[uint64]("t")
		}
		wl.Binding.OursCPUs = i == 1
		s.Window.Workloads = append(s.Window.Workloads, wl)
		ws := agent.WorkloadStatus{ID: wl.ID, Service: wl.Service, Features: window.Features{
			LocalAccessRatio: unit.Modelled(unit.Ratio(0.5), "t"), LocalPageRatio: unit.Estimated(unit.Ratio(0.25), "t"), MBW: unit.Modelled(64.0, "t"), MSR: unit.Modelled(unit.Ratio(0.1), "t"), RMBR: unit.Modelled(unit.Ratio(0.5), "t")}}
		if i == 1 {
			s.Window.Workloads[i].Owner, ws.Labels = "kubelet", window.Labels{Container: "app", Pod: "cart-0", Namespace: "shop"}
			ws.Nodes = set.FromNodes(0, 4)
		}
		s.Workloads = append(s.Workloads, ws)
	}
	s.Totals = agent.Totals{Rounds: 3, Decisions: map[string]uint64{"bind": 2, "none": 1}, Steps: map[string]uint64{"set-cpus done": 1}}
	s.Totals.RoundTimes.Count, s.Totals.RoundTimes.Counts[2], s.Totals.RoundTimes.Sum = 3, 2, time.Second
	return MetricsInput{View: agent.View{Status: s, MaxWorkloads: 100}, Read: true, Health: agent.Health{Alive: true}, Version: "v1", Resident: unit.Some(unit.MiB)}
}

func text(t *testing.T, in MetricsInput) string {
	t.Helper()
	var out strings.Builder
	if err := WriteMetrics(&out, in); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

var (
	lineOf  = regexp.MustCompile(`^([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)$`)
	labelOf = regexp.MustCompile(`([a-z]+)="((?:[^"\\\n]|\\["\\n])*)"`)
)

// The format: every line is valid, each series is unique, each family has one
// heading, and every name is in Names.
func TestDecodeMetrics(t *testing.T) {
	got := text(t, input(3))
	seen, families := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			if families[rest] {
				t.Errorf("headed twice: %s", rest)
			}
			families[rest] = true
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		m := lineOf.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("no line of the format: %q", line)
			continue
		}
		if _, err := strconv.ParseFloat(m[3], 64); err != nil || seen[m[1]+m[2]] || !slices.Contains(metricNames(), m[1]) {
			t.Errorf("%q: %v, or twice, or not in Names", line, err)
		}
		seen[m[1]+m[2]] = true
	}
	for _, want := range []string{
		`homenode_workload_local_access_ratio{workload="/w001",service="s"} 0.5`,
		`homenode_workload_source_info{workload="/w001",service="s",figure="local_access_ratio",source="modelled"} 1`,
		`homenode_workload_source_info{workload="/w001",service="s",node="0",figure="memory_bytes",source="measured"} 1`,
		`homenode_workload_info{workload="/w001",service="s",owner="kubelet",namespace="shop",pod="cart-0",container="app"} 1`,
		`homenode_steps_total{step="move-pages",status="failed"} 0`, `homenode_decisions_total{kind="unbind"} 0`,
		`homenode_workload_local_page_ratio{workload="/w001",service="s"} 0.25`,
		`homenode_workload_bound{workload="/w001",service="s",node="4"} 1`,
		`workload="/a\"b\\c\nd\\xff"`, // bytes that are not text get two backslashes: one is the format's
		`homenode_round_seconds_bucket{le="0.00025"} 2`, `homenode_round_seconds_bucket{le="+Inf"} 3`,
		`homenode_steps_total{step="set-cpus",status="done"} 1`, `homenode_service_below_target_workloads{service="s"} 1`, `homenode_service_unknown_workloads{service="s"} 1`,
		`homenode_node_traffic_bytes_per_second{node="0"} 262144`,
		`homenode_last_window_timestamp_seconds 1000.5`, `homenode_node_busy_cpus{node="0"} 1.5`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	for _, never := range []string{`busy_cpus{node="4"`, `memory_bytes{workload="/w001",service="s",node="4"`, "NaN"} {
		if strings.Contains(got, never) {
			t.Errorf("what is unknown has a series: %s", never)
		}
	}
}

// Prometheus' own linter has nothing to say about the names, units, types and helps.
func TestPromlint(t *testing.T) {
	for _, in := range []MetricsInput{{}, input(3)} {
		problems, err := promlint.New(strings.NewReader(text(t, in))).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// A figure's series is the same one when the way it is known changes.
func TestSourceEndsNoSeries(t *testing.T) {
	in := input(2)
	before := text(t, in)
	in.View.Status.Workloads[1].Features.LocalAccessRatio = unit.Estimated(unit.Ratio(0.5), "t")
	after := text(t, in)
	const series = `homenode_workload_local_access_ratio{workload="/w001",service="s"} 0.5`
	if !strings.Contains(before, series) || !strings.Contains(after, series) || !strings.Contains(after, `figure="local_access_ratio",source="estimated"} 1`) {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// Cardinality is bounded, and approved workloads come first.
func TestDecisionMaxWorkloads(t *testing.T) {
	in := input(10)
	in.View.MaxWorkloads = 5
	got := text(t, in)
	if n := strings.Count(got, "homenode_workload_cpus{"); n != 5 || strings.Count(got, `homenode_workload_approved{`) != 5 || strings.Contains(got, `_approved{workload="/w002"`) {
		t.Errorf("%d series", n)
	}
	if !strings.Contains(got, "homenode_workloads 10\n") || !strings.Contains(got, "homenode_workloads_without_series 5\n") || len(in.View.Status.Workloads) != 10 {
		t.Error("what is left out is not reported, or the view was changed")
	}
}

// Before the first round there is only health.
func TestMetricsBeforeTheFirstRound(t *testing.T) {
	got := text(t, MetricsInput{})
	if !strings.Contains(got, "homenode_ready 0\n") || strings.Contains(got, "homenode_rounds_total") {
		t.Error(got)
	}
}

var metricName = regexp.MustCompile(`\bhomenode_[a-z_]+`)

// used are the metrics and labels that an expression names.
func checkExpr(t *testing.T, where, expr string, labels map[string]map[string]bool) {
	t.Helper()
	names := metricName.FindAllString(expr, -1)
	for _, name := range names {
		if !slices.Contains(metricNames(), name) {
			t.Errorf("%s: no metric %s", where, name)
		}
	}
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
		t.Errorf("%s: %s: brackets", where, expr)
	}
	for _, m := range regexp.MustCompile(`(homenode_[a-z_]+)\{([^}]*)\}`).FindAllStringSubmatch(expr, -1) {
		for _, l := range regexp.MustCompile(`([a-z_]+)\s*=?[=~!]`).FindAllStringSubmatch(m[2], -1) {
			if l[1] != "instance" && l[1] != "job" && !labels[m[1]][l[1]] {
				t.Errorf("%s: %s has no label %q", where, m[1], l[1])
			}
		}
	}
}

// labelsOf returns the labels that each metric really has.
func labelsOf(t *testing.T) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for line := range strings.Lines(text(t, input(3))) {
		if m := lineOf.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			if all[m[1]] == nil {
				all[m[1]] = map[string]bool{}
			}
			for _, l := range labelOf.FindAllStringSubmatch(m[2], -1) {
				all[m[1]][l[1]] = true
			}
		}
	}
	return all
}

// Every query of the dashboard uses only existing metrics and labels.
func TestDashboard(t *testing.T) {
	data, err := os.ReadFile("../../../deploy/grafana/homenode.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		UID        string `json:"uid"`
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil || d.UID == "" || len(d.Panels) < 10 {
		t.Fatalf("%+v, %v", d, err)
	}
	labels, ids := labelsOf(t), map[int]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.GridPos.W <= 0 || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
			t.Errorf("%s: %+v", p.Title, p)
		}
		ids[p.ID] = true
		for _, q := range p.Targets {
			if len(metricName.FindAllString(q.Expr, -1)) == 0 {
				t.Errorf("%s uses no metric of homenode: %s", p.Title, q.Expr)
			}
			checkExpr(t, p.Title, q.Expr, labels)
			name := metricName.FindString(q.Expr)
			for _, l := range regexp.MustCompile(`\{\{([a-z]+)\}\}`).FindAllStringSubmatch(q.LegendFormat, -1) {
				if l[1] != "instance" && !labels[name][l[1]] {
					t.Errorf("%s: the legend wants %q of %s", p.Title, l[1], name)
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			checkExpr(t, v.Name, v.Definition, labels)
		}
	}
}

// The alert rules have the form that Prometheus reads, as far as a test without
// Prometheus can tell, and use only existing metrics.
func TestAlerts(t *testing.T) {
	data, err := os.ReadFile("../../../deploy/prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				For         string            `yaml:"for"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	doc, err := yamlfile.Parse(data, "alerts.yaml", yamlfile.Rules{Malformed: errors.New("malformed"), Most: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Decode(&f); err != nil || len(f.Groups) != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	labels, seen := labelsOf(t), map[string]bool{}
	for _, r := range f.Groups[0].Rules {
		if r.Alert == "" || seen[r.Alert] || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%+v", r)
		}
		if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
			t.Errorf("%s: for %q", r.Alert, r.For)
		}
		seen[r.Alert] = true
		checkExpr(t, r.Alert, r.Expr, labels)
	}
}

func FuzzEscape(f *testing.F) {
	f.Add("a\"b\\\n\xff")
	f.Fuzz(func(t *testing.T, s string) {
		p := &printer{family: family{name: "x", kind: gauge}}
		p.series(1, "a", s)
		lines := strings.Split(strings.TrimSuffix(p.out.String(), "\n"), "\n")
		if m := lineOf.FindStringSubmatch(lines[len(lines)-1]); len(lines) != 3 || m == nil {
			t.Errorf("%q: %q", s, p.out.String())
		}
	})
}

// metricNames are all metrics there are, for a check of dashboards and rules.
func metricNames() []string {
	var all []string
	for _, f := range families() {
		if f.kind == "histogram" {
			all = append(all, f.name+"_bucket", f.name+"_sum", f.name+"_count")
			continue
		}
		all = append(all, f.name)
	}
	return all
}
