// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"homenode/internal/unit"
)

// parseHugePages reads
//
//	/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages   512
//	/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages                 0
//
// Unit: pages of the size in the folder's name, used or free. Since 2.6.32.
func parseHugePages(text string) (int, error) {
	n, err := parseUint(text, math.MaxInt32)
	return int(n), err
}

// parseHugePageSize reads the folder's name, "hugepages-2048kB": kB is KiB.
func parseHugePageSize(name string) (unit.Bytes, error) {
	digits, ok1 := strings.CutPrefix(name, "hugepages-")
	digits, ok2 := strings.CutSuffix(digits, "kB")
	n, err := parseUint(digits, int64(MaxMemory/unit.KiB))
	if !ok1 || !ok2 || err != nil || n == 0 || n&(n-1) != 0 {
		return 0, fmt.Errorf("folder %s: want hugepages- and a power of two in kB", clip(name))
	}
	return unit.Bytes(n) * unit.KiB, nil
}

// hugePages lists the pools of a folder by the size of their pages. Pages beside which no
// memory of the node fits are an error, and their number unknown.
func (t *tree) hugePages(dir string, memory unit.Opt[unit.Bytes]) []HugePages {
	var pools []HugePages
	for _, name := range t.names(dir) {
		size, err := parseHugePageSize(name)
		if err != nil {
			t.malformed(dir, err)
			continue
		}
		path := dir + "/" + name + "/nr_hugepages"
		count := load(t, path, parseHugePages)
		if total, ok := memory.Get(); ok && int64(count.Or(0)) > int64(total/size) {
			t.malformed(path, fmt.Errorf("line 1: %d pages of %v: the node has %v", count.Or(0), size, total))
			count = unit.None[int]()
		}
		pools = append(pools, HugePages{Size: size, Count: count})
	}
	slices.SortFunc(pools, func(a, b HugePages) int { return cmp.Compare(a.Size, b.Size) })
	return pools
}
