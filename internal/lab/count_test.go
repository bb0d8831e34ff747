// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"homenode/internal/kernel/perf"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// counting is the output of `homenode-lab count`.
type counting struct {
	Cgroups            map[string]map[string][]uint64
	Scaled             map[string]map[string]float64
	Files              map[string]int
	KernelInstructions uint64 `json:"kernel_instructions"`
	Switches           uint64
}

// The table's order.
const (
	atInstructions = 1
	atLocal        = 3
	atRemote       = 4
)

// countWhile runs scripts, each in a cgroup of its own below /sys/fs/cgroup/MOUNT, all at
// once, while `homenode-lab count` counts these cgroups.
func countWhile(t *testing.T, g *Guest, mount string, args []string, scripts ...string) counting {
	t.Helper()
	var b strings.Builder
	list := ""
	for i := range scripts {
		dir := fmt.Sprintf("/sys/fs/cgroup%s/c%d", mount, i)
		fmt.Fprintf(&b, "mkdir -p %s\n", dir)
		if mount != "" {
			fmt.Fprintf(&b, "for f in cpuset.cpus cpuset.mems; do cat /sys/fs/cgroup%s/$f > %s/$f; done\n", mount, dir)
		}
		list += " --cgroup " + dir
	}
	fmt.Fprintf(&b, "rm -f /ready; homenode-lab count --ready /ready %s %s </dev/null >/count.json 2>/count.err &\ncounter=$!\n", strings.Join(args, " "), list)
	b.WriteString("until [ -e /ready ]; do kill -0 $counter || { cat /count.err >&2; exit 1; }; sleep 0.1; done\nloads=\n")
	for i, s := range scripts {
		// BPF sees a task that entered a cgroup at the task's next switch, perf at
		// once: sleep is a switch.
		fmt.Fprintf(&b, "(echo 0 > /sys/fs/cgroup%s/c%d/cgroup.procs; sleep 0.1; exec %s </dev/null >/dev/null 2>&1) & loads=\"$loads $!\"\n", mount, i, s)
	}
	b.WriteString("wait $loads\nkill -TERM $counter; wait $counter\ncat /count.json\n")
	var c counting
	out := mustRun(t, g, "sh", "-c", b.String())
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return c
}

// A million reads of DRAM are a million for perf's groups and for BPF, of the right node
// and in the right cgroup, though three cgroups share one CPU. A sample of the ticks
// gives a figure near it, in proportion to the instructions.
func TestLabCountByBPF(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ version, mount, controller string }{{"v2", "", ""}, {"v1", "/cpuset", "cpuset"}} {
		t.Run(c.version, func(t *testing.T) {
			if c.version == "v1" && testing.Short() {
				t.Skip("-short")
			}
			g := guest(t, "two", c.version)
			mustRun(t, g, "homenode-load", "control", "on")
			defer mustRun(t, g, "homenode-load", "control", "off")
			const load = "homenode-load chase --threads 1 --ws 4MiB --ops 1000000 --bind-cpu 0 --bind-mem "
			args := []string{"--user", "--how", "bpf", "--controller", c.controller + "''"}
			if c.version == "v2" {
				args = append(args, "--how", "perf")
			}
			r := countWhile(t, g, c.mount, args, load+"0", load+"1", "homenode-load spin --threads 1 --seconds 2 --bind-cpu 0")
			t.Log(r)
			judgeCounts(t, g, r)
			if c.version == "v2" {
				mustRun(t, g, "sh", "-c", "rm -f /to /fro; mkfifo /to /fro")
				r = countWhile(t, g, "", []string{"--how", "bpf", "--how", "bpf/16"}, load+"0", shell(pings(300)), shell(pongScript), load+"1")
				judgeSample(t, r)
			}
		})
	}
}

// judgeSample compares what 1 of 16 ticks shows, scaled by the clocks, with the full
// count. It is right on average because clocks and counts are of the same stays. The
// error depends on the number of stays.
func judgeSample(t *testing.T, r counting) {
	t.Helper()
	for dir, all := range r.Cgroups["bpf"] {
		some := r.Cgroups["bpf/16"][dir]
		const clock = int(perf.Clock) // the entries after it are not counted here
		if some[clock] == 0 {
			t.Errorf("%s was never counted", dir)
			continue
		}
		by := float64(all[clock]) / float64(some[clock])
		for f := range clock {
			if all[f] > 100_000 {
				t.Logf("%s, event %d: %+.1f %% of %d, counted in %.3f of its time", dir, f, 100*(float64(some[f])*by/float64(all[f])-1), all[f], 1/by)
			}
		}
	}
}

func judgeCounts(t *testing.T, g *Guest, r counting) {
	t.Helper()
	compared := 0
	for dir, bpf := range r.Cgroups["bpf"] {
		i := int(dir[len(dir)-1] - '0')
		if i < 2 {
			near, far := bpf[atLocal], bpf[atRemote]
			if i == 1 {
				near, far = far, near
			}
			t.Logf("%s: %d of the node, %d of the other", dir, near, far)
			if near < countedOps {
				t.Errorf("%s: %d reads of DRAM of a million", dir, near)
			}
			if float64(far) > 0.01*float64(near) {
				t.Errorf("%s: %d reads of the wrong node, %d of the right one", dir, far, near)
			}
		}
		// BPF misses the part of a stay that began with entering the cgroup: next
		// to nothing of a million.
		for f, n := range r.Cgroups["perf"][dir] {
			if n > 1_000_000 && f != int(perf.Clock) {
				compared++
				if d := math.Abs(float64(bpf[f])/float64(n) - 1); d > 0.01 {
					t.Errorf("%s, event %d: BPF %d, perf %d: %.2f %% apart", dir, f, bpf[f], n, 100*d)
				}
			}
		}
	}
	if len(r.Cgroups["perf"]) > 0 && compared < 6 {
		t.Errorf("only %d counts were compared", compared)
	}
}

// kernelWork is what a way of counting adds to a context switch in the lab.
type kernelWork struct {
	How     string  `json:"how"`
	Cgroups int     `json:"cgroups"`
	Events  int     `json:"events"`
	Files   int     `json:"files"`
	Kernel  float64 `json:"kernel_instructions_per_switch"`
	Added   float64 `json:"added"`
}

// Two shells of two cgroups on one CPU pass a line back and forth, n times.
func pings(n int) string {
	return fmt.Sprintf(`i=0; while [ $i -lt %d ]; do echo x >&3; read x <&4; i=$((i+1)); done; echo q >&3`, n)
}

const pongScript = `while read x <&3 && [ $x = x ]; do echo x >&4; done`

func shell(script string) string {
	return "taskset 1 sh -c '" + script + "' 3<>/to 4<>/fro"
}

// TestBenchLabCount measures it in instructions, which depend on no clock;
// HOMENODE_BENCH is where the result goes.
func TestBenchLabCount(t *testing.T) {
	to := os.Getenv("HOMENODE_BENCH")
	if to == "" {
		t.Skip("a measurement: scripts/bench-count.sh")
	}
	g := guest(t, "two", "v2")
	mustRun(t, g, "homenode-load", "control", "on")
	defer mustRun(t, g, "homenode-load", "control", "off")
	var rows []kernelWork
	for _, n := range []int{2, 50} {
		more := ""
		for i := 1; i < n; i++ {
			dir := fmt.Sprintf("/sys/fs/cgroup/more%d", i)
			mustRun(t, g, "mkdir", "-p", dir)
			more += " --cgroup " + dir
		}
		base := 0.0
		for _, how := range []string{"", "perf", "bpf", "bpf/16"} {
			args := []string{}
			if how != "" {
				args = []string{"--how", how + more}
			}
			var each []float64
			files, switches := 0, uint64(0)
			for range 3 {
				mustRun(t, g, "sh", "-c", "rm -f /to /fro; mkfifo /to /fro")
				r := countWhile(t, g, "", args, shell(pings(2000)), shell(pongScript))
				each = append(each, float64(r.KernelInstructions)/float64(r.Switches))
				files, switches = r.Files[how], r.Switches
			}
			slices.Sort(each)
			if how == "" {
				base = each[1]
			}
			row := kernelWork{how, n, 5, files, each[1], each[1] - base}
			t.Logf("%+v of %.0f, %d switches", row, each, switches)
			rows = append(rows, row)
		}
	}
	writeResults(t, to, rows)
}
