// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"homenode/internal/machine"
	"homenode/internal/set"
)

// kernelReadsServer is the demonstration's search without its cold memory.
const kernelReadsServer = "server --thp off --workers 4 --ws 24MiB --closed --think-us 50"

// kernelReadsArm is a node on which a service is created and the node to which it is
// bound. The kernel's own memory, as far as it is made at boot, is on node 0.
type kernelReadsArm struct {
	Name           string
	Created, Bound int
}

var kernelReadsArms = []kernelReadsArm{
	{"created and bound on node 0", 0, 0},
	{"created and bound on node 1", 1, 1},
	{"created on node 2, bound to node 1", 2, 1},
}

// readsByNode are reads of DRAM of the CPUs of the service's node.
type readsByNode struct {
	Local  float64 `json:"local"`
	Remote float64 `json:"remote"`
}

func (r readsByNode) all() float64 { return r.Local + r.Remote }

// kernelReadsRow is one run.
type kernelReadsRow struct {
	Arm    string      `json:"arm"`
	User   readsByNode `json:"user"`
	Kernel readsByNode `json:"kernel"`
	// Of all reads, user mode and kernel.
	UserRemote   float64 `json:"user_remote_ratio"`
	KernelRemote float64 `json:"kernel_remote_ratio"`
}

// TestBenchKernelReads counts the reads of a bound service in user mode and in the
// kernel apart, by node (scripts/bench-by-test.sh KernelReads). It shows which of them
// stay remote, though all memory of the service is at home.
func TestBenchKernelReads(t *testing.T) {
	path, repeats := benchFile(t, "HOMENODE_BENCH_KERNELREADS", "scripts/bench-by-test.sh KernelReads")
	arms := benchOnly(t, kernelReadsArms, func(a kernelReadsArm) string { return a.Name })
	g := guest(t, "four", "v2")
	var rows []kernelReadsRow
	for range repeats {
		for _, a := range arms {
			row, err := kernelReadsRun(t.Context(), g, a)
			if err != nil {
				t.Fatalf("%s: %v", a.Name, err)
			}
			fmt.Printf("%-36s user %.0f local, %.0f remote (%.4f of all reads); kernel %.0f local, %.0f remote (%.4f of all reads)\n", row.Arm,
				row.User.Local, row.User.Remote, row.UserRemote, row.Kernel.Local, row.Kernel.Remote, row.KernelRemote)
			rows = append(rows, row)
			writeResults(t, path, rows)
		}
	}
}

// kernelReadsScript starts the service on one node and binds it to the other, CPUs and
// then memory: on cgroup v2 the kernel moves its pages. The script runs on the CPU that is
// kept for daemons.
func kernelReadsScript(s machine.Shape, a kernelReadsArm) string {
	cpus := func(node int) string { return s.Nodes[node].CPUs.Minus(s.Housekeeping).String() }
	keep, _ := s.Housekeeping.First()
	return fmt.Sprintf(`set -eu
taskset -p %[1]x $$ > /dev/null
cg=/sys/fs/cgroup/reads; rm -rf /tmp/reads; mkdir -p /tmp/reads $cg; cd /tmp/reads
echo "+cpuset +memory" > /sys/fs/cgroup/cgroup.subtree_control
echo %[2]s > $cg/cpuset.cpus; echo %[3]d > $cg/cpuset.mems
sh -c "echo \$\$ > $cg/cgroup.procs; exec homenode-load %[6]s --seconds 100000 --ready p" < /dev/null > o 2>&1 &
n=0; until [ -e p ]; do n=$((n + 1)); [ $n -lt 600 ] || { cat o >&2; exit 1; }; sleep 0.05; done
echo %[4]s > $cg/cpuset.cpus; echo %[5]d > $cg/cpuset.mems
homenode-load control on > /dev/null
sleep 3
echo == begin; homenode-load status
sleep 5
echo == end; homenode-load status
echo == memory; grep '^anon ' $cg/memory.numa_stat
homenode-load control off > /dev/null
kill $(cat p); wait || true
n=0; until rmdir $cg 2> /dev/null; do n=$((n + 1)); [ $n -lt 50 ] || exit 1; sleep 0.1; done
`, 1<<keep, cpus(a.Created), a.Created, cpus(a.Bound), a.Bound, kernelReadsServer)
}

func kernelReadsRun(ctx context.Context, g *Guest, a kernelReadsArm) (row kernelReadsRow, err error) {
	ctx, cancel := g.Within(ctx, patience)
	defer cancel()
	out, err := g.Run(ctx, "sh", "-c", kernelReadsScript(g.Shape, a))
	if err != nil || out.Exit != 0 {
		return row, fmt.Errorf("exit %d, %v: %.500s", out.Exit, err, out.Stderr)
	}
	in := sections(out.Stdout)
	var begin, end parityStatus
	if err := errors.Join(json.Unmarshal([]byte(in["begin"]), &begin), json.Unmarshal([]byte(in["end"]), &end)); err != nil {
		return row, fmt.Errorf("read status: %w: %.300q", err, in["begin"])
	}
	if err := allAt(in["memory"], a.Bound); err != nil {
		return row, err
	}
	row = readsApart(begin, end, g.Shape.Nodes[a.Bound].CPUs.Minus(g.Shape.Housekeeping))
	row.Arm = a.Name
	return row, nil
}

// allAt refuses a service with more than a per cent of its memory on other nodes: its
// reads would be remote for that reason.
func allAt(stat string, node int) error {
	var n [4]float64
	if _, err := fmt.Sscanf(stat, "anon N0=%f N1=%f N2=%f N3=%f", &n[0], &n[1], &n[2], &n[3]); err != nil {
		return fmt.Errorf("parse memory.numa_stat %q: %w", stat, err)
	}
	if sum := n[0] + n[1] + n[2] + n[3]; n[node] < 0.99*sum {
		return fmt.Errorf("of %.0f bytes %.0f are on node %d: memory is not at home", sum, n[node], node)
	}
	return nil
}

// readsApart takes the kernel's reads as all reads less those of user mode.
func readsApart(begin, end parityStatus, cpus set.CPUSet) (row kernelReadsRow) {
	for cpu := range cpus.All() {
		b, e := begin.VCPUs[cpu], end.VCPUs[cpu]
		for name, into := range map[string][2]*float64{
			"local_loads": {&row.User.Local, &row.Kernel.Local}, "remote_loads": {&row.User.Remote, &row.Kernel.Remote},
		} {
			user := e.User[name] - b.User[name]
			*into[0] += user
			*into[1] += e.Total[name] - b.Total[name] - user
		}
	}
	if all := row.User.all() + row.Kernel.all(); all > 0 {
		row.UserRemote, row.KernelRemote = row.User.Remote/all, row.Kernel.Remote/all
	}
	return row
}
