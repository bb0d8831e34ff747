// SPDX-License-Identifier: Apache-2.0

package views

import (
	"encoding/csv"
	"regexp"
	"strings"
	"testing"
	"time"

	"homenode/internal/render/field"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// dumped has two windows of one node, and a workload with a hostile name.
func dumped() window.Recording {
	var rec window.Recording
	for i := range 2 {
		rec.Windows = append(rec.Windows, window.Window{Seq: uint64(i + 1), At: time.Unix(1000+int64(i), 0), Length: time.Second,
			Nodes: []window.Node{{ID: 3, CPUBusy: unit.Measured(0.5, "t"), Memory: unit.Measured(unit.GiB, "t"), Free: unit.UnknownValue[unit.Bytes]("t")}},
			Workloads: []window.Workload{{ID: "=/a,\"b\n\x1b[31m", Service: "s", CPU: unit.Estimated(float64(i), "t"),
				AnonByNode: []unit.Value[unit.Bytes]{unit.Measured(unit.KiB, "t")}}},
		})
	}
	return rec
}

// Every figure of the registry has a row in each window; an unknown one has no value.
func TestDumpCSV(t *testing.T) {
	var out strings.Builder
	if err := DumpCSV(&out, dumped()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("a terminal obeys %q", out.String())
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 2*(len(field.Nodes)+len(field.Workloads)); len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	seen := map[string]string{}
	for _, r := range rows[1:] {
		if (r[8] == "") != (r[9] == "unknown") {
			t.Errorf("%v", r)
		}
		if r[1] == "2" {
			seen[r[6]] = strings.Join(r[7:], " ")
		}
		if r[2] == "workload" && !strings.HasPrefix(r[3], "'=") {
			t.Errorf("a spreadsheet computes %q", r[3])
		}
	}
	for id, want := range map[string]string{"cpu_busy": "CPUs 0.5 measured", "free_bytes": "bytes  unknown", "cpu": "CPUs 1 estimated", "anon_by_node": "bytes 1024 measured"} {
		if seen[id] != want {
			t.Errorf("%s: %q, want %q", id, seen[id], want)
		}
	}
}

var openMetric = regexp.MustCompile(`^(homenode_[a-z_]+)(?:\{(?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+\})? \S+ \d+\.\d{3}$`)

// Families and series are in one piece, samples by time, and the end is marked.
func TestDumpOpenMetrics(t *testing.T) {
	var out strings.Builder
	if err := DumpOpenMetrics(&out, dumped()); err != nil {
		t.Fatal(err)
	}
	family, families := "", map[string]bool{}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			family, _, _ = strings.Cut(rest, " ")
			if families[family] {
				t.Errorf("%s is in two pieces", family)
			}
			families[family] = true
			continue
		}
		if strings.HasPrefix(line, "# HELP "+family+" ") {
			continue
		}
		if m := openMetric.FindStringSubmatch(line); m == nil || m[1] != family {
			t.Errorf("in %s: %q", family, line)
		}
	}
	if lines[len(lines)-1] != "# EOF" || len(families) < 4 || families["homenode_node_free_bytes"] {
		t.Errorf("%v in\n%s", families, out.String())
	}
	const want = "homenode_node_busy_cpus{node=\"3\"} 0.5 1000.000\nhomenode_node_busy_cpus{node=\"3\"} 0.5 1001.000\n"
	if !strings.Contains(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}
