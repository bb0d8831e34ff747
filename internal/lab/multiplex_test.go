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

const countersFile = "/sys/module/homenode_pmu/parameters/counters"

// setCounters gives every CPU so many general counters until the test ends.
func setCounters(t *testing.T, g *Guest, n int) {
	t.Helper()
	before := strings.TrimSpace(mustRun(t, g, "cat", countersFile))
	mustRun(t, g, "sh", "-c", fmt.Sprintf("echo %d > %s", n, countersFile))
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", "echo "+before+" > "+countersFile) })
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
	// A count is taken in a third of the time, on a host that is not ours alone: some
	// tenths of a second in which it ran something else fall to one group, as time
	// without work. Alone on its host, 3 %.
	multiplexedShare = 0.15
)

// Three groups of three events that want a counter each; instructions want none.
// Remote loads are in each.
var crowd = []string{
	"2d3,8d1,10d1",    // L1 misses, L2 misses
	"2d3,412e,14a3",   // LLC misses, stall cycles
	"2d3,c0,1d3,81d0", // instructions, local loads, loads
}

// With room for all, nothing is scaled. On four counters the groups take turns:
//
//  1. Each is on the PMU for about a third of the time, and between them always.
//  2. So what the three saw of one event adds up to all of it.
//  3. Each scaled count is what it was when there was room.
func TestLabMultiplexing(t *testing.T) {
	g := guest(t, "two", "v2")
	setCounters(t, g, 9)
	exact := groups(t, g, farChase, crowd...)
	for i, c := range exact {
		if c.Running != c.Enabled {
			t.Errorf("group %d: nine counters, and it was on the PMU for %d of %d ns", i, c.Running, c.Enabled)
		}
	}
	within(t, "remote loads, exactly", float64(exact[0].Counts[0]), multiplexedOps, 0.001)
	mustRun(t, g, "sh", "-c", "echo 4 > "+countersFile)
	sum, remote := 0.0, uint64(0)
	for i, c := range groups(t, g, farChase, crowd...) {
		t.Logf("group %d: %.3f of %.2f s, counts %v, with room %v", i, c.share(), float64(c.Enabled)/1e9, c.Counts, exact[i].Counts)
		sum, remote = sum+c.share(), remote+c.Counts[0]
		if c.Running == 0 || c.share() > 0.5 { // 1
			t.Errorf("group %d was on the PMU for %.3f of the time, want a third", i, c.share())
			continue
		}
		for j, want := range exact[i].Counts {
			// few local loads: those of starting up, which may all fall into one turn
			if want > multiplexedOps/20 {
				within(t, fmt.Sprintf("group %d, event %d", i, j), c.scaled(j), float64(want), multiplexedShare) // 3
			} else if c.scaled(j) > multiplexedOps/20 {
				t.Errorf("group %d, event %d: %.0f, want next to none", i, j, c.scaled(j))
			}
		}
	}
	if sum < 0.97 || sum > 1.01 { // 1
		t.Errorf("shares of the time add up to %.3f: only one of the groups fits at a time, and one always can", sum)
	}
	within(t, "remote loads that the three saw", float64(remote), multiplexedOps, 0.005) // 2
	// no counter got lost over the turns: four events still fit
	if c := groups(t, g, farChase, "2d3,8d1,10d1,412e")[0]; c.Running != c.Enabled || c.Counts[0] < multiplexedOps {
		t.Errorf("a group of four on four counters: %+v", c)
	}
	if warned := mustRun(t, g, "sh", "-c", "dmesg | grep -E 'WARNING|BUG:|Call Trace' || true"); warned != "" {
		t.Errorf("the guest's kernel complains: %s", warned)
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
# inside before it binds itself: to be moved undoes that; the sleep keeps the cgroup
sh -c 'echo $$ > crowded/cgroup.procs; exec homenode-load %s --hold 7 --ready /tmp/crowded --perf dram1' > /tmp/crowded.load & L=$!
sleep 1000 & K=$!
echo $K > crowded/cgroup.procs
while [ ! -e /tmp/crowded ]; do sleep 0.02; done
for i in 1 2; do homenode stat --cgroup /crowded --interval %ds -o json > /tmp/crowded.$i & eval S$i=$!; done
events() { ls -l /proc/$1/fd 2>/dev/null | grep -c perf_event; }
for i in 1 2; do n=0; eval pid=\$S$i; while [ $(events $pid) -lt 24 ]; do n=$((n + 1)); [ $n -lt 200 ] || exit 1; sleep 0.05; done; done
sleep 0.5
homenode-load control count --phase 7 > /dev/null
wait $L
[ -d /proc/$S1 ] && [ -d /proc/$S2 ] || { echo the load took longer than the interval >&2; exit 1; }
homenode-load control off --phase 0 > /dev/null
wait $S1 || exit 1; wait $S2 || exit 1
kill $K; wait $K
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
	both := 0.0
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
		both += float64(remote.Or(0))
		within(t, fmt.Sprintf("reader %d: remote loads", i), float64(remote.Or(0)), multiplexedOps, multiplexedShare)
		if n, ok := w.LocalLoads.Get(); !ok || n > multiplexedOps/20 {
			t.Errorf("reader %d: local loads: %+v, want few", i, w.LocalLoads)
		}
		if remote.How != unit.HowEstimated || !strings.Contains(remote.From, "multiplexed and scaled") {
			t.Errorf("reader %d: remote loads are not marked as scaled: %+v", i, remote)
		}
	}
	// what one missed, the other saw
	within(t, "remote loads, mean of the readers", both/2, multiplexedOps, 0.05)
}
