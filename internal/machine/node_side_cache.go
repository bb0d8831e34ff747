// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"math"

	"homenode/internal/unit"
)

// parseSideCacheBytes reads
//
//	/sys/devices/system/node/node0/memory_side_cache/index1/size        103079215104
//	/sys/devices/system/node/node0/memory_side_cache/index1/line_size   64
//
// Unit: bytes, unlike the CPU caches' "K" (numaperf.rst); 0 is unknown. Since 5.2.
func parseSideCacheBytes(text string) (unit.Opt[unit.Bytes], error) {
	n, err := parseUint(text, math.MaxInt64)
	return unit.OptOf(unit.Bytes(n), err == nil && n > 0), err
}

// sideCaches reads memory_side_cache/indexL, the caches in front of a node's
// memory. L counts from 1, nearest to the memory first.
func (t *tree) sideCaches(node int, any bool) []SideCache {
	if !any {
		return nil
	}
	var caches []SideCache
	dir := nodePath(node, "memory_side_cache")
	for _, level := range t.ids(dir, "index") {
		index := fmt.Sprintf("%s/index%d/", dir, level)
		caches = append(caches, SideCache{
			Level: level,
			Size:  load(t, index+"size", parseSideCacheBytes).Or(unit.None[unit.Bytes]()),
			Line:  load(t, index+"line_size", parseSideCacheBytes).Or(unit.None[unit.Bytes]()),
		})
	}
	return caches
}
