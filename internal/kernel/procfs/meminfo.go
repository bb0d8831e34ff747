// SPDX-License-Identifier: Apache-2.0

package procfs

import "homenode/internal/unit"

// Swap is the host's swap space.
type Swap struct{ Total, Free Bytes }

// ParseSwap reads the swap lines of /proc/meminfo (since 2.4), in KiB:
//
//	SwapTotal:       2097148 kB
//	SwapFree:        2097148 kB
func ParseSwap(data []byte) (Swap, error) {
	var s Swap
	for n, line := range lines(data) {
		key, rest := nextField(line)
		var into *Bytes
		switch string(key) {
		case "SwapTotal:":
			into = &s.Total
		case "SwapFree:":
			into = &s.Free
		default:
			continue
		}
		b, err := kibibytes(rest)
		if err != nil {
			return Swap{}, malformed("/proc/meminfo", n, line, err)
		}
		*into = unit.Some(b)
	}
	return s, nil
}
