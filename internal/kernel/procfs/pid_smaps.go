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
	err := eachSmapsHuge(data, func(r Range, b unit.Bytes) {
		if r.Start < to && r.End > from {
			sum += b
		}
	})
	if err != nil {
		return 0, err
	}
	return sum, nil
}

// ParseSmapsHugeByStart is the transparent huge pages of each mapping that has some,
// by its first address; see ParseSmapsHuge.
func ParseSmapsHugeByStart(data []byte) (map[uint64]unit.Bytes, error) {
	by := map[uint64]unit.Bytes{}
	err := eachSmapsHuge(data, func(r Range, b unit.Bytes) {
		if b > 0 {
			by[r.Start] += b
		}
	})
	if err != nil {
		return nil, err
	}
	return by, nil
}

func eachSmapsHuge(data []byte, each func(Range, unit.Bytes)) error {
	var at Range
	for n, line := range lines(data) {
		key, rest := nextField(line)
		switch {
		case string(key) == "AnonHugePages:":
			b, err := kibibytes(rest)
			if err != nil {
				return malformed("/proc/PID/smaps", n, line, err)
			}
			each(at, b)
		case !bytes.HasSuffix(key, []byte(":")):
			first, last, ok := bytes.Cut(key, []byte("-"))
			a, err1 := hex(first)
			b, err2 := hex(last)
			if !ok || err1 != nil || err2 != nil {
				return malformed("/proc/PID/smaps", n, line, errNumber)
			}
			at = Range{a, b}
		}
	}
	return nil
}
