// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"

	"homenode/internal/unit"
)

// ParseSmapsHuge adds up the transparent huge pages of the mappings between two
// addresses, from /proc/PID/smaps (AnonHugePages since 2.6.38):
//
//	7f1c40000000-7f1c40200000 rw-p 00000000 00:00 0
//	AnonHugePages:      2048 kB
func ParseSmapsHuge(data []byte, from, to uint64) (unit.Bytes, error) {
	var sum unit.Bytes
	inside := false
	for n, line := range lines(data) {
		key, rest := nextField(line)
		switch {
		case string(key) == "AnonHugePages:":
			b, err := kibibytes(rest)
			if err != nil {
				return 0, malformed("/proc/PID/smaps", n, line, err)
			}
			if inside {
				sum += b
			}
		case !bytes.HasSuffix(key, []byte(":")):
			first, last, ok := bytes.Cut(key, []byte("-"))
			a, err1 := hex(first)
			b, err2 := hex(last)
			if !ok || err1 != nil || err2 != nil {
				return 0, malformed("/proc/PID/smaps", n, line, errNumber)
			}
			inside = a < to && b > from
		}
	}
	return sum, nil
}
