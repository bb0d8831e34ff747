// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"cmp"
	"os"
	"slices"
	"strconv"

	"homenode/internal/kernel/procfs"
	"homenode/internal/machine"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// irqCount is an interrupt's counts since boot, by index of the node whose CPU
// served it.
type irqCount struct {
	name   string
	byNode []uint64
}

func (s *Snapshotter) countInterrupts(m machine.Machine) map[string]irqCount {
	in, err := parsed(s, "/proc/interrupts", procfs.ParseInterrupts)
	if err != nil {
		return nil
	}
	nodes := make([]int, len(in.CPUs))
	for i, cpu := range in.CPUs {
		at, ok := s.reader.topology.NodeAt(cpu)
		nodes[i] = at
		if !ok {
			nodes[i] = -1
		}
	}
	all := make(map[string]irqCount, len(in.IRQs))
	for _, irq := range in.IRQs {
		c := irqCount{name: irq.Name, byNode: make([]uint64, len(m.Nodes))}
		for i, n := range irq.Counts {
			if at := nodes[i]; at >= 0 {
				c.byNode[at] += n
			}
		}
		all[irq.Number] = c
	}
	return all
}

// irqs lists the interrupts of devices, by number.
func (s *Snapshotter) irqs(d delta) []snapshot.IRQ {
	devices := s.irqDevices()
	out := make([]snapshot.IRQ, 0, len(d.now.interrupts))
	for number, now := range d.now.interrupts {
		irq := snapshot.IRQ{Number: number, Name: now.name, Allowed: s.affinity(number)}
		if d.was != nil {
			irq.Counts = grownBy(d.was.interrupts[number].byNode, now.byNode)
		}
		if dev, ok := devices[number]; ok {
			irq.Device, irq.Node = dev.address, dev.node
		}
		out = append(out, irq)
	}
	slices.SortFunc(out, func(a, b snapshot.IRQ) int {
		return cmp.Or(cmp.Compare(len(a.Number), len(b.Number)), cmp.Compare(a.Number, b.Number))
	})
	return out
}

// grownBy subtracts; an interrupt that is new, or was given to another device,
// counts from 0.
func grownBy(was, now []uint64) []uint64 {
	out := slices.Clone(now)
	for i := range out {
		if i < len(was) && was[i] <= out[i] {
			out[i] -= was[i]
		}
	}
	return out
}

// affinity is the CPUs that may serve an interrupt: effective_affinity_list (since
// 4.14) has those really used; without it, the configured ones.
func (s *Snapshotter) affinity(number string) set.CPUSet {
	for _, file := range []string{"effective_affinity_list", "smp_affinity_list"} {
		text := s.text("/proc/irq/" + number + "/" + file)
		if text == "" {
			continue
		}
		cpus, err := set.ParseCPUs(text)
		s.problem(malformedSet("/proc/irq/"+number+"/"+file, err))
		if err == nil && !cpus.IsEmpty() {
			return cpus
		}
	}
	return set.CPUSet{}
}

type irqDevice struct {
	address string
	node    unit.Opt[int]
}

// irqDevices finds the PCI device of each interrupt: msi_irqs/N (since 3.3), or else
// the old irq file, whose line several devices may share.
func (s *Snapshotter) irqDevices() map[string]irqDevice {
	const dir = "/sys/bus/pci/devices"
	all := map[string]irqDevice{}
	entries, err := os.ReadDir(s.cfg.Reader.Root.Path(dir))
	if err != nil {
		return all
	}
	for _, e := range entries {
		at := dir + "/" + e.Name()
		node, ok := s.numberIn(at + "/numa_node")
		dev := irqDevice{address: e.Name(), node: unit.OptOf(node, ok && node >= 0)}
		msi, err := os.ReadDir(s.cfg.Reader.Root.Path(at + "/msi_irqs"))
		for _, irq := range msi {
			all[irq.Name()] = dev
		}
		if n, ok := s.numberIn(at + "/irq"); err != nil && ok && n > 0 {
			all[strconv.Itoa(n)] = dev
		}
	}
	return all
}
