// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"homenode/internal/render"
	"homenode/internal/set"
	"homenode/internal/snapshot"
	"homenode/internal/unit"
)

// A device's interrupts are served far from it, and so is the work that follows: the
// CPU reads what the device wrote into memory near the device.
//
//  1. Interrupts of one device are counted together; those without an address one by
//     one. Drivers of NVMe and fast NICs spread their queues over all CPUs on purpose,
//     so single interrupts mean nothing.
//  2. There are IRQRate or more of them a second.
//  3. The device's node serves less than IRQNear of an even spread over the nodes
//     with CPUs.
//  4. Cost: interrupts served elsewhere × IRQExtraSeconds; an estimate.
func irqFar(s snapshot.Snapshot, c Config) (found []Finding, skipped []Skipped) {
	l := view{s, c}
	if len(s.IRQs) == 0 {
		return nil, []Skipped{skip("no interrupts were read")}
	}
	if s.Length <= 0 {
		return nil, []Skipped{skip("the period has no length")}
	}
	for _, d := range l.irqDevices() {
		rate := float64(total(d.counts)) / s.Length.Seconds()
		node, known := d.node.Get()
		if rate < c.IRQRate { // 2
			continue
		}
		if !known {
			skipped = append(skipped, skip("its node is unknown", d.key))
			continue
		}
		near, ok := l.servers(node)
		if !ok {
			skipped = append(skipped, skip(fmt.Sprintf("its node %d is not one of the machine's", node), d.key))
			continue
		}
		i, _ := l.index(near)
		part := float64(at(d.counts, i)) / float64(total(d.counts))
		even := 1 / float64(max(1, s.Machine.NodesWithCPUs().Len()))
		if part < c.IRQNear*even { // 3
			found = append(found, l.irqFinding(d, near, rate, part))
		}
	}
	return found, skipped
}

// device is number 1.
type device struct {
	key, name string
	node      unit.Opt[int]
	irqs      []string
	counts    []uint64
	allowed   set.CPUSet
}

func (l view) irqDevices() []device {
	by := map[string]*device{}
	for _, q := range l.IRQs {
		key := q.Device
		if key == "" {
			key = "irq " + q.Number
		}
		d := by[key]
		if d == nil {
			d = &device{key: key, name: l.deviceName(q), node: q.Node, counts: make([]uint64, len(l.Machine.Nodes))}
			by[key] = d
		}
		d.irqs = append(d.irqs, q.Number)
		d.allowed = d.allowed.Union(q.Allowed)
		for i := range d.counts {
			d.counts[i] += at(q.Counts, i)
		}
	}
	var out []device
	for _, d := range by {
		slices.SortFunc(d.irqs, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b device) int { return strings.Compare(a.key, b.key) })
	return out
}

// deviceName is the kernel's name of it ("eth0"), or else the interrupt's name.
func (l view) deviceName(q snapshot.IRQ) string {
	for _, d := range l.Machine.Devices {
		if q.Device != "" && d.Address == q.Device && len(d.Names) > 0 {
			return d.Names[0]
		}
	}
	return q.Name
}

// servers is the node whose CPUs are nearest to a node: itself, or the nearest with
// CPUs.
func (l view) servers(node int) (int, bool) {
	n, ok := l.Machine.Node(node)
	if !ok || !n.CPUs.IsEmpty() {
		return node, ok
	}
	near := l.nearest(node, func(i int) bool { return !l.Machine.Nodes[i].CPUs.IsEmpty() })
	if len(near) == 0 {
		return 0, false
	}
	return near[0], true
}

func (l view) irqFinding(d device, near int, rate, part float64) Finding {
	node := d.node.Or(near)
	kind, id := SubjectDevice, d.key
	irqs := strings.Join(each(d.irqs, quote), " ")
	n, _ := l.Machine.Node(near)
	return Finding{
		Title:   fmt.Sprintf("Interrupts of %s (%s) are served far from its node %d: %s of them there", d.name, d.key, node, render.Percent(part)),
		Subject: Subject{Kind: kind, ID: id, Name: d.name},
		Cost:    unit.Estimated(rate*(1-part)*l.c.IRQExtraSeconds, "interrupts served elsewhere × some cache lines from afar"), // 4
		Evidence: []Evidence{
			fact("interrupts", render.Amount(rate)+"/s", unit.HowMeasured, "/proc/interrupts"),
			fact("served on", l.byNode(func(i int) string {
				return render.Percent(float64(at(d.counts, i)) / float64(max(1, total(d.counts))))
			}), unit.HowMeasured, "/proc/interrupts"),
			fact("attached to", nodeName(node), unit.HowMeasured, "PCI numa_node"),
			fact("may be served on CPUs", orElse(d.allowed.String(), "unknown"), unit.HowMeasured, "smp_affinity_list"),
		},
		Cause:  "The affinity of its interrupts, or irqbalance, put them on CPUs of another node than the device's.",
		Remedy: "Serve them where the device is. A running irqbalance will move them back: stop it, or give it a policy script. Some drivers manage their affinity themselves and refuse (EIO).",
		Commands: []string{
			fmt.Sprintf("for i in %s; do echo %s > /proc/irq/$i/smp_affinity_list; done%s", irqs, n.CPUs, remark(d.name+" "+d.key)),
			"systemctl status irqbalance",
		},
	}
}

func each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, len(list))
	for i, v := range list {
		out[i] = f(v)
	}
	return out
}
