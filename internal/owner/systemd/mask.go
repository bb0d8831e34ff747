// SPDX-License-Identifier: Apache-2.0

package systemd

import (
	"fmt"

	"homenode/internal/kernel"
	"homenode/internal/set"
)

// The properties that are set.
const (
	CPUs = "AllowedCPUs"
	Mems = "AllowedMemoryNodes"
)

// Decode reads a property as D-Bus has it, an array of bytes: bit i of byte n is 8n + i.
// The answer is the list that the kernel shows, "2-3"; "" means unset.
func Decode(property string, mask []byte) (string, error) {
	var ids []int
	for n, b := range mask {
		for i := range 8 {
			if b>>i&1 != 0 {
				ids = append(ids, 8*n+i)
			}
		}
	}
	most := set.MaxCPU
	if property == Mems {
		most = set.MaxNode
	}
	if len(ids) > 0 && ids[len(ids)-1] > most {
		return "", fmt.Errorf("read %s: it has bit %d, the largest is %d (%w)", property, ids[len(ids)-1], most, kernel.ErrMalformed)
	}
	return set.FromCPUs(ids...).String(), nil
}

// encode is Decode's inverse: no bytes for "", by which systemd unsets it.
func encode(property, list string) ([]byte, error) {
	var ids []int
	if property == Mems {
		nodes, err := set.ParseNodes(list)
		if err != nil {
			return nil, err
		}
		ids = nodes.IDs()
	} else {
		cpus, err := set.ParseCPUs(list)
		if err != nil {
			return nil, err
		}
		ids = cpus.IDs()
	}
	mask := []byte{}
	for _, id := range ids {
		for len(mask) <= id/8 {
			mask = append(mask, 0)
		}
		mask[id/8] |= 1 << (id % 8)
	}
	return mask, nil
}
