// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// sampled is the output of `homenode-lab sample`.
type sampled struct {
	Samples, Qualified, Lost, Throttled uint64
	Accesses                            []struct {
		PID, TID, CPU    int
		Addr, IP, Weight uint64
		Level            string
		Store, Kernel    bool
	}
}

// watchScript starts loads, held until phase 7, makes the watcher (which may name the
// i-th load's pid as $Li) watch them, and lets them run in state count. Nothing is
// counted before and after.
const watchScript = `
mkdir -p /tmp/w && rm -f /tmp/w/*
%s
for i in $(seq %d); do while [ ! -e /tmp/w/load$i ]; do sleep 0.02; done; done
%s --ready /tmp/w/ready > /tmp/w/out & W=$!
while [ ! -e /tmp/w/ready ]; do kill -0 $W || exit 1; sleep 0.02; done
cp /proc/vmstat /tmp/w/before
homenode-load control on --phase 7 > /dev/null
wait %s
homenode-load control off --phase 0 > /dev/null
cp /proc/vmstat /tmp/w/after
kill $W
wait $W || exit 1
for i in $(seq %d); do echo "maps $i"; cat /tmp/w/maps$i; done
echo json
cat /tmp/w/out
`

type watched struct {
	json string
	maps []string // maps of each load
	pids []int
}

func watch(t *testing.T, g *Guest, watcher string, loads ...string) watched {
	t.Helper()
	start, wait := "", ""
	for i, l := range loads {
		start += fmt.Sprintf("homenode-load %s --hold 7 --ready /tmp/w/load%d > /dev/null & L%d=$!\n", l, i+1, i+1)
		wait += fmt.Sprintf(" $L%d", i+1)
	}
	for i := range loads {
		watcher = fmt.Sprintf("{ echo $L%d; cat /proc/$L%d/maps; } > /tmp/w/maps%d\n", i+1, i+1, i+1) + watcher
	}
	out := mustRun(t, g, "sh", "-c", fmt.Sprintf(watchScript, start, len(loads), watcher, wait, len(loads)))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the kernel's counts before and after: %s", mustRun(t, g, "sh", "-c", "diff -U0 /tmp/w/before /tmp/w/after | grep '^[-+][a-z]'"))
		}
	})
	head, data, ok := strings.Cut(out, "json\n")
	if !ok {
		t.Fatalf("no JSON in %s", out)
	}
	w := watched{json: data}
	for _, part := range strings.Split(head, "maps ")[1:] {
		var i, pid int
		if _, err := fmt.Sscanf(part, "%d\n%d\n", &i, &pid); err != nil {
			t.Fatalf("%v in %q", err, part)
		}
		w.maps, w.pids = append(w.maps, part), append(w.pids, pid)
	}
	return w
}

func (w watched) samples(t *testing.T) sampled {
	t.Helper()
	var s sampled
	if err := json.Unmarshal([]byte(w.json), &s); err != nil {
		t.Fatalf("%v\n%s", err, w.json)
	}
	return s
}

// mapped reports whether an address lies in a mapping of load i whose line in maps has
// the text, and that is at least so long.
func (w watched) mapped(i int, addr uint64, text string, least uint64) bool {
	for _, line := range strings.Split(w.maps[i], "\n") {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x ", &from, &to); err != nil {
			continue
		}
		if strings.Contains(line, text) && to-from >= least && from <= addr && addr < to {
			return true
		}
	}
	return false
}

// near fails the test unless got is within a few of want.
func near(t *testing.T, what string, got, want, few uint64) {
	t.Helper()
	if got+few < want || got > want+few {
		t.Errorf("%s: %d, want %d ± %d", what, got, want, few)
	}
}

// chased fails the test unless so many loads took long: those of a chase, of which one in a
// thousand, or 300, may hit a cache, and for every 4,096 of them at most 16 more. Then the
// load looks at its stop word and the clock, and by where the guest put its pages, up to 13
// lines of that had left the caches.
func chased(t *testing.T, got, chase uint64) {
	t.Helper()
	if least, most := chase-max(chase/1000, 300), chase+16*(chase/4096+1); got < least || got > most {
		t.Errorf("loads of at least 100 cycles: %d, want %d to %d", got, least, most)
	}
}

// worker is a load's only worker.
const worker = "$(ls /proc/$L1/task | sort -n | tail -n 1)"

// Every thousandth of a million remote loads is sampled: where it went, from
// where, and how long it took.
func TestLabSamplesLoads(t *testing.T) {
	t.Parallel()
	sampleLoads(t, guest(t, "two", "v2"))
}

func sampleLoads(t *testing.T, g *Guest) {
	t.Helper()
	w := watch(t, g, "homenode-lab sample --loads --user --ldlat 100 --period 1000 --seconds 100 --tid "+worker,
		"chase --ws 4MiB --ops 1000000 --warm-laps 0 --bind-cpu 0 --bind-mem 1")
	s := w.samples(t)
	near(t, "samples", s.Samples+s.Lost, s.Qualified/1000, 2)
	chased(t, s.Qualified, 1_000_000)
	if s.Lost != 0 || s.Throttled != 0 {
		t.Errorf("%d lost, throttled %d times", s.Lost, s.Throttled)
	}
	far, idle := 0, uint64(g.Shape.Model.DRAMCycles[21]) // plus the wait for the earlier lines
	for _, a := range s.Accesses {
		if a.PID != w.pids[0] || a.CPU != 0 || a.Store || a.Kernel || !w.mapped(0, a.IP, "r-xp", 0) {
			t.Fatalf("%+v of pid %d with\n%s", a, w.pids[0], w.maps[0])
		}
		if a.Level == "remote-dram" && a.Weight >= idle && a.Weight <= idle*11/10 && w.mapped(0, a.Addr, "rw-p", 4<<20) {
			far++
		}
	}
	if far < len(s.Accesses)*99/100 {
		t.Errorf("%d of %d samples are remote and in the region", far, len(s.Accesses))
	}
}

// Two programs take turns on one CPU. The owner of a sample does not depend on when the
// ring was emptied. One program is in a cgroup that is also watched alone.
func TestLabSamplesKnowTheirTask(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	near1 := "chase --ws 4MiB --ops 2000000 --warm-laps 0 --bind-cpu 0 --bind-mem 0"
	far2 := "chase --ws 4MiB --ops 2000000 --warm-laps 0 --bind-cpu 0 --bind-mem 1"
	both := watch(t, g, "homenode-lab sample --loads --user --ldlat 100 --period 1000 --seconds 100", near1, far2)
	level := map[int]string{both.pids[0]: "local-dram", both.pids[1]: "remote-dram"}
	count, other := map[int]uint64{}, map[int]uint64{}
	s := both.samples(t)
	for _, a := range s.Accesses {
		if a.Level == level[a.PID] {
			count[a.PID]++
		} else {
			other[a.PID]++
		}
	}
	near(t, "samples of both", count[both.pids[0]]+count[both.pids[1]], 4000, 20+s.Lost)
	for pid := range level {
		// Both take turns of some 700 loads, less than the period: whose load is sampled is
		// chance, with a standard deviation of 13 in fifteen runs.
		near(t, fmt.Sprintf("samples of %s", level[pid]), count[pid], 2000, 65+s.Lost)
		// the program's stack and data are where it was started
		near(t, fmt.Sprintf("others of the same program as %s", level[pid]), other[pid], 0, 20)
	}
	cg := watch(t, g, "mkdir -p /sys/fs/cgroup/sampled; echo $L2 > /sys/fs/cgroup/sampled/cgroup.procs\n"+
		"homenode-lab sample --loads --user --ldlat 100 --period 1000 --seconds 100 --of-cgroup /sys/fs/cgroup/sampled", near1, far2)
	s = cg.samples(t)
	near(t, "samples of the cgroup", s.Samples, 2000, 20+s.Lost)
	for _, a := range s.Accesses {
		if a.PID != cg.pids[1] {
			t.Fatalf("not a sample of the cgroup: %+v", a)
		}
	}
	task := watch(t, g, "homenode-lab sample --loads --user --ldlat 100 --period 1000 --seconds 100 --tid "+worker, near1, far2)
	s = task.samples(t)
	near(t, "samples of the thread", s.Samples, 2000, 3+s.Lost)
	for _, a := range s.Accesses {
		if a.PID != task.pids[0] {
			t.Fatalf("not a sample of the thread: %+v", a)
		}
	}
}

// Samples show that both nodes write to a page.
func TestLabSamplesStores(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	w := watch(t, g, "homenode-lab sample --stores --user --period 1000 --seconds 100",
		"share --sharing 4096 --threads 2 --cpus 0,2 --ops 1000000 --warm-laps 0 --file /tmp/page")
	byCPU := map[int]uint64{}
	s := w.samples(t)
	for _, a := range s.Accesses {
		if !w.mapped(0, a.Addr, "/tmp/page", 0) {
			continue
		}
		if !a.Store {
			t.Fatalf("a load: %+v", a)
		}
		byCPU[a.CPU]++
	}
	if len(byCPU) != 2 {
		t.Errorf("samples by CPU: %v, want those of 0 and 2", byCPU)
	}
	near(t, "samples of CPU 0", byCPU[0], 1000, 10+s.Lost)
	near(t, "samples of CPU 2", byCPU[2], 1000, 10+s.Lost)
}

// If there are more samples than the rings hold, that is reported, and the
// count stays right.
func TestLabSamplesLost(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	w := watch(t, g, "homenode-lab sample --loads --user --ldlat 100 --period 3 --seconds 100 --tid "+worker,
		"chase --ws 4MiB --ops 100000 --warm-laps 0 --bind-cpu 0 --bind-mem 1")
	s := w.samples(t)
	if s.Lost == 0 {
		t.Errorf("nothing was lost: %d samples", s.Samples)
	}
	near(t, "samples and lost ones", s.Samples+s.Lost, s.Qualified/3, 2)
	chased(t, s.Qualified, 100_000)
}

// The memory controller of node 1 reads a line for each of a million loads.
func TestLabMemoryControllers(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	w := watch(t, g, "homenode-lab uncore", "chase --ws 4MiB --ops 1000000 --warm-laps 0 --bind-cpu 0 --bind-mem 1")
	var all []struct {
		PMU     string
		CPU     int
		Counts  map[string]uint64
		PerTask string `json:"per_task"`
	}
	if err := json.Unmarshal([]byte(w.json), &all); err != nil || len(all) != 2 {
		t.Fatalf("%v\n%s", err, w.json)
	}
	far := all[1]
	t.Logf("%+v", all)
	if far.PMU != "uncore_imc_1" || far.CPU != 2 || far.PerTask != "invalid argument" {
		t.Errorf("%+v", far)
	}
	lines := far.Counts["cas_count_read"]
	// the rest of the system has memory on node 1, too
	if lines < 999_000 || lines > 1_020_000 {
		t.Errorf("lines of node 1: %d, want a million and a little", lines)
	}
	served := lines * uint64(g.Shape.Model.MCCycles)
	if busy, ticks := far.Counts["rpq_not_empty"], far.Counts["clockticks"]; busy < served*99/100 || busy > ticks {
		t.Errorf("busy %d of %d cycles, want at least the %d that the lines took", busy, ticks, served)
	}
}

// Sampling leaves counts as they are.
func TestLabSamplingDoesNotDisturbCounts(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	var r loadReport
	out := mustRun(t, g, "sh", "-c", `homenode-lab sample --loads --stores --user --period 10000 --seconds 100 --ready /tmp/busy > /dev/null & S=$!
while [ ! -e /tmp/busy ]; do sleep 0.02; done
homenode-load chase --ws 4MiB --ops 1000000 --bind-cpu 0 --bind-mem 1 --perf loads,llc-misses,remote-loads; kill $S; wait $S; rm /tmp/busy`)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	for _, event := range []string{"loads", "llc-misses", "remote-loads"} {
		within(t, event, r.Perf[event], countedOps, 0.001)
	}
}

func variant(t *testing.T, shape string, change func(*Options)) *Guest {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: no lab boot")
	}
	o := labOptionsFor(t, shape, "v2")
	change(&o)
	g := boot(t, o)
	t.Cleanup(g.Close)
	return g
}

// A flat guest sees one node; its server reports that it was not calibrated.
func TestLabFlat(t *testing.T) {
	t.Parallel()
	g := variant(t, "two", func(o *Options) { o.Flat = true })
	nodes := strings.TrimSpace(mustRun(t, g, "cat", "/sys/devices/system/node/online"))
	if nodes != "0" || !strings.Contains(g.Note, "not calibrated") {
		t.Errorf("nodes %s, note %q", nodes, g.Note)
	}
	if s := status(t, g); len(s.Lines) != 2 {
		t.Errorf("the model has controllers %v, want two", s.Lines)
	}
}

// The firmware's figures equal the shape's, and the map still holds.
func TestLabHMAT(t *testing.T) {
	t.Parallel()
	g := variant(t, "far", func(o *Options) { o.HMAT = true })
	got := mustRun(t, g, "sh", "-c", "cd /sys/devices/system/node; cat node0/access0/initiators/read_latency node2/access0/initiators/read_latency; ls -d node2/access0/initiators/node*")
	if want := "80\n148\nnode2/access0/initiators/node0\n"; got != want || strings.Contains(g.Note, "not calibrated") {
		t.Errorf("got %q, want %q; note %q", got, want, g.Note)
	}
}
