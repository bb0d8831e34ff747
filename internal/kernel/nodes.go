// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// tickPair is one CPU's ticks, now and a round ago.
type tickPair struct{ now, before procfs.CPUTicks }

// nodes reads memory and CPU use of every node.
func (r *Reader) nodes() []window.Node {
	first := len(r.ticks) == 0
	r.problem(r.readStat())
	out := make([]window.Node, len(r.machine.Nodes))
	for i, n := range r.machine.Nodes {
		out[i] = window.Node{ID: n.ID, CPUs: n.CPUs}
		if out[i].CPUBusy = r.busy(n.CPUs.IDs()); first {
			out[i].CPUBusy = unit.UnknownValue[float64](firstWindow)
		}
		r.memoryOf(&out[i], i)
	}
	return out
}

// memoryOf fills in what meminfo says.
func (r *Reader) memoryOf(n *window.Node, i int) {
	const from = "node meminfo"
	data, err := r.meminfo[i].Read(&r.buf)
	var m procfs.NodeMeminfo
	if err == nil {
		m, err = procfs.ParseNodeMeminfo(data)
	} else {
		err = unix.Explain("read", r.meminfo[i].Path, "", err)
	}
	r.problem(err)
	value := func(b unit.Opt[unit.Bytes]) unit.Value[unit.Bytes] {
		v, ok := b.Get()
		if !ok {
			return unit.UnknownValue[unit.Bytes]("not in " + from)
		}
		return unit.Measured(v, from)
	}
	n.Memory, n.Free, n.File, n.Anon = value(m.Total), value(m.Free), value(m.File), value(m.Anon)
}

func (r *Reader) readStat() error {
	data, err := r.stat.Read(&r.buf)
	if err != nil {
		return unix.Explain("read", "/proc/stat", "", err)
	}
	all, err := procfs.ParseStat(data)
	for _, c := range all {
		r.ticks[c.CPU] = tickPair{now: c, before: r.ticks[c.CPU].now}
	}
	return err
}

// busy adds up the share of its time that each CPU was busy. A share, since a
// tickless CPU may miss ticks of both kinds alike.
func (r *Reader) busy(cpus []int) unit.Value[float64] {
	sum := 0.0
	for _, cpu := range cpus {
		t, ok := r.ticks[cpu]
		if !ok || t.now.Total <= t.before.Total {
			return unit.UnknownValue[float64]("no tick in /proc/stat since the window before")
		}
		if t.now.Busy > t.before.Busy {
			sum += min(1, float64(t.now.Busy-t.before.Busy)/float64(t.now.Total-t.before.Total))
		}
	}
	return unit.Measured(sum, "/proc/stat")
}
