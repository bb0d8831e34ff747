// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"

	"homenode/internal/machine"
)

// deviceLocality counts the nodes in use that a device of one kind is attached to.
func deviceLocality(class machine.DeviceClass) Concern {
	return Concern{
		Name: "device", Unit: "nodes", Help: "nodes in use with a device of the kind " + string(class),
		Weigh: func(m machine.Machine, nodes []int, _ *Links) (Weights, bool) {
			w, any := newWeights(len(nodes)), false
			for _, d := range m.Devices {
				node, known := d.Node.Get()
				if i := slices.Index(nodes, node); known && d.Class == class && i >= 0 {
					w.Node[i], any = 1, true
				}
			}
			return w, any
		},
	}
}
