// SPDX-License-Identifier: Apache-2.0

package procfs

import "bytes"

// Range is a mapping's addresses, [Start, End).
type Range struct{ Start, End uint64 }

// Area is a mapping of /proc/PID/maps.
type Area struct {
	Range
	Access string // "rw-p": read, write, execute, private or shared
	Offset uint64 // in the file
	// Path is a file, "[heap]" and the like, or "" for anonymous memory; \040 and
	// such as the kernel escapes them.
	Path string
}

// ParseMaps reads the addresses of /proc/PID/maps; see ParseAreas.
func ParseMaps(data []byte) ([]Range, error) {
	var all []Range
	for n, line := range lines(data) {
		r, _, err := addresses(n, line)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// ParseAreas reads /proc/PID/maps (since 2.0), ascending:
//
//	559f03f63000-559f03f65000 r--p 00000000 fe:00 247278   /usr/bin/head
//	7ffc12345000-7ffc12366000 rw-p 00000000 00:00 0        [stack]
//
// A kernel thread has none.
func ParseAreas(data []byte) ([]Area, error) {
	var all []Area
	for n, line := range lines(data) {
		r, rest, err := addresses(n, line)
		if err != nil {
			return nil, err
		}
		a, err := area(r, rest)
		if err != nil {
			return nil, malformed("/proc/PID/maps", n, line, err)
		}
		all = append(all, a)
	}
	return all, nil
}

// area reads what follows the addresses: access, offset, device, inode, path.
func area(r Range, rest []byte) (Area, error) {
	access, rest := nextField(rest)
	offset, rest := nextField(rest)
	_, rest = nextField(rest)
	inode, rest := nextField(rest)
	if len(access) != len("rw-p") || len(inode) == 0 {
		return Area{}, errShort
	}
	at, err := hex(offset)
	if err != nil {
		return Area{}, errRange
	}
	return Area{Range: r, Access: string(access), Offset: at, Path: string(bytes.TrimLeft(rest, " "))}, nil
}

func addresses(n int, line []byte) (Range, []byte, error) {
	field, rest := nextField(line)
	from, to, ok := bytes.Cut(field, []byte("-"))
	start, err1 := hex(from)
	end, err2 := hex(to)
	if !ok || err1 != nil || err2 != nil || end <= start {
		return Range{}, nil, malformed("/proc/PID/maps", n, line, errRange)
	}
	return Range{start, end}, rest, nil
}
