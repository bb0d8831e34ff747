// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/sim/parity"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// estimateRow is one scenario on one shape: the counts, and the distance of the
// estimates from them.
type estimateRow struct {
	Shape    string        `json:"shape"`
	Scenario string        `json:"scenario"`
	Kind     string        `json:"kind"`
	Loads    []string      `json:"loads"`
	Still    estimatePhase `json:"still"`     // kernel.numa_balancing off: nothing moves
	Balanced estimatePhase `json:"balancing"` // on
}

// estimatePhase are means over windows in which both are known.
type estimatePhase struct {
	Windows    int               `json:"windows"`
	DRAM       float64           `json:"dram_reads_per_cpu_second"`
	Exact      unit.Opt[float64] `json:"exact"`
	Pages      unit.Opt[float64] `json:"pages"` // CPU × page estimate
	PagesError unit.Opt[float64] `json:"pages_error"`
	Hints      unit.Opt[float64] `json:"hints"`
	HintsError unit.Opt[float64] `json:"hints_error"`
	HintsKnown int               `json:"hints_known_windows"`
	HintsWhy   string            `json:"hints_unknown_because,omitempty"`
	Each       []estimateWindow  `json:"each"`
}

// estimateWindow is one window: the raw data for any other judgement.
type estimateWindow struct {
	Exact float64           `json:"exact"`
	Pages unit.Opt[float64] `json:"pages"`
	Hints unit.Opt[float64] `json:"hints"`
	Loads float64           `json:"dram_reads"`
	CPU   []float64         `json:"cpu_by_node"`
	Bytes []unit.Bytes      `json:"bytes_by_node"`
}

// estimateFile is build/bench/estimate.json.
type estimateFile struct {
	Schema int           `json:"schema"`
	How    string        `json:"how"`
	Origin parity.Origin `json:"origin"`
	Rows   []estimateRow `json:"rows"`
}

// TestBenchEstimate measures how good the estimates of the local access ratio are
// (scripts/bench-estimate.sh). HOMENODE_ESTIMATE names the record, to which it adds what
// is missing there. HOMENODE_ESTIMATE_ONLY is a part of the names.
func TestBenchEstimate(t *testing.T) {
	path := os.Getenv("HOMENODE_ESTIMATE")
	if path == "" {
		t.Skip("HOMENODE_ESTIMATE is not set to the record: this is a measurement of scripts/bench-estimate.sh")
	}
	record := estimateFile{Schema: 1, How: "modelled (lab): exact counts"}
	if data, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(data, &record); err != nil {
			t.Fatal(err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, shape := range []string{"two", "four"} {
		for _, s := range estimateScenarios(shapeNamed(t, shape)) {
			done := slices.ContainsFunc(record.Rows, func(r estimateRow) bool { return r.Shape == shape && r.Scenario == s.Name })
			if done || !strings.Contains(shape+"/"+s.Name, os.Getenv("HOMENODE_ESTIMATE_ONLY")) {
				continue
			}
			t.Run(shape+"/"+s.Name, func(t *testing.T) { // whose end passes the guest on to the next
				g := guest(t, shape, "v2")
				row, err := tryEstimate(t.Context(), g, shape, s)
				if err != nil {
					t.Fatal(err)
				}
				record.Origin = originOf(t, g)
				record.Rows = append(record.Rows, row)
				writeResults(t, path, record)
				fmt.Println(row)
			})
		}
	}
	printEstimates(os.Stdout, record)
}

func (r estimateRow) String() string {
	p := func(v unit.Opt[float64]) string {
		if f, ok := v.Get(); ok {
			return fmt.Sprintf("%5.3f", f)
		}
		return "    ?"
	}
	return fmt.Sprintf("%-5s %-22s still: exact %s pages %s (%s)  balancing: exact %s pages %s (%s) hints %s (%s) %d/%d %s", r.Shape, r.Scenario,
		p(r.Still.Exact), p(r.Still.Pages), p(r.Still.PagesError), p(r.Balanced.Exact), p(r.Balanced.Pages), p(r.Balanced.PagesError),
		p(r.Balanced.Hints), p(r.Balanced.HintsError), r.Balanced.HintsKnown, r.Balanced.Windows, r.Balanced.HintsWhy)
}

// estimateScript runs a scenario twice over: with the kernel's balancing off, and on.
// Scans come every 0.2 to 1 s of CPU time, not every 1 to 60 s: CPUs of the lab do in
// a second what others do in a twentieth (docs/decisions/0029-estimates.md).
// The workload has the shape's CPUs but those kept for daemons, which are faster.
func estimateScript(shape machine.Shape, s estimateScenario) string {
	var b strings.Builder
	b.WriteString(`set -u
rm -rf /tmp/est; mkdir -p /tmp/est; cd /tmp/est
cg=/sys/fs/cgroup/est; nb=/sys/kernel/debug/sched/numa_balancing
mkdir -p $cg; echo "+cpuset +cpu +memory" > $cg/cgroup.subtree_control; mkdir -p $cg/x
echo ` + shape.CPUs().Minus(shape.Housekeeping).String() + ` > $cg/x/cpuset.cpus
echo 200 > $nb/scan_period_min_ms; echo 1000 > $nb/scan_period_max_ms; echo 100 > $nb/scan_delay_ms
echo 0 > /proc/sys/kernel/numa_balancing
`)
	if s.Mems != "" {
		b.WriteString("echo " + s.Mems + " > $cg/x/cpuset.mems\n")
	}
	for i, l := range s.Loads {
		ready := ""
		if strings.Contains(l, "pagecache") {
			l = strings.Replace(l, "; sleep", " > /dev/null; echo $$ > p"+fmt.Sprint(i)+"; sleep", 1)
		} else {
			ready = fmt.Sprintf(" --ready p%d", i)
		}
		fmt.Fprintf(&b, "sh -c 'echo $$ > /sys/fs/cgroup/est/x/cgroup.procs; %s%s' < /dev/null > o%d 2>&1 &\n", l, ready, i)
	}
	for i := range s.Loads {
		fmt.Fprintf(&b, "n=0; until [ -e p%d ]; do n=$((n + 1)); [ $n -lt 300 ] || { cat o%d >&2; exit 1; }; sleep 0.1; done\n", i, i)
	}
	b.WriteString("pids=$(cat p?)\n" + s.After + "\n")
	b.WriteString(`homenode-load control on > /dev/null
record() { timeout 100 homenode record --windows $1 --for $2 --period 1s --workload /est/x --hint-faults always < /dev/null > /dev/null 2> r.err || { cat r.err >&2; exit 1; }; }
record still 2s
echo 1 > /proc/sys/kernel/numa_balancing
record on 6s
echo 0 > /proc/sys/kernel/numa_balancing
homenode-load control off > /dev/null
kill $(cat $cg/x/cgroup.procs); wait
n=0; until rmdir $cg/x 2> /dev/null; do n=$((n + 1)); [ $n -lt 50 ] || break; sleep 0.1; done
echo == still; cat still; echo == on; cat on
rm -rf /tmp/est
`)
	return b.String()
}

func tryEstimate(ctx context.Context, g *Guest, shape string, s estimateScenario) (estimateRow, error) {
	ctx, cancel := g.Within(ctx, patience)
	defer cancel()
	out, err := g.Run(ctx, "sh", "-c", estimateScript(g.Shape, s))
	if err != nil || out.Exit != 0 {
		return estimateRow{}, fmt.Errorf("exit %d, %v: %.500s", out.Exit, err, out.Stderr)
	}
	in := sections(out.Stdout)
	row := estimateRow{Shape: shape, Scenario: s.Name, Kind: s.Kind, Loads: s.Loads}
	for _, p := range []struct {
		name string
		into *estimatePhase
	}{{"still", &row.Still}, {"on", &row.Balanced}} {
		rec, err := window.ReadRecording(strings.NewReader(in[p.name]))
		if err != nil {
			return row, fmt.Errorf("%s: %w: %.300q", p.name, err, in[p.name])
		}
		if *p.into, err = judgeEstimate(rec); err != nil {
			return row, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return row, nil
}

// judgeEstimate compares, window by window, the counts with the estimate that the same
// window gives without them.
func judgeEstimate(rec window.Recording) (p estimatePhase, err error) {
	var exact, pages, pagesOff, hints, hintsOff mean
	var reads, cpu float64
	for _, w := range rec.Windows {
		wl, ok := w.Workload("/est/x")
		all, counted := wl.Loads()
		if !ok || !counted || all == 0 {
			err = fmt.Errorf("window %d: nothing was counted: %v, %v", w.Seq, wl.LocalLoads, w.Problems)
			continue
		}
		want := 1 - float64(wl.RemoteLoads.Or(0))/all
		p.Windows++
		each := estimateWindow{Exact: want, Loads: all}
		for _, c := range wl.CPUByNode {
			each.CPU = append(each.CPU, c.Or(0))
		}
		each.Bytes, _ = wl.PagesByNode()
		exact.add(want)
		reads, cpu = reads+all, cpu+wl.CPU.Or(0)*w.Length.Seconds()
		f := window.FeaturesOf(wl, w.Length)
		if v, ok := f.LocalPageRatio.Get(); ok {
			each.Pages = unit.Some(float64(v))
			pages.add(float64(v))
			pagesOff.add(math.Abs(float64(v) - want))
		}
		local, okL := wl.LocalFaults.Get()
		remote, okR := wl.RemoteFaults.Get()
		if okL && okR && local+remote > 0 {
			v := float64(local) / float64(local+remote)
			each.Hints = unit.Some(v)
			hints.add(v)
			hintsOff.add(math.Abs(v - want))
		} else {
			p.HintsWhy = wl.LocalFaults.From
		}
		p.Each = append(p.Each, each)
	}
	p.Exact, p.Pages, p.PagesError = exact.value(), pages.value(), pagesOff.value()
	p.Hints, p.HintsError, p.HintsKnown = hints.value(), hintsOff.value(), hints.n
	p.DRAM = math.Round(reads / max(cpu, 1e-9))
	if p.Windows > 0 {
		err = nil
	}
	return p, err
}

type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

func (m mean) value() unit.Opt[float64] {
	return unit.OptOf(math.Round(m.sum/float64(max(1, m.n))*1e4)/1e4, m.n > 0)
}

// If everything is on one node, the CPU × page estimate is right. If each thread has
// memory of its own, that estimate is wrong, and hint faults are right; hint faults
// also see pages that the kernel may not move.
func TestLabEstimate(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	tried := 0
	for _, s := range estimateScenarios(g.Shape) {
		if !slices.Contains([]string{"private-local", "private-each-local", "held-private-remote"}, s.Name) {
			continue
		}
		r, err := tryEstimate(t.Context(), g, "two", s)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		t.Log(r)
		tried++
		off, b := r.Still.PagesError.Or(1), r.Balanced
		if apart := s.Name == "private-each-local"; apart != (off > 0.4) || !apart && off > 0.05 {
			t.Errorf("%s: CPU × pages is off by %.3f", s.Name, off)
		}
		if b.HintsKnown == 0 || b.HintsError.Or(1) > 0.1 {
			t.Errorf("%s: hint faults are off by %v (%s)", s.Name, b.HintsError, b.HintsWhy)
		}
	}
	if tried != 3 {
		t.Errorf("%d scenarios were tried", tried)
	}
}
