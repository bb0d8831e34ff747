// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"homenode/internal/set"
	"homenode/internal/sim/parity"
)

// noiseServer is a service of four workers that needs some 0.7 CPUs; nothing else
// runs. Unpinned it has eight CPUs, bound it has the two of node 1.
const noiseServer = "server --thp off --workers 4 --ws 24MiB --rate 600 --short-share 1 --short-us 20:100"

const noisePairs = 10

// noiseCPUs are all CPUs except CPU 8, which the script has. CPU 8 is time_factor times
// as fast, and its work is not counted.
const noiseCPUs = "0-7"

// TestBenchSimNoise measures how much one service's features and gains differ from
// process to process if only Linux' placement differs (make bench-sim-parity):
// HOMENODE_SIM_NOISE names the file.
func TestBenchSimNoise(t *testing.T) {
	path := os.Getenv("HOMENODE_SIM_NOISE")
	if path == "" {
		t.Skip("HOMENODE_SIM_NOISE is not set to the file: this is a measurement of make bench-sim-parity")
	}
	g := guest(t, "four", "v2")
	n := simNoise{Schema: parity.RecordSchema, How: "modelled (lab)", Origin: originOf(t, g), Shape: "four", Args: noiseServer}
	for pair := range noisePairs {
		a, errA := noiseRun(t.Context(), g, "")
		b, errB := noiseRun(t.Context(), g, "homenode run --nodes 1 --policy bind -- ")
		if err := errors.Join(errA, errB); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("noise %d:\n  unpinned %+v\n  bound    %+v\n", pair, a, b)
		n.Unpinned, n.Bound = append(n.Unpinned, a), append(n.Bound, b)
	}
	n.summarise()
	writeResults(t, path, n)
}

func noiseScript(with string) string {
	return fmt.Sprintf(`set -u
taskset -p 100 $$ > /dev/null
rm -rf /tmp/par; mkdir -p /tmp/par /sys/fs/cgroup/par; cd /tmp/par
echo +memory > /sys/fs/cgroup/cgroup.subtree_control 2> /dev/null
homenode-load control off --phase 0 > /dev/null
(read pid rest < /proc/self/stat; echo $pid > /sys/fs/cgroup/par/cgroup.procs; exec taskset -c %s timeout 170 %shomenode-load %s --seconds 100000 --out r --ready p < /dev/null > o 2>&1) &
n=0; until [ -e p ]; do n=$((n + 1)); [ $n -lt 600 ] || { cat o >&2; exit 1; }; sleep 0.05; done
homenode-load control on --phase 1 > /dev/null
sleep 2
homenode-load control on --phase 2 > /dev/null
echo == begin; homenode-load status
sleep 5
echo == end; homenode-load status
echo == memory; grep -E '^(anon|file) ' /sys/fs/cgroup/par/memory.stat
homenode-load control off --phase 3 > /dev/null
kill $(cat p); wait
echo == report0; cat r
rmdir /sys/fs/cgroup/par 2> /dev/null || true
`, noiseCPUs, with, noiseServer)
}

func noiseRun(ctx context.Context, g *Guest, with string) (f noiseFigures, err error) {
	ctx, cancel := g.Within(ctx, 3*time.Minute)
	defer cancel()
	out, err := g.Run(ctx, "sh", "-c", noiseScript(with))
	if err != nil || out.Exit != 0 {
		return f, fmt.Errorf("exit %d, %v: %.500s", out.Exit, err, out.Stderr)
	}
	in := sections(out.Stdout)
	var begin, end parityStatus
	var r parityReport
	if err := errors.Join(json.Unmarshal([]byte(in["begin"]), &begin), json.Unmarshal([]byte(in["end"]), &end),
		json.Unmarshal([]byte(in["report0"]), &r)); err != nil {
		return f, fmt.Errorf("read run: %w: %.300q", err, out.Stdout)
	}
	cpus, _ := set.ParseCPUs(noiseCPUs)
	run, err := ofParity(begin, end, r, cpus)
	if err != nil {
		return f, err
	}
	var anon, file float64
	if _, err := fmt.Sscanf(strings.TrimSpace(in["memory"]), "anon %f\nfile %f", &anon, &file); err != nil {
		return f, fmt.Errorf("read memory.stat %q: %w", in["memory"], err)
	}
	seconds := (end.Cycles - begin.Cycles) / begin.MHz / 1e6
	busy := 0.0
	for cpu := range cpus.All() {
		busy += end.VCPUs[cpu].Total["cycles"] - begin.VCPUs[cpu].Total["cycles"]
	}
	return noiseFigures{
		MBW: run.DRAM * run.OpsPerSecond * 64, MSR: run.Stall / run.Cycles, NPMR: anon / (anon + file),
		RMBR: 1 - run.LocalRatio.Or(0), Local: run.LocalRatio.Or(0), LatencyUS: r.latency(2), CPUPerOp: busy / (run.OpsPerSecond * seconds),
		UserPerOp: run.Cycles,
	}, nil
}

// latency of the requests of a phase, mean.
func (r parityReport) latency(phase int) float64 {
	for _, p := range r.Phases {
		if p.Phase == phase {
			return p.Latency.Mean
		}
	}
	return 0
}
