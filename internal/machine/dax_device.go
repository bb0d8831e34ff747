// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"path"
	"slices"
	"strings"

	"homenode/internal/set"
	"homenode/internal/unit"
)

const daxDir = "sys/bus/dax/devices"

// dax lists the devices of the dax bus, from
//
//	/sys/bus/dax/devices/dax0.0/size          16909336576
//	/sys/bus/dax/devices/dax0.0/target_node   2
//	/sys/bus/dax/devices/dax0.0/driver        -> ../../../bus/dax/drivers/kmem
//
// Unit: bytes; the node that the memory is of, which exists once kmem has made it memory.
// Since 5.1 (drivers/dax/bus.c).
func (t *tree) dax(m *Machine) {
	for _, name := range t.names(daxDir) {
		if !strings.HasPrefix(name, "dax") {
			continue
		}
		dir := daxDir + "/" + name
		d := DAX{Name: name, Size: load(t, dir+"/size", parseSideCacheBytes).Or(unit.None[unit.Bytes]())}
		if node, ok := t.id(dir + "/target_node").Get(); ok && node <= set.MaxNode {
			d.Node = unit.Some(node)
		}
		if target, ok := t.link(dir + "/driver"); ok {
			d.Driver = path.Base(target)
		}
		m.DAX = append(m.DAX, d)
	}
	slices.SortFunc(m.DAX, func(a, b DAX) int { return strings.Compare(a.Name, b.Name) })
}
