// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// setUpBRM starts a chase of two threads on node 0's CPUs with its memory on node 1, and
// then lets it run anywhere. It also starts a process that sleeps and wakes. The
// kernel's own balancing of memory is off: it would move the memory instead.
const setUpBRM = `
echo 0 > /proc/sys/kernel/numa_balancing
homenode-load control on > /dev/null
rm -f /tmp/brm-ready
taskset 3 homenode-load chase --threads 2 --ws 4MiB --shared --thp off --bind-mem 1 --ready /tmp/brm-ready </dev/null >/dev/null 2>&1 &
L=$!
while [ ! -e /tmp/brm-ready ]; do kill -0 $L || exit 1; sleep 0.05; done
sh -c 'while :; do sleep 0.2; done' </dev/null >/dev/null 2>&1 & W=$!
echo $L $W
`

// startBRM brings the threads to node 0's CPUs, and releases them.
const startBRM = `
for m in 3 f; do
	for t in /proc/%[1]s/task/*; do taskset -p $m ${t##*/} > /dev/null || exit 1; done
	sleep 0.2
done
`

const affinityBRM = `for p in %s %s; do for t in /proc/$p/task/*; do taskset -p ${t##*/}; done; done`

const tearDownBRM = `kill %s %s; homenode-load control off > /dev/null; rm -f /tmp/brm-*`

// brmSummary is what `homenode pin` prints of a run.
type brmSummary struct {
	Windows   uint64
	Moves     int
	PutBack   int `json:"put_back"`
	Problems  []string
	Processes []struct {
		ID    string
		Moves int
		First brmTenth `json:"first_tenth"`
		Last  brmTenth `json:"last_tenth"`
	}
}

type brmTenth struct {
	CPU     []brmFigure `json:"cpu_by_node"`
	Penalty brmFigure   `json:"uncore_penalty"`
	Local   brmFigure   `json:"local_access_ratio"`
}

type brmFigure struct {
	Value float64
	How   string
}

// Threads find the node of their memory: at the end most of their time is on its CPUs,
// and more of their reads are local than at the beginning. An untagged thread stays where
// it is, and in the end every thread may run where it could before. The speed depends on
// chance and on the host: each try is judged by counts alone.
func TestLabBRM(t *testing.T) {
	t.Parallel()
	g := guest(t, "two", "v2")
	pids := strings.Fields(mustRun(t, g, "sh", "-c", setUpBRM))
	if len(pids) != 2 {
		t.Fatalf("%q", pids)
	}
	load, watched := pids[0], pids[1]
	defer mustRun(t, g, "sh", "-c", fmt.Sprintf(tearDownBRM, load, watched))
	affinity := func() string { return mustRun(t, g, "sh", "-c", fmt.Sprintf(affinityBRM, load, watched)) }
	before := ""
	const tries = 5
	for try := 1; ; try++ {
		mustRun(t, g, "sh", "-c", fmt.Sprintf(startBRM, load))
		if before == "" {
			before = affinity()
		}
		s := brmIn(t, g, load, watched, "--period", "100ms", "--for", "30s", "--hold")
		if after := affinity(); after != before {
			t.Fatalf("affinities are\n%s, were\n%s", after, before)
		}
		if judgeBRM(t, s, "pid:"+load, "pid:"+watched) {
			break
		}
		if try == tries {
			t.Fatalf("the threads did not find the node of their memory in %d tries", tries)
		}
	}
	// released at once, they stay where they were put until the kernel moves them
	mustRun(t, g, "sh", "-c", fmt.Sprintf(startBRM, load))
	s := brmIn(t, g, load, watched, "--period", "50ms", "--for", "10s")
	judgeBRM(t, s, "pid:"+load, "pid:"+watched)
	if after := affinity(); after != before || s.PutBack != 0 {
		t.Errorf("affinities are\n%s, were\n%s; %d put back", after, before, s.PutBack)
	}
	brmKilled(t, g, load, watched, before)
}

func brmIn(t *testing.T, g *Guest, load, watched string, flags ...string) (s brmSummary) {
	t.Helper()
	args := append([]string{"homenode", "pin", "--pid", load, "--watch", watched, "-o", "json"}, flags...)
	if err := json.Unmarshal([]byte(mustRun(t, g, args...)), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// judgeBRM reports whether they found it, and fails on anything that must never
// happen.
func judgeBRM(t *testing.T, s brmSummary, load, watched string) (found bool) {
	t.Helper()
	t.Logf("%+v", s)
	for _, p := range s.Processes {
		switch {
		case p.ID == watched && p.Moves > 0:
			t.Fatalf("%s is not sensitive, and was moved %d times", p.ID, p.Moves)
		case p.ID == load:
			known := p.Last.Penalty.How == "modelled" && p.Last.Local.How == "modelled"
			found = known && p.Moves > 0 && len(p.Last.CPU) == 2 && p.Last.CPU[1].Value > 2*p.Last.CPU[0].Value &&
				p.Last.Local.Value > p.First.Local.Value && p.Last.Local.Value > 0.6 && p.Last.Penalty.Value < p.First.Penalty.Value
		}
	}
	if s.Windows == 0 || len(s.Processes) != 2 {
		t.Fatalf("nothing was judged: %+v", s)
	}
	return found
}

// brmKilled: `homenode restore` puts back what kill -9 leaves; SIGTERM leaves nothing.
func brmKilled(t *testing.T, g *Guest, load, watched, before string) {
	const start = `homenode pin --pid %s --period 50ms --hold </dev/null >/tmp/brm-out 2>&1 & echo $!`
	affinity := func() string { return mustRun(t, g, "sh", "-c", fmt.Sprintf(affinityBRM, load, watched)) }
	for _, signal := range []string{"-KILL", "-TERM"} {
		mustRun(t, g, "sh", "-c", fmt.Sprintf(startBRM, load))
		pid := strings.TrimSpace(mustRun(t, g, "sh", "-c", fmt.Sprintf(start, load)))
		waitFor(t, g, "a thread that is held", func() bool { return affinity() != before })
		mustRun(t, g, "sh", "-c", fmt.Sprintf("kill %s %s; while [ -e /proc/%[2]s ]; do sleep 0.05; done", signal, pid))
		if signal == "-KILL" {
			if affinity() == before {
				t.Log("it was released right before the kill")
			}
			mustRun(t, g, "sh", "-c", "homenode restore; e=$?; [ $e = 0 ] || [ $e = 4 ]")
		}
		if after := affinity(); after != before {
			t.Errorf("after %s affinities are\n%s, were\n%s\n%s", signal, after, before, mustRun(t, g, "cat", "/tmp/brm-out"))
		}
	}
}
