// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"homenode/internal/survey"
	"homenode/internal/unit"
)

// setCounters gives every CPU so many general counters until the test ends.
func setCounters(t *testing.T, g *Guest, n int) {
	t.Helper()
	const file = "/sys/module/homenode_pmu/parameters/counters"
	before := strings.TrimSpace(mustRun(t, g, "cat", file))
	mustRun(t, g, "sh", "-c", fmt.Sprintf("echo %d > %s", n, file))
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", "echo "+before+" > "+file) })
}

// counted is one group of `homenode lab groups`.
type counted struct {
	Enabled uint64 `json:"enabled_ns"`
	Running uint64 `json:"running_ns"`
	Counts  []uint64
}

// share is the part of the time in which the group was on the PMU.
func (c counted) share() float64 { return float64(c.Running) / float64(c.Enabled) }

// scaled is what the group would have counted in all the time.
func (c counted) scaled(i int) float64 { return float64(c.Counts[i]) / c.share() }

func groups(t *testing.T, g *Guest, load string, codes ...string) []counted {
	t.Helper()
	cmd := "homenode lab groups --tid " + worker
	for _, c := range codes {
		cmd += " --group " + c
	}
	w := watch(t, g, cmd, load)
	var all []counted
	if err := json.Unmarshal([]byte(w.json), &all); err != nil || len(all) != len(codes) {
		t.Fatalf("%v\n%s", err, w.json)
	}
	return all
}

const (
	multiplexedOps = 6_000_000 // some seconds: hundreds of the kernel's turns of 4 ms
	farChase       = "chase --ws 4MiB --ops 6000000 --warm-laps 0 --bind-cpu 0 --bind-mem 1"
	// A count is taken in a third of the time, on a host that is not ours alone: how
	// much work falls into that third is not quite a third of it.
	multiplexedShare = 0.1
)

// Three groups of three events on four counters take turns, and each scaled count
// is what one that is always there would have been: known, as the load is.
func TestLabMultiplexing(t *testing.T) {
	g := guest(t, "two", "v2")
	setCounters(t, g, 4)
	stalls := multiplexedOps * float64(g.Shape.Model.DRAMCycles[g.Shape.Distances[0][1]])
	all := groups(t, g, farChase,
		"81d0,8d1,10d1",   // loads, L1 misses, L2 misses
		"412e,2d3,14a3",   // LLC misses, remote loads, stall cycles
		"2d3,c0,1d3,81d0", // remote loads, instructions (not one of the four), local loads, loads
	)
	want := [][]float64{
		{multiplexedOps, multiplexedOps, multiplexedOps}, {multiplexedOps, multiplexedOps, stalls}, {multiplexedOps, 0, 0, multiplexedOps},
	}
	sum := 0.0
	for i, c := range all {
		t.Logf("group %d: %.3f of %.2f s, counts %v", i, c.share(), float64(c.Enabled)/1e9, c.Counts)
		sum += c.share()
		if c.Running == 0 || c.share() > 0.5 {
			t.Errorf("group %d was on the PMU for %.3f of the time, want a third", i, c.share())
			continue
		}
		for j, v := range want[i] {
			if v > 0 {
				within(t, fmt.Sprintf("group %d, event %d", i, j), c.scaled(j), v, multiplexedShare)
			}
		}
	}
	if sum < 0.9 || sum > 1.01 {
		t.Errorf("shares of the time add up to %.3f: only one of the groups fits at a time, and one always can", sum)
	}
	if c := all[2]; c.Running > 0 && c.scaled(2) > 0.01*multiplexedOps {
		t.Errorf("local loads: %.0f, want next to none", c.scaled(2))
	}
}

// With room for all, nothing is scaled, and counts are exact.
func TestLabCountersEnough(t *testing.T) {
	g := guest(t, "two", "v2")
	setCounters(t, g, 6)
	for i, c := range groups(t, g, "chase --ws 4MiB --ops 1000000 --warm-laps 0 --bind-cpu 0 --bind-mem 1", "81d0,412e,2d3", "2d3,412e,81d0") {
		if c.Running != c.Enabled {
			t.Errorf("group %d: %d of %d ns", i, c.Running, c.Enabled)
		}
		for _, n := range c.Counts {
			near(t, fmt.Sprintf("group %d", i), n, 1_000_000, 3000)
		}
	}
}

// A group that no turn could ever hold is refused; fixed counters are not of the
// four, nor are samplers, of which there are four, too.
func TestLabRefusesGroupsThatNeverFit(t *testing.T) {
	g := guest(t, "two", "v2")
	setCounters(t, g, 4)
	open := func(codes string) Result {
		t.Helper()
		r, err := g.Run(t.Context(), "timeout", "1", "homenode", "lab", "groups", "--group", codes)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for codes, event := range map[string]string{
		"81d0,82d0,8d1,10d1,412e":       "event 5",
		"c0,81d0,3c,82d0,8d1,10d1,412e": "event 7",
		"1cd,1cd,1cd,1cd,1cd":           "event 5",
		"860,1000860,80b0,4d2,4d3":      "event 5",
	} {
		if r := open(codes); r.Exit == 0 || !strings.Contains(r.Stderr, event) || !strings.Contains(r.Stderr, "invalid argument") {
			t.Errorf("%s: exit %d, %q, want invalid argument at %s", codes, r.Exit, r.Stderr, event)
		}
	}
	for _, codes := range []string{"c0,81d0,3c,82d0,8d1,10d1", "1cd,1cd,1cd,1cd,81d0,82d0,8d1,10d1", "80b0,860,1000860,4d2", "4d3,40d3,80d3,21d0", "40b0"} {
		if r := open(codes); r.Exit != 0 {
			t.Errorf("%s: exit %d: %s", codes, r.Exit, r.Stderr)
		}
	}
}

// twiceScript has `homenode stat` watch a cgroup twice over, which no CPU has
// counters for, while its load does all of its work.
const twiceScript = `
cd /sys/fs/cgroup && mkdir -p crowded
rm -f /tmp/crowded*
homenode-load %s --hold 7 --ready /tmp/crowded --perf dram1 > /tmp/crowded.load & L=$!
echo $L > crowded/cgroup.procs
while [ ! -e /tmp/crowded ]; do sleep 0.02; done
for i in 1 2; do homenode stat --cgroup /crowded --interval %ds -o json > /tmp/crowded.$i & eval S$i=$!; done
events() { ls -l /proc/$1/fd 2>/dev/null | grep -c perf_event; }
for i in 1 2; do n=0; eval pid=\$S$i; while [ $(events $pid) -lt 24 ]; do n=$((n + 1)); [ $n -lt 200 ] || exit 1; sleep 0.05; done; done
sleep 0.5
homenode-load control count --phase 7 > /dev/null
wait $L
[ -d /proc/$S1 ] && [ -d /proc/$S2 ] || { echo the load took longer than the interval >&2; exit 1; }
homenode-load control off --phase 0 > /dev/null
wait $S1; wait $S2
rmdir crowded
cat /tmp/crowded.load /tmp/crowded.1 /tmp/crowded.2
`

// The product's own groups share four counters: each of two readers tells what the
// load did, and that it is an estimate.
func TestLabProductScales(t *testing.T) {
	g := guest(t, "two", "v2")
	setCounters(t, g, 4)
	out := json.NewDecoder(strings.NewReader(mustRun(t, g, "sh", "-c", fmt.Sprintf(twiceScript, farChase, 15))))
	var load loadReport
	if err := out.Decode(&load); err != nil {
		t.Fatal(err)
	}
	within(t, "lines of node 1", load.Perf["dram1"], multiplexedOps, 0.01)
	for i := range 2 {
		var s survey.Survey
		if err := out.Decode(&s); err != nil {
			t.Fatal(err)
		}
		w, ok := s.Window.Workload("/crowded")
		if !ok {
			t.Fatal("no workload /crowded")
		}
		t.Logf("reader %d: %+v local, %+v remote", i, w.LocalLoads, w.RemoteLoads)
		remote := w.RemoteLoads
		within(t, fmt.Sprintf("reader %d: remote loads", i), float64(remote.Or(0)), multiplexedOps, multiplexedShare)
		if n, ok := w.LocalLoads.Get(); !ok || n > multiplexedOps/20 {
			t.Errorf("reader %d: local loads: %+v, want few", i, w.LocalLoads)
		}
		if remote.How != unit.HowEstimated || !strings.Contains(remote.From, "multiplexed and scaled") {
			t.Errorf("reader %d: remote loads are not marked as scaled: %+v", i, remote)
		}
	}
}
