// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"time"

	"homenode/internal/kernel/cgroup"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

const byLastCPU = "last CPU × time of each thread"

// cpuByNodeSensor takes the best source there is:
//
//  1. cpuacct.usage_percpu (v1): exact.
//  2. What the events' collector has set: the cgroup's clock on each CPU, exact unless
//     multiplexed.
//  3. The ticks of each thread, credited to the CPU that it ran on last, and scaled
//     to the known total: an estimate.
type cpuByNodeSensor struct {
	w         *workload
	perCPU    *unix.Kept
	byCPU     []time.Duration // (1)
	byCPUAt   time.Time
	ticks     map[int]uint64 // (3), by thread
	threadsAt time.Time
}

func newCPUByNodeSensor(w *workload) sensor {
	return &cpuByNodeSensor{w: w, perCPU: w.file(w.acctHier, "cpuacct.usage_percpu")}
}

func (s *cpuByNodeSensor) read(rd *round, out *window.Workload) (err error) {
	switch {
	case s.w.perCPUTime(): // 1
		out.CPUByNode, err = s.fromPerCPU(rd)
	case out.CPUByNode == nil: // 3
		out.CPUByNode, err = s.fromThreads(rd, out.CPU)
	}
	if err == nil && !out.CPU.Known() {
		out.CPU = total(out.CPUByNode, out.CPU)
	}
	return err
}

func (s *cpuByNodeSensor) unknown(rd *round, out *window.Workload, why string) {
	out.CPUByNode = unknownByNode[float64](rd.nodeCount(), why)
}

// perCPUTime says that cpuacct has the CPU time by CPU (v1).
func (w *workload) perCPUTime() bool { return w.acctHier.Present() && !w.acctHier.V2 }

func (s *cpuByNodeSensor) fromPerCPU(rd *round) ([]unit.Value[float64], error) {
	const from = "cpuacct.usage_percpu"
	data, err := s.perCPU.ReadLine(&rd.buf)
	now := rd.now()
	var all []time.Duration
	if err == nil {
		all, err = cgroup.ParseCPUAcctPerCPU(data)
	}
	if err != nil {
		return nil, unix.Explain("read", from, "", err)
	}
	before, elapsed := s.byCPU, now.Sub(s.byCPUAt)
	s.byCPU, s.byCPUAt = all, now
	if len(before) != len(all) || elapsed <= 0 {
		return nil, errFirstWindow
	}
	by := rd.newPerNode(elapsed)
	for cpu := range all {
		by.addTime(cpu, max(0, all[cpu]-before[cpu]))
	}
	return values(by.cpus, unit.HowMeasured, from), nil
}

// fromThreads uses a thread that is new in this round only as a base.
func (s *cpuByNodeSensor) fromThreads(rd *round, known unit.Value[float64]) ([]unit.Value[float64], error) {
	now := rd.now()
	before, elapsed := s.ticks, now.Sub(s.threadsAt)
	s.ticks, s.threadsAt = make(map[int]uint64, len(rd.tids)), now
	by := rd.newPerNode(elapsed)
	for _, tid := range rd.tids {
		st, err := rd.threadStat(tid)
		if err != nil {
			continue
		}
		s.ticks[tid] = st.Ticks
		if was, ok := before[tid]; ok && st.Ticks > was {
			by.addTime(st.CPU, time.Duration(st.Ticks-was)*time.Second/userHZ)
		}
	}
	if before == nil || elapsed <= 0 {
		return nil, errFirstWindow
	}
	scaleTo(by.cpus, known)
	return values(by.cpus, unit.HowEstimated, byLastCPU), nil
}

// perNode adds CPU times up by node, in CPUs' worth of the time that has elapsed.
type perNode struct {
	topology *Topology
	elapsed  time.Duration
	cpus     []float64
}

func (rd *round) newPerNode(elapsed time.Duration) perNode {
	return perNode{&rd.topology, elapsed, make([]float64, rd.nodeCount())}
}

func (n *perNode) addTime(cpu int, t time.Duration) {
	if i, ok := n.topology.NodeAt(cpu); ok && n.elapsed > 0 {
		n.cpus[i] += t.Seconds() / n.elapsed.Seconds()
	}
}

// total sums the parts if the whole is not known; els is the reason why it is not.
func total(by []unit.Value[float64], els unit.Value[float64]) unit.Value[float64] {
	sum := 0.0
	for _, v := range by {
		part, ok := v.Get()
		if !ok {
			return els
		}
		sum += part
	}
	if len(by) == 0 {
		return els
	}
	return unit.ValueOf(sum, by[0].How, by[0].From)
}

// scaleTo makes the parts add up to a known total.
func scaleTo(by []float64, total unit.Value[float64]) {
	sum := 0.0
	for _, v := range by {
		sum += v
	}
	if t, ok := total.Get(); ok && sum > 0 {
		for i := range by {
			by[i] *= t / sum
		}
	}
}
