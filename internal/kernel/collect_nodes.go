// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"time"

	"homenode/internal/kernel/procfs"
	"homenode/internal/kernel/unix"
	"homenode/internal/unit"
	"homenode/internal/window"
)

// tickPair is one CPU's ticks, now and a round ago.
type tickPair struct{ now, before procfs.CPUTicks }

// ownTime is the CPU time of this program at one moment.
type ownTime struct {
	at   time.Time
	used time.Duration
}

// nodeCollector reads how busy each node's CPUs were (/proc/stat), and what its memory
// holds (its meminfo).
type nodeCollector struct {
	base
	stat     unix.Kept
	meminfo  []unix.Kept // parallel to the machine's nodes
	ticks    map[int]tickPair
	own      ownTime // when stat was read
	topology int     // Topology.Reads when these were opened
}

func newNodeCollector(h *host) *nodeCollector {
	return &nodeCollector{stat: unix.Kept{Path: h.root.Path("/proc/stat")}}
}

func (c *nodeCollector) begin(rd *round) error {
	nodes := rd.topology.Machine.Nodes
	if c.topology != rd.topology.Reads {
		c.reopen(rd)
	}
	first := len(c.ticks) == 0
	rd.problem(c.readStat(rd))
	rd.window.Nodes = make([]window.Node, len(nodes))
	for i, n := range nodes {
		out := &rd.window.Nodes[i]
		*out = window.Node{ID: n.ID, CPUs: n.CPUs, CPUBusy: c.busy(n.CPUs.IDs())}
		if first {
			out.CPUBusy = unit.UnknownValue[float64](firstWindow)
		}
		rd.problem(c.readMemory(rd, i, out))
	}
	return nil
}

// reopen is due when the machine was read again.
func (c *nodeCollector) reopen(rd *round) {
	c.close()
	c.topology, c.meminfo, c.ticks = rd.topology.Reads, nil, map[int]tickPair{}
	for _, n := range rd.topology.Machine.Nodes {
		c.meminfo = append(c.meminfo, unix.Kept{Path: rd.root.Path(fmt.Sprintf("/sys/devices/system/node/node%d/meminfo", n.ID))})
	}
}

func (c *nodeCollector) close() {
	c.stat.Close()
	for i := range c.meminfo {
		c.meminfo[i].Close()
	}
}

// readMemory sets what meminfo says. Without it, all is unknown.
func (c *nodeCollector) readMemory(rd *round, i int, n *window.Node) error {
	const from = "node meminfo"
	data, err := c.meminfo[i].Read(&rd.buf)
	var m procfs.NodeMeminfo
	if err == nil {
		m, err = procfs.ParseNodeMeminfo(data)
	} else {
		err = unix.Explain("read", c.meminfo[i].Path, "", err)
	}
	value := func(b unit.Opt[unit.Bytes]) unit.Value[unit.Bytes] {
		v, ok := b.Get()
		if !ok {
			return unit.UnknownValue[unit.Bytes]("not in " + from)
		}
		return unit.Measured(v, from)
	}
	n.Memory, n.Free, n.File, n.Anon = value(m.Total), value(m.Free), value(m.File), value(m.Anon)
	return err
}

func (c *nodeCollector) readStat(rd *round) error {
	data, err := c.stat.Read(&rd.buf)
	if err != nil {
		return unix.Explain("read", "/proc/stat", "", err)
	}
	now := ownTime{at: rd.now(), used: unix.ProcessCPU()}
	rd.own = unit.UnknownValue[float64](firstWindow)
	if past := now.at.Sub(c.own.at); !c.own.at.IsZero() && past > 0 {
		rd.own = unit.Measured((now.used-c.own.used).Seconds()/past.Seconds(), "CLOCK_PROCESS_CPUTIME_ID")
	}
	c.own = now
	all, err := procfs.ParseStat(data)
	for _, t := range all {
		c.ticks[t.CPU] = tickPair{now: t, before: c.ticks[t.CPU].now}
	}
	return err
}

// busy adds up the share of its time that each CPU was busy. It uses shares because a
// tickless CPU may miss ticks of both kinds.
func (c *nodeCollector) busy(cpus []int) unit.Value[float64] {
	sum := 0.0
	for _, cpu := range cpus {
		t, ok := c.ticks[cpu]
		if !ok || t.now.Total <= t.before.Total {
			return unit.UnknownValue[float64]("no tick in /proc/stat since the window before")
		}
		if t.now.Busy > t.before.Busy {
			sum += min(1, float64(t.now.Busy-t.before.Busy)/float64(t.now.Total-t.before.Total))
		}
	}
	return unit.Measured(sum, "/proc/stat")
}
