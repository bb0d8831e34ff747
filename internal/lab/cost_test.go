// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/experiment"
)

// costLoads are the loads for measuring the lab's cost: each kind of access that the
// model distinguishes, and two that share lines.
var costLoads = []struct{ name, args string }{
	{"chase, DRAM", "chase --threads 1 --ws 8MiB --cpus 0 --bind-mem 0 --ops 4000000 --perf loads"},
	{"chase, L2", "chase --threads 1 --ws 32KiB --cpus 0 --bind-mem 0 --ops 16000000 --perf loads"},
	{"chase, L1", "chase --threads 1 --ws 4KiB --cpus 0 --bind-mem 0 --ops 60000000 --perf loads"},
	{"stream of loads", "stream --threads 1 --ws 8MiB --cpus 0 --bind-mem 0 --ops 8000000 --perf loads"},
	{"stream of stores", "stream --write --threads 1 --ws 8MiB --cpus 0 --bind-mem 0 --ops 8000000 --perf loads"},
	{"triad", "stream --triad --threads 1 --ws 6MiB --cpus 0 --bind-mem 0 --ops 1000000 --perf loads"},
	{"computing", "spin --threads 1 --cpus 0 --ops 100000 --perf loads"},
	{"two nodes' chases", "chase --threads 2 --ws 4MiB --cpus 0,2 --bind-mem 0 --ops 2000000 --perf loads"},
	{"rao, an add every 16", "rao --threads 4 --ws 1MiB --sharing 4KiB --share-every 16 --cpus 0-3 --ops 60000 --perf loads"},
	{"one line for four", "share --threads 4 --sharing 64 --cpus 0-3 --ops 30000 --perf loads"},
}

// The cost of coherence for the host: CPU time of QEMU for the same loads with the
// directory and without, in turns. The limit is 1.5 times. The last two loads are not in
// the sum: without coherence they are different loads, which never wait for a line.
func TestBenchCoherence(t *testing.T) {
	file := os.Getenv("HOMENODE_BENCH")
	if file == "" {
		t.Skip("HOMENODE_BENCH is not set to the file for the results: this is a measurement of make bench")
	}
	const repeats, shared = 5, 2
	var guests [2]*Guest
	for i, coherence := range []bool{false, true} {
		o := labOptionsFor(t, "two", "v2")
		o.Shape.Model.Coherence = coherence
		g, err := Boot(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		guests[i] = g
	}
	out := map[string]any{}
	var sum [2]float64
	for i, load := range costLoads {
		var took [2][]float64
		for _, run := range experiment.Order(2, repeats, 1) {
			took[run.Arm] = append(took[run.Arm], costOf(t, guests[run.Arm], load.args))
		}
		off, _ := experiment.Summarise(took[0])
		on, _ := experiment.Summarise(took[1])
		ratio := on.Median / off.Median
		if i < len(costLoads)-shared {
			sum[0], sum[1] = sum[0]+off.Median, sum[1]+on.Median
		}
		out[load.name] = map[string]any{"ratio": ratio, "without_s": off, "with_s": on}
		fmt.Printf("%-22s %.2f × (%.2f s with, %.2f–%.2f; %.2f s without, %.2f–%.2f)\n", load.name, ratio, on.Median, on.Min, on.Max, off.Median, off.Min, off.Max)
	}
	ratio := sum[1] / sum[0]
	out["all that share nothing"] = map[string]any{"ratio": ratio, "limit": 1.5, "met": ratio <= 1.5}
	fmt.Printf("%-22s %.2f × (limit 1.5)\n", "all that share nothing", ratio)
	writeResults(t, file, out)
	if ratio > 1.5 {
		t.Errorf("coherence costs %.2f times, want at most 1.5", ratio)
	}
}

// costOf is QEMU's CPU time while a load runs.
func costOf(t *testing.T, g *Guest, args string) (seconds float64) {
	t.Helper()
	underModel(t, g, func() {
		before := cpuTime(t, g)
		mustRun(t, g, append([]string{"homenode-load"}, strings.Fields(args)...)...)
		seconds = (cpuTime(t, g) - before).Seconds()
	})
	return seconds
}

// cpuTime is fields 14 and 15 of /proc/PID/stat, in hundredths of a second.
func cpuTime(t *testing.T, g *Guest) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", g.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
