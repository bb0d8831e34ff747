// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"homenode/internal/snapshot"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const countersFile = "/sys/module/homenode_pmu/parameters/counters"

// setCounters gives every CPU this many general counters until the test ends.
func setCounters(t *testing.T, g *Guest, n int) {
	t.Helper()
	before := strings.TrimSpace(mustRun(t, g, "cat", countersFile))
	mustRun(t, g, "sh", "-c", fmt.Sprintf("echo %d > %s", n, countersFile))
	t.Cleanup(func() { mustRun(t, g, "sh", "-c", "echo "+before+" > "+countersFile) })
}

// counted is one group of `homenode-lab groups`.
type counted struct {
	Enabled uint64 `json:"enabled_ns"`
	Running uint64 `json:"running_ns"`
	Counts  []uint64
}

// share is the part of the time in which the group was on the PMU.
func (c counted) share() float64 { return float64(c.Running) / float64(c.Enabled) }

// scaled is the count scaled up to the whole time.
func (c counted) scaled(i int) float64 { return float64(c.Counts[i]) / c.share() }

func groups(t *testing.T, g *Guest, load string, codes ...string) []counted {
	t.Helper()
	cmd := "homenode-lab groups --tid " + worker
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
	multiplexedOps   = 6_000_000 // some seconds: hundreds of the kernel's turns of 4 ms
	farChase         = "chase --ws 4MiB --ops 6000000 --warm-laps 0 --bind-cpu 0 --bind-mem 1"
	multiplexedShare = 0.1
)

// Three groups of three events that need a counter each; instructions need none. Remote
// loads are in each.
var crowd = []string{
	"2d3,8d1,10d1",    // L1 misses, L2 misses
	"2d3,412e,14a3",   // LLC misses, stall cycles
	"2d3,c0,1d3,81d0", // instructions, local loads, loads
}

// With room for all, nothing is scaled. On four counters the groups take turns:
//
//  1. Each is on the PMU for about a third of the time, and together they always are.
//  2. So the three groups' counts of one event add up to the full count.
//  3. Each scaled count equals the count with room for all.
//  4. No counter is lost over the turns: four events still fit.
func TestLabMultiplexing(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	setCounters(t, g, 9)
	mustRun(t, g, "sh", "-c", "echo homenode: multiplexing begins > /dev/kmsg")
	exact := groups(t, g, farChase, crowd...)
	for i, c := range exact {
		if c.Running != c.Enabled {
			t.Errorf("group %d: nine counters, and it was on the PMU for %d of %d ns", i, c.Running, c.Enabled)
		}
	}
	within(t, "remote loads, exactly", float64(exact[0].Counts[0]), multiplexedOps, 0.001)
	mustRun(t, g, "sh", "-c", "echo 4 > "+countersFile)
	if c := groups(t, g, farChase, "2d3,8d1,10d1,412e")[0]; c.Running != c.Enabled {
		t.Errorf("a group of four on four counters: %+v", c)
	}
	all := groups(t, g, farChase, crowd...)
	tookTurns(t, all)
	if c := groups(t, g, farChase, "2d3,8d1,10d1,412e")[0]; c.Running != c.Enabled { // 4
		t.Errorf("a group of four on four counters, later: %+v", c)
	}
	for i, c := range all {
		for j, want := range exact[i].Counts {
			judgeScaled(t, fmt.Sprintf("group %d, event %d", i, j), c.scaled(j), float64(want)) // 3
		}
	}
	if warned := mustRun(t, g, "sh", "-c", "dmesg | sed '1,/homenode: multiplexing begins/d' | grep -E 'WARNING|BUG:|Oops' | grep -v 'soft lockup' || true"); warned != "" {
		t.Errorf("the guest's kernel complains: %s", warned)
	}
}

// tookTurns judges 1 and 2.
func tookTurns(t *testing.T, all []counted) {
	t.Helper()
	sum, remote := 0.0, uint64(0)
	for i, c := range all {
		t.Logf("group %d: %.3f of %.2f s, counts %v", i, c.share(), float64(c.Enabled)/1e9, c.Counts)
		sum, remote = sum+c.share(), remote+c.Counts[0]
		if share := c.share(); share < 0.308 || share > 0.358 {
			t.Errorf("group %d was on the PMU for %.3f of the time, want a third", i, share)
		}
	}
	if sum < 0.97 || sum > 1.01 { // one group always fits; the kernel's time between turns belongs to no group
		t.Errorf("shares of the time add up to %.3f, want 1", sum)
	}
	within(t, "remote loads that the three saw", float64(remote), multiplexedOps, 0.005)
}

// judgeScaled checks a scaled count against its bound. Events that only happen
// during start-up may all fall into one turn.
func judgeScaled(t *testing.T, what string, got, want float64) {
	t.Helper()
	const few = multiplexedOps / 20.0
	switch {
	case want >= few:
		within(t, what, got, want, multiplexedShare)
	case got > few:
		t.Errorf("%s: %.0f, want next to none", what, got)
	}
}

// An event that needs no counter waits behind groups that found none: perf tries no more
// of the context's groups in that turn. So DRAM by node is exact where no group waits,
// and only there.
func TestLabMultiplexesWhatNeedsNoCounter(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	setCounters(t, g, 4)
	const lines = "1f0" // DRAM of node 1
	alone := groups(t, g, farChase, "2d3,8d1,10d1,412e", lines)[1]
	if alone.Running != alone.Enabled {
		t.Errorf("next to one group of four it was on the PMU for %d of %d ns", alone.Running, alone.Enabled)
	}
	within(t, "lines of node 1", float64(alone.Counts[0]), multiplexedOps, 0.01)
	crowded := groups(t, g, farChase, append(crowd, lines)...)[len(crowd)]
	t.Logf("next to three groups it was on the PMU for %.3f of the time", crowded.share())
	if crowded.Running == 0 || crowded.Running == crowded.Enabled {
		t.Errorf("it was on the PMU for %d of %d ns, want a part", crowded.Running, crowded.Enabled)
	}
}

// openScript ends the programs that have opened their groups; a refused one
// ends by itself.
const openScript = `rm -f /tmp/opened
homenode-lab groups --group %s --ready /tmp/opened & p=$!
while [ ! -e /tmp/opened ] && kill -0 $p 2>/dev/null; do sleep 0.05; done
kill $p 2>/dev/null; wait $p`

// A group that no turn could ever hold is refused. Fixed counters are not among the
// four, nor are samplers, of which there are four, too.
func TestLabRefusesGroupsThatNeverFit(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	setCounters(t, g, 4)
	open := func(codes string) Result {
		t.Helper()
		r, err := g.Run(t.Context(), "sh", "-c", fmt.Sprintf(openScript, codes))
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

// twiceScript has two `homenode stat` watch a cgroup at once, for which no CPU has enough
// counters, while its load does all of its work. However it ends, it leaves no process,
// no cgroup and no model that is on: other tests share the guest.
const twiceScript = `
L= K= S1= S2=
clean() {
	for pid in $L $K $S1 $S2; do kill -9 $pid 2> /dev/null; done
	wait
	homenode-load control off --phase 0 > /dev/null
	cd / && rmdir /sys/fs/cgroup/crowded
}
trap clean EXIT
fail() { echo "$1" >&2; exit 1; }
cd /sys/fs/cgroup && mkdir -p crowded
rm -f /tmp/crowded*
# inside before it binds itself: to be moved undoes that; the sleep keeps the cgroup
sh -c 'echo $$ > crowded/cgroup.procs; exec homenode-load %s --hold 7 --ready /tmp/crowded --perf dram1' > /tmp/crowded.load & L=$!
sleep 1000 & K=$!
echo $K > crowded/cgroup.procs
n=0; while [ ! -e /tmp/crowded ]; do kill -0 $L && [ $((n = n + 1)) -lt 1500 ] || fail "the load is not ready"; sleep 0.02; done
for i in 1 2; do homenode stat --cgroup /crowded --interval %ds -o json > /tmp/crowded.$i & eval S$i=$!; done
events() { ls -l /proc/$1/fd 2>/dev/null | grep -c perf_event; }
for i in 1 2; do n=0; eval pid=\$S$i; while [ $(events $pid) -lt 24 ]; do [ $((n = n + 1)) -lt 200 ] || fail "reader $i does not count"; sleep 0.05; done; done
sleep 0.5
homenode-load control on --phase 7 > /dev/null
wait $L && L= || fail "the load failed"
[ -d /proc/$S1 ] && [ -d /proc/$S2 ] || fail "the load took longer than the interval"
homenode-load control off --phase 0 > /dev/null
wait $S1 && S1= || fail "reader 1 failed"
wait $S2 && S2= || fail "reader 2 failed"
cat /tmp/crowded.load /tmp/crowded.1 /tmp/crowded.2
`

// The product's own groups share four counters. Each of two readers reports the load's
// work, and that the figure is an estimate. They take turns, so each saw half of the
// loads, and scaled them by the time it had.
func TestLabProductScales(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	setCounters(t, g, 4)
	a, b := readTwice(t, g)
	within(t, "remote loads, harmonic mean of the readers", 2/(1/a+1/b), multiplexedOps, 0.05)
	judgeScaled(t, "remote loads, first reader", a, multiplexedOps)
	judgeScaled(t, "remote loads, second reader", b, multiplexedOps)
}

// watchedTwice is the script's output. The load takes some 45 s of the guest's clock.
func watchedTwice(t *testing.T, g *Guest) string {
	t.Helper()
	ctx, cancel := g.Within(t.Context(), patience)
	defer cancel()
	r, err := g.Run(ctx, "sh", "-c", fmt.Sprintf(twiceScript, farChase, 60))
	if err != nil || r.Exit != 0 {
		t.Fatalf("two readers: exit %d, %v\n%s%s", r.Exit, err, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// readTwice returns the remote loads that each of two readers reported, scaled.
func readTwice(t *testing.T, g *Guest) (first, second float64) {
	t.Helper()
	var told [2]float64
	for i, w := range twoReaders(t, g) {
		t.Logf("reader %d: %+v local, %+v remote", i, w.LocalLoads, w.RemoteLoads)
		n, ok := w.RemoteLoads.Get()
		if !ok || w.RemoteLoads.How != unit.HowEstimated || !strings.Contains(w.RemoteLoads.From, "multiplexed and scaled") {
			t.Fatalf("reader %d: remote loads are not marked as scaled: %+v", i, w.RemoteLoads)
		}
		if n, ok := w.LocalLoads.Get(); !ok || n > multiplexedOps/20 {
			t.Errorf("reader %d: local loads: %+v, want few", i, w.LocalLoads)
		}
		told[i] = float64(n)
	}
	return told[0], told[1]
}

// twoReaders are the windows of each.
func twoReaders(t *testing.T, g *Guest) (windows [2]window.Workload) {
	t.Helper()
	out := json.NewDecoder(strings.NewReader(watchedTwice(t, g)))
	var load loadReport
	if err := out.Decode(&load); err != nil {
		t.Fatal(err)
	}
	within(t, "lines of node 1", load.Perf["dram1"], multiplexedOps, 0.01)
	for i := range windows {
		var s snapshot.Snapshot
		if err := out.Decode(&s); err != nil {
			t.Fatal(err)
		}
		w, ok := s.Window.Workload("/crowded")
		if !ok {
			t.Fatal("no workload /crowded")
		}
		windows[i] = w
	}
	return windows
}
