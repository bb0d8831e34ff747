// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"strconv"
	"strings"

	"homenode/internal/unit"
)

// parsePageSize reads PageSize from
//
//	/proc/hwloc-nofile-info   Architecture: aarch64
//	                          PageSize: 4096
//
// Unit: bytes. Not a kernel file: hwloc-gather-topology (2.5 and later) writes
// it into recorded trees for values that are in no file. None when the line is missing.
func parsePageSize(text string) (unit.Opt[unit.Bytes], error) {
	for i, line := range strings.Split(text, "\n") {
		value, ok := strings.CutPrefix(line, "PageSize:")
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(trim(value), 10, 32)
		if err != nil || n <= 0 || n&(n-1) != 0 {
			return unit.None[unit.Bytes](), fmt.Errorf("line %d: PageSize %s: want a power of two", i+1, clip(trim(value)))
		}
		return unit.Some(unit.Bytes(n)), nil
	}
	return unit.None[unit.Bytes](), nil
}
