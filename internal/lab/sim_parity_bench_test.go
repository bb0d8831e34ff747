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
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"homenode/internal/set"
	"homenode/internal/sim/parity"
	"homenode/internal/unit"
)

// TestBenchSimParity measures the figures to which the simulated machine is compared
// (make bench-sim-parity). HOMENODE_SIM_PARITY names the record, to which it adds what is
// missing there, scenario by scenario. HOMENODE_SIM_PARITY_ONLY is a part of the names.
func TestBenchSimParity(t *testing.T) {
	p := openParity(t)
	for _, shape := range []string{"two", "four"} {
		t.Run(shape, func(t *testing.T) {
			for _, s := range parity.Scenarios() {
				if _, done := p.record.Of(s); s.Shape == shape && !done && p.asked(s.Name) {
					t.Run(s.Name, func(t *testing.T) { p.measure(t, s) }) // whose end passes the guest on
				}
			}
			for _, c := range parity.Convergences() {
				if _, done := p.record.Case(c); c.Shape == shape && !done && p.asked(c.Name) {
					t.Run(c.Name, func(t *testing.T) { p.converge(t, c) })
				}
			}
		})
	}
}

// parityBench adds to a record.
type parityBench struct {
	path, only string
	repeats    int
	record     parity.Record
}

func openParity(t *testing.T) *parityBench {
	t.Helper()
	p := &parityBench{path: os.Getenv("HOMENODE_SIM_PARITY"), only: os.Getenv("HOMENODE_SIM_PARITY_ONLY"), repeats: 3}
	if p.path == "" {
		t.Skip("HOMENODE_SIM_PARITY is not set to the record: this is a measurement of make bench-sim-parity")
	}
	if n, err := strconv.Atoi(os.Getenv("HOMENODE_BENCH_REPEATS")); err == nil {
		p.repeats = n
	}
	data, err := os.ReadFile(p.path)
	if err == nil {
		p.record, err = parity.DecodeRecord(data)
	} else if errors.Is(err, fs.ErrNotExist) {
		p.record, err = parity.Record{Schema: parity.RecordSchema, How: "modelled (lab)"}, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *parityBench) asked(name string) bool { return strings.Contains(name, p.only) }

func (p *parityBench) save(t *testing.T) {
	t.Helper()
	data, err := json.MarshalIndent(p.record, "", " ")
	if err == nil {
		err = os.WriteFile(p.path, append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func originOf(t *testing.T, g *Guest) parity.Origin {
	t.Helper()
	first := func(name string, args ...string) string {
		out, _ := exec.Command(name, args...).Output()
		line, _, _ := strings.Cut(string(out), "\n")
		return strings.TrimSpace(line)
	}
	return parity.Origin{
		Commit: first("git", "describe", "--always", "--dirty"),
		Date:   time.Now().UTC().Format(time.DateOnly),
		QEMU:   first("qemu-system-x86_64", "--version"),
		Kernel: strings.TrimSpace(mustRun(t, g, "uname", "-r")),
	}
}

// measure runs a scenario as often as configured, with a fresh process each time.
func (p *parityBench) measure(t *testing.T, s parity.Scenario) {
	g := guest(t, s.Shape, "v2")
	begin := time.Now()
	var all [][]parity.Run
	for range p.repeats {
		runs, err := parityRun(t.Context(), g, s)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			return
		}
		all = append(all, runs)
	}
	t.Logf("%s took %.0f s, %d runs", s.Name, time.Since(begin).Seconds(), len(all))
	p.keep(t, g, s, all)
}

func (p *parityBench) keep(t *testing.T, g *Guest, s parity.Scenario, all [][]parity.Run) {
	m := parity.Measured{Scenario: s.Name, Shape: s.Shape, Origin: originOf(t, g)}
	for i, l := range s.Loads {
		m.Loads = append(m.Loads, parity.MeasuredLoad{Name: l.Name, Args: l.Args, Interleave: l.Interleave, Threads: threadsOf(l).Len()})
		for _, runs := range all {
			m.Loads[i].Runs = append(m.Loads[i].Runs, runs[i])
		}
	}
	for _, l := range m.Loads {
		v, spread, _ := l.Median(func(r parity.Run) float64 { return r.Cycles })
		r := l.Runs[0]
		fmt.Printf("%-24s %-5s %8.2f cycles/op ± %4.1f %%  local %.3f  dram/op %.4f  ipo %.3f l2m/op %.3f tr/op %.4f wb/op %.3f user %.3f\n", s.Name, l.Name, v, 100*spread,
			r.LocalRatio.Or(math.NaN()), r.DRAM, r.Instructions, r.L2Misses, r.Transfers, r.Writebacks, r.UserShare)
	}
	p.record.Scenarios = append(p.record.Scenarios, m)
	p.save(t)
}

// threadsOf are the CPUs to which its threads are tied.
func threadsOf(l parity.Load) set.CPUSet {
	f := strings.Fields(l.Args)
	for i := range f {
		if f[i] == "--cpus" {
			cpus, _ := set.ParseCPUs(f[i+1])
			return cpus
		}
	}
	return set.CPUSet{}
}

// parityScript starts all loads with the model off, because nothing before phase 1
// counts. Phase 1 lasts until caches and queues have settled: 2 s, as in parity.Simulate.
// Phase 2 counts.
func parityScript(s parity.Scenario) string {
	var b strings.Builder
	b.WriteString(`set -u
rm -rf /tmp/par; mkdir -p /tmp/par; cd /tmp/par
homenode-load control off --phase 0 > /dev/null
`)
	for i, l := range s.Loads {
		with := ""
		if l.Interleave != "" {
			with = "homenode run --nodes " + l.Interleave + " --policy interleave -- "
		}
		fmt.Fprintf(&b, "timeout 170 %shomenode-load %s --seconds 100000 --out r%d --ready p%d < /dev/null > o%d 2>&1 &\n", with, l.Args, i, i, i)
	}
	for i := range s.Loads {
		fmt.Fprintf(&b, "n=0; until [ -e p%d ]; do n=$((n + 1)); [ $n -lt 600 ] || { cat o%d >&2; exit 1; }; sleep 0.05; done\n", i, i)
	}
	b.WriteString(`homenode-load control on --phase 1 > /dev/null
sleep 2
homenode-load control on --phase 2 > /dev/null
echo == begin; homenode-load status
sleep 1.6
echo == end; homenode-load status
homenode-load control off --phase 3 > /dev/null
kill $(cat p?); wait
`)
	for i := range s.Loads {
		fmt.Fprintf(&b, "echo == report%d; cat r%d\n", i, i)
	}
	return b.String()
}

type parityStatus struct {
	Cycles float64 `json:"model_cycles"`
	MHz    float64 `json:"mhz"`
	VCPUs  []struct {
		User  map[string]float64 `json:"user"`
		Total map[string]float64 `json:"total"` // including the kernel's
	} `json:"vcpus"`
}

type parityReport struct {
	Threads float64 `json:"threads"`
	Phases  []struct {
		Phase   int     `json:"phase"`
		Work    float64 `json:"work"`
		Start   float64 `json:"start_cycles"`
		End     float64 `json:"end_cycles"`
		Latency struct {
			Mean float64 `json:"mean"`
		} `json:"latency_us"`
	} `json:"phases"`
}

func parityRun(ctx context.Context, g *Guest, s parity.Scenario) ([]parity.Run, error) {
	ctx, cancel := g.Within(ctx, 3*time.Minute)
	defer cancel()
	out, err := g.Run(ctx, "sh", "-c", parityScript(s))
	if err != nil || out.Exit != 0 {
		return nil, fmt.Errorf("exit %d, %v: %.500s", out.Exit, err, out.Stderr)
	}
	in := sections(out.Stdout)
	var begin, end parityStatus
	if err := errors.Join(json.Unmarshal([]byte(in["begin"]), &begin), json.Unmarshal([]byte(in["end"]), &end)); err != nil {
		return nil, fmt.Errorf("read status: %w: %.300q", err, in["begin"])
	}
	var runs []parity.Run
	for i, l := range s.Loads {
		var r parityReport
		if err := json.Unmarshal([]byte(in["report"+strconv.Itoa(i)]), &r); err != nil {
			return nil, fmt.Errorf("read report of %s: %w: %.300q", l.Name, err, out.Stdout)
		}
		run, err := ofParity(begin, end, r, threadsOf(l))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.Name, err)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// ofParity joins the CPUs' counts and the load's report. Their stretches of time differ
// slightly, so rates are joined.
func ofParity(begin, end parityStatus, r parityReport, cpus set.CPUSet) (run parity.Run, err error) {
	took := end.Cycles - begin.Cycles
	count := func(name string) (sum float64) {
		for cpu := range cpus.All() {
			sum += end.VCPUs[cpu].User[name] - begin.VCPUs[cpu].User[name]
		}
		return sum
	}
	perCycle := 0.0
	for _, p := range r.Phases {
		if p.Phase == 2 && p.End > p.Start {
			perCycle = p.Work / (p.End - p.Start)
		}
	}
	if perCycle == 0 || took <= 0 {
		return run, fmt.Errorf("nothing was done in phase 2: %+v", r)
	}
	ops := perCycle * took
	local, remote := count("local_loads")+count("local_stores"), count("remote_loads")+count("remote_stores")
	return parity.Run{
		Cycles: count("cycles") / ops, Instructions: count("instructions") / ops,
		OpsPerSecond: perCycle * begin.MHz * 1e6,
		LocalRatio:   unit.OptOf(local/(local+remote), local+remote > 0), DRAM: (local + remote) / ops,
		L2Misses: count("l2_misses") / ops, Stall: count("stall_cycles") / ops,
		Transfers:  (count("transfers_local") + count("transfers_remote")) / ops,
		Writebacks: count("writebacks") / ops,
		UserShare:  count("cycles") / (took * float64(cpus.Len())),
	}, nil
}
