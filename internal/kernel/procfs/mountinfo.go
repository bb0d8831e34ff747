// SPDX-License-Identifier: Apache-2.0

package procfs

import (
	"bytes"
	"slices"
	"strings"

	sys "golang.org/x/sys/unix"
)

// Mount is the part of a mount that we need.
type Mount struct {
	ID     uint64 // as in statx(2); of one namespace, and reused after it is unmounted
	Root   string // the part of the file system that is mounted; "/" is all of it
	Point  string
	Type   string
	Super  []string // options of the file system; for cgroup v1 also its controllers
	Source string
	Dev    uint64 // of the file system, as unix.Mkdev has it
	// ReadOnly: this mount of it, or the file system, is read-only.
	ReadOnly bool
}

// ParseMountinfo reads /proc/PID/mountinfo (since 2.6.26):
//
//	34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset
//	41 31 0:38 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
//
// Field 1 is the mount's number, field 3 MAJOR:MINOR in decimal. Fields 4 and 5 are
// root and mount point with \040 for a blank; any number of optional fields ends at
// "-"; then type, source, options.
func ParseMountinfo(data []byte) ([]Mount, error) {
	var all []Mount
	for n, line := range lines(data) {
		head, tail, ok := bytes.Cut(line, []byte(" - "))
		h, t := bytes.Fields(head), bytes.Fields(tail)
		if !ok || len(h) < 6 || len(t) < 2 {
			return nil, malformed("/proc/self/mountinfo", n, line, errShort)
		}
		major, minor, ok := bytes.Cut(h[2], []byte(":"))
		a, err1 := number(major)
		b, err2 := number(minor)
		if !ok || err1 != nil || err2 != nil || a > 1<<32-1 || b > 1<<32-1 {
			return nil, malformed("/proc/self/mountinfo", n, line, errDevice)
		}
		id, err := number(h[0])
		if err != nil {
			return nil, malformed("/proc/self/mountinfo", n, line, err)
		}
		m := Mount{ID: id, Root: unescape(h[3]), Point: unescape(h[4]), Type: string(t[0]), Source: unescape(t[1]), Dev: sys.Mkdev(uint32(a), uint32(b))}
		if len(t) > 2 {
			m.Super = strings.Split(string(t[2]), ",")
		}
		m.ReadOnly = slices.Contains(strings.Split(string(h[5]), ","), "ro") || slices.Contains(m.Super, "ro")
		all = append(all, m)
	}
	return all, nil
}

var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

func unescape(b []byte) string { return octal.Replace(string(b)) }
