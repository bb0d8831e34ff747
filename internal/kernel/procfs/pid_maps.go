// SPDX-License-Identifier: Apache-2.0

package procfs

import "bytes"

// Range is a mapping's addresses, [Start, End).
type Range struct{ Start, End uint64 }

// ParseMaps reads /proc/PID/maps (since 2.0), ascending:
//
//	559f03f63000-559f03f65000 r--p 00000000 fe:00 247278   /usr/bin/head
//	7ffc12345000-7ffc12366000 rw-p 00000000 00:00 0        [stack]
//
// A kernel thread has none.
func ParseMaps(data []byte) ([]Range, error) {
	var all []Range
	for n, line := range lines(data) {
		field, _ := nextField(line)
		from, to, ok := bytes.Cut(field, []byte("-"))
		start, err1 := hex(from)
		end, err2 := hex(to)
		if !ok || err1 != nil || err2 != nil || end <= start {
			return nil, malformed("/proc/PID/maps", n, line, errRange)
		}
		all = append(all, Range{start, end})
	}
	return all, nil
}
