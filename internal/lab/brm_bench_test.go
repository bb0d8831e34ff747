// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/experiment"
)

// raoProgram is a program of a mix, and the CPUs next to its memory, for the arm by hand.
type raoProgram struct{ load, hand string }

type raoMix struct {
	name     string
	programs []raoProgram
}

// raoMixes are Rao's parallel and multiprogrammed mixes (papers, §2) as far as the load
// supports them and four vCPUs on two nodes hold them: as many threads as CPUs, memory
// put on a node, threads started wherever Linux puts them. Barriers spin, one every 4,096
// operations: some 20 ms where sets fit nowhere, 1 ms of hardware (time_factor), as in
// NAS. Written before their first run.
var raoMixes = []raoMix{
	{"parallel", []raoProgram{ // sets that fit into no cache, little shared
		{"rao --threads 2 --ws 2MiB --sharing 4KiB --share-every 64 --thp off --bind-mem 0", "0-1"},
		{"rao --threads 2 --ws 2MiB --sharing 4KiB --share-every 64 --thp off --bind-mem 1", "2-3"},
	}},
	{"sharing", []raoProgram{ // sets that fit, much shared
		{"rao --threads 2 --ws 64KiB --sharing 4KiB --share-every 2 --thp off --bind-mem 0", "0-1"},
		{"rao --threads 2 --ws 64KiB --sharing 4KiB --share-every 2 --thp off --bind-mem 1", "2-3"},
	}},
	{"barriers", []raoProgram{ // as parallel, but the slower thread sets the pace, and the faster spins
		{"rao --threads 2 --ws 2MiB --sharing 4KiB --share-every 64 --barrier 4096 --thp off --bind-mem 0", "0-1"},
		{"rao --threads 2 --ws 2MiB --sharing 4KiB --share-every 64 --barrier 4096 --thp off --bind-mem 1", "2-3"},
	}},
	{"sharing, barriers", []raoProgram{
		{"rao --threads 2 --ws 64KiB --sharing 4KiB --share-every 2 --barrier 4096 --thp off --bind-mem 0", "0-1"},
		{"rao --threads 2 --ws 64KiB --sharing 4KiB --share-every 2 --barrier 4096 --thp off --bind-mem 1", "2-3"},
	}},
	{"multiprogrammed", []raoProgram{ // sensitive and insensitive ones
		{"chase --threads 1 --ws 4MiB --thp off --bind-mem 0", "0-1"},
		{"chase --threads 1 --ws 4MiB --thp off --bind-mem 1", "2-3"},
		{"spin --threads 1", "0-1"},
		{"spin --threads 1", "2-3"},
	}},
	{"insensitive", []raoProgram{{"spin --threads 2", "0-1"}, {"spin --threads 2", "2-3"}}},
}

// raoArms in the order of a repeat. Memory stays where it is in all of them: Rao's Xen
// moves none.
var raoArms = []string{"default", "brm", "brm --hold", "by hand"}

// raoRun is the result of one run.
type raoRun struct {
	Mix    string    `json:"mix"`
	Arm    string    `json:"arm"`
	Repeat int       `json:"repeat"`
	Ops    []float64 `json:"ops_per_model_second"` // a program each
}

// TestBenchBRM runs Rao's mixes in the lab (scripts/bench-brm.sh): HOMENODE_BENCH_BRM
// names the file of results.
func TestBenchBRM(t *testing.T) {
	path, repeats := benchFile(t, "HOMENODE_BENCH_BRM", "make bench-brm")
	mixes := benchOnly(t, raoMixes, func(m raoMix) string { return m.name })
	g := guest(t, "two", "v2")
	var all []raoRun
	for repeat := range repeats {
		for _, mix := range mixes {
			for _, arm := range raoArms {
				r, err := raoOnce(t.Context(), g, mix.programs, arm)
				if err != nil {
					t.Fatalf("%s, %s: %v", mix.name, arm, err)
				}
				r.Mix, r.Arm, r.Repeat = mix.name, arm, repeat
				fmt.Printf("%-17s %-11s %.0f operations a model-second\n", r.Mix, r.Arm, r.Ops)
				all = append(all, r)
			}
		}
	}
	raoTell(all)
	writeResults(t, path, all)
}

func raoOnce(ctx context.Context, g *Guest, programs []raoProgram, arm string) (r raoRun, err error) {
	ctx, cancel := g.Within(ctx, 5*time.Minute)
	defer cancel()
	out, err := g.Run(ctx, "sh", "-c", raoScript(programs, arm))
	if err != nil || out.Exit != 0 {
		return r, fmt.Errorf("exit %d, %v: %.500s", out.Exit, err, out.Stderr)
	}
	in := sections(out.Stdout)
	var status parityStatus
	if err := json.Unmarshal([]byte(in["status"]), &status); err != nil {
		return r, fmt.Errorf("read status: %w: %.300q", err, in["status"])
	}
	for i := range programs {
		var p parityReport
		if err := json.Unmarshal([]byte(in["report"+strconv.Itoa(i)]), &p); err != nil {
			return r, fmt.Errorf("read report %d: %w: %.300q", i, err, out.Stdout)
		}
		for _, phase := range p.Phases {
			if phase.Phase == 2 && phase.End > phase.Start {
				r.Ops = append(r.Ops, phase.Work/(phase.End-phase.Start)*status.MHz*1e6)
			}
		}
	}
	if len(r.Ops) != len(programs) {
		return r, fmt.Errorf("nothing was done in phase 2: %.500q", out.Stdout)
	}
	return r, nil
}

// raoPeriod is 10 ms of hardware, Rao's period: everything takes 20 times as long in the
// lab (time_factor).
const raoPeriod = "200ms"

// raoScript: 80 periods of BRM to warm up, then 3 s count.
func raoScript(programs []raoProgram, arm string) string {
	var b strings.Builder
	b.WriteString(`set -u
echo 0 > /proc/sys/kernel/numa_balancing
rm -rf /tmp/rao; mkdir -p /tmp/rao; cd /tmp/rao
homenode-load control on --phase 0 > /dev/null
`)
	for i, p := range programs {
		fmt.Fprintf(&b, "homenode-load %s --seconds 100000 --out r%[2]d --ready p%[2]d </dev/null >o%[2]d 2>&1 &\n", p.load, i)
	}
	for i, p := range programs {
		fmt.Fprintf(&b, "n=0; until [ -e p%[1]d ]; do n=$((n + 1)); [ $n -lt 1200 ] || { cat o%[1]d >&2; exit 1; }; sleep 0.05; done\n", i)
		if arm == "by hand" {
			fmt.Fprintf(&b, "taskset -a -cp %s $(cat p%d) > /dev/null || exit 1\n", p.hand, i)
		}
	}
	if strings.HasPrefix(arm, "brm") {
		b.WriteString("homenode pin --pid $(cat p* | paste -sd,) --period " + raoPeriod + strings.TrimPrefix(arm, "brm") + " </dev/null >brm 2>&1 & B=$!\n")
	}
	b.WriteString(`homenode-load control on --phase 1 > /dev/null
sleep 16
homenode-load control on --phase 2 > /dev/null
echo == status; homenode-load status
sleep 3
homenode-load control on --phase 3 > /dev/null
`)
	if strings.HasPrefix(arm, "brm") {
		b.WriteString("[ -e /proc/$B ] || { cat brm >&2; exit 1; }; kill $B; while [ -e /proc/$B ]; do sleep 0.05; done\n")
	}
	b.WriteString("kill $(cat p*); wait\n")
	for i := range programs {
		fmt.Fprintf(&b, "echo == report%[1]d; cat r%[1]d\n", i)
	}
	b.WriteString("homenode-load control off > /dev/null\n")
	return b.String()
}

// raoTell prints each arm's throughput against the default's of the same repeat.
func raoTell(all []raoRun) {
	mean := func(r raoRun) (sum float64) {
		for _, ops := range r.Ops {
			sum += math.Log(ops)
		}
		return math.Exp(sum / float64(len(r.Ops)))
	}
	for _, mix := range raoMixes {
		for _, arm := range raoArms[1:] {
			var ratios []float64
			for i, r := range all {
				if r.Mix == mix.name && r.Arm == arm {
					ratios = append(ratios, mean(r)/mean(all[i-indexOfArm(arm)]))
				}
			}
			s, ok := experiment.Summarise(ratios)
			if !ok {
				continue
			}
			fmt.Printf("%-17s %-11s %.3f × the default (%.3f–%.3f, %d repeats)\n", mix.name, arm, s.Median, s.Min, s.Max, len(ratios))
		}
	}
}

func indexOfArm(arm string) int {
	for i, a := range raoArms {
		if a == arm {
			return i
		}
	}
	return 0
}
