// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"errors"

	"homenode/internal/set"
)

var errZone = errors.New("not a node's zone")

// ParseZoneinfo reads the low watermarks of /proc/zoneinfo (since 2.6.13) and
// adds them up by node, in pages:
//
//	Node 0, zone   Normal
//	  pages free     1726313
//	        min      15848
//	        low      19810
func ParseZoneinfo(data []byte) (map[int]uint64, error) {
	low := map[int]uint64{}
	node := -1
	for n, line := range lines(data) {
		if bytes.HasPrefix(line, []byte("Node ")) {
			id, _, ok := bytes.Cut(line[len("Node "):], []byte(","))
			v, err := number(id)
			if !ok || err != nil || v > set.MaxNode {
				return nil, malformed("/proc/zoneinfo", n, line, errZone)
			}
			node = int(v)
			continue
		}
		key, rest := nextField(line)
		if string(key) != "low" {
			continue
		}
		pages, err := number(bytes.TrimSpace(rest))
		if err != nil || pages > maxPages || node < 0 {
			return nil, malformed("/proc/zoneinfo", n, line, errNumber)
		}
		low[node] += pages
	}
	return low, nil
}
