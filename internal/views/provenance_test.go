// SPDX-License-Identifier: Apache-2.0

package views

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"homenode/internal/action"
	"homenode/internal/agent"
	"homenode/internal/machine"
	"homenode/internal/render"
	"homenode/internal/report"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/tui"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// fourSources are four workloads whose figures are each known in one way, after which
// the workload is named. No other figure on a screen looks like these figures.
func fourSources() window.Window {
	w := window.Window{Schema: window.Schema, Seq: 1, At: time.Unix(1e9, 0).UTC(), Length: 2 * time.Second}
	for i := range 2 {
		w.Nodes = append(w.Nodes, window.Node{ID: i, CPUs: set.FromCPUs(2*i, 2*i+1), CPUBusy: unit.UnknownValue[float64]("x")})
	}
	for _, how := range []unit.Source{unit.HowEstimated, unit.HowMeasured, unit.HowModelled, unit.HowUnknown} {
		w.Workloads = append(w.Workloads, of(how))
	}
	return w
}

func of(how unit.Source) window.Workload {
	wl := window.Workload{ID: "/" + how.String(), Owner: "none"}
	if how == unit.HowUnknown {
		return wl
	}
	n := func(v uint64) unit.Value[uint64] { return unit.ValueOf(v, how, "from-"+how.String()) }
	wl.Tasks, wl.CPU = unit.ValueOf(3, how, "x"), unit.ValueOf(1.5, how, "x")
	wl.CPUByNode = []unit.Value[float64]{unit.ValueOf(0.5, how, "x"), unit.ValueOf(1.0, how, "x")}
	wl.AnonByNode = []unit.Value[unit.Bytes]{unit.ValueOf(unit.MiB, how, "x"), unit.ValueOf(unit.MiB, how, "x")}
	wl.FileByNode = wl.AnonByNode
	if how == unit.HowEstimated {
		wl.LocalFaults, wl.RemoteFaults = n(730), n(270)
		return wl
	}
	wl.LocalLoads, wl.RemoteLoads, wl.Cycles, wl.StallCycles = n(730), n(270), n(1000), n(370)
	return wl
}

// Every output says how each figure is known, and marks an unknown one; it never
// prints 0 for it.
func TestProvenanceOnEveryFace(t *testing.T) {
	w := fourSources()
	faces := map[string]struct {
		text string
		want map[string]string // pattern by how, in the line that names the workload
	}{
		"status": {statusFace(t, w), map[string]string{
			"estimated": `1\.50~ .*73\.0% +estimated ±28% .*MiB~`, "modelled": `1\.50\^ .*73\.0% +modelled .*MiB\^`, "measured": `1\.50  .*73\.0% +measured .*MiB `,
			"unknown": `unknown .*unknown +unknown`}},
		"stat": {statFace(t, w), map[string]string{
			"estimated": `0\.50/1\.00 ~ .*73\.0% est\. ± 28%`, "modelled": `0\.50/1\.00 \^ .*73\.0% modelled`, "measured": `0\.50/1\.00  .*73\.0% measured`,
			"unknown": `unknown +unknown +unknown`}},
		"top": {topFace(t, w), map[string]string{
			"estimated": `1\.50?e .*73%e`, "modelled": `1\.50?M .*73%M`, "measured": `1\.50? .*73%m`, "unknown": `\? .*\?`}},
	}
	for face, f := range faces {
		for how, want := range f.want {
			line := lineWith(f.text, "/"+how)
			if !regexp.MustCompile(want).MatchString(line) {
				t.Errorf("%s, %s: %q does not match %s in\n%s", face, how, line, want, f.text)
			}
			if how == "unknown" && regexp.MustCompile(`(^|[^\d.])0(\.0+)?%?([^\d.]|$)`).MatchString(strings.ReplaceAll(line, "/unknown", "")) {
				t.Errorf("%s: unknown is a number in %q", face, line)
			}
		}
	}
}

// Each workload alone: `stat --workload`, and JSON.
func TestProvenanceOfOne(t *testing.T) {
	w := fourSources()
	for _, wl := range w.Workloads {
		how := strings.TrimPrefix(wl.ID, "/")
		var out strings.Builder
		if err := report.Workload(&out, snapshotOf(w), wl.ID, render.TextOptions{Width: 300, UTF8: true}); err != nil {
			t.Fatal(err)
		}
		want := "73.0% of its DRAM reads are local (" + how
		if how == "unknown" {
			want = "share of local DRAM reads: unknown ("
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("stat --workload: no %q in\n%s", want, out.String())
		}
		text, err := json.Marshal(agent.WorkloadStatus{ID: wl.ID, Features: window.FeaturesOf(wl, w.Length)})
		if err != nil {
			t.Fatal(err)
		}
		value := map[bool]string{true: "0.73", false: "null"}[how != "unknown"]
		if want := fmt.Sprintf(`"local_access_ratio":{"value":%s,"how":"%s"`, value, how); !strings.Contains(string(text), want) {
			t.Errorf("JSON: no %s in %s", want, text)
		}
		if has := strings.Contains(string(text), `"local_access_error":0.28`); has != (how == "estimated") {
			t.Errorf("JSON of %s: %s", how, text)
		}
		var why strings.Builder
		Why(&why, agent.WorkloadStatus{ID: wl.ID, Features: window.FeaturesOf(wl, w.Length), Reason: action.Reason{Rule: "s", Numbers: []action.Number{
			{Name: "local_access_ratio", Value: func() unit.Value[float64] {
				v := window.LocalAccessRatio(&wl)
				if !v.Known() {
					return unit.UnknownValue[float64](v.From)
				}
				return unit.ValueOf(float64(v.Or(0)), v.How, v.From)
			}()}}}})
		if !strings.Contains(why.String(), how) || strings.Contains(why.String(), "± 28") != (how == "estimated") {
			t.Errorf("why, %s:\n%s", how, why.String())
		}
	}
}

func lineWith(text, word string) string {
	for _, l := range strings.Split(text, "\n") {
		if strings.Contains(l, word) {
			return l
		}
	}
	return ""
}

func statusFace(t *testing.T, w window.Window) string {
	s := agent.Status{Window: w}
	for _, wl := range w.Workloads {
		s.Workloads = append(s.Workloads, agent.WorkloadStatus{ID: wl.ID, Features: window.FeaturesOf(wl, w.Length)})
	}
	var out strings.Builder
	if err := Status(&out, s, wide); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func snapshotOf(w window.Window) snapshot.Snapshot {
	return snapshot.Snapshot{Schema: snapshot.Schema, Length: w.Length, Window: w, Machine: twoNodes(), Nodes: make([]snapshot.Node, 2)}
}

func twoNodes() (m machine.Machine) {
	for i := range 2 {
		m.Nodes = append(m.Nodes, machine.Node{ID: i, CPUs: set.FromCPUs(2*i, 2*i+1)})
		for cpu := range m.Nodes[i].CPUs.All() {
			m.CPUs = append(m.CPUs, machine.CPU{ID: cpu, Online: true, Node: unit.Some(i)})
		}
	}
	return m
}

func statFace(t *testing.T, w window.Window) string {
	var out strings.Builder
	if err := report.Host(&out, snapshotOf(w), render.TextOptions{Width: 200, UTF8: true}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func topFace(t *testing.T, w window.Window) string {
	text, err := tui.Once(context.Background(), tui.Options{Source: tui.NewReplay(window.Recording{Machine: twoNodes(), Period: w.Length, Windows: []window.Window{w}})}, 200, 50)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A ratio of counts that were scaled up from a part of the time is an estimate with
// an unknown error. The output says that too.
func TestKnownHow(t *testing.T) {
	ratio := func(how unit.Source) window.Features {
		return window.FeaturesOf(window.Workload{LocalLoads: unit.ValueOf(uint64(3), how, "x"), RemoteLoads: unit.ValueOf(uint64(1), how, "x")}, time.Second)
	}
	for how, want := range map[unit.Source]string{unit.HowEstimated: "estimated ±?", unit.HowMeasured: "measured", unit.HowModelled: "modelled"} {
		if got := knownHow(ratio(how)); got != want {
			t.Errorf("%v: %q", how, got)
		}
	}
	if got := knownHow(window.Features{}); got != "unknown" {
		t.Errorf("of nothing: %q", got)
	}
}
