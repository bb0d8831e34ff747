// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"

	"homenode/internal/dataset"
	"homenode/internal/model/gain"
	"homenode/internal/profiling"
	"homenode/internal/set"
	"homenode/internal/sim/catalog"
)

// trialScript starts the mix on these CPUs: not on the one that is kept for daemons, which is as much
// faster as the shape's time factor, so that a service with a thread there does many times the work.
func trialScript(m catalog.TrialMix, cpus set.CPUSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, `base=/sys/fs/cgroup; echo 0 > /proc/sys/kernel/numa_balancing
mkdir -p $base/trials && echo "+cpuset +cpu +memory" > $base/trials/cgroup.subtree_control && echo %s > $base/trials/cpuset.cpus
`, cpus)
	b.WriteString(`start() { mkdir -p $base/trials/$1; [ -z "$2" ] || echo "$2 100000" > $base/trials/$1/cpu.max
sh -c 'echo 0 > /sys/fs/cgroup/trials/'$1'/cgroup.procs; exec homenode-load '"$3"' --ready /tmp/trial-'$1'.ready --count /tmp/trial-'$1'.count --out /tmp/trial-'$1'.json' </dev/null >/dev/null 2>&1 & }
`)
	names := []string{}
	add := func(name string, limit float64, load string) {
		quota := ""
		if limit > 0 {
			quota = strconv.Itoa(int(limit * 100000))
		}
		fmt.Fprintf(&b, "start %s '%s' '%s --seed %d'\n", name, quota, load, m.Seed)
		names = append(names, name)
	}
	for _, s := range m.Services {
		add(s.Name, s.Limit, s.Load())
	}
	for _, l := range m.Beside {
		add(l.Name, 0, l.Load())
	}
	fmt.Fprintf(&b, "for n in %s; do while [ ! -e /tmp/trial-$n.ready ]; do sleep 0.1; done; done; homenode-load control on; sleep 3\n", strings.Join(names, " "))
	return b.String()
}

const endTrials = `killall -9 homenode homenode-load 2>/dev/null; while pidof homenode homenode-load >/dev/null; do sleep 0.1; done
homenode restore >/dev/null 2>&1; homenode-load control off; rm -f /tmp/trial*; for d in /sys/fs/cgroup/trials/*/; do rmdir $d; done; rmdir /sys/fs/cgroup/trials; true`

// tryOne is an experiment with a service of a running mix. A service that has no row, because no
// node has room or the policy would not bind it, has none.
func tryOne(t *testing.T, g *Guest, m catalog.TrialMix, s catalog.TrialService) (rows []gain.Row) {
	t.Helper()
	r := runs(t, g, fmt.Sprintf("homenode experiment --workload /trials/%s --application %s-%d --kind %s --metric file:/tmp/trial-%s.count --counter --warm-up 500ms --for 2s --repeats 4 --most-loss 0 --seed %d --rate max --rows /tmp/trial.parquet",
		s.Name, s.Name, m.Seed, s.Kind, s.Name, m.Seed))
	if r.Exit != 0 {
		t.Logf("seed %d, %s: exit %d: %s", m.Seed, s.Name, r.Exit, lastText(r.Stderr))
		mustRun(t, g, "sh", "-c", "homenode restore >/dev/null 2>&1; rm -f /tmp/trial.parquet*; true")
		return nil
	}
	data, err := g.Fetch(t.Context(), "/tmp/trial.parquet")
	if err != nil {
		t.Logf("seed %d, %s: no row: %s", m.Seed, s.Name, lastText(r.Stdout))
		return nil
	}
	mustRun(t, g, "rm", "/tmp/trial.parquet")
	if rows, err = parquet.Read[gain.Row](bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	return rows
}

func lastText(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// trialFile is the data set that trials are added to.
type trialFile struct {
	sync.Mutex
	path string
	rows []gain.Row
}

func openTrials(t *testing.T, path string) *trialFile {
	t.Helper()
	f := &trialFile{path: path}
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if len(data) > 0 {
		if f.rows, err = parquet.Read[gain.Row](bytes.NewReader(data), int64(len(data))); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *trialFile) has(seed uint64) bool {
	return slices.ContainsFunc(f.rows, func(r gain.Row) bool { return r.Seed == seed })
}

func (f *trialFile) add(t *testing.T, seed uint64, rows []gain.Row) {
	t.Helper()
	f.Lock()
	defer f.Unlock()
	for i := range rows {
		rows[i].Machine = "shape:four" // as the simulator names it
		rows[i].Server = fmt.Sprintf("%016x", seed)
		rows[i].Replica = fmt.Sprintf("%s-%s", rows[i].Server, rows[i].Service)
	}
	f.rows = append(f.rows, rows...)
	slices.SortStableFunc(f.rows, func(a, b gain.Row) int { return int(a.Seed) - int(b.Seed) })
	var file bytes.Buffer
	err := gain.WriteRows(&file, f.rows, []dataset.KeyValue{
		{Key: profiling.KeySource, Value: gain.Lab}, {Key: profiling.KeyMachine, Value: "shape:four"}, {Key: profiling.KeyHow, Value: "modelled"},
		{Key: profiling.KeyCommand, Value: "scripts/lab-trials.sh"}, {Key: profiling.KeyMetric, Value: "requests per second of a closed loop"},
	})
	if err == nil {
		err = os.MkdirAll(filepath.Dir(f.path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(f.path+".new", file.Bytes(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d: %d rows, %d in all", seed, len(rows), len(f.rows))
}

// TestLabTrials tries services of drawn mixes (scripts/lab-trials.sh): labels of real programs on
// the modelled machine. HOMENODE_TRIALS names the data set, to which it adds the seeds up to
// HOMENODE_TRIALS_SEEDS that it does not have.
func TestLabTrials(t *testing.T) {
	path := os.Getenv("HOMENODE_TRIALS")
	if path == "" {
		t.Skip("HOMENODE_TRIALS is not set to the data set: scripts/lab-trials.sh sets it")
	}
	seeds, err := strconv.Atoi(os.Getenv("HOMENODE_TRIALS_SEEDS"))
	if err != nil {
		t.Fatal(err)
	}
	file := openTrials(t, path)
	var open []uint64
	for seed := range uint64(seeds) {
		if !file.has(seed + 1) {
			open = append(open, seed+1)
		}
	}
	const lanes = 2
	for lane := range lanes {
		t.Run(fmt.Sprintf("guest%d", lane), func(t *testing.T) {
			t.Parallel()
			g := guest(t, "four", "v2")
			t.Cleanup(func() { mustRun(t, g, "sh", "-c", endTrials) })
			for i := lane; i < len(open); i += lanes {
				m := catalog.DrawTrials(open[i])
				mustRun(t, g, "sh", "-c", trialScript(m, g.Shape.ForWorkloads().CPUs()))
				var rows []gain.Row
				for _, s := range m.Services {
					rows = append(rows, tryOne(t, g, m, s)...)
				}
				for k := range rows {
					rows[k].Seed = m.Seed
				}
				file.add(t, m.Seed, rows)
				mustRun(t, g, "sh", "-c", endTrials)
			}
		})
	}
}
