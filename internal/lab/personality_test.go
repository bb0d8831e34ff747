// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"homenode/internal/kernel/kerneltest"
	"homenode/internal/kernel/perf"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// likeness is a CPU that a guest looks like, and what homenode makes of it.
type likeness struct {
	name, table string
	ways        []string // of `homenode-lab count`
	model       string   // the way to count that is the truth
	local       string   // source of local reads in a window; "" = the CPU cannot tell
	reads       string   // source of a controller's reads; "" = not told from writes
	thread      float64  // tolerance of a prober's counts
	files       int      // of perf, that `homenode doctor` holds: the cgroup, controllers, samples
}

var likenesses = []likeness{
	{"sapphire-rapids", "intel-spr", []string{"perf", "bpf"}, "model", "perf cpu/config=0x12a,config1=0x104004477/", "perf uncore_imc/UNC_M_CAS_COUNT.RD/", 0.02, 24 + 32 + 12},
	{"zen-4", "amd-zen4", []string{"perf", "bpf"}, "model", "perf r0844", "perf amd_umc/umc_cas_cmd.rd/", 0.05, 24 + 48 + 4},
	{"neoverse-n2", "arm-neoverse-n2", []string{"perf", "bpf"}, "model", "", "", 0.02, 16 + 2},
}

// like is a guest of two nodes that looks like this CPU, for this test alone.
func like(t *testing.T, name string) *Guest {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no lab boot")
	}
	o := labOptionsFor(t, "two", "v2")
	o.Personality = name
	return shared(t, "two/v2/"+name, o)
}

func TestPersonalitiesHaveLikenesses(t *testing.T) {
	for i, l := range likenesses {
		if Personalities[i] != l.name || len(Personalities) != len(likenesses) {
			t.Errorf("%v, and %s is tested", Personalities, l.name)
		}
	}
}

// thorough skips a test that takes more than half a minute, except in test-full.
func thorough(t *testing.T) {
	t.Helper()
	if os.Getenv("HOMENODE_PERSONALITIES") == "" {
		t.Skip("HOMENODE_PERSONALITIES is not set: only scripts/test-full.sh counts like every CPU")
	}
}

func TestLabLooksAlike(t *testing.T) {
	t.Parallel()
	for _, l := range likenesses {
		t.Run(l.name, func(t *testing.T) { looksAlike(t, like(t, l.name), l) })
	}
}

// A real kernel's perf_event_open, with the PMUs of a CPU that homenode knows from lists
// only: what it opens, counts and says is right by the lab's own PMU, which counts beside.
func TestLabPersonalities(t *testing.T) {
	thorough(t)
	t.Parallel()
	for _, l := range likenesses {
		t.Run(l.name, func(t *testing.T) {
			g := like(t, l.name)
			countsAlike(t, g, l)
			windowOf(t, g, l)
			threadOf(t, g, l)
		})
	}
}

// looksAlike compares the guest's sysfs with the fake tree of the same CPU on which the
// fast tests run: two fakes that differ are both in doubt.
func looksAlike(t *testing.T, g *Guest, l likeness) {
	t.Helper()
	var list struct{ Table string }
	if err := json.Unmarshal([]byte(mustRun(t, g, "homenode", "events", "-o", "json")), &list); err != nil || list.Table != l.table {
		t.Errorf("homenode takes the CPU for %q, %v; want %s", list.Table, err, l.table)
	}
	files := map[string]string{}
	for file, text := range kerneltest.CPUTree(l.name) {
		// types are the kernel's numbers, CPUs the machine's; free-running counters are
		// not the controllers'
		number := strings.HasSuffix(file, "/type") && !strings.HasSuffix(file, "/format/type") || strings.HasSuffix(file, "/cpumask")
		if strings.HasPrefix(file, "/sys/") && !number && !strings.Contains(file, "free_running") {
			files[file] = strings.TrimSpace(text)
		}
	}
	found := mustRun(t, g, append([]string{"grep", "-H", "."}, slices.Sorted(maps.Keys(files))...)...)
	compared := 0
	for line := range strings.Lines(found) {
		file, text, _ := strings.Cut(strings.TrimSpace(line), ":")
		if compared++; text != files[file] {
			t.Errorf("%s is %q in the guest, %q in the fake tree", file, text, files[file])
		}
	}
	if compared != len(files) || compared < 5 {
		t.Errorf("%d files of %d were compared", compared, len(files))
	}
}

// countsAlike counts a million reads of DRAM of each node, in a cgroup each, by homenode's
// events and by the lab's own.
func countsAlike(t *testing.T, g *Guest, l likeness) {
	t.Helper()
	const load = "homenode-load chase --threads 1 --ws 4MiB --ops 1000000 --bind-cpu %d --bind-mem %d"
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	for _, how := range l.ways {
		r := countWhile(t, g, "", []string{"--user", "--how", l.model, "--how", how}, fmt.Sprintf(load, 2, 1), fmt.Sprintf(load, 3, 0))
		for dir, truth := range r.Cgroups[l.model] {
			near := truth[atLocal]
			if strings.HasSuffix(dir, "1") {
				near = truth[atRemote]
			}
			if near < countedOps {
				t.Errorf("%s: %d reads by the model of a million", dir, near)
			}
			sameAsModel(t, fmt.Sprintf("%s by %s", dir, how), l, r.Cgroups[how][dir], truth, r.Scaled[how][dir])
		}
		if len(r.Cgroups[l.model]) != 2 {
			t.Errorf("%s: %+v", how, r)
		}
	}
}

// sameAsModel holds every field that the CPU has to a thousandth. perf's may be scaled up
// where its two times differ by more than that, as they do by the switches of so many
// events at 50 MHz; scaled is by how much on one of the CPUs.
func sameAsModel(t *testing.T, what string, l likeness, got, truth []uint64, scaled float64) {
	t.Helper()
	if scaled > 1.05 {
		t.Errorf("%s: scaled by %.4f, as if its events did not fit", what, scaled)
	}
	compared := 0
	for f := range int(perf.Clock) {
		switch have, want := float64(got[f]), float64(truth[f]); {
		case l.local == "" && (f == atLocal || f == atRemote):
			if have != 0 {
				t.Errorf("%s: %.0f reads by node, which this CPU cannot tell", what, have)
			}
		case want < 100_000: // the other node's: next to none
			if have > scaled*want+1000 {
				t.Errorf("%s, event %d: %.0f, %.0f by the model", what, f, have, want)
			}
		default:
			compared++
			if have < 0.999*want || have > 1.001*scaled*want {
				t.Errorf("%s, event %d: %.0f, %.0f by the model, scaled by at most %.4f", what, f, have, want, scaled)
			}
		}
	}
	if compared < 3 {
		t.Errorf("%s: only %d counts were compared", what, compared)
	}
}

// likeScript has `homenode doctor` watch a cgroup and the memory controllers, and sample,
// while the cgroup's load does all of its work. It prints the model's status before and after, its counts of
// the cgroup, and the snapshot.
const likeScript = `
L= K= S= M=
clean() {
	for pid in $L $K $S $M; do kill -9 $pid 2> /dev/null; done
	wait
	homenode-load control off --phase 0 > /dev/null
	cd / && rmdir /sys/fs/cgroup/like
}
trap clean EXIT
fail() { echo "$1" >&2; exit 1; }
cd /sys/fs/cgroup && mkdir -p like
rm -f /tmp/like*
sh -c 'echo $$ > like/cgroup.procs; exec homenode-load chase --ws 4MiB --ops %d --warm-laps 0 --bind-cpu 3 --bind-mem 0 --hold 7 --ready /tmp/like' > /tmp/like.load & L=$!
sleep 1000 & K=$!
echo $K > like/cgroup.procs
n=0; while [ ! -e /tmp/like ]; do kill -0 $L && [ $((n = n + 1)) -lt 1500 ] || fail "the load is not ready"; sleep 0.02; done
homenode-lab count --how %s --cgroup /sys/fs/cgroup/like --ready /tmp/like.ready > /tmp/like.model & M=$!
homenode doctor --for 40s --save /tmp/like.json -o json > /tmp/like.out 2> /tmp/like.err & S=$!
events() { ls -l /proc/$S/fd 2>/dev/null | grep -c perf_event; }
n=0; while [ $(events) -lt %d ]; do [ $((n = n + 1)) -lt 400 ] && kill -0 $S || fail "the reader holds $(events) events: $(cat /tmp/like.err)"; sleep 0.05; done
[ -e /tmp/like.ready ] || fail "the model's counts are not open"
sleep 1
homenode-load status > /tmp/like.before
homenode-load control on --phase 7 > /dev/null
wait $L && L= || fail "the load failed"
[ -d /proc/$S ] || fail "the load took longer than the interval"
homenode-load control off --phase 0 > /dev/null
homenode-load status > /tmp/like.after
kill -TERM $M; wait $M && M= || fail "the model's counts failed"
wait $S && S= || fail "the reader failed: $(cat /tmp/like.err)"
cat /tmp/like.before /tmp/like.after /tmp/like.model /tmp/like.json
`

// observed is what likeScript prints.
type observed struct {
	before, after labStatus
	model         counting
	snapshot      snapshot.Snapshot
}

func observe(t *testing.T, g *Guest, model string, files int) (o observed) {
	t.Helper()
	out := json.NewDecoder(strings.NewReader(mustRun(t, g, "sh", "-c", fmt.Sprintf(likeScript, countedOps, model, files))))
	for _, into := range []any{&o.before, &o.after, &o.model, &o.snapshot} {
		if err := out.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// windowOf holds the product's window and the controllers' lines to the model.
func windowOf(t *testing.T, g *Guest, l likeness) {
	t.Helper()
	o := observe(t, g, l.model, l.files)
	w, ok := o.snapshot.Window.Workload("/like")
	if !ok {
		t.Fatal("no workload /like")
	}
	truth := o.model.Cgroups[l.model]["/sys/fs/cgroup/like"]
	for f, v := range []unit.Value[uint64]{w.Cycles, w.Instructions, w.StallCycles, w.LocalLoads, w.RemoteLoads} {
		if l.local == "" && f >= atLocal {
			if v.How != unit.HowUnknown || !strings.Contains(v.From, "REMOTE_ACCESS") {
				t.Errorf("event %d: %+v, want unknown with the table's reason", f, v)
			}
			continue
		}
		sameInWindow(t, fmt.Sprintf("window, event %d", f), v, truth[f])
	}
	if truth[atRemote] < countedOps {
		t.Errorf("%d remote reads by the model of a million", truth[atRemote])
	}
	if !strings.HasPrefix(w.LocalLoads.From, l.local) {
		t.Errorf("local reads: %+v, want %s", w.LocalLoads, l.local)
	}
	trafficOf(t, l, o)
}

// sameInWindow holds what is measured to a thousandth. The model's counts of the same
// cgroup make its switches so slow that the kernel's two times may differ by more than
// that: then perf's counts are scaled, marked as such, and a little too large.
func sameInWindow(t *testing.T, what string, v unit.Value[uint64], truth uint64) {
	t.Helper()
	n, ok := v.Get()
	t.Logf("%s: %+v, %d by the model: %+.3f %%", what, v, truth, 100*(float64(n)/float64(truth)-1))
	switch {
	case ok && truth < countedOps/10: // the other node's: few, in short stays on any CPU
		if n > truth+countedOps/100 {
			t.Errorf("%s: %+v, want next to none", what, v)
		}
	case ok && v.How == unit.HowMeasured:
		within(t, what, float64(n), float64(truth), 0.001)
	case ok && v.How == unit.HowEstimated && strings.HasSuffix(v.From, "multiplexed and scaled"):
		within(t, what, float64(n), float64(truth), 0.005)
	default:
		t.Errorf("%s: %+v", what, v)
	}
}

// trafficOf compares all lines of both nodes with the model's own count.
func trafficOf(t *testing.T, l likeness, o observed) {
	t.Helper()
	for i, n := range o.snapshot.Nodes {
		reads, ok1 := n.Traffic.Reads.Get()
		writes, ok2 := n.Traffic.Writes.Get()
		all, ok3 := n.Traffic.All.Get()
		if told := l.reads != ""; ok1 != told || ok2 != told || ok3 == told || told && n.Traffic.Reads.From != l.reads {
			t.Errorf("node %d: %+v", i, n.Traffic)
		}
		within(t, fmt.Sprintf("lines of node %d by its controllers", i), float64(reads+writes+all), float64(o.after.Lines[i]-o.before.Lines[i]), 0.001)
	}
}

// threadOf counts a prober's thread, each event on its own. On Zen 4 these are seven, which
// take turns on six counters: their counts are scaled.
func threadOf(t *testing.T, g *Guest, l likeness) {
	t.Helper()
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	r := probeIn(t, g, "--cpus", "0", "--node", "1", "--bytes", "4MiB")
	if len(r.Threads) != 1 {
		t.Fatalf("%+v", r)
	}
	within(t, "LLC misses of a prober's thread", r.Threads[0].LLCMisses, float64(r.Threads[0].Ops), l.thread)
}

// Loads of Sapphire Rapids are sampled in a group that the auxiliary event leads: homenode
// opens it so. The kernel refuses them alone, which homenode does where it takes the CPU
// for one without that rule, and then it says so.
func TestLabSamplesLikeSapphireRapids(t *testing.T) {
	t.Parallel()
	g := like(t, "sapphire-rapids")
	sampleLoads(t, g)
	mustRun(t, g, "sh", "-c", "sed 's/: 143$/: 173/' /proc/cpuinfo > /tmp/granite && mount -o bind /tmp/granite /proc/cpuinfo")
	defer mustRun(t, g, "umount", "/proc/cpuinfo")
	r, err := g.Run(t.Context(), "homenode-lab", "sample", "--loads", "--seconds", "0.1")
	if err != nil || r.Exit == 0 || !strings.Contains(r.Stderr, "no data available") || !strings.Contains(r.Stderr, "cannot sample addresses") {
		t.Errorf("alone: exit %d, %v, %s", r.Exit, err, r.Stderr)
	}
}

const registersFile = "/sys/module/homenode_pmu/parameters/registers"

// A hypervisor that hides the registers of OFFCORE_RSP: the events that need none are
// counted instead, and the window names them.
func TestLabHiddenRegisters(t *testing.T) {
	thorough(t)
	t.Parallel()
	g := like(t, "sapphire-rapids")
	mustRun(t, g, "sh", "-c", "echo 0 > "+registersFile)
	defer mustRun(t, g, "sh", "-c", "echo 2 > "+registersFile)
	l := likenesses[0]
	l.local, l.model = "perf r01d3", "model-loads"
	windowOf(t, g, l)
}

// The twelve events of two readers are 10 and two clocks, for six counters: they take
// turns, and the counts are scaled and say so. On Sapphire Rapids cycles and instructions
// have fixed counters, and two readers share the registers of equal values: both have all.
func TestLabTwoReadersOf(t *testing.T) {
	thorough(t)
	t.Parallel()
	t.Run("zen-4", func(t *testing.T) {
		g := like(t, "zen-4")
		a, b := readTwice(t, g)
		within(t, "remote reads, harmonic mean of the readers", 2/(1/a+1/b), multiplexedOps, 0.05)
	})
	t.Run("sapphire-rapids", func(t *testing.T) {
		for _, w := range twoReaders(t, like(t, "sapphire-rapids")) {
			n, _ := w.RemoteLoads.Get()
			within(t, "remote reads", float64(n), multiplexedOps, 0.01) // with the load's beginning and end
			if w.RemoteLoads.How != unit.HowMeasured {
				t.Errorf("%+v, want all of it measured", w.RemoteLoads)
			}
		}
	})
}

// On too few counters for the group, which perf refuses, what every PMU has is counted.
func TestLabGroupTooLarge(t *testing.T) {
	thorough(t)
	t.Parallel()
	g := like(t, "zen-4")
	setCounters(t, g, 4)
	o := observe(t, g, "model", 12+48+4) // cycles, instructions and the clock
	w, _ := o.snapshot.Window.Workload("/like")
	if _, ok := w.Cycles.Get(); !ok || w.RemoteLoads.How != unit.HowUnknown {
		t.Errorf("cycles %+v, remote reads %+v", w.Cycles, w.RemoteLoads)
	}
}

const ibsPeriod = 1 << 18 // sampling.Table.Period of operations

// IBS samples every n-th operation of a CPU: of some millions of loads of the other node
// that no other program disturbs, most are remote. Before Linux 6.2 it samples no task, and
// homenode says so.
func TestLabSamplesLikeZen4(t *testing.T) {
	thorough(t)
	t.Parallel()
	g := like(t, "zen-4")
	w := watch(t, g, "homenode-lab sample --loads --user --ldlat 100 --period 1000 --seconds 100", farChase)
	s := w.samples(t)
	near(t, "samples", s.Samples+s.Lost, s.Qualified/ibsPeriod, 4) // a rest on each CPU
	remote, own := 0, 0
	for _, a := range s.Accesses {
		if a.Store || a.Kernel || a.Weight < 100 {
			t.Errorf("not asked for: %+v", a)
		}
		if a.PID != w.pids[0] {
			continue // a CPU's operations are of all programs
		}
		if own++; a.Level == "remote-dram" {
			remote++
		}
	}
	if remote < multiplexedOps/ibsPeriod*3/4 || remote < own*9/10 {
		t.Errorf("%d of the load's %d samples are remote, of %d samples in all", remote, own, s.Samples)
	}
	r, err := g.Run(t.Context(), "homenode-lab", "sample", "--loads", "--tid", "1", "--seconds", "0.1")
	if err != nil || r.Exit == 0 || !strings.Contains(r.Stderr, "before Linux 6.2") {
		t.Errorf("a thread: exit %d, %v, %s", r.Exit, err, r.Stderr)
	}
}

// SPE writes every n-th operation into a buffer of its own, without its task. Two programs take turns on
// one CPU, each with the memory of another node: whose a sample is shows in where it hit. A cgroup's and a
// thread's samples are its own.
func TestLabSamplesLikeNeoverse(t *testing.T) {
	t.Parallel()
	g := like(t, "neoverse-n2")
	const command = "homenode-lab sample --loads --user --ldlat 100 --period 1000 --seconds 100"
	const ops, each = 4_000_000, 4_000_000 / ibsPeriod
	chase := func(node int) string {
		return fmt.Sprintf("chase --ws 4MiB --ops %d --warm-laps 0 --bind-cpu 0 --bind-mem %d", ops, node)
	}
	t.Run("all", func(t *testing.T) {
		w := watch(t, g, command, chase(0), chase(1))
		level, own := map[int]string{w.pids[0]: "local-dram", w.pids[1]: "remote-dram"}, map[int]uint64{}
		s := w.samples(t)
		for _, a := range s.Accesses {
			if a.Store || a.Kernel || a.Weight < 100 {
				t.Errorf("not asked for: %+v", a)
			}
			if want, ok := level[a.PID]; ok && a.CPU == 0 && a.TID != 0 && a.Level == want {
				own[a.PID]++
			} else if ok {
				t.Errorf("%+v, want %s on CPU 0", a, want)
			}
		}
		near(t, "samples of both", own[w.pids[0]]+own[w.pids[1]], 2*each, 4) // and some of what runs beside them
		for pid, want := range level {
			// Turns are far shorter than the period: whose load is sampled is chance, with a standard
			// deviation of 2.7.
			near(t, "samples of "+want, own[pid], each, 11)
		}
		if s.Lost > 2 || s.Throttled > 0 {
			t.Errorf("%d lost, stopped %d times", s.Lost, s.Throttled)
		}
	})
	for which, watcher := range map[int]string{
		0: command + " --tid " + worker,
		1: "mkdir -p /sys/fs/cgroup/sampled; echo $L2 > /sys/fs/cgroup/sampled/cgroup.procs\n" + command + " --of-cgroup /sys/fs/cgroup/sampled",
	} {
		t.Run(map[int]string{0: "a thread", 1: "a cgroup"}[which], func(t *testing.T) {
			thorough(t)
			w := watch(t, g, watcher, chase(0), chase(1))
			s := w.samples(t)
			near(t, "samples", uint64(len(s.Accesses)), each, each/4)
			for _, a := range s.Accesses {
				// The cgroup's program may leave CPU 0: it was moved there.
				if a.PID != w.pids[which] || which == 0 && (a.CPU != 0 || a.Level != "local-dram") {
					t.Errorf("%+v, want pid %d", a, w.pids[which])
				}
			}
		})
	}
}

func TestLabRefusesUnknownPersonality(t *testing.T) {
	o := Options{Personality: "z80"}
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), slices.Max(Personalities)) {
		t.Errorf("%v", err)
	}
}
