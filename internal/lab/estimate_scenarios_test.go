// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"strings"

	"homenode/internal/machine"
)

// estimateScenario is a workload whose local access ratio is counted and estimated. Its
// loads are lines of shell, each a process in the workload's cgroup. They were written
// before the first run, and not changed after it. Those with Mems came after five had
// shown that balancing leaves nothing remote where it may move pages.
type estimateScenario struct {
	Name  string
	Kind  string // what makes it easy or hard
	Loads []string
	// After runs once all loads are at work: "$pids" are their processes.
	After string
	// Mems, if not empty, is its cpuset.mems: the kernel's balancing can move nothing out
	// of it, and what it finds remote stays remote.
	Mems string
}

// cpuOf is the n-th CPU of a node.
func cpuOf(s machine.Shape, node, n int) int { return s.Nodes[node].CPUs.IDs()[n] }

// estimateScenarios are those of a shape. far is the node that is farthest from 0.
func estimateScenarios(s machine.Shape) []estimateScenario {
	far := len(s.Nodes) - 1
	c := func(node, n int) string { return fmt.Sprint(cpuOf(s, node, n)) }
	each := make([]string, len(s.Nodes))
	for i := range s.Nodes {
		each[i] = c(i, 0)
	}
	near, away, all := c(0, 0), c(far, 0), strings.Join(each, ",")
	pair := near + "," + away
	on := func(cpu, args string) string { return "taskset -c " + cpu + " homenode-load " + args } // main thread's node
	threads := fmt.Sprint(len(each))
	spread := fmt.Sprintf("homenode run --nodes 0-%d --policy interleave --cpus all -- homenode-load ", far)
	free := []estimateScenario{
		{"private-local", "one node", []string{on(near, "chase --ws 8MiB --cpus "+near)}, "", ""},
		{"private-remote", "one node", []string{on(away, "chase --ws 8MiB --cpus "+near)}, "", ""},
		{"stream-local", "one node", []string{on(near, "stream --ws 8MiB --cpus "+near)}, "", ""},
		{"stream-write-remote", "one node", []string{on(away, "stream --write --ws 8MiB --cpus "+near)}, "", ""},
		{"crowd-remote", "one node", []string{on(away, "chase --ws 2MiB --threads 4 --cpus "+near)}, "", ""},
		{"bound-remote", "bound by policy", []string{"homenode-load chase --ws 8MiB --bind-mem " + fmt.Sprint(far) + " --cpus " + near}, "", ""},
		{"interleave-one", "bound by policy", []string{spread + "chase --ws 8MiB --cpus " + near}, "", ""},
		{"interleave-shared", "bound by policy", []string{spread + "chase --shared --ws 8MiB --threads " + threads + " --cpus " + all}, "", ""},
		{"shared-on-one", "shared, spread threads", []string{on(near, "chase --shared --ws 8MiB --threads "+threads+" --cpus "+all)}, "", ""},
		{"shared-stream", "shared, spread threads", []string{on(away, "stream --triad --ws 6MiB --threads 2 --cpus "+pair)}, "", ""},
		{"shared-uneven", "shared, spread threads", []string{on(away, "chase --shared --ws 8MiB --threads 3 --cpus "+near+","+c(0, 1)+","+away)}, "", ""},
		{"private-each-local", "private, spread threads", []string{on(near, "chase --ws 4MiB --touch worker --threads "+threads+" --cpus "+all)}, "", ""},
		{"private-each-remote", "private, spread threads", []string{on(away, "chase --ws 4MiB --cpus "+near), on(near, "chase --ws 4MiB --cpus "+away)}, "", ""},
		{"private-on-one", "private, spread threads", []string{on(near, "chase --ws 4MiB --threads 2 --cpus "+pair)}, "", ""},
		{"roaming", "private, spread threads", []string{"homenode-load chase --ws 4MiB --threads 3"}, "", ""},
		{"hot-local-cold-remote", "skewed access", []string{on(away, "chase --ws 3MiB --touch worker --extra 48MiB --cpus "+near)}, "", ""},
		{"hot-remote-cold-local", "skewed access", []string{on(away, "chase --ws 3MiB --cpus "+near), on(near, "hold --ws 48MiB")}, "", ""},
		{"two-rates", "skewed access", []string{on(near, "chase --ws 4MiB --cpus "+near), on(away, "stream --ws 8MiB --cpus "+c(0, 1))}, "", ""},
		{"page-cache-idle", "page cache", []string{on(near, "chase --ws 8MiB --cpus "+near), on(away, "pagecache --file /tmp/est/cache --bytes 32MiB; sleep 1000")}, "", ""},
		{"file-mapped-remote", "page cache", []string{on(away, "chase --ws 8MiB --file /tmp/est/map --cpus "+near)}, "", ""},
		{"huge-remote", "huge pages", []string{on(away, "chase --ws 8MiB --thp on --cpus "+near)}, "", ""},
		{"huge-shared", "huge pages", []string{on(near, "chase --shared --ws 16MiB --thp on --threads 2 --cpus "+pair)}, "", ""},
		{"spin", "little DRAM", []string{on(near, "spin --cpus "+near), on(away, "hold --ws 16MiB")}, "", ""},
		{"in-cache-remote", "little DRAM", []string{on(away, "chase --ws 256KiB --cpus "+near)}, "", ""},
		{"rao-shared", "lines that move", []string{on(near, "rao --ws 4MiB --threads 2 --cpus "+pair)}, "", ""},
		{"atomics", "lines that move", []string{on(near, "share --sharing 4KiB --threads 2 --cpus "+pair)}, "", ""},
		{"moved-back", "moved", []string{on(away, "chase --ws 8MiB --cpus "+near)}, fmt.Sprintf("for p in $pids; do homenode-load peer migrate-pages $p %d 0; done", far), ""},
		{"moved-away", "moved", []string{on(near, "chase --ws 8MiB --cpus "+near)}, fmt.Sprintf("for p in $pids; do homenode-load peer migrate-pages $p 0 %d; done", far), ""},
	}
	held := []estimateScenario{
		{"held-private-remote", "held", []string{on(away, "chase --ws 8MiB --cpus "+near)}, "", fmt.Sprint(far)},
		{"held-shared-on-one", "held", []string{on(near, "chase --shared --ws 8MiB --threads "+threads+" --cpus "+all)}, "", "0"},
		{"held-shared-uneven", "held", []string{on(away, "chase --shared --ws 8MiB --threads 3 --cpus "+near+","+c(0, 1)+","+away)}, "", fmt.Sprint(far)},
		{"held-private-on-one", "held", []string{on(near, "chase --ws 4MiB --threads 2 --cpus "+pair)}, "", "0"},
		{"held-two-rates", "held, skewed access", []string{on(near, "chase --ws 4MiB --cpus "+near), on(near, "stream --ws 8MiB --cpus "+away)}, "", "0"},
		{"held-hot-and-large", "held, skewed access", []string{on(near, "chase --ws 1MiB --cpus "+near), on(near, "chase --ws 24MiB --cpus "+away)}, "", "0"},
		{"held-huge-remote", "held", []string{on(away, "chase --ws 8MiB --thp on --cpus "+near)}, "", fmt.Sprint(far)},
	}
	return append(free, held...)
}
