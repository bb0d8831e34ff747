// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"strings"

	sys "golang.org/x/sys/unix"
)

// Range is a mapping's addresses, [Start, End).
type Range struct{ Start, End uint64 }

// Area is a mapping of /proc/PID/maps.
type Area struct {
	Range
	Access string // "rw-p": read, write, execute, private or shared
	Offset uint64 // in the file
	// The file's file system, as unix.Mkdev has it, and its number there; both 0 when
	// there is no file. The number of a System V segment is its id, which may be 0, and
	// may equal that of another file on the same file system (newseg in ipc/shm.c).
	Dev, Inode uint64
	// Path is a file, "[heap]" and the like, or "" for anonymous memory; with \040 and
	// other escapes of the kernel.
	Path string
}

// SysV says that it is a System V segment: "/SYSV", its key, " (deleted)".
func (a Area) SysV() bool { return strings.HasPrefix(a.Path, sysV) }

// HasFile says that it maps a file, or a segment of shared memory.
func (a Area) HasFile() bool { return a.Inode != 0 || a.SysV() }

const sysV = "/SYSV"

// ParseAreas reads /proc/PID/maps (since 2.0), ascending:
//
//	559f03f63000-559f03f65000 r--p 00000000 fe:00 247278   /usr/bin/head
//	7ffc12345000-7ffc12366000 rw-p 00000000 00:00 0        [stack]
//
// A kernel thread has none.
func ParseAreas(data []byte) ([]Area, error) {
	var all []Area
	for n, line := range lines(data) {
		a, err := parseArea("/proc/PID/maps", n, line)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	return all, nil
}

// parseArea reads a line of maps, or the first line of a mapping in smaps.
func parseArea(file string, n int, line []byte) (Area, error) {
	r, rest, err := addresses(n, line)
	if err != nil {
		return Area{}, err
	}
	a, err := area(r, rest)
	if err != nil {
		return Area{}, malformed(file, n, line, err)
	}
	return a, nil
}

// area reads the rest after the addresses: access, offset, device, inode, path.
func area(r Range, rest []byte) (Area, error) {
	access, rest := nextField(rest)
	offset, rest := nextField(rest)
	dev, inode, rest, err := fileID(rest)
	if err != nil {
		return Area{}, err
	}
	if len(access) != len("rw-p") {
		return Area{}, errShort
	}
	at, err := hex(offset)
	if err != nil {
		return Area{}, errRange
	}
	return Area{Range: r, Access: string(access), Offset: at, Dev: dev, Inode: inode, Path: string(bytes.TrimLeft(rest, " "))}, nil
}

// fileID reads "fe:00 247278": major and minor in hexadecimal, the inode in decimal.
func fileID(line []byte) (dev, inode uint64, rest []byte, err error) {
	field, rest := nextField(line)
	number1, rest := nextField(rest)
	major, minor, ok := bytes.Cut(field, []byte(":"))
	a, err1 := hex(major)
	b, err2 := hex(minor)
	if len(number1) == 0 {
		return 0, 0, nil, errShort
	}
	if !ok || err1 != nil || err2 != nil || a > 1<<32-1 || b > 1<<32-1 {
		return 0, 0, nil, errDevice
	}
	inode, err = inodeNumber(number1)
	return sys.Mkdev(uint32(a), uint32(b)), inode, rest, err
}

// inodeNumber reads a decimal of 64 bits: file systems may use all of them.
func inodeNumber(b []byte) (n uint64, err error) {
	for _, c := range b {
		d := uint64(c - '0')
		if c < '0' || c > '9' || n > (1<<64-1-d)/10 {
			return 0, errNumber
		}
		n = n*10 + d
	}
	return n, nil
}

// mapped calls each with the file of a line of /proc/PID/maps (see ParseAreas), if it has
// one. It keeps nothing of the line.
func mapped(n int, line []byte, each func(dev, inode uint64, sysV bool)) error {
	rest := line
	for range 3 { // addresses, access, offset
		_, rest = nextField(rest)
	}
	dev, inode, path, err := fileID(rest)
	if err != nil {
		return malformed("/proc/PID/maps", n, line, err)
	}
	if segment := bytes.HasPrefix(bytes.TrimLeft(path, " "), []byte(sysV)); segment || inode != 0 {
		each(dev, inode, segment)
	}
	return nil
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
