// SPDX-License-Identifier: Apache-2.0

package set

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The kernel's mask format (bitmap_parse in lib/bitmap-str.c, printed by
// "%*pb"), for instance
//
//	/sys/devices/system/node/node1/cpumap   00000000,0000ff00
//	/proc/irq/24/smp_affinity               ff
//
// Groups of 32 bits in hexadecimal, the highest ids first; the first group may
// have fewer digits. Printed since 2.6.

var errMaskGroup = errors.New("a group is 1 to 8 hexadecimal digits")

// ParseCPUMask reads a hexadecimal CPU mask. On error the set is empty.
func ParseCPUMask(s string) (CPUSet, error) { return parseMask[CPU](s) }

func parseMask[K Kind](s string) (Set[K], error) {
	var b builder[K]
	text := trim(s)
	groups := strings.Split(text, ",")
	for i, group := range groups {
		if err := b.addGroup(group, 32*(len(groups)-1-i)); err != nil {
			return Set[K]{}, fmt.Errorf("parse %s mask %s: field %d %s: %w", b.noun(), clip(text), i+1, clip(group), err)
		}
	}
	return b.set(), nil
}

// addGroup adds the ids base+bit of one group of 32.
func (b *builder[K]) addGroup(group string, base int) error {
	word, err := strconv.ParseUint(group, 16, 32)
	if err != nil || len(group) > 8 || group[0] == '+' {
		return errMaskGroup
	}
	for bit := range 32 {
		if word&(1<<bit) == 0 {
			continue
		}
		if base+bit > b.max() {
			return fmt.Errorf("%s ids end at %d", b.noun(), b.max())
		}
		b.add(base + bit)
	}
	return nil
}

// Mask prints the kernel's mask format in full groups of 8 digits; the empty
// set is "00000000".
func (s Set[K]) Mask() string {
	words := make([]uint32, max(1, (len(s.bits)+3)/4))
	for id := range s.All() {
		words[id/32] |= 1 << (id % 32)
	}
	out := make([]string, len(words))
	for i, w := range words {
		out[len(words)-1-i] = fmt.Sprintf("%08x", w)
	}
	return strings.Join(out, ",")
}
