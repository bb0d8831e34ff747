// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/machine"
	"homenode/internal/render"
)

// nearNote says which CPUs are next to a node that has none, and how that is known.
func (f facts) nearNote(n machine.Node) string {
	near, how := f.NearCPUs(n.ID)
	if how == machine.NearnessUnset {
		return "next to no CPU that is known"
	}
	list, _ := shorten(near.String(), near.Len())
	nodes := f.nodesOf(near)
	return fmt.Sprintf("next to %s %s (CPUs %s), by %s", render.Plural(nodes.Len(), "node"), nodes, list, how)
}

func (f facts) nearText(b *render.Terminal) {
	if f.noCPUs.IsEmpty() {
		return
	}
	b.WriteString("\nNodes without CPUs\n")
	for _, n := range f.Nodes {
		if n.CPUs.IsEmpty() {
			fmt.Fprintf(b, "  node %d: %s\n", n.ID, f.nearNote(n))
		}
	}
}

// kindName is what to call a kind of CPUs.
func kindName(k machine.CPUKind) string {
	parts := []string{}
	if k.Name != "" {
		parts = append(parts, k.Name)
	}
	if c, ok := k.Capacity.Get(); ok {
		parts = append(parts, fmt.Sprintf("capacity %d of 1024", c))
	}
	return render.Or(strings.Join(parts, ", "), unknown)
}

func (f facts) kindText(b *render.Terminal) {
	if len(f.Kinds) == 0 {
		return
	}
	b.WriteString("\nKinds of CPUs\n")
	for _, k := range f.Kinds {
		fmt.Fprintf(b, "  %s: CPUs %s\n", kindName(k), k.CPUs)
	}
}

func (f facts) hugePageText(b *render.Terminal) {
	first := true
	for _, n := range f.Nodes {
		var pools []string
		for _, p := range n.HugePages {
			if p.Count.Or(1) > 0 {
				pools = append(pools, p.Count.String()+" × "+p.Size.String())
			}
		}
		if len(pools) > 0 && first {
			b.WriteString("\nHuge pages\n")
			first = false
		}
		if len(pools) > 0 {
			fmt.Fprintf(b, "  node %d: %s\n", n.ID, strings.Join(pools, ", "))
		}
	}
}

// deviceTitle is a device's names, and the memory of one that has some.
func deviceTitle(d machine.Device) string {
	title := strings.Join(d.Names, " ")
	if memory, ok := d.Memory.Get(); ok {
		title = strings.TrimSpace(title + " " + memory.String())
	}
	return title
}

func (f facts) daxText(b *render.Terminal) {
	if len(f.DAX) == 0 {
		return
	}
	t := table{{"device", "memory", "of node", "driver"}}
	for _, d := range f.DAX {
		t = append(t, []string{d.Name, d.Size.String(), d.Node.String(), render.Or(d.Driver, none)})
	}
	b.WriteString("\nMemory devices (dax)\n")
	t.write(b, "<>><")
}

func (f facts) linkText(b *render.Terminal) {
	for _, l := range f.Links {
		t := table{{"from\\to"}}
		for i := range l.Devices {
			t[0] = append(t[0], strconv.Itoa(i))
		}
		for i, name := range l.Devices {
			row := []string{strconv.Itoa(i) + " " + name}
			for _, v := range l.Values[i] {
				row = append(row, distance(v))
			}
			t = append(t, row)
		}
		fmt.Fprintf(b, "\nLinks: %s\n", render.Or(l.Name, "without a name"))
		t.write(b, "<")
	}
}
